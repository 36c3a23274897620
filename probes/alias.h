/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names under which loggers write what has a name of our own: torchtitan's metrics
 * ("time_metrics/data_loading(%)"), Lightning's ThroughputMonitor ("train|device/mfu"), NeMo,
 * DeepSpeed's monitor and the Trainer ("train/loss", "eval_loss").
 */
#ifndef FETTLE_PROBES_ALIAS_H
#define FETTLE_PROBES_ALIAS_H

#include "probes/num.h"

struct alias {
	const char *key, *metric;
	double scale; /* their unit times scale is ours */
};

/* NULL when the name is none of theirs. */
const struct alias *alias_find(struct span key);
/* The same for a name that could be a metric's own, and in JSON lines is that too: those of files
 * that a logger writes (torchtune, LLaMA-Factory). */
const struct alias *alias_find_own(struct span key);

#endif
