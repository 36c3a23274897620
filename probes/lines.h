/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What all probes of plain lines do alike: clean lines in, values out, a status at the end. Such a
 * probe is a function of one line over a state of its own; open, feed and finish are these here.
 */
#ifndef FETTLE_PROBES_LINES_H
#define FETTLE_PROBES_LINES_H

#include "probes/emit.h"
#include "probes/probe.h"

struct lines_kind {
	size_t size; /* of the probe's own state, which is zero when a text begins */
	/* One line that holds more than blanks and is no bar's state; emit_begin() was called. */
	void (*line)(void *state, struct emit *o, const struct input_line *l);
	/* After the last line. NULL: emit_status() decides. */
	enum probe_status (*end)(void *state, struct emit *o, struct buf *detail);
	void (*clear)(void *state); /* frees what the state owns; may be NULL */
};

int lines_open(const struct lines_kind *k, const struct probe_context *c,
	       const struct probe_sink *sink, struct probe_run **out, struct err *e);
int lines_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e);
enum probe_status lines_finish(struct probe_run *r, struct buf *detail);

/* For sniff(): the best score of the lines of `head`, cleaned as the probe would see them. */
int lines_sniff(const char *head, size_t n, int (*score)(struct span line));
/* The score of the first line that is neither blank nor the state of a bar. */
int lines_sniff_first(const char *head, size_t n, int (*score)(struct span line));

/* Lines that are kept until it is known what they are. */
struct lines_kept {
	struct kept_line {
		char *text, *host;
		int64_t line;
		int rank, local_rank;
	} * v;
	size_t n, cap;
};
/* False, and nothing is kept, when they are already LINES_KEPT_MAX: no report has as many. */
bool lines_keep(struct lines_kept *k, const struct input_line *l);
/* Hand each to f as it came, and forget them. */
void lines_replay(struct lines_kept *k, struct emit *o,
		  void (*f)(void *state, struct emit *o, const struct input_line *l), void *state);
void lines_forget(struct lines_kept *k);

#endif
