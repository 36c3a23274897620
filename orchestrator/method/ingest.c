/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the files of an attempt to trial results. The agent only captured; everything is read here.
 * A file that is missing, cut or does not match its hash makes the attempt incomplete, with the
 * reason: it is then void and run again, never half counted. A read that fails is none of these:
 * the file may be whole, and the attempt is read again another time.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <math.h>
#include <pcre2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/cause.h"
#include "orchestrator/method/derived.h"
#include "orchestrator/method/fingerprint.h"
#include "orchestrator/method/method.h"
#include "orchestrator/method/samples.h"
#include "orchestrator/method/window.h"
#include "probes/probe.h"

enum {
	RECORD_MAX_BYTES = 8 << 20, /* tNN.json: 1,000 ranks with 4 KiB of evidence each, twice over
				     */
	ACK_SEARCH_MAX_BYTES = 64 << 20, /* output searched for an acknowledgement: the default log
					    bound */
	MATCH_LIMIT = 1000000, /* PCRE2 steps: a pattern that needs more is a bad pattern */
};

struct reader {
	const struct recipe *recipe;
	const struct stage_row *stage;
	const struct hypothesis_row *hyps;
	size_t n_hyps;
	const struct block_row *plan;
	const char *dir;
	struct attempt_files *out;
};

/* The first reason counts: what comes after it is mostly its consequence. */
static void __attribute__((format(printf, 2, 3)))
incomplete(struct attempt_files *a, const char *fmt, ...)
{
	struct buf text = {0};
	va_list ap;

	a->complete = false;
	if (a->reason)
		return;
	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	a->reason = buf_take(&text);
}

void ingest_unread(struct attempt_files *a, const struct err *e)
{
	if (e->code != ERR_READ || a->unread)
		return;
	free(a->reason);
	a->reason = xstrdup(e->text);
	a->complete = false;
	a->unread = true;
}

/* 0, or what was read does not count. */
static int end_of_reading(const struct attempt_files *a, const char *dir, struct err *e)
{
	return !a->unread ? 0
			  : err_set(e, ERR_READ,
				    "%s; if it stays so, move %s away: its block then runs again",
				    a->reason, dir);
}

static const struct knob *knob_of_arm(const struct reader *r, int64_t arm, const char **value)
{
	for (size_t i = 0; i < r->stage->n_arms; i++) {
		if (r->stage->arms[i].id != arm || !r->stage->arms[i].hypothesis)
			continue;
		for (size_t h = 0; h < r->n_hyps; h++)
			if (r->hyps[h].id == r->stage->arms[i].hypothesis) {
				*value = r->hyps[h].value;
				return recipe_knob(r->recipe, r->hyps[h].knob);
			}
	}
	return NULL;
}

/* Evidence: what /proc of each rank showed. */
static void read_rank(const struct json *rank, struct trial_result *t)
{
	int id = (int)json_i64(json_get(rank, "rank"), 0);
	const struct json *env = json_get(rank, "env"), *other = json_get(rank, "env_other");
	const struct json *argv = json_get(rank, "argv"), *maps = json_get(rank, "maps"), *j;
	const char *node = json_text(json_get(rank, "node"), "");
	char key[300];

	if (*node)
		trial_result_effective(t, id, EFFECTIVE_NODE, node, PROOF_DELIVERED);
	for (j = json_first(env); j; j = json_next(j)) {
		snprintf(key, sizeof key, "env.%s", json_key(j));
		trial_result_effective(t, id, key, json_text(j, ""), PROOF_DELIVERED);
	}
	for (j = json_first(other); j; j = json_next(j)) {
		snprintf(key, sizeof key, "envhash.%s", json_key(j));
		trial_result_effective(t, id, key, json_text(j, ""), PROOF_DELIVERED);
	}
	for (j = json_first(maps); j; j = json_next(j)) {
		const char *path = json_text(j, "");

		snprintf(key, sizeof key, "maps.%s", fs_basename(path));
		trial_result_effective(t, id, key, path, PROOF_EFFECTIVE);
	}
	if (argv) {
		_cleanup_free_ char *text = json_print(argv, false);

		trial_result_effective(t, id, "argv", text, PROOF_DELIVERED);
	}
}

/* "{value}" of an acknowledgement pattern becomes the literal value. */
static char *expand(const char *pattern, const char *value)
{
	const char *hole = strstr(pattern, "{value}");

	if (!hole)
		return xstrdup(pattern);
	return xasprintf("%.*s\\Q%s\\E%s", (int)(hole - pattern), pattern, value,
			 hole + strlen("{value}"));
}

/* The first match of the component's own line in the output, or NULL. */
static char *search_output(const char *path, const char *pattern, struct err *e)
{
	struct buf text = {0};
	PCRE2_SIZE at;
	int code, rc = -1;
	pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_MULTILINE,
				       &code, &at, NULL);
	pcre2_match_data *m;
	pcre2_match_context *mc;
	char *found = NULL;

	if (!re)
		return NULL;
	m = xchecked(pcre2_match_data_create_from_pattern(re, NULL));
	mc = xchecked(pcre2_match_context_create(NULL));
	pcre2_set_match_limit(mc, MATCH_LIMIT);
	if (fs_read(path, ACK_SEARCH_MAX_BYTES, &text, e) == 0 && text.data)
		rc = pcre2_match(re, (PCRE2_SPTR)text.data, text.len, 0, 0, m, mc);
	if (rc >= 0) {
		PCRE2_SIZE *o = pcre2_get_ovector_pointer(m);

		found = xstrndup(text.data + o[0], o[1] - o[0] > 200 ? 200 : o[1] - o[0]);
	}
	pcre2_match_context_free(mc);
	pcre2_match_data_free(m);
	pcre2_code_free(re);
	buf_free(&text);
	return found;
}

static void read_acknowledgement(const struct reader *r, const char *out_path,
				 const struct window *w, struct trial_result *t)
{
	const char *value = NULL;
	const struct knob *k = knob_of_arm(r, t->arm, &value);
	char key[160];
	size_t n;
	const struct window_fact *f = window_facts(w, &n);

	if (!k)
		return;
	for (size_t i = 0; k->proof.fact && i < n; i++)
		if (str_eq(f[i].key, k->proof.fact) && str_eq(f[i].text, value)) {
			snprintf(key, sizeof key, "ack.%s", k->name);
			trial_result_effective(t, f[i].rank < 0 ? 0 : f[i].rank, key, f[i].text,
					       PROOF_ACKNOWLEDGED);
		}
	if (k->proof.log_pattern) {
		_cleanup_free_ char *pattern = expand(k->proof.log_pattern, value);
		struct err e = {0};
		_cleanup_free_ char *line = search_output(out_path, pattern, &e);

		ingest_unread(r->out, &e);
		snprintf(key, sizeof key, "ack.%s", k->name);
		if (line)
			trial_result_effective(t, 0, key, line, PROOF_ACKNOWLEDGED);
	}
}

static enum probe_status run_probe(const struct reader *r, const char *name, const char *path,
				   struct window *w, struct buf *detail)
{
	const struct probe *p = probe_find(name);
	struct probe_context pc = {.file = path,
				   .pattern = r->recipe->workload.pattern,
				   .metric = r->recipe->objective};
	struct probe_sink sink = window_sink(w);
	struct err e = {0};
	enum probe_status s;

	if (!p) {
		buf_printf(detail, "no probe is called %s", name);
		return PROBE_FAILED;
	}
	s = probe_file(p, &pc, path, &sink, detail, &e);
	if (e.code)
		buf_str(detail, e.text);
	ingest_unread(r->out, &e);
	return s;
}

/* A made-up trial has its figures as JSON lines: nobody can write what an arbitrary pattern reads.
 */
static enum probe_status read_workload(const struct reader *r, const struct json *rec,
				       const char *trial_dir, struct window *w, struct buf *detail)
{
	const struct workload *wl = &r->recipe->workload;
	bool made_up = json_bool(json_get(rec, "made_up"), false);
	_cleanup_free_ char *out = fs_join(trial_dir, "out"),
			    *jsonl = fs_join(trial_dir, "metrics.jsonl");

	switch (made_up ? SOURCE_METRICS_FILE : wl->source) {
	case SOURCE_PROBE:
		return run_probe(r, wl->probe, out, w, detail);
	case SOURCE_PATTERN:
		return run_probe(r, "pattern", out, w, detail);
	case SOURCE_METRICS_FILE:
		return run_probe(r, "metrics_jsonl", jsonl, w, detail);
	}
	return PROBE_FAILED;
}

/* Components whose own words prove a setting, whatever the workload's format is. */
static const struct {
	const char *prefix, *probe;
} fact_sources[] = {{"nccl.", "nccl_log"}, {"ddp.", "torch_ddp"}};

static bool facts_are_asked(const struct recipe *r, const char *prefix)
{
	for (size_t i = 0; i < r->n_knobs; i++)
		if (r->knobs[i].proof.fact && str_starts(r->knobs[i].proof.fact, prefix))
			return true;
	return false;
}

/* They are read as soon as a knob asks for them. */
static void read_facts(const struct reader *r, const char *out, struct window *w)
{
	for (size_t i = 0; i < ARRAY_LEN(fact_sources); i++) {
		struct buf detail = {0};

		if (facts_are_asked(r->recipe, fact_sources[i].prefix))
			(void)run_probe(r, fact_sources[i].probe, out, w, &detail);
		buf_free(&detail);
	}
}

static void fail_trial(struct trial_result *t, char *reason)
{
	t->state = TRIAL_FAILED;
	free(t->reason);
	t->reason = reason;
}

/* Why the objective's value cannot take part in a comparison; NULL: it can. The store refuses what
 * is outside the catalogue's bounds, and effects are ratios: they need values above 0. */
static char *objective_fault(const struct reader *r, double v)
{
	const struct metric_def *def = metric_def_find(r->recipe->objective);

	if (v <= 0)
		return xasprintf("%s (%s) is %g and cannot be compared: it must be above 0",
				 r->recipe->objective, r->recipe->objective_stat, v);
	if (def && (v < def->min || v > def->max))
		return xasprintf("%s (%s) is %g, which cannot be: it must lie between %g and %g %s",
				 r->recipe->objective, r->recipe->objective_stat, v, def->min,
				 def->max, def->unit);
	return NULL;
}

/* A trial that ended well but did not measure is a failure of its arm, with the reason. */
static void judge_measurement(const struct reader *r, const struct window *w, enum probe_status s,
			      const char *detail, struct trial_result *t)
{
	const char *objective = r->recipe->objective, *nonfinite;
	double value = trial_result_get(t, objective, r->recipe->objective_stat);
	int64_t step = -1;
	char *fault;

	if (t->state != TRIAL_OK)
		return;
	nonfinite = window_nonfinite(w, "loss", &step);
	if (nonfinite)
		fail_trial(t, xasprintf("loss is %s at step %lld", nonfinite, (long long)step));
	else if (!isfinite(value))
		fail_trial(t, xasprintf("no value of %s (%s) in the measured window: the metrics "
					"are %s%s%s",
					objective, r->recipe->objective_stat, probe_status_name(s),
					*detail ? ": " : "", detail));
	else if ((fault = objective_fault(r, value)))
		fail_trial(t, fault);
}

/* Losses that are no number end the trial as failed: where a guard counts them and the workload
 * does not, one that ended well had none. */
static void count_nan(const struct reader *r, const struct window *w, struct trial_result *t)
{
	size_t n;

	if (!window_values(w, "loss", &n))
		return;
	for (size_t i = 0; i < r->recipe->n_guards; i++) {
		const struct guard *g = &r->recipe->guards[i];

		if (str_eq(g->metric, "nan_iters") && t->state == TRIAL_OK &&
		    isnan(trial_result_get(t, g->metric, g->stat)))
			trial_result_metric(t, g->metric, g->stat, "", 0);
	}
}

/* A figure of the whole trial: its value is its mean, too, so that listings of means show it. */
static void whole_trial(struct trial_result *t, const char *metric, double value)
{
	trial_result_metric(t, metric, "value", "", value);
	trial_result_metric(t, metric, "mean", "", value);
}

/* Does anything beside the objective come from the output? */
static bool reads_more(const struct recipe *r)
{
	return r->n_guards || r->second;
}

static void keep_curves(const struct reader *r, struct window *w)
{
	for (size_t i = 0; i < r->recipe->n_guards; i++)
		if (guard_needs_curve(&r->recipe->guards[i], r->recipe))
			window_keep_curve(w, r->recipe->guards[i].metric);
	if (r->stage->kind == STAGE_CONVERGE)
		window_keep_curve(w, r->recipe->converge.metric);
}

/* A log without times: steps of the window by the agent's clock, as their lines arrived. */
static void steps_by_clock(const struct json *rec, const struct workload *wl,
			   struct trial_result *t)
{
	int64_t from = json_i64(json_get(rec, "window_start_us"), 0),
		to = json_i64(json_get(rec, "window_end_us"), 0);

	if (wl->steps > 0 && from > 0 && to > from &&
	    isnan(trial_result_get(t, "throughput_steps_per_s", "mean")))
		trial_result_metric(t, "throughput_steps_per_s", "mean", "",
				    (double)wl->steps * 1e6 / (double)(to - from));
}

/* `notes`, which is taken and may be NULL, and one more. */
static char *join_notes(char *notes, const char *more)
{
	char *both = notes ? xasprintf("%s; %s", notes, more) : xstrdup(more);

	free(notes);
	return both;
}

/* `notes`, which is taken, and what contradicts the trials that were read before. */
static char *contradictions(const struct reader *r, char *notes, const struct trial_result *t)
{
	_cleanup_free_ char *more = derived_contradiction(r->out->trials, r->out->n, t);

	return more ? join_notes(notes, more) : notes;
}

/* What in its figures contradicts, heap; NULL nothing. */
static char *read_metrics(const struct reader *r, const struct json *rec, struct trial_result *t,
			  struct quality_trial *q)
{
	const struct workload wl = method_workload(r->recipe, r->stage->kind);
	char name[16];
	_cleanup_free_ char *dir = NULL, *out = NULL, *gpu = NULL;
	struct window *w = window_new(wl.warmup_steps, wl.steps), *samples;
	struct buf detail = {0};
	enum probe_status s;
	struct err e = {0};
	int devices = 0;
	char *notes;

	keep_curves(r, w);
	snprintf(name, sizeof name, "t%02d", t->slot);
	dir = fs_join(r->dir, name);
	out = fs_join(dir, "out");
	whole_trial(t, "trial_wall_s", (double)t->wall_us / 1e6);
	whole_trial(t, "trial_maxrss_mib", (double)t->maxrss_kib / 1024);
	/* Without steps the output need not hold anything, if only the run as a whole counts. */
	s = wl.whole_run && str_starts(r->recipe->objective, "trial_") && !reads_more(r->recipe)
		    ? PROBE_OK
		    : read_workload(r, rec, dir, w, &detail);
	read_facts(r, out, w);
	window_emit(w, t);
	window_emit_curves(w, t);
	steps_by_clock(rec, &wl, t);
	samples = samples_read(r->dir, rec, t, &e);
	gpu = samples_devices(r->dir, rec, t, &devices, &r->out->notes, &e);
	samples_other_nodes(r->dir, rec, t, &r->out->notes, &e);
	ingest_unread(r->out, &e);
	notes = contradictions(r, derived_metrics(r->recipe, gpu, devices, t), t);
	read_acknowledgement(r, out, w, t);
	judge_measurement(r, w, s, detail.data ? detail.data : "", t);
	count_nan(r, w, t);
	quality_read(w, samples, t, q);
	if (window_cut(w) || (samples && window_cut(samples)))
		notes = join_notes(notes, "it has more values than are kept: the last ones are "
					  "left out");
	window_free(samples);
	window_free(w);
	buf_free(&detail);
	return notes;
}

/* A step by the program's own account, in ms; NAN where it gives none. The median: one of them has
 * the profiler's start and end in it. */
static double own_step_ms(const struct reader *r, const struct json *rec, const char *dir)
{
	struct window *w = window_new(r->recipe->workload.warmup_steps, r->recipe->workload.steps);
	struct trial_result own = {0};
	struct buf detail = {0};
	double ms;

	read_workload(r, rec, dir, w, &detail);
	window_emit(w, &own);
	ms = trial_result_get(&own, "step_time_ms", "median");
	trial_result_done(&own);
	window_free(w);
	buf_free(&detail);
	return ms;
}

/* The trial was not timed: only what the profiler saw counts, and what the node did meanwhile. */
static char *read_profile(const struct reader *r, const struct json *rec, const char *trial,
			  struct trial_result *t)
{
	_cleanup_free_ char *own = fs_join(r->dir, trial), *dir = fs_join(own, "profile");
	struct err e = {0};
	char *note = NULL;

	profile_read(dir, own_step_ms(r, rec, own), t, &note, &e);
	window_free(samples_read(r->dir, rec, t, &e));
	ingest_unread(r->out, &e);
	return note;
}

/* A captured file must be what its record says: a workload is not charged for a file that was lost
 * or cut on its way to us. */
static bool file_is_whole(const struct reader *r, const struct json *rec, const char *member,
			  const char *dir, const char *name)
{
	const struct json *o = json_get(rec, member);
	const char *want = json_text(json_get(o, "xxh"), "");
	int64_t bytes = json_i64(json_get(o, "bytes"), 0), have;
	_cleanup_free_ char *rel = fs_join(dir, name), *path = fs_join(r->dir, rel);
	char hex[33] = "";
	struct err e = {0};

	have = fs_size(path);
	if (have < 0 && bytes == 0 && !str_eq(member, "out"))
		return true; /* metrics that nobody wrote */
	if (have < 0)
		incomplete(r->out, "%s is not there, its record says %lld bytes", rel,
			   (long long)bytes);
	else if (have != bytes)
		incomplete(r->out, "%s has %lld bytes, its record says %lld", rel, (long long)have,
			   (long long)bytes);
	else if (*want && fs_hash_file(path, hex, &e) < 0)
		incomplete(r->out, "%s", e.text);
	else if (*want && strcmp(want, hex) != 0)
		incomplete(r->out, "%s: its hash is not the one in the trial's record", rel);
	else
		return true;
	ingest_unread(r->out, &e);
	return false;
}

static void read_state(const struct reader *r, const struct json *rec, struct trial_result *t)
{
	const char *state = json_text(json_get(rec, "state"), ""),
		   *reason = json_text(json_get(rec, "reason"), "");

	t->reason = *reason ? xstrdup(reason) : NULL;
	if (!trial_state_parse(state, &t->state)) {
		t->state = TRIAL_VOID;
		incomplete(r->out, "t%02d.json: state \"%.40s\" is no word of a trial", t->slot,
			   state);
	}
	switch (t->state) {
	case TRIAL_OK:
	case TRIAL_FAILED:
		return;
	case TRIAL_VOID:
	case TRIAL_LOST:
		incomplete(r->out, "trial of slot %d is %s: %s", t->slot,
			   trial_state_name(t->state), *reason ? reason : "no reason given");
	}
}

/* "exited with 1; its output, line 12: out of device memory: 8.00 GiB more was asked for" */
static void name_cause(const struct reader *r, const char *dir, struct trial_result *t)
{
	_cleanup_free_ char *rel = fs_join(dir, "out"), *path = fs_join(r->dir, rel), *cause = NULL;
	struct err e = {0};

	if (t->state == TRIAL_FAILED)
		cause = cause_of_failure(path, &e);
	ingest_unread(r->out, &e);
	if (cause)
		fail_trial(t, t->reason ? xasprintf("%s; its output, %s", t->reason, cause)
					: xasprintf("its output, %s", cause));
}

/* What a workload left behind or printed beyond its bound did no harm, and its owner should know.
 */
static void read_remarks(const struct json *rec, const char *notes, struct trial_result *t)
{
	const struct json *out = json_get(rec, "out");
	int64_t left = json_i64(json_get(rec, "leftovers"), 0);
	struct buf b = {0};

	if (left > 0)
		buf_printf(&b, "it left %lld process%s running, which %s ended", (long long)left,
			   left == 1 ? "" : "es", left == 1 ? "was" : "were");
	if (json_bool(json_get(out, "cut"), false))
		buf_printf(&b, "%sit printed %lld bytes, of which head and tail are kept",
			   b.len ? "; " : "", (long long)json_i64(json_get(out, "total_bytes"), 0));
	if (notes)
		buf_printf(&b, "%s%s", b.len ? "; " : "", notes);
	if (b.len && t->reason) {
		char *both = xasprintf("%s; %s", t->reason, b.data);

		free(t->reason);
		t->reason = both;
	} else if (b.len) {
		t->reason = xstrdup(b.data);
	}
	buf_free(&b);
}

static void read_record(const struct reader *r, const struct json *rec, struct trial_result *t,
			struct quality_trial *q)
{
	const struct json *ranks = json_get(rec, "ranks"), *rank;
	_cleanup_free_ char *notes = NULL;
	char dir[24];

	t->arm = json_i64(json_get(rec, "arm"), 0);
	t->repeat = (int)json_i64(json_get(rec, "repeat"), 0);
	if (!slot_kind_parse(json_text(json_get(rec, "kind"), "timed"), &t->kind))
		t->kind = SLOT_TIMED;
	read_state(r, rec, t);
	t->exit_status = (int)json_i64(json_get(rec, "exit"), 0);
	t->term_signal = (int)json_i64(json_get(rec, "signal"), 0);
	t->start_us = json_i64(json_get(rec, "start_us"), 0);
	t->wall_us = json_i64(json_get(rec, "wall_us"), 0);
	t->user_us = json_i64(json_get(rec, "user_us"), 0);
	t->sys_us = json_i64(json_get(rec, "sys_us"), 0);
	t->maxrss_kib = json_i64(json_get(rec, "maxrss_kib"), 0);
	t->node = xstrdup(json_text(json_at(json_get(rec, "nodes"), 0), ""));
	snprintf(dir, sizeof dir, "t%02d", t->slot);
	t->log_path = xasprintf("%s/%s/out", r->plan->dir, dir);
	if (!r->out->complete || !file_is_whole(r, rec, "out", dir, "out") ||
	    !file_is_whole(r, rec, "metrics", dir, "metrics.jsonl"))
		return;
	for (rank = json_first(ranks); rank; rank = json_next(rank))
		read_rank(rank, t);
	samples_missing_ranks(rec, t);
	if (t->kind == SLOT_TIMED)
		notes = read_metrics(r, rec, t, q);
	else if (r->stage->kind == STAGE_PROFILE)
		notes = read_profile(r, rec, dir, t);
	name_cause(r, dir, t);
	read_remarks(rec, notes, t);
}

/* NULL, or why the record is not the one that the manifest means. */
static const char *record_fault(const struct reader *r, const struct json *rec, const char *want,
				const char *have, int slot)
{
	if (*want && strcmp(want, have) != 0)
		return "its hash is not the one in done.json";
	if (!str_eq(json_text(json_get(rec, "format"), ""), "fettle.trial/1"))
		return "format is not fettle.trial/1";
	if (!str_eq(json_text(json_get(rec, "token"), ""), r->plan->token))
		return "its token is that of another attempt";
	if (json_i64(json_get(rec, "slot"), -1) != slot)
		return "it is the record of another slot";
	return NULL;
}

static void read_slot(const struct reader *r, const struct json *entry, struct trial_result *t,
		      struct quality_trial *q)
{
	const char *want = json_text(json_get(entry, "xxh"), ""), *fault;
	char name[24], hex[33];
	_cleanup_free_ char *path = NULL;
	_cleanup_(json_freep) struct json *rec = NULL;
	struct err e = {0};

	t->slot = (int)json_i64(json_get(entry, "slot"), -1);
	snprintf(name, sizeof name, "t%02d.json", t->slot);
	path = fs_join(r->dir, name);
	if (fs_hash_file(path, hex, &e) < 0 ||
	    json_read_file(path, RECORD_MAX_BYTES, &rec, &e) < 0) {
		incomplete(r->out, "record of slot %d: %s", t->slot, e.text);
		ingest_unread(r->out, &e);
		return;
	}
	fault = record_fault(r, rec, want, hex, t->slot);
	if (fault)
		incomplete(r->out, "%s: %s", name, fault);
	else
		read_record(r, rec, t, q);
}

static const struct trial_result *trial_of_slot(const struct attempt_files *a, int slot)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->trials[i].slot == slot)
			return &a->trials[i];
	return NULL;
}

/* A block counts whole or not at all: each planned slot once, of the planned arm, and no other. */
static void check_plan(const struct reader *r)
{
	const struct block_row *b = r->plan;
	struct attempt_files *a = r->out;

	for (size_t i = 0; i < b->n_slots && a->complete; i++) {
		const struct slot *want = &b->slots[i];
		const struct trial_result *t = trial_of_slot(a, want->index);

		if (!t)
			incomplete(a, "done.json: slot %d was planned and is missing", want->index);
		else if (t->arm != want->arm || t->repeat != want->repeat || t->kind != want->kind)
			incomplete(a,
				   "t%02d.json: arm %lld, repeat %d, %s; planned were arm %lld, "
				   "repeat %d, %s",
				   want->index, (long long)t->arm, t->repeat,
				   slot_kind_name(t->kind), (long long)want->arm, want->repeat,
				   slot_kind_name(want->kind));
	}
}

static void read_manifest(const struct reader *r, const struct json *done)
{
	const struct json *slots = json_get(done, "slots"), *nodes = json_get(done, "nodes"), *j;
	struct attempt_files *a = r->out;
	size_t n = json_len(slots);

	a->complete = str_eq(json_text(json_get(done, "state"), ""), "complete");
	a->partial = !a->complete;
	if (!a->complete)
		incomplete(a, "partial attempt: %s",
			   json_text(json_get(done, "reason"), "no reason given"));
	if (!str_eq(json_text(json_get(done, "token"), ""), r->plan->token)) {
		incomplete(a, "done.json: its token is that of another attempt");
		return;
	}
	a->start_us = json_i64(json_get(done, "start_us"), 0);
	a->end_us = json_i64(json_get(done, "end_us"), 0);
	if (n != r->plan->n_slots)
		incomplete(a, "done.json: it lists %zu slots, %zu were planned", n,
			   r->plan->n_slots);
	for (j = json_first(nodes); j; j = json_next(j))
		strv_add(&a->nodes, json_text(j, ""));
	for (j = json_first(json_get(done, "switches")); j; j = json_next(j))
		kvs_set(&a->switches, json_key(j), json_text(j, ""));
	if (!a->complete)
		return;
	a->trials = xcalloc(n + 1, sizeof *a->trials);
	a->quality = xcalloc(n + 1, sizeof *a->quality);
	for (j = json_first(slots); j && a->complete; j = json_next(j), a->n++)
		read_slot(r, j, &a->trials[a->n], &a->quality[a->n]);
	check_plan(r);
}

int ingest_attempt(const struct recipe *r, const struct stage_row *s,
		   const struct hypothesis_row *hyps, size_t n_hyps, const struct block_row *plan,
		   const char *dir, struct attempt_files *out, struct err *e)
{
	_cleanup_free_ char *path = fs_join(dir, "done.json");
	_cleanup_(json_freep) struct json *done = NULL;
	struct reader reader = {.recipe = r,
				.stage = s,
				.hyps = hyps,
				.n_hyps = n_hyps,
				.plan = plan,
				.dir = dir,
				.out = out};
	struct err why = {0};

	memset(out, 0, sizeof *out);
	if (fs_hash_file(path, out->hash, &why) == 0)
		json_read_file(path, RECORD_MAX_BYTES, &done, &why);
	ingest_unread(out, &why);
	if (why.code == ERR_NOT_FOUND)
		return err_set(e, ERR_NOT_FOUND, "%s: not there", path);
	if (why.code)
		incomplete(out, "%s", why.text);
	else if (!str_eq(json_text(json_get(done, "format"), ""), "fettle.done/1"))
		incomplete(out, "done.json: format is not fettle.done/1");
	else
		read_manifest(&reader, done);
	if (out->complete)
		fingerprint_read(r, dir, plan->token, out);
	return end_of_reading(out, dir, e);
}

/* -- results without files --------------------------------------------------------------------- */

/* One series after the other: the steps of the first are those of all. */
static void take_steps(const struct trial_steps *from, struct window *w)
{
	struct probe_sink sink = window_sink(w);

	for (size_t i = 0; i < from->n; i++)
		for (size_t k = 0; k < from->v[i].n; k++) {
			double v = from->v[i].v[k];
			struct probe_value p = {.metric = from->v[i].metric,
						.value = v,
						.missing = isnan(v)   ? "nan"
							   : isinf(v) ? "inf"
								      : NULL,
						.step = (int64_t)k + 1,
						.t_us = -1,
						.rank = -1};

			sink.value(sink.ctx, &p);
		}
}

/* What the node did is among the trial's metrics; how many CPUs it has is a fact. */
static struct window *node_facts(const struct trial_steps *from)
{
	struct window *w = window_new(0, 0);
	struct probe_sink sink = window_sink(w);
	char text[16];
	struct probe_fact f = {.key = "host.ncpu", .text = text, .rank = -1};

	snprintf(text, sizeof text, "%d", from->ncpu);
	sink.fact(sink.ctx, &f);
	return w;
}

static void read_steps(const struct reader *r, const struct trial_steps *from,
		       struct trial_result *t, struct quality_trial *q)
{
	const struct workload wl = method_workload(r->recipe, r->stage->kind);
	struct window *w = window_new(wl.warmup_steps, wl.steps), *node = NULL;

	keep_curves(r, w);
	take_steps(from, w);
	window_emit(w, t);
	window_emit_curves(w, t);
	judge_measurement(r, w, PROBE_OK, "", t);
	count_nan(r, w, t);
	if (from->ncpu > 0)
		node = node_facts(from);
	quality_read(w, node, t, q);
	window_free(node);
	window_free(w);
}

void ingest_steps(const struct recipe *recipe, const struct stage_row *s, struct attempt_files *a)
{
	const struct reader r = {.recipe = recipe, .stage = s};

	if (!a->steps)
		return;
	a->quality = xcalloc(a->n + 1, sizeof *a->quality);
	for (size_t i = 0; i < a->n; i++)
		if (a->steps[i].n)
			read_steps(&r, &a->steps[i], &a->trials[i], &a->quality[i]);
}

/* -- what an attempt left that did not come to its end ------------------------------------------
 */

/* The nodes are those that each record names; they are the allocation's. */
static void prefix_nodes(const struct json *rec, struct strv *nodes)
{
	const struct json *v = json_get(rec, "nodes");

	for (const struct json *j = json_first(v); nodes->n == 0 && j; j = json_next(j))
		strv_add(nodes, json_text(j, ""));
}

static void read_prefix_slot(const struct reader *r, int slot, struct buf *hashes)
{
	struct attempt_files *a = r->out;
	struct trial_result *t = &a->trials[a->n];
	char name[24], hex[33] = "";
	_cleanup_free_ char *path = NULL;
	_cleanup_(json_freep) struct json *rec = NULL;
	struct err e = {0};
	const char *fault;

	t->slot = slot;
	snprintf(name, sizeof name, "t%02d.json", slot);
	path = fs_join(r->dir, name);
	if (fs_hash_file(path, hex, &e) == 0)
		json_read_file(path, RECORD_MAX_BYTES, &rec, &e);
	ingest_unread(a, &e);
	if (e.code)
		incomplete(a, "record of slot %d: %s", slot, e.text);
	else if ((fault = record_fault(r, rec, "", hex, slot)))
		incomplete(a, "%s: %s", name, fault);
	else
		read_record(r, rec, t, &a->quality[a->n]);
	prefix_nodes(rec, &a->nodes);
	buf_printf(hashes, "%d %s\n", slot, hex);
	a->n++;
}

int ingest_prefix(const struct recipe *r, const struct stage_row *s,
		  const struct hypothesis_row *hyps, size_t n_hyps, const struct block_row *plan,
		  const char *dir, struct attempt_files *out, struct err *e)
{
	struct reader reader = {.recipe = r,
				.stage = s,
				.hyps = hyps,
				.n_hyps = n_hyps,
				.plan = plan,
				.dir = dir,
				.out = out};
	struct buf hashes = {0};

	memset(out, 0, sizeof *out);
	out->complete = true;
	out->trials = xcalloc(plan->n_slots + 1, sizeof *out->trials);
	out->quality = xcalloc(plan->n_slots + 1, sizeof *out->quality);
	for (size_t i = 0; i < plan->n_slots && out->complete; i++)
		read_prefix_slot(&reader, plan->slots[i].index, &hashes);
	check_plan(&reader);
	if (out->complete)
		fingerprint_read(r, dir, plan->token, out);
	fs_hash(hashes.data ? hashes.data : "", hashes.len, out->hash);
	buf_free(&hashes);
	return end_of_reading(out, dir, e);
}
