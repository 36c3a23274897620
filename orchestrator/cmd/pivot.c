/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/pivot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/text.h"

enum { COLUMNS_MAX = 24, NAME_BYTES = 48, WIDTH_MIN = 5 };

struct row {
	int64_t step;
	int rank;
	char labels[NAME_BYTES];  /* "scope=steps" */
	double cell[COLUMNS_MAX]; /* NAN: none */
};

struct pivot {
	const struct probe_column *columns;
	size_t n_columns;
	struct row *row;
	size_t n, cap;
	struct buf notes; /* why cells have no value, a line each */
};

struct pivot *pivot_new(const struct probe_column *columns)
{
	struct pivot *p = xcalloc(1, sizeof(*p));

	p->columns = columns;
	while (columns && columns[p->n_columns].metric && p->n_columns < COLUMNS_MAX)
		p->n_columns++;
	return p;
}

void pivot_free(struct pivot *p)
{
	if (!p)
		return;
	free(p->row);
	buf_free(&p->notes);
	free(p);
}

static void labels_text(const struct probe_value *v, char out[NAME_BYTES])
{
	struct buf b = {0};

	for (size_t i = 0; i < v->n_labels; i++) {
		buf_str(&b, i ? "," : "");
		text_line(&b, v->labels[i].key);
		buf_char(&b, '=');
		text_line(&b, v->labels[i].value);
	}
	str_copy(out, NAME_BYTES, b.data ? b.data : "");
	buf_free(&b);
}

static struct row *row_of(struct pivot *p, const struct probe_value *v)
{
	struct row r = {.step = v->step, .rank = v->rank}, *last = p->n ? &p->row[p->n - 1] : NULL;

	labels_text(v, r.labels);
	if (last && last->step == r.step && last->rank == r.rank && str_eq(last->labels, r.labels))
		return last;
	for (size_t i = 0; i < COLUMNS_MAX; i++)
		r.cell[i] = NAN;
	p->row = xgrow(p->row, p->n, &p->cap, sizeof(*p->row));
	p->row[p->n] = r;
	return &p->row[p->n++];
}

/* A value of one kernel is none of a step. */
static bool is_of_step(const struct probe_value *v)
{
	for (size_t i = 0; i < v->n_labels; i++)
		if (!str_eq(v->labels[i].key, "scope") && !str_eq(v->labels[i].key, "device"))
			return false;
	return true;
}

static void take_cell(struct pivot *p, size_t column, const struct probe_value *v)
{
	const char *title = p->columns[column].title;
	struct row *r = title ? row_of(p, v) : NULL;

	if (!r)
		return;
	if (!v->missing) {
		r->cell[column] = v->value;
		return;
	}
	buf_printf(&p->notes, "%s: unknown: ", title);
	text_line(&p->notes, v->missing);
	buf_char(&p->notes, '\n');
}

bool pivot_take(struct pivot *p, const struct probe_value *v)
{
	if (!is_of_step(v))
		return false;
	for (size_t i = 0; i < p->n_columns; i++) {
		if (!str_eq(p->columns[i].metric, v->metric))
			continue;
		take_cell(p, i, v);
		return true;
	}
	return false;
}

static void row_name(const struct row *r, char out[NAME_BYTES + 48])
{
	int n = 0;

	out[0] = '\0';
	if (r->rank >= 0)
		n += snprintf(out, NAME_BYTES, "rank %d  ", r->rank);
	if (r->step >= 0)
		n += snprintf(out + n, NAME_BYTES, "step %lld  ", (long long)r->step);
	snprintf(out + n, NAME_BYTES, "%s", r->labels);
}

static int width_of(const struct probe_column *c)
{
	int width = str_ends(c->metric, "_ms") ? 8 : WIDTH_MIN;

	return (int)strlen(c->title) > width ? (int)strlen(c->title) : width;
}

static void print_cell(const struct probe_column *c, double v)
{
	if (isnan(v))
		printf("  %*s", width_of(c), "-");
	else if (str_ends(c->metric, "_ratio"))
		printf("  %*.1f", width_of(c), 100 * v);
	else
		printf("  %*.*f", width_of(c), v == floor(v) ? 0 : v < 100 ? 3 : 1, v);
}

static void print_head(const struct pivot *p, int width)
{
	printf("%*s", width, "");
	for (size_t k = 0; k < p->n_columns; k++)
		if (p->columns[k].title)
			printf("  %*s", width_of(&p->columns[k]), p->columns[k].title);
	puts("");
}

void pivot_print(struct pivot *p)
{
	char name[NAME_BYTES + 48];
	int width = 0;

	for (size_t i = 0; i < p->n; i++) {
		row_name(&p->row[i], name);
		width = (int)strlen(name) > width ? (int)strlen(name) : width;
	}
	if (p->n)
		print_head(p, width);
	for (size_t i = 0; i < p->n; i++) {
		row_name(&p->row[i], name);
		printf("%-*s", width, name);
		for (size_t k = 0; k < p->n_columns; k++)
			if (p->columns[k].title)
				print_cell(&p->columns[k], p->row[i].cell[k]);
		puts("");
	}
	if (p->notes.len)
		fputs(p->notes.data, stdout);
	buf_clear(&p->notes);
	p->n = 0;
}
