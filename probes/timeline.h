/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the time of one rank went, from intervals. A reader of traces (PyTorch profiler, nsys)
 * hands over what the device did, what the host did and where the steps lie, in any order;
 * finishing sorts that and sweeps over it once. Pure: intervals in, sums out; no text, no clock, no
 * file.
 *
 * A step is the window of the host's own mark (ProfilerStep#7). Each nanosecond of it is exactly
 * one of: computing, communicating with nothing computed beside it (exposed), only copying, idle.
 * An idle one has a cause, the first of these that fits: the host waited for data; it was inside
 * cudaMalloc or cudaFree; it had waited for the device (a synchronising call was under way when the
 * device ran dry, so nothing was queued behind it); else it did not launch fast enough. Without any
 * host call in the trace the cause stays open: an absent reason is not a reason.
 *
 * Memory: 24 bytes for each thing that the device did, and at most TIMELINE_HOST_MAX intervals of
 * the host.
 */
#ifndef FETTLE_PROBES_TIMELINE_H
#define FETTLE_PROBES_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the device did. */
enum timeline_gpu {
	TIMELINE_COMPUTE,
	TIMELINE_COMM,     /* a collective or a transfer between ranks, its waiting included */
	TIMELINE_PAGEABLE, /* host to device, from memory that is not pinned */
	TIMELINE_PINNED,   /* host to device, from pinned memory */
	TIMELINE_COPY,     /* every other copy, and memset */
	TIMELINE_GPU_N,
};

/* What the host did. */
enum timeline_host {
	TIMELINE_DATA,   /* waited for its next batch */
	TIMELINE_ALLOC,  /* took device memory from the driver or gave it back */
	TIMELINE_SYNC,   /* waited for the device */
	TIMELINE_OPTIM,  /* was in the optimizer's step */
	TIMELINE_LAUNCH, /* any other call to the driver: only that there was one is kept */
	TIMELINE_HOST_N,
};

enum {
	/* A step has tens of calls that allocate or wait; 16 bytes each. More is a trace of hours.
	 */
	TIMELINE_HOST_MAX = 1 << 19,
	TIMELINE_STEPS_MAX = 1 << 14, /* a trace of so many steps is not made: it would not open */
	TIMELINE_GPU_MAX = 1 << 28,   /* 6 GiB */
	TIMELINE_SHORT_NS = 10000,    /* a kernel so short costs as much to launch as to run */
};

/* One step, all steps together, or the whole trace. Times are nanoseconds of one clock. */
struct timeline_row {
	int64_t number; /* of the step; -1 for a sum or a trace without steps */
	int64_t line;   /* of the trace that named the step, 0 if none */
	int64_t start_ns, end_ns;
	int64_t wall_ns; /* end - start; of a sum: of all steps */
	int64_t compute_ns, comm_ns, comm_exposed_ns, copy_exposed_ns, idle_ns;
	int64_t pageable_ns, pinned_ns; /* a copy of this kind ran, whatever ran beside it */
	int64_t data_gap_ns, alloc_gap_ns, sync_gap_ns, launch_gap_ns; /* parts of idle_ns */
	int64_t data_ns;  /* the host waited for data, the device idle or not */
	int64_t optim_ns; /* it was in the optimizer's step; kept of programs on the host only */
	int64_t kernels, short_kernels;
	int64_t alloc_calls, alloc_ns;
};

struct timeline; /* of one rank */
struct timeline *timeline_new(void);
void timeline_free(struct timeline *t); /* NULL is fine */

/* Add an interval; one that ends before it starts is dropped. `key` tells collectives apart
 * (timeline_compare); 0 for anything else. `thread` is any number that tells threads apart. */
void timeline_add_gpu(struct timeline *t, enum timeline_gpu kind, int64_t start_ns, int64_t end_ns,
		      uint32_t key);
void timeline_add_host(struct timeline *t, enum timeline_host kind, int64_t start_ns,
		       int64_t end_ns, uint32_t thread);
/* number -1: count them in the order of their starts. A step told twice (same number,
 * overlapping, or one inside another) is one; where two others overlap, the first ends where the
 * second begins. */
void timeline_add_step(struct timeline *t, int64_t number, int64_t start_ns, int64_t end_ns,
		       uint32_t thread, int64_t line);
/* Bytes of a copy from the host, for its bandwidth. */
void timeline_add_bytes(struct timeline *t, enum timeline_gpu kind, int64_t bytes);

/* Drop what was added for the device: it was of the host, and there is a device after all. */
void timeline_drop_gpu(struct timeline *t);

/* There is no device: what computes are operators of the host, and the key of each is its thread.
 * Operators of the step's own thread that run while it waits for data are part of the wait. */
void timeline_set_host(struct timeline *t);
bool timeline_on_host(const struct timeline *t);

/* Sort and sum. Nothing may be added after it. */
void timeline_finish(struct timeline *t);

/* What follows is valid after timeline_finish. */

/* One row a step, by time; one row over everything when the trace marks no steps. */
const struct timeline_row *timeline_rows(const struct timeline *t, size_t *n);
bool timeline_has_steps(const struct timeline *t);
/* All rows together. */
const struct timeline_row *timeline_sum(const struct timeline *t);
/* From the first to the last thing that the device did, without the causes of its idling. */
const struct timeline_row *timeline_whole(const struct timeline *t);
int64_t timeline_gpu_count(const struct timeline *t, enum timeline_gpu kind);
int64_t timeline_bytes(const struct timeline *t, enum timeline_gpu kind);
/* Time that copies of this kind took, one after the other. */
int64_t timeline_copy_ns(const struct timeline *t, enum timeline_gpu kind);
/* Something of that kind was seen. */
bool timeline_saw(const struct timeline *t, enum timeline_host kind);
/* Any call to the driver was seen: only then has an idle device a cause. */
bool timeline_saw_calls(const struct timeline *t);
/* Something went over a bound and was dropped. */
bool timeline_cut(const struct timeline *t);
/* All are nanoseconds within this of zero, so that no difference overflows; the readers see to it.
 */
#define TIMELINE_NS_LIMIT INT64_C(4000000000000000000)

/* How long a rank waited inside collectives for slower ones. */
struct timeline_wait {
	int64_t matched; /* collectives that every rank has */
	int64_t wait_ns; /* sum of what they took longer than on the rank where they were shortest:
			  * there all others had arrived, so its time is the transfer's */
	int64_t wall_ns; /* of the rank's steps */
};
/* Compare the same collectives (same key, step and place in the step) of n ranks; out[n]. A
 * straggler is the rank that waits least while others wait. */
void timeline_compare(struct timeline *const *ranks, size_t n, struct timeline_wait *out);

#endif
