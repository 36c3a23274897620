/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One measured collective, as nccl-tests gives it in text and in JSON: both probes emit it here. */
#ifndef FETTLE_PROBES_COLL_H
#define FETTLE_PROBES_COLL_H

#include "probes/emit.h"

enum { COLL_WORD_MAX = 32 };

/* What was measured. Words are "" when the tool does not say. */
struct coll {
	int64_t size_bytes;
	char type[COLL_WORD_MAX], redop[COLL_WORD_MAX], root[COLL_WORD_MAX], test[COLL_WORD_MAX];
	int run;      /* tables of one text, from 0 */
	bool ms;      /* its times are in ms, not us */
	int64_t t_us; /* -1 unknown */
};

/* One cell: metric, its text as printed (a word such as N/A is a missing value). False if it is
 * neither a number nor such a word. Labels: size_bytes, type, redop, root, in_place, test, run. */
bool coll_emit(struct emit *o, const struct coll *c, bool in_place, const char *metric,
	       struct span cell);

/* A version as NCCL codes it: 22809 is "2.28.9", 2708 is "2.7.8"; false when it is none. */
bool coll_nccl_version(int64_t code, char out[24]);

/* Keeps the mean of busbw over all rows since the last footer, to check the footer against it. */
struct coll_mean {
	double sum;
	int64_t n;
};
void coll_mean_add(struct coll_mean *m, struct span busbw);
/* False when the footer's average cannot be that of the rows: some are lost. Starts anew. */
bool coll_mean_check(struct coll_mean *m, double footer);

/* Can busbw be algbw times 1, (n-1)/n or 2(n-1)/n, the factors of nccl-tests' collectives
 * (doc/PERFORMANCE.md there)? True also when it cannot be told: unknown ranks, no numbers, values
 * too small for their two decimals. */
bool coll_factor_fits(struct span algbw, struct span busbw, int64_t nranks);

#endif
