/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/sched/fake_trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum {
	STEPS_DEFAULT = 20, /* of a trial without a window */
	STEPS_MAX = 20000,
};

static const struct json *find_arm(const struct json *block, int64_t arm)
{
	const struct json *arms = json_get(block, "arms");

	for (size_t i = 0; i < json_len(arms); i++)
		if (json_i64(json_get(json_at(arms, i), "arm"), -1) == arm)
			return json_at(arms, i);
	return NULL;
}

static bool is_listed(const struct json *list, const char *s)
{
	for (size_t i = 0; i < json_len(list); i++)
		if (str_eq(json_text(json_at(list, i), ""), s))
			return true;
	return false;
}

static bool has_prefix(const struct json *prefixes, const char *key)
{
	for (size_t i = 0; i < json_len(prefixes); i++)
		if (str_starts(key, json_text(json_at(prefixes, i), "\n")))
			return true;
	return false;
}

static bool some_arm_names(const struct json *block, const char *key)
{
	const struct json *arms = json_get(block, "arms");

	for (size_t i = 0; i < json_len(arms); i++)
		if (json_get(json_get(json_at(arms, i), "env"), key) ||
		    is_listed(json_get(json_at(arms, i), "unset"), key))
			return true;
	return false;
}

static void see_env(const struct fake_trial *t, const char *key, const char *value, fake_env_f see,
		    void *ctx)
{
	const struct json *hidden = json_get(t->run->truth->spec, "undelivered");
	char hash[32];

	if (is_listed(hidden, key) || is_listed(json_get(t->block, "secrets"), key))
		return;
	if (some_arm_names(t->block, key) ||
	    has_prefix(json_path(t->block, "evidence.env_prefixes"), key)) {
		see(ctx, key, value, true);
		return;
	}
	snprintf(hash, sizeof hash, "xxh64:%016llx",
		 (unsigned long long)XXH64(value, strlen(value), 0));
	see(ctx, key, hash, false);
}

void fake_trial_env(const struct fake_trial *t, fake_env_f see, void *ctx)
{
	const struct json *base = json_get(t->block, "env"), *arm = json_get(t->arm, "env");

	for (const struct json *j = json_first(base); j; j = json_next(j))
		if (!json_get(arm, json_key(j)) &&
		    !is_listed(json_get(t->arm, "unset"), json_key(j)))
			see_env(t, json_key(j), json_text(j, ""), see, ctx);
	for (const struct json *j = json_first(arm); j; j = json_next(j))
		see_env(t, json_key(j), json_text(j, ""), see, ctx);
}

int fake_trial_ranks(const struct fake_trial *t)
{
	const struct json *ranks = json_get(t->run->truth->spec, "ranks");
	int n = 1;

	for (const struct json *j = json_first(ranks); j; j = json_next(j))
		if (fake_matches(t->arm, json_key(j)))
			n = (int)json_i64(j, 1);
	return n > 1 ? n : 1;
}

/* An undelivered argument goes with the value behind it. */
struct json *fake_trial_argv(const struct fake_trial *t)
{
	const struct json *hidden = json_get(t->run->truth->spec, "undelivered");
	struct json *out = json_array();

	for (const struct json *j = json_first(json_get(t->arm, "argv")); j; j = json_next(j)) {
		const char *a = json_text(j, "");
		size_t name = strcspn(a, "=");
		_cleanup_free_ char *bare = xstrndup(a, name);

		if (!is_listed(hidden, bare))
			json_add_text(out, a);
		else if (a[name] != '=' && !(j = json_next(j)))
			break;
	}
	return out;
}

/* The loss falls towards its last value, the same way in every trial. */
double fake_trial_loss(const struct fake_trial *t, int64_t step)
{
	if (t->nan && step > t->steps / 2)
		return NAN;
	return t->loss + (double)(t->steps - step) / (double)(10 * t->steps);
}

double fake_trial_step_ms(const struct fake_trial *t)
{
	return 1000 * t->samples_a_step / t->throughput;
}

static bool timed_before(const struct json *slots, const struct json *slot)
{
	for (const struct json *j = json_first(slots); j && j != slot; j = json_next(j))
		if (str_eq(json_text(json_get(j, "kind"), "timed"), "timed"))
			return true;
	return false;
}

static void draw_of(const struct fake_run *r, const struct json *block, size_t i,
		    struct fake_trial *t)
{
	t->draw = (struct fake_draw){.seed = r->seed,
				     .token = json_text(json_get(block, "token"), ""),
				     .job = r->job,
				     .node = r->node_index,
				     .block = json_i64(json_get(block, "block"), 0),
				     .arm = json_i64(json_get(t->slot, "arm"), -1),
				     .slot = (int)json_i64(json_get(t->slot, "slot"), (int64_t)i),
				     .turn = r->turn,
				     .later = r->turn > 0 ||
					      timed_before(json_get(block, "slots"), t->slot)};
}

int fake_trial_of(const struct fake_run *r, const struct json *block, size_t i, int64_t start_us,
		  struct fake_trial *t, struct err *e)
{
	const struct json *slots = json_get(block, "slots"), *w = json_get(block, "window");
	int64_t steps = json_i64(json_get(w, "steps"), 0),
		warmup = json_i64(json_get(w, "warmup"), 0);

	*t = (struct fake_trial){.run = r,
				 .block = block,
				 .slot = json_at(slots, i),
				 .start_us = start_us,
				 .wall_us = (int64_t)(r->truth->trial_s * 1e6),
				 .warmup = warmup};
	t->steps = steps > 0 ? warmup + steps : STEPS_DEFAULT;
	if (t->steps > STEPS_MAX)
		t->steps = STEPS_MAX;
	draw_of(r, block, i, t);
	snprintf(t->dir, sizeof t->dir, "t%02d", t->draw.slot);
	t->arm = find_arm(block, t->draw.arm);
	if (!t->arm)
		return err_set(e, ERR_PARSE,
			       "%s/block.json: slot %zu names an arm that is not there", r->dir, i);
	t->failed = fake_trial_fails(r->truth, t->arm, &t->draw);
	t->voided = r->fate == FATE_VOID && i + 1 == json_len(slots);
	t->throughput = fake_throughput(r->truth, t->arm, &t->draw);
	t->samples_a_step = fake_samples_a_step(r->truth, t->arm);
	t->loss = fake_loss(r->truth, t->arm, &t->draw);
	t->nan = fake_trial_is_nan(r->truth, t->arm, &t->draw);
	return 0;
}
