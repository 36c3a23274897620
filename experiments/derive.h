/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Metrics that are computed from others, and checks that tell when they cannot be right. Pure:
 * numbers in, a number out; NAN in or an impossible input gives NAN. A number that breaks a check
 * is not stored, the sentence of the check is shown in its place.
 *
 * FLOPs per token: N parameters (of a mixture of experts those that a token uses), L layers, D the
 * hidden size (heads times their dimension), S tokens of a sample.
 *   6n      6 N                      PaLM (2204.02311), appendix B, without attention
 *   palm    6 N + 12 L D S           the same with attention; nanoGPT's estimate_mfu()
 *   causal  6 N + 6 L D S            half of the scores are computed; torchtitan, Megatron-LM
 *   lora    4 N                      no gradient of frozen weights
 * MFU = tokens/s per GPU x FLOPs per token / peak. HFU counts recomputation too: full adds one
 * forward pass (x 4/3, lora x 3/2), selective one of the attention only (Megatron, 2205.05198).
 */
#ifndef FETTLE_EXPERIMENTS_DERIVE_H
#define FETTLE_EXPERIMENTS_DERIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "experiments/model.h"

/* Dense peak of a device in TFLOP/s, by the name that its driver gives it; NAN unknown, or the
 * device lacks the type. */
double derive_peak_tflops(const char *gpu, enum flops_dtype dtype);
/* The best bf16 matrix product that was measured on it, TFLOP/s; NAN unknown. */
double derive_achievable_tflops(const char *gpu);

double derive_flops_per_token(const struct model_shape *m);
double derive_hardware_flops_per_token(const struct model_shape *m);
/* Per cent of the peak; FLOPs per token of either kind. */
double derive_utilisation_pct(double tokens_per_s_per_gpu, double flops_per_token,
			      double peak_tflops);

/* busbw / algbw of nccl-tests (its doc/PERFORMANCE.md): all_reduce 2(n-1)/n; all_gather,
 * reduce_scatter, alltoall, gather, scatter (n-1)/n; broadcast, reduce, sendrecv, hypercube 1.
 * Names as in "all_reduce_perf", "AllReduce", "ncclAllReduce"; NAN for others. */
double derive_busbw_factor(const char *collective, double ranks);
/* Bus bandwidth in GB/s (1e9) of so many bytes in so long. */
double derive_busbw_gb_per_s(const char *collective, double ranks, double bytes, double time_us);

/* Weak scaling, per cent: the rate a device keeps when a job grows from few to many. */
double derive_scaling_efficiency_pct(double rate_few, double few, double rate_many, double many);

/* What a step is spent on, as shares; NAN: not measured. */
struct step_shares {
	double communication; /* that nothing hides, without the waiting for other ranks */
	double straggler;     /* waiting for the rank that comes last */
	double input;         /* waiting for data */
	double rest;          /* of a loss: computing more slowly, and what is fixed */
};
/* Of a step's time on more ranks: what came on top of the step on fewer ranks, by its cause. With
 * equal work a rank the step lasts 1 / efficiency as long, so a share s of the longer step and a
 * share t of the shorter one differ by s - efficiency t. The members add up to 1 - efficiency; rest
 * is what no measured one explains. NAN where a share was not measured. */
struct step_shares derive_scaling_loss(double efficiency, const struct step_shares *few,
				       const struct step_shares *many);

double derive_data_wait_ratio(double wait_ms, double step_ms); /* at most 1: it overlaps */
double derive_per_gpu(double rate, double gpus);
/* Joules of a sample or token: mean power of a device in W, devices, rate of all of them. */
double derive_energy_j(double power_w, double gpus, double rate_per_s);
double derive_gpu_hours(double wall_s, double gpus);
double derive_cost(double gpu_hours, double price_per_gpu_hour);
/* Share of reserved device memory that was never in use at the peak. */
double derive_fragmentation_ratio(double peak_allocated, double peak_reserved);

/* Checks: true when it can be right or cannot be told; else the sentence is in why. */
enum { DERIVE_WHY_MAX = 240 };
/* A utilisation above what the best matrix product reaches on the device (85 % when that is not
 * known) comes from wrong units, a peak with sparsity, the wrong N, or padding that was counted.
 * `metric`: mfu_pct or hfu_pct, as it is called in the sentence. */
bool derive_check_mfu(const char *metric, double pct, const char *gpu, char why[DERIVE_WHY_MAX]);
/* What a log says against what tokens a second and the model give: a quarter apart is no other way
 * to count. */
bool derive_check_told_mfu(double told_pct, double computed_pct, char why[DERIVE_WHY_MAX]);
/* Of two runs of one model on as many devices, MFU and rate grow alike; 5 % apart is no rounding.
 */
bool derive_check_mfu_ratio(double mfu_a, double rate_a, double mfu_b, double rate_b,
			    char why[DERIVE_WHY_MAX]);
/* Samples a second against batch over step time: 10 % apart is no rounding. DeepSpeed's timer was
 * seen to say ten times too much (NOTES probes 8.2). */
bool derive_check_rate(double samples_per_s, double samples_per_step, double step_ms,
		       char why[DERIVE_WHY_MAX]);

#endif
