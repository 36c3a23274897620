/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `fettle init`: a campaign from a user's own sbatch script. The script is read, never run. Its
 * options become resources; its body up to the launch is copied into a script of its own, in which
 * three things are put: what the campaign sets holds at the launch whatever the lines before it
 * say, the campaign's arguments stand behind those of the program (the last of two equal options
 * counts), and what is saved goes into the trial's own directory. What cannot be kept so is
 * refused, with its line.
 *
 * The parts, in the order in which they run: resources, framework, script, recipe. Each reads the
 * script and fills its part of struct init.
 */
#ifndef FETTLE_CMD_INIT_H
#define FETTLE_CMD_INIT_H

#include <stdbool.h>
#include <stddef.h>

#include "experiments/model.h"
#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"
#include "orchestrator/script/sbatch.h"

/* As given on the command line. */
struct init_options {
	const char *script, *out, *scheduler;
	const char *pattern;     /* of a step's line; NULL: the framework's */
	struct strv save_args;   /* --save-arg: names of options that say where is saved */
	struct strv drop;        /* --drop: options of sbatch that may be left out */
	struct strv skip;        /* --skip: lines that are left out */
	struct strv args;        /* the script's own arguments */
	const char *launch;      /* the line that starts the work; NULL: the only one */
	const char *array_index; /* NULL: the first of the array */
	bool saves_nothing, force;
};

struct init_framework;

struct init {
	const struct init_options *o;
	const struct sbatch *s;
	const struct sbatch_launch *launch;
	const struct init_framework *framework;
	const struct knob *catalogue;
	size_t n_catalogue;
	char *copy;    /* the script that is written, as the command names it */
	char *workdir; /* NULL: the campaign's directory */
	/* Sentences "FILE:LINE: ...": why it cannot be done; what to know about what is done. */
	struct strv refused, said;
	struct kvs resources;   /* field of the recipe -> its value as Lua */
	struct strv variables;  /* NAME=VALUE that sbatch would set, for srun */
	int nodes, tasks, cpus; /* 0: not said */
	bool gpus;
	struct strv redirects; /* words for the shell behind the program's arguments */
	struct strv command;   /* arguments that the campaign may change, with their values */
	struct kvs env;        /* what the script exports */
	struct strv env_at;    /* the lines of these */
	struct strv secrets;
	struct strv knobs; /* each as Lua */
	char *name;
};

void init_done(struct init *i);
void init_refuse(struct init *i, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void init_say(struct init *i, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool init_skips(const struct init *i, int line);

/* Which launch it is; nothing else makes sense when there is none (then i->launch stays NULL). */
void init_find_launch(struct init *i);
/* The #SBATCH options. */
void init_resources(struct init *i);
/* What the program is: where it saves, what it exports, which knobs fit. */
void init_recognise(struct init *i);
/* The copy of the script; after the others. */
void init_script(struct init *i, struct buf *out);
/* The end of the last command of bash -c's text, inside of its quotes; 0: it cannot be told. */
size_t init_inner_end(const struct shell_word *w);
/* The campaign. */
void init_recipe(struct init *i, struct buf *out);

/* -- frameworks ------------------------------------------------------------------------------ */

struct init_framework {
	const char *title; /* for people */
	const char *name;  /* workload.framework; NULL: none */
	const char *probe; /* NULL: by pattern */
	const char *pattern;
	const char *objective;
	bool has_loss;       /* the probe reads a loss */
	const char *log_arg; /* how often it tells of a step; NULL: cannot be said */
	int log_default;     /* steps; 0: as log_arg says */
	/* Where it saves, also when the script does not say so; NULL: only when it is asked. */
	const char *save;
	const char *const *extra; /* arguments that switch saving and trackers off */
	const char *const *knobs; /* of the catalogue, beside those for everybody */
};
const struct init_framework *init_framework_of(const struct sbatch_launch *l);
/* How many steps lie between two lines of the log, and whether the copy must say so. */
int init_log_interval(const struct init *i, bool *set);

#endif
