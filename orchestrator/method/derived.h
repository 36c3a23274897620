/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics of a trial that follow from its others (experiments/derive.h), and what contradicts. */
#ifndef FETTLE_METHOD_DERIVED_H
#define FETTLE_METHOD_DERIVED_H

#include "experiments/model.h"

/* Adds to t, where they are not there and can be computed from means over the window:
 * throughput_samples_per_s, throughput_tokens_per_s, throughput_tokens_per_s_per_gpu, mfu_pct,
 * hfu_pct, energy_per_sample_j, data_wait_ratio, scaling_efficiency_pct, trial_gpu_hours,
 * trial_cost, mem_fragmentation_ratio. gpu: the device as its driver names it, or
 * NULL; devices: those that were seen on the first node, for recipes that do not ask for a number.
 * What cannot be right is left out; the sentences on it are returned (heap, joined by "; "), NULL
 * when there are none. */
char *derived_metrics(const struct recipe *r, const char *gpu, int devices, struct trial_result *t);

/* What in the figures of a trial contradicts those of the first ok one of n before it in its
 * attempt, heap; NULL: nothing. */
char *derived_contradiction(const struct trial_result *before, size_t n,
			    const struct trial_result *t);

#endif
