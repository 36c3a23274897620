/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/forecast.h"
#include "orchestrator/cmd/outline.h"
#include "orchestrator/method/campaign.h"

extern const struct cmd cmd_plan;

enum { OPT_ANYWAY = 512, OPT_OFFLINE, US_PER_S = 1000000 };

struct args {
	const char *recipe; /* or the campaign that is planned already */
	const char *scheduler;
	struct outline_given given;
	bool json, dump, anyway, offline;
};

static double percent(const char *arg, const char *name, struct argp_state *state)
{
	double v;

	if (!str_to_double(arg, &v) || v <= 0 || v >= 100)
		argp_error(state, "--%s wants a percentage between 0 and 100, got %s", name, arg);
	return v / 100;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'n':
		a->given.noise = percent(arg, "noise", state);
		return 0;
	case 'g':
		a->given.gain = percent(arg, "gain", state);
		return 0;
	case 't':
		if (!str_to_double(arg, &a->given.trial_s) || a->given.trial_s <= 0)
			argp_error(state, "--trial wants seconds above 0, got %s", arg);
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case 'd':
		a->dump = true;
		return 0;
	case 'w':
		a->given.workspace = arg;
		return 0;
	case OPT_ANYWAY:
		a->anyway = true;
		return 0;
	case OPT_OFFLINE:
		a->offline = true;
		return 0;
	case 's':
		a->scheduler = arg;
		if (!sched_find(arg))
			argp_error(state, "no scheduler is called %s: " SCHED_NAMES, arg);
		return 0;
	case ARGP_KEY_ARG:
		if (a->recipe)
			argp_error(state, "one recipe or campaign at a time, got %s too", arg);
		a->recipe = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->recipe)
			argp_error(state, "which recipe, or campaign of the workspace?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Where a figure comes from. */
static char *origin(enum outline_source from, const struct noise *n, const char *assumed)
{
	switch (from) {
	case OUTLINE_GIVEN:
		return xstrdup("given");
	case OUTLINE_MEASURED:
		return xasprintf("measured by campaign %lld of this workspace",
				 (long long)n->campaign);
	case OUTLINE_ASSUMED:
		break;
	}
	return xstrdup(assumed);
}

static char *noise_origin(const struct outline *o)
{
	_cleanup_free_ char *from = origin(
		o->noise_from, &o->measured,
		"assumed: nothing was measured yet; --noise says otherwise");
	_cleanup_free_ char *stages = NULL;

	if (o->noise_from != OUTLINE_MEASURED)
		return TAKE(from);
	stages = noise_text(&o->measured);
	return xasprintf("%s: residuals of %s", from, stages);
}

static void print_steps(const struct outline *o)
{
	if (o->night_runs) {
		printf("  each night  %3zu runs\n", o->night_runs);
		return;
	}
	printf("  baseline    %3zu runs  (%zu A/A blocks)\n", o->aa_runs, o->aa_blocks);
	printf("  screen      %3zu runs  (%zu candidates, one knob each)\n", o->screen_runs,
	       o->candidates);
	printf("  validation  %3zu runs at most\n", o->confirm_runs);
	printf("  fixing      %3zu runs, soak %zu\n", o->final_runs, o->soak_runs);
}

static void print_runs(const struct outline *o)
{
	if (o->ladder_runs)
		printf("  ladder      %3zu runs, if every rung holds\n", o->ladder_runs);
	else
		print_steps(o);
	printf("  warm-up     %3zu runs, never counted\n", o->warm_runs);
	if (o->profile_runs)
		printf("  profile     %3zu runs at most, never timed (profile = false: none)\n",
		       o->profile_runs);
	printf("  together    %3zu runs at most", o->runs);
	if (isfinite(o->node_hours))
		printf(", %.2f node-hours", o->node_hours);
	if (isfinite(o->gpu_hours))
		printf(", %.2f GPU-hours", o->gpu_hours);
	if (isfinite(o->node_hours)) {
		_cleanup_free_ char *from = origin(o->trial_from, &o->measured, "");

		printf(" at %.3g s a run (%s)", o->trial_s, from);
	}
	printf("\n");
}

static void print_budget(const struct outline *o)
{
	if (!isfinite(o->budget_runs) || !o->kept_runs)
		return;
	printf("  budget      %3.0f runs; once a change is accepted %zu of them are kept for its "
	       "final stage\n",
	       floor(o->budget_runs), o->kept_runs);
	if (o->budget_runs < (double)o->shortest_runs)
		printf("the budget ends before a fix could be proved: that takes %zu runs or more\n",
		       o->shortest_runs);
}

static void print_canary(const struct recipe *r)
{
	_cleanup_free_ char *differs = bundle_text(&r->canary.reference);

	printf("campaign %s, mode %s, a canary: %d block%s a %s, ", r->name, run_mode_name(r->mode),
	       r->canary.blocks, r->canary.blocks == 1 ? "" : "s", cadence_name(r->schedule.every));
	if (r->canary.alone)
		printf("no reference beside it\n");
	else if (*differs)
		printf("reference with %s\n", differs);
	else
		printf("reference with the environment as it was\n");
}

static void print_text(const struct recipe *r, const struct outline *o)
{
	_cleanup_free_ char *from = noise_origin(o);

	if (r->canary.blocks)
		print_canary(r);
	else if (r->ladder.n)
		printf("campaign %s, mode %s, a ladder of %zu rungs\n", r->name,
		       run_mode_name(r->mode), r->ladder.n);
	else
		printf("campaign %s, mode %s, alpha %.3g over at most %d confirm stage%s (first share "
		       "%.4g, p* %.4g; an accepted one returns its share)\n",
		       r->name, run_mode_name(r->mode), r->alpha, r->rounds,
		       r->rounds == 1 ? "" : "s", o->answer.share, o->answer.p_star);
	print_runs(o);
	if (r->ladder.n || r->canary.blocks)
		return;
	print_budget(o);
	printf("noise of a run within a block: %.2g %% (%s)\n", 100 * o->noise, from);
	if (isfinite(o->mde))
		printf("smallest gain that a confirm stage finds with 80 %% power: %.2g %%\n",
		       100 * o->mde);
	else
		printf("the budget ends before the first look of a confirm stage\n");
	if (o->mde <= o->gain)
		return;
	if (o->answer.repeats_needed)
		printf("a gain of %.2g %% is not detectable like this; repeats = %zu would do\n",
		       100 * o->gain, o->answer.repeats_needed);
	else
		printf("a gain of %.2g %% is not detectable at any number of repeats: lengthen the "
		       "window or lower the noise\n",
		       100 * o->gain);
}

static struct json *noise_json(const struct noise *n)
{
	struct json *o = json_object();

	json_set_i64(o, "campaign", n->campaign);
	json_set_i64(o, "df_aa", (int64_t)n->df_aa);
	json_set_i64(o, "df_screen", (int64_t)n->df_screen);
	json_set_i64(o, "df_validation", (int64_t)n->df_confirm);
	return o;
}

/* -- the cluster's word ----------------------------------------------------------------------- */

/* What a dry run of the first job gave. */
struct cluster {
	bool asked, answered, refused;
	struct sched_forecast forecast;
	struct err e; /* why there is no answer, or what is refused */
};

static void ask_cluster(const struct args *a, const struct recipe *r, struct cluster *c)
{
	const char *scheduler = a->scheduler ? a->scheduler : r->scheduler;

	c->asked = !a->offline && !a->dump && forecast_wanted(scheduler);
	c->answered = c->asked && forecast_ask(scheduler, r, &c->forecast, &c->refused, &c->e) == 0;
}

static void print_cluster(const struct cluster *c)
{
	int64_t in_s = (c->forecast.start_us - clock_utc_us(&clock_system)) / US_PER_S;
	char when[64] = "at a time that it does not know yet";

	if (!c->asked || c->refused)
		return;
	if (!c->answered) {
		printf("the cluster could not be asked: %s\n", c->e.text);
		return;
	}
	if (c->forecast.start_us > 0)
		clock_iso(c->forecast.start_us, when, sizeof when);
	printf("the cluster would take the first job, and start it %s%s", when,
	       in_s <= 0 ? " (now)" : "");
	if (in_s > 0)
		printf(" (in %lld min)", (long long)(in_s + 59) / 60);
	if (*c->forecast.nodes)
		printf(" on %s", c->forecast.nodes);
	if (*c->forecast.partition)
		printf(" of partition %s", c->forecast.partition);
	printf("\n");
}

static void cluster_json(const struct cluster *c, struct json *j)
{
	struct json *o = json_object();

	json_set_bool(o, "answered", c->answered);
	json_set_bool(o, "refused", c->refused);
	if (c->answered) {
		json_set_i64(o, "start_us", c->forecast.start_us);
		json_set_text(o, "nodes", c->forecast.nodes);
		json_set_text(o, "partition", c->forecast.partition);
	} else {
		json_set_text(o, "why", c->e.text);
	}
	json_set(j, "cluster", o);
}

static void print_json(const struct recipe *r, const struct outline *o, const struct cluster *c)
{
	static const char *const sources[] = {"assumed", "given", "measured"};
	_cleanup_(json_freep) struct json *j = json_object();
	_cleanup_free_ char *text = NULL;

	json_set_text(j, "format", "fettle.plan/1");
	json_set_text(j, "campaign", r->name);
	json_set_text(j, "mode", run_mode_name(r->mode));
	json_set_number(j, "alpha", r->alpha);
	json_set_i64(j, "confirm_stages_max", r->rounds);
	json_set_number(j, "alpha_first_share", o->answer.share);
	json_set_number(j, "p_star", o->answer.p_star);
	json_set_i64(j, "candidates", (int64_t)o->candidates);
	json_set_i64(j, "runs_baseline", (int64_t)o->aa_runs);
	json_set_i64(j, "runs_screen", (int64_t)o->screen_runs);
	json_set_i64(j, "runs_validation_max", (int64_t)o->confirm_runs);
	json_set_i64(j, "runs_final", (int64_t)o->final_runs);
	json_set_i64(j, "runs_soak", (int64_t)o->soak_runs);
	json_set_i64(j, "runs_warmup", (int64_t)o->warm_runs);
	json_set_i64(j, "runs_profile_max", (int64_t)o->profile_runs);
	json_set_i64(j, "runs_a_night", (int64_t)o->night_runs);
	json_set_i64(j, "runs_max", (int64_t)o->runs);
	json_set_i64(j, "runs_kept_for_fix", (int64_t)o->kept_runs);
	json_set_i64(j, "runs_to_fix_min", (int64_t)o->shortest_runs);
	json_set_number(j, "node_hours_max", o->node_hours);
	json_set_number(j, "gpu_hours_max", o->gpu_hours);
	json_set_number(j, "noise", o->noise);
	json_set_text(j, "noise_from", sources[o->noise_from]);
	if (o->noise_from == OUTLINE_MEASURED)
		json_set(j, "noise_measured", noise_json(&o->measured));
	json_set_number(j, "gain_sought", o->gain);
	json_set_number(j, "smallest_detectable_gain", o->mde);
	json_set_bool(j, "answerable", o->mde <= o->gain);
	if (c->asked)
		cluster_json(c, j);
	text = json_print(j, true);
	printf("%s\n", text);
}

static int refuse(const struct recipe *r, const struct script_sources *s, const struct outline *o)
{
	_cleanup_free_ char *why = outline_refusal(r, o);
	struct err e = {0};

	if (drive_lint(r, s, &e) < 0)
		return cmd_fail(&cmd_plan, &e);
	if (!why)
		return 0;
	err_set(&e, ERR_USAGE, "%s; --anyway insists", why);
	return cmd_fail(&cmd_plan, &e);
}

/* A recipe of that name wins; else a campaign of the workspace, on its stored text. */
static int load_plan(struct args *a, struct recipe **r, struct script_sources *s, struct err *e)
{
	const char *dir = workspace_default(a->given.workspace);
	_cleanup_free_ char *db = fs_join(dir, "fettle.db");
	struct workspace *w = NULL;
	struct err why = {0};
	int rc;

	if (fs_exists(a->recipe) || !fs_exists(db))
		return drive_load(a->recipe, a->scheduler, r, s, e);
	if ((rc = workspace_open(dir, DB_READ, &clock_system, &w, e)) < 0)
		return rc;
	rc = drive_find(w, a->recipe, &a->given.campaign, &why);
	if (rc == -ERR_NOT_FOUND)
		rc = err_set(e, ERR_USAGE, "%s is neither a recipe nor a campaign: %s", a->recipe,
			     why.text);
	else if (rc < 0)
		*e = why;
	if (rc == 0 && (rc = campaign_sources(w, a->given.campaign, s, e)) == 0)
		rc = script_reload(s, r, e);
	workspace_close(w);
	return rc;
}

/* How far a campaign is that was planned before. */
static int print_so_far(const struct args *a, struct err *e)
{
	struct campaign_row row;
	struct workspace *w = NULL;
	struct cost_row cost;
	int rc;

	if (!a->given.campaign)
		return 0;
	rc = workspace_open(workspace_default(a->given.workspace), DB_READ, &clock_system, &w, e);
	if (rc == 0 && (rc = query_cost(w->db, a->given.campaign, &cost, e)) == 0 &&
	    (rc = query_campaign_get(w->db, a->given.campaign, &row, e)) == 0) {
		printf("campaign %lld is %s: %lld of these runs are done\n",
		       (long long)a->given.campaign, campaign_state_name(row.state),
		       (long long)cost.trials_all);
		campaign_row_done(&row);
	}
	workspace_close(w);
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"noise", 'n', "PERCENT", 0, "noise of a run within a block (log sd)", 0},
		{"gain", 'g', "PERCENT", 0,
		 "gain that must be found (default: the recipe's min_effect)", 0},
		{"trial", 't', "SECONDS", 0, "time of a run, for node-hours", 0},
		{"json", 'j', NULL, 0, "JSON instead of text", 0},
		{"scheduler", 's', "SCHEDULER", 0,
		 "slurm or slurm_cli: ask this cluster too (default: the recipe's)", 0},
		{"offline", OPT_OFFLINE, NULL, 0, "do not ask the cluster", 0},
		{"workspace", 'w', "DIR", 0, "where to look for noise that was measured", 0},
		{"anyway", OPT_ANYWAY, NULL, 0,
		 "exit 0 also for a campaign that cannot answer its question", 0},
		{"dump", 'd', NULL, 0, "the whole plan as it was read, field by field", 0},
		{0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "RECIPE|CAMPAIGN",
		.doc = "Say what would run, what it costs and what effect "
		       "it can show; run nothing. A campaign (number or "
		       "name) is planned again with what it measured. With "
		       "a campaign for Slurm the cluster is asked whether "
		       "it would take the first job, when and where (a dry "
		       "run)."};
	struct args a = {0};
	struct script_sources s = {0};
	struct recipe *r = NULL;
	struct outline o = {0};
	struct cluster c = {0};
	struct err e = {0};
	int status = 0;

	cmd_parse(&argp, argc, argv, &a);
	if (load_plan(&a, &r, &s, &e) < 0) {
		script_sources_free(&s);
		return cmd_fail(&cmd_plan, &e);
	}
	outline_make(r, &a.given, &o);
	ask_cluster(&a, r, &c);
	if (a.dump) {
		struct buf b = {0};

		script_plan_dump(r, &b);
		fputs(b.data ? b.data : "", stdout);
		buf_free(&b);
	} else if (a.json) {
		print_json(r, &o, &c);
	} else {
		print_text(r, &o);
		print_cluster(&c);
		if (print_so_far(&a, &e) < 0)
			status = cmd_fail(&cmd_plan, &e);
	}
	if (status == 0 && !a.dump && !a.anyway)
		status = refuse(r, &s, &o);
	if (c.refused)
		status = cmd_fail(&cmd_plan, &c.e);
	recipe_free(r);
	script_sources_free(&s);
	return status;
}

const struct cmd cmd_plan = {.name = "plan",
			     .summary = "what would run, its cost, and what effect that can show",
			     .run = run};
