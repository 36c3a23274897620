/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/derive.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "orchestrator/base/mem.h"

/* Above it a utilisation is an error on any device: the best single matrix product reaches 87 %. */
#define MFU_LIMIT_PCT 85.0

/* How far batch over step time may be from the rate that the log says. */
#define RATE_TOLERANCE 0.10

/* Ways to count operations differ by the attention: 15 % at most in models as they are trained. */
#define MFU_TOLERANCE 0.25

#define RATIO_TOLERANCE 0.05

/* -- peaks ----------------------------------------------------------------------------------- */

static const struct peak {
	const char *name;
	double tflops[5]; /* by enum flops_dtype */
	double achievable;
} peaks[] = {
#define GPU_PEAK(name, fp32, tf32, fp16, bf16, fp8, achievable) \
	{name, {fp32, tf32, fp16, bf16, fp8}, achievable},
#include "experiments/gpu_peaks.def"
#undef GPU_PEAK
};

/* "A10" stands in "NVIDIA A10" and not in "NVIDIA A100". */
static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at++)
		if ((at == text || !isalnum((unsigned char)at[-1])) &&
		    !isalnum((unsigned char)at[n]))
			return true;
	return false;
}

static const struct peak *peak_of(const char *gpu)
{
	for (size_t i = 0; gpu && i < ARRAY_LEN(peaks); i++)
		if (has_word(gpu, peaks[i].name))
			return &peaks[i];
	return NULL;
}

static double known(double v)
{
	return v > 0 ? v : NAN;
}

double derive_peak_tflops(const char *gpu, enum flops_dtype dtype)
{
	const struct peak *p = peak_of(gpu);

	return p && (size_t)dtype < ARRAY_LEN(p->tflops) ? known(p->tflops[dtype]) : NAN;
}

double derive_achievable_tflops(const char *gpu)
{
	const struct peak *p = peak_of(gpu);

	return p ? known(p->achievable) : NAN;
}

/* -- floating-point operations ------------------------------------------------------------------
 */

/* What the formula counts for the weights and for the scores of the attention. */
static void parts(const struct model_shape *m, double *weights, double *scores)
{
	double attention = m->layers * m->hidden * m->seq_length;

	*weights = 6 * known(m->params);
	*scores = 0;
	switch (m->formula) {
	case FLOPS_6N:
		return;
	case FLOPS_PALM:
		*scores = 12 * known(attention);
		return;
	case FLOPS_CAUSAL:
		*scores = 6 * known(attention);
		return;
	case FLOPS_LORA:
		*weights = 4 * known(m->params);
		return;
	}
}

double derive_flops_per_token(const struct model_shape *m)
{
	double weights, scores;

	parts(m, &weights, &scores);
	return weights + scores;
}

double derive_hardware_flops_per_token(const struct model_shape *m)
{
	double weights, scores;

	parts(m, &weights, &scores);
	switch (m->recompute) {
	case RECOMPUTE_NONE:
		break;
	case RECOMPUTE_SELECTIVE:
		return weights + scores * 4 / 3;
	case RECOMPUTE_FULL:
		return weights * (m->formula == FLOPS_LORA ? 3.0 / 2 : 4.0 / 3) + scores * 4 / 3;
	}
	return weights + scores;
}

double derive_utilisation_pct(double tokens_per_s_per_gpu, double flops_per_token,
			      double peak_tflops)
{
	if (!(tokens_per_s_per_gpu >= 0) || !(flops_per_token > 0) || !(peak_tflops > 0))
		return NAN;
	return 100 * tokens_per_s_per_gpu * flops_per_token / (peak_tflops * 1e12);
}

/* -- collectives ------------------------------------------------------------------------------- */

/* "ncclAllReduce", "all_reduce_perf" and "all-reduce" are "allreduce". */
static void plain_name(const char *name, char out[32])
{
	size_t n = 0;

	if (strncmp(name, "nccl", 4) == 0)
		name += 4;
	for (; *name && n < 31; name++)
		if (isalnum((unsigned char)*name))
			out[n++] = (char)tolower((unsigned char)*name);
	out[n] = '\0';
	if (n > 4 && strcmp(out + n - 4, "perf") == 0)
		out[n - 4] = '\0';
}

double derive_busbw_factor(const char *collective, double ranks)
{
	static const struct {
		const char *name;
		double twice; /* of (n-1)/n; 0: the factor is 1 */
	} table[] = {
		{"allreduce", 2}, {"allgather", 1}, {"reducescatter", 1}, {"alltoall", 1},
		{"gather", 1},    {"scatter", 1},   {"broadcast", 0},     {"reduce", 0},
		{"sendrecv", 0},  {"hypercube", 0},
	};
	char name[32];

	if (!collective || !(ranks >= 1))
		return NAN;
	plain_name(collective, name);
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (str_eq(name, table[i].name))
			return table[i].twice > 0 ? table[i].twice * (ranks - 1) / ranks : 1;
	return NAN;
}

double derive_busbw_gb_per_s(const char *collective, double ranks, double bytes, double time_us)
{
	if (!(bytes >= 0) || !(time_us > 0))
		return NAN;
	return bytes / (time_us * 1e3) * derive_busbw_factor(collective, ranks);
}

/* -- rates ------------------------------------------------------------------------------------- */

double derive_scaling_efficiency_pct(double rate_few, double few, double rate_many, double many)
{
	if (!(rate_few > 0) || !(few > 0) || !(rate_many >= 0) || !(many > 0))
		return NAN;
	return 100 * (rate_many / many) / (rate_few / few);
}

struct step_shares derive_scaling_loss(double efficiency, const struct step_shares *few,
				       const struct step_shares *many)
{
	struct step_shares loss = {.communication = many->communication -
						    efficiency * few->communication,
				   .straggler = many->straggler - efficiency * few->straggler,
				   .input = many->input - efficiency * few->input,
				   .rest = 1 - efficiency};
	const double known[] = {loss.communication, loss.straggler, loss.input};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!isnan(known[i]))
			loss.rest -= known[i];
	return loss;
}

double derive_data_wait_ratio(double wait_ms, double step_ms)
{
	if (!(wait_ms >= 0) || !(step_ms > 0))
		return NAN;
	return fmin(1, wait_ms / step_ms);
}

double derive_per_gpu(double rate, double gpus)
{
	return rate >= 0 && gpus > 0 ? rate / gpus : NAN;
}

double derive_energy_j(double power_w, double gpus, double rate_per_s)
{
	return power_w >= 0 && gpus > 0 && rate_per_s > 0 ? power_w * gpus / rate_per_s : NAN;
}

double derive_gpu_hours(double wall_s, double gpus)
{
	return wall_s >= 0 && gpus >= 0 ? wall_s / 3600 * gpus : NAN;
}

double derive_cost(double gpu_hours, double price_per_gpu_hour)
{
	return gpu_hours >= 0 && price_per_gpu_hour >= 0 ? gpu_hours * price_per_gpu_hour : NAN;
}

double derive_fragmentation_ratio(double peak_allocated, double peak_reserved)
{
	if (!(peak_allocated >= 0) || !(peak_reserved > 0) || peak_allocated > peak_reserved)
		return NAN;
	return 1 - peak_allocated / peak_reserved;
}

/* -- checks ------------------------------------------------------------------------------------ */

bool derive_check_mfu(const char *metric, double pct, const char *gpu, char why[DERIVE_WHY_MAX])
{
	double peak = derive_peak_tflops(gpu, FLOPS_BF16),
	       limit = 100 * derive_achievable_tflops(gpu) / peak;

	if (!(limit > 0))
		limit = MFU_LIMIT_PCT;
	if (!(pct > limit))
		return true;
	snprintf(why, DERIVE_WHY_MAX,
		 "%s comes to %.4g, and no more than %.3g can be reached: wrong parameters, "
		 "units or peak (with sparsity?), or padding that is counted",
		 metric, pct, limit);
	return false;
}

bool derive_check_told_mfu(double told_pct, double computed_pct, char why[DERIVE_WHY_MAX])
{
	if (!(told_pct > 0) || !(computed_pct > 0) ||
	    fabs(told_pct / computed_pct - 1) <= MFU_TOLERANCE)
		return true;
	snprintf(
		why, DERIVE_WHY_MAX,
		"the log says an MFU of %.4g %%, and the tokens a second of a device with the recipe's "
		"model give %.4g: wrong parameters, sequence length, number of devices or peak",
		told_pct, computed_pct);
	return false;
}

bool derive_check_mfu_ratio(double mfu_a, double rate_a, double mfu_b, double rate_b,
			    char why[DERIVE_WHY_MAX])
{
	double mfu = mfu_b / mfu_a, rate = rate_b / rate_a;

	if (!(mfu > 0) || !(rate > 0) || !isfinite(mfu) || !isfinite(rate) ||
	    fabs(mfu / rate - 1) <= RATIO_TOLERANCE)
		return true;
	snprintf(why, DERIVE_WHY_MAX,
		 "MFU goes from %.4g to %.4g %% (x %.3f) and the rate from %.4g to %.4g a second "
		 "(x %.3f): of one model on as many devices both grow alike",
		 mfu_a, mfu_b, mfu, rate_a, rate_b, rate);
	return false;
}

bool derive_check_rate(double samples_per_s, double samples_per_step, double step_ms,
		       char why[DERIVE_WHY_MAX])
{
	double rate = samples_per_step * 1000 / step_ms;

	if (!(samples_per_s > 0) || !(rate > 0) || !isfinite(rate) ||
	    fabs(samples_per_s / rate - 1) <= RATE_TOLERANCE)
		return true;
	snprintf(why, DERIVE_WHY_MAX,
		 "throughput_samples_per_s is %.4g, and %.4g samples in %.4g ms are %.4g a second: "
		 "one of the three is not of the whole job",
		 samples_per_s, samples_per_step, step_ms, rate);
	return false;
}
