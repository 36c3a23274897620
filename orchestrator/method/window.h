/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The measured window of a trial: what probes emit goes in, statistics over the window come out.
 * Steps are counted in the order in which they first appear (a script may start at 0, 1 or 1000):
 * the first `warmup` are left out, the next `steps` are kept (0: all the rest). Values without a
 * step but with a time are kept inside [from_us, to_us]; values with neither always.
 */
#ifndef FETTLE_METHOD_WINDOW_H
#define FETTLE_METHOD_WINDOW_H

#include "experiments/model.h"
#include "probes/probe.h"

struct window;

struct window *window_new(int64_t warmup, int64_t steps);
void window_free(struct window *w);
/* For values that carry a time and no step. 0, 0: no bound. */
void window_bounds(struct window *w, int64_t from_us, int64_t to_us);
void window_span(const struct window *w, int64_t *from_us, int64_t *to_us); /* those bounds */
/* A sink whose ctx is w: value() collects; fact() stores facts. */
struct probe_sink window_sink(struct window *w);
/* Keep the values of a metric from the first step on, warm-up too, for window_emit_curves(). */
void window_keep_curve(struct window *w, const char *metric);
/* Write the kept curves into t as (metric, "at", "samples=N") and (..., "tokens=N"): the mean over
 * the last tenth of what was consumed up to N (linear between steps), at the N of one grid for all
 * trials (8 an octave), so that arms of different batch can be compared at equal N. What a step
 * takes is the metric samples_per_step, the slope of consumed_samples, or throughput x step time,
 * and is written as samples_per_step where it was not there; the same for tokens. A batch that
 * grows during the run is taken by its mean. After window_emit(). */
void window_emit_curves(const struct window *w, struct trial_result *t);
/* Write mean, median, p95, p99, min, max, last and n of every series into t, and derived metrics:
 * data_wait_ratio and throughput_steps_per_s where their parts are there. */
void window_emit(struct window *w, struct trial_result *t);
/* The same in short, with one more label: the mean of each series, and p95 and max of those without
 * labels. */
void window_emit_brief(const struct window *w, const char *label, struct trial_result *t);
/* The first value of `metric` that was nan or inf inside the window: its step, or -1; NULL reason
 * when none. */
const char *window_nonfinite(const struct window *w, const char *metric, int64_t *step);
/* Values of a metric without labels inside the window, in order; NULL when there is none. */
const double *window_values(const struct window *w, const char *metric, size_t *n);
size_t window_steps(const struct window *w);
/* There were more values or more kinds of them than are kept; the rest was left out. */
bool window_cut(const struct window *w);

struct window_fact {
	char *key, *text;
	int rank;
};
const struct window_fact *window_facts(const struct window *w, size_t *n);

#endif
