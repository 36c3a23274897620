/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What traces of PyTorch's profiler and of nsys have in common: what a name stands for, which
 * kernels took the time, and how a timeline becomes metrics. Both give the same table through it.
 */
#ifndef FETTLE_PROBES_TRACE_H
#define FETTLE_PROBES_TRACE_H

#include "probes/emit.h"
#include "probes/num.h"
#include "probes/timeline.h"

/* "ProfilerStep#7" (what follows ", " is nsys' op_id): its number. */
bool trace_profiler_step(struct span name, int64_t *number);
/* A range that a person named a step: "step 7", "iteration_7", "train_step"; -1 without a number.
 */
bool trace_named_step(struct span name, int64_t *number);
/* A range in which the host waits for its next batch: torch's DataLoader, or named so. */
bool trace_is_data(struct span name);
/* An operator of the host, and one that is a collective ("gloo:all_reduce"). */
bool trace_is_operator(struct span name);
bool trace_is_host_comm(struct span name);
/* A call to the driver or run-time library, with or without nsys' version suffix (_v3020). */
enum timeline_host trace_call(struct span name);
/* "Memcpy HtoD (Pageable -> Device)" and the like. */
enum timeline_gpu trace_copy(struct span name);

/* Which kernels took the time, by name without template and arguments. */
struct kernels;
struct kernels *kernels_new(void);
void kernels_free(struct kernels *k); /* NULL is fine */
/* TIMELINE_COMM or TIMELINE_COMPUTE, by its name. */
enum timeline_gpu kernels_add(struct kernels *k, struct span name, int64_t ns);
/* The same for `calls` calls with a sum of ns. */
enum timeline_gpu kernels_add_sum(struct kernels *k, struct span name, int64_t calls, int64_t ns);
/* kernel_time_ms and kernel_count of the TRACE_TOP first (labels kernel, class), kernel_time_ms of
 * each class. */
enum { TRACE_TOP = 10 };
void kernels_emit(struct kernels *k, struct emit *o);
int64_t kernels_ns(const struct kernels *k, enum timeline_gpu kind);

/* All metrics of a finished timeline: one set a step, one with scope=steps over all of them, one
 * with scope=trace. `device` (may be NULL) becomes a label of everything. */
void trace_emit(struct emit *o, const struct timeline *t, const char *device);
/* coll_wait_ratio of n ranks, and the fact trace.straggler if one keeps the others waiting.
 * rank[i] names them. */
void trace_emit_waits(struct emit *o, struct timeline *const *ranks, const int *rank, size_t n);

/* Columns of the table that `fettle probe` prints. Those from `idle` on to `alloc`: the device
 * idled, and why. */
extern const struct probe_column trace_columns[];

#endif
