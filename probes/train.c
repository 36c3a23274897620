/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/train.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/trigger.h"

enum { DIALECTS_MAX = 16 };

struct probe_run {
	struct input *in;
	struct emit out;
	const struct train_dialect *const *dialects;
	struct trigger *words; /* of all dialects; the id is the index of the dialect */
	struct train_shared shared;
	struct train_state states[DIALECTS_MAX];
	uint32_t wanted; /* dialects that the current line may be of */
	uint32_t with_blocks;
	bool seen[DIALECTS_MAX];      /* its name was reported */
	int64_t values[DIALECTS_MAX]; /* that it gave, missing ones too */
};

static int64_t count(const struct probe_run *r)
{
	return r->out.values + r->out.missing;
}

static void give(struct probe_run *r, size_t i, const struct input_line *l)
{
	const struct train_dialect *d = r->dialects[i];
	int64_t before = count(r);
	bool taken;

	r->out.rank = l->rank;
	taken = d->line(&r->states[i], &r->out, l);
	r->values[i] += count(r) - before;
	if (!taken || r->seen[i])
		return;
	r->seen[i] = true;
	emit_fact(&r->out, "train_log.dialect", span_of(d->name));
}

static bool is_wanted(void *ctx, struct span line)
{
	struct probe_run *r = ctx;

	r->wanted = 0;
	for (uint32_t more = r->with_blocks; more; more &= more - 1) {
		const struct train_state *st = &r->states[__builtin_ctz(more)];

		if (st->block || st->held.len)
			r->wanted |= more & -more;
	}
	r->wanted = trigger_scan(r->words, line, r->wanted);
	return r->wanted;
}

static void on_line(void *ctx, const struct input_line *l)
{
	struct probe_run *r = ctx;

	if (!l->len)
		return;
	emit_begin(&r->out, l);
	for (uint32_t left = r->wanted; left; left &= left - 1)
		give(r, (unsigned)__builtin_ctz(left), l);
}

int train_open(const struct train_dialect *const *dialects, const struct probe_context *c,
	       const struct probe_sink *sink, struct probe_run **out, struct err *e)
{
	struct probe_run *r = xcalloc(1, sizeof(*r));

	(void)e;
	emit_open(&r->out, c, sink);
	r->dialects = dialects;
	r->words = trigger_new();
	for (unsigned i = 0; dialects[i]; i++) {
		r->with_blocks |= (uint32_t)dialects[i]->blocks << i;
		for (const char *const *w = dialects[i]->words; *w; w++)
			trigger_add(r->words, *w, i);
	}
	for (size_t i = 0; i < DIALECTS_MAX; i++)
		r->states[i] = (struct train_state){
			.shared = &r->shared, .step = -1, .before = NAN};
	r->in = input_new(on_line, r);
	input_filter(r->in, is_wanted);
	*out = r;
	return 0;
}

int train_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	input_feed(r->in, bytes, n);
	return 0;
}

/* Values of the dialects that tell of training: an end is not excused by numbers of its own. */
static bool trained(const struct probe_run *r)
{
	for (size_t i = 0; r->dialects[i]; i++)
		if (r->values[i] && !r->states[i].failure[0])
			return true;
	return false;
}

static const struct train_state *first_failure(const struct probe_run *r)
{
	for (size_t i = 0; r->dialects[i]; i++)
		if (r->states[i].failure[0])
			return &r->states[i];
	return NULL;
}

static enum probe_status judge(const struct probe_run *r, struct buf *detail)
{
	const struct train_state *failed = first_failure(r);
	bool found = count(r) > 0;
	enum probe_status s;

	if (failed && !trained(r)) {
		if (detail)
			buf_printf(detail, "line %lld: %s", (long long)failed->failed_line,
				   failed->failure);
		return PROBE_FAILED;
	}
	s = emit_status(&r->out, found || r->out.bad ? detail : NULL);
	if (found)
		return s;
	if (detail && !detail->len)
		buf_str(detail, "no line of a known training log");
	return PROBE_ABSENT;
}

static void run_free(struct probe_run *r)
{
	for (size_t i = 0; i < DIALECTS_MAX; i++)
		buf_free(&r->states[i].held);
	trigger_free(r->words);
	input_free(r->in);
	emit_close(&r->out);
	free(r);
}

enum probe_status train_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s;

	input_finish(r->in);
	r->out.raw_of = NULL;
	for (size_t i = 0; r->dialects[i]; i++)
		if (r->dialects[i]->end)
			r->dialects[i]->end(&r->states[i], &r->out);
	s = judge(r, detail);
	run_free(r);
	return s;
}

int64_t train_count(const struct train_dialect *const *dialects, const char *head, size_t n)
{
	struct probe_sink none = {0};
	struct probe_run *r;
	int64_t values;

	train_open(dialects, NULL, &none, &r, NULL);
	input_feed(r->in, head, n);
	values = r->out.values;
	train_finish(r, NULL);
	return values;
}

void train_fail(struct train_state *st, int64_t line, const char *fmt, ...)
{
	va_list ap;

	if (st->failure[0])
		return;
	va_start(ap, fmt);
	vsnprintf(st->failure, sizeof(st->failure), fmt, ap);
	va_end(ap);
	st->failed_line = line;
}

int64_t train_step(double v)
{
	return v >= 0 && v < 9e15 ? (int64_t)v : -1;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool train_field(const struct input_line *l, struct span rest, const char *stop, struct span *f)
{
	if (!rest.s || !span_next(&rest, stop, f))
		return false;
	if (f->n && rest.n && rest.s[-1] == ',' && is_digit(f->s[f->n - 1]) && is_digit(rest.s[0]))
		return false; /* a decimal comma */
	*f = span_trim(*f);
	return train_is_whole(l, *f);
}
