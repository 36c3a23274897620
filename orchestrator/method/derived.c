/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/derived.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/derive.h"
#include "orchestrator/base/mem.h"

static double mean_of(const struct trial_result *t, const char *metric)
{
	return trial_result_get(t, metric, "mean");
}

/* A series of one value has only a mean. */
static double max_of(const struct trial_result *t, const char *metric)
{
	double max = trial_result_get(t, metric, "max");

	return isfinite(max) ? max : mean_of(t, metric);
}

/* Adds a mean that is a number, unless the log told it itself. */
static double add(struct trial_result *t, const char *metric, double value)
{
	double told = mean_of(t, metric);

	if (isfinite(told) || !isfinite(value))
		return told;
	trial_result_metric(t, metric, "mean", "", value);
	return value;
}

/* What the log told and cannot be is not kept beside the sentence on it. */
static void drop(struct trial_result *t, const char *metric)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_metrics; i++) {
		struct metric_value *m = &t->metrics[i];

		if (str_eq(m->metric, metric) && !*m->labels) {
			free(m->metric);
			free(m->stat);
			free(m->labels);
		} else {
			t->metrics[n++] = *m;
		}
	}
	t->n_metrics = n;
}

/* Devices of the whole job: as asked for, else as seen; 0 unknown. */
static double gpus_of(const struct recipe *r, int seen)
{
	const struct resources *a = &r->resources;
	int nodes = a->nodes > 0 ? a->nodes : 1;
	const char *count;
	double n;

	if (a->gpus_per_node > 0)
		return (double)a->gpus_per_node * nodes;
	/* "8" or "h200:8" */
	count = a->options.gpus ? strrchr(a->options.gpus, ':') : NULL;
	count = count ? count + 1 : a->options.gpus;
	if (count && str_to_double(count, &n) && n > 0)
		return n;
	return (double)seen * nodes;
}

static void note(struct buf *b, const char *why)
{
	buf_printf(b, "%s%s", b->len ? "; " : "", why);
}

static void derive_utilisation(const struct model_shape *m, const char *gpu, double tokens_per_gpu,
			       struct trial_result *t, struct buf *notes)
{
	const char *device = m->gpu ? m->gpu : gpu;
	double peak = m->peak_tflops > 0 ? m->peak_tflops : derive_peak_tflops(device, m->dtype);
	double mfu = derive_utilisation_pct(tokens_per_gpu, derive_flops_per_token(m), peak),
	       hfu = derive_utilisation_pct(tokens_per_gpu, derive_hardware_flops_per_token(m),
					    peak);
	char why[DERIVE_WHY_MAX];

	if (!(m->params > 0) || !isfinite(mfu))
		return;
	if (!derive_check_told_mfu(mean_of(t, "mfu_pct"), mfu, why))
		note(notes, why);
	if (!derive_check_mfu("mfu_pct", mfu, device, why) ||
	    !derive_check_mfu("hfu_pct", hfu, device, why)) {
		note(notes, why);
		return;
	}
	add(t, "mfu_pct", mfu);
	add(t, "hfu_pct", hfu);
}

/* What the log itself says can be wrong, too. */
static void check_told_mfu(const struct recipe *r, const char *gpu, struct trial_result *t,
			   struct buf *notes)
{
	const char *device = r->workload.model.gpu ? r->workload.model.gpu : gpu;
	char why[DERIVE_WHY_MAX];

	if (derive_check_mfu("mfu_pct", mean_of(t, "mfu_pct"), device, why))
		return;
	note(notes, why);
	drop(t, "mfu_pct");
}

/* NAN when it is not known, or when what is known contradicts: it cannot be told what is wrong. */
static double samples_per_s(struct trial_result *t, struct buf *notes)
{
	const char *metric = "throughput_samples_per_s";
	double each = mean_of(t, "samples_per_step"), step_ms = mean_of(t, "step_time_ms");
	char why[DERIVE_WHY_MAX];

	if (derive_check_rate(mean_of(t, metric), each, step_ms, why))
		return add(t, metric, each * 1000 / step_ms);
	note(notes, why);
	drop(t, metric);
	return NAN;
}

/* A figure of the trial as a whole: its value is its mean, too, so that listings show it. */
static void add_whole(struct trial_result *t, const char *metric, double value)
{
	if (!isfinite(value))
		return;
	trial_result_metric(t, metric, "value", "", value);
	trial_result_metric(t, metric, "mean", "", value);
}

static void derive_costs(const struct recipe *r, double gpus, struct trial_result *t)
{
	double hours = gpus > 0 ? derive_gpu_hours((double)t->wall_us / 1e6, gpus) : NAN;

	add_whole(t, "trial_gpu_hours", hours);
	if (r->budget.gpu_hour_price > 0)
		add_whole(t, "trial_cost", derive_cost(hours, r->budget.gpu_hour_price));
}

static void derive_scaling(const struct scaling *s, double gpus, double tokens, double samples,
			   struct trial_result *t)
{
	bool by_tokens = s->tokens_per_s > 0;

	add(t, "scaling_efficiency_pct",
	    derive_scaling_efficiency_pct(by_tokens ? s->tokens_per_s : s->samples_per_s, s->gpus,
					  by_tokens ? tokens : samples, gpus));
}

char *derived_metrics(const struct recipe *r, const char *gpu, int devices, struct trial_result *t)
{
	const struct model_shape *m = &r->workload.model;
	double gpus = gpus_of(r, devices), step_ms = mean_of(t, "step_time_ms"), samples, tokens,
	       per_gpu;
	struct buf notes = {0};

	check_told_mfu(r, gpu, t, &notes);
	samples = samples_per_s(t, &notes);
	tokens = add(t, "throughput_tokens_per_s", mean_of(t, "tokens_per_step") * 1000 / step_ms);
	if (!isfinite(tokens) && m->seq_length > 0)
		tokens = add(t, "throughput_tokens_per_s", samples * m->seq_length);
	per_gpu = add(t, "throughput_tokens_per_s_per_gpu", derive_per_gpu(tokens, gpus));
	derive_utilisation(m, gpu, per_gpu, t, &notes);
	add(t, "energy_per_sample_j", derive_energy_j(mean_of(t, "gpu_power_w"), gpus, samples));
	add(t, "data_wait_ratio", derive_data_wait_ratio(mean_of(t, "data_wait_ms"), step_ms));
	derive_scaling(&r->workload.scaling, gpus, tokens, samples, t);
	derive_costs(r, gpus, t);
	add(t, "mem_fragmentation_ratio",
	    derive_fragmentation_ratio(max_of(t, "mem_peak_allocated_gib"),
				       max_of(t, "mem_peak_reserved_gib")));
	return notes.len ? buf_take(&notes) : (buf_free(&notes), NULL);
}

static double rate_of(const struct trial_result *t)
{
	double tokens = mean_of(t, "throughput_tokens_per_s");

	return isfinite(tokens) ? tokens : mean_of(t, "throughput_samples_per_s");
}

char *derived_contradiction(const struct trial_result *before, size_t n,
			    const struct trial_result *t)
{
	char why[DERIVE_WHY_MAX];

	for (size_t i = 0; i < n; i++)
		if (before[i].kind == SLOT_TIMED && before[i].state == TRIAL_OK)
			return derive_check_mfu_ratio(mean_of(&before[i], "mfu_pct"),
						      rate_of(&before[i]), mean_of(t, "mfu_pct"),
						      rate_of(t), why)
				       ? NULL
				       : xasprintf("against slot %d: %s", before[i].slot, why);
	return NULL;
}
