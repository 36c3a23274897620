/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/sched/fake_truth.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/rng.h"
#include "orchestrator/base/str.h"

/* What a draw is for: the first counter of the generator. */
enum purpose { DRAW_ALLOC = 1, DRAW_RUN, DRAW_FATE, DRAW_ANSWER, DRAW_FAIL, DRAW_NAN };

static const char *const members[] = {
	"base",         "sd_run",  "sd_alloc",       "drift",       "effects",   "loss",
	"loss_effects", "metrics", "metric_effects", "trial_s",     "queue_s",   "nodes",
	"at_once",      "fixed",   "persist",        "undelivered", "out_lines", "maps",
	"fails",        "nan",     "faults",         NULL,
};
static const char *const fault_members[] = {
	"lost",         "void", "node_fail", "timeout", "submit_lost", "accepted_but_timed_out",
	"failed_trial", NULL,
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
	double *const to[] = {&f->lost,        &f->voided,      &f->node_fail,
			      &f->timeout,     &f->submit_lost, &f->accepted_but_timed_out,
			      &f->failed_trial};
	int rc = check_members(o, "faults: ", fault_members, e);

	for (size_t i = 0; i < ARRAY_LEN(to) && !rc; i++)
		rc = number(o, fault_members[i], 0, 0, 1, to[i], e);
	return rc;
}

static int read_numbers(const struct json *o, struct fake_truth *t, struct err *e)
{
	double nodes = 1, at_once = 1;
	const struct {
		const char *key;
		double dflt, min, max, *to;
	} v[] = {
		{"base", 100, 1e-9, 1e12, &t->base},     {"sd_run", 0.02, 0, 10, &t->sd_run},
		{"sd_alloc", 0.03, 0, 10, &t->sd_alloc}, {"drift", 0, -0.5, 0.5, &t->drift},
		{"loss", 2.0, -1e9, 1e9, &t->loss},      {"trial_s", 3, 1e-3, 1e7, &t->trial_s},
		{"queue_s", 0, 0, 1e7, &t->queue_s},     {"nodes", 1, 1, 10000, &nodes},
		{"at_once", 1, 1, 10000, &at_once},
	};
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(v) && !rc; i++)
		rc = number(o, v[i].key, v[i].dflt, v[i].min, v[i].max, v[i].to, e);
	t->nodes = (int)nodes;
	t->at_once = (int)at_once;
	return rc;
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
	t.persist = json_bool(json_get(t.spec, "persist"), true);
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
	const struct json *argv = json_get(arm, "argv"), *env = json_get(arm, "env");
	struct buf b = {0};
	bool found;

	for (size_t i = 0; i < json_len(argv); i++) {
		buf_str(&b, i ? " " : "");
		buf_str(&b, json_text(json_at(argv, i), ""));
	}
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

static struct rng trial_rng(const struct fake_truth *t, const struct fake_draw *d, enum purpose p)
{
	uint64_t unit = t->fixed ? (uint64_t)d->block : name_hash(d->token);
	uint64_t within = (uint64_t)d->slot * 1000003U + (t->fixed ? (uint64_t)d->arm : 0);

	return rng_at(d->seed, (uint64_t)p, unit, p == DRAW_ALLOC ? 0 : within);
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
	struct rng alloc = trial_rng(t, d, DRAW_ALLOC), run = trial_rng(t, d, DRAW_RUN);
	double noise = t->sd_alloc * rng_normal(&alloc) + t->sd_run * rng_normal(&run);

	return t->base * sum_effects(json_get(t->spec, "effects"), arm, true) * exp(noise) *
	       pow(1 + t->drift, d->slot);
}

double fake_loss(const struct fake_truth *t, const struct json *arm)
{
	return t->loss + sum_effects(json_get(t->spec, "loss_effects"), arm, false);
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

enum fake_fate fake_fate_of(const struct fake_truth *t, uint64_t seed, const char *token)
{
	const struct fake_faults *f = &t->faults;
	struct rng r = rng_at(seed, DRAW_FATE, name_hash(token), 0);
	double u = rng_uniform(&r);

	if (u < f->lost)
		return FATE_LOST;
	if (u < f->lost + f->voided)
		return FATE_VOID;
	if (u < f->lost + f->voided + f->node_fail)
		return FATE_NODE_FAIL;
	return u < f->lost + f->voided + f->node_fail + f->timeout ? FATE_TIMEOUT : FATE_OK;
}

enum fake_answer fake_answer_of(const struct fake_truth *t, uint64_t seed, const char *token,
				int try)
{
	struct rng r = rng_at(seed, DRAW_ANSWER, name_hash(token), (uint64_t)try);
	double u = rng_uniform(&r);

	if (u < t->faults.submit_lost)
		return ANSWER_LOST;
	return u < t->faults.submit_lost + t->faults.accepted_but_timed_out ? ANSWER_TIMED_OUT
									    : ANSWER_OK;
}
