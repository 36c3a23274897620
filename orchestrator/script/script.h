/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The border to Lua. A campaign file is evaluated in a fresh child process: text chunks only, no
 * io, os, debug or load, a memory cap, a sticky instruction hook, RLIMIT_CPU, no clock, no
 * randomness, sorted pairs(). What comes back is copied into the plain structs of
 * experiments/model.h by one schema-driven reader that names file, line, field, what was expected
 * and the nearest right name.
 *
 * Two phases: script_load() gives the plan. Later script_eval() calls one function of the stored
 * sources again, with signals, in another fresh child. Sources are stored with the campaign, so
 * that a resumed campaign runs on the text that it began with.
 */
#ifndef FETTLE_SCRIPT_SCRIPT_H
#define FETTLE_SCRIPT_SCRIPT_H

#include <stddef.h>

#include "experiments/model.h"
#include "orchestrator/base/err.h"

/* One file that took part: the campaign first, then what it pulled in from the recipe path (knobs,
 * rules, workloads, lib), each by the name that the campaign used, and site.lua and user.lua if
 * there are such. */
struct script_source {
	char *name; /* "campaign", "knobs/num_workers", "rules/default", "site", "user", "mode" */
	char *path; /* for messages */
	char *text;
	char hash[33];
};
struct script_sources {
	struct script_source *v;
	size_t n;
	char hash[33]; /* over all of them, in order */
};
void script_sources_free(struct script_sources *s);

/* Where recipes are looked for. */
struct script_path {
	const char *const *dirs;   /* NULL-terminated, first hit wins: recipe path of the site, then
				      the shipped recipes */
	const char *site;          /* path of site.lua, or NULL */
	const char *user;          /* path of user.lua, or NULL */
	const char *const *probes; /* names of the probes, NULL-terminated; NULL: metrics.probe is
				      not checked */
	const char *mode;          /* of campaigns for which neither file nor site says one; NULL:
				      standard. Stored like a source */
};

/* Read the campaign file and whatever it uses, run it, and give the plan. Nothing is written
 * anywhere. ERR_RECIPE with one paragraph on any fault of the recipe. *out_sources holds what to
 * store. */
int script_load(const char *file, const struct script_path *path, struct recipe **out,
		struct script_sources *out_sources, struct err *e);

/* The same with a campaign's text in place of a file; `name` stands for it in messages, and a
 * relative workdir is taken from "/". */
int script_load_text(const char *name, const char *text, const struct script_path *path,
		     struct recipe **out, struct script_sources *out_sources, struct err *e);

/* The same from stored sources (no file is read). The plan is a pure function of the sources. */
int script_reload(const struct script_sources *s, struct recipe **out, struct err *e);

/* Where a value of the plan comes from. */
struct origin {
	char *path;         /* of the field: "resources.partition" */
	struct json *value; /* as its file says it; null: a function. No table with names in it */
	const char *from;   /* "campaign", "workload", "user" or "site"; static */
	struct place at;
};
struct origins {
	struct origin *v; /* the site's limits last */
	size_t n, cap;
};
void origins_done(struct origins *x);
/* What a campaign comes to: every value that it, its workload file, user.lua or site.lua says, and
 * who says it; then the site's caps and what it forbids. What nobody says has its default, or the
 * site's cap. Faults as script_load(). */
int script_origins(const char *file, const struct script_path *path, struct origins *out,
		   struct err *e);

/* Does the command exist? command[0] is looked up in PATH of workload.env (else in `env_path`, the
 * captured one; NULL: ours), relative to workdir if it holds a slash. ERR_RECIPE "command not
 * found". Only meaningful where trials run on this machine. */
int script_check_command(const struct recipe *r, const char *env_path, struct err *e);

/* What is allowed but looks wrong, a sentence each: a knob that needs another one, no target, ...
 */
void script_warnings(const struct recipe *r, struct strv *out);

/* The whole plan as canonical text, one "path = value" a line: equal texts are equal plans. */
void script_plan_dump(const struct recipe *r, struct buf *out);

/* Signals handed to rules and knobs: metric or signal name -> number. Besides the names of
 * metrics.def (mean of the baseline's window): ncpu (CPUs that a trial may use), ranks_per_node,
 * nodes, gpus_per_node. What is absent is nil in Lua, never 0; a name that no signal has is an
 * error. */
struct signal {
	const char *name;
	double value;
};
struct script_signals {
	const struct signal *v;
	size_t n;
};

/* What `expect` of a knob says about one candidate value. */
struct expectation {
	bool worth_trying;
	double gain, ceiling; /* relative, e.g. 0.136; NaN: unknown */
	enum bottleneck bottleneck;
	char *why; /* one sentence with the evidence; heap */
};
void expectation_done(struct expectation *x);

/* knob.expect(value, signals), or the default rule for knobs without one (worth trying, gain
 * unknown). `current` is the incumbent's value of the knob, or NULL. */
int script_expect(const struct script_sources *s, const struct knob *k, const char *value,
		  const char *current, const struct script_signals *signals,
		  struct expectation *out, struct err *e);

/* knob.lint(value, signals): *reason is why the value is left out (heap), or NULL. */
int script_lint(const struct script_sources *s, const struct knob *k, const char *value,
		const struct script_signals *signals, char **reason, struct err *e);

/* What the rules say about where the time goes (recipes/rules/). */
struct finding {
	enum bottleneck bottleneck;
	double share;   /* of the step, 0..1: ceiling share / (1 - share); NaN unknown */
	char *evidence; /* one sentence with the figures */
	char *rule;     /* its name */
	char *under;    /* the rule whose finding it splits; NULL: a finding of its own */
	double limit;   /* above which its rule speaks, NaN: it has none; and who says so */
	char *source;
	struct strv tries; /* knobs that may help, the first to try first */
	int seq;           /* private */
};

/* A question that nobody measured the signals for. */
struct open_branch {
	char *rule, *under; /* as above */
	char *asks;
	char *missing; /* signals: "a, b or c" */
	char *run;     /* what to run to get them; NULL: the rule does not say */
};

struct diagnosis {
	struct finding *found; /* the largest share first; what splits one stands behind it */
	size_t n_found;
	struct open_branch *open; /* in the order of the rules */
	size_t n_open;
};
void diagnosis_done(struct diagnosis *d);
/* thresholds: limits of rules by their names, in place of their own; may be NULL. */
int script_diagnose(const struct script_sources *s, const struct script_signals *signals,
		    const struct kvs *thresholds, struct diagnosis *out, struct err *e);
/* The rules on the path, for script_diagnose() without a campaign. */
int script_rules(const struct script_path *path, struct script_sources *out, struct err *e);
/* Every rule on made-up signals (none, all 0, all high): one that reads a signal which does not
 * exist, fails, loops or returns no finding is an ERR_RECIPE before anything runs. */
int script_check_rules(const struct script_sources *s, const struct kvs *thresholds, struct err *e);

/* The catalogue: every knob file on the path. knobs is an array of n (free each with knob_done,
 * then the array). */
int script_catalogue(const struct script_path *path, struct knob **out, size_t *n, struct err *e);
#endif
