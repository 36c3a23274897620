/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "experiments/decide.h"
#include "experiments/design.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"

extern const struct cmd cmd_plan;

/* Noise assumed where nobody has measured any: a middling cluster (statistics: runs within a job 1
 * to 3 %). */
#define NOISE_ASSUMED 0.02

struct args {
	const char *recipe;
	double noise, gain, trial_s;
	bool json, dump;
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
		a->noise = percent(arg, "noise", state);
		return 0;
	case 'g':
		a->gain = percent(arg, "gain", state);
		return 0;
	case 't':
		if (!str_to_double(arg, &a->trial_s) || a->trial_s <= 0)
			argp_error(state, "--trial wants seconds above 0, got %s", arg);
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case 'd':
		a->dump = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->recipe)
			argp_error(state, "one recipe at a time, got %s too", arg);
		a->recipe = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->recipe)
			argp_error(state, "which recipe?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* What would run, at most. */
struct outline {
	size_t candidates, aa_blocks, aa_runs, screen_runs, confirm_runs, final_runs, soak_runs,
		warm_runs, runs;
	struct design_answer answer;
	double noise, trial_s, node_hours;
};

static size_t count_candidates(const struct recipe *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_knobs; i++)
		n += r->knobs[i].values.n;
	return n;
}

static void make_outline(const struct recipe *r, const struct args *a, struct outline *o)
{
	struct design_question q = {.mode = r->mode,
				    .alpha = r->alpha,
				    .stages = (size_t)r->rounds,
				    .candidates = count_candidates(r),
				    .repeats = (size_t)r->repeats,
				    .noise = a->noise > 0 ? a->noise : NOISE_ASSUMED,
				    .gain_sought = a->gain > 0 ? a->gain : r->min_effect};
	size_t blocks, finals = r->final_blocks > 0 ? (size_t)r->final_blocks
						    : design_final_blocks(r->mode);

	o->candidates = q.candidates;
	o->noise = q.noise;
	o->trial_s = a->trial_s;
	o->answer = design_plan(&q);
	o->aa_blocks = r->aa_blocks > 0 ? (size_t)r->aa_blocks : design_aa_blocks(r->mode);
	o->aa_runs = 2 * o->aa_blocks * q.repeats;
	o->screen_runs = design_screen_runs(r->mode, q.candidates) * q.repeats;
	o->confirm_runs = 2 * decide_max_blocks(r->mode) * q.repeats * q.stages;
	o->final_runs = 2 * finals * q.repeats;
	o->soak_runs = (size_t)r->soak_trials;
	blocks = o->aa_blocks + design_screen_blocks(r->mode, q.candidates) +
		 decide_max_blocks(r->mode) * q.stages + finals + (r->soak_trials > 0);
	o->warm_runs = blocks * (size_t)r->warmup_trials;
	o->runs = o->aa_runs + o->screen_runs + o->confirm_runs + o->final_runs + o->soak_runs +
		  o->warm_runs;
	o->node_hours = a->trial_s > 0
				? (double)o->runs * a->trial_s *
					  (r->resources.nodes > 0 ? r->resources.nodes : 1) / 3600
				: NAN;
}

static void print_text(const struct recipe *r, const struct args *a, const struct outline *o)
{
	printf("campaign %s, mode %s, alpha %.3g over at most %d confirm stage%s (first share "
	       "%.4g, p* %.4g)\n",
	       r->name, run_mode_name(r->mode), r->alpha, r->rounds, r->rounds == 1 ? "" : "s",
	       o->answer.share, o->answer.p_star);
	printf("  baseline    %3zu runs  (%zu A/A blocks)\n", o->aa_runs, o->aa_blocks);
	printf("  screen      %3zu runs  (%zu candidates, one knob each)\n", o->screen_runs,
	       o->candidates);
	printf("  validation  %3zu runs at most\n", o->confirm_runs);
	printf("  fixing      %3zu runs, soak %zu\n", o->final_runs, o->soak_runs);
	printf("  warm-up     %3zu runs, never counted\n", o->warm_runs);
	printf("  together    %3zu runs at most", o->runs);
	if (isfinite(o->node_hours))
		printf(", %.2f node-hours at %.0f s a run", o->node_hours, o->trial_s);
	printf("\nnoise of a run within a block: %.2g %% (%s)\n", 100 * o->noise,
	       a->noise > 0 ? "given"
			    : "assumed: nothing was measured yet; --noise says otherwise");
	printf("smallest gain that a confirm stage finds with 80 %% power: %.2g %%\n",
	       100 * o->answer.mde);
	if (!o->answer.answerable && o->answer.repeats_needed)
		printf("a gain of %.2g %% is not detectable like this; repeats = %zu would do\n",
		       100 * (a->gain > 0 ? a->gain : r->min_effect), o->answer.repeats_needed);
	else if (!o->answer.answerable)
		printf("a gain of %.2g %% is not detectable at any number of repeats: lengthen the "
		       "window or lower the noise\n",
		       100 * (a->gain > 0 ? a->gain : r->min_effect));
}

static void print_json(const struct recipe *r, const struct outline *o)
{
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
	json_set_i64(j, "runs_max", (int64_t)o->runs);
	json_set_number(j, "node_hours_max", o->node_hours);
	json_set_number(j, "noise", o->noise);
	json_set_number(j, "smallest_detectable_gain", o->answer.mde);
	json_set_bool(j, "answerable", o->answer.answerable);
	text = json_print(j, true);
	printf("%s\n", text);
}

static int run(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"noise", 'n', "PERCENT", 0, "noise of a run within a block (log sd)", 0},
		{"gain", 'g', "PERCENT", 0,
		 "gain that must be found (default: the recipe's min_effect)", 0},
		{"trial", 't', "SECONDS", 0, "time of a run, for node-hours", 0},
		{"json", 'j', NULL, 0, "JSON instead of text", 0},
		{"dump", 'd', NULL, 0, "the whole plan as it was read, field by field", 0},
		{0}};
	static const struct argp argp = {.options = opts,
					 .parser = parse,
					 .args_doc = "RECIPE",
					 .doc = "Say what would run, what it costs and what effect "
						"it can show; run nothing."};
	struct args a = {0};
	struct script_sources s = {0};
	struct recipe *r = NULL;
	struct outline o = {0};
	struct err e = {0};

	argp_parse(&argp, argc, argv, 0, NULL, &a);
	if (drive_load(a.recipe, NULL, &r, &s, &e) < 0)
		return cmd_fail(&cmd_plan, &e);
	make_outline(r, &a, &o);
	if (a.dump) {
		struct buf b = {0};

		script_plan_dump(r, &b);
		fputs(b.data ? b.data : "", stdout);
		buf_free(&b);
	} else if (a.json) {
		print_json(r, &o);
	} else {
		print_text(r, &a, &o);
	}
	recipe_free(r);
	script_sources_free(&s);
	return 0;
}

const struct cmd cmd_plan = {.name = "plan",
			     .summary = "what would run, its cost, and what effect that can show",
			     .run = run};
