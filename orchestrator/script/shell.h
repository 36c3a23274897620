/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A shell script as text: which simple commands it holds, where each word of them stands, and what
 * of it can be told without a shell. Nothing is run, no file is read. Quotes, continuations,
 * here-documents, arrays, functions, loops and conditions are followed; what cannot be told (the
 * output of commands, variables of the environment, patterns of file names) is said to be unknown,
 * never guessed. The grammar is POSIX's with bash's arrays, [[ ]], (( )), <<< and &>.
 */
#ifndef FETTLE_SCRIPT_SHELL_H
#define FETTLE_SCRIPT_SHELL_H

#include <stdbool.h>
#include <stddef.h>

#include "orchestrator/base/str.h"

enum {
	SHELL_DEPTH_MAX = 100, /* compound commands, or quotes, inside each other */
	/* Bytes of an expanded variable, and of all that a command's words become: A="$A$A" doubles
	 * in each line. Real lists of arguments have a few KiB. */
	SHELL_VALUE_MAX = 16 * 1024,
	SHELL_WORDS_MAX = 128 * 1024,
	SHELL_FIELDS_MAX = 4096, /* of an expanded word or array */
	SHELL_VARS_MAX = 1000,   /* of a script; what comes later is unknown */
};

/* A word as it is written, quotes and all. */
struct shell_word {
	char *text;
	size_t start, end; /* bytes of the script: [start, end) */
	int line;
};
struct shell_words {
	struct shell_word *v;
	size_t n, cap;
};

/* `NAME=value`, `NAME+=value` or `NAME=(one two)` before a command, or alone. */
struct shell_assign {
	char *name;
	struct shell_word value;  /* what follows the `=`; of an array with its parentheses */
	struct shell_words items; /* of an array */
	bool array, append;
};

struct shell_redirect {
	char *op; /* "2>", ">>", "&>", "<<", "<<<", ">&", ... */
	struct shell_word target;
	size_t start, end; /* of operator and target */
	char *body;        /* here-document: its text; else NULL */
};

/* One simple command. Compound commands are told by where their commands stand. */
struct shell_command {
	struct shell_assign *assigns;
	size_t n_assigns, cap_assigns;
	struct shell_words words; /* the command and its arguments; `for NAME in ...` has a command
				     of that form too */
	struct shell_redirect *redirects;
	size_t n_redirects, cap_redirects;
	size_t start, end;   /* bytes of the script */
	int line, last_line; /* counted from 1 */
	size_t depth;        /* compound commands and functions that it stands in */
	char *function;      /* it stands in this function's body; NULL */
	bool conditional;    /* it may not run: in if, case, a loop, or after && and || */
	bool loop;           /* in a loop: it may run more than once */
	bool subshell;       /* what it assigns is gone after it */
	bool piped_in, piped_out, background;
};

struct shell_note {
	int line;
	char *text; /* what was not understood, one sentence without full stop */
};

struct shell {
	struct shell_command *v;
	size_t n, cap;
	struct shell_note *notes;
	size_t n_notes, cap_notes;
};

/* Read n bytes; lines count from `line`. Always succeeds: what it cannot follow is in the notes,
 * and what stands after an unclosed quote is lost. *out is filled afresh. */
void shell_read(const char *text, size_t n, int line, struct shell *out);
void shell_free(struct shell *s);

/* -- variables ------------------------------------------------------------------------------- */

/* One argument that a word gives. When it is not known, text has what could be told and `$X` or
 * `$(cmd)`, as written, for the rest. */
struct shell_field {
	char *text;
	bool known;
	size_t word; /* which of the words it came from; shell_expand_words() */
};
struct shell_fields {
	struct shell_field *v;
	size_t n, cap, bytes;
	bool cut; /* there was more than the bounds allow */
};

struct shell_value {
	char *name;
	struct shell_fields items; /* one, unless it is an array */
	bool known;                /* all of it */
	bool told; /* as far as `$X` and the like leave it open, it is what items say; false: it
		      may be something else altogether */
	bool array;
};
struct shell_vars {
	struct shell_value *v;
	size_t n, cap;
};

const struct shell_value *shell_var(const struct shell_vars *vars, const char *name);
void shell_var_set(struct shell_vars *vars, const char *name, const char *value); /* NULL: unknown
										   */
/* As the assignment does; one that may not run (`sure` false) leaves a value known only when it
 * says the same. */
void shell_var_assign(struct shell_vars *vars, const struct shell_assign *a, bool sure);
void shell_vars_free(struct shell_vars *vars);

/* The arguments that the words from `from` on become, appended to out. A variable that `vars` does
 * not have is unknown, but `${X:-word}` is the word then. */
void shell_expand_words(const struct shell_words *words, size_t from, const struct shell_vars *vars,
			struct shell_fields *out);
/* The one text that a word becomes where no fields are split (an assignment); heap, NULL when it is
 * not known. */
char *shell_literal(const char *word, const struct shell_vars *vars);
void shell_fields_free(struct shell_fields *f);

/* [A-Za-z_][A-Za-z0-9_]*, the length of the longest such prefix of s; 0: none. */
size_t shell_name_length(const char *s);

#endif
