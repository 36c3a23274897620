/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Regressions on the page of nights: what is confirmed and open as cards, the others in tables. */
#include "orchestrator/report/nights_html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/nights_chart.h"
#include "orchestrator/report/recorded.h"

static bool on_page(const struct nights_page *p, int64_t series)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].row.id == series)
			return true;
	return false;
}

/* "step_time_ms mean of train" */
static char *whose(const struct series_row *s)
{
	_cleanup_free_ char *title = nights_title(s);

	return xasprintf(_("%s of %s"), title, s->workload);
}

static void series_link(struct nights_page *p, const struct series_row *s)
{
	_cleanup_free_ char *name = whose(s), *place = xasprintf(_(" on %s"), s->place);
	bool here = on_page(p, s->id);

	if (here)
		buf_printf(p->out, "<a href=\"#s%lld\">", (long long)s->id);
	text(p, name);
	if (here)
		put(p, "</a>");
	if (*s->place)
		text(p, place);
}

static void effect(struct nights_page *p, const struct change_row *c, const char *class)
{
	buf_printf(p->out, "<p class=\"effect %s\">%+.1f&nbsp;%%", class, 100 * c->est);
	if (isfinite(c->lo) && isfinite(c->hi))
		buf_printf(p->out, " <small class=\"soft\">[%+.1f, %+.1f]</small>", 100 * c->lo,
			   100 * c->hi);
	put(p, "</p>\n");
}

static void cause(struct nights_page *p, const struct cause_row *c)
{
	_cleanup_free_ char *why = recorded_text(c->why);

	buf_printf(p->out, "<p>%s<b>%s", c->proved ? _("Proved cause: ") : _("Likeliest cause: "),
		   c->kind == CAUSE_NODE ? _("node ") : "");
	text(p, c->key);
	put(p, "</b>");
	if (c->was || c->is)
		nights_html_from_to(p, c->was, c->is);
	put(p, "<br><span class=\"soft\">");
	text(p, why);
	put(p, "</span></p>\n");
}

static void note(struct nights_page *p, const struct regression_row *r)
{
	_cleanup_free_ char *said = recorded_text(r->note);

	if (!r->note)
		return;
	put(p, "<p class=\"quote\">");
	text(p, said);
	put(p, " <span class=\"soft\">");
	text(p, r->who ? r->who : "fettle");
	put(p, "</span></p>\n");
}

/* The nights in which it may have come, by the series that speaks for it. */
static void came(struct nights_page *p, const struct regression_view *v)
{
	const struct change_row *c = v->n_moved ? &v->moved[0].change : NULL;

	put(p, "<p class=\"soft\">");
	buf_printf(p->out, _("Night of %s"), v->row.night);
	if (c && !str_eq(c->first_night, c->last_night))
		buf_printf(p->out, _(", between %s and %s"), c->first_night, c->last_night);
	put(p, "</p>\n");
}

static void regression_card(struct nights_page *p, const struct regression_view *v)
{
	const char *class = nights_html_class(&v->row);

	buf_printf(p->out,
		   "<article class=\"card reg\" id=\"r%lld\">\n<div class=\"row\"><h3>#%lld</h3>"
		   "<span class=\"badge %s\">%s%s%s</span><span class=\"soft\">%s</span></div>\n",
		   (long long)v->row.id, (long long)v->row.id, class,
		   lang_word("regression_kind", regression_kind_name(v->row.kind)), _(", "),
		   lang_word("change_level", change_level_name(v->row.level)),
		   nights_html_state(v->row.state));
	if (v->n_moved) {
		const struct change_row *c = &v->moved[0].change;

		effect(p, c, class);
		put(p, "<p>");
		series_link(p, &v->moved[0].series);
		if (v->n_moved > 1) {
			put(p, " <span class=\"soft\">");
			buf_printf(p->out, _("and %zu more"), v->n_moved - 1);
			put(p, "</span>");
		}
		put(p, "</p>\n");
	}
	came(p, v);
	if (v->n_causes)
		cause(p, &v->causes[0]);
	note(p, &v->row);
	put(p, "</article>\n");
}

static void regression_row(struct nights_page *p, const struct regression_view *v)
{
	_cleanup_free_ char *note = recorded_text(v->row.note);

	buf_printf(p->out,
		   "<tr id=\"r%lld\"><td class=\"n\">#%lld</td><td>%s</td><td>%s</td><td>%s"
		   "</td><td class=\"n\">",
		   (long long)v->row.id, (long long)v->row.id, v->row.night,
		   nights_html_state(v->row.state), regression_word(&v->row));
	if (v->n_moved) {
		buf_printf(p->out, "%+.1f&nbsp;%%</td><td>", 100 * v->moved[0].change.est);
		series_link(p, &v->moved[0].series);
	} else {
		put(p, "</td><td>");
	}
	put(p, "</td><td>");
	if (v->n_causes) {
		text(p, v->causes[0].key);
		if (v->causes[0].was || v->causes[0].is)
			nights_html_from_to(p, v->causes[0].was, v->causes[0].is);
	}
	put(p, "</td><td>");
	text(p, note);
	put(p, "</td></tr>\n");
}

/* Where each regression stands on the page: what is confirmed and watched as a card of its own. */
enum shelf { SHELF_CARDS, SHELF_SUSPECTS, SHELF_ALONE, SHELF_CLOSED };

static bool may_rerun(const struct regression_view *v)
{
	for (size_t i = 0; i < v->n_moved; i++)
		if (v->moved[i].series.source == SERIES_CANARY)
			return true;
	return false;
}

static enum shelf shelf_of(const struct regression_view *v)
{
	if (!regression_watched(&v->row))
		return SHELF_CLOSED;
	if (v->row.level != CHANGE_SUSPECT)
		return SHELF_CARDS;
	return may_rerun(v) ? SHELF_SUSPECTS : SHELF_ALONE;
}

static size_t count(const struct nights_page *p, enum shelf shelf)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_r; i++)
		n += shelf_of(&p->r[i]) == shelf;
	return n;
}

/* A folded table: its summary stands in front. */
static void regression_table(struct nights_page *p, enum shelf shelf)
{
	static const struct doc_column c[] = {
		{"#", true},      {"night", false},  {"state", false},           {"kind", false},
		{"change", true}, {"series", false}, {"likeliest cause", false}, {"note", false}};

	if (count(p, shelf) == 0)
		return;
	buf_printf(p->out, "<details%s><summary>", shelf == SHELF_CLOSED ? "" : " open");
	buf_printf(p->out,
		   shelf == SHELF_CLOSED ? _("%zu closed")
		   : shelf == SHELF_SUSPECTS
			   ? _("%zu suspected: a re-run will tell")
			   : _("%zu suspected that fettle does not measure itself: "
			       "more nights will tell"),
		   count(p, shelf));
	put(p, "</summary>");
	nights_html_table(p, c, ARRAY_LEN(c));
	for (size_t i = 0; i < p->n_r; i++)
		if (shelf_of(&p->r[i]) == shelf)
			regression_row(p, &p->r[i]);
	put(p, "</table></div></details>\n");
}

void nights_html_regressions(struct nights_page *p)
{
	bool any = count(p, SHELF_CARDS) > 0;

	buf_printf(p->out, "<section><h2>%s</h2>\n", _("Regressions"));
	if (any)
		put(p, "<div class=\"cards\">\n");
	else
		buf_printf(p->out, "<p>%s</p>\n", _("None that is confirmed is open."));
	for (size_t i = 0; i < p->n_r; i++)
		if (shelf_of(&p->r[i]) == SHELF_CARDS)
			regression_card(p, &p->r[i]);
	if (any)
		put(p, "</div>\n");
	regression_table(p, SHELF_SUSPECTS);
	regression_table(p, SHELF_ALONE);
	regression_table(p, SHELF_CLOSED);
	put(p, "</section>\n");
}
