/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One trial of the incumbent under a profiler, for the diagnosis: a stage of its own, whose only
 * trial is not a timed one. nsys where the node has it and a device, else torch.profiler, brought
 * into the unchanged program by a sitecustomize.py on PYTHONPATH (recipes/profile). What it shows
 * becomes signals; a trial without a trace leaves branches of the diagnosis open and stops nothing.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/paths.h"
#include "orchestrator/method/gather.h"
#include "orchestrator/method/method.h"

enum {
	HOOK_MAX_BYTES = 1 << 20,
	RECORDED_STEPS = 6, /* of the hook: enough to see what repeats, and a trace of a few MB */
	WARMUP_STEPS = 5,   /* before it, when the workload has no window */
};

/* A profiler slows a program down. Steps that it shows shorter than this share of those that the
 * program counts are something else: batches of an evaluation, or a host that runs ahead of its
 * device, whose kernels then are not those of the steps. Ours; 0.2 leaves room for noise. */
static const double FASTER_THAN_REAL = 0.8;

/* -- is it wanted ------------------------------------------------------------------------------ */

/* A program that Python runs, as far as the command shows it. */
static bool is_python(const struct strv *command)
{
	static const char *const launchers[] = {"torchrun", "accelerate", "deepspeed"};

	for (size_t i = 0; i < command->n; i++) {
		const char *base = fs_basename(command->v[i]);

		if (str_ends(base, ".py") || str_starts(base, "python"))
			return true;
		for (size_t k = 0; i == 0 && k < ARRAY_LEN(launchers); k++)
			if (str_eq(base, launchers[k]))
				return true;
	}
	return false;
}

bool profile_wanted(const struct recipe *r)
{
	switch (r->profile) {
	case PROFILE_NO:
		return false;
	case PROFILE_YES:
		return r->aa_blocks != BLOCKS_NONE;
	case PROFILE_UNSAID:
		break;
	}
	return r->aa_blocks != BLOCKS_NONE && is_python(&r->workload.command);
}

/* -- the plan ---------------------------------------------------------------------------------- */

int profile_plan(struct campaign *c, int round, struct err *e)
{
	struct arm_plan arm = {.label = xstrdup("profile")};
	struct stage_row s = {.kind = STAGE_PROFILE, .round = round, .planned_blocks = 1};
	int rc = campaign_incumbent(c, &arm.config, e);

	if (rc == 0) {
		campaign_tell(c, PROGRESS_STEP, round > 1 ? 4 : 1,
			      "profile: one untimed trial of the %s under a profiler",
			      c->recipe->ladder.n ? "rung"
			      : round > 1         ? "new incumbent"
						  : "baseline");
		rc = stage_plan(c, &s, &arm, 1, e);
	}
	config_done(&arm.config);
	free(arm.label);
	return rc;
}

static void set_number(struct kvs *env, const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof text, "%lld", (long long)value);
	kvs_set(env, name, text);
}

/* The hook comes before whatever the arm, or else the campaign, has on its path. */
void profile_env(const struct campaign *c, const char *dir, struct config *config)
{
	const struct workload *w = &c->recipe->workload;
	const char *own = kvs_get(&config->env, "PYTHONPATH"),
		   *old = own ? own : kvs_get(&c->env, "PYTHONPATH");
	_cleanup_free_ char *path = old && *old ? xasprintf("%s/hook:%s", dir, old)
						: fs_join(dir, "hook");

	kvs_set(&config->env, "PYTHONPATH", path);
	set_number(&config->env, "FETTLE_PROFILE_STEPS", RECORDED_STEPS);
	set_number(&config->env, "FETTLE_PROFILE_WAIT",
		   w->steps > 0 ? w->warmup_steps : WARMUP_STEPS);
}

struct json *profile_command(void)
{
	/* The agent puts it before the command where there is such a program and a device. */
	static const char *const nsys[] = {"nsys",
					   "profile",
					   "--trace=cuda,nvtx",
					   "--sample=none",
					   "--cpuctxsw=none",
					   "--export=sqlite",
					   "--output=%q{FETTLE_TRIAL_DIR}/profile/%h.%p"};
	struct json *a = json_array();

	for (size_t i = 0; i < ARRAY_LEN(nsys); i++)
		json_add_text(a, nsys[i]);
	return a;
}

int profile_hook(const char *dir, struct err *e)
{
	_cleanup_free_ char *recipes = paths_recipes(), *hook = fs_join(dir, "hook");
	_cleanup_free_ char *from = fs_join(recipes, "profile/sitecustomize.py"),
			    *to = fs_join(hook, "sitecustomize.py");
	struct buf text = {0};
	int rc = fs_read(from, HOOK_MAX_BYTES, &text, e);

	if (rc == 0)
		rc = fs_mkdirs(hook, 0700, e);
	if (rc == 0)
		rc = fs_write_atomic(to, text.data, text.len, 0600, e);
	buf_free(&text);
	return rc;
}

/* -- what it showed ---------------------------------------------------------------------------- */

/* Why a file gave nothing, of the first that did not: a trace that is there and cannot be read. */
static char *unread(const struct gather *g)
{
	size_t n;
	const struct gather_file *f = gather_files(g, &n);

	for (size_t i = 0; i < n; i++)
		if (f[i].probe && f[i].detail && f[i].status != PROBE_OK)
			return xasprintf("no trace: %s: %s", fs_basename(f[i].path), f[i].detail);
	return NULL;
}

static void take_signals(const struct gather *g, struct trial_result *t)
{
	size_t n;
	const struct gather_signal *s = gather_signals(g, &n);

	for (size_t i = 0; i < n; i++) {
		const char *dot = strrchr(s[i].name, '.');
		_cleanup_free_ char *metric = xstrndup(s[i].name, dot ? (size_t)(dot - s[i].name)
								      : strlen(s[i].name));

		if (metric_def_find(metric))
			trial_result_metric(t, metric, dot ? dot + 1 : "mean", "", s[i].value);
	}
}

/* Half a trace would be half a diagnosis. */
static void tell_unread(const struct gather *g, struct err *e)
{
	size_t n;
	const struct gather_file *f = gather_files(g, &n);

	for (size_t i = 0; i < n && !e->code; i++)
		if (f[i].fault == ERR_READ)
			err_set(e, ERR_READ, "%s", f[i].detail);
}

void profile_read(const char *dir, double own_step_ms, struct trial_result *t, char **note,
		  struct err *e)
{
	struct gather *g = gather_new();
	const char *straggler;
	double traced_ms;
	size_t left;

	if (!fs_exists(dir) || !gather_dir(g, dir, &left)) {
		*note = xstrdup("no trace: the program made no step under the profiler that could "
				"be told");
		gather_free(g);
		return;
	}
	tell_unread(g, e);
	gather_finish(g);
	traced_ms = gather_get(g, "trace_step_ms");
	if (traced_ms < FASTER_THAN_REAL * own_step_ms) {
		*note = xasprintf("no trace: the steps in it take %.4g ms, those of the program "
				  "%.4g ms: what was recorded are not its steps",
				  traced_ms, own_step_ms);
		gather_free(g);
		return;
	}
	take_signals(g, t);
	straggler = gather_fact(g, "trace.straggler");
	*note = straggler ? xasprintf("trace: %s", straggler) : isnan(traced_ms) ? unread(g) : NULL;
	gather_free(g);
}

/* "a step took 41.2 ms under the profiler, 35.0 ms without (+17.7 %); 6 steps recorded"; heap. */
static char *note_of(const struct profile_price *p, double steps)
{
	struct buf b = {0};

	if (isnan(p->traced_ms))
		return xstrdup("no trace: which branches of the diagnosis stay open is said there");
	buf_printf(&b, "a step took %.4g ms under the profiler", p->traced_ms);
	if (p->timed_ms > 0)
		buf_printf(&b, ", %.4g ms without (%+.1f %%)", p->timed_ms,
			   100 * (p->traced_ms / p->timed_ms - 1));
	if (!isnan(steps))
		buf_printf(&b, "; %.0f steps recorded", steps);
	return buf_take(&b);
}

/* A trial that could not be profiled is not tried again and again. */
static int wanted(struct campaign *c, const struct stage_row *s, size_t *out, struct err *e)
{
	(void)s, (void)e;
	*out = c->facts.dropped ? 0 : 1;
	return 0;
}

static int conclude(struct campaign *c, const struct stage_row *s, struct err *e)
{
	struct profile_price price;
	struct signal_row *v = NULL;
	_cleanup_free_ char *note = NULL;
	size_t n = 0;
	int rc = query_profile_signals(c->ws->db, s->arms[0].id, &v, &n, &price, e);

	if (rc < 0)
		return rc;
	note = note_of(&price, signal_rows_mean(v, n, "profile_steps"));
	signal_rows_free(v, n);
	campaign_tell(c, PROGRESS_STAGE, s->round > 1 ? 4 : 1, "%s", note);
	rc = query_stage_close(c->ws->db, s->id, note, e);
	return rc < 0 ? rc : ladder_split(c, s->round, e);
}

const struct stage_ops profile_profile = {.kind = STAGE_PROFILE,
					  .step = 1,
					  .wanted = wanted,
					  .block_arms = stage_all_arms,
					  .conclude = conclude};
