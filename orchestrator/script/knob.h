/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Knobs: the catalogue (recipes/knobs/), what a campaign makes of an entry, and the checks that
 * concern one knob alone. A campaign names a knob of the catalogue, with other values, default or
 * argument if it wants, or defines one in place; class and proof of a catalogued one stay its own.
 */
#ifndef FETTLE_SCRIPT_KNOB_H
#define FETTLE_SCRIPT_KNOB_H

#include "orchestrator/script/reader.h"

enum {
	KNOBS_MAX = 200,
	KNOB_VALUES_MAX = 100
}; /* a campaign tries tens of settings, not thousands */

/* A file with the value that it returns. */
struct evaluated {
	const struct script_source *src;
	const struct json *value;
	bool used;
};

/* One definition of the catalogue. */
struct knob_entry {
	const char *name; /* borrowed from value */
	const struct json *value;
	char *prefix; /* its path in the file's value: "" or "[3]" */
	struct evaluated *file;
};
struct knob_index {
	struct knob_entry *v;
	size_t n, cap;
};

/* List the definitions of knob files: a file returns one table, or a list of them. Of two with one
 * name the first is taken. Names are checked here, the rest when a knob is read. */
int knob_index_build(struct evaluated *files, size_t n, struct knob_index *out, struct err *e);
void knob_index_free(struct knob_index *x);
const struct knob_entry *knob_index_find(const struct knob_index *x,
					 const char *name); /* or NULL */

/* When a knob counts: what the other one's value must be. */
struct knob_need {
	char *knob;
	double above; /* NaN: none */
	struct strv values;
};
void knob_need_done(struct knob_need *n);

/* Read one whole definition, which stands at `path`. */
int knob_read(const struct reader *r, const struct json *v, const char *path, struct knob *out,
	      struct knob_need *need, struct err *e);

/* Read entry i of the catalogue as it stands. */
int knob_from_index(const struct knob_index *x, size_t i, struct knob *out, struct knob_need *need,
		    struct err *e);

/* Read all entries of a campaign's `knobs`. Appends to recipe->knobs; `requires` is settled against
 * the other knobs and the command. Marks catalogue files as used. */
int knobs_read(const struct reader *r, const struct json *knobs, const struct knob_index *x,
	       struct recipe *out, struct err *e);

#endif
