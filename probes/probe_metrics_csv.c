/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of metrics with a column "step": Lightning's CSVLogger (metrics.csv), DeepSpeed's
 * csv_monitor, torchtitan's and own ones; what Weights & Biases exports of a run's history or of a
 * chart, a column or three a run (label run):
 *
 *   epoch,step,train_loss,val_loss
 *   0,9,1.25,
 *   0,9,,1.5
 *
 *   "Step","fast-river-3 - train/loss","fast-river-3 - train/loss__MIN","...__MAX"
 *   "9","1.25","1.25","1.25"
 *
 * A column is a metric if its name is one ([a-z0-9_]+), or is that of another logger (alias.h). A
 * blank cell is no value at all: loggers of this kind write one line for each call. Cells may be
 * quoted; a cell that is no number is a missing value with its reason, or counts as bad. A line
 * with another number of cells than the header is not read. The column "step" of DeepSpeed's
 * Train_Samples_*.csv counts samples: its values have no step.
 */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/alias.h"
#include "probes/emit.h"
#include "probes/probe.h"

enum { COLUMNS_MAX = 256 };

struct column {
	char *metric; /* NULL: not read */
	char *run;    /* of a chart's column; NULL none */
	double scale;
};

struct probe_run {
	struct input *in;
	struct emit out;
	struct column columns[COLUMNS_MAX];
	size_t n; /* 0: no header yet */
	size_t step;
	bool samples; /* its "step" counts samples */
};

/* Names of the step, the surest first: _step counts what was logged. */
static const char *const step_names[] = {
	"step", "train/global_step", "trainer/global_step", "global_step", "Step", "_step",
};

/* The next cell of t, without its quotes. False at the end. */
static bool next_cell(struct span *t, struct span *cell)
{
	struct span f;

	if (!t->s)
		return false;
	if (t->n && t->s[0] == '"') {
		struct span inside = {t->s + 1, t->n - 1};

		if (!span_next(&inside, "\"", cell) || !inside.s)
			return false;
		*t = inside;
		return span_next(t, ",", &f) && !span_trim(f).n;
	}
	if (!span_next(t, ",", cell))
		return false;
	*cell = span_trim(*cell);
	return true;
}

/* The cells of a line; their number, 0 when they are too many or not whole. */
static size_t split(struct span t, struct span *cells)
{
	size_t n = 0;

	while (n < COLUMNS_MAX && next_cell(&t, &cells[n]))
		n++;
	return t.s ? 0 : n;
}

static size_t step_column(const struct span *cells, size_t n)
{
	for (size_t k = 0; k < ARRAY_LEN(step_names); k++)
		for (size_t i = 0; i < n; i++)
			if (span_eq(cells[i], step_names[k]))
				return i;
	return n;
}

/* What a column is named after: of "fast-river-3 - train/loss" the part behind the run. */
static struct span chart_part(struct span name, struct span *run)
{
	struct span at = name, rest = name;

	*run = (struct span){NULL, 0};
	while ((rest = span_after(rest, " - ")).s) {
		*run = (struct span){name.s, (size_t)(rest.s - name.s) - strlen(" - ")};
		at = rest;
	}
	return at;
}

static bool is_read(struct span name)
{
	for (size_t k = 0; k < ARRAY_LEN(step_names); k++)
		if (span_eq(name, step_names[k]))
			return false;
	return name.n && name.s[0] != '_' && !span_eq(name, "epoch") &&
	       (num_metric_name(name) || alias_find(name));
}

static bool is_header(const struct span *cells, size_t n)
{
	struct span run;

	if (step_column(cells, n) == n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (is_read(chart_part(cells[i], &run)) || span_eq(cells[i], "epoch"))
			return true;
	return false;
}

static void forget(struct probe_run *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->columns[i].metric);
		free(r->columns[i].run);
	}
	r->n = 0;
}

static void take_header(struct probe_run *r, const struct span *cells, size_t n)
{
	forget(r);
	r->step = step_column(cells, n);
	for (size_t i = 0; i < n; i++) {
		struct column *c = &r->columns[r->n++];
		struct span run, name = chart_part(cells[i], &run);
		const struct alias *a = alias_find(name);

		*c = (struct column){.scale = a ? a->scale : 1};
		if (!is_read(name))
			continue;
		c->metric = a ? xstrdup(a->metric) : xstrndup(name.s, name.n);
		c->run = run.s ? xstrndup(run.s, run.n) : NULL;
	}
}

static void take_row(struct probe_run *r, const struct span *cells)
{
	struct emit_tag tag = EMIT_NONE;
	double step;

	if (!r->samples && num_whole(cells[r->step], &step) && step >= 0 && step < 9e15)
		tag.step = (int64_t)step;
	for (size_t i = 0; i < r->n; i++) {
		const struct column *c = &r->columns[i];
		struct kv run = {(char *)(uintptr_t) "run", c->run};

		if (!c->metric || !cells[i].n)
			continue;
		tag.labels = &run;
		tag.n_labels = c->run != NULL;
		if (!emit_token(&r->out, c->metric, cells[i], c->scale, &tag))
			emit_bad(&r->out, "a cell holds no number");
	}
}

static void on_line(void *ctx, const struct input_line *l)
{
	struct probe_run *r = ctx;
	struct span t = input_span(l), cells[COLUMNS_MAX];
	size_t n;

	if (!span_trim(t).n)
		return;
	emit_begin(&r->out, l);
	n = split(t, cells);
	if (is_header(cells, n))
		take_header(r, cells, n);
	else if (!r->n)
		return;
	else if (!l->complete || l->cut)
		emit_bad(&r->out, "a row that is cut");
	else if (n != r->n)
		emit_bad(&r->out, "a row that does not fit the header");
	else
		take_row(r, cells);
}

static int csv_open(const struct probe_context *c, const struct probe_sink *sink,
		    struct probe_run **out, struct err *e)
{
	struct probe_run *r = xcalloc(1, sizeof(*r));

	(void)e;
	emit_open(&r->out, c, sink);
	r->samples = c && c->file && span_has(span_of(c->file), "Train_Samples_");
	r->in = input_new(on_line, r);
	*out = r;
	return 0;
}

static int csv_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	input_feed(r->in, bytes, n);
	return 0;
}

static enum probe_status csv_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s;

	input_finish(r->in);
	s = emit_status(&r->out, detail);
	if (s == PROBE_ABSENT && r->out.bad)
		s = PROBE_PARTIAL;
	forget(r);
	input_free(r->in);
	emit_close(&r->out);
	free(r);
	return s;
}

/* Certain only when the first line is the header: a log may hold anything behind it. */
static int csv_sniff(const char *head, size_t n)
{
	struct span t = {head, n}, line, cells[COLUMNS_MAX];

	if (n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
		t = (struct span){head + 3, n - 3};
	if (!span_next(&t, "\n", &line) || !t.s)
		return 0;
	return is_header(cells, split(span_trim(line), cells)) ? 85 : 0;
}

const struct probe probe_metrics_csv = {
	.name = "metrics_csv",
	.summary = "table with a column step: Lightning's CSVLogger, DeepSpeed's csv_monitor, own",
	.example = "cat lightning_logs/version_0/metrics.csv",
	.sniff = csv_sniff,
	.open = csv_open,
	.feed = csv_feed,
	.finish = csv_finish,
};
