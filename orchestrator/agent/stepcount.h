/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counting the steps of a trial, to know when its measured window begins and ends. The agent reads
 * nothing else of what a workload prints. Two sources: lines of the output that a pattern matches,
 * or lines of metrics.jsonl that hold a "step". A pattern comes from a recipe and meets arbitrary
 * text, so each match is limited in work (PCRE2's match and depth limits); a line that reaches them
 * counts as none.
 */
#ifndef FETTLE_AGENT_STEPCOUNT_H
#define FETTLE_AGENT_STEPCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "orchestrator/agent/block.h"
#include "orchestrator/base/err.h"

struct stepcount;

/* Compile the pattern; borrows spec for its life. */
int stepcount_new(const struct block_window *spec, struct stepcount **out, struct err *e);
void stepcount_free(struct stepcount *w); /* NULL is fine */
void stepcount_reset(struct stepcount *w,
		     int64_t start_us); /* before each trial; start_us: UTC of its start */

/* A line of the output; nothing happens if the source is another. Fits capture_line_f with ctx =
 * window. */
void stepcount_line(void *w, const char *line, size_t n, int64_t utc_us);

/* Read what is new in metrics.jsonl. Absent is fine; a file that shrank or was replaced is read
 * from its start. */
void stepcount_poll_metrics(struct stepcount *w, const char *path, int64_t utc_us);

int64_t stepcount_steps(const struct stepcount *w);    /* counted so far */
int64_t stepcount_start_us(const struct stepcount *w); /* when step `warmup` was seen; 0: not yet */
int64_t stepcount_end_us(
	const struct stepcount *w); /* when step warmup + steps was seen; 0: not yet */
bool stepcount_measuring(const struct stepcount *w); /* the first step after warm-up was seen */
bool stepcount_full(const struct stepcount *w); /* the trial has shown all that was asked for; never
						   if steps is 0 */
int64_t stepcount_limited_lines(
	const struct stepcount *w); /* lines on which the pattern reached its limits */

#endif
