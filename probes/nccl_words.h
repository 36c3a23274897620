/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What single messages of NCCL and RCCL mean, in all wordings since 2.4. */
#ifndef FETTLE_PROBES_NCCL_WORDS_H
#define FETTLE_PROBES_NCCL_WORDS_H

#include "probes/num.h"

/* What ran for a size, of "AllReduce: 268435456 Bytes -> Algo RING proto SIMPLE channel{..":
 * "AllReduce 268435456 RING SIMPLE", the caller's to free. NULL when t is no such message. Kernels
 * for buffers in symmetric memory are "AllReduce 1048576 SYMMETRIC AllReduce_AGxLL_R", copy engines
 * "AllGather 1048576 COPY_ENGINE cudaMemcpyBatchAsync"; without a function it is "?". */
char *nccl_tuning(struct span t);

/* What a warning is about, NULL where it tells no cause that is known. */
const char *nccl_warn_class(struct span warning);

/* What those above NCCL say of its failure: a fact, and what is behind its words. */
struct nccl_failure {
	const char *fact, *what; /* what: as the status tells it */
	struct span text;
};

/* "Watchdog caught collective operation timeout: WorkNCCL(...", "watchdog got stuck for ..",
 * "NCCL error in: ..." (PyTorch's), "RuntimeError: NCCL error: ..." (vLLM's). */
bool nccl_failed(struct span t, struct nccl_failure *out);

#endif
