/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/simulate.h"

extern const struct cmd cmd_simulate;

enum {
	CAMPAIGNS_DEFAULT = 1000,
	CAMPAIGNS_MAX = 10000000, /* a day's worth */
	TRUTH_MAX = 1 << 20,
};

struct args {
	const char *recipe, *truth;
	int64_t campaigns, seed;
	bool json;
};

static int64_t whole_number(const char *arg, const char *name, int64_t min, int64_t max,
			    struct argp_state *state)
{
	int64_t v;

	if (!str_to_i64(arg, &v) || v < min || v > max)
		argp_error(state, "--%s wants a whole number from %lld to %lld, got %s", name,
			   (long long)min, (long long)max, arg);
	return v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 't':
		a->truth = arg;
		return 0;
	case 'n':
		a->campaigns = whole_number(arg, "campaigns", 1, CAMPAIGNS_MAX, state);
		return 0;
	case 's':
		a->seed = whole_number(arg, "seed", 0, INT64_C(1) << 48, state);
		return 0;
	case 'j':
		a->json = true;
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

/* -- text ----------------------------------------------------------------------------------- */

static double share(double part, double whole)
{
	return whole > 0 ? part / whole : NAN;
}

static void print_estimates(const char *what, const struct simulated_estimates *x)
{
	if (x->n == 0) {
		printf("  %-34s none\n", what);
		return;
	}
	printf("  %-34s %6ld, bias %+.3f points, the interval held the truth in %.2f %%\n", what,
	       x->n, 100 * x->sum_error / (double)x->n,
	       100 * share((double)x->covered, (double)x->n));
}

static void print_candidates(const struct simulated *r)
{
	printf("\n  %-34s %9s %8s %8s\n", "candidate", "true gain", "tested", "won");
	for (size_t i = 0; i < r->n; i++) {
		const struct simulated_candidate *c = &r->candidates[i];
		_cleanup_free_ char *name = xasprintf("%s=%s", c->knob, c->value);

		printf("  %-34s %+8.2f%% %8ld %8ld%s\n", name, 100 * c->gain, c->tested, c->won,
		       c->harms ? "  harms: a guard must reject it" : "");
	}
}

static void print_text(const struct recipe *rec, const struct args *a, const struct simulated *r,
		       double cpu_s)
{
	double n = (double)r->campaigns;

	printf("%ld campaigns of %s against %s (mode %s, alpha %.3g, at most %d confirm stage%s, "
	       "seed %lld)\n",
	       r->campaigns, rec->name, a->truth ? a->truth : "a truth in which nothing helps",
	       run_mode_name(rec->mode), rec->alpha, rec->rounds, rec->rounds == 1 ? "" : "s",
	       (long long)a->seed);
	printf("  false wins   %6ld of %ld campaigns: %.2f %%\n", r->false_wins, r->campaigns,
	       100 * (double)r->false_wins / n);
	printf("  true wins    %6ld of %ld campaigns: %.2f %%\n", r->true_wins, r->campaigns,
	       100 * (double)r->true_wins / n);
	if (r->unfinished)
		printf("  stopped or failed %ld\n", r->unfinished);
	printf("  a campaign   %.1f timed runs (screen and confirm %.1f), %.1f with warm-ups, %.3f "
	       "node-hours, %.2f confirm stages\n",
	       r->runs / n, r->runs_search / n, r->runs_all / n, r->node_s / n / 3600,
	       (double)r->confirms / n);
	printf("  attempts     %.1f a campaign, of which %.2f void or lost and run again\n",
	       (double)r->attempts / n, (double)r->voids / n);
	print_estimates("final estimates (95 %)", &r->final);
	print_estimates("repeated 95 % intervals at the stop", &r->repeated);
	print_estimates("estimates of accepted confirms", &r->at_stop);
	print_candidates(r);
	printf("\n%.1f s of processor time: %.0f campaigns a minute; %.0f statements and %.0f commits "
	       "a campaign\n",
	       cpu_s, n / cpu_s * 60, (double)r->statements / n, (double)r->commits / n);
}

/* -- json ----------------------------------------------------------------------------------- */

static void put_estimates(struct json *to, const char *name, const struct simulated_estimates *x)
{
	struct json *o = json_object();

	json_set_i64(o, "n", x->n);
	json_set_number(o, "bias", share(x->sum_error, (double)x->n));
	json_set_number(o, "rms_error", sqrt(share(x->sum_error2, (double)x->n)));
	json_set_number(o, "coverage", share((double)x->covered, (double)x->n));
	json_set(to, name, o);
}

static struct json *candidates_json(const struct simulated *r)
{
	struct json *list = json_array();

	for (size_t i = 0; i < r->n; i++) {
		struct json *o = json_object();

		json_set_text(o, "knob", r->candidates[i].knob);
		json_set_text(o, "value", r->candidates[i].value);
		json_set_number(o, "true_gain", r->candidates[i].gain);
		json_set_bool(o, "harms", r->candidates[i].harms);
		json_set_i64(o, "tested", r->candidates[i].tested);
		json_set_i64(o, "won", r->candidates[i].won);
		json_add(list, o);
	}
	return list;
}

static void print_json(const struct recipe *rec, const struct args *a, const struct simulated *r,
		       double cpu_s)
{
	_cleanup_(json_freep) struct json *j = json_object();
	_cleanup_free_ char *text = NULL;
	double n = (double)r->campaigns;

	json_set_text(j, "format", "fettle.simulate/1");
	json_set_text(j, "campaign", rec->name);
	json_set_text(j, "mode", run_mode_name(rec->mode));
	json_set_number(j, "alpha", rec->alpha);
	json_set_i64(j, "confirm_stages_max", rec->rounds);
	json_set_i64(j, "seed", a->seed);
	json_set_i64(j, "campaigns", r->campaigns);
	json_set_i64(j, "unfinished", r->unfinished);
	json_set_i64(j, "false_wins", r->false_wins);
	json_set_i64(j, "true_wins", r->true_wins);
	json_set_number(j, "runs_mean", r->runs / n);
	json_set_number(j, "runs_search_mean", r->runs_search / n);
	json_set_number(j, "runs_with_warmup_mean", r->runs_all / n);
	json_set_number(j, "attempts_mean", (double)r->attempts / n);
	json_set_number(j, "attempts_void_mean", (double)r->voids / n);
	json_set_number(j, "node_hours_mean", r->node_s / n / 3600);
	json_set_number(j, "confirms_mean", (double)r->confirms / n);
	put_estimates(j, "final", &r->final);
	put_estimates(j, "repeated", &r->repeated);
	put_estimates(j, "accepted_at_stop", &r->at_stop);
	json_set(j, "candidates", candidates_json(r));
	json_set_number(j, "statements_mean", (double)r->statements / n);
	json_set_number(j, "commits_mean", (double)r->commits / n);
	json_set_number(j, "cpu_s", cpu_s);
	text = json_print(j, true);
	printf("%s\n", text);
}

/* -- running -------------------------------------------------------------------------------- */

static int read_truth(const struct args *a, char **out, struct err *e)
{
	struct buf b = {0};
	int rc = a->truth ? fs_read(a->truth, TRUTH_MAX, &b, e) : 0;

	*out = buf_take(&b);
	return rc;
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int simulate(const struct args *a, const struct recipe *r, const struct script_sources *s,
		    const char *truth, struct err *e)
{
	const struct simulation what = {.recipe = r,
					.sources = s,
					.path = a->recipe,
					.truth = truth,
					.seed = (uint64_t)a->seed,
					.campaigns = (long)a->campaigns};
	struct simulated found;
	double from = cpu_seconds();
	int rc = simulate_run(&what, &found, e);

	if (rc < 0)
		return rc;
	if (a->json)
		print_json(r, a, &found, cpu_seconds() - from);
	else
		print_text(r, a, &found, cpu_seconds() - from);
	simulated_done(&found);
	return 0;
}

static int run(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"truth", 't', "FILE", 0, "what is true, as JSON (default: nothing helps)", 0},
		{"campaigns", 'n', "N", 0, "how many (default 1000)", 0},
		{"seed", 's', "S", 0, "seed of all draws (default 1)", 0},
		{"json", 'j', NULL, 0, "JSON instead of text", 0},
		{0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "RECIPE",
		.doc = "Run whole campaigns of the recipe against a declared truth, in memory and "
		       "in virtual time: how often they claim what is not so, find what is, and "
		       "what they cost."};
	struct args a = {.campaigns = CAMPAIGNS_DEFAULT, .seed = 1};
	_cleanup_free_ char *truth = NULL;
	struct script_sources s = {0};
	struct recipe *r = NULL;
	struct err e = {0};
	int rc;

	cmd_parse(&argp, argc, argv, &a);
	if (read_truth(&a, &truth, &e) < 0 || drive_load(a.recipe, "fake", &r, &s, &e) < 0)
		return cmd_fail(&cmd_simulate, &e);
	/* Results must not depend on the shell they are made from. */
	clearenv();
	rc = simulate(&a, r, &s, truth, &e);
	recipe_free(r);
	script_sources_free(&s);
	if (e.code == ERR_PARSE) /* the truth is the user's own words */
		e.code = ERR_USAGE;
	return rc < 0 ? cmd_fail(&cmd_simulate, &e) : 0;
}

const struct cmd cmd_simulate = {
	.name = "simulate",
	.summary = "the engine against a declared truth: false wins, power, cost",
	.run = run};
