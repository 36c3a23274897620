/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the formats share about metrics and hypotheses: no format's own business. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/report.h"

const char *report_dimension_name(enum report_dimension d)
{
	switch (d) {
	case DIMENSION_THROUGHPUT:
		return N_("throughput");
	case DIMENSION_LATENCY:
		return N_("latency");
	case DIMENSION_UTILISATION:
		return N_("utilisation");
	case DIMENSION_CORRECTNESS:
		return N_("correctness");
	}
	return "";
}

const char *report_part_name(enum report_part p)
{
	switch (p) {
	case PART_COMPUTE:
		return N_("computing");
	case PART_COMMUNICATION:
		return N_("communication in the open");
	case PART_COPIES:
		return N_("copies");
	case PART_DATA:
		return N_("waiting for data");
	case PART_REST:
		return N_("idle, rest");
	}
	return "";
}

const char *report_target_name(enum report_target t)
{
	switch (t) {
	case TARGET_NONE:
		return "none";
	case TARGET_MET:
		return "met";
	case TARGET_MISSED:
		return "missed";
	case TARGET_OPEN:
		return "open";
	}
	return "";
}

bool report_finding_is_open(const struct finding_row *f)
{
	return str_eq(f->bottleneck, bottleneck_name(BOTTLENECK_UNKNOWN));
}

const char *report_state_text(enum hypothesis_state s)
{
	switch (s) {
	case HYP_PROPOSED:
		return N_("proposed");
	case HYP_LINTED_OUT:
		return N_("linted out");
	case HYP_NOT_TRIED:
		return N_("not tried");
	case HYP_SCREENED_OUT:
		return N_("screened out");
	case HYP_TESTED:
		return N_("tested");
	}
	return "";
}

char *report_bundle(const struct report *r, const struct hypothesis_row *h)
{
	const struct knob *k = recipe_knob(r->recipe, h->knob);
	const struct bundle *b = k ? knob_bundle(k, h->value) : NULL;

	return b ? bundle_text(b) : NULL;
}

const char *report_unit_of(const char *metric)
{
	const struct metric_def *def = metric_def_find(metric);

	return !def || strcmp(def->unit, "1") == 0 ? "" : def->unit;
}

/* Metrics that neither their unit nor their first word tells apart. */
static const struct {
	const char *prefix;
	enum report_dimension dimension;
} dimensions[] = {
	{"loss", DIMENSION_CORRECTNESS},          {"val_loss", DIMENSION_CORRECTNESS},
	{"train_loss", DIMENSION_CORRECTNESS},    {"grad_norm", DIMENSION_CORRECTNESS},
	{"skipped_iters", DIMENSION_CORRECTNESS}, {"nan_iters", DIMENSION_CORRECTNESS},
	{"coll_wrong", DIMENSION_CORRECTNESS},    {"cuda_ooms", DIMENSION_CORRECTNESS},
	{"trial_failed", DIMENSION_CORRECTNESS},  {"throughput_", DIMENSION_THROUGHPUT},
	{"tflops", DIMENSION_THROUGHPUT},         {"coll_algbw", DIMENSION_THROUGHPUT},
	{"coll_busbw", DIMENSION_THROUGHPUT},     {"busbw", DIMENSION_THROUGHPUT},
	{"data_wait_ratio", DIMENSION_LATENCY},
};

enum report_dimension report_dimension_of(const char *metric)
{
	const struct metric_def *def = metric_def_find(metric);

	for (size_t i = 0; i < ARRAY_LEN(dimensions); i++)
		if (str_starts(metric, dimensions[i].prefix))
			return dimensions[i].dimension;
	if (def && (str_eq(def->unit, "ms") || str_eq(def->unit, "us") || str_eq(def->unit, "s")))
		return DIMENSION_LATENCY;
	return DIMENSION_UTILISATION;
}

int report_judge(const char *metric, double change)
{
	const struct metric_def *def = metric_def_find(metric);

	if (!def || !isfinite(change) || change == 0)
		return 0;
	switch (def->better) {
	case BETTER_UP:
		return change > 0 ? 1 : -1;
	case BETTER_DOWN:
		return change < 0 ? 1 : -1;
	case BETTER_NONE:
		return 0;
	}
	return 0;
}

static bool measured(const struct report_hypothesis *h)
{
	return h->has_verdict && h->verdict.n > 0 && isfinite(h->verdict.est);
}

size_t report_ranking(const struct report *r, size_t *out)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_hyps; i++) {
		size_t k = n;

		if (!measured(&r->hyps[i]))
			continue;
		/* insertion: a campaign confirms a few hypotheses, and equal effects keep their
		 * order */
		while (k > 0 && r->hyps[out[k - 1]].verdict.est < r->hyps[i].verdict.est) {
			out[k] = out[k - 1];
			k--;
		}
		out[k] = i;
		n++;
	}
	return n;
}

enum report_fate report_fate_of(const struct report_hypothesis *h)
{
	enum verdict_outcome o;

	if (h->has_verdict && verdict_outcome_parse(h->verdict.outcome, &o))
		return o == VERDICT_ACCEPTED                               ? FATE_ACCEPTED
		       : o == VERDICT_INVALID || o == VERDICT_INCONCLUSIVE ? FATE_UNJUDGED
									   : FATE_REFUTED;
	switch (h->row.state) {
	case HYP_SCREENED_OUT:
		return FATE_SCREENED_OUT;
	case HYP_LINTED_OUT:
	case HYP_NOT_TRIED:
		return FATE_NOT_TRIED;
	case HYP_PROPOSED:
	case HYP_TESTED:
		break;
	}
	return FATE_OPEN;
}

const char *report_fate_name(enum report_fate f)
{
	static const char *const names[] = {"accepted",     "refuted",   "unjudged",
					    "screened_out", "not_tried", "open"};

	return names[f];
}

double report_gpus_per_node(const struct report *r)
{
	const struct resources *res = &r->recipe->resources;
	double hours = signal_rows_mean(r->signals, r->n_signals, "trial_gpu_hours");
	double wall = signal_rows_mean(r->signals, r->n_signals, "trial_wall_s");

	if (res->gpus_per_node > 0)
		return res->gpus_per_node;
	if (!(hours > 0) || !(wall > 0))
		return NAN;
	return round(hours * 3600 / wall / (res->nodes > 0 ? res->nodes : 1));
}

const struct report_stage *report_final(const struct report *r)
{
	for (size_t i = r->n_stages; i-- > 0;)
		if (r->stages[i].kind == STAGE_FINAL && r->stages[i].n_arms > 1)
			return &r->stages[i];
	return NULL;
}

double report_best_effect(const struct report_hypothesis *h)
{
	return h->has_verdict && isfinite(h->verdict.est) ? h->verdict.est : h->screen_mean;
}

const struct report_hypothesis *report_measured_again(const struct report *r,
						      const struct report_hypothesis *first)
{
	const struct hypothesis_row *a = &first->row;

	for (size_t k = 0; k < r->n_hyps && isfinite(report_best_effect(first)); k++) {
		const struct hypothesis_row *b = &r->hyps[k].row;

		if (b->round > a->round && str_eq(a->knob, b->knob) && str_eq(a->value, b->value) &&
		    isfinite(report_best_effect(&r->hyps[k])))
			return &r->hyps[k];
	}
	return NULL;
}

const char *report_base_of_round(const struct report *r, int round)
{
	for (size_t i = 0; i < r->n_stages; i++)
		if (r->stages[i].round == round && r->stages[i].n_arms &&
		    (r->stages[i].kind == STAGE_SCREEN || r->stages[i].kind == STAGE_CONFIRM))
			return r->stages[i].arms[0].config_text;
	return NULL;
}

const struct place_row *report_places(const struct report *r, int64_t allocation, size_t *n)
{
	size_t lo = 0, hi = r->n_places;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->places[mid].allocation < allocation)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (*n = 0; lo + *n < r->n_places && r->places[lo + *n].allocation == allocation;)
		++*n;
	return *n ? &r->places[lo] : NULL;
}
