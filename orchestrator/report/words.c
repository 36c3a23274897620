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
