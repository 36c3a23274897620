/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Regressions for a terminal: the list, and all of one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/nights.h"
#include "orchestrator/report/recorded.h"
#include "orchestrator/report/regressions.h"
#include "orchestrator/report/text.h"

#define RED    "\033[31m"
#define GREEN  "\033[32m"
#define YELLOW "\033[33m"
#define BOLD   "\033[1m"
#define RESET  "\033[0m"

enum { EFFECT_COLUMNS = 24, STATE_COLUMNS = 12, KIND_COLUMNS = 7 };

static void coloured(bool colour, const char *code, const char *text, struct buf *out)
{
	if (colour)
		buf_str(out, code);
	text_line(out, text);
	if (colour)
		buf_str(out, RESET);
}

static const char *colour_of(const struct regression_row *r)
{
	if (r->level == CHANGE_SUSPECT || r->kind == REGRESSION_SHIFT)
		return YELLOW;
	return r->kind == REGRESSION_WORSE ? RED : GREEN;
}

static void series_words(const struct series_row *s, struct buf *out)
{
	_cleanup_free_ char *title = nights_title(s);
	_cleanup_free_ char *words = *s->place ? xasprintf(_("%s of %s on %s"), title, s->workload,
							   s->place)
					       : xasprintf(_("%s of %s"), title, s->workload);

	text_line(out, words);
}

/* The effect in a column of its own; without a change an empty one. */
static void effect_cell(const struct change_row *c, struct buf *out)
{
	struct buf effect = {0};

	if (c)
		nights_effect(c->est, c->lo, c->hi, &effect);
	text_cell(out, effect.data ? effect.data : "", EFFECT_COLUMNS);
	buf_free(&effect);
}

static const char *state_word(enum regression_state s)
{
	return lang_word("regression_state", regression_state_name(s));
}

/* -- list ------------------------------------------------------------------------------------- */

static void list_entry(const struct regression_view *v, const struct regression_style *st,
		       struct buf *out)
{
	const struct regression_moved *m = v->n_moved ? &v->moved[0] : NULL;
	const char *word = regression_word(&v->row);
	_cleanup_free_ char *note = recorded_text(v->row.note);
	size_t used = text_width(word);

	buf_printf(out, "%4lld  ", (long long)v->row.id);
	text_cell(out, state_word(v->row.state), STATE_COLUMNS);
	buf_printf(out, "  %s  ", v->row.night);
	coloured(st->colour, colour_of(&v->row), word, out);
	text_cell(out, "", used < KIND_COLUMNS ? KIND_COLUMNS - used : 0);
	buf_str(out, "  ");
	effect_cell(m ? &m->change : NULL, out);
	if (m) {
		buf_str(out, "  ");
		series_words(&m->series, out);
	}
	if (v->n_moved > 1)
		buf_printf(out, _(" and %zu more"), v->n_moved - 1);
	buf_char(out, '\n');
	if (v->n_causes) {
		buf_printf(out, "      %s",
			   v->causes[0].proved ? _("proved cause: ") : _("likeliest cause: "));
		regression_cause(&v->causes[0], out);
		buf_char(out, '\n');
	}
	if (note) {
		buf_str(out, "      ");
		text_line(out, v->row.who ? v->row.who : "fettle");
		buf_str(out, _(": "));
		text_line(out, note);
		buf_char(out, '\n');
	}
}

/* `remark` stands behind what is to be typed. */
static void command(const struct regression_style *st, const char *verb, int64_t id,
		    const char *rest, const char *remark, struct buf *out)
{
	text_sh(out, st->program);
	buf_printf(out, " %s %lld%s", verb, (long long)id, rest);
	if (st->workspace) {
		buf_str(out, " -w ");
		text_sh(out, st->workspace);
	}
	buf_printf(out, "%s%s\n", *remark ? "   " : "", remark);
}

void regressions_text(const struct regression_view *v, size_t n, const struct regression_style *st,
		      struct buf *out)
{
	const struct regression_view *first = NULL;
	size_t open = 0, suspects = 0;

	for (int turn = 0; turn < 2; turn++) /* what is sure comes first */
		for (size_t i = 0; i < n; i++)
			if ((v[i].row.level == CHANGE_SUSPECT) == turn) {
				first = first ? first : &v[i];
				list_entry(&v[i], st, out);
			}
	for (size_t i = 0; i < n; i++) {
		open += regressions_status(&v[i], 1) != 0;
		suspects += v[i].row.level == CHANGE_SUSPECT && regression_watched(&v[i].row);
	}
	if (n)
		buf_char(out, '\n');
	buf_printf(out, _("%zu confirmed and open, %zu suspected (?: not measured again yet)\n"),
		   open, suspects);
	if (first) {
		buf_str(out, _("all about one: "));
		command(st, "regressions show", first->row.id, "", "", out);
	}
}

/* -- one -------------------------------------------------------------------------------------- */

static void heading(const struct regression_view *v, const struct regression_style *st,
		    struct buf *out)
{
	const struct regression_row *r = &v->row;
	_cleanup_free_ char *by = xasprintf(_(" by %s"), r->who ? r->who : "fettle"),
			    *note = recorded_text(r->note);

	buf_printf(out, _("regression %lld: "), (long long)r->id);
	coloured(st->colour, colour_of(r),
		 lang_word("regression_kind", regression_kind_name(r->kind)), out);
	buf_printf(out, _(", %s, %s"), lang_word("change_level", change_level_name(r->level)),
		   state_word(r->state));
	if (r->note || r->who)
		text_line(out, by);
	if (r->note) {
		buf_str(out, _(": "));
		text_line(out, note);
	}
	buf_char(out, '\n');
	buf_printf(out, _("night %s, seen on %s"), r->night, r->found_night);
	if (*r->confirmed_night)
		buf_printf(out, _(", confirmed on %s"), r->confirmed_night);
	buf_char(out, '\n');
}

static void moved_lines(const struct regression_view *v, struct buf *out)
{
	if (v->n_moved)
		buf_str(out, _("\nmoved\n"));
	for (size_t i = 0; i < v->n_moved; i++) {
		const struct change_row *c = &v->moved[i].change;

		buf_str(out, "  ");
		effect_cell(c, out);
		buf_char(out, ' ');
		text_cell(out, nights_direction(c->direction), KIND_COLUMNS);
		buf_str(out, "  ");
		series_words(&v->moved[i].series, out);
		buf_printf(out, _(" (series %lld)"), (long long)c->series);
		if (c->level != v->row.level)
			buf_printf(out, _(", %s"),
				   lang_word("change_level", change_level_name(c->level)));
		if (str_eq(c->first_night, c->last_night))
			buf_printf(out, _(", from %s"), c->night);
		else
			buf_printf(out, _(", between %s and %s"), c->first_night, c->last_night);
		buf_char(out, '\n');
	}
}

/* What re-runs said, each once: series that were measured together share their sentence. */
static void rerun_lines(const struct regression_view *v, struct buf *out)
{
	bool any = false;

	for (size_t i = 0; i < v->n_moved; i++) {
		const char *why = v->moved[i].change.why;
		_cleanup_free_ char *text = NULL;
		bool told = !why;

		for (size_t k = 0; !told && k < i; k++)
			told = str_eq(v->moved[k].change.why, why);
		if (told)
			continue;
		buf_str(out, any ? "  " : _("\nhow it was judged\n  "));
		any = true;
		text = recorded_text(why);
		text_line(out, text);
		buf_char(out, '\n');
	}
}

static void cause_lines(const struct regression_view *v, struct buf *out)
{
	bool probes = false;

	for (size_t i = 0; i < v->n_causes; i++) {
		const struct cause_row *c = &v->causes[i];

		_cleanup_free_ char *why = recorded_text(c->why);

		if (c->kind == CAUSE_METRIC) {
			probes = true;
			continue;
		}
		buf_printf(out, "%s  %d. ", i ? "" : _("\ncauses, likeliest first\n"), c->rank);
		regression_cause(c, out);
		buf_printf(out, "%s\n     ", c->proved ? _("  (proved)") : "");
		text_line(out, why);
		buf_char(out, '\n');
	}
	if (probes)
		buf_str(out, _("\nmoved with it\n"));
	for (size_t i = 0; i < v->n_causes; i++) {
		_cleanup_free_ char *why = recorded_text(v->causes[i].why);

		if (v->causes[i].kind != CAUSE_METRIC)
			continue;
		buf_str(out, "  ");
		regression_cause(&v->causes[i], out);
		buf_str(out, _(": "));
		text_line(out, why);
		buf_char(out, '\n');
	}
}

static bool may_bisect(const struct regression_view *v)
{
	for (size_t i = 0; i < v->n_causes; i++)
		if (v->causes[i].kind == CAUSE_ENVIRONMENT && v->causes[i].was)
			return true;
	return false;
}

static void next_lines(const struct regression_view *v, const struct regression_style *st,
		       struct buf *out)
{
	bool closed = !regression_watched(&v->row);
	int64_t id = v->row.id;

	buf_str(out, _("\nnext\n"));
	if (v->n_moved) {
		buf_str(out, "  ");
		command(st, "history", v->moved[0].series.id, "", "", out);
	}
	if (!closed && may_bisect(v)) {
		buf_str(out, "  ");
		command(st, "regressions bisect", id, "", _("which of the causes it is"), out);
	}
	buf_str(out, "  ");
	if (closed) {
		command(st, "regressions reopen", id, " --note WHY", "", out);
		return;
	}
	if (v->row.state == REGRESSION_OPEN)
		command(st, "regressions ack", id, " --note TEXT", _("somebody works on it"), out);
	else
		command(st, "regressions fix", id, " --note TEXT", _("it is mended"), out);
	buf_str(out, "  ");
	command(st, "regressions accept", id, " --note WHY", _("it is the new normal"), out);
}

void regression_text(const struct regression_view *v, const struct regression_style *st,
		     struct buf *out)
{
	heading(v, st, out);
	moved_lines(v, out);
	rerun_lines(v, out);
	cause_lines(v, out);
	if (v->nodes.n)
		buf_str(out, _("\nnodes of the first night after the change\n  "));
	for (size_t i = 0; i < v->nodes.n; i++) {
		buf_str(out, i ? ", " : "");
		text_line(out, v->nodes.v[i]);
	}
	if (v->nodes.n)
		buf_char(out, '\n');
	next_lines(v, st, out);
}
