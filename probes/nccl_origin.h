/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who wrote a line of NCCL: the word host:pid:tid in what stands before its "NCCL INFO", among
 * a time, the device and (of a warning) the source line.
 */
#ifndef FETTLE_PROBES_NCCL_ORIGIN_H
#define FETTLE_PROBES_NCCL_ORIGIN_H

#include "probes/num.h"

struct nccl_origin {
	struct span id; /* "host:pid" */
	struct span host;
};

/* The last such word of head; what stands before it may be the cut line of another writer. False
 * when there is none. */
bool nccl_origin(struct span head, struct nccl_origin *o);

#endif
