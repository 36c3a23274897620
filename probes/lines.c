/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/lines.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"

/* A report of iostat has a line for each of at most some thousand disks. */
enum { LINES_KEPT_MAX = 8192 };

struct probe_run {
	const struct lines_kind *kind;
	struct input *in;
	struct emit out;
	void *state;
	struct input_line last; /* what is found at the end comes from the last line */
};

static void on_line(void *ctx, const struct input_line *l)
{
	struct probe_run *r = ctx;
	struct input_line one;

	/* A tool that writes lines draws none again: that is the bar of another writer. */
	if (l->redrawn || !span_trim(input_span(l)).n)
		return;
	/* What goes on behind the longest line may go on in the middle of a number. */
	one = *l;
	one.complete = l->complete && !l->cut;
	emit_begin(&r->out, &one);
	r->kind->line(r->state, &r->out, &one);
	r->last = (struct input_line){
		.text = "", .whole = "", .host = "", .line = l->line, .rank = -1, .local_rank = -1};
	emit_begin(&r->out, &r->last);
}

int lines_open(const struct lines_kind *k, const struct probe_context *c,
	       const struct probe_sink *sink, struct probe_run **out, struct err *e)
{
	struct probe_run *r = xcalloc(1, sizeof(*r));

	(void)e;
	r->kind = k;
	r->state = xcalloc(1, k->size);
	r->in = input_new(on_line, r);
	emit_open(&r->out, c, sink);
	*out = r;
	return 0;
}

int lines_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	input_feed(r->in, bytes, n);
	return 0;
}

enum probe_status lines_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s;

	input_finish(r->in);
	s = r->kind->end ? r->kind->end(r->state, &r->out, detail) : emit_status(&r->out, detail);
	if (r->kind->clear)
		r->kind->clear(r->state);
	input_free(r->in);
	emit_close(&r->out);
	free(r->state);
	free(r);
	return s;
}

struct sniffing {
	int (*score)(struct span line);
	int best;
	bool first, done; /* first: no other line counts */
};

static void sniff_line(void *ctx, const struct input_line *l)
{
	struct sniffing *s = ctx;
	int score;

	if (s->done || l->redrawn || !span_trim(input_span(l)).n)
		return;
	s->done = s->first;
	score = s->score(input_span(l));

	if (score > s->best)
		s->best = score;
}

static int sniff(struct sniffing s, const char *head, size_t n)
{
	struct input *in = input_new(sniff_line, &s);

	input_feed(in, head, n);
	input_finish(in);
	input_free(in);
	return s.best;
}

int lines_sniff(const char *head, size_t n, int (*score)(struct span line))
{
	return sniff((struct sniffing){.score = score}, head, n);
}

int lines_sniff_first(const char *head, size_t n, int (*score)(struct span line))
{
	return sniff((struct sniffing){.score = score, .first = true}, head, n);
}

bool lines_keep(struct lines_kept *k, const struct input_line *l)
{
	if (k->n == LINES_KEPT_MAX)
		return false;
	k->v = xgrow(k->v, k->n, &k->cap, sizeof(*k->v));
	k->v[k->n++] = (struct kept_line){.text = xstrndup(l->text, l->len),
					  .host = xstrdup(l->host),
					  .line = l->line,
					  .rank = l->rank,
					  .local_rank = l->local_rank};
	return true;
}

void lines_replay(struct lines_kept *k, struct emit *o,
		  void (*f)(void *state, struct emit *o, const struct input_line *l), void *state)
{
	const struct input_line *last = o->raw_of;

	for (size_t i = 0; i < k->n; i++) {
		struct input_line l = {.text = k->v[i].text,
				       .len = strlen(k->v[i].text),
				       .line = k->v[i].line,
				       .rank = k->v[i].rank,
				       .local_rank = k->v[i].local_rank,
				       .host = k->v[i].host,
				       .complete = true};

		emit_begin(o, &l);
		f(state, o, &l);
	}
	if (last)
		emit_begin(o, last);
	else
		o->raw_of = NULL;
	lines_forget(k);
}

void lines_forget(struct lines_kept *k)
{
	for (size_t i = 0; i < k->n; i++) {
		free(k->v[i].text);
		free(k->v[i].host);
	}
	free(k->v);
	*k = (struct lines_kept){0};
}
