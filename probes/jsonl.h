/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One JSON object on one line, read member by member without building a tree: what a training
 * script writes a step. More lenient than JSON in one point that Python's json.dumps needs: NaN,
 * Infinity and nan, inf are words. Nested objects and arrays are skipped whole.
 */
#ifndef FETTLE_PROBES_JSONL_H
#define FETTLE_PROBES_JSONL_H

#include "probes/emit.h"

enum jsonl_kind { JSONL_STRING, JSONL_WORD, JSONL_NESTED };

struct jsonl_member {
	struct span key; /* between its quotes, escapes untouched */
	enum jsonl_kind kind;
	struct span value; /* a string without its quotes, or the word (number, true, null, NaN) */
	bool is_number;    /* the word is a finite one */
	double number;     /* then */
};

struct jsonl {
	struct span rest;
	bool begun, ended;
};

/* The next member of the object that fills `j->rest`: 1, 0 at its end, -1 when it is no JSON
 * object. */
int jsonl_next(struct jsonl *j, struct jsonl_member *m);

/* The text holds one whole object and nothing else but blanks. */
bool jsonl_valid(struct span text);

/* Emit the members of the object in the current line, as probe_metrics_jsonl.c documents it. False,
 * with nothing emitted, when the line is no whole object, or needs_step and it has no "step". */
bool jsonl_emit(struct emit *o, const struct input_line *l, bool needs_step);

#endif
