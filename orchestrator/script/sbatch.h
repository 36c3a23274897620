/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A user's sbatch script, read and never run: its #SBATCH options as sbatch itself would take them,
 * and of its body what can be told without a shell: variables, modules, environments that are
 * activated, and the lines that launch something. What could not be understood is in `notes`, with
 * its line. `fettle init` makes a campaign of it, `fettle check` looks for faults in it.
 */
#ifndef FETTLE_SCRIPT_SBATCH_H
#define FETTLE_SCRIPT_SBATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"
#include "orchestrator/script/shell.h"

/* slurmctld takes no larger script unless max_script_size says so. */
enum { SBATCH_BYTES_MAX = 4 << 20 };

/* An option of a #SBATCH line. sbatch joins all the lines to one argument vector, stops at the
 * first line that is a command, takes quotes off, and expands no variable. */
struct sbatch_option {
	char *name; /* its long name, "nodes", also for -N and abbreviations; as written when sbatch
		       has no such option */
	char *value; /* NULL: it has none */
	char *text;  /* as written: "-N 2" */
	int line;
	int component; /* of a heterogeneous job, from 0 */
	bool known;    /* sbatch (20.11 to 26.05) has such an option */
};

enum sbatch_note_kind {
	SBATCH_OFF,        /* `##SBATCH`, `# SBATCH`, ` #SBATCH`: a comment for Slurm */
	SBATCH_IGNORED,    /* #SBATCH after the first command: Slurm does not read it */
	SBATCH_UNKNOWN,    /* sbatch has no such option, or the value is missing */
	SBATCH_UNEXPANDED, /* a `$` in an option: sbatch expands no variables */
	SBATCH_OPAQUE,     /* of the body: what only a shell could tell */
};
struct sbatch_note {
	enum sbatch_note_kind kind;
	int line;
	char *text; /* a sentence without full stop; does not repeat file and line */
};

enum sbatch_var_how {
	SBATCH_EXPORT, /* export A=1, declare -x A=1, export A (after A=1) */
	SBATCH_ASSIGN, /* A=1: not in the environment of what is launched */
	SBATCH_UNSET,  /* unset A, export -n A */
	SBATCH_PREFIX, /* A=1 cmd, env A=1 cmd, --export=ALL,A=1: for this command only */
};
struct sbatch_var {
	char *name;
	char *text;  /* the value as written; NULL: unset */
	char *value; /* what it is when the line has run; NULL: only the shell knows, or unset */
	enum sbatch_var_how how;
	int line;
	size_t command;   /* of body */
	bool conditional; /* the line may not run */
};

/* A line of the body that a reader wants to see as it stands. */
struct sbatch_line {
	int line;
	char *text;
};

/* A command that starts the work: srun, mpirun, torchrun, python -m torch.distributed.run,
 * accelerate launch, deepspeed, apptainer or singularity exec, enroot start, or python itself with
 * a script. */
struct sbatch_launch {
	size_t command; /* of body: body.v[command] */
	int line, last_line;
	struct strv launchers; /* outermost first: "srun", "apptainer", "bash -c", "torchrun",
				  "python" */
	char *program;         /* "train.py", "./app"; of `-m x` the module; NULL: cannot be told */
	bool module;           /* it is a module's name */
	bool errand;           /* hostname, nvidia-smi, python -c, ...: not the workload */
	struct shell_fields options; /* of all launchers together, names of programs included */
	struct shell_fields args;    /* what the program gets; unknown parts as written */
	/* Where the program's word stands in the command's words; of `bash -c TEXT` the word of
	 * TEXT. */
	size_t program_word;
	size_t inner_word; /* the word of `bash -c`'s TEXT; 0: there is none */
	bool nested;       /* TEXT runs another `bash -c`, whose word is not told */
};

struct sbatch {
	char *name;        /* for messages: the file */
	char *text;        /* the script itself */
	size_t n;          /* its bytes */
	char *interpreter; /* "bash", "sh", "python3", ... of the shebang */
	struct sbatch_option *options;
	size_t n_options, cap_options;
	int components; /* 1; more: a heterogeneous job */
	struct shell body;
	struct shell_vars values; /* after the last line */
	struct sbatch_var *vars;
	size_t n_vars, cap_vars;
	struct sbatch_line *modules; /* module load/use/purge, ml, spack load */
	size_t n_modules, cap_modules;
	struct sbatch_line *activations; /* source x, . x, conda activate, micromamba, pyenv */
	size_t n_activations, cap_activations;
	struct sbatch_launch *launches;
	size_t n_launches, cap_launches;
	struct sbatch_note *notes; /* by line */
	size_t n_notes, cap_notes;
};

/* Read n bytes of text; `name` is the file for messages. ERR_USAGE "NAME:LINE: ..." for what sbatch
 * itself refuses: no #! line, DOS line breaks, a NUL, an unclosed quote in an option; and for more
 * than SBATCH_BYTES_MAX. *out is left alone then. Of Slurm's variables the body is given those that
 * the options tell: SLURM_NNODES, SLURM_NTASKS, SLURM_NTASKS_PER_NODE, SLURM_CPUS_PER_TASK,
 * SLURM_JOB_NAME. */
int sbatch_parse(const char *name, const char *text, size_t n, struct sbatch *out, struct err *e);
/* The same from a file. ERR_NOT_FOUND, ERR_IO. */
int sbatch_read(const char *path, struct sbatch *out, struct err *e);
void sbatch_free(struct sbatch *s);

/* The last option of that name (they override each other) of a component; NULL: none. */
const struct sbatch_option *sbatch_option(const struct sbatch *s, const char *name, int component);

/* What an argument of the program is: "--name=v", "--name v"; for a flag "". NULL: not there, or
 * *known is false and the text is as written. The last one counts. Borrowed. */
const char *sbatch_arg(const struct sbatch_launch *l, const char *name, bool *known);

/* The names of all options that sbatch has, for str_nearest(); NULL at the end. */
const char *const *sbatch_option_names(void);

#endif
