/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <math.h>
#include <stdio.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/ab.h"
#include "orchestrator/report/report.h"
#include "orchestrator/report/text.h"

/* 1 for a candidate that was measured and rejected (DESIGN 5); an invalid comparison would be
 * invalid again. */
static int exit_of(enum verdict_outcome o)
{
	switch (o) {
	case VERDICT_ACCEPTED:
	case VERDICT_EQUIVALENT:
	case VERDICT_INCONCLUSIVE:
		return 0;
	case VERDICT_REJECTED_GUARD:
	case VERDICT_REJECTED_NO_GAIN:
	case VERDICT_REJECTED_WORSE:
		return 1;
	case VERDICT_INVALID:
		return 4;
	}
	return 4;
}

static const char *phrase(enum verdict_outcome o)
{
	switch (o) {
	case VERDICT_ACCEPTED:
		return "B is better than A";
	case VERDICT_EQUIVALENT:
		return "B and A are equivalent";
	case VERDICT_INCONCLUSIVE:
		return "it stays open whether B is better than A";
	case VERDICT_REJECTED_GUARD:
		return "B breaks a guard";
	case VERDICT_REJECTED_NO_GAIN:
		return "B brings no useful gain over A";
	case VERDICT_REJECTED_WORSE:
		return "B is worse than A";
	case VERDICT_INVALID:
		return "nothing can be said about B";
	}
	return "";
}

static void sentence(const struct recipe *r, const struct verdict_row *v, enum verdict_outcome o,
		     struct buf *out)
{
	const char *label = r->knobs[0].values.v[0];

	buf_printf(out, "verdict: %s: %s", v->outcome, phrase(o));
	if (!str_eq(label, "B"))
		buf_printf(out, " (%s)", label);
	if (o != VERDICT_INVALID && v->n > 1 && isfinite(v->est))
		buf_printf(out, ": %s %+.2f %% [%+.2f, %+.2f] (+ is better) over %d pairs",
			   r->objective, 100 * v->est, 100 * v->lo, 100 * v->hi, v->n);
	if (v->pending_convergence)
		buf_str(out, "; it changes results: a long run must hold the loss first");
	if (v->reason)
		buf_printf(out, "; %s", v->reason);
	buf_char(out, '.');
}

static void print_verdict(const struct report *rep, const struct verdict_row *v,
			  enum verdict_outcome o, bool as_json)
{
	_cleanup_(json_freep) struct json *j = json_object();
	_cleanup_free_ char *json = NULL;
	struct buf text = {0}, line = {0};

	sentence(rep->recipe, v, o, &text);
	text_line(&line, text.data);
	if (as_json) {
		json_set_text(j, "kind", "verdict");
		json_set_i64(j, "campaign", rep->campaign.id);
		json_set_text(j, "outcome", v->outcome);
		json_set_text(j, "metric", rep->recipe->objective);
		json_set_number(j, "effect", v->est);
		json_set_number(j, "effect_lo", v->lo);
		json_set_number(j, "effect_hi", v->hi);
		json_set_i64(j, "pairs", v->n);
		json_set_text(j, "text", text.data);
		json = json_print(j, false);
		printf("%s\n", json);
	} else {
		printf("\n%s\n", line.data);
	}
	buf_free(&text);
	buf_free(&line);
}

int ab_answer(const struct report *rep, bool as_json, int status)
{
	const struct report_hypothesis *h = rep->n_hyps ? &rep->hyps[0] : NULL;
	enum verdict_outcome o;

	if (status != 0 || !str_eq(rep->campaign.recipe_path, AB_RECIPE_NAME) || !h ||
	    !h->has_verdict || !verdict_outcome_parse(h->verdict.outcome, &o))
		return status;
	print_verdict(rep, &h->verdict, o, as_json);
	return exit_of(o);
}
