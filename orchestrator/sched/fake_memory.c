/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/sched/fake_memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

enum {
	NODE_CPUS = 8,
	NVML_HW_SLOWDOWN = 8, /* nvmlClocksEventReasonHwSlowdown */
};

static const char *const all_stats[] = {"mean", "median", "p95", "p99", "min", "max", "last", NULL};

/* A metric over the window: constant, or falling in a line from `first` to `last`. */
struct curve {
	double first, last;
	int64_t steps; /* in the window */
};

static double curve_stat(const struct curve *c, const char *stat)
{
	int64_t tail = c->steps / 10 > 1 ? c->steps / 10 : 1;
	double step = c->steps > 1 ? (c->first - c->last) / (double)(c->steps - 1) : 0;

	if (str_eq(stat, "mean") || str_eq(stat, "median"))
		return (c->first + c->last) / 2;
	if (str_eq(stat, "p95"))
		return c->last + 0.95 * (c->first - c->last);
	if (str_eq(stat, "p99"))
		return c->last + 0.99 * (c->first - c->last);
	if (str_eq(stat, "max"))
		return c->first;
	return str_eq(stat, "last") ? c->last + step * (double)(tail - 1) / 2 : c->last;
}

static void put(const struct fake_trial *t, struct trial_result *out, const char *metric,
		double first, double last)
{
	const struct json *wanted = json_get(t->run->truth->spec, "hand_over");
	const struct json *stats = json_get(wanted, metric);
	struct curve c = {first, last, t->steps - t->warmup};

	for (const struct json *j = json_first(stats); j; j = json_next(j))
		trial_result_metric(out, metric, json_text(j, "mean"), "",
				    curve_stat(&c, json_text(j, "mean")));
	for (const char *const *s = all_stats; !wanted && *s; s++)
		trial_result_metric(out, metric, *s, "", curve_stat(&c, *s));
}

/* The last word of metric_effects about it, else what all arms have. */
static double own_metric(const struct fake_trial *t, const char *name, double dflt)
{
	const struct json *effects = json_get(t->run->truth->spec, "metric_effects");
	double v = dflt;

	for (const struct json *j = json_first(effects); j; j = json_next(j))
		if (json_get(j, name) && fake_matches(t->arm, json_key(j)))
			v = json_number(json_get(j, name), v);
	return v;
}

static void put_metrics(const struct fake_trial *t, struct trial_result *out)
{
	const struct json *own = json_get(t->run->truth->spec, "metrics");
	double ms = own_metric(t, "step_time_ms", fake_trial_step_ms(t));
	double x = own_metric(t, "throughput_samples_per_s", t->throughput);

	put(t, out, "throughput_samples_per_s", x, x);
	put(t, out, "step_time_ms", ms, ms);
	put(t, out, "loss", fake_trial_loss(t, t->warmup + 1), fake_trial_loss(t, t->steps));
	for (const struct json *j = json_first(own); j; j = json_next(j)) {
		double v = own_metric(t, json_key(j), json_number(j, 0));

		put(t, out, json_key(j), v, v);
	}
	put(t, out, "trial_wall_s", (double)t->wall_us / 1e6, (double)t->wall_us / 1e6);
}

/* -- steps -----------------------------------------------------------------------------------
 */

static double *add_series(struct trial_steps *to, const char *metric, int64_t n)
{
	double *v = xcalloc((size_t)n + 1, sizeof *v);

	to->v = xgrow(to->v, to->n, &to->cap, sizeof *to->v);
	to->v[to->n++] = (struct step_series){.metric = metric, .v = v, .n = (size_t)n};
	return v;
}

/* What is the same in every step. */
static void add_constant(const struct fake_trial *t, const char *metric, double value,
			 struct trial_steps *to)
{
	double *v = add_series(to, metric, t->steps);

	for (int64_t i = 0; i < t->steps; i++)
		v[i] = value;
}

static void put_steps(const struct fake_trial *t, struct trial_steps *to)
{
	const struct json *own = json_get(t->run->truth->spec, "metrics");
	double x0 = own_metric(t, "throughput_samples_per_s", NAN),
	       ms0 = own_metric(t, "step_time_ms", NAN);
	double *x = add_series(to, "throughput_samples_per_s", t->steps),
	       *ms = add_series(to, "step_time_ms", t->steps),
	       *loss = add_series(to, "loss", t->steps);

	for (int64_t i = 0; i < t->steps; i++) {
		double f = exp(fake_step_noise(t->run->truth, &t->draw, i + 1, t->steps));

		x[i] = isnan(x0) ? t->throughput * f : x0;
		ms[i] = isnan(ms0) ? fake_trial_step_ms(t) / f : ms0;
		loss[i] = fake_trial_loss(t, i + 1);
	}
	for (const struct json *j = json_first(own); j; j = json_next(j))
		add_constant(t, json_key(j), own_metric(t, json_key(j), json_number(j, 0)), to);
}

/* A node of NODE_CPUS of which the trial uses half. */
static void put_node(const struct fake_trial *t, struct trial_steps *to, struct trial_result *out)
{
	const struct fake_truth *truth = t->run->truth;
	bool slowed = fake_is_throttled(truth, &t->draw);
	double others = fake_has_neighbour(truth, &t->draw) ? 50 : 1;

	if (truth->neighbour_p > 0) {
		to->ncpu = NODE_CPUS;
		trial_result_metric(out, "cpu_user_pct", "mean", "", 50 + others);
		trial_result_metric(out, "cpu_system_pct", "mean", "", 0);
		trial_result_metric(out, "tree_cpu_cores", "mean", "", NODE_CPUS / 2.0);
	}
	if (truth->throttle_p > 0)
		trial_result_metric(out, "clock_event_reasons", "any", "",
				    slowed ? NVML_HW_SLOWDOWN : 0);
}

/* What /proc of one rank shows, as ingest would name it. */
struct rank_view {
	struct trial_result *out;
	int rank;
};

static void see_env(void *ctx, const char *key, const char *value, bool plain)
{
	const struct rank_view *v = ctx;
	char name[300];

	snprintf(name, sizeof name, "%s.%s", plain ? "env" : "envhash", key);
	trial_result_effective(v->out, v->rank, name, value, PROOF_DELIVERED);
}

static void see_maps(const struct fake_trial *t, const struct rank_view *v)
{
	const struct json *maps = json_get(t->run->truth->spec, "maps");
	char key[300];

	for (const struct json *j = json_first(maps); j; j = json_next(j)) {
		snprintf(key, sizeof key, "maps.%s", fs_basename(json_text(j, "")));
		if (fake_matches(t->arm, json_key(j)))
			trial_result_effective(v->out, v->rank, key, json_text(j, ""),
					       PROOF_EFFECTIVE);
	}
}

static void see_acks(const struct fake_trial *t, const struct rank_view *v)
{
	const struct json *acks = json_get(t->run->truth->spec, "acks");
	char key[300];

	for (const struct json *j = json_first(acks); j; j = json_next(j)) {
		snprintf(key, sizeof key, "ack.%s", json_text(j, ""));
		if (fake_matches(t->arm, json_key(j)))
			trial_result_effective(v->out, v->rank, key, json_key(j),
					       PROOF_ACKNOWLEDGED);
	}
}

static void put_evidence(const struct fake_trial *t, struct trial_result *out)
{
	struct json *argv = fake_trial_argv(t);
	_cleanup_free_ char *text = json_print(argv, false);

	for (int i = 0; i < fake_trial_ranks(t); i++) {
		struct rank_view v = {out, i};

		fake_trial_env(t, see_env, &v);
		see_maps(t, &v);
		trial_result_effective(out, i, "argv", text, PROOF_DELIVERED);
		see_acks(t, &v);
	}
	json_free(argv);
}

static void put_state(const struct fake_trial *t, struct trial_result *out)
{
	out->state = TRIAL_OK;
	if (t->failed || t->nan)
		out->state = TRIAL_FAILED;
	if (t->failed)
		out->reason = xstrdup(FAKE_FAILED_REASON);
	else if (t->nan)
		out->reason = xasprintf("loss is NaN at step %lld", (long long)(t->steps / 2 + 1));
	out->exit_status = t->failed ? 1 : 0;
}

static void put_values(const struct fake_trial *t, struct trial_steps *steps,
		       struct trial_result *out)
{
	if (!steps) {
		put_metrics(t, out);
		return;
	}
	trial_result_metric(out, "trial_wall_s", "value", "", (double)t->wall_us / 1e6);
	trial_result_metric(out, "trial_wall_s", "mean", "", (double)t->wall_us / 1e6);
	put_steps(t, steps);
	put_node(t, steps, out);
}

static void put_trial(const struct fake_trial *t, const char *dir, struct trial_steps *steps,
		      struct trial_result *out)
{
	*out = (struct trial_result){.slot = t->draw.slot,
				     .repeat = (int)json_i64(json_get(t->slot, "repeat"), 0),
				     .arm = t->draw.arm,
				     .kind = SLOT_TIMED,
				     .start_us = t->start_us,
				     .wall_us = t->wall_us,
				     .user_us = t->wall_us,
				     .sys_us = t->wall_us / 10,
				     .maxrss_kib = 512000,
				     .node = xstrdup(t->run->node),
				     .log_path = xasprintf("%s/%s/out", dir, t->dir)};
	(void)slot_kind_parse(json_text(json_get(t->slot, "kind"), "timed"), &out->kind);
	put_state(t, out);
	put_evidence(t, out);
	if (out->kind == SLOT_TIMED && !t->failed)
		put_values(t, steps, out);
}

static void put_environment(const struct fake_run *r, struct attempt_files *out)
{
	const struct json *keys = json_get(r->truth->spec, "environment");

	if (!keys)
		return;
	out->environments = xcalloc(1, sizeof *out->environments);
	out->environments[out->n_environments++].node = xstrdup(r->node);
	for (const struct json *m = json_first(keys); m; m = json_next(m))
		kvs_set(&out->environments[0].keys, json_key(m), json_text(m, ""));
}

int fake_memory_results(const struct fake_run *r, const struct json *block,
			struct attempt_files *out, struct err *e)
{
	const char *token = json_text(json_get(block, "token"), "");
	size_t n = json_len(json_get(block, "slots"));
	int64_t at = r->start_us;
	int rc = 0;

	memset(out, 0, sizeof *out);
	if (r->fate != FATE_OK && r->fate != FATE_VOID)
		return err_set(e, ERR_NOT_FOUND, "%s: the run broke off", r->dir);
	strv_add(&out->nodes, r->node);
	fs_hash(token, strlen(token), out->hash);
	out->complete = r->fate == FATE_OK;
	if (!out->complete) {
		out->reason = xasprintf("partial attempt: %s", FAKE_VOID_REASON);
		return 0;
	}
	out->trials = xcalloc(n + 1, sizeof *out->trials);
	out->steps = r->truth->steps ? xcalloc(n + 1, sizeof *out->steps) : NULL;
	for (size_t i = 0; i < n && !rc; i++, at += (int64_t)(r->truth->trial_s * 1e6)) {
		struct fake_trial t;

		rc = fake_trial_of(r, block, i, at, &t, e);
		if (rc)
			break;
		put_trial(&t, r->dir, out->steps ? &out->steps[out->n] : NULL,
			  &out->trials[out->n]);
		out->n++;
	}
	put_environment(r, out);
	out->start_us = r->start_us;
	out->end_us = at;
	if (rc)
		attempt_files_done(out);
	return rc;
}
