/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples into series and points. A time of day names one run: the same time twice is the same run
 * told again, or a contradiction; a date alone does not. What is stored for a night and what the
 * file has agree when one holds all values of the other.
 */
#include "orchestrator/cmd/import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"

#define MIN_EFFECT 0.02

struct store {
	struct db *db;
	const struct import_table *t;
	struct import_samples *s;
	const struct import_options *o;
	struct import_result *out;
	struct series_row *there; /* all series as they were */
	size_t n_there;
	int64_t *environment; /* by row; 0: not stored yet */
};

/* -- order ----------------------------------------------------------------------------------- */

static int same_series(const struct import_sample *a, const struct import_sample *b)
{
	int c = strcmp(a->workload, b->workload);

	if (c == 0)
		c = strcmp(a->place, b->place);
	return c ? c : strcmp(a->metric, b->metric);
}

static int in_order(const void *pa, const void *pb)
{
	const struct import_sample *a = pa, *b = pb;
	int c = same_series(a, b);

	if (c == 0)
		c = strcmp(a->night, b->night);
	if (c == 0)
		c = (a->at_us > b->at_us) - (a->at_us < b->at_us);
	if (c == 0)
		c = strcmp(a->nodes ? a->nodes : "", b->nodes ? b->nodes : "");
	return c ? c : (a->line > b->line) - (a->line < b->line);
}

static bool same_run(const struct import_sample *a, const struct import_sample *b)
{
	return a->at_us == b->at_us && a->timed == b->timed &&
	       str_eq(a->nodes ? a->nodes : "", b->nodes ? b->nodes : "");
}

/* -- a night --------------------------------------------------------------------------------- */

static bool is_said(const struct import_sample *kept, size_t n, const struct import_sample *s)
{
	while (n-- > 0 && same_run(&kept[n], s))
		if (kept[n].value == s->value)
			return true;
	return false;
}

static int two_values(const struct store *st, const struct import_sample *a,
		      const struct import_sample *b, struct err *e)
{
	return err_set(e, ERR_PARSE,
		       "%s, lines %lld and %lld, %s: one time of night %s with two values, %g and "
		       "%g: leave one out (--replace takes the later line, --only FIELD=VALUE one "
		       "of several configurations)",
		       st->t->file, (long long)a->line, (long long)b->line, a->metric, a->night,
		       a->value, b->value);
}

/* Leave out what is said twice, in place; *n is what stays. */
static int drop_duplicates(struct store *st, struct import_sample *v, size_t *n, struct err *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++) {
		if (is_said(v, kept, &v[i])) {
			st->out->duplicates++;
		} else if (kept > 0 && v[i].timed && same_run(&v[kept - 1], &v[i])) {
			if (!st->o->replace)
				return two_values(st, &v[kept - 1], &v[i], e);
			v[kept - 1] = v[i];
		} else if (kept < IMPORT_REPLICATES_MAX) {
			v[kept++] = v[i];
		} else {
			return err_set(e, ERR_LIMIT,
				       "%s, %s: more than %d values in night %s: take one a night, "
				       "such as their mean",
				       st->t->file, v[0].metric, IMPORT_REPLICATES_MAX, v[0].night);
		}
	}
	*n = kept;
	return 0;
}

enum relation { IS_SAME, IS_MORE, IS_FEWER, IS_OTHER }; /* of the file to what is stored */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* How many of the sorted values are in both. */
static size_t in_both(const double *a, size_t n_a, const double *b, size_t n_b)
{
	size_t i = 0, k = 0, n = 0;

	while (i < n_a && k < n_b) {
		if (a[i] == b[k])
			n++;
		if (a[i] == b[k]) {
			i++;
			k++;
		} else if (a[i] < b[k]) {
			i++;
		} else {
			k++;
		}
	}
	return n;
}

static enum relation relate(const struct import_sample *v, size_t n, const struct replicate_row *r,
			    size_t n_r)
{
	double *a = xcalloc(n + n_r + 1, sizeof *a), *b = a + n;
	size_t both;

	for (size_t i = 0; i < n; i++)
		a[i] = v[i].value;
	for (size_t i = 0; i < n_r; i++)
		b[i] = r[i].value;
	qsort(a, n, sizeof *a, by_value);
	qsort(b, n_r, sizeof *b, by_value);
	both = in_both(a, n, b, n_r);
	free(a);
	if (both == n && both == n_r)
		return IS_SAME;
	return both == n_r ? IS_MORE : both == n ? IS_FEWER : IS_OTHER;
}

static int contradiction(const struct store *st, const struct import_sample *v, size_t n,
			 const struct point_row *there, struct err *e)
{
	double mean = 0;

	for (size_t i = 0; i < n; i++)
		mean += v[i].value / (double)n;
	return err_set(e, ERR_PARSE,
		       "%s, line %lld, %s: night %s is stored with %g (of %d), here it is %g (of "
		       "%zu): --replace takes the file's",
		       st->t->file, (long long)v[0].line, v[0].metric, v[0].night, there->value,
		       there->n, mean, n);
}

static int environment_of(struct store *st, size_t row, int64_t *id, struct err *e)
{
	_cleanup_free_ char *json = NULL;
	int rc = 0;

	if (st->environment[row] == 0) {
		json = import_environment(st->t, st->s, row);
		if (json)
			rc = history_environment_put(st->db, json, &st->environment[row], e);
	}
	*id = st->environment[row];
	return rc;
}

static int write_night(struct store *st, const struct import_series *s,
		       const struct import_sample *v, size_t n, struct err *e)
{
	_cleanup_free_ struct replicate *r = xcalloc(n, sizeof *r);
	int64_t environment;
	int rc = environment_of(st, v[n - 1].row, &environment, e);

	for (size_t i = 0; i < n; i++)
		r[i] = (struct replicate){.value = v[i].value, .nodes = v[i].nodes};
	if (rc == 0)
		rc = history_point_put(st->db, s->row.id, v[0].night, v[0].at_us, r, n, environment,
				       0, true, NULL, e);
	return rc < 0 ? err_wrap(e, "%s, line %lld, %s", st->t->file, (long long)v[0].line,
				 v[0].metric)
		      : 0;
}

/* `there`: what is stored for the night; NULL: nothing. */
static int put_night(struct store *st, struct import_series *s, struct import_sample *v, size_t n,
		     const struct point_row *there, struct err *e)
{
	struct replicate_row *r = NULL;
	enum relation is = IS_MORE;
	size_t n_r;
	int rc = drop_duplicates(st, v, &n, e);

	if (rc == 0 && there && (rc = history_replicates(st->db, there->id, &r, &n_r, e)) == 0) {
		is = relate(v, n, r, n_r);
		replicate_rows_free(r, n_r);
		if (is == IS_OTHER && !st->o->replace)
			rc = contradiction(st, v, n, there, e);
	}
	if (rc < 0)
		return rc;
	s->nights++;
	s->added += !there;
	s->same += is == IS_SAME || is == IS_FEWER;
	s->more += there && is == IS_MORE;
	s->replaced += is == IS_OTHER;
	return is == IS_SAME || is == IS_FEWER ? 0 : write_night(st, s, v, n, e);
}

/* -- a series -------------------------------------------------------------------------------- */

static const struct series_row *stored_series(const struct store *st, const struct series_row *k)
{
	for (size_t i = 0; i < st->n_there; i++) {
		const struct series_row *s = &st->there[i];

		if (s->source == SERIES_IMPORTED && str_eq(s->workload, k->workload) &&
		    str_eq(s->place, k->place) && str_eq(s->metric, k->metric) &&
		    str_eq(s->config, k->config) && s->role == k->role && str_eq(s->stat, k->stat))
			return s;
	}
	return NULL;
}

/* What the samples say of the series; where they do not, what is stored. */
static int open_series(struct store *st, const struct import_sample *v, size_t n,
		       struct import_series **out, struct err *e)
{
	struct import_series s = {.row = {.source = SERIES_IMPORTED,
					  .workload = xstrdup(v->workload),
					  .config = xstrdup(""),
					  .place = xstrdup(v->place),
					  .role = SERIES_CURRENT,
					  .metric = xstrdup(v->metric),
					  .stat = xstrdup("mean"),
					  .better = v->better,
					  .min_effect = st->o->min_effect}};
	const struct series_row *there = stored_series(st, &s.row);
	const char *unit = v->unit ? v->unit : there ? there->unit : "";

	s.is_new = !there;
	if (isnan(s.row.min_effect))
		s.row.min_effect = there ? there->min_effect : MIN_EFFECT;
	s.row.unit = xstrdup(unit);
	if (!v->directed && there)
		s.row.better = there->better;
	st->out->v = xgrow(st->out->v, st->out->n, &st->out->cap, sizeof *st->out->v);
	*out = &st->out->v[st->out->n];
	st->out->v[st->out->n++] = s;
	for (size_t i = 1; i < n; i++)
		if (v[i].unit && !str_eq(v[i].unit, unit))
			return err_set(
				e, ERR_PARSE,
				"%s, lines %lld and %lld: %s is in \"%s\" and in \"%s\": one "
				"metric has one unit",
				st->t->file, (long long)v[0].line, (long long)v[i].line, v->metric,
				unit, v[i].unit);
	if (history_series_put(st->db, &(*out)->row, st->o->now_us, e) < 0)
		return err_wrap(e, "%s, line %lld", st->t->file, (long long)v->line);
	return 0;
}

/* All samples of one series, by night. */
static int put_series(struct store *st, struct import_sample *v, size_t n, struct err *e)
{
	_cleanup_free_ struct point_row *there = NULL;
	struct import_series *s;
	size_t n_there, k = 0;
	int rc = open_series(st, v, n, &s, e);

	if (rc == 0)
		rc = history_points(st->db, s->row.id, v[0].night, &there, &n_there, e);
	for (size_t i = 0, next; i < n && rc == 0; i = next) {
		const char *night = v[i].night;

		for (next = i + 1; next < n && str_eq(v[next].night, night); next++)
			;
		while (k < n_there && strcmp(there[k].night, night) < 0)
			k++;
		if (i == 0)
			str_copy(s->first, sizeof s->first, night);
		str_copy(s->last, sizeof s->last, night);
		rc = put_night(st, s, v + i, next - i,
			       k < n_there && str_eq(there[k].night, night) ? &there[k] : NULL, e);
	}
	return rc;
}

/* -- notes ----------------------------------------------------------------------------------- */

/* A series of the same workload that this file does not feed, while it begins another: a metric
 * that was renamed? */
static void note_renamed(struct store *st, const struct import_series *s)
{
	for (size_t i = 0; s->is_new && i < st->n_there; i++) {
		const struct series_row *t = &st->there[i];
		bool fed = t->source != SERIES_IMPORTED || !str_eq(t->workload, s->row.workload) ||
			   !str_eq(t->place, s->row.place);

		for (size_t k = 0; k < st->out->n && !fed; k++)
			fed = st->out->v[k].row.id == t->id;
		if (!fed)
			strv_addf(&st->out->notes,
				  "%s is new and %s, stored before, is not in this file: if it was "
				  "renamed, --as '%s=%s' goes on with it",
				  s->row.metric, t->metric, s->row.metric, t->metric);
	}
}

static void note_undirected(struct import_result *out)
{
	const char *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < out->n; i++)
		if (out->v[i].row.better == BETTER_NONE && n++ == 0)
			first = out->v[i].row.metric;
	if (n > 0)
		strv_addf(
			&out->notes,
			"of %zu series it is not known whether more or less is better, so that no "
			"change of them is a regression: --metric '%.*s:up' or ':down' says so",
			n, (int)strcspn(first, "{"), first);
}

static void add_notes(struct store *st)
{
	struct import_result *out = st->out;

	if (st->s->missing)
		strv_addf(
			&out->notes,
			"%zu values are nan, inf or N/A and were left out, the first on line %lld",
			st->s->missing, (long long)st->s->missing_line);
	if (st->s->low)
		strv_addf(&out->notes, "%zu values are 0 or less; they were kept", st->s->low);
	if (st->t->not_levels)
		strv_addf(
			&out->notes,
			"%zu samples of counters, histograms and the like were left out (--metric "
			"NAME takes one)",
			st->t->not_levels);
	if (st->s->filtered)
		strv_addf(&out->notes, "%zu rows were left out by --only", st->s->filtered);
	note_undirected(out);
	for (size_t i = 0; i < out->n; i++)
		note_renamed(st, &out->v[i]);
}

int import_store(struct db *db, const struct import_table *t, struct import_samples *s,
		 const struct import_options *o, struct import_result *out, struct err *e)
{
	struct store st = {.db = db, .t = t, .s = s, .o = o, .out = out};
	int rc = history_series_list(db, 0, &st.there, &st.n_there, e);

	*out = (struct import_result){0};
	if (rc < 0)
		return rc;
	st.environment = xcalloc(t->n_rows + 1, sizeof *st.environment);
	qsort(s->v, s->n, sizeof *s->v, in_order);
	for (size_t i = 0, next; i < s->n && rc == 0; i = next) {
		for (next = i + 1; next < s->n && same_series(&s->v[i], &s->v[next]) == 0; next++)
			;
		rc = put_series(&st, s->v + i, next - i, e);
	}
	if (rc == 0)
		add_notes(&st);
	else
		import_result_done(out);
	free(st.environment);
	series_rows_free(st.there, st.n_there);
	return rc;
}

void import_result_done(struct import_result *r)
{
	for (size_t i = 0; i < r->n; i++)
		series_row_done(&r->v[i].row);
	free(r->v);
	strv_free(&r->notes);
	*r = (struct import_result){0};
}
