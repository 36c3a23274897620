/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * History from outside: tables of measurements over time become imported series.
 *
 *   file -> import_read() -> table -> import_samples() -> samples -> import_store() -> database
 *
 * A table is what a file says, whatever its format: named fields and rows of cells. The rules (what
 * the options say) make samples of it: a value of a metric at a time. All samples of a series
 * within a night are its replicates. Errors name file, line, field and what would be right.
 */
#ifndef FETTLE_CMD_IMPORT_H
#define FETTLE_CMD_IMPORT_H

#include "experiments/history.h"
#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

enum {
	/* 10,000 series over a year of nights are 40 MB of CSV. */
	IMPORT_BYTES_MAX = 256 << 20,
	/* One each minute and a half of a day: more are samples of a monitoring system, whose mean
	 * over the night is wanted. */
	IMPORT_REPLICATES_MAX = 1000,
	IMPORT_NAME_MAX = 200,    /* bytes of a metric, workload or place */
	IMPORT_FIELDS_MAX = 8192, /* JSON whose keys are data has ever more of them */
};

/* -- rules ----------------------------------------------------------------------------------- */

enum import_format { IMPORT_GUESS, IMPORT_CSV, IMPORT_JSONL, IMPORT_OPENMETRICS };

struct import_metric {
	char *name, *unit; /* unit NULL: not said */
	enum better better;
	bool directed; /* better was said */
};

struct import_rules {
	enum import_format format;
	const char *time;              /* field; NULL: found by its name */
	struct import_metric *metrics; /* none: whatever is a number */
	size_t n_metrics;
	const char *workload, *place; /* of all rows; NULL: the field of that name, else default */
	struct strv env;              /* fields of the environment; none: all texts */
	struct kvs only;              /* rows whose field is that value */
	struct kvs as;                /* field -> metric that it feeds */
	int64_t until_us;             /* later times are wrong */
};
/* NAME[:up|down|none[:unit]] */
int import_metric_parse(const char *text, struct import_metric *out, struct err *e);
void import_rules_done(struct import_rules *r);

/* -- table ----------------------------------------------------------------------------------- */

enum cell_kind {
	CELL_ANY,    /* a number if it reads as one */
	CELL_NUMBER, /* the format says so */
	CELL_TEXT,   /* the same */
};
struct import_cell {
	uint32_t field, at; /* number of its field; offset in texts */
	enum cell_kind kind;
};
struct import_row {
	int64_t line;
	size_t first, n; /* of cells; blank ones are left out */
};
struct import_table {
	char *file;
	struct strv fields;
	struct import_cell *cells;
	struct import_row *rows;
	size_t n_cells, cap_cells, n_rows, cap_rows;
	size_t near; /* where the last field was found */
	struct buf texts;
	size_t not_levels; /* left out: counters, histograms */
};
/* Read a file, gzip too. */
int import_read(const char *file, const struct import_rules *r, struct import_table *out,
		struct err *e);
/* The same of a text in memory; `file` is its name. */
int import_text(const char *file, const char *text, size_t n, const struct import_rules *r,
		struct import_table *out, struct err *e);
void import_table_done(struct import_table *t);

/* For the readers of formats. */
void import_row_begin(struct import_table *t, int64_t line);
void import_cell_add(struct import_table *t, uint32_t field, const char *text, size_t n,
		     enum cell_kind kind);
uint32_t import_field(struct import_table *t, const char *name, size_t n); /* made if new */

struct input_line;
struct import_reading { /* a format's reader of lines */
	void *(*open)(void);
	int (*line)(void *state, const struct import_rules *r, const struct input_line *l,
		    struct import_table *t, struct err *e);
	void (*close)(void *state);
};
extern const struct import_reading import_csv, import_jsonl, import_openmetrics;
/* Does a line of the text look like OpenMetrics? A line of CSV or JSON does not. */
bool import_openmetrics_sniff(const char *line, size_t n);

/* -- samples --------------------------------------------------------------------------------- */

struct import_sample {
	const char *workload, *place, *metric, *unit; /* unit NULL: not said */
	const char *nodes;                            /* NULL: not said */
	enum better better;
	bool directed, timed; /* timed: the time is more than a date */
	char night[11];
	int64_t at_us, line;
	size_t row;
	double value;
};
struct import_samples {
	struct import_sample *v;
	size_t n, cap;
	size_t missing;       /* cells without a value: blank is not counted; nan, N/A, inf */
	int64_t missing_line; /* the first of them */
	size_t low;           /* values of 0 or less */
	size_t filtered;      /* rows that `only` left out */
	bool *is_env;         /* which fields of the table are the environment's */
	char *workload;       /* that of the file's name */
};
int import_samples(const struct import_table *t, const struct import_rules *r,
		   struct import_samples *out, struct err *e);
void import_samples_done(struct import_samples *s);
/* The environment of a row as JSON; NULL: none. Heap. */
char *import_environment(const struct import_table *t, const struct import_samples *s, size_t row);

/* A time of a cell as UTC, its night (from noon to noon by the local clock), and whether it is more
 * than a date, which is a night itself. */
struct import_when {
	int64_t us;
	char night[11];
	bool timed;
	int64_t opens_us; /* of the night, for the next call; zero at first */
};
bool import_when_read(const char *text, struct import_when *w);

/* -- store ----------------------------------------------------------------------------------- */

struct import_series {
	struct series_row row;
	bool is_new;
	size_t nights, added, same, more, replaced; /* nights: of the file */
	char first[11], last[11];
};
struct import_result {
	struct import_series *v;
	size_t n, cap;
	size_t duplicates; /* samples left out: the same again */
	struct strv notes; /* what a person should look at */
};
struct import_options {
	bool replace;
	double min_effect; /* NaN: as stored, 0.02 for a new series */
	int64_t now_us;
};
/* All of a file, in the caller's transaction. Sorts s. */
int import_store(struct db *db, const struct import_table *t, struct import_samples *s,
		 const struct import_options *o, struct import_result *out, struct err *e);
void import_result_done(struct import_result *r);

#endif
