/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Series for a terminal: the list, and one with its plot, changes, events and points. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/regress.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/nights.h"
#include "orchestrator/report/plot.h"
#include "orchestrator/report/recorded.h"
#include "orchestrator/report/text.h"

enum {
	PLOT_HEIGHT = 12,
	POINTS_SHOWN = 30,  /* newest, unless all are asked for */
	EVENTS_LISTED = 26, /* signs a..z; of a series whose every night has another commit */
	UNIT_COLUMNS = 9,
	COLUMN_MAX = 40, /* names of hundreds of bytes do not push the numbers off the screen */
};

#define RED    "\033[31m"
#define GREEN  "\033[32m"
#define YELLOW "\033[33m"
#define DIM    "\033[2m"
#define BOLD   "\033[1m"
#define RESET  "\033[0m"

static void coloured(const struct nights_style *st, const char *code, const char *text,
		     struct buf *out)
{
	if (st->colour && code)
		buf_str(out, code);
	text_line(out, text);
	if (st->colour && code)
		buf_str(out, RESET);
}

/* -- list ------------------------------------------------------------------------------------- */

static void number_cell(double v, int width, struct buf *out)
{
	char text[32];

	snprintf(text, sizeof text, "%.6g", v);
	buf_printf(out, " %*s", width, isfinite(v) ? text : "-");
}

static void change_cell(double v, struct buf *out)
{
	char text[32];

	snprintf(text, sizeof text, "%+.1f %%", 100 * v);
	buf_printf(out, " %9s", isfinite(v) ? text : "-");
}

static const char *state_colour(const struct nights_glance *g)
{
	if (!g->regression)
		return NULL;
	return g->level == CHANGE_SUSPECT      ? YELLOW
	       : g->direction == CHANGE_WORSE  ? RED
	       : g->direction == CHANGE_BETTER ? GREEN
					       : YELLOW;
}

static void list_row(const struct nights_glance *g, size_t width, const struct nights_style *st,
		     struct buf *out)
{
	_cleanup_free_ char *state = nights_state(g), *title = nights_title(&g->row);
	_cleanup_free_ char *unit = str_eq(g->row.unit, "1")
					    ? xstrdup("")
					    : xstrndup(g->row.unit,
						       text_fit(g->row.unit, UNIT_COLUMNS));

	buf_printf(out, "%5lld  ", (long long)g->row.id);
	text_cell(out, title, width);
	buf_printf(out, " %6lld  %-10s", (long long)g->nights, *g->last ? g->last : "-");
	number_cell(g->value, 10, out);
	buf_char(out, ' ');
	text_cell(out, unit, UNIT_COLUMNS);
	change_cell(g->week, out);
	change_cell(g->month, out);
	buf_str(out, "  ");
	coloured(st, state_colour(g), state, out);
	buf_char(out, '\n');
}

/* What several series share: "gpt-ddp on gpu (canary)". */
static void group_heading(const struct series_row *s, const struct nights_style *st,
			  struct buf *out)
{
	_cleanup_free_ char *text = *s->place ? xasprintf(P_("workload", "%s on %s"), s->workload,
							  s->place)
					      : xstrdup(s->workload);
	const char *source = s->source == SERIES_CANARY     ? ""
			     : s->source == SERIES_IMPORTED ? _(" (imported)")
							    : _(" (observed)");
	_cleanup_free_ char *whole = xasprintf("%s%s", text, source);

	coloured(st, BOLD, whole, out);
	if (*s->config) {
		buf_str(out, "  ");
		buf_printf(out, _("configuration %.8s"), s->config);
	}
	buf_char(out, '\n');
}

/* Names of columns over the rows of list_row(). */
static void list_head(size_t width, struct buf *out)
{
	buf_printf(out, "%5s  ", "");
	text_cell(out, _("metric"), width);
	buf_char(out, ' ');
	text_cell_right(out, _("nights"), 6);
	buf_str(out, "  ");
	text_cell(out, _("newest"), 10);
	buf_char(out, ' ');
	text_cell_right(out, _("value"), 10);
	buf_char(out, ' ');
	text_cell(out, _("unit"), UNIT_COLUMNS);
	buf_char(out, ' ');
	text_cell_right(out, _("7 nights"), 9);
	buf_char(out, ' ');
	text_cell_right(out, _("30 nights"), 9);
	buf_printf(out, "  %s\n", _("state"));
}

void nights_list_text(const struct nights_glance *v, size_t n, const struct nights_style *st,
		      struct buf *out)
{
	size_t width = text_width(_("metric"));

	if (n == 0) {
		buf_str(out, _("no series yet: `fettle nightly` measures some, `fettle history "
			       "import` takes yours over\n"));
		return;
	}
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *title = nights_title(&v[i].row);

		width = text_width(title) > width ? text_width(title) : width;
	}
	width = width > COLUMN_MAX ? COLUMN_MAX : width;
	list_head(width, out);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || !nights_same_group(&v[i - 1].row, &v[i].row))
			group_heading(&v[i].row, st, out);
		list_row(&v[i], width, st, out);
	}
}

/* -- one series -------------------------------------------------------------------------------- */

static const char *mark_colour(const struct nights_mark *m)
{
	if (m->level == CHANGE_DISMISSED)
		return DIM;
	if (m->level == CHANGE_SUSPECT)
		return YELLOW;
	return m->direction == CHANGE_WORSE ? RED : m->direction == CHANGE_BETTER ? GREEN : YELLOW;
}

/* 1..9, then capitals; a plot that needs more has other troubles. */
static char change_sign(size_t i)
{
	static const char signs[] = "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return i < sizeof signs - 1 ? signs[i] : '+';
}

/* Events of one night have one sign: the newest nights with events 'a'.., older ones '~'. */
static size_t nights_after(const struct nights_series *s, size_t i)
{
	size_t nights = 0;

	for (size_t k = i + 1; k < s->n_events; k++)
		nights += !str_eq(s->events[k].night, s->events[k - 1].night);
	return nights;
}

static char event_sign(const struct nights_series *s, size_t i)
{
	size_t after = nights_after(s, i), all = nights_after(s, 0) + 1;
	size_t first = all > EVENTS_LISTED ? EVENTS_LISTED : all;

	return after < EVENTS_LISTED ? (char)('a' + first - 1 - after) : '~';
}

static void draw(const struct nights_series *s, const struct nights_style *st, struct buf *out)
{
	size_t n_marks = s->n_marks + s->n_events;
	_cleanup_free_ double *x = xcalloc(s->n, sizeof *x), *y = xcalloc(s->n, sizeof *y);
	_cleanup_free_ struct plot_mark *marks = xcalloc(n_marks + 1, sizeof *marks);
	struct plot p = {
		.x = x,
		.y = y,
		.n = s->n,
		.marks = marks,
		.n_marks = n_marks,
		.left = s->points[0].night,
		.right = s->points[s->n - 1].night,
		.row_name = {_("change"), _("environ.")},
		.width = st->width,
		.height = PLOT_HEIGHT,
		.ascii = st->ascii,
		.colour = st->colour,
	};

	for (size_t i = 0; i < s->n; i++) {
		x[i] = (double)regress_day(s->points[i].night);
		y[i] = s->points[i].value;
	}
	for (size_t i = 0; i < s->n_marks; i++)
		marks[i] = (struct plot_mark){regress_day(s->marks[i].night), PLOT_CHANGES,
					      change_sign(i), mark_colour(&s->marks[i])};
	for (size_t i = 0; i < s->n_events; i++)
		marks[s->n_marks + i] = (struct plot_mark){regress_day(s->events[i].night),
							   PLOT_EVENTS, event_sign(s, i), NULL};
	plot_draw(&p, out);
}

static void mark_line(const struct nights_mark *m, char sign, const struct nights_style *st,
		      struct buf *out)
{
	_cleanup_free_ char *why = recorded_text(m->why);

	buf_printf(out, "  %c  %s  ", sign, m->night);
	if (st->colour)
		buf_str(out, mark_colour(m));
	nights_effect(m->est, m->lo, m->hi, out);
	buf_printf(out, " %s", nights_direction(m->direction));
	if (st->colour)
		buf_str(out, RESET);
	if (m->regression)
		buf_printf(out, _(", %s; regression %lld, %s"),
			   lang_word("change_level", change_level_name(m->level)),
			   (long long)m->regression,
			   lang_word("regression_state", regression_state_name(m->state)));
	else
		buf_str(out, _(", seen by the strict detector, not tracked"));
	if (!str_eq(m->first, m->last))
		buf_printf(out, _(" (between %s and %s)"), m->first, m->last);
	buf_char(out, '\n');
	if (why) {
		buf_str(out, "     ");
		text_line(out, why);
		buf_char(out, '\n');
	}
}

static void event_lines(const struct nights_series *s, struct buf *out)
{
	size_t left_out = 0;

	for (size_t i = 0; i < s->n_events; i++) {
		const struct nights_event *v = &s->events[i];
		bool again = i && str_eq(v->night, s->events[i - 1].night);

		if (nights_after(s, i) >= EVENTS_LISTED) {
			left_out++;
			continue;
		}
		if (left_out)
			buf_printf(out, _("  ~  %zu older ones: --json has them\n"), left_out);
		left_out = 0;
		if (again)
			buf_printf(out, "     %10s  ", "");
		else
			buf_printf(out, "  %c  %s  ", event_sign(s, i), v->night);
		text_line(out, v->key);
		buf_str(out, ": ");
		text_line(out, v->was ? v->was : _("(not known)"));
		buf_str(out, " -> ");
		text_line(out, v->is ? v->is : _("(not known)"));
		buf_char(out, '\n');
	}
}

static void point_lines(const struct nights_series *s, const struct nights_style *st,
			struct buf *out)
{
	size_t from = st->all || s->n <= POINTS_SHOWN ? 0 : s->n - POINTS_SHOWN;

	buf_char(out, '\n');
	text_cell(out, _("night"), 10);
	buf_char(out, ' ');
	text_cell_right(out, _("value"), 12);
	buf_char(out, ' ');
	text_cell_right(out, _("sd"), 10);
	buf_str(out, "   n  \n");
	for (size_t i = from; i < s->n; i++) {
		const struct point_row *p = &s->points[i];
		const char *sep = " ";

		buf_str(out, p->night);
		number_cell(p->value, 12, out);
		number_cell(p->sd, 10, out);
		buf_printf(out, " %3d ", p->n);
		for (size_t k = 0; k < s->n_marks; k++)
			if (str_eq(s->marks[k].night, p->night)) {
				buf_str(out, sep);
				buf_printf(out, _("change %c"), change_sign(k));
				sep = _(", ");
			}
		for (size_t k = 0; k < s->n_events; k++)
			if (str_eq(s->events[k].night, p->night)) {
				buf_str(out, sep);
				buf_printf(out, _("environment %c"), event_sign(s, k));
				break;
			}
		while (out->data[out->len - 1] == ' ')
			out->data[--out->len] = '\0';
		buf_char(out, '\n');
	}
	if (from)
		buf_printf(out, _("(%zu older nights: --all)\n"), from);
}

static void heading(const struct series_row *s, const struct nights_style *st, struct buf *out)
{
	_cleanup_free_ char *title = nights_title(s), *unit = xasprintf(_(" in %s"), s->unit);

	buf_printf(out, _("series %lld: "), (long long)s->id);
	coloured(st, BOLD, title, out);
	if (*s->unit && !str_eq(s->unit, "1"))
		text_line(out, unit);
	if (s->better != BETTER_NONE)
		buf_str(out,
			s->better == BETTER_UP ? _(" (more is better)") : _(" (less is better)"));
	buf_str(out, _(", "));
	group_heading(s, st, out);
}

static void body(const struct nights_series *s, size_t passed, const struct nights_style *st,
		 struct buf *out)
{
	buf_char(out, '\n');
	draw(s, st, out);
	if (s->n_marks || passed)
		buf_str(out, _("\nchanges\n"));
	for (size_t i = 0; i < s->n_marks; i++)
		mark_line(&s->marks[i], change_sign(i), st, out);
	if (passed)
		buf_printf(out, _("  (%zu that came to nothing: --all)\n"), passed);
	if (s->n_events)
		buf_str(out, _("\nenvironment\n"));
	event_lines(s, out);
	point_lines(s, st, out);
}

void nights_series_text(const struct nights_series *s, const struct nights_style *st,
			struct buf *out)
{
	struct nights_series lasting = nights_lasting(s);

	heading(&s->row, st, out);
	if (s->n == 0)
		buf_printf(out, "%s\n", _("no night yet"));
	else if (st->all)
		body(s, 0, st, out);
	else
		body(&lasting, s->n_marks - lasting.n_marks, st, out);
	free(lasting.marks);
}
