/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From any heap of logs and traces to the signals that rules read: every file is given to the probe
 * that knows it, and what they measured becomes one number a metric. Of a step's metrics the first
 * tenth is left out (a program that warms up), of a trace its sum over steps counts. Where several
 * ranks or files tell the same, the mean counts, and `min` and `max` over them are signals as well;
 * of several devices it is the worst. What a program printed itself wins over a trace, which slowed
 * it.
 */
#ifndef FETTLE_METHOD_GATHER_H
#define FETTLE_METHOD_GATHER_H

#include "experiments/model.h"
#include "orchestrator/script/script.h"
#include "probes/probe.h"

/* One file, as it was read. */
struct gather_file {
	char *path;
	const char *probe; /* NULL: no probe knows it */
	enum probe_status status;
	char *detail;        /* NULL: nothing to say */
	enum err_code fault; /* ERR_IO, ERR_READ: it could not be read, detail says why */
	size_t values;
};

/* One signal, and where it is from. */
struct gather_signal {
	char *name; /* "data_wait_ratio", "rank_ready_ratio.max" */
	double value;
	size_t n;           /* values behind it */
	const char *source; /* path of the first file that told it */
};

struct gather;
struct gather *gather_new(void);
void gather_free(struct gather *g); /* NULL is fine */

/* Read a file through the probe that fits it; one that no probe knows is only noted. */
void gather_file(struct gather *g, const char *path);
/* Read what is in a directory and below it, in the order of names; false: it cannot be opened. At
 * most GATHER_FILES_MAX files; what is more is counted in *left. */
bool gather_dir(struct gather *g, const char *dir, size_t *left);
enum { GATHER_FILES_MAX = 4096 };

/* Compare ranks and settle the signals; nothing may be read after it. */
void gather_finish(struct gather *g);
const struct gather_file *gather_files(const struct gather *g, size_t *n);
const struct gather_signal *gather_signals(const struct gather *g, size_t *n);
double gather_get(const struct gather *g, const char *name); /* NaN: nobody told it */
/* The rank that comes last to collectives and the like, as told by traces; NULL: nothing. */
const char *gather_fact(const struct gather *g, const char *key);
/* Borrowed from g; the array is the caller's. */
struct script_signals gather_script(const struct gather *g, struct signal **array);

#endif
