/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One reader for everything that recipes return: a schema (an array of fields: name, type, bounds,
 * default, where it goes, what it means) drives the reading, the errors and the reference in
 * recipes/README.md.
 *
 * A value may have been put together from layers: a campaign over a workload file over the site's
 * defaults. The reader reads the merged value and finds for each fault the layer that it came from,
 * so that the error names the file and line that must be changed:
 *
 *   camp.lua:12: workload.window.steps: expected a whole number >= 1, got "many"
 */
#ifndef FETTLE_SCRIPT_READER_H
#define FETTLE_SCRIPT_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "experiments/model.h"
#include "orchestrator/base/err.h"
#include "orchestrator/base/json.h"
#include "orchestrator/script/script.h"

/* One origin of a value. */
struct reader_layer {
	const struct json *value;
	const struct script_source *src;
	const char *mount;  /* path in the merged value at which this layer's value begins; "" for
			       the whole */
	const char *prefix; /* path of the layer's value in what `src` returns; "" for the whole */
};

/* Borrowed layers, the strongest first. */
struct reader {
	const struct reader_layer *layers;
	size_t n;
};

enum field_type {
	FIELD_TEXT,     /* char * */
	FIELD_INT,      /* int */
	FIELD_INT64,    /* int64_t */
	FIELD_SIZE,     /* int64_t: a number >= 0 times `scale`, rounded */
	FIELD_NUMBER,   /* double: times `scale` */
	FIELD_BOOL,     /* bool */
	FIELD_WORD,     /* an enum: index into `words` */
	FIELD_CHOICE,   /* char *: one of `words` */
	FIELD_TEXTS,    /* struct strv; numbers are taken as their text */
	FIELD_FUNCTION, /* char *: "source:path" for script_eval */
	FIELD_TABLE,    /* read by `sub` into the same struct at `offset` */
	FIELD_CUSTOM,   /* read by `read` */
};

struct field {
	const char *name;
	enum field_type type;
	bool required;
	bool above;      /* min itself is not allowed */
	double min, max; /* of numbers; both 0: any */
	double scale;    /* 0: 1 */
	size_t offset;
	const char *const *words;
	const struct schema *sub;
	int (*read)(const struct reader *r, const struct json *v, const char *path, void *out,
		    struct err *e);
	/* For the reference. `kind` describes a custom field; the others have theirs from the type.
	 */
	const char *kind, *unit, *dflt, *doc, *example;
};

struct schema {
	const char *name;           /* as the reference calls it */
	const struct field *fields; /* ends with name NULL */
};

/* Read the table v, which stands at `path`, into the struct at `out`. Fields that are absent leave
 * their member alone, so defaults are set before. */
int reader_table(const struct reader *r, const struct schema *s, const struct json *v,
		 const char *path, void *out, struct err *e);

/* Values of one kind; `path` is only for the error. */
int reader_text(const struct reader *r, const struct json *v, const char *path, char **out,
		struct err *e);
int reader_texts(const struct reader *r, const struct json *v, const char *path, struct strv *out,
		 struct err *e);

/* "FILE:LINE: path: text" with ERR_RECIPE. */
int reader_fault(const struct reader *r, const char *path, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* "expected WHAT, got VALUE" there. */
int reader_expected(const struct reader *r, const struct json *v, const char *path,
		    const char *what, struct err *e);

/* ` (did you mean "x"?)` with the nearest of the words, or "" when none is near; heap. */
char *reader_did_you_mean(const char *word, const char *const *words);

/* File and line of the field at `path`, in the layer that it comes from. */
struct place reader_place(const struct reader *r, const char *path);
/* The layer that the field comes from: the first that has it, else the strongest. */
const struct reader_layer *reader_layer_of(const struct reader *r, const char *path);

/* A number as it is passed to a program: whole ones without a point, others with the fewest digits
 * that give the same double. */
void reader_number_text(double v, struct buf *out);

/* Lay `over` on `under`: tables with names merge, everything else is replaced. Heap. */
struct json *reader_merge(const struct json *over, const struct json *under);

/* A schema as rows of a Markdown table, for the reference. */
void reader_reference(const struct schema *s, struct buf *out);

#endif
