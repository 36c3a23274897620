/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/regress.h"
#include "orchestrator/report/nights_chart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/svg.h"

/* Two pictures stand side by side on a wide screen; on a telephone one is about as wide, so that
 * its letters have to be larger in these units. */
enum {
	WIDTH = 600,
	HEIGHT = 236,
	LEFT = 62,
	RIGHT = 12,
	TOP = 40,
	BOTTOM = 46,
	TAG_ROOM = 96, /* of a change's label; nearer ones go to a second line */
	GAP = 4,       /* so many nights without a point break the line between points */
	MANY_EVENTS = 16,
	MANY = 120, /* points: smaller dots, a fainter line */
	VALUE_TICKS = 4,
	VALUE_TICKS_MAX = 12,
};

const char nights_chart_css[] =
	".run{stroke:var(--data);opacity:.3;fill:none}\n"
	".pts{stroke:var(--data);stroke-width:3.6;stroke-linecap:round;fill:none}\n"
	".pts.many{stroke-width:2.4}.run.many{opacity:.12}\n"
	".level{stroke:var(--mean);stroke-width:1.5;opacity:.7;fill:none}\n"
	".band{fill:currentColor;opacity:.13}\n"
	".at{stroke:currentColor;stroke-width:1.5}\n"
	".at.suspect,.at.soft{stroke-dasharray:4 3}\n"
	".ev{stroke:var(--event);opacity:.45;stroke-dasharray:1 3}\n"
	".mark{fill:var(--event)}\n"
	"svg .tag{fill:currentColor;font-weight:600}\n"
	"@media screen and (max-width:640px){svg text{font-size:17px}.spare{display:none}}\n";

/* -- time ------------------------------------------------------------------------------------- */

static const char *const months[] = {N_("Jan"), N_("Feb"), N_("Mar"), N_("Apr"),
				     N_("May"), N_("Jun"), N_("Jul"), N_("Aug"),
				     N_("Sep"), N_("Oct"), N_("Nov"), N_("Dec")};

/* Days of the month so many months after the first one. */
static size_t month_ticks(int first, int last, int step, struct nights_tick *out)
{
	char night[11];
	size_t n = 0;
	int year, month;

	regress_night(first, night);
	sscanf(night, "%d-%d", &year, &month);
	for (month -= 1; n < NIGHTS_TICKS_MAX; month++) {
		int y = year + month / 12, m = month % 12, day;

		snprintf(night, sizeof night, "%04u-%02u-01", (unsigned)y % 10000,
			 (unsigned)(m + 1) % 100);
		day = (int)regress_day(night);
		if (day > last)
			break;
		if (day < first || m % step)
			continue;
		out[n].day = day;
		if (m == 0)
			snprintf(out[n].label, sizeof out[n].label, "%d", y);
		else
			snprintf(out[n].label, sizeof out[n].label, "%s", _(months[m]));
		out[n].spare = n % 2 == 1;
		n++;
	}
	return n;
}

static size_t year_ticks(int first, int last, struct nights_tick *out)
{
	char night[11];
	size_t n = 0;
	int year, step = (last - first) / 366 / NIGHTS_TICKS_MAX + 1;

	regress_night(first, night);
	sscanf(night, "%d", &year);
	for (; n < NIGHTS_TICKS_MAX; year++) {
		int day;

		snprintf(night, sizeof night, "%04u-01-01", (unsigned)year % 10000);
		day = (int)regress_day(night);
		if (day > last)
			break;
		if (day < first || year % step)
			continue;
		out[n] = (struct nights_tick){.day = day, .spare = n % 2 == 1};
		snprintf(out[n].label, sizeof out[n].label, "%d", year);
		n++;
	}
	return n;
}

static size_t day_ticks(int first, int last, int step, struct nights_tick *out)
{
	char night[11];
	size_t n = 0;

	for (int day = first; day <= last && n < NIGHTS_TICKS_MAX; day += step) {
		int month, date;

		regress_night(day, night);
		sscanf(night + 5, "%d-%d", &month, &date);
		out[n] = (struct nights_tick){.day = day, .spare = n % 2 == 1};
		snprintf(out[n].label, sizeof out[n].label, P_("month and day", "%s %d"),
			 _(months[month - 1]), date);
		n++;
	}
	return n;
}

size_t nights_ticks(int first, int last, struct nights_tick out[NIGHTS_TICKS_MAX])
{
	int span = last - first;

	if (span <= 70)
		return day_ticks(first, last, span / 7 + 1, out);
	if (span <= 1100)
		return month_ticks(first, last, span <= 250 ? 1 : span <= 500 ? 2 : 6, out);
	return year_ticks(first, last, out);
}

/* -- words ------------------------------------------------------------------------------------ */

const char *nights_mark_class(const struct nights_mark *m)
{
	if (m->level == CHANGE_DISMISSED)
		return "soft";
	if (m->level == CHANGE_SUSPECT || m->direction == CHANGE_NEITHER)
		return "suspect";
	return m->direction == CHANGE_WORSE ? "worse" : "better";
}

void nights_value(double v, struct buf *out)
{
	buf_printf(out, "%.4g", v);
}

enum { VALUE_TEXT_MAX = 96 };

static const char *value_text(char out[VALUE_TEXT_MAX], double v)
{
	snprintf(out, VALUE_TEXT_MAX, "%.4g", v);
	return out;
}

static const char *with_unit(char out[VALUE_TEXT_MAX], double v, const struct series_row *s)
{
	if (*s->unit && !str_eq(s->unit, "1"))
		snprintf(out, VALUE_TEXT_MAX, "%.4g %.64s", v, s->unit);
	else
		value_text(out, v);
	return out;
}

void nights_chart_words(const struct nights_series *s, struct buf *out)
{
	double lo = s->points[0].value, hi = lo;
	char text[3][VALUE_TEXT_MAX];

	for (size_t i = 1; i < s->n; i++) {
		lo = fmin(lo, s->points[i].value);
		hi = fmax(hi, s->points[i].value);
	}
	buf_printf(out,
		   _n("%zu night from %s to %s, values from %s to %s, newest %s. ",
		      "%zu nights from %s to %s, values from %s to %s, newest %s. ", s->n),
		   s->n, s->points[0].night, s->points[s->n - 1].night, value_text(text[0], lo),
		   with_unit(text[1], hi, &s->row), value_text(text[2], s->points[s->n - 1].value));
	for (size_t i = 0; i < s->n_marks; i++) {
		const struct nights_mark *m = &s->marks[i];
		struct buf effect = {0};

		nights_effect(m->est, m->lo, m->hi, &effect);
		buf_printf(out, _("Change on %s: %s, %s, %s. "), m->night, effect.data,
			   nights_direction(m->direction),
			   lang_word("change_level", change_level_name(m->level)));
		buf_free(&effect);
	}
	buf_printf(out,
		   _n("The environment changed %zu time.", "The environment changed %zu times.",
		      s->n_events),
		   s->n_events);
}

/* -- picture ---------------------------------------------------------------------------------- */

struct chart {
	const struct nights_series *s;
	struct svg_axis x, y;
	struct buf *out;
};

static double at_night(const struct chart *c, const char *night)
{
	return svg_at(&c->x, fmin(fmax(regress_day(night), c->x.lo), c->x.hi));
}

static void set_axes(struct chart *c, int first_day, int last_day)
{
	double lo = c->s->points[0].value, hi = lo, room;

	for (size_t i = 1; i < c->s->n; i++) {
		lo = fmin(lo, c->s->points[i].value);
		hi = fmax(hi, c->s->points[i].value);
	}
	room = hi > lo ? 0.06 * (hi - lo) : lo != 0 ? 0.01 * fabs(lo) : 1;
	c->y = (struct svg_axis){lo - room, hi + room, HEIGHT - BOTTOM, TOP};
	c->x = (struct svg_axis){first_day, last_day, LEFT, WIDTH - RIGHT};
	if (first_day == last_day) {
		c->x.lo -= 1;
		c->x.hi += 1;
	}
}

static void tick_text(double v, int digits, char *out, size_t n)
{
	if (fabs(v) >= 1e6 || digits > 5)
		snprintf(out, n, "%.3g", v);
	else
		snprintf(out, n, "%.*f", digits, v);
}

static void draw_grid(struct chart *c, int first_day, int last_day)
{
	struct nights_tick ticks[NIGHTS_TICKS_MAX];
	double v[VALUE_TICKS_MAX];
	char text[32];
	int digits;
	size_t n = svg_ticks(c->y.lo, c->y.hi, VALUE_TICKS, v, VALUE_TICKS_MAX, &digits);

	for (size_t i = 0; i < n; i++) {
		double y = svg_at(&c->y, v[i]);

		svg_line(c->out, "grid", LEFT, y, WIDTH - RIGHT, y);
		tick_text(v[i], digits, text, sizeof text);
		svg_text(c->out, "y", LEFT - 8, y + 4, SVG_END, text);
	}
	n = nights_ticks(first_day, last_day, ticks);
	for (size_t i = 0; i < n; i++) {
		double x = svg_at(&c->x, ticks[i].day);

		svg_line(c->out, "grid", x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 5);
		svg_text(c->out, ticks[i].spare ? "x spare" : "x", x, HEIGHT - BOTTOM + 20,
			 SVG_MIDDLE, ticks[i].label);
	}
}

/* A diamond a night, whatever number of keys changed then. */
static void draw_events(struct chart *c)
{
	bool many = c->s->n_events > MANY_EVENTS; /* lines would hide the points */
	struct buf words = {0};

	for (size_t i = 0; i < c->s->n_events; i++) {
		const struct nights_event *v = &c->s->events[i];
		bool last = i + 1 == c->s->n_events || !str_eq(v->night, v[1].night);
		double x = at_night(c, v->night);

		if (words.len)
			buf_str(&words, "; ");
		else
			buf_printf(&words, "%s: ", v->night);
		buf_printf(&words, _("%s %s to %s"), v->key, v->was ? v->was : _("(not known)"),
			   v->is ? v->is : _("(not known)"));
		if (!last)
			continue;
		if (!many)
			svg_line(c->out, "ev", x, TOP, x, HEIGHT - BOTTOM);
		svg_diamond(c->out, "mark", x, HEIGHT - 10, many ? 3.5 : 5, words.data);
		buf_clear(&words);
	}
	buf_free(&words);
}

static void draw_points(struct chart *c)
{
	const struct nights_series *s = c->s;
	bool many = s->n > MANY;
	int before = 0;

	svg_path_begin(c->out, many ? "run many" : "run");
	for (size_t i = 0; i < s->n; i++) {
		double x = at_night(c, s->points[i].night), y = svg_at(&c->y, s->points[i].value);
		int day = (int)regress_day(s->points[i].night);

		if (i && day - before <= GAP)
			svg_line_to(c->out, x, y);
		else
			svg_move_to(c->out, x, y);
		before = day;
	}
	svg_path_end(c->out);
	svg_path_begin(c->out, many ? "pts many" : "pts");
	for (size_t i = 0; i < s->n; i++)
		svg_point_at(c->out, at_night(c, s->points[i].night),
			     svg_at(&c->y, s->points[i].value));
	svg_path_end(c->out);
}

/* The mean between the changes that are drawn, from the first to the last of its nights. */
static void draw_levels(struct chart *c)
{
	const struct nights_series *s = c->s;
	size_t from = 0, mark = 0;

	svg_path_begin(c->out, "level");
	while (from < s->n) {
		double sum = 0, y;
		size_t to = from;

		while (mark < s->n_marks &&
		       strcmp(s->marks[mark].night, s->points[from].night) <= 0)
			mark++;
		for (; to < s->n && (mark == s->n_marks ||
				     strcmp(s->points[to].night, s->marks[mark].night) < 0);
		     to++)
			sum += s->points[to].value;
		y = svg_at(&c->y, sum / (double)(to - from));
		svg_move_to(c->out, at_night(c, s->points[from].night), y);
		svg_line_to(c->out, at_night(c, s->points[to - 1].night), y);
		from = to;
	}
	svg_path_end(c->out);
}

static void draw_tag(struct chart *c, const struct nights_mark *m, double x, double y)
{
	_cleanup_free_ char *class = xasprintf("tag %s", nights_mark_class(m));
	struct buf words = {0};

	if (m->regression)
		buf_printf(&words, "#%lld ", (long long)m->regression);
	buf_printf(&words, "%+.1f %%%s", 100 * m->est, m->level == CHANGE_SUSPECT ? "?" : "");
	svg_text(c->out, class, x, y,
		 x > WIDTH - RIGHT - TAG_ROOM / 2.0 ? SVG_END
		 : x < LEFT + TAG_ROOM / 2.0        ? SVG_START
						    : SVG_MIDDLE,
		 words.data);
	buf_free(&words);
}

static void draw_mark(struct chart *c, const struct nights_mark *m, double x, double top)
{
	double first = at_night(c, m->first), last = at_night(c, m->last);
	_cleanup_free_ char *class = xasprintf("at %s", nights_mark_class(m)),
			    *band = xasprintf("band %s", nights_mark_class(m));

	if (last > first)
		svg_rect(c->out, band, first, TOP, last - first, HEIGHT - BOTTOM - TOP);
	svg_line(c->out, class, x, top, x, HEIGHT - BOTTOM);
}

/* Labels stand in two rows; one that finds room in neither is left to the table. */
static void draw_marks(struct chart *c)
{
	static const double row_y[] = {14, 30};
	double end[] = {-TAG_ROOM, -TAG_ROOM};

	for (size_t i = 0; i < c->s->n_marks; i++) {
		const struct nights_mark *m = &c->s->marks[i];
		double x = at_night(c, m->night);
		size_t row = 0;

		while (row < 2 && x - end[row] < TAG_ROOM)
			row++;
		draw_mark(c, m, x, row < 2 ? row_y[row] + 5 : TOP);
		if (row == 2)
			continue;
		draw_tag(c, m, x, row_y[row]);
		end[row] = x;
	}
}

void nights_chart(const struct nights_series *s, int first_day, int last_day, struct buf *out)
{
	struct chart c = {.s = s, .out = out};
	struct buf words = {0};

	nights_chart_words(s, &words);
	set_axes(&c, first_day, last_day);
	svg_begin(out, WIDTH, HEIGHT, words.data);
	draw_grid(&c, first_day, last_day);
	draw_events(&c);
	draw_points(&c);
	draw_levels(&c);
	draw_marks(&c);
	svg_end(out);
	buf_free(&words);
}
