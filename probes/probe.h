/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A probe reads what one kind of tool or program prints and emits metrics. It is a push parser:
 * open, feed bytes as they come (any chunking), finish. It knows no database, no clock and no
 * process; it converts units to those of experiments/metrics.def. Absent is never zero.
 *
 * One probe is one file `probe_<name>.c` that defines `const struct probe probe_<name>`; the table
 * of them is generated from the file names.
 */
#ifndef FETTLE_PROBES_PROBE_H
#define FETTLE_PROBES_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

enum probe_status {
	PROBE_OK,      /* everything that such a text must hold was there */
	PROBE_PARTIAL, /* values were read, but the text is cut or a footer is missing */
	PROBE_FAILED,  /* the tool says that it failed */
	PROBE_ABSENT,  /* nothing of this kind in the text */
};
const char *probe_status_name(enum probe_status s); /* "ok", "partial", "failed", "absent" */

/* One measured value. Everything is borrowed for the length of the call. */
struct probe_value {
	const char *metric;  /* a name of experiments/metrics.def, or one declared by the recipe */
	double value;        /* finite; meaningless when `missing` is set */
	const char *missing; /* NULL, or why there is no value: "N/A", "nan", "not supported",
				"reset" */
	int64_t step;        /* training step or iteration that it belongs to, -1 if none */
	int64_t t_us;        /* UTC time that the text itself gives, -1 if none */
	int rank;            /* rank that printed it, -1 if unknown */
	int local_rank;      /* rank within its node, as torchrun's prefix says; -1 if unknown */
	const char *host;    /* host that a launcher's prefix names; "" if none */
	const struct kv *labels; /* e.g. device=nvme0n1, size_bytes=1048576, in_place=0 */
	size_t n_labels;
	const char *file; /* as given in the context */
	int64_t line;     /* 1-based line of the raw text */
	const char *raw;  /* the text that it came from, at most PROBE_RAW_MAX bytes */
};
enum { PROBE_RAW_MAX = 200 };

/* One textual fact (version, acknowledged environment variable, warning, transport). */
struct probe_fact {
	const char *key; /* "nccl.version", "nccl.env.NCCL_BUFFSIZE", "nccl.warn", "torch.oom" */
	const char *text;
	int rank, local_rank;
	const char *host;
	const char *file;
	int64_t line;
};

/* A line, or a part of one, that is of the probe's kind and was not read. */
struct probe_ignored {
	const char *why;
	int64_t line;    /* 0 if it has none */
	const char *raw; /* at most PROBE_RAW_MAX bytes */
};

struct timeline;

/* Where a probe's findings go. Any callback may be NULL. */
struct probe_sink {
	void (*value)(void *ctx, const struct probe_value *v);
	void (*fact)(void *ctx, const struct probe_fact *f);
	void *ctx;
	/* What a trace of one rank was read into (probes/timeline.h), to compare ranks with; the
	 * receiver owns it. */
	void (*timeline)(void *ctx, struct timeline *t, int rank);
	void (*ignored)(void *ctx, const struct probe_ignored *i);
};

/* What a probe may want to know. Zero-initialised members mean "not given". */
struct probe_context {
	const char *file;    /* name for provenance; may be NULL */
	const char *pattern; /* probe `pattern` only: PCRE2 with named groups */
	const char *metric;  /* probe `pattern` only: metric that the group <value> feeds */
	int64_t clock_us;    /* 0, or UTC time of the text's first byte, for texts without dates */
	int64_t *lines;      /* NULL, or set by probe_file() to the number of lines of the text */
};

struct probe_run; /* state of one text, private to its probe */

/* A column of such a table. A metric that ends with _ratio is shown in percent. Without a title it
 * is not shown, since others say the same. */
struct probe_column {
	const char *metric, *title;
};

struct probe {
	const char *name;    /* "train_log", "nccl_tests", ... */
	const char *summary; /* one line for `fettle probe --list` */
	const char *example; /* the command whose output it reads; NULL if none */
	/* Metrics that people see as a table, a row a step and rank; ends with a NULL metric. NULL
	 * if there is no such table. */
	const struct probe_column *table;
	/* Score how much the first bytes of a text look like this probe's: 0 (not at all) .. 100
	 * (certain). May be NULL. */
	int (*sniff)(const char *head, size_t n);
	/* Its lines may stand late in the log of a job, behind megabytes of what launchers and NCCL
	 * say: probe_sniff_file() asks sniff() of later parts too, until one has training's steps.
	 */
	bool in_logs, has_steps;
	int (*open)(const struct probe_context *c, const struct probe_sink *sink,
		    struct probe_run **out, struct err *e);
	int (*feed)(struct probe_run *r, const char *bytes, size_t n, struct err *e);
	/* For what is read where it lies, as a database is: probe_file() calls it in place of open,
	 * feed and finish unless the file is packed. NULL for all others. */
	enum probe_status (*read)(const struct probe_context *c, const char *path,
				  const struct probe_sink *sink, struct buf *detail);
	/* Ends the text and frees r (also after a failed feed). `detail` (may be NULL) gets a
	 * sentence on a status that is not ok. */
	enum probe_status (*finish)(struct probe_run *r, struct buf *detail);
};

extern const struct probe *const probe_table[];   /* generated; NULL-terminated, by name */
const struct probe *probe_find(const char *name); /* NULL if unknown */
/* The probe that fits the head of a text best, or NULL if none scores at least 50. */
const struct probe *probe_sniff(const char *head, size_t n);
/* All that score so, the best first; their number, at most max. A log may hold several formats. */
size_t probe_sniff_all(const char *head, size_t n, const struct probe **out, size_t max);
/* The same for a whole file, of which it reads no more than it must. 1, 0 when the file is empty,
 * negative when zlib cannot read it; f is then as that left it. */
int probe_sniff_file(gzFile f, const struct probe **out, size_t max, size_t *found);

/* Read one whole file through a probe (gzip is unpacked). A missing file is PROBE_ABSENT. *e is
 * reset; its code is not ERR_OK when the file could not be read or the context is wrong (bad
 * pattern): then the status covers what was read before that. */
enum probe_status probe_file(const struct probe *p, const struct probe_context *c, const char *path,
			     const struct probe_sink *sink, struct buf *detail, struct err *e);

#endif
