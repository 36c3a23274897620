/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The series that the campaign feeds, night after night, with the nights from which they differ. */
#include <stdlib.h>
#include <string.h>

#include "experiments/regress.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/canaries.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/html_doc.h"
#include "orchestrator/report/html_pictures.h"
#include "orchestrator/report/nights_chart.h"

enum {
	PANELS_MOST = 16, /* as many series as two objectives in three roles and a place have */
	POINTS_MOST = 400,
};

/* One axis of time for all. */
static void days_of(const struct report *r, int *first, int *last)
{
	bool any = false;

	for (size_t i = 0; i < r->n_series; i++) {
		const struct nights_series *s = &r->series[i].whole;
		int a, b;

		if (s->n == 0)
			continue;
		a = (int)regress_day(s->points[0].night);
		b = (int)regress_day(s->points[s->n - 1].night);
		*first = any && *first < a ? *first : a;
		*last = any && *last > b ? *last : b;
		any = true;
	}
}

static const char *change_at(const struct nights_series *s, const char *night, struct buf *out)
{
	buf_clear(out);
	for (size_t i = 0; i < s->n_marks; i++) {
		const struct nights_mark *m = &s->marks[i];

		if (strcmp(m->night, night) != 0)
			continue;
		nights_effect(m->est, m->lo, m->hi, out);
		buf_printf(out, ", %s, %s",
			   lang_word("change_direction", nights_direction(m->direction)),
			   lang_word("change_level", change_level_name(m->level)));
	}
	return out->data;
}

/* Newest first. */
static void draw_table(const struct nights_series *s, struct buf *out)
{
	static const struct doc_column c[] = {{"night", false}, {"value", true}, {"change", false}};
	struct doc doc = {.writer = &html_doc_writer, .out = out};
	struct buf words = {0};

	html_figure_table(out);
	doc_table(&doc, c, ARRAY_LEN(c));
	for (size_t i = s->n; i-- > 0 && s->n - i <= POINTS_MOST;) {
		doc_row(&doc);
		doc_cell(&doc, s->points[i].night);
		doc_cell_number(&doc, s->points[i].value);
		doc_cell(&doc, change_at(s, s->points[i].night, &words));
	}
	doc_end(&doc);
	html_figure_table_end(out);
	buf_free(&words);
}

static void draw(const struct report_series *s, int first, int last, struct buf *out)
{
	_cleanup_free_ char *title = nights_title(&s->row);
	struct nights_series lasting = nights_lasting(&s->whole);
	struct buf how = {0};

	report_series_text(s, &how);
	html_figure_begin(out, title, how.data);
	nights_chart(&lasting, first, last, out);
	draw_table(&s->whole, out);
	free(lasting.marks);
	buf_free(&how);
}

void html_series(const struct report *r, struct buf *out)
{
	int first = 0, last = 0;
	size_t n = 0;

	days_of(r, &first, &last);
	for (size_t i = 0; i < r->n_series && n < PANELS_MOST; i++) {
		if (r->series[i].whole.n == 0)
			continue;
		if (n++ == 0)
			buf_str(out, "<div class=\"panels two series\">\n");
		draw(&r->series[i], first, last, out);
	}
	if (n)
		buf_str(out, "</div>\n");
}
