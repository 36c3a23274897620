/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters that only grow, as tools print them now and then: the count itself is emitted, and what
 * happened a second since the sample before, if both have a time. A counter that went back was
 * reset: that interval has no rate ("reset"). All ones are no count ("not supported").
 */
#ifndef FETTLE_PROBES_COUNTERS_H
#define FETTLE_PROBES_COUNTERS_H

#include "probes/emit.h"

struct counters {
	struct counter {
		char *key; /* metric and labels */
		double value;
		int64_t t_us; /* -1: unknown */
	} * v;
	size_t n, cap;
	size_t next;    /* where the next one is, when the tool prints in the same order again */
	int64_t now_us; /* 0: unknown */
};

/* True when the line says when what follows it was read (when_stamp()): that is the time now. */
bool counters_stamp(struct counters *c, struct span line);
/* The tag of a sample of now, with these labels (borrowed). */
struct emit_tag counters_tag(const struct counters *c, const struct emit_labels *ls);

/* What a counter becomes. */
struct counter_metric {
	const char *total, *per_s; /* either may be NULL */
	double scale;              /* to the metrics' unit */
};

/* One counter of the current line, at the time of the tag (-1: unknown). */
void counters_emit(struct counters *c, struct emit *o, const struct counter_metric *m, double value,
		   const struct emit_tag *tag);
void counters_free(struct counters *c);

#endif
