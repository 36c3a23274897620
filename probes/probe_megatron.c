/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Training logs of Megatron-LM and what descends from it:
 *
 *    [2026-11-28 02:14:07] iteration 10/ 100 | consumed samples: 20480 | elapsed time per iteration
 *   (ms): 15448.5 | ... | global batch size: 2048 | lm loss: 1.34E+01 | ... nan iterations: 0 |
 *   time (ms) | forward-compute: 32054.16 | ... | batch-generator: 182.63
 *   (min, max) time across ranks (ms):
 *       batch-generator ......: (12.31, 98.77)
 *   times across ranks (ms):
 *     forward-backward:
 *        rank  3: 812.5
 *   [Rank 0] (after 1 iterations) memory (MB) | allocated: .. | max reserved: ..
 *    validation loss at iteration 10 | lm loss value: 9.7E+00 | lm loss PPL: .. |
 *
 * Fields and their order differ by version, so a record is split at "|" and read by key. Timers are
 * sums over micro-batches, means over the log interval; they go to phase_time_ms (label phase, and
 * stat when the log gives min and max over ranks). batch-generator is the wait for data too.
 */
#include <string.h>
#include <strings.h>

#include "orchestrator/base/mem.h"
#include "probes/bytes.h"
#include "probes/train.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* What a number is written with. */
static bool is_of_number(char c)
{
	return is_digit(c) || span_is_blank(c) || c == '.' || c == 'e' || c == 'E' || c == '+' ||
	       c == '-';
}

/* "iteration   10/   100 |" at t.s: its number; behind moves to the first field. */
static bool record_at(struct span t, int64_t *step, struct span *behind)
{
	struct span f;

	t = (struct span){t.s + strlen("iteration"), t.n - strlen("iteration")};
	if (!t.n || (t.s[0] != ' ' && t.s[0] != '='))
		return false;
	t = (struct span){t.s + 1, t.n - 1};
	if (!span_next(&t, "/", &f) || !num_whole_i64(f, step) || *step < 0)
		return false;
	if (!span_next(&t, "|", &f) || !t.s)
		return false;
	*behind = t;
	return num_whole_i64(f, &(int64_t){0}) || span_eq(span_trim(f), "infinity");
}

/* The last record of the line: an earlier one was cut by another writer. Nothing but a number
 * stands between the word and its slash, so it is the slashes that are looked for: there are few.
 */
static int find_records(struct span t, int64_t *step, struct span *fields, const char **start)
{
	static const char word[] = "iteration";
	const size_t k = sizeof(word) - 1;
	const char *end = t.s + t.n, *from = t.s, *slash = t.s, *p;
	int n = 0;

	for (; (slash = memchr(slash, '/', (size_t)(end - slash))); from = ++slash) {
		struct span behind;
		int64_t s;

		for (p = slash; p > from && is_of_number(p[-1]);)
			p--;
		p -= p > from && p[-1] == '=';
		if ((size_t)(p - from) < k || !span_same(p - k, word, k) ||
		    !record_at((struct span){p - k, (size_t)(end - p) + k}, &s, &behind))
			continue;
		*step = s;
		*fields = behind;
		*start = p - k;
		n++;
	}
	return n;
}

/* The rank of "...0: iteration": the prefix of a writer that began within another one's line. */
static void rank_before(struct emit *o, const char *text, const char *start)
{
	const char *p = start, *end;
	double rank;

	while (p > text && p[-1] == ' ')
		p--;
	if (p == text || *--p != ':')
		return;
	end = p;
	while (p > text && is_digit(p[-1]) && end - p < 7)
		p--;
	if (p < end && num_whole((struct span){p, (size_t)(end - p)}, &rank))
		o->rank = (int)rank;
}

/* "key=value", or "key value" of what descends from the first Megatron. */
static void split_fork(struct span f, struct span *key, struct span *value)
{
	const char *p = memrchr(f.s, '=', f.n);

	f = span_trim(f);
	if (!p)
		p = memrchr(f.s, ' ', f.n);
	if (!p)
		return;
	*key = span_trim((struct span){f.s, (size_t)(p - f.s)});
	*value = span_trim((struct span){p + 1, (size_t)(f.s + f.n - p - 1)});
}

/* A field counts only when its closing "|" is there. */
static bool next_field(struct span *t, struct span *key, struct span *value)
{
	const char *colon;
	struct span f;

	if (!span_next(t, "|", &f) || !t->s)
		return false;
	*key = *value = (struct span){"", 0};
	colon = memrchr(f.s, ':', f.n);
	if (!colon) {
		split_fork(f, key, value);
		return true;
	}
	*key = span_trim((struct span){f.s, (size_t)(colon - f.s)});
	*value = (struct span){colon + 1, (size_t)(f.s + f.n - colon) - 1};
	return true;
}

enum field { PLAIN, STEP_TIME, BATCH, RATE, LOSS_SCALE };

/* Each at the place of its length, which no two have. */
#define FIELD(key, metric, kind) [sizeof(key) - 1] = {key, metric, kind}

static const struct {
	const char *key, *metric;
	enum field kind;
} fields_of_record[] = {
	FIELD("elapsed time per iteration (ms)", "step_time_ms", STEP_TIME),
	FIELD("throughput per GPU (TFLOP/s/GPU)", "tflops_per_gpu", PLAIN),
	FIELD("TFLOPs", "tflops_per_gpu", PLAIN),
	FIELD("energy per GPU (J/iter/GPU)", "gpu_energy_j_per_step", PLAIN),
	FIELD("power per GPU (W/GPU)", "gpu_power_w", PLAIN),
	FIELD("lm loss", "loss", PLAIN),
	FIELD("loss", "loss", PLAIN),
	FIELD("loss scale", "loss_scale", LOSS_SCALE),
	FIELD("grad norm", "grad_norm", PLAIN),
	FIELD("consumed samples", "consumed_samples", PLAIN),
	FIELD("consumed tokens", "consumed_tokens", PLAIN),
	FIELD("global batch size", "samples_per_step", BATCH),
	FIELD("samples per second", NULL, RATE),
	FIELD("number of skipped iterations", "skipped_iters", PLAIN),
	FIELD("number of nan iterations", "nan_iters", PLAIN),
};
#undef FIELD

struct record {
	double step_ms, batch, samples_per_s; /* 0: not in the line */
};

/* The first of "9836.3/9790.1" (now and the mean so far) and of "496.3 (avg 496.1)". */
static bool first_of(struct span *value)
{
	struct span rest;
	double v;
	size_t used;

	*value = span_trim(*value);
	if (num_scan(*value, &v, &used) != NUM_FINITE)
		return false;
	rest = (struct span){value->s + used, value->n - used};
	value->n = used;
	return span_starts(rest, "/") || span_starts(rest, " (avg ");
}

static void take_value(struct emit *o, size_t i, struct span value, struct record *rec,
		       const struct emit_tag *tag)
{
	const char *metric = fields_of_record[i].metric;
	enum field kind = fields_of_record[i].kind;
	double v;

	if (!num_whole(value, &v)) {
		if (!metric || emit_token(o, metric, value, 1, tag) || kind == LOSS_SCALE)
			return;
		if (first_of(&value))
			take_value(o, i, value, rec, tag);
		else
			emit_bad(o, "a field of an iteration holds no number");
		return;
	}
	if (kind == LOSS_SCALE && v < 0)
		emit_missing(o, metric, "not used", tag);
	else if (metric)
		emit_value(o, metric, v, tag);
	if (kind == STEP_TIME)
		rec->step_ms = v;
	else if (kind == BATCH)
		rec->batch = v;
	else if (kind == RATE)
		rec->samples_per_s = v;
}

static bool take_known(struct emit *o, struct span key, struct span value, struct record *rec,
		       const struct emit_tag *tag)
{
	const char *known = key.n < ARRAY_LEN(fields_of_record) ? fields_of_record[key.n].key
								: NULL;

	if (!known || !span_same(key.s, known, key.n))
		return false;
	take_value(o, key.n, value, rec, tag);
	return true;
}

/* What forks call their fields, "_" and "-" written as blanks: Megatron-DeepSpeed's, bigcode's,
 * GPT-NeoX, Primus (AMD), Argonne's, FlagScale, Pai. */
#define FIELD(key, metric, scale)                     \
	{                                             \
		{key, sizeof(key) - 1}, metric, scale \
	}

static const struct {
	struct span key;
	const char *metric;
	double scale;
} fork_fields[] = {
	FIELD("elapsed time per iteration (s)", "step_time_ms", 1000),
	FIELD("elapsed time per iteration ms", "step_time_ms", 1),
	FIELD("compute per GPU (TFLOP/s/GPU)", "tflops_per_gpu", 1),
	FIELD("approx flops per GPU", "tflops_per_gpu", 1e-12), /* "150.3TFLOPS" */
	FIELD("[LM]TFLOPs", "tflops_per_gpu", 1),
	FIELD("[LM] TFLOPs", "tflops_per_gpu", 1),
	FIELD("tokens per GPU (tokens/s/GPU)", "throughput_tokens_per_s_per_gpu", 1),
	FIELD("tokens/s/GPU inst/harmonic mean", "throughput_tokens_per_s_per_gpu", 1),
	FIELD("tokens/sec/GPU", "throughput_tokens_per_s_per_gpu", 1),
	FIELD("tokens per second per GPU", "throughput_tokens_per_s_per_gpu", 1),
	FIELD("tokens per GPU per second (tgs)", "throughput_tokens_per_s_per_gpu", 1),
	FIELD("tokens per GPU per second tgs", "throughput_tokens_per_s_per_gpu", 1),
	FIELD("throughput (token/sec/GPU)", "throughput_tokens_per_s_per_gpu", 1),
	FIELD("TGS", "throughput_tokens_per_s_per_gpu", 1),
	/* "150.03GB/..." */
	FIELD("hip mem usage/free/total/usage ratio", "gpu_mem_used_mib", 1024),
};

static void take_fork_value(struct emit *o, size_t i, struct span value, struct record *rec,
			    const struct emit_tag *tag)
{
	const char *metric = fork_fields[i].metric;
	struct span now;
	double v;

	value = span_trim(value);
	if (!span_next(&value, "/(", &now) ||
	    (!factor_scan(now, "FLOPS", &v) && num_scan(now, &v, NULL) != NUM_FINITE)) {
		emit_bad(o, "a field of an iteration holds no number");
		return;
	}
	v *= fork_fields[i].scale;
	emit_value(o, metric, v, tag);
	if (str_eq(metric, "step_time_ms"))
		rec->step_ms = v;
}

enum { FORK_KEY_MAX = 40 };

static void take_field(struct emit *o, struct span key, struct span value, struct record *rec,
		       const struct emit_tag *tag)
{
	char plain[FORK_KEY_MAX];

	if (take_known(o, key, value, rec, tag) || key.n > sizeof(plain))
		return;
	if (memchr(key.s, '_', key.n) || memchr(key.s, '-', key.n)) {
		for (size_t i = 0; i < key.n; i++)
			plain[i] = key.s[i] == '_' || key.s[i] == '-' ? ' ' : key.s[i];
		key.s = plain;
		if (take_known(o, key, value, rec, tag))
			return;
	}
	for (size_t i = 0; i < ARRAY_LEN(fork_fields); i++)
		if (fork_fields[i].key.n == key.n &&
		    strncasecmp(key.s, fork_fields[i].key.s, key.n) == 0) {
			take_fork_value(o, i, value, rec, tag);
			return;
		}
}

static void emit_throughput(struct emit *o, const struct train_state *st, const struct record *rec,
			    const struct emit_tag *tag)
{
	double rate = rec->samples_per_s;

	st->shared->step_time = st->shared->step_time || rec->step_ms > 0;
	if (rec->batch > 0 && rec->step_ms > 0)
		rate = rec->batch * 1000 / rec->step_ms;
	if (rate <= 0)
		return;
	st->shared->samples_per_s = true;
	emit_value(o, "throughput_samples_per_s", rate, tag);
	if (st->seq_length > 0)
		emit_value(o, "throughput_tokens_per_s", rate * st->seq_length, tag);
}

/* A line that ends inside its record shows it by the missing "|". */
static bool ends_whole(const struct input_line *l)
{
	struct span t = span_trim(input_span(l));

	return (l->complete && !l->cut) || (t.n && t.s[t.n - 1] == '|');
}

static bool has_time(struct span t)
{
	struct span at = span_after(t, "elapsed"), unit;

	if (!at.s)
		return false;
	t = (struct span){at.s - strlen("elapsed"), at.n + strlen("elapsed")};
	unit = span_after(t, "elapsed time per iteration (");
	return span_starts(unit, "ms):") || span_starts(unit, "s):") ||
	       (!unit.s && span_has(t, "elapsed_time_per_iteration_ms="));
}

/* GPT-NeoX writes "samples/sec: 51.234 | iteration ...". */
static double rate_before(const struct input_line *l, const char *start)
{
	struct span t = {l->text, (size_t)(start - l->text)};
	double v;

	return train_number(l, t, "samples/sec: ", "|", &v) ? v : 0;
}

static bool iteration_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct emit_tag tag = EMIT_NONE;
	struct record rec = {0};
	struct span t = input_span(l), key, value, f = {NULL, 0};
	const char *start = NULL;
	int n = find_records(t, &tag.step, &f, &start);

	if (!n) {
		if (!has_time(t))
			return false;
		emit_bad(o, "an iteration without its head: two writers in one line?");
		return true;
	}
	/* NeMo counts "iteration 0/999 |" too. */
	if (!span_has(f, "consumed samples:") && !has_time(f) && n == 1 &&
	    span_has(t, "Training epoch "))
		return false;
	if (n > 1)
		emit_bad(o, "an iteration is cut by another one: two writers in one line?");
	if (!ends_whole(l) || !has_time(f)) {
		emit_bad(o, "an iteration that is cut");
		return true;
	}
	rank_before(o, l->text, start);
	st->step = tag.step;
	st->block = 0;
	buf_clear(&st->held);
	while (next_field(&f, &key, &value))
		take_field(o, key, value, &rec, &tag);
	if (!rec.batch)
		rec.samples_per_s = rec.samples_per_s > 0 ? rec.samples_per_s
							  : rate_before(l, start);
	emit_throughput(o, st, &rec, &tag);
	return true;
}

/* One timer; `stat` NULL for the only value of it. */
static void emit_timer(struct emit *o, const struct train_state *st, struct span name,
		       struct span value, const char *stat)
{
	struct emit_labels labels;
	struct emit_tag tag = {.step = st->step, .t_us = -1};
	bool whole_stat = !stat || !str_eq(stat, "min");
	double v;

	labels.n = 0;
	emit_label(&labels, "phase", name);
	if (stat)
		emit_label(&labels, "stat", span_of(stat));
	tag.labels = labels.v;
	tag.n_labels = labels.n;
	if (!emit_token(o, "phase_time_ms", value, 1, &tag)) {
		emit_bad(o, "a timer without a number");
		return;
	}
	tag.n_labels = 0;
	/* 0.00: another engine fetched the batch (DeepSpeed's pipeline). */
	if (whole_stat && (span_eq(name, "batch-generator") || span_eq(name, "batch generator")) &&
	    !(num_whole(value, &v) && v == 0))
		emit_token(o, "data_wait_ms", value, 1, &tag);
	if (whole_stat && span_eq(name, "save-checkpoint"))
		emit_token(o, "ckpt_time_s", value, 1e-3, &tag);
}

/* "time (ms) | name: value | name: value"; the last one has no closing stroke. */
static bool timer_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_trim(input_span(l)), f;

	if (!span_starts(t, "time (ms)") || !span_next(&t, "|", &f) ||
	    !span_eq(span_trim(f), "time (ms)"))
		return false;
	while (span_next(&t, "|", &f)) {
		struct span rest = span_trim(f), name;

		if (!span_next(&rest, ":", &name) || !rest.s)
			continue;
		if (train_is_whole(l, rest))
			emit_timer(o, st, name, span_trim(rest), NULL);
		else
			emit_bad(o, "a timer that is cut");
	}
	return true;
}

enum { BLOCK_MIN_MAX = 1, BLOCK_MAX, BLOCK_MIN, BLOCK_RANKS };

static bool span_ends(struct span t, const char *word)
{
	size_t k = strlen(word);

	return t.n >= k && memcmp(t.s + t.n - k, word, k) == 0;
}

static bool block_head(struct train_state *st, struct span t)
{
	static const struct {
		const char *text;
		int block;
	} heads[] = {{"(min, max) time across ranks (ms):", BLOCK_MIN_MAX},
		     {"max time across ranks (ms):", BLOCK_MAX},
		     {"min time across ranks (ms):", BLOCK_MIN},
		     {"times across ranks (ms):", BLOCK_RANKS}};

	if (!t.n || t.s[t.n - 1] != ':')
		return false;
	/* Behind a logger's name too: "INFO:megatron.core.timers:(min, max) ...". */
	for (size_t i = 0; i < ARRAY_LEN(heads); i++)
		if (span_ends(t, heads[i].text)) {
			st->block = heads[i].block;
			buf_clear(&st->held);
			return true;
		}
	return false;
}

/* "(min, max)" of a timer. */
static void emit_min_max(struct emit *o, const struct train_state *st, struct span name,
			 struct span t)
{
	struct span min;

	if (t.n < 2 || t.s[0] != '(' || t.s[t.n - 1] != ')') {
		emit_bad(o, "a timer without (min, max)");
		return;
	}
	t = (struct span){t.s + 1, t.n - 2};
	if (span_next(&t, ",", &min) && t.s) {
		emit_timer(o, st, name, min, "min");
		emit_timer(o, st, name, t, "max");
	}
}

/* "    name .......: value": the dots tell it from other indented lines, which may stand between.
 */
static bool timer_name(struct span *t, struct span *name)
{
	size_t n;

	if (t->n < 5 || memcmp(t->s, "    ", 4) != 0 || !span_next(t, ":", name) || !t->s)
		return false;
	*name = span_trim(*name);
	n = name->n;
	while (name->n && (name->s[name->n - 1] == '.' || name->s[name->n - 1] == ' '))
		name->n--;
	*t = span_trim(*t);
	return name->n > 0 && name->n < n;
}

/* "  forward-backward:", then "     rank  3: 812.5" for each rank. */
static bool rank_timer(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l), name, value = span_after(t, "rank "), rank;
	double n;

	if (!t.n || t.s[0] != ' ' || !span_next(&t, ":", &name) || !t.s)
		return false;
	name = span_trim(name);
	if (!span_trim(t).n && name.n && !memchr(name.s, ' ', name.n) && l->complete) {
		buf_clear(&st->held);
		buf_put(&st->held, name.s, name.n);
		return true;
	}
	if (!st->held.len || !value.s || name.s + strlen("rank ") > value.s ||
	    !span_next(&value, ":", &rank) || !value.s || !num_whole(rank, &n) || n < 0 ||
	    n > 1e7 || !train_is_whole(l, value))
		return false;
	o->rank = (int)n;
	emit_timer(o, st, (struct span){st->held.data, st->held.len}, span_trim(value), NULL);
	return true;
}

/* A block of timers lasts until the next one or the next iteration. */
static bool block_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l), name;

	if (block_head(st, span_trim(t)))
		return true;
	if (st->block == BLOCK_RANKS)
		return rank_timer(st, o, l);
	if (!st->block || !timer_name(&t, &name))
		return false;
	/* In early 2023 the block of the largest times alone had the headline of both. */
	if (st->block == BLOCK_MIN_MAX && !(l->complete && num_whole(t, &(double){0})))
		emit_min_max(o, st, name, t);
	else if (train_is_whole(l, t))
		emit_timer(o, st, name, t, st->block == BLOCK_MIN ? "min" : "max");
	return true;
}

/* "[Rank 0] (after 1 iterations) memory (MB) | allocated: .. |", in 2020 without the rank; MB of
 * 2^20 bytes. Megatron-Bridge: "memory (GB) | mem-allocated-gigabytes: .. |", GB of 10^9. */
static bool memory_line(struct emit *o, const struct input_line *l)
{
	static const struct {
		const char *key, *metric;
		double scale;
	} fields[] = {{"allocated", "mem_allocated_gib", 1.0 / 1024},
		      {"max allocated", "mem_peak_allocated_gib", 1.0 / 1024},
		      {"reserved", "mem_reserved_gib", 1.0 / 1024},
		      {"max reserved", "mem_peak_reserved_gib", 1.0 / 1024},
		      {"mem-allocated-gigabytes", "mem_allocated_gib", 1e9 / (1 << 30)},
		      {"mem-reserved-gigabytes", "mem_reserved_gib", 1e9 / (1 << 30)},
		      {"mem-max-allocated-gigabytes", "mem_peak_allocated_gib", 1e9 / (1 << 30)},
		      {"mem-max-active-gigabytes", "mem_peak_active_gib", 1e9 / (1 << 30)},
		      {"mem-max-reserved-gigabytes", "mem_peak_reserved_gib", 1e9 / (1 << 30)},
		      {"mem-alloc-retires", "alloc_retries", 1}};
	struct span all = input_span(l), t = span_after(all, "after "), head = t, f, key;
	struct span at[ARRAY_LEN(fields)] = {{NULL, 0}};
	struct emit_tag tag = EMIT_NONE;
	double v;

	t = span_after(head, " memory (");
	if (!t.s || !span_has(t, "B) | ") || !train_number(l, head, "", " ", &v))
		return false;
	tag.step = train_step(v);
	if (train_number(l, all, "[Rank ", "]", &v) && v >= 0 && v < 1e7)
		o->rank = (int)v;
	span_next(&t, "|", &f);
	while (span_next(&t, "|", &f)) {
		if (!span_starts(f, " ") || !span_next(&f, ":", &key) || !f.s)
			continue;
		for (size_t i = 0; i < ARRAY_LEN(fields); i++)
			if (!at[i].s && span_eq((struct span){key.s + 1, key.n - 1}, fields[i].key))
				at[i] = f;
	}
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (train_field(l, at[i], "|", &f))
			emit_token(o, fields[i].metric, f, fields[i].scale, &tag);
	return true;
}

/* "validation loss at iteration 10 [on validation set] | lm loss value: ..", GPT-NeoX: "validation
 * results at iteration 10 | lm_loss value: ..", GLM: "... | LM loss: ..". */
static bool validation_line(struct emit *o, const struct input_line *l)
{
	struct span t = input_span(l), at = span_after(t, "validation loss at iteration "), n,
		    number;
	struct emit_tag tag = EMIT_NONE;
	double v;

	if (!at.s)
		at = span_after(t, "validation results at iteration ");
	if (!at.s || !span_next(&at, "|", &n) || span_has(n, "test") || !span_word(&n, &number) ||
	    !num_whole(number, &v) || v < 0 || v > 9e15)
		return false;
	tag.step = (int64_t)v;
	return train_emit(o, l, at, "loss value:", "|", "val_loss", 1, &tag) ||
	       train_emit(o, l, at, "LM loss:", "|", "val_loss", 1, &tag);
}

/* Megatron-Bridge, before its iteration: "Step Time : 9.09s GPU utilization:
 * 663.5MODEL_TFLOP/s/GPU". */
static bool utilization_line(struct emit *o, const struct input_line *l)
{
	struct span t = span_after(input_span(l), "s GPU utilization: ");
	struct emit_tag tag = EMIT_NONE;

	return span_has(t, "MODEL_TFLOP/s/GPU") &&
	       train_emit(o, l, t, "", "M", "tflops_per_gpu", 1, &tag);
}

/* The dump of the arguments: "  seq_length ........ 2048" ("2048......updated" of GPT-NeoX). A
 * global batch there means that batch over step time will follow, so that other lines' samples a
 * second are known as theirs from the first one on. */
static bool argument_line(struct train_state *st, const struct input_line *l)
{
	struct span t = input_span(l), w, n;
	bool batch;
	double v;

	if (!span_word(&t, &w))
		return false;
	batch = span_eq(w, "global_batch_size");
	if ((!batch && !span_eq(w, "seq_length")) || !span_word(&t, &w) || w.s[0] != '.')
		return false;
	if (batch) {
		st->shared->samples_per_s = true;
		return true;
	}
	if (span_word(&t, &w) && span_next(&w, ".", &n) && num_whole(n, &v) && v > 0)
		st->seq_length = v;
	return true;
}

static bool megatron_line(struct train_state *st, struct emit *o, const struct input_line *l)
{
	bool counts = span_has(input_span(l), "iteration");

	return (counts && iteration_line(st, o, l)) || timer_line(st, o, l) ||
	       block_line(st, o, l) || (counts && (memory_line(o, l) || validation_line(o, l))) ||
	       argument_line(st, l) || utilization_line(o, l);
}

static const char *const words[] = {
	"iteration",         "time (ms)", "across ranks (ms):", "seq_length", "global_batch_size",
	"MODEL_TFLOP/s/GPU", NULL};

const struct train_dialect train_megatron = {
	.name = "megatron",
	.words = words,
	.blocks = true,
	.line = megatron_line,
};

static int megatron_open(const struct probe_context *c, const struct probe_sink *sink,
			 struct probe_run **out, struct err *e)
{
	static const struct train_dialect *const own[] = {&train_megatron, NULL};

	return train_open(own, c, sink, out, e);
}

const struct probe probe_megatron = {
	.name = "megatron",
	.summary = "training log of Megatron-LM: iterations, timers, memory",
	.example = "torchrun pretrain_gpt.py --log-interval 1 --log-throughput ...",
	.open = megatron_open,
	.feed = train_feed,
	.finish = train_finish,
};
