/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The validated configuration in a form that others read. It goes into files that people use
 * without looking, so that every value is quoted for the reader of its place: a shell word, the
 * option parser of sbatch, TOML, Lua, Tcl, a comment. A form takes what its reader can take, and
 * says of the rest how it is passed instead.
 *
 * One form is one file form_<name>.c that defines `const struct recommend_form form_<name>`. What
 * goes into a script of the user's own is no form: cmd/patch.h.
 */
#ifndef FETTLE_REPORT_RECOMMEND_H
#define FETTLE_REPORT_RECOMMEND_H

#include "orchestrator/report/report.h"

struct recommend_form {
	const char *name, *summary;
	/* Append the fix. `left` gets a sentence for each part of it that this form does not hold;
	 * never NULL. ERR_NOT_FOUND when it would hold nothing. */
	int (*write)(const struct report *r, struct strv *left, struct buf *out, struct err *e);
};
extern const struct recommend_form *const recommend_form_table[]; /* generated; NULL at the end */

/* ERR_USAGE with the names of all, and the nearest one. */
int recommend_find(const char *name, const struct recommend_form **out, struct err *e);

/* Is there a fix whose gain was seen again on the fresh blocks of the final stage, that breaks no
 * guard there and has not lost its long run? */
bool recommend_confirmed(const struct report *r);
/* ERR_NOT_FOUND with what to do when the campaign has no fix, ERR_STATE when the gain was not seen
 * again or a guard is broken; `force` lets the latter through. */
int recommend_allowed(const struct report *r, bool force, struct err *e);
/* recommend_allowed(), and the fix in this form. On failure nothing is added to `out`. */
int recommend_write(const struct report *r, const struct recommend_form *form, bool force,
		    struct strv *left, struct buf *out, struct err *e);

/* -- parts of a fix --------------------------------------------------------------------------- */

enum recommend_how { RECOMMEND_VARIABLE, RECOMMEND_ARGUMENT, RECOMMEND_KEY, RECOMMEND_COMMAND };
/* All borrowed from the report. */
struct recommend_part {
	enum recommend_how how;
	const struct knob *knob; /* NULL: a variable that the campaign sets */
	const char *name;        /* variable, "--argument", key, knob */
	const char *value;       /* NULL: the variable is taken out; of a flag "true" or "false" */
};
struct recommend_parts {
	struct recommend_part *v;
	size_t n, cap;
};
/* What the fix consists of: its variables, without those that only make components talk in trials,
 * and its settings that are none. */
void recommend_parts(const struct report *r, struct recommend_parts *out);
void recommend_parts_free(struct recommend_parts *p);
/* "--num-workers 4", "NCCL_ALGO=Ring", "without NCCL_ALGO"; for people; heap. */
char *recommend_part_text(const struct recommend_part *p);
/* The part, and how it is passed where this form does not hold it: a sentence added to `left`. */
void recommend_leave(const struct report *r, const struct recommend_part *p, struct strv *left);

/* -- what forms share ------------------------------------------------------------------------- */

/* What the fix rests on, in lines of plain text: campaign, effect, what it holds for, warnings. */
void recommend_head(const struct report *r, struct buf *out);
/* The text as a comment: `mark` before each line, so that nothing in it can act. most: bytes of a
 * line, longer ones go on in another; 0: any. */
void recommend_comment(struct buf *out, const char *mark, size_t most, const char *text);
/* The head and what was left out, as a comment. */
void recommend_comment_head(const struct report *r, const struct strv *left, const char *mark,
			    size_t most, struct buf *out);
/* One line: "fettle: campaign 7, name: num_workers=2 (+27.5 % on ...)". */
void recommend_title(const struct report *r, struct buf *out);
/* How a kind of module files is written. */
struct recommend_syntax {
	const char *first;   /* what the file begins with */
	const char *comment; /* mark of a comment */
	const char *use;     /* a comment for who opens the file */
	void (*whatis)(const char *title, struct buf *out);
	void (*line)(const struct recommend_part *p, struct buf *out); /* of a variable */
};
/* A module file: each variable that a shell can have; the other parts go into `left`.
 * ERR_NOT_FOUND when there is none. */
int recommend_module(const struct report *r, const struct recommend_syntax *x, struct strv *left,
		     struct buf *out, struct err *e);
bool recommend_pending(const struct report *r); /* convergence */

/* The command is a copy of the user's script, made for trials: it saves nothing that lasts. */
bool recommend_is_copy(const struct report *r);
/* A token of the fix's command: the copy of the framework's file gets a name; heap. */
char *recommend_token(const struct report *r, const char *token);
/* What stands before the command: launcher and container. */
void recommend_launch(const struct report *r, bool launched, struct strv *out);
/* The command as a line for a shell; `launched`: with the launcher. */
void recommend_command(const struct report *r, bool launched, struct buf *out);
/* A word for a shell, behind a blank. */
void recommend_word(struct buf *out, const char *s);
/* Variables as lines for a shell, in the order of the configuration; `before` each: "export ". */
void recommend_variables(const struct report *r, const char *before, struct buf *out);
/* Keys of the framework's file that the fix sets, and how to get the file: a comment. */
void recommend_config_keys(const struct report *r, struct buf *out);

#endif
