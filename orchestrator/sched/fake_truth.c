/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/sched/fake_truth.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/rng.h"
#include "orchestrator/base/str.h"

/* What a draw is for: the first counter of the generator. */
enum purpose {
	DRAW_ALLOC = 1,
	DRAW_RUN,
	DRAW_FATE,
	DRAW_ANSWER,
	DRAW_FAIL,
	DRAW_NAN,
	DRAW_NODE,
	DRAW_ARM,
	DRAW_STRAGGLER,
	DRAW_LOSS,
	DRAW_EXTRA,
	DRAW_STEP,
	DRAW_SLOW,
	DRAW_OUTLIER,
	DRAW_NEIGHBOUR,
	DRAW_THROTTLE,
	DRAW_HIT,
};

static const char *const members[] = {
	"base",         "sd_run",       "tails",        "noisier",
	"straggler_p",  "straggler",    "ar1",          "sd_alloc",
	"sd_node",      "sd_arm_alloc", "drift",        "order",
	"trend",        "effects",      "loss",         "loss_effects",
	"loss_sd",      "metrics",      "fixed",        "metric_effects",
	"trial_s",      "queue_s",      "silent_after", "spread_s",
	"nodes",        "at_once",      "sticky",       "by_job",
	"persist",      "in_memory",    "undelivered",  "out_lines",
	"maps",         "fails",        "nan",          "faults",
	"hand_over",    "slow_node",    "slow_node_by", "acks",
	"sd_step",      "slow_p",       "slow",         "step_drift",
	"outlier_p",    "outlier",      "neighbour_p",  "neighbour",
	"throttle_p",   "throttle",     "steps",        "blocks_at_most",
	"time_limit_s", "ahead",        "ranks",        "environment",
	NULL,
};
static const char *const fault_members[] = {
	"lost",         "void",        "node_fail",
	"timeout",      "submit_lost", "accepted_but_timed_out",
	"failed_trial", "preempted",   NULL,
};

/* --- reading ---------------------------------------------------------------------------- */

static bool known(const char *key, const char *const *names)
{
	for (; *names; names++)
		if (str_eq(*names, key))
			return true;
	return false;
}

static int check_members(const struct json *o, const char *where, const char *const *names,
			 struct err *e)
{
	for (size_t i = 0; i < json_len(o); i++) {
		const char *key = json_key(json_at(o, i)), *near;

		if (known(key, names))
			continue;
		near = str_nearest(key, names);
		return err_set(e, ERR_PARSE, "fake truth: %s\"%s\" is no member%s%s%s", where, key,
			       near ? " (did you mean \"" : "", near ? near : "",
			       near ? "\"?)" : "");
	}
	return 0;
}

static int number(const struct json *o, const char *key, double dflt, double min, double max,
		  double *out, struct err *e)
{
	const struct json *v = json_get(o, key);

	*out = dflt;
	if (!v)
		return 0;
	if (json_type(v) != JSON_NUMBER)
		return err_set(e, ERR_PARSE, "fake truth: %s: expected a number", key);
	*out = json_number(v, dflt);
	if (!(*out >= min && *out <= max))
		return err_set(e, ERR_PARSE, "fake truth: %s: %g is not within %g..%g", key, *out,
			       min, max);
	return 0;
}

static int read_faults(const struct json *o, struct fake_faults *f, struct err *e)
{
	double *const to[] = {&f->lost,         &f->voided,      &f->node_fail,
			      &f->timeout,      &f->submit_lost, &f->accepted_but_timed_out,
			      &f->failed_trial, &f->preempted};
	int rc = check_members(o, "faults: ", fault_members, e);

	for (size_t i = 0; i < ARRAY_LEN(to) && !rc; i++)
		rc = number(o, fault_members[i], 0, 0, 1, to[i], e);
	return rc;
}

static int read_numbers(const struct json *o, struct fake_truth *t, struct err *e)
{
	double nodes = 1, at_once = 1, tails = 0, blocks = 1, limit = 0, ahead = 0, silent = 0;
	const struct {
		const char *key;
		double dflt, min, max, *to;
	} v[] = {
		{"base", 100, 1e-9, 1e12, &t->base},
		{"sd_run", 0.02, 0, 10, &t->sd_run},
		{"sd_alloc", 0.03, 0, 10, &t->sd_alloc},
		{"sd_node", 0, 0, 10, &t->sd_node},
		{"slow_node", 0, 0, 10000, &t->slow_node},
		{"slow_node_by", 0.05, 0, 0.99, &t->slow_node_by},
		{"sd_arm_alloc", 0, 0, 10, &t->sd_arm_alloc},
		{"ar1", 0, 0, 0.95, &t->ar1},
		{"drift", 0, -0.5, 0.5, &t->drift},
		{"order", 0, -0.5, 0.5, &t->order},
		{"trend", 0, -0.1, 0.1, &t->trend},
		{"straggler_p", 0, 0, 1, &t->straggler_p},
		{"straggler", 0.1, 0, 0.99, &t->straggler},
		{"sd_step", 0, 0, 10, &t->sd_step},
		{"slow_p", 0, 0, 1, &t->slow_p},
		{"slow", 0.3, 0, 100, &t->slow},
		{"step_drift", 0, -0.9, 10, &t->step_drift},
		{"outlier_p", 0, 0, 1, &t->outlier_p},
		{"outlier", 4, 0, 1000, &t->outlier},
		{"neighbour_p", 0, 0, 1, &t->neighbour_p},
		{"neighbour", 0.2, 0, 0.99, &t->neighbour},
		{"throttle_p", 0, 0, 1, &t->throttle_p},
		{"throttle", 0.2, 0, 0.99, &t->throttle},
		{"tails", 0, 0, 3, &tails},
		{"loss", 2.0, -1e9, 1e9, &t->loss},
		{"loss_sd", 0, 0, 1e9, &t->loss_sd},
		{"trial_s", 3, 1e-3, 1e7, &t->trial_s},
		{"queue_s", 0, 0, 1e7, &t->queue_s},
		{"spread_s", 0, 0, 1e7, &t->spread_s},
		{"silent_after", 0, 0, 1e6, &silent},
		{"nodes", 1, 1, 10000, &nodes},
		{"at_once", 1, 1, 10000, &at_once},
		{"ahead", 0, 0, 10000, &ahead},
		{"blocks_at_most", 1, 0, 10000, &blocks},
		{"time_limit_s", 0, 0, 1e9, &limit},
	};
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(v) && !rc; i++)
		rc = number(o, v[i].key, v[i].dflt, v[i].min, v[i].max, v[i].to, e);
	if (!rc && tails != 0 && tails != 3)
		rc = err_set(e, ERR_PARSE, "fake truth: tails: %g is neither 0 nor 3", tails);
	t->t3 = tails == 3;
	t->nodes = (int)nodes;
	t->at_once = (int)at_once;
	t->ahead = (int)ahead;
	t->silent_after = (int)silent;
	t->blocks_at_most = (int)blocks;
	t->time_limit_s = (int64_t)limit;
	return rc;
}

/* Is there anything that only steps show? */
static bool shows_in_steps(const struct fake_truth *t)
{
	const struct json *own = json_get(t->spec, "metrics");

	return json_bool(json_get(t->spec, "steps"), false) || t->sd_step > 0 || t->slow_p > 0 ||
	       t->step_drift != 0 || t->outlier_p > 0 || t->neighbour_p > 0 || t->throttle_p > 0 ||
	       json_get(own, "samples_per_step") || json_get(own, "tokens_per_step");
}

int fake_truth_read(const char *spec, struct fake_truth *out, struct err *e)
{
	struct fake_truth t = {0};
	const char *text = spec && *spec ? spec : "{}";
	int rc = json_parse("fake truth", text, strlen(text), &t.spec, e);

	if (!rc && json_type(t.spec) != JSON_OBJECT)
		rc = err_set(e, ERR_PARSE, "fake truth: expected an object");
	if (!rc)
		rc = check_members(t.spec, "", members, e);
	if (!rc)
		rc = read_numbers(t.spec, &t, e);
	if (!rc)
		rc = read_faults(json_get(t.spec, "faults"), &t.faults, e);
	if (rc) {
		fake_truth_free(&t);
		return rc;
	}
	t.fixed = json_bool(json_get(t.spec, "fixed"), false);
	t.sticky = json_bool(json_get(t.spec, "sticky"), false);
	t.by_job = json_bool(json_get(t.spec, "by_job"), false);
	t.in_memory = json_bool(json_get(t.spec, "in_memory"), false);
	t.persist = !t.in_memory && json_bool(json_get(t.spec, "persist"), true);
	t.steps = t.in_memory && shows_in_steps(&t);
	*out = t;
	return 0;
}

void fake_truth_free(struct fake_truth *t)
{
	json_free(t->spec);
	*t = (struct fake_truth){0};
}

/* --- matching --------------------------------------------------------------------------- */

/* "workers 4" is not in "workers 40" nor in "workers 4.5". */
static bool ends_there(const char *text, size_t n, const char *rest)
{
	if (!isdigit((unsigned char)text[n - 1]))
		return true;
	return !isdigit((unsigned char)rest[0]) &&
	       !(rest[0] == '.' && isdigit((unsigned char)rest[1]));
}

static bool in_text(const char *hay, const char *text)
{
	size_t n = strlen(text);

	if (n == 0)
		return false;
	for (const char *p = strstr(hay, text); p; p = strstr(p + 1, text))
		if (ends_there(text, n, p + n))
			return true;
	return false;
}

bool fake_matches(const struct json *arm, const char *text)
{
	const struct json *words[] = {json_get(arm, "launch"), json_get(arm, "argv")},
			  *env = json_get(arm, "env");
	struct buf b = {0};
	bool found;

	for (size_t k = 0; k < ARRAY_LEN(words); k++)
		for (size_t i = 0; i < json_len(words[k]); i++)
			buf_printf(&b, "%s%s", b.len ? " " : "",
				   json_text(json_at(words[k], i), ""));
	for (size_t i = 0; i < json_len(env); i++)
		buf_printf(&b, "\n%s=%s", json_key(json_at(env, i)),
			   json_text(json_at(env, i), ""));
	found = in_text(b.data ? b.data : "", text);
	buf_free(&b);
	return found;
}

/* --- draws ------------------------------------------------------------------------------ */

/* FNV-1a; only to turn a token into a counter. */
static uint64_t name_hash(const char *s)
{
	uint64_t h = 0xcbf29ce484222325U;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3U;
	return h;
}

static uint64_t submit_of(const struct fake_truth *t, const char *token, int64_t job)
{
	return t->by_job ? (uint64_t)job : name_hash(token);
}

static uint64_t unit_of(const struct fake_truth *t, const struct fake_draw *d)
{
	if (t->fixed)
		return (uint64_t)d->block;
	return t->by_job ? (uint64_t)d->job : name_hash(d->token);
}

static struct rng trial_rng(const struct fake_truth *t, const struct fake_draw *d, enum purpose p)
{
	uint64_t slot = (uint64_t)d->slot + (t->fixed ? 0 : (uint64_t)d->turn);
	uint64_t within = slot * 1000003U + (t->fixed ? (uint64_t)d->arm : 0);

	return rng_at(d->seed, (uint64_t)p, unit_of(t, d), p == DRAW_ALLOC ? 0 : within);
}

/* Of variance 1, normal or Student's t with 3 degrees of freedom over its sd, which is sqrt(3). */
static double standard(const struct fake_truth *t, struct rng *r)
{
	double z = rng_normal(r), chi2 = 0;

	if (!t->t3)
		return z;
	for (int i = 0; i < 3; i++) {
		double x = rng_normal(r);

		chi2 += x * x;
	}
	return z / sqrt(chi2);
}

/* Noise of the allocation. With correlation r it is the stationary sum over the allocations before
 * it, sqrt(1 - r^2) sum r^j e[job - j]: a pure function again, cut where it says nothing any more.
 */
static double alloc_noise(const struct fake_truth *t, const struct fake_draw *d)
{
	struct rng r = trial_rng(t, d, DRAW_ALLOC);
	double sum = 0, weight = sqrt(1 - t->ar1 * t->ar1);

	if (t->ar1 <= 0)
		return t->sd_alloc * rng_normal(&r);
	for (int64_t j = 0; weight > 1e-4; j++, weight *= t->ar1) {
		r = rng_at(d->seed, DRAW_ALLOC, (uint64_t)(d->job - j), 1);
		sum += weight * rng_normal(&r);
	}
	return t->sd_alloc * sum;
}

static double node_noise(const struct fake_truth *t, const struct fake_draw *d)
{
	struct rng r = rng_at(d->seed, DRAW_NODE, (uint64_t)d->node, 0);

	return (t->sd_node > 0 ? t->sd_node * rng_normal(&r) : 0) +
	       (d->node + 1 == t->slow_node ? log1p(-t->slow_node_by) : 0);
}

static double arm_noise(const struct fake_truth *t, const struct json *arm,
			const struct fake_draw *d)
{
	struct rng r = rng_at(d->seed, DRAW_ARM, unit_of(t, d),
			      name_hash(json_text(json_get(arm, "config"), "")));

	return t->sd_arm_alloc > 0 ? t->sd_arm_alloc * rng_normal(&r) : 0;
}

static double straggling(const struct fake_truth *t, const struct fake_draw *d)
{
	struct rng r = trial_rng(t, d, DRAW_STRAGGLER);

	return t->straggler_p > 0 && rng_uniform(&r) < t->straggler_p ? log1p(-t->straggler) : 0;
}

bool fake_has_neighbour(const struct fake_truth *t, const struct fake_draw *d)
{
	struct rng r = trial_rng(t, d, DRAW_NEIGHBOUR);

	return t->neighbour_p > 0 && rng_uniform(&r) < t->neighbour_p;
}

bool fake_is_throttled(const struct fake_truth *t, const struct fake_draw *d)
{
	struct rng r = trial_rng(t, d, DRAW_THROTTLE);

	return t->throttle_p > 0 && rng_uniform(&r) < t->throttle_p;
}

double fake_step_noise(const struct fake_truth *t, const struct fake_draw *d, int64_t step,
		       int64_t steps)
{
	struct rng r = trial_rng(t, d, DRAW_STEP), slow = trial_rng(t, d, DRAW_SLOW),
		   stall = trial_rng(t, d, DRAW_OUTLIER);
	double x = log1p(t->step_drift * (double)(step - 1) / (double)(steps > 1 ? steps - 1 : 1));

	r.i += 2 * (uint64_t)step; /* a normal takes two draws */
	if (t->sd_step > 0)
		x += t->sd_step * rng_normal(&r);
	if (5 * step > 3 * steps && t->slow_p > 0 && rng_uniform(&slow) < t->slow_p)
		x -= log1p(t->slow);
	stall.i += (uint64_t)step;
	if (t->outlier_p > 0 && rng_uniform(&stall) < t->outlier_p)
		x -= log1p(t->outlier);
	return x;
}

static double noise_factor(const struct fake_truth *t, const struct json *arm)
{
	const struct json *noisier = json_get(t->spec, "noisier");
	double f = 1;

	for (const struct json *j = json_first(noisier); j; j = json_next(j))
		if (fake_matches(arm, json_key(j)))
			f *= json_number(j, 1);
	return f;
}

static double sum_effects(const struct json *effects, const struct json *arm, bool relative)
{
	double sum = relative ? 1 : 0;

	for (size_t i = 0; i < json_len(effects); i++) {
		const struct json *one = json_at(effects, i);

		if (!fake_matches(arm, json_key(one)))
			continue;
		if (relative)
			sum *= 1 + json_number(one, 0);
		else
			sum += json_number(one, 0);
	}
	return sum;
}

double fake_throughput(const struct fake_truth *t, const struct json *arm,
		       const struct fake_draw *d)
{
	struct rng run = trial_rng(t, d, DRAW_RUN);
	double y = alloc_noise(t, d) + t->sd_run * noise_factor(t, arm) * standard(t, &run);

	y += node_noise(t, d) + arm_noise(t, arm, d) + straggling(t, d);
	y += log1p(t->drift) * (d->slot + d->turn) + log1p(t->trend) * (double)d->job;
	if (d->later)
		y += log1p(t->order);
	if (fake_has_neighbour(t, d))
		y += log1p(-t->neighbour);
	if (fake_is_throttled(t, d))
		y += log1p(-t->throttle);
	return t->base * sum_effects(json_get(t->spec, "effects"), arm, true) * exp(y);
}

double fake_loss(const struct fake_truth *t, const struct json *arm, const struct fake_draw *d)
{
	struct rng r = trial_rng(t, d, DRAW_LOSS);
	double noise = t->loss_sd > 0 ? t->loss_sd * rng_normal(&r) : 0;

	return t->loss + sum_effects(json_get(t->spec, "loss_effects"), arm, false) + noise;
}

double fake_worth(const struct fake_truth *t, const struct json *arm, const char *metric)
{
	double x = t->base * sum_effects(json_get(t->spec, "effects"), arm, true), v;
	const struct json *effects = json_get(t->spec, "metric_effects");

	if (str_eq(metric, "throughput_samples_per_s"))
		v = x;
	else if (str_eq(metric, "step_time_ms"))
		v = fake_samples_a_step(t, arm) * 1000.0 / x;
	else if (str_eq(metric, "loss"))
		v = t->loss + sum_effects(json_get(t->spec, "loss_effects"), arm, false);
	else
		v = json_number(json_get(json_get(t->spec, "metrics"), metric), NAN);
	for (const struct json *j = json_first(effects); j; j = json_next(j))
		if (json_get(j, metric) && fake_matches(arm, json_key(j)))
			v = json_number(json_get(j, metric), v);
	return v;
}

double fake_samples_a_step(const struct fake_truth *t, const struct json *arm)
{
	double v = fake_worth(t, arm, "samples_per_step");

	return v > 0 ? v : FAKE_SAMPLES_A_STEP;
}

static double worst_of(const struct json *map, const struct json *arm)
{
	double p = 0;

	for (size_t i = 0; i < json_len(map); i++)
		if (fake_matches(arm, json_key(json_at(map, i))))
			p = fmax(p, json_number(json_at(map, i), 0));
	return p;
}

bool fake_trial_fails(const struct fake_truth *t, const struct json *arm, const struct fake_draw *d)
{
	struct rng r = trial_rng(t, d, DRAW_FAIL);
	double p = fmax(t->faults.failed_trial, worst_of(json_get(t->spec, "fails"), arm));

	return rng_uniform(&r) < p;
}

bool fake_trial_is_nan(const struct fake_truth *t, const struct json *arm,
		       const struct fake_draw *d)
{
	struct rng r = trial_rng(t, d, DRAW_NAN);

	return rng_uniform(&r) < worst_of(json_get(t->spec, "nan"), arm);
}

enum fake_fate fake_fate_of(const struct fake_truth *t, uint64_t seed, const char *token,
			    int64_t job)
{
	const struct fake_faults *f = &t->faults;
	struct rng r = rng_at(seed, DRAW_FATE, submit_of(t, token, job), 0);
	double u = rng_uniform(&r);

	if (u < f->lost)
		return FATE_LOST;
	if (u < f->lost + f->voided)
		return FATE_VOID;
	if (u < f->lost + f->voided + f->node_fail)
		return FATE_NODE_FAIL;
	u -= f->lost + f->voided + f->node_fail;
	if (u < f->timeout)
		return FATE_TIMEOUT;
	return u < f->timeout + f->preempted ? FATE_PREEMPTED : FATE_OK;
}

size_t fake_hit(const struct fake_truth *t, uint64_t seed, const char *token, int64_t job, size_t n)
{
	struct rng r = rng_at(seed, DRAW_HIT, submit_of(t, token, job), 0);

	return n > 1 ? (size_t)(rng_uniform(&r) * (double)n) : 0;
}

double fake_extra_s(const struct fake_truth *t, uint64_t seed, const char *token, int64_t job)
{
	struct rng r = rng_at(seed, DRAW_EXTRA, submit_of(t, token, job), 0);

	return t->spread_s * rng_uniform(&r);
}

enum fake_answer fake_answer_of(const struct fake_truth *t, uint64_t seed, const char *token,
				int64_t job, int try)
{
	struct rng r = rng_at(seed, DRAW_ANSWER, submit_of(t, token, job), (uint64_t)try);
	double u = rng_uniform(&r);

	if (u < t->faults.submit_lost)
		return ANSWER_LOST;
	return u < t->faults.submit_lost + t->faults.accepted_but_timed_out ? ANSWER_TIMED_OUT
									    : ANSWER_OK;
}
