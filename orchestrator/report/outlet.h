/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How things stand after a night, told outside of fettle: to a monitoring system, a chat, a
 * mailbox, a CI. One model, loaded once, that every format prints. Names of series and nodes come
 * from recipes, logs and imports and may be anything: each format makes them harmless in its own
 * terms.
 *
 * One format is one file outlet_<name>.c that defines `const struct outlet outlet_<name>`.
 */
#ifndef FETTLE_REPORT_OUTLET_H
#define FETTLE_REPORT_OUTLET_H

#include "experiments/db.h"
#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"
#include "orchestrator/report/nights.h"
#include "orchestrator/report/regressions.h"

/* Most bytes of a name or a cause that a format repeats. */
enum { OUTLET_TEXT_MAX = 160 };

/* What a night was, for those who hold one. */
struct outlet_night {
	int64_t completed_us;
	int status;            /* exit status */
	double node_s, wall_s; /* that it took */
};

struct outlet_view {
	const char *workspace; /* absolute */
	const char *to;        /* whom a mail is for; NULL: its sender says */
	int64_t now_us;
	const struct outlet_night *night;    /* NULL: not said */
	bool news;                           /* a message: only what nobody was told of yet */
	struct regression_view *regressions; /* open and acknowledged, newest night first */
	size_t n_regressions;
	struct nights_glance *series; /* that have not ended */
	size_t n_series;
};
/* Fills in regressions and series; the rest is the caller's. */
int outlet_load(struct db *db, struct outlet_view *v, struct err *e);
void outlet_view_done(struct outlet_view *v);

/* Does this one call for somebody: confirmed, worse and open? */
bool outlet_is_alarm(const struct regression_row *r);
/* Is it one that a message is about? With v->news one is so only until it was told. */
bool outlet_is_told(const struct outlet_view *v, const struct regression_row *r);
size_t outlet_count_told(const struct outlet_view *v);

/* s on one line as text_line() makes it, cut to `max` bytes ("..." says so). NULL gives nothing. */
void outlet_text(struct buf *out, const char *s, size_t max);
/* "step_time_ms mean of gpt-ddp on gpu", cut; "+5.2 % [+4.7, +5.7]" before it where it is known. */
void outlet_moved(struct buf *out, const struct regression_view *r);
/* The likeliest cause in a line, cut; nothing without one. */
void outlet_cause(struct buf *out, const struct regression_view *r);
/* "2 open regressions", "no open regression". */
void outlet_headline(struct buf *out, const struct outlet_view *v);

struct outlet {
	const char *name;    /* "junit" */
	const char *summary; /* one line */
	bool for_people;     /* its words are in the language that is begun (base/lang.h) */
	void (*write)(const struct outlet_view *v, struct buf *out);
};
extern const struct outlet *const outlet_table[]; /* generated; NULL-terminated */
const struct outlet *outlet_find(const char *name);

#endif
