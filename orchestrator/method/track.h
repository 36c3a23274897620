/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tracking: what the points of a night mean. All series are looked at again in full each night
 * (experiments/changepoint.h): newest points that look changed become suspects; suspects that a
 * re-run confirms, and changes of series that cannot be run again which the strict detector finds,
 * become confirmed; series that moved together become one regression, told of once; one that went
 * back by itself is transient. Causes are ranked from environment, nodes and probe metrics.
 *
 *   night's canaries -> points -> track_night() -> track_wanted() -> re-runs -> track_judge()
 *
 * Nothing here runs a job, sleeps or reads the clock. The same night again changes nothing. Rules
 * and error rates: experiments/STATISTICS.md ("Nights").
 */
#ifndef FETTLE_METHOD_TRACK_H
#define FETTLE_METHOD_TRACK_H

#include "experiments/history.h"

struct track_result {
	int series, points; /* looked at; points of this very night */
	int suspects;       /* regressions that are new as suspects tonight */
	int confirmed;      /* that became confirmed tonight by the strict detector */
	int transient;      /* that went back by themselves */
	int open_confirmed; /* confirmed, worse and open: exit status 1 */
};
/* Look at all series as they stand on `night`. [tx] */
int track_night(struct db *db, const char *night, int64_t now_us, struct track_result *out,
		struct err *e);

/* Suspects that a re-run can settle and that none has settled, likeliest and worst first. */
struct wanted_row {
	int64_t regression, campaign; /* campaign: one of those whose series moved */
	double est;                   /* largest relative change among its series */
	char since[11];               /* night of the change */
	/* Environment keys that changed there: {key: {was, is}}, JSON; NULL: none. Those that the
	 * recipe can set are what the reference arm of the re-run sets back. */
	char *changed;
	/* Tonight's points count against a re-run of the same night unless the arms differ: it
	 * would share what was odd about that night. */
	char not_before[11];
};
int track_wanted(struct db *db, struct wanted_row **out, size_t *n, struct err *e);
/* False: a re-run that confirmed it set back several keys at once. Behind all suspicions one that
 * sets back half of them is wanted then, which settles nothing but the cause. */
int track_told_apart(struct db *db, int64_t regression, bool *out, struct err *e);
void wanted_rows_free(struct wanted_row *v, size_t n);

/* What a re-run measured: one entry a block (unit), logs of the objective. */
struct rerun_result {
	int64_t stage, regression, series; /* series: of the objective, role current */
	char night[11];
	const double *current;   /* log values of the current arm */
	const double *reference; /* of the arm beside it; NULL: there was none, or it was the same
				    configuration: judged against the series' own history */
	size_t n;
	const char *set_back; /* keys that alone differed between the arms, comma separated; NULL */
};
enum rerun_answer {
	RERUN_MORE,      /* a further block is wanted, up to six */
	RERUN_LATER,     /* this night can say no more; another one may (track_wanted) */
	RERUN_CONFIRMED, /* the change is there */
	RERUN_DISMISSED  /* it is not, in the series of this campaign */
};
/* Judge it, at looks after 3 to 6 blocks. Unless the answer is RERUN_MORE the changes of this
 * campaign carry the stage and the sentence, so that the same stage is not judged twice, and unless
 * it is RERUN_LATER they and the regression are settled, with causes ranked anew. A regression that
 * other campaigns are suspected in as well stays a suspect when one of them is dismissed. *why is
 * that sentence (heap; NULL with RERUN_MORE). ERR_NOT_FOUND, ERR_STATE (the regression does not
 * tell of this campaign), ERR_PARSE (no number). [tx] */
int track_judge(struct db *db, const struct rerun_result *r, int64_t now_us, enum rerun_answer *out,
		char **why, struct err *e);

#endif
