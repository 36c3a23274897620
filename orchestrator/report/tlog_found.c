/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What came out of it: knobs by effect; what was refuted, and what was left out and why. */
#include "orchestrator/report/tlog.h"

#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/recorded.h"

/* The tested by what they did, then the screened: their means claim nothing. */
static void tested_rows(const struct report *r, struct doc *doc)
{
	_cleanup_free_ size_t *order = xcalloc(r->n_hyps + 1, sizeof *order);
	size_t n = report_ranking(r, order);

	for (size_t i = 0; i < n; i++) {
		const struct report_hypothesis *h = &r->hyps[order[i]];

		doc_row(doc);
		doc_cell_i64(doc, (int64_t)i + 1);
		tlog_cell_change(doc, &h->row);
		doc_cell_percent(doc, h->verdict.est, 1);
		doc_cell_interval(doc, h->verdict.lo, h->verdict.hi);
		doc_cell(doc, tlog_outcome(h));
	}
}

struct screened {
	double effect;
	size_t hypothesis;
};

static int by_effect(const void *a, const void *b)
{
	const struct screened *x = a, *y = b;

	if (x->effect != y->effect)
		return x->effect < y->effect ? 1 : -1;
	return (x->hypothesis > y->hypothesis) - (x->hypothesis < y->hypothesis);
}

static void screened_rows(const struct report *r, struct doc *doc)
{
	_cleanup_free_ struct screened *v = xcalloc(r->n_hyps + 1, sizeof *v);
	size_t n = 0;

	for (size_t i = 0; i < r->n_hyps; i++)
		if (report_fate_of(&r->hyps[i]) == FATE_SCREENED_OUT &&
		    isfinite(r->hyps[i].screen_mean))
			v[n++] = (struct screened){r->hyps[i].screen_mean, i};
	qsort(v, n, sizeof *v, by_effect);
	for (size_t i = 0; i < n; i++) {
		const struct report_hypothesis *h = &r->hyps[v[i].hypothesis];

		doc_row(doc);
		doc_cell(doc, NULL);
		tlog_cell_change(doc, &h->row);
		doc_cell_percent(doc, h->screen_mean, 1);
		doc_cell(doc, NULL);
		doc_cell_printf(doc, "screened only, round %d", h->row.round);
	}
}

void tlog_ranking(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {{"place", true},    {"knob", false},
					      {"change", false},  {"effect", true},
					      {"interval", true}, {"verdict", false}};

	if (r->n_hyps == 0 || !tlog_tests(r))
		return;
	doc_title(doc, 2, "Knobs by their effect");
	doc_table(doc, c, ARRAY_LEN(c));
	tested_rows(r, doc);
	screened_rows(r, doc);
	tlog_interactions(r, doc);
}

/* -- what did not work ------------------------------------------------------------------------ */

/* Number of its section in step 4, which counts what has a look; 0: it has none. */
static size_t number_of(const struct report *r, const struct report_hypothesis *h)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_hyps; i++) {
		n += r->hyps[i].n_looks > 0;
		if (&r->hyps[i] == h)
			return h->n_looks ? n : 0;
	}
	return 0;
}

static void list(const struct report *r, enum report_fate fate, const char *title, const char *none,
		 struct doc *doc)
{
	size_t n = 0, number;

	doc_title(doc, 3, title);
	for (size_t i = 0; i < r->n_hyps; i++) {
		const struct report_hypothesis *h = &r->hyps[i];

		if (report_fate_of(h) != fate)
			continue;
		n++;
		doc_item(doc);
		tlog_verdict(h, doc);
		if ((number = number_of(r, h)) > 0)
			doc_printf(doc, " (all of it: 4.%zu)", number);
	}
	if (n == 0)
		doc_say(doc, none);
}

/* The same reason for many is one item; the mean itself is no reason. */
static const char *screen_reason(const struct report_hypothesis *h)
{
	if (!h->row.reason || str_starts(h->row.reason, "screen mean"))
		return _("no better than the baseline in the screen");
	return h->row.reason;
}

static bool is_first(const struct report *r, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (report_fate_of(&r->hyps[k]) == FATE_SCREENED_OUT &&
		    str_eq(screen_reason(&r->hyps[k]), screen_reason(&r->hyps[i])))
			return false;
	return true;
}

static void screened_group(const struct report *r, size_t first, struct doc *doc)
{
	const char *reason = screen_reason(&r->hyps[first]);
	_cleanup_free_ char *text = recorded_text(reason);
	char mean[DOC_FIGURES_MAX];

	doc_item(doc);
	doc_printf(doc, "%s:", text);
	for (size_t i = first; i < r->n_hyps; i++) {
		const struct report_hypothesis *h = &r->hyps[i];

		if (report_fate_of(h) != FATE_SCREENED_OUT || !str_eq(screen_reason(h), reason))
			continue;
		doc_subitem(doc);
		tlog_change(doc, &h->row);
		doc_printf(doc, ", round %d: %s", h->row.round,
			   doc_percent_text(mean, h->screen_mean, 1));
	}
}

static void screened_list(const struct report *r, struct doc *doc)
{
	bool any = false;

	doc_title(doc, 3, "Screened out");
	for (size_t i = 0; i < r->n_hyps; i++)
		if (report_fate_of(&r->hyps[i]) == FATE_SCREENED_OUT && is_first(r, i)) {
			any = true;
			screened_group(r, i, doc);
		}
	if (!any)
		doc_say(doc, "Nothing was screened out.");
}

/* Branches of the diagnosis that stayed open. */
static void open_questions(const struct report *r, struct doc *doc)
{
	bool any = false;

	for (size_t i = 0; i < r->n_findings; i++) {
		_cleanup_free_ char *text = NULL;

		if (!report_finding_is_open(&r->findings[i]))
			continue;
		if (!any)
			doc_say(doc, "Questions of the diagnosis that the signals at hand do not "
				     "answer:");
		any = true;
		text = recorded_text(r->findings[i].evidence);
		doc_item(doc);
		doc_text(doc, text);
	}
}

void tlog_negatives(const struct report *r, struct doc *doc)
{
	if (r->recipe->canary.blocks)
		return;
	doc_title(doc, 2, "What did not work, and what was not tried");
	if (tlog_tests(r)) {
		list(r, FATE_REFUTED, N_("Refuted"), N_("Nothing was refuted."), doc);
		list(r, FATE_UNJUDGED, "Not judged", "Everything that was tested was judged.", doc);
		screened_list(r, doc);
	}
	list(r, FATE_NOT_TRIED, N_("Not tried"), N_("Nothing was left out."), doc);
	open_questions(r, doc);
}
