/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a change over nights means: arrays in, values out. Is it one that is known, does it belong
 * to others of that night, has it gone back, did it only move from one metric to another, does a
 * re-run show it, and what changed with it. experiments/STATISTICS.md ("Nights") has the rules for
 * a sceptic; method/track.c brings them together with the store.
 *
 * A night is a day number here (days since 1970-01-01). Values y are on the scale of
 * regress_scale(): logarithms where all values of a series are positive, else as they are. A sign
 * is +1 or -1: the way in which the metric itself changed, whatever is better.
 */
#ifndef FETTLE_EXPERIMENTS_REGRESS_H
#define FETTLE_EXPERIMENTS_REGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	REGRESS_BEFORE_MIN = 8,  /* nights before a change that a verdict by history needs */
	REGRESS_BEFORE_MAX = 40, /* newest ones that are taken: a slow drift is older than that */
	REGRESS_SLACK = 3,       /* nights by which the estimate of a change's night wanders */
	REGRESS_RERUNS = 3,      /* nights with a re-run of one suspicion, at most */
	REGRESS_SEEN = 3,        /* nights that must show a change that history confirms */
};
/* A smaller change is nobody's business: no min_effect is below it. */
#define REGRESS_MIN_EFFECT 0.02

/* -- nights and scale ---------------------------------------------------------------------- */

/* Days since 1970-01-01 of "YYYY-MM-DD"; INT64_MIN when it is no such date. */
int64_t regress_day(const char *night);
void regress_night(int64_t day, char out[11]);

/* y[i] = log(v[i]) when all v are positive (true), else v[i]. */
bool regress_scale(const double *v, size_t n, double *y);
/* A difference of two y as a relative change. Without logs it is a share of |mean before|, infinite
 * when that is 0 and the difference is not. */
double regress_relative(double diff, double mean_before, bool logs);

/* -- the level before ---------------------------------------------------------------------- */

/* Mean and sd from night to night, of the newest REGRESS_BEFORE_MAX of n values, without those that
 * are more than 3.5 scaled MAD away from the median: a node that hung one night says nothing about
 * the noise of the others. sd NaN for fewer than two. */
struct regress_noise {
	size_t n; /* values used */
	double mean, sd;
};
struct regress_noise regress_noise(const double *y, size_t n);

/* One-sided p of `nights` new nights whose mean is `mean`, when nothing has changed:
 * t = sign (mean - before) / (sd sqrt(1 / nights + 1 / n)), n - 1 df. 1 when n < 2. */
double regress_fresh_p(const struct regress_noise *before, double mean, size_t nights, int sign);

/* Is there a step before y[at], by medians? diff: median of the (at most 20) values from there less
 * the level of y[0..at); p two-sided, as above, a median being worth 2 / pi of a mean. Means and t
 * tests see a step in one value that is far off; here it takes half of those after it. p 1 and diff
 * NaN with fewer than two before. */
struct regress_step {
	double diff, before, p;
};
struct regress_step regress_step(const double *y, size_t n, size_t at);

/* Does a step of `diff` from the level `before` last? At least three values, of which all but a
 * quarter show half of it: two nights that hang, and a usual one between them, are no level. */
bool regress_lasts(double before, double diff, const double *y, size_t n);

/* Are all of y[0..n) within the noise of before, and nearer to it than to the level `after`? A
 * night is within when it is at most two of its standard errors away, or a quarter of the change.
 */
bool regress_back(const struct regress_noise *before, double after, const double *y, size_t n);
/* The same for a change that was confirmed: besides, y must differ from the `after` of n_after
 * nights with one-sided p <= 1e-4, or a change that is hardly larger than the noise would soon be
 * closed by chance. */
bool regress_gone(const struct regress_noise *before, double after, size_t n_after, const double *y,
		  size_t n);

/* v[0..n) without what hung for a night or two: values further from the median of the five about
 * them than five sd of such distances (by their MAD) become that median. The two at either end stay
 * as they are. One spike would hide every change from a test of means for as long as its window
 * holds it. */
void regress_calm(const double *v, size_t n, double *out);

/* -- which change is it -------------------------------------------------------------------- */

/* Estimated night of a change and the range of nights that it may lie in. */
struct regress_span {
	int64_t day, first, last;
};
/* Is `found` the change that `known` tells of, in the same series? Within its range
 * (regress_near) or REGRESS_SLACK nights of it. Of a `settled` one, that was dismissed or went away
 * by itself, the range ends on the night that settled it, its `last`: what begins after it is new.
 */
bool regress_same(const struct regress_span *known, bool settled, const struct regress_span *found);
/* The range, but no more than REGRESS_SLACK nights about the estimate: on few points its bounds say
 * nothing. */
struct regress_span regress_near(const struct regress_span *s);
/* Did they move together? Their ranges meet, within a week of the estimates, or lie side by side.
 */
bool regress_together(const struct regress_span *a, const struct regress_span *b);

/* Cost that moved from one metric to another of the same run and unit: opposite differences (in the
 * unit) whose sum is nothing: within two standard errors, and less than a third of the smaller. */
struct regress_move {
	double diff, se;
};
bool regress_shift(const struct regress_move *a, const struct regress_move *b);

/* -- judging a re-run ---------------------------------------------------------------------- */

enum regress_answer {
	REGRESS_MORE,     /* a further block */
	REGRESS_LATER,    /* another night */
	REGRESS_SHOWN,    /* the change is there */
	REGRESS_NOT_SHOWN /* it is not */
};
struct regress_judged {
	enum regress_answer answer;
	double est, lo, hi, p; /* log (or plain) difference, 95 % interval, one-sided p */
	size_t n;              /* blocks, or nights, that it rests on */
	/* The pairs make an effect of min_effect unlikely (futile, decide.h: one-sided 90 %): what
	 * differed between the arms is not it. */
	bool ruled_out;
	/* The night of the re-run itself shows half of min_effect: what is dismissed all the same
	 * may have begun then. */
	bool shows;
};
/* Paired blocks: d[i] = current - reference, less what it was before the change. `attempt` 1, 2, 3:
 * which night of re-runs this is; alpha 0.01 in all, half of it for the first and a quarter for
 * each other. Looks at 3, 4, 5 and 6 blocks (decide_confirm). min_effect relative, of logs. */
void regress_judge_pairs(const double *d, size_t n, int sign, double min_effect, size_t attempt,
			 struct regress_judged *out);
/* Against the series' own nights: y[0..nights) of nights that had no part in the suspicion, one
 * value each, the last one of the re-run itself. Shown: one-sided p <= 0.0005 (shared out over
 * attempts as above) and a change of min_effect at least. Not shown: less than half of it, or p >
 * 0.1, or the third attempt. Nights are not normal: now and then everything hangs. So what the
 * night of the re-run does not show itself (half of min_effect) is not shown by earlier ones; of
 * several the median counts, as one night; and one that is not within half and twice of what was
 * suspected (`suspected`: its level; NaN: not known) shows nothing alone. Two bad nights in a row
 * are no change either: with the nights of the suspicion that show it (`seen`), REGRESS_SEEN must.
 * Where the median is that of two nights or more, each of two has p <= 0.002: no share is needed.
 * Nor where each of three or more has p <= 0.01.
 */
struct regress_case {
	struct regress_noise before;
	double suspected;
	size_t seen;
	int sign;
	double min_effect;
	bool logs;
	size_t attempt;
};
/* Nights that show at least half of min_effect. */
size_t regress_nights_that_show(const struct regress_case *c, const double *y, size_t nights);
void regress_judge_history(const struct regress_case *c, const double *y, size_t nights,
			   struct regress_judged *out);

/* -- causes -------------------------------------------------------------------------------- */

/* Between two measured nights of a series a key of its environment got another value. */
struct regress_turn {
	size_t series;
	int key;              /* a number for its name */
	int64_t after, by;    /* it was the old value on night `after`, the new one on `by` */
	const char *was, *is; /* NULL: it was not there */
	bool moved;           /* something in that series changed then, whether or not this event */
};
/* The nights about an event of a series that could show it. */
struct regress_window {
	const int64_t *day;
	const double *y;
	size_t n; /* 0: nothing is known of it */
	struct regress_noise before;
	double step; /* what the event is expected to be in it, by its clearest member: signed, on
			the scale of y */
	int workload, place; /* numbers for their names */
};
/* Log likelihood of these nights with a step from that day on, against none (regress_rank); 0 of a
 * window without nights. */
double regress_since(const struct regress_window *w, int64_t day);

/* How each key was seen around an event, and what speaks for it. */
struct regress_suspect {
	int key;
	const char *was, *is; /* of the turn nearest to the event in a series that moved */
	size_t moved, still;  /* series in which it changed then, by whether they moved */
	size_t elsewhere;     /* series that moved and in which it did not change */
	size_t idle;  /* other nights on which it changed and nothing moved, in those that moved */
	double usual; /* such nights of a series that did not move, on average */
	int64_t away; /* nights between its change and the range; 0: inside */
	double score; /* 0..1, both excluded */
};
/* Keys that changed within the range of the event (or REGRESS_SLACK nights of it) in a series that
 * moved, likeliest first. moved[s] of n_series: 1 moved, 0 did not, -1 not known.
 *
 * The score is the share of a key in the belief in all of them and in what nobody recorded. What
 * speaks for a key is how well it explains the nights of every series that it changed for, those
 * that stayed as they were and the night itself included:
 *   evidence  integral over f of the product over these series of (f LR + 1 - f), where f is the
 *             unknown share of series that feel it, LR the likelihood of the nights about the event
 *             with a step since the key has its new value, against none. A step has 0.35 to 2
 *             times its expected size; a night is normal with the sd from night to night, or with
 *             0.05 probability five times as wide, so that no single night decides; the level
 *             before may have drifted (normal, half an sd). The series
 *             are those in which it became the same value, or all in which it changed then: half
 *             of either.
 *   habit     1 / (0.5 + r), r: nights of a series on which it changed and nothing moved, those of
 *             the others counting as one series more
 * What nobody recorded has 0.02 in place of habit, on the night of the event, for the workload, the
 * place or all. *out is heap. Returns their number. */
size_t regress_rank(const struct regress_turn *v, size_t n, const int *moved,
		    const struct regress_window *windows, size_t n_series,
		    const struct regress_span *event, struct regress_suspect **out);

/* A replicate after the change: how far it is from the level before, and where it ran. */
struct regress_replicate {
	double diff;
	const char *nodes; /* comma separated; "" or NULL: not known */
};
/* Is it one node? True: replicates on *node (heap) carry the change and those elsewhere at most a
 * third of that, and half of `diff`, the change as a whole: a replicate that hung is no node.
 * score: 0.9 (k - 1) / k for k replicates on it, 0.05 for one. */
bool regress_node(const struct regress_replicate *v, size_t n, double diff, char **node,
		  double *score);

#endif
