/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dcgmi dmon -e ...: columns by DCGM's short names, entities of two words ("GPU 0", "GPU-I 0",
 * "GPU-CI 0"). Header and units come again. Ratios are 0 to 1, PCIe and NVLink bytes a second. N/A
 * (N/W of old versions) is a missing value: another profiler holds the counters, or the entity has
 * none. Lines have no time.
 *
 * Labels: gpu, or gpu_i, gpu_ci for the instances of MIG.
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/cols.h"
#include "probes/dcgm.h"
#include "probes/lines.h"

/* The words of an entity come first. */
enum { ENTITY_WORDS = 2 };

struct dmon {
	const struct dcgm_field *of[COLS_MAX]; /* by column behind the entity */
	size_t n;                              /* 0: no header yet */
};

/* "#Entity GRACT ..", or "# Entity  GRACT .." of old versions. */
static bool header_words(struct span t, struct words *w)
{
	if (!t.n || t.s[0] != '#')
		return false;
	words_split(w, (struct span){t.s + 1, t.n - 1});
	return w->n >= 2 && w->n <= COLS_MAX && span_eq(w->v[0], "Entity");
}

static const char *label_of(struct span entity)
{
	static const char *const words[][2] = {
		{"GPU", "gpu"}, {"GPU-I", "gpu_i"}, {"GPU-CI", "gpu_ci"}};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (span_eq(entity, words[i][0]))
			return words[i][1];
	return NULL;
}

static void emit_cell(struct emit *o, const struct dcgm_field *f, struct span t,
		      const struct emit_tag *tag)
{
	double v;

	if (span_eq(t, "N/W"))
		emit_missing(o, f->metric, "not watched", tag);
	else if (num_whole(t, &v) && dcgm_blank(f, v))
		emit_missing(o, f->metric, dcgm_blank(f, v), tag);
	else if (!emit_token(o, f->metric, t, f->scale, tag))
		emit_bad(o, "a cell holds no number");
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct dmon *st = state;
	struct span t = span_trim(input_span(l));
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = EMIT_NONE;
	struct words w;
	int64_t id;

	if (header_words(t, &w)) {
		st->n = w.n - 1;
		for (size_t i = 0; i < st->n; i++)
			st->of[i] = dcgm_by_column(w.v[i + 1]);
		return;
	}
	words_split(&w, t);
	/* "GPU 0 LINK 3" is a link of its own. */
	if (!st->n || w.n <= ENTITY_WORDS || w.n > COLS_MAX || !label_of(w.v[0]) ||
	    !num_whole_i64(w.v[1], &id) || span_eq(w.v[2], "LINK"))
		return;
	if (w.n != st->n + ENTITY_WORDS) {
		emit_bad(o, l->complete ? "a row with another number of cells than the header"
					: "a row that is cut");
		return;
	}
	emit_label(&ls, label_of(w.v[0]), w.v[1]);
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	for (size_t i = 0; i < st->n; i++)
		if (st->of[i] && (l->complete || i + 1 < st->n))
			emit_cell(o, st->of[i], w.v[i + ENTITY_WORDS], &tag);
}

static int score(struct span line)
{
	struct words w;

	if (!header_words(span_trim(line), &w))
		return 0;
	for (size_t i = 1; i < w.n; i++)
		if (dcgm_by_column(w.v[i]))
			return 95;
	return 60;
}

static int dmon_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

static int dmon_open(const struct probe_context *c, const struct probe_sink *sink,
		     struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct dmon), on_line, NULL, NULL};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_dcgm_dmon = {
	.name = "dcgm_dmon",
	.summary = "dcgmi dmon: activity of SMs, tensor cores and memory, traffic of each GPU",
	.example = "dcgmi dmon -e 1001,1002,1003,1004,1005,1009,1010,1011,1012 -d 1000",
	.sniff = dmon_sniff,
	.open = dmon_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
