/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which suspicions are worth a re-run, and what a re-run says about one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"
#include "orchestrator/method/blame.h"
#include "orchestrator/method/event.h"
#include "orchestrator/method/past.h"
#include "orchestrator/method/track.h"

/* Later nights must still lean: one-sided p of them all. */
static const double STILL_LEANS_P = 0.2;
/* Nights of re-runs of one canary and regression, with those that tell its causes apart. */
enum { HALVES = REGRESS_RERUNS + 2 };

/* -- nights of re-runs ----------------------------------------------------------------------- */

/* Earlier nights on which this suspicion was measured again. */
struct reruns {
	size_t nights;
	int64_t last; /* INT64_MIN: none */
};

static struct reruns reruns_of(const struct canary_row *v, size_t n, int64_t regression,
			       int64_t campaign, int64_t before)
{
	struct reruns out = {.last = INT64_MIN};

	/* newest night first, so that a night with several stages is met in one piece */
	for (size_t i = n; i-- > 0;) {
		int64_t day = regress_day(v[i].night);

		if (v[i].purpose != CANARY_RERUN || v[i].regression != regression ||
		    v[i].campaign != campaign || day >= before || day == out.last)
			continue;
		out.nights++;
		out.last = day;
	}
	return out;
}

/* The series that a re-run of its campaign measures; NULL: none. */
static struct past_series *measured(struct past *w, const struct change_row *c)
{
	struct past_series *s = past_series(w, c->series);

	if (!s || s->row.source != SERIES_CANARY || !s->row.campaign)
		return NULL;
	return s->row.role == SERIES_CURRENT ? (s->objective ? s : NULL)
	       : s->row.role == SERIES_PAIR  ? past_beside(w, s, SERIES_CURRENT)
					     : NULL;
}

/* Means of the nights that had no part in the suspicion, up to `until`; false: none. */
static bool later_mean(const struct past_series *s, int64_t found, int64_t until, double *mean,
		       size_t *n)
{
	size_t from = past_at(s, found + 1), to = past_at(s, until);

	*n = to > from ? to - from : 0;
	*mean = stats_mean(s->y + from, *n);
	return *n > 0;
}

/* -- what is wanted -------------------------------------------------------------------------- */

/* The last night whose points took part in the suspicion. */
static int64_t found_day(const struct regression_row *r, const struct change_row *c)
{
	return regress_day(*c->found_night ? c->found_night : r->found_night);
}

/* Is this change still one to look after? s: the current series of the objective. */
static bool worth_it(struct past *w, const struct regression_row *r, const struct change_row *c,
		     const struct past_series *s, const struct reruns *again, bool changed)
{
	struct regress_noise before = past_before(w, s, past_span(c).first);
	int64_t newest = s->n ? s->day[s->n - 1] : INT64_MIN;
	double mean;
	size_t n;

	if (again->nights >= REGRESS_RERUNS || again->last >= newest)
		return false;
	if (before.n < REGRESS_BEFORE_MIN && !changed && !past_beside(w, s, SERIES_PAIR))
		return false;
	/* What a reference shows need not be seen in the watched arm alone. */
	if (c->series != s->row.id || !later_mean(s, found_day(r, c), INT64_MAX, &mean, &n))
		return true;
	return regress_fresh_p(&before, mean, n, past_sign(c)) <= STILL_LEANS_P;
}

/* Its members and what changed with it speak for a suspicion; a larger one costs more. */
static double weight(const struct regression_row *r, size_t members, double est, bool changed)
{
	double likely = 1 - 1 / (1 + (double)members + changed);

	return fabs(est) * likely * (r->kind == REGRESSION_WORSE ? 1 : 0.01);
}

struct candidate {
	struct wanted_row row;
	double weight;
};

static void candidate_done(struct candidate *c)
{
	free(c->row.changed);
}

/* The campaign of this regression whose re-run says most; row.campaign 0: none. */
static int find_candidate(struct past *w, const struct regression_row *r,
			  const struct canary_row *canaries, size_t n, struct candidate *out,
			  struct err *e)
{
	size_t members = 0;
	double est = 0;
	int rc = 0;

	for (size_t i = 0; i < w->n_changes && rc == 0; i++) {
		const struct change_row *c = &w->changes[i];
		const struct past_series *s;
		struct reruns again;
		int64_t found;
		_cleanup_free_ char *changed = NULL;

		if (c->regression != r->id || c->level == CHANGE_DISMISSED)
			continue;
		members++;
		if (fabs(c->est) > fabs(est))
			est = c->est;
		if (c->level != CHANGE_SUSPECT || !(s = measured(w, c)))
			continue;
		if ((rc = past_fill(w, s->row.campaign, e)) < 0)
			break;
		again = reruns_of(canaries, n, r->id, s->row.campaign, INT64_MAX);
		rc = blame_changed(w, c, &changed, e);
		if (rc < 0 || !worth_it(w, r, c, s, &again, changed) ||
		    (out->row.campaign && fabs(c->est) <= fabs(out->row.est)))
			continue;
		out->row.campaign = s->row.campaign;
		out->row.est = c->est;
		free(out->row.changed);
		out->row.changed = TAKE(changed);
		found = found_day(r, c);
		regress_night(1 + (again.last > found ? again.last : found), out->row.not_before);
	}
	out->row.regression = r->id;
	out->row.est = est;
	str_copy(out->row.since, sizeof out->row.since, r->night);
	out->weight = weight(r, members, est, out->row.changed != NULL);
	return rc;
}

/* What confirmed it set back several keys at once: half of them alone, after all suspicions. */
static int find_half(struct past *w, const struct regression_row *r,
		     const struct canary_row *canaries, size_t n, struct candidate *out,
		     struct err *e)
{
	int rc = blame_half(w, r->id, &out->row.changed, e);

	for (size_t i = 0; out->row.changed && i < w->n_changes && rc == 0; i++) {
		const struct change_row *c = &w->changes[i];
		const struct past_series *s = measured(w, c);
		struct reruns again;

		if (c->regression != r->id || c->level != CHANGE_CONFIRMED || !c->rerun || !s)
			continue;
		if ((rc = past_fill(w, s->row.campaign, e)) < 0)
			break;
		again = reruns_of(canaries, n, r->id, s->row.campaign, INT64_MAX);
		if (s->n == 0 || again.nights >= HALVES || again.last >= s->day[s->n - 1])
			continue;
		out->row.campaign = s->row.campaign;
		out->row.est = c->est;
		str_copy(out->row.not_before, sizeof out->row.not_before,
			 s->points[s->n - 1].night);
		break;
	}
	out->row.regression = r->id;
	str_copy(out->row.since, sizeof out->row.since, r->night);
	return rc;
}

static int by_weight(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return x->row.regression < y->row.regression ? -1 : 1;
}

static int find_wanted(struct past *w, struct wanted_row **out, size_t *n, struct err *e)
{
	_cleanup_free_ struct candidate *v = xcalloc(w->n_regressions + 1, sizeof *v);
	struct canary_row *canaries = NULL;
	size_t n_canaries = 0, used = 0;
	int rc = history_canaries(w->db, 0, &canaries, &n_canaries, e);

	for (size_t i = 0; i < w->n_regressions && rc == 0; i++) {
		const struct regression_row *r = &w->regressions[i];
		struct candidate c = {0};

		if (!past_live(r))
			continue;
		rc = r->level == CHANGE_SUSPECT ? find_candidate(w, r, canaries, n_canaries, &c, e)
						: find_half(w, r, canaries, n_canaries, &c, e);
		if (rc == 0 && c.row.campaign)
			v[used++] = c;
		else
			candidate_done(&c);
	}
	free(canaries);
	if (rc < 0) {
		for (size_t i = 0; i < used; i++)
			candidate_done(&v[i]);
		return rc;
	}
	if (used > 1)
		qsort(v, used, sizeof *v, by_weight);
	*out = xcalloc(used + 1, sizeof **out);
	for (size_t i = 0; i < used; i++)
		(*out)[i] = v[i].row;
	*n = used;
	return 0;
}

int track_wanted(struct db *db, struct wanted_row **out, size_t *n, struct err *e)
{
	struct past w;
	int rc = past_open(db, NULL, &w, e);

	if (rc < 0)
		return rc;
	rc = find_wanted(&w, out, n, e);
	past_done(&w);
	return rc;
}

int track_told_apart(struct db *db, int64_t regression, bool *out, struct err *e)
{
	_cleanup_free_ char *half = NULL;
	struct past w = {.db = db};
	int rc = blame_half(&w, regression, &half, e);

	*out = !half;
	return rc;
}

void wanted_rows_free(struct wanted_row *v, size_t n)
{
	for (size_t i = 0; v && i < n; i++)
		free(v[i].changed);
	free(v);
}

/* -- judging --------------------------------------------------------------------------------- */

struct judge {
	struct past w;
	const struct rerun_result *r;
	int64_t now_us, day;
	struct past_series *s, *pair; /* current, and the pair beside it or NULL */
	struct regression_row *regression;
	struct change_row *change; /* that tells which way, and since when */
	int64_t first;
	size_t attempt;
	struct regress_judged pairs, history;
	bool paired; /* pairs holds something */
};

static int find_subject(struct judge *j, struct err *e)
{
	j->s = past_series(&j->w, j->r->series);
	j->regression = past_regression(&j->w, j->r->regression);
	if (!j->s)
		return err_set(e, ERR_NOT_FOUND, "there is no series %lld",
			       (long long)j->r->series);
	if (!j->regression)
		return err_set(e, ERR_NOT_FOUND, "there is no regression %lld",
			       (long long)j->r->regression);
	return 0;
}

static int find_change(struct judge *j, struct err *e)
{
	int rc = past_fill(&j->w, j->s->row.campaign, e);

	if (rc < 0)
		return rc;
	j->pair = past_beside(&j->w, j->s, SERIES_PAIR);
	for (size_t i = 0; i < j->w.n_changes; i++) {
		struct change_row *c = &j->w.changes[i];

		if (c->regression != j->regression->id ||
		    (c->series != j->s->row.id && !(j->pair && c->series == j->pair->row.id)))
			continue;
		if (!j->change || c->series == j->s->row.id)
			j->change = c;
	}
	if (!j->change)
		return err_set(e, ERR_STATE,
			       "regression %lld does not tell of series %lld, nor of its pairs",
			       (long long)j->r->regression, (long long)j->r->series);
	j->first = past_span(j->change).first;
	return 0;
}

static int count_attempts(struct judge *j, struct err *e)
{
	struct canary_row *v = NULL;
	size_t n = 0;
	int rc = history_canaries(j->w.db, 0, &v, &n, e);

	if (rc == 0)
		j->attempt = 1 +
			     reruns_of(v, n, j->r->regression, j->s->row.campaign, j->day).nights;
	free(v);
	return rc;
}

static int check_result(const struct rerun_result *r, struct err *e)
{
	if (regress_day(r->night) == INT64_MIN)
		return err_set(e, ERR_PARSE, "re-run of regression %lld: \"%s\" is no night",
			       (long long)r->regression, r->night);
	if (r->n == 0)
		return err_set(e, ERR_PARSE, "re-run of regression %lld: no block",
			       (long long)r->regression);
	for (size_t i = 0; i < r->n; i++)
		if (!isfinite(r->current[i]) || (r->reference && !isfinite(r->reference[i])))
			return err_set(e, ERR_PARSE,
				       "re-run of regression %lld: block %zu has no number",
				       (long long)r->regression, i + 1);
	return 0;
}

/* Paired with a reference that differs. What the pairs used to show is taken off: a reference that
 * the recipe declares was never equal. Its uncertainty widens the spread of the blocks. */
static void judge_pairs(struct judge *j)
{
	const struct rerun_result *r = j->r;
	_cleanup_free_ double *d = xcalloc(r->n, sizeof *d);
	struct regress_noise usual = {0};
	double mean = 0, wider = 1;

	if (j->pair)
		usual = past_before(&j->w, j->pair, j->first);
	if (!r->reference || (usual.n < REGRESS_BEFORE_MIN && !r->set_back))
		return;
	for (size_t i = 0; i < r->n; i++) {
		d[i] = r->current[i] - r->reference[i];
		mean += d[i] / (double)r->n;
	}
	if (usual.n >= REGRESS_BEFORE_MIN && j->pair->logs)
		wider = sqrt(1 + (double)r->n / (double)usual.n);
	for (size_t i = 0; i < r->n; i++)
		d[i] = mean + (d[i] - mean) * wider - (wider > 1 ? usual.mean : 0);
	regress_judge_pairs(d, r->n, past_sign(j->change), j->s->min_effect, j->attempt, &j->pairs);
	j->paired = true;
}

/* Against the series' own nights: this night is one observation, the median of its blocks. */
static void judge_history(struct judge *j)
{
	const struct rerun_result *r = j->r;
	struct regress_noise before = past_before(&j->w, j->s, j->first);
	int64_t found = found_day(j->regression, j->change);
	size_t at = past_at(j->s, j->day), from = past_at(j->s, found + 1);
	size_t begin = past_at(j->s, regress_day(j->change->night));
	struct regress_case c = {.before = before,
				 .suspected = stats_mean(j->s->y + begin,
							 from > begin ? from - begin : 0),
				 .sign = past_sign(j->change),
				 .min_effect = j->s->min_effect,
				 .logs = j->s->logs,
				 .attempt = j->attempt};
	_cleanup_free_ double *y = xcalloc(j->s->n + 1, sizeof *y);
	double now = stats_median(r->current, r->n);
	size_t n = 0;

	if (from > begin)
		c.seen = regress_nights_that_show(&c, j->s->y + begin, from - begin);
	j->history = (struct regress_judged){.answer = REGRESS_LATER, .est = NAN, .p = 1};
	if (j->day <= found || j->day < j->first)
		return;
	if (!j->s->logs)
		now = exp(now);
	for (size_t i = from; i < at; i++)
		y[n++] = j->s->y[i];
	y[n++] = now;
	regress_judge_history(&c, y, n, &j->history);
}

/* Suspected in the pairs alone: what they do not show is not there. A series that did not move then
 * says nothing about it, whatever it does later. */
static bool pairs_alone(const struct judge *j)
{
	return j->pair && j->change->series == j->pair->row.id;
}

static enum rerun_answer decide(struct judge *j)
{
	judge_pairs(j);
	if (j->paired && j->pairs.answer == REGRESS_MORE)
		return RERUN_MORE;
	if (j->paired && j->pairs.answer == REGRESS_SHOWN)
		return RERUN_CONFIRMED;
	judge_history(j);
	if (pairs_alone(j) || j->history.answer == REGRESS_NOT_SHOWN)
		return RERUN_DISMISSED;
	if (j->history.answer == REGRESS_SHOWN)
		return RERUN_CONFIRMED;
	return RERUN_LATER;
}

/* -- the sentence ---------------------------------------------------------------------------- */

static void put_effect(struct buf *b, const struct regress_judged *v,
		       const struct regress_noise *before, bool logs, const char *unit)
{
	buf_printf(b, "%+.1f %% [%+.1f, %+.1f] in %zu %s%s",
		   100 * regress_relative(v->est, before->mean, logs),
		   100 * regress_relative(v->lo, before->mean, logs),
		   100 * regress_relative(v->hi, before->mean, logs), v->n, unit,
		   v->n == 1 ? "" : "s");
	if (v->p < 0.0001)
		buf_str(b, ", p < 0.0001");
	else
		buf_printf(b, ", p %.4f", v->p);
}

static char *sentence(struct judge *j, enum rerun_answer answer)
{
	struct regress_noise before = past_before(&j->w, j->s, j->first);
	struct buf b = {0};

	if (answer == RERUN_CONFIRMED)
		buf_str(&b, "measured again: ");
	else if (answer == RERUN_DISMISSED)
		buf_str(&b, "not seen again: ");
	else
		buf_str(&b, "not settled yet: ");
	if (j->paired) {
		put_effect(&b, &j->pairs, &before, true, "paired block");
		buf_printf(&b, " against %s%s", j->r->set_back ? j->r->set_back : "the reference",
			   j->r->set_back ? " as before" : "");
	}
	if (j->paired && j->pairs.answer == REGRESS_SHOWN)
		return buf_take(&b);
	if (j->paired)
		buf_str(&b, "; ");
	if (isnan(j->history.est) && before.n < REGRESS_BEFORE_MIN)
		buf_printf(&b, "%zu night%s before it are too few to tell, %d are needed", before.n,
			   before.n == 1 ? "" : "s", REGRESS_BEFORE_MIN);
	else if (isnan(j->history.est))
		buf_str(&b, "the night in doubt is no witness for itself");
	else {
		put_effect(&b, &j->history, &before, j->s->logs, "fresh night");
		buf_printf(&b, " against %zu before", before.n);
	}
	return buf_take(&b);
}

/* Beside what confirmed the change. */
static char *sentence_of_half(struct judge *j)
{
	struct buf b = {0};

	buf_printf(&b, "%s; its causes told apart: ", j->change->why ? j->change->why : "");
	put_effect(&b, &j->pairs, &(struct regress_noise){0}, true, "paired block");
	buf_printf(&b, " against %s as before", j->r->set_back);
	return buf_take(&b);
}

/* -- storing it ------------------------------------------------------------------------------ */

/* Of the same canary, and in what the re-run measured. */
static bool concerned(struct judge *j, const struct change_row *c)
{
	const struct past_series *s = past_series(&j->w, c->series);

	return c->regression == j->regression->id && c->level == CHANGE_SUSPECT && s &&
	       s->row.source == SERIES_CANARY && s->row.campaign == j->s->row.campaign &&
	       !past_context(s);
}

static void take_estimate(struct judge *j, struct change_row *c)
{
	bool by_pairs = j->paired && j->pairs.answer == REGRESS_SHOWN;
	const struct regress_judged *v = by_pairs ? &j->pairs : &j->history;
	struct regress_noise before = past_before(&j->w, j->s, j->first);
	bool logs = by_pairs || j->s->logs;

	if (c->series != j->s->row.id && !by_pairs)
		return;
	c->est = regress_relative(v->est, before.mean, logs);
	c->lo = regress_relative(v->lo, before.mean, logs);
	c->hi = regress_relative(v->hi, before.mean, logs);
	c->p = v->p;
}

static int put_changes(struct judge *j, enum rerun_answer answer, const char *why, struct err *e)
{
	int64_t until = j->history.shows ? j->day - 1 : j->day;
	int rc = 0;

	for (size_t i = 0; i < j->w.n_changes && rc == 0; i++) {
		struct change_row *c = &j->w.changes[i];

		if (!concerned(j, c))
			continue;
		c->rerun = j->r->stage;
		free(c->why);
		c->why = xstrdup(why);
		if (answer == RERUN_CONFIRMED) {
			take_estimate(j, c);
			c->level = CHANGE_CONFIRMED;
		} else if (answer == RERUN_DISMISSED) {
			c->level = CHANGE_DISMISSED;
			/* Settled up to this night: what begins later is another one. */
			if (regress_day(c->last_night) < until)
				regress_night(until, c->last_night);
		}
		rc = history_change_update(j->w.db, c, e);
	}
	return rc;
}

/* Other canaries, or series that no re-run measures, are suspected as well. */
static bool others_stand(struct judge *j)
{
	for (size_t i = 0; i < j->w.n_changes; i++) {
		const struct change_row *c = &j->w.changes[i];
		const struct past_series *s = past_series(&j->w, c->series);

		if (c->regression == j->regression->id && c->level != CHANGE_DISMISSED && s &&
		    (!past_context(s) || s->row.campaign != j->s->row.campaign))
			return true;
	}
	return false;
}

static int put_regression(struct judge *j, enum rerun_answer answer, const char *why, struct err *e)
{
	struct regression_row *r = j->regression;

	if (answer == RERUN_CONFIRMED) {
		r->level = CHANGE_CONFIRMED;
		str_copy(r->night, sizeof r->night, j->change->night);
		str_copy(r->confirmed_night, sizeof r->confirmed_night, j->r->night);
	} else if (answer == RERUN_DISMISSED && !others_stand(j)) {
		r->state = REGRESSION_DISMISSED;
		r->state_us = j->now_us;
		free(r->who);
		free(r->note);
		r->who = xstrdup("fettle");
		r->note = xstrdup(why);
	} else {
		return 0;
	}
	return history_regression_update(j->w.db, r, e);
}

static int put(struct judge *j, enum rerun_answer answer, const char *why, struct err *e)
{
	struct blame_trial trial = {.keys = j->r->set_back,
				    .proved = j->paired && j->r->set_back &&
					      j->pairs.answer == REGRESS_SHOWN,
				    .ruled_out = j->paired && j->r->set_back && j->pairs.ruled_out};
	int rc = put_changes(j, answer, why, e);

	if (rc == 0)
		rc = put_regression(j, answer, why, e);
	if (rc < 0 || answer == RERUN_DISMISSED || (answer == RERUN_LATER && !trial.ruled_out))
		return rc;
	rc = past_fill(&j->w, 0, e);
	if (rc == 0 && answer == RERUN_CONFIRMED)
		rc = event_absorb(&j->w, j->regression, j->now_us, e);
	return rc < 0 ? rc : blame_rank(&j->w, j->regression->id, &trial, e);
}

/* Keys that were set back together told apart: half of them again, against a change that is known.
 */
static int judge_half(struct judge *j, enum rerun_answer *out, char **why, struct err *e)
{
	struct blame_trial trial = {.keys = j->r->set_back};
	int rc = find_change(j, e);

	if (rc < 0 || (rc = count_attempts(j, e)) < 0)
		return rc;
	judge_pairs(j);
	if (j->pairs.answer == REGRESS_MORE)
		return 0;
	*out = RERUN_CONFIRMED;
	*why = sentence_of_half(j);
	for (size_t i = 0; i < j->w.n_changes && rc == 0; i++) {
		struct change_row *c = &j->w.changes[i];

		if (c->regression != j->regression->id || c->level != CHANGE_CONFIRMED ||
		    (c->series != j->s->row.id && !(j->pair && c->series == j->pair->row.id)))
			continue;
		c->rerun = j->r->stage;
		free(c->why);
		c->why = xstrdup(*why);
		rc = history_change_update(j->w.db, c, e);
	}
	trial.proved = j->pairs.answer == REGRESS_SHOWN;
	trial.ruled_out = j->pairs.ruled_out;
	if (rc == 0)
		rc = past_fill(&j->w, 0, e);
	return rc < 0 ? rc : blame_rank(&j->w, j->regression->id, &trial, e);
}

static int is_half(struct judge *j, bool *out, struct err *e)
{
	_cleanup_free_ char *half = NULL;
	int rc = 0;

	*out = false;
	if (j->r->set_back && j->r->reference && past_live(j->regression) &&
	    j->regression->level == CHANGE_CONFIRMED)
		rc = blame_half(&j->w, j->regression->id, &half, e);
	*out = half != NULL;
	return rc;
}

/* Somebody settled it meanwhile, or it has become part of another one. */
static bool settled(const struct judge *j, enum rerun_answer *out, char **why)
{
	const struct regression_row *r = j->regression;

	if (past_live(r) && r->level == CHANGE_SUSPECT)
		return false;
	*out = r->level == CHANGE_CONFIRMED ? RERUN_CONFIRMED : RERUN_DISMISSED;
	*why = xasprintf("regression %lld is settled already: %s%s%s", (long long)r->id,
			 r->level == CHANGE_CONFIRMED ? "confirmed"
						      : regression_state_name(r->state),
			 r->note ? ", " : "", r->note ? r->note : "");
	return true;
}

static int judge(struct judge *j, enum rerun_answer *out, char **why, struct err *e)
{
	bool half = false;
	int rc = find_subject(j, e);

	if (rc < 0 || (rc = is_half(j, &half, e)) < 0)
		return rc;
	if (half)
		return judge_half(j, out, why, e);
	if (settled(j, out, why))
		return 0;
	if ((rc = find_change(j, e)) < 0 || (rc = count_attempts(j, e)) < 0)
		return rc;
	*out = decide(j);
	if (*out == RERUN_MORE)
		return 0;
	*why = sentence(j, *out);
	return put(j, *out, *why, e);
}

int track_judge(struct db *db, const struct rerun_result *r, int64_t now_us, enum rerun_answer *out,
		char **why, struct err *e)
{
	struct judge j = {.r = r, .now_us = now_us, .day = regress_day(r->night)};
	_cleanup_free_ char *text = NULL;
	enum rerun_answer answer = RERUN_MORE;
	int rc = check_result(r, e);

	if (rc < 0 || (rc = db_begin(db, "judge a re-run", e)) < 0)
		return rc;
	if ((rc = past_open(db, r->night, &j.w, e)) == 0)
		rc = judge(&j, &answer, &text, e);
	past_done(&j.w);
	if (rc == 0)
		rc = db_commit(db, e);
	if (rc < 0) {
		db_rollback(db);
		return rc;
	}
	*out = answer;
	*why = TAKE(text);
	return 0;
}
