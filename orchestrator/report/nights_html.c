/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page of series over nights: regressions, a time line of what changed, a picture a series. */
#include "orchestrator/report/nights_html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/regress.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/nights_chart.h"
#include "orchestrator/report/recorded.h"
#include "orchestrator/report/svg.h"

enum {
	LANES_MAX = 16,       /* keys of the time line; the others share one */
	ROWS_MAX = 20000,     /* of all tables of points together: a page of some megabytes */
	ROWS_OF_MANY = 60,    /* newest nights of each series where there would be more */
	EVENT_ROWS_MAX = 500, /* of the table behind the time line: newest */
};

static const char css[] =
	".head{display:flex;flex-wrap:wrap;gap:4px 24px;align-items:baseline}\n"
	".grid2{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,520px),1fr));"
	"gap:16px}\n"
	".cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,360px),1fr));"
	"gap:16px}\n"
	"figure{margin:0;min-width:0}\n"
	"figcaption{display:flex;flex-wrap:wrap;gap:2px 16px;justify-content:space-between;"
	"align-items:baseline;margin-bottom:10px}\n"
	"figcaption .now{font-variant-numeric:tabular-nums}\n"
	"h2 small{font-weight:400;color:var(--soft);font-size:14px}\n"
	".effect{font-size:22px;font-weight:600;line-height:1.25;margin:2px 0 4px;"
	"font-variant-numeric:tabular-nums}\n"
	".badge{font-size:12px;font-weight:600;border:1px solid currentColor;border-radius:999px;"
	"padding:1px 9px;white-space:nowrap}\n"
	".row{display:flex;flex-wrap:wrap;gap:6px 10px;align-items:center}\n"
	".reg p{margin:0 0 4px}.reg .quote{border-left:3px solid var(--line);padding-left:10px}\n"
	"details{margin-top:10px}summary{cursor:pointer;color:var(--soft);font-size:13px}\n"
	"details[open] summary{margin-bottom:8px}\n"
	"details .wide{max-height:320px;overflow:auto;margin-bottom:8px}\n"
	".lane{display:grid;grid-template-columns:minmax(90px,180px) 1fr;gap:12px;"
	"align-items:center;min-height:27px;border-top:1px solid var(--line)}\n"
	".lane:first-child{border-top:0}\n"
	".lane>span{font-size:13px;color:var(--soft)}\n"
	".track{position:relative;height:22px;margin:0 16px}\n"
	".track>*{position:absolute;top:50%;transform:translate(-50%,-50%);font-size:12px;"
	"white-space:nowrap;text-decoration:none}\n"
	".pin{background:var(--card);border:1.5px solid currentColor;border-radius:999px;"
	"padding:0 6px;font-weight:600;line-height:18px}\n"
	".stone{color:var(--event);opacity:.8;font-size:15px!important;line-height:1;cursor:default}\n"
	".ruler{color:var(--soft)}\n"
	".legend{font-size:13px;color:var(--soft);margin:14px 0 0}\n"
	"@media screen and (max-width:640px){body{padding:20px 14px 48px}.card{padding:12px}"
	".lane{grid-template-columns:88px 1fr}.track .spare{display:none}}\n"
	"@media print{details:not([open]){display:none}.grid2,.cards{display:block}"
	".card{margin-bottom:12px}}\n";

const char *nights_html_class(const struct regression_row *r)
{
	if (r->level == CHANGE_SUSPECT || r->kind == REGRESSION_SHIFT)
		return "suspect";
	return r->kind == REGRESSION_WORSE ? "worse" : "better";
}

const char *nights_html_state(enum regression_state s)
{
	return lang_word("regression_state", regression_state_name(s));
}

void nights_html_from_to(struct nights_page *p, const char *was, const char *is)
{
	put(p, " ");
	text(p, was ? was : _("(not known)"));
	put(p, " \xe2\x86\x92 "); /* an arrow to the right */
	text(p, is ? is : _("(not known)"));
}

void nights_html_table(struct nights_page *p, const struct doc_column *c, size_t n)
{
	put(p, "<div class=\"wide\" tabindex=\"0\"><table>\n<tr>");
	for (size_t i = 0; i < n; i++)
		buf_printf(p->out, "<th%s>%s</th>", c[i].right ? " class=\"n\"" : "",
			   lang_text(c[i].title));
	put(p, "</tr>\n");
}

/* -- time line -------------------------------------------------------------------------------- */

/* A change of the environment, whichever series saw it. */
struct seen {
	const struct nights_event *event;
	size_t series; /* that saw it */
};

static int compare_events(const struct nights_event *a, const struct nights_event *b)
{
	int d = strcmp(a->night, b->night);

	if (d == 0)
		d = strcmp(a->key, b->key);
	if (d == 0)
		d = strcmp(a->was ? a->was : "", b->was ? b->was : "");
	return d ? d : strcmp(a->is ? a->is : "", b->is ? b->is : "");
}

static int by_event(const void *a, const void *b)
{
	return compare_events(((const struct seen *)a)->event, ((const struct seen *)b)->event);
}

/* Each once, by night and key; heap. */
static struct seen *collect(const struct nights_page *p, size_t *n)
{
	struct seen *v = NULL;
	size_t all = 0, cap = 0, used = 0;

	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; k < p->v[i].n_events; k++) {
			v = xgrow(v, all, &cap, sizeof *v);
			v[all++] = (struct seen){&p->v[i].events[k], 1};
		}
	if (all)
		qsort(v, all, sizeof *v, by_event);
	for (size_t i = 0; i < all; i++) {
		if (used && compare_events(v[used - 1].event, v[i].event) == 0)
			v[used - 1].series++;
		else
			v[used++] = v[i];
	}
	*n = used;
	return v;
}

static double share(const struct nights_page *p, int day)
{
	double at = p->last_day > p->first_day
			    ? (double)(day - p->first_day) / (double)(p->last_day - p->first_day)
			    : 0.5;

	return 100 * fmin(fmax(at, 0), 1);
}

static void lane_begin(struct nights_page *p, const char *name)
{
	put(p, "<div class=\"lane\"><span>");
	if (*name)
		text(p, name);
	else
		put(p, "&nbsp;");
	put(p, "</span><div class=\"track\">");
}

static void lane_end(struct nights_page *p)
{
	put(p, "</div></div>\n");
}

static void stone(struct nights_page *p, const struct nights_event *v)
{
	buf_printf(p->out, "<span class=\"stone\" style=\"left:%.1f%%\" title=\"%s: ",
		   share(p, regress_day(v->night)), v->night);
	text(p, v->key);
	nights_html_from_to(p, v->was, v->is);
	put(p, "\">\xe2\x97\x86</span>"); /* a black diamond */
}

static void regression_lane(struct nights_page *p)
{
	lane_begin(p, _("regressions"));
	for (size_t i = p->n_r; i-- > 0;) {
		const struct regression_row *r = &p->r[i].row;
		int day = (int)regress_day(r->night);

		if (day < p->first_day || day > p->last_day ||
		    (!regression_watched(r) && r->state != REGRESSION_FIXED &&
		     r->state != REGRESSION_ACCEPTED))
			continue;
		buf_printf(p->out,
			   "<a class=\"pin %s\" href=\"#r%lld\" style=\"left:%.1f%%\" title=\"%s: "
			   "%s, %s\">%lld</a>",
			   regression_watched(r) ? nights_html_class(r) : "soft", (long long)r->id,
			   share(p, day), r->night, regression_word(r), nights_html_state(r->state),
			   (long long)r->id);
	}
	lane_end(p);
}

/* Keys in the order in which they first changed. */
static size_t lane_keys(const struct seen *v, size_t n, const char *keys[LANES_MAX])
{
	size_t used = 0;

	for (size_t i = 0; i < n && used < LANES_MAX; i++) {
		bool known = false;

		for (size_t k = 0; k < used; k++)
			known |= str_eq(keys[k], v[i].event->key);
		if (!known)
			keys[used++] = v[i].event->key;
	}
	return used;
}

static bool among(const char *const *keys, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(keys[i], key))
			return true;
	return false;
}

static void key_lanes(struct nights_page *p, const struct seen *v, size_t n)
{
	const char *keys[LANES_MAX];
	size_t n_keys = lane_keys(v, n, keys);
	bool others = false;

	for (size_t k = 0; k < n_keys; k++) {
		lane_begin(p, keys[k]);
		for (size_t i = 0; i < n; i++)
			if (str_eq(v[i].event->key, keys[k]))
				stone(p, v[i].event);
		lane_end(p);
	}
	for (size_t i = 0; i < n; i++) {
		if (among(keys, n_keys, v[i].event->key))
			continue;
		if (!others)
			lane_begin(p, _("other keys"));
		others = true;
		stone(p, v[i].event);
	}
	if (others)
		lane_end(p);
}

static void ruler(struct nights_page *p)
{
	struct nights_tick ticks[NIGHTS_TICKS_MAX];
	size_t n = nights_ticks(p->first_day, p->last_day, ticks);

	lane_begin(p, "");
	for (size_t i = 0; i < n; i++)
		buf_printf(p->out, "<span class=\"ruler%s\" style=\"left:%.1f%%\">%s</span>",
			   ticks[i].spare ? " spare" : "", share(p, ticks[i].day), ticks[i].label);
	lane_end(p);
}

static void event_cells(struct nights_page *p, const struct nights_event *v)
{
	buf_printf(p->out, "<tr><td>%s</td><td>", v->night);
	text(p, v->key);
	put(p, "</td><td>");
	text(p, v->was ? v->was : _("(not known)"));
	put(p, "</td><td>");
	text(p, v->is ? v->is : _("(not known)"));
	put(p, "</td>");
}

static void event_table(struct nights_page *p, const struct seen *v, size_t n)
{
	static const struct doc_column c[] = {
		{"night", false}, {"key", false}, {"was", false}, {"is", false}, {"series", true}};
	size_t from = n > EVENT_ROWS_MAX ? n - EVENT_ROWS_MAX : 0;

	put(p, "<details><summary>");
	if (from)
		buf_printf(p->out, _("%zu changes of the environment as a table, the newest %d"), n,
			   EVENT_ROWS_MAX);
	else
		buf_printf(p->out,
			   _n("%zu change of the environment as a table",
			      "%zu changes of the environment as a table", n),
			   n);
	put(p, "</summary>");
	nights_html_table(p, c, ARRAY_LEN(c));
	for (size_t i = n; i-- > from;) {
		event_cells(p, v[i].event);
		buf_printf(p->out, "<td class=\"n\">%zu</td></tr>\n", v[i].series);
	}
	put(p, "</table></div></details>\n");
}

static void time_line(struct nights_page *p)
{
	size_t n = 0;
	struct seen *v;

	if (p->first_day > p->last_day)
		return;
	v = collect(p, &n);
	buf_printf(p->out, "<section><h2>%s</h2>\n<div class=\"card\">\n", _("What changed when"));
	regression_lane(p);
	key_lanes(p, v, n);
	ruler(p);
	if (n)
		event_table(p, v, n);
	put(p, "</div></section>\n");
	free(v);
}

/* -- series ----------------------------------------------------------------------------------- */

static void mark_table(struct nights_page *p, const struct nights_series *s)
{
	static const struct doc_column c[] = {
		{"change", false}, {"between", false}, {"by", true}, {"what", false}};

	nights_html_table(p, c, ARRAY_LEN(c));
	for (size_t i = 0; i < s->n_marks; i++) {
		const struct nights_mark *m = &s->marks[i];
		_cleanup_free_ char *why = recorded_text(m->why);
		struct buf words = {0};

		nights_effect(m->est, m->lo, m->hi, &words);
		buf_printf(p->out, "<tr><td>%s</td><td>", m->night);
		buf_printf(p->out, _("%s and %s"), m->first, m->last);
		buf_printf(p->out, "</td><td class=\"n\">%s</td><td>%s%s%s", words.data,
			   nights_direction(m->direction), _(", "),
			   m->regression ? lang_word("change_level", change_level_name(m->level))
					 : _("not tracked"));
		if (m->regression)
			buf_printf(p->out, "%s<a href=\"#r%lld\">#%lld</a> %s", _(", "),
				   (long long)m->regression, (long long)m->regression,
				   nights_html_state(m->state));
		if (why) {
			put(p, _(": "));
			text(p, why);
		}
		put(p, "</td></tr>\n");
		buf_free(&words);
	}
	put(p, "</table></div>\n");
}

static void series_event_table(struct nights_page *p, const struct nights_series *s)
{
	static const struct doc_column c[] = {
		{"night", false}, {"key", false}, {"was", false}, {"is", false}};

	nights_html_table(p, c, ARRAY_LEN(c));
	for (size_t i = 0; i < s->n_events; i++) {
		event_cells(p, &s->events[i]);
		put(p, "</tr>\n");
	}
	put(p, "</table></div>\n");
}

static void point_table(struct nights_page *p, const struct nights_series *s)
{
	static const struct doc_column c[] = {
		{"night", false}, {"value", true}, {"sd", true}, {"n", true}};
	size_t shown = p->rows > ROWS_MAX && s->n > ROWS_OF_MANY ? ROWS_OF_MANY : s->n;

	nights_html_table(p, c, ARRAY_LEN(c));
	for (size_t i = s->n; i-- > s->n - shown;) {
		const struct point_row *q = &s->points[i];

		buf_printf(p->out, "<tr><td>%s</td><td class=\"n\">%.6g</td><td class=\"n\">",
			   q->night, q->value);
		if (isfinite(q->sd))
			buf_printf(p->out, "%.3g", q->sd);
		buf_printf(p->out, "</td><td class=\"n\">%d</td></tr>\n", q->n);
	}
	put(p, "</table></div>\n");
	if (shown == s->n)
		return;
	put(p, "<p class=\"soft\">");
	buf_printf(
		p->out,
		_("The newest %zu nights; <code>fettle history %lld --all</code> has every one."),
		shown, (long long)s->row.id);
	put(p, "</p>\n");
}

static void tables(struct nights_page *p, const struct nights_series *s)
{
	struct buf words = {0};

	nights_chart_words(s, &words);
	buf_printf(p->out, "<details><summary>%s</summary>\n<p class=\"soft\">", _("As a table"));
	text(p, words.data);
	put(p, "</p>\n");
	if (s->n_marks)
		mark_table(p, s);
	if (s->n_events)
		series_event_table(p, s);
	point_table(p, s);
	put(p, "</details>\n");
	buf_free(&words);
}

static void newest(struct nights_page *p, const struct nights_series *s)
{
	const struct nights_mark *last = NULL;

	for (size_t i = 0; i < s->n_marks; i++)
		if (nights_alarming(&s->marks[i]))
			last = &s->marks[i];
	put(p, "<span class=\"now\">");
	if (last) {
		buf_printf(p->out, "<span class=\"%s\">", nights_mark_class(last));
		buf_printf(p->out, _("%+.1f&nbsp;%% since %s"), 100 * last->est, last->night);
		put(p, "</span> · ");
	}
	put(p, "<b>");
	nights_value(s->points[s->n - 1].value, p->out);
	put(p, "</b>");
	if (*s->row.unit && !str_eq(s->row.unit, "1")) {
		put(p, "&nbsp;");
		text(p, s->row.unit);
	}
	put(p, "</span>");
}

static void figure(struct nights_page *p, const struct nights_series *s)
{
	_cleanup_free_ char *title = nights_title(&s->row);

	buf_printf(p->out, "<figure class=\"card\" id=\"s%lld\"><figcaption><div><h3>",
		   (long long)s->row.id);
	text(p, title);
	put(p, "</h3><span class=\"soft\">");
	buf_printf(p->out, _("series %lld"), (long long)s->row.id);
	if (s->row.better != BETTER_NONE)
		buf_printf(p->out, " · %s",
			   s->row.better == BETTER_UP ? _("more is better") : _("less is better"));
	put(p, "</span></div>");
	if (s->n)
		newest(p, s);
	put(p, "</figcaption>\n");
	if (s->n) {
		struct nights_series lasting = nights_lasting(s);

		nights_chart(&lasting, p->first_day, p->last_day, p->out);
		tables(p, s);
		free(lasting.marks);
	} else {
		buf_printf(p->out, "<p class=\"soft\">%s</p>\n", _("No night yet."));
	}
	put(p, "</figure>\n");
}

static void group_heading(struct nights_page *p, const struct series_row *s)
{
	_cleanup_free_ char *place = xasprintf(_("on %s"), s->place),
			    *brief = xasprintf(_("configuration %.8s"), s->config);

	put(p, "<section><h2>");
	text(p, s->workload);
	put(p, " <small>");
	if (*s->place) {
		text(p, place);
		put(p, " · ");
	}
	put(p, lang_word("series_source", series_source_name(s->source)));
	if (*s->config) {
		put(p, " · ");
		text(p, brief);
	}
	put(p, "</small></h2>\n<div class=\"grid2\">\n");
}

static void all_series(struct nights_page *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (i == 0 || !nights_same_group(&p->v[i - 1].row, &p->v[i].row)) {
			if (i)
				put(p, "</div></section>\n");
			group_heading(p, &p->v[i].row);
		}
		figure(p, &p->v[i]);
	}
	if (p->n)
		put(p, "</div></section>\n");
}

/* -- page ------------------------------------------------------------------------------------- */

static void measure(struct nights_page *p)
{
	p->first_day = 1;
	p->last_day = 0;
	for (size_t i = 0; i < p->n; i++) {
		const struct nights_series *s = &p->v[i];
		int first, last;

		if (s->n == 0)
			continue;
		first = (int)regress_day(s->points[0].night);
		last = (int)regress_day(s->points[s->n - 1].night);
		if (p->first_day > p->last_day || first < p->first_day)
			p->first_day = first;
		if (last > p->last_day)
			p->last_day = last;
		p->rows += s->n;
	}
}

static void header(struct nights_page *p, const char *title)
{
	_cleanup_free_ char *heading = xasprintf(_("%s over nights"), title);
	size_t open = 0, suspects = 0;
	char first[11], last[11];

	for (size_t i = 0; i < p->n_r; i++) {
		open += regressions_status(&p->r[i], 1) != 0;
		suspects += p->r[i].row.level == CHANGE_SUSPECT && regression_watched(&p->r[i].row);
	}
	put(p, "<header><h1>");
	text(p, heading);
	put(p, "</h1>\n<p class=\"head\"><span>");
	buf_printf(p->out, _n("%zu series", "%zu series", p->n), p->n);
	if (p->first_day <= p->last_day) {
		regress_night(p->first_day, first);
		regress_night(p->last_day, last);
		put(p, "</span><span>");
		buf_printf(p->out, _("%s to %s"), first, last);
	}
	buf_printf(p->out, "</span><span class=\"%s\">", open ? "worse" : "better");
	buf_printf(p->out,
		   _n("%zu confirmed regression open", "%zu confirmed regressions open", open),
		   open);
	put(p, "</span><span>");
	buf_printf(p->out, _("%zu suspected"), suspects);
	put(p, "</span></p></header>\n");
}

void nights_page(const char *title, const struct nights_series *v, size_t n,
		 const struct regression_view *r, size_t n_r, struct buf *out)
{
	struct nights_page p = {.v = v, .n = n, .r = r, .n_r = n_r, .out = out};
	struct buf sheet = {0};

	measure(&p);
	buf_str(&sheet, css);
	buf_str(&sheet, svg_css);
	buf_str(&sheet, nights_chart_css);
	html_head(out, title, sheet.data);
	header(&p, title);
	put(&p, "<main>\n");
	nights_html_regressions(&p);
	time_line(&p);
	if (n)
		buf_printf(out, "<p class=\"legend\">%s</p>\n",
			   _("Dots: nights. Line: mean between changes. Upright line: a change, "
			     "broken while it is only suspected; shaded: the nights in which it "
			     "may have come. Diamonds: the environment changed."));
	all_series(&p);
	put(&p, "</main>\n");
	html_tail(out);
	buf_free(&sheet);
}
