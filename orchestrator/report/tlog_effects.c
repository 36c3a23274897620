/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a stage showed beside the objective: guards, and the metrics that nobody asked about. */
#include "orchestrator/report/tlog.h"

#include <math.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/doc.h"

/* A change below this is written as 0.0 %. */
#define SEEN_LEAST 0.0005

void tlog_guards(const struct guard_row *v, size_t n, int64_t verdict, int64_t stage,
		 struct doc *doc)
{
	static const struct doc_column c[] = {{"guard", false},    {"rule", false},
					      {"at equal", false}, {"n", true},
					      {"value", true},     {"worse by", true},
					      {"interval", true},  {"bound", true},
					      {"state", false}};
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		const struct guard_row *g = &v[i];

		if (g->verdict != verdict || g->stage != stage)
			continue;
		if (!any) {
			doc_table(doc, c, ARRAY_LEN(c));
		}
		any = true;
		doc_row(doc);
		doc_cell_begin(doc);
		doc_printf(doc, "`%s` (%s)", g->metric, g->stat);
		doc_cell_end(doc);
		doc_cell_recorded(doc, g->rule);
		doc_cell_recorded(doc, g->equal);
		doc_cell_i64(doc, g->n);
		doc_cell_number(doc, g->value);
		doc_cell_percent(doc, g->worsening, 2);
		doc_cell_interval(doc, g->lo, g->hi);
		if (str_eq(g->rule, "margin"))
			doc_cell_percent(doc, g->bound, 2);
		else
			doc_cell_number(doc, g->bound);
		doc_cell_recorded(doc, g->state);
	}
}

bool tlog_moved(const struct report_pairs *p)
{
	return p->moved && !(fabs(p->effect.est) < SEEN_LEAST);
}

static bool is_other(const struct report *r, const struct report_effect *f)
{
	return !str_eq(f->metric, r->recipe->objective);
}

static void moved_row(const struct report_effect *f, struct doc *doc)
{
	static const char *const words[] = {N_("worse"), "-", N_("better")};
	const struct report_pairs *p = &f->pairs;
	double change = isfinite(p->effect.est) ? p->effect.est : p->moved;

	doc_row(doc);
	doc_cell_code(doc, f->metric);
	doc_cell_number(doc, p->before);
	doc_cell_number(doc, p->after);
	doc_cell_percent(doc, p->effect.est, 1);
	doc_cell_interval(doc, p->effect.lo, p->effect.hi);
	doc_cell(doc, report_unit_of(f->metric));
	doc_cell(doc, _(words[report_judge(f->metric, change) + 1]));
}

static void still(const struct report *r, const struct report_effects *x, bool any, struct doc *doc)
{
	size_t n = 0;

	for (size_t i = 0; i < x->n; i++) {
		if (!is_other(r, &x->v[i]) || tlog_moved(&x->v[i].pairs))
			continue;
		if (n == 0)
			doc_para(doc);
		doc_str(doc, n++   ? _(", ")
			     : any ? _("No change was seen in ")
				   : _("No change was seen in any other metric: "));
		doc_code(doc, x->v[i].metric);
	}
	if (n)
		doc_str(doc, ".");
}

void tlog_effects(const struct report *r, const struct report_effects *x, struct doc *doc)
{
	static const struct doc_column c[] = {{"other metric that moved", false},
					      {"before", true},
					      {"after", true},
					      {"change", true},
					      {"interval", true},
					      {"unit", false},
					      {"direction", false}};
	bool any = false;

	for (size_t i = 0; i < x->n; i++) {
		if (!is_other(r, &x->v[i]) || !tlog_moved(&x->v[i].pairs))
			continue;
		if (!any)
			doc_table(doc, c, ARRAY_LEN(c));
		any = true;
		moved_row(&x->v[i], doc);
	}
	if (any)
		doc_say(doc, "By the 95 % t-interval of the pairs, each metric by itself: about "
			     "one in twenty moves by chance.");
	still(r, x, any, doc);
}
