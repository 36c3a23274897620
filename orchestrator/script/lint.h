/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Does what is written do what it says? Settings, commands and a campaign's knobs are handed to the
 * rules of recipes/lint/ (Lua, in the sandbox), which know names, values, versions, transports and
 * layers of the components; what they find comes back as a list. What a component knows of itself
 * is data: recipes/lint/facts/. Of files of one name on the recipe path the first is taken, so a
 * site adds its own, or puts another in place of ours.
 *
 * A value that only a running shell knows is `dynamic`: its name is checked and nothing else.
 */
#ifndef FETTLE_SCRIPT_LINT_H
#define FETTLE_SCRIPT_LINT_H

#include <stdbool.h>
#include <stddef.h>

#include "experiments/model.h"
#include "orchestrator/base/err.h"
#include "orchestrator/script/script.h"

enum lint_severity {
	LINT_ERROR,   /* it does not do what it says, or ends the job */
	LINT_WARNING, /* it does something, and hardly what was meant */
	LINT_NOTE,    /* worth knowing */
};
const char *lint_severity_name(enum lint_severity s);

struct lint_finding {
	enum lint_severity severity;
	char *rule;
	char *file;         /* NULL: of the whole */
	int line;           /* 0: unknown */
	char *name, *value; /* the setting; NULL: none, or not known */
	char *what;         /* what happens in fact */
	char *write;        /* what to write instead; NULL: nothing to say */
	char *knob, *arm;   /* a value of a campaign's knob that it is about; else NULL */
};
void lint_findings_free(struct lint_finding *f, size_t n);

/* One setting of an environment. */
struct lint_setting {
	const char *name, *value; /* value NULL: it is taken out */
	const char *text;         /* as it is written, where that differs; or NULL */
	bool dynamic;             /* the value is not known before the script runs */
	bool conditional;         /* the line may not run */
	bool used;                /* another line of the file expands it: it may be its own */
	const char *file;
	int line;
	const char *layer; /* who sets it: "export", "shell" (not exported), "prefix" (for one
			      command), "command" (an option of a launcher), "env file",
			      "nccl.conf", "campaign" */
};

/* What is to be checked. Texts are copied. */
struct lint_input;
struct lint_input *lint_input_new(void);
void lint_input_free(struct lint_input *in);

/* In the order in which they take effect: later ones win. */
void lint_input_setting(struct lint_input *in, const struct lint_setting *s);
void lint_input_command(struct lint_input *in, char *const *words, size_t n, const char *file,
			int line);
/* A file of settings as a shell reads it (n bytes), and as NCCL reads its own. */
void lint_input_env(struct lint_input *in, const char *file, const char *text, size_t n);
void lint_input_conf(struct lint_input *in, const char *file, const char *text);
/* A job script: its options, its variables in their order, what it starts, and what sbatch does not
 * understand. */
struct sbatch;
void lint_input_script(struct lint_input *in, const struct sbatch *s);
/* What is known of where it runs: "nccl", "torch", "slurm" (versions), "transport" ("ib", "roce",
 * "efa", "socket"), "launcher", "gpu"; and numbers "nodes", "ranks_per_node", "gpus_per_node",
 * "cpus_per_task". A NULL text is not known. */
void lint_input_text(struct lint_input *in, const char *key, const char *value);
void lint_input_number(struct lint_input *in, const char *key, double value);
bool lint_input_has(const struct lint_input *in, const char *key);

/* A campaign: its environment and command under these settings of its knobs (NULL: none), what each
 * value of each knob changes of them, its model, target and budget. */
int lint_input_recipe(struct lint_input *in, const struct recipe *r, const struct kvs *settings,
		      struct err *e);

/* Ask the rules on the path. ERR_RECIPE when a rule is at fault: its file and line. */
int lint_run(const struct script_path *path, const struct lint_input *in, struct lint_finding **out,
	     size_t *n, struct err *e);
/* The same with stored sources: names "lint/...", "lint/facts/...", "lib/lint". No finding where
 * they hold no rules. */
int lint_run_stored(const struct script_sources *s, const struct lint_input *in,
		    struct lint_finding **out, size_t *n, struct err *e);

/* The rules and facts of the path, for lint_run_stored(). Appends. */
int lint_sources(const struct script_path *path, struct script_sources *out, struct err *e);

/* "NAME=VALUE: what happens; write ...": one line for a person, without severity and place; heap.
 */
char *lint_text(const struct lint_finding *f);

/* An error about this value of the knob, or NULL. */
const struct lint_finding *lint_refusal(const struct lint_finding *f, size_t n, const char *knob,
					const char *value);

/* Everything about a campaign with its sources, and its first error that is not about a value of a
 * knob: the campaign itself does not do what it says. *blocking is an index; n: there is none. */
/* The same when these settings were accepted: what a value does may depend on them. */
int lint_accepted(const struct recipe *r, const struct script_sources *s,
		  const struct kvs *settings, struct lint_finding **out, size_t *n, struct err *e);
int lint_campaign(struct lint_input *in, const struct recipe *r, const struct script_sources *s,
		  struct lint_finding **out, size_t *n, size_t *blocking, struct err *e);
#endif
