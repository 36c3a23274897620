/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counting the steps of a trial, to know when its measured window begins and ends. The agent reads
 * nothing else of what a workload prints. Two sources: lines of the output that a pattern matches, or
 * lines of metrics.jsonl that hold a "step". A pattern comes from a recipe and meets arbitrary text, so
 * each match is limited in work (PCRE2's match and depth limits); a line that reaches them counts as none.
 */
#ifndef FETTLE_AGENT_WINDOW_H
#define FETTLE_AGENT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "orchestrator/agent/block.h"
#include "orchestrator/base/err.h"

struct window;

/* Compile the pattern; borrows spec for its life. */
int window_new(const struct block_window *spec, struct window **out, struct err *e);
void window_free(struct window *w); /* NULL is fine */
void window_reset(struct window *w, int64_t start_us); /* before each trial; start_us: UTC of its start */

/* A line of the output; nothing happens if the source is another. Fits capture_line_f with ctx = window. */
void window_line(void *w, const char *line, size_t n, int64_t utc_us);

/* Read what is new in metrics.jsonl. Absent is fine; a file that shrank or was replaced is read from its start. */
void window_poll_metrics(struct window *w, const char *path, int64_t utc_us);

int64_t window_steps(const struct window *w);    /* counted so far */
int64_t window_start_us(const struct window *w); /* when step `warmup` was seen; 0: not yet */
int64_t window_end_us(const struct window *w);   /* when step warmup + steps was seen; 0: not yet */
bool window_measuring(const struct window *w);   /* the first step after warm-up was seen */
bool window_full(const struct window *w);        /* the trial has shown all that was asked for; never if steps is 0 */
int64_t window_limited_lines(const struct window *w); /* lines on which the pattern reached its limits */

#endif
