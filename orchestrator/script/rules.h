/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What calls of functions in stored sources have in common: signals as their argument, the function
 * behind "source:path", and the place that errors in what it returns are named by.
 */
#ifndef FETTLE_SCRIPT_RULES_H
#define FETTLE_SCRIPT_RULES_H

#include "orchestrator/script/reader.h"
#include "orchestrator/script/sandbox.h"

extern const char *const rules_bottlenecks[]; /* words of enum bottleneck */

/* The finite ones as an object. */
struct json *rules_signals(const struct script_signals *s);
/* Take "source:path" apart: job->src and job->call, which is a part of `function`. */
int rules_function(const struct script_sources *s, const char *function, struct sandbox_job *job,
		   struct err *e);
/* The layer finds the function's place by its path. */
struct reader_layer rules_returned(const struct json *v, const struct script_source *src,
				   const char *function);

#endif
