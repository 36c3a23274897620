/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/ab.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/forecast.h"
#include "orchestrator/cmd/envfile.h"
#include "orchestrator/method/environment.h"
#include "orchestrator/report/text.h"

extern const struct cmd cmd_ab;

enum {
	OPT_FIELD = 512, /* and the number of the ab_field */
	OPT_ENV = 1024,
	OPT_BASE_ENV,
	OPT_UNSET,
	OPT_BASELINE,
	OPT_CANDIDATE,
	OPT_GUARD,
	OPT_LIMIT,
	OPT_SECRET,
	OPT_WORKDIR,
	OPT_METRICS_FILE,
	OPT_PRINT,
};
#define FIELD(f) (OPT_FIELD + (int)(f))

struct args {
	struct ab ab;
	struct drive_options drive;
	struct kvs env;      /* --env, --unset: on top of the candidate's file */
	struct kvs base_env; /* --base-env: on top of the baseline's file */
	const char *baseline, *candidate;
	bool print;
};

static const struct argp_option options[] = {
	{"env", OPT_ENV, "NAME=VALUE", 0, "B has this variable; may be given again", 1},
	{"base-env", OPT_BASE_ENV, "NAME=VALUE", 0,
	 "A has this variable, and B without --candidate; may be given again", 1},
	{"unset", OPT_UNSET, "NAME", 0, "B lacks this variable", 1},
	{"baseline", OPT_BASELINE, "FILE", 0, "variables of A, lines NAME=VALUE", 1},
	{"candidate", OPT_CANDIDATE, "FILE", 0, "variables of B, lines NAME=VALUE", 1},
	{"class", FIELD(AB_CLASS), "CLASS", 0,
	 "what B changes: neutral (results are bit-equal, the default), numerics or optimisation",
	 1},
	{"metric", FIELD(AB_METRIC), "NAME", 0, "what is compared (default: trial_wall_s)", 2},
	{"stat", FIELD(AB_STAT), "STAT", 0, "mean, median, p95, p99, min, max, last or value", 2},
	{"better", FIELD(AB_BETTER), "WAY", 0, "up or down, for a metric of your own", 2},
	{"probe", FIELD(AB_PROBE), "NAME", 0, "the probe that reads the output", 2},
	{"pattern", FIELD(AB_PATTERN), "RE", 0,
	 "PCRE2 pattern that reads the output: its groups are metrics", 2},
	{"metrics-file", OPT_METRICS_FILE, NULL, 0,
	 "the workload writes lines of JSON to $FETTLE_METRICS", 2},
	{"steps", FIELD(AB_STEPS), "N", 0, "measured steps; then the trial is ended", 2},
	{"warmup-steps", FIELD(AB_WARMUP_STEPS), "N", 0, "steps before these", 2},
	{"step-pattern", FIELD(AB_STEP_PATTERN), "RE", 0, "matches once a step in the output", 2},
	{"guard", OPT_GUARD, "METRIC=PERCENT", 0, "must not become so much worse", 2},
	{"limit", OPT_LIMIT, "METRIC>=VALUE", 0, "an absolute limit, >= or <=", 2},
	{"mode", FIELD(AB_MODE), "MODE", 0, "quick, standard (the default), long or strict", 3},
	{"min-effect", FIELD(AB_MIN_EFFECT), "PERCENT", 0, "smallest useful gain (default 1)", 3},
	{"alpha", FIELD(AB_ALPHA), "P", 0, "chance of a false win (default 0.05, strict 0.01)", 3},
	{"repeats", FIELD(AB_REPEATS), "N", 0, "runs of A and of B in a block (default 1)", 3},
	{"warmup-trials", FIELD(AB_WARMUP_TRIALS), "N", 0,
	 "runs at the start of an allocation that are not counted (default 1)", 3},
	{"seed", FIELD(AB_SEED), "N", 0, "of the random order", 3},
	{"trial", FIELD(AB_TRIAL_S), "SECONDS", 0, "a run that takes longer failed (600)", 3},
	{"minutes", FIELD(AB_MINUTES), "N", 0, "stop then; `fettle resume` goes on", 3},
	{"node-hours", FIELD(AB_NODE_HOURS), "N", 0, "stop then", 3},
	{"nodes", FIELD(AB_NODES), "N", 0, "nodes of a run", 4},
	{"tasks-per-node", FIELD(AB_TASKS_PER_NODE), "N", 0, "ranks on each node", 4},
	{"cpus-per-task", FIELD(AB_CPUS_PER_TASK), "N", 0, "CPUs of a rank", 4},
	{"gpus-per-node", FIELD(AB_GPUS_PER_NODE), "N", 0, "GPUs on each node", 4},
	{"mem-gib", FIELD(AB_MEM_GIB), "N", 0, "memory on each node", 4},
	{"time", FIELD(AB_TIME_LIMIT), "MINUTES", 0, "limit of a whole allocation", 4},
	{"partition", FIELD(AB_PARTITION), "NAME", 0, "Slurm partition", 4},
	{"account", FIELD(AB_ACCOUNT), "NAME", 0, "Slurm account", 4},
	{"qos", FIELD(AB_QOS), "NAME", 0, "Slurm quality of service", 4},
	{"reservation", FIELD(AB_RESERVATION), "NAME", 0, "Slurm reservation", 4},
	{"constraint", FIELD(AB_FEATURES), "LIST", 0, "node features", 4},
	{"nodelist", FIELD(AB_NODELIST), "LIST", 0, "nodes that must be used", 4},
	{"exclude", FIELD(AB_EXCLUDE), "LIST", 0, "nodes that must not be used", 4},
	{"launcher", FIELD(AB_LAUNCHER), "NAME", 0,
	 "exec (the command as it is), srun, mpirun or torchrun before it", 4},
	{"name", FIELD(AB_NAME), "NAME", 0, "of the campaign and its workload", 5},
	{"question", FIELD(AB_QUESTION), "TEXT", 0, "stands at the top of the report", 5},
	{"secret", OPT_SECRET, "NAME", 0, "a variable that is passed on and never stored", 5},
	{"workdir", OPT_WORKDIR, "DIR", 0, "where it runs (default: here)", 5},
	{"print", OPT_PRINT, NULL, 0, "print the recipe that this is, and run nothing", 5},
	{0},
};

/* -- options ---------------------------------------------------------------------------------- */

static void take_assignment(struct kvs *env, const char *option, const char *arg,
			    struct argp_state *state)
{
	struct err e = {0};

	if (envfile_assignment(arg, env, &e) < 0)
		argp_error(state, "--%s: %s", option, e.text);
}

static void take_workdir(struct args *a, const char *arg, struct argp_state *state)
{
	struct err e = {0};

	free(a->ab.workdir);
	a->ab.workdir = fs_absolute(arg, &e);
	if (!a->ab.workdir)
		argp_error(state, "--workdir: %s", e.text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	if (key >= OPT_FIELD && key < OPT_FIELD + AB_FIELDS) {
		a->ab.field[key - OPT_FIELD] = arg;
		return 0;
	}
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->drive;
		return 0;
	case OPT_ENV:
		take_assignment(&a->env, "env", arg, state);
		return 0;
	case OPT_BASE_ENV:
		take_assignment(&a->base_env, "base-env", arg, state);
		return 0;
	case OPT_UNSET:
		kvs_set(&a->env, arg, NULL);
		return 0;
	case OPT_BASELINE:
		a->baseline = arg;
		return 0;
	case OPT_CANDIDATE:
		a->candidate = arg;
		return 0;
	case OPT_GUARD:
		strv_add(&a->ab.guards, arg);
		return 0;
	case OPT_LIMIT:
		strv_add(&a->ab.limits, arg);
		return 0;
	case OPT_SECRET:
		strv_add(&a->ab.secrets, arg);
		return 0;
	case OPT_WORKDIR:
		take_workdir(a, arg, state);
		return 0;
	case OPT_METRICS_FILE:
		a->ab.metrics_file = true;
		return 0;
	case OPT_PRINT:
		a->print = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state,
			   "%s: the command stands after --, as in fettle ab --env A=1 -- "
			   "srun -N2 train.sh",
			   arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* -- from the command line to a recipe ----------------------------------------------------------
 */

/* argv after "--": A's command, and B's after "---". */
static int take_commands(struct args *a, char **argv, struct err *e)
{
	struct strv *to = &a->ab.a;

	for (; *argv; argv++) {
		if (!str_eq(*argv, "---"))
			strv_add(to, *argv);
		else if (to == &a->ab.a)
			to = &a->ab.b;
		else
			return err_set(e, ERR_USAGE, "two commands can be compared, not three");
	}
	if (a->ab.a.n == 0)
		return err_set(e, ERR_USAGE,
			       "which command? it stands after --, as in fettle ab "
			       "--env A=1 -- srun -N2 train.sh");
	if (to == &a->ab.b && a->ab.b.n == 0)
		return err_set(e, ERR_USAGE, "B's command is missing after ---");
	return 0;
}

static int captured(struct kvs *out, struct err *e)
{
	_cleanup_free_ char *text = environment_capture();
	_cleanup_(json_freep) struct json *j = NULL;
	int rc = json_parse("environment", text, strlen(text), &j, e);

	for (size_t i = 0; rc == 0 && i < json_len(j); i++)
		kvs_set(out, json_key(json_at(j, i)), json_text(json_at(j, i), ""));
	return rc;
}

/* Without a file of its own B has what A has. */
static int take_variables(struct args *a, struct kvs *difference, struct err *e)
{
	struct ab *ab = &a->ab;
	struct kvs env = {0};
	int rc = a->baseline ? envfile_read(a->baseline, &ab->base, e) : 0;

	for (size_t i = 0; i < a->base_env.n; i++)
		kvs_set(&ab->base, a->base_env.v[i].key, a->base_env.v[i].value);
	if (rc == 0 && a->candidate)
		rc = envfile_read(a->candidate, &ab->candidate, e);
	else if (rc == 0)
		kvs_copy(&ab->candidate, &ab->base);
	for (size_t i = 0; rc == 0 && i < a->env.n; i++)
		kvs_set(&ab->candidate, a->env.v[i].key, a->env.v[i].value);
	for (size_t i = 0; rc == 0 && i < ab->base.n; i++)
		if (!ab->base.v[i].value)
			rc = err_set(e, ERR_USAGE,
				     "%s: a baseline takes no variable out: start fettle without "
				     "%s, or use --env for B",
				     a->baseline, ab->base.v[i].key);
	if (rc == 0 && (rc = captured(&env, e)) == 0)
		ab_difference(&ab->base, &ab->candidate, &env, difference);
	kvs_free(&env);
	if (rc == 0 && difference->n == 0 && ab->b.n == 0)
		rc = err_set(e, ERR_USAGE,
			     "A and B are the same%s: --env NAME=VALUE, --candidate "
			     "FILE or a second command after --- says what differs",
			     ab->candidate.n ? ", A has these variables already" : "");
	return rc;
}

static int write_recipe(struct args *a, struct buf *out, struct err *e)
{
	struct kvs difference = {0};
	int rc = take_variables(a, &difference, e);

	if (rc == 0 && !a->ab.workdir && !(a->ab.workdir = fs_absolute(".", e)))
		rc = -e->code;
	if (rc == 0)
		rc = ab_recipe(&a->ab, &difference, out, e);
	kvs_free(&difference);
	return rc;
}

static int create(struct args *a, const char *text, struct workspace **w, int64_t *id,
		  struct err *e)
{
	const char *scheduler = a->drive.scheduler ? a->drive.scheduler : "local";
	struct script_sources sources = {0};
	struct recipe *r = NULL;
	int rc = ab_load(text, scheduler, &r, &sources, e);

	if (rc < 0)
		return rc;
	if ((rc = forecast_reach(scheduler, r, e)) == 0 &&
	    (rc = workspace_open(workspace_default(a->drive.workspace), DB_CREATE, &clock_system, w,
				 e)) == 0)
		rc = campaign_create(*w, r, &sources, AB_RECIPE_NAME, scheduler, id, e);
	if (rc == 0 && !a->drive.json)
		printf("campaign %lld: %s (%s), workspace %s\n", (long long)*id, r->name, scheduler,
		       (*w)->root);
	recipe_free(r);
	script_sources_free(&sources);
	return rc;
}

static int run_args(struct args *a, char **command)
{
	struct workspace *w = NULL;
	struct buf text = {0};
	struct err e = {0};
	int64_t id = 0;
	int status = 0;

	if (take_commands(a, command, &e) < 0 || write_recipe(a, &text, &e) < 0) {
		status = cmd_fail(&cmd_ab, &e);
	} else if (a->print) {
		fputs(text.data, stdout);
	} else if (create(a, text.data, &w, &id, &e) < 0) {
		status = cmd_fail(&cmd_ab, &e);
	} else {
		status = drive_campaign(&cmd_ab, w, id, &a->drive);
	}
	workspace_close(w);
	buf_free(&text);
	return status;
}

static void args_done(struct args *a)
{
	kvs_free(&a->ab.base);
	kvs_free(&a->ab.candidate);
	kvs_free(&a->env);
	kvs_free(&a->base_env);
	strv_free(&a->ab.a);
	strv_free(&a->ab.b);
	strv_free(&a->ab.guards);
	strv_free(&a->ab.limits);
	strv_free(&a->ab.secrets);
	free(a->ab.workdir);
	free((char *)a->drive.fake_spec);
}

static int run(int argc, char **argv)
{
	static const struct argp_child children[] = {{&drive_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "-- COMMAND... [--- COMMAND...]",
		.doc = "Compare two settings of a command, or two commands: one verdict.\v"
		       "A is the command as it is, B what the options or the command after --- "
		       "say. Both run in blocks on the same nodes, in balanced random order, until "
		       "the question is decided; it is stored like any campaign, and `fettle "
		       "resume` goes on with it. Exit status: 0 accepted, equivalent or "
		       "inconclusive; 1 rejected; 3 stopped before the verdict; 4 invalid.",
		.children = children};
	struct args a = {0};
	int options_end = 1, status;

	/* What stands after the first "--" is the workload's, options and all. */
	while (options_end < argc && !str_eq(argv[options_end], "--"))
		options_end++;
	cmd_parse(&argp, options_end, argv, &a);
	status = run_args(&a, options_end < argc ? argv + options_end + 1 : argv + argc);
	args_done(&a);
	return status;
}

const struct cmd cmd_ab = {.name = "ab", .summary = "two settings, one verdict", .run = run};
