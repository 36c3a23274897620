/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a table to samples: which field is what, times, nights, numbers. */
#include "orchestrator/cmd/import.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "orchestrator/base/hours.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "probes/when.h"

#define US_PER_S INT64_C(1000000)
/* No clock change makes a night from noon to noon shorter. */
#define NIGHT_LEAST_US (INT64_C(22) * 3600 * US_PER_S)

/* -- rules ----------------------------------------------------------------------------------- */

int import_metric_parse(const char *text, struct import_metric *out, struct err *e)
{
	static const char *const words[] = {":up", ":down", ":none"};
	struct import_metric m = {.better = BETTER_NONE};
	size_t n = strlen(text);

	for (size_t i = 0; i < ARRAY_LEN(words) && !m.directed; i++) {
		size_t k = strlen(words[i]);
		const char *at = strstr(text, words[i]);

		/* The last of them: a name may hold colons. */
		for (const char *next = at; next; next = strstr(next + 1, words[i]))
			at = next;
		if (!at || (at[k] != '\0' && at[k] != ':'))
			continue;
		m.directed = better_parse(words[i] + 1, &m.better);
		m.unit = at[k] ? xstrdup(at + k + 1) : NULL;
		n = (size_t)(at - text);
	}
	if (n == 0 || n > IMPORT_NAME_MAX) {
		free(m.unit);
		return err_set(e, ERR_USAGE,
			       "\"%s\": expected NAME, NAME:up, NAME:down or NAME:down:UNIT", text);
	}
	m.name = xstrndup(text, n);
	*out = m;
	return 0;
}

void import_rules_done(struct import_rules *r)
{
	for (size_t i = 0; i < r->n_metrics; i++) {
		free(r->metrics[i].name);
		free(r->metrics[i].unit);
	}
	free(r->metrics);
	strv_free(&r->env);
	kvs_free(&r->only);
	kvs_free(&r->as);
	*r = (struct import_rules){0};
}

/* -- times ----------------------------------------------------------------------------------- */

/* Seconds, milli-, micro- or nanoseconds since 1970: by their size, from 1979 to 2286. */
static bool read_epoch(double v, int64_t *us)
{
	double scale = v < 1e10 ? 1e6 : v < 1e13 ? 1e3 : v < 1e16 ? 1 : 1e-3;

	v *= scale;
	if (!(v >= 3e14 && v < 1e16))
		return false;
	*us = llround(v);
	return true;
}

/* What the clock on the wall shows, as UTC. */
static int64_t local_us(int64_t wall_us)
{
	time_t t = (time_t)(wall_us / US_PER_S);
	struct tm tm;

	gmtime_r(&t, &tm);
	tm.tm_isdst = -1;
	return mktime(&tm) * US_PER_S + wall_us % US_PER_S;
}

/* "20261128" */
static bool read_compact(const char *text, struct when *out)
{
	char date[11];

	if (strlen(text) != 8 || strspn(text, "0123456789") != 8)
		return false;
	snprintf(date, sizeof date, "%.4s-%.2s-%.2s", text, text + 4, text + 6);
	return when_read(span_of(date), out);
}

static void set_night(struct import_when *w)
{
	const struct strv noon_to_noon = {0};
	struct hours_night n;

	if (w->opens_us && w->us >= w->opens_us && w->us < w->opens_us + NIGHT_LEAST_US)
		return;
	hours_night_at(&noon_to_noon, w->us, &n);
	memcpy(w->night, n.night, sizeof w->night);
	w->opens_us = n.opens_us;
}

bool import_when_read(const char *text, struct import_when *w)
{
	struct when t = {0};
	char iso[24];
	double v;

	w->timed = true;
	if (!read_compact(text, &t)) {
		if (str_to_double(text, &v)) {
			if (!read_epoch(v, &w->us))
				return false;
			set_night(w);
			return true;
		}
		if (!when_read(span_of(text), &t))
			return false;
	}
	if (t.timed) {
		w->us = t.zoned ? t.us : local_us(t.us);
		set_night(w);
		return w->us >= 0;
	}
	w->timed = false;
	w->opens_us = 0;
	w->us = local_us(t.us + 12 * 3600 * US_PER_S);
	clock_iso(t.us, iso, sizeof iso);
	snprintf(w->night, sizeof w->night, "%.10s", iso);
	return true;
}

/* -- fields ---------------------------------------------------------------------------------- */

enum use {
	USE_ENV,
	USE_NOTHING,
	USE_TIME,
	USE_METRIC,
	USE_WORKLOAD,
	USE_PLACE,
	USE_NODES,
	USE_NAME,  /* a row a value: its metric */
	USE_VALUE, /* its value */
	USE_UNIT,
	USE_BETTER,
};

struct plan {
	const struct import_table *t;
	const struct import_rules *r;
	enum use *use;                       /* by field */
	const struct import_metric **metric; /* by field; NULL: nothing was said about it */
	bool is_long;                        /* a row a value */
};

static const char *text_at(const struct import_table *t, const struct import_cell *c)
{
	return t->texts.data + c->at;
}

static char *all_fields(const struct import_table *t)
{
	struct buf b = {0};

	for (size_t i = 0; i < t->fields.n && b.len < 400; i++)
		buf_printf(&b, "%s%s", i ? ", " : "", t->fields.v[i]);
	if (b.len >= 400)
		buf_str(&b, ", ...");
	return buf_take(&b);
}

/* The number of a field that the user named. */
static int find_field(const struct import_table *t, const char *name, const char *option,
		      size_t *out, struct err *e)
{
	_cleanup_free_ char *all = NULL;
	const char **names, *near;

	for (size_t i = 0; i < t->fields.n; i++)
		if (str_eq(t->fields.v[i], name)) {
			*out = i;
			return 0;
		}
	names = xcalloc(t->fields.n + 1, sizeof *names);
	for (size_t i = 0; i < t->fields.n; i++)
		names[i] = t->fields.v[i];
	near = str_nearest(name, names);
	all = all_fields(t);
	err_set(e, ERR_USAGE, "%s: there is no field \"%s\" (--%s)%s%s%s; there are: %s", t->file,
		name, option, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "",
		all);
	free(names);
	return -ERR_USAGE;
}

/* The first field that is called one of these, whatever the case; fields.n: none. */
static size_t field_called(const struct import_table *t, const char *const *names)
{
	for (; *names; names++)
		for (size_t i = 0; i < t->fields.n; i++)
			if (strcasecmp(t->fields.v[i], *names) == 0)
				return i;
	return t->fields.n;
}

static int plan_time(struct plan *p, struct err *e)
{
	static const char *const names[] = {"time", "timestamp",  "date",       "datetime", "night",
					    "day",  "start_time", "created_at", "ts",       NULL};
	size_t i = 0;
	int rc;

	if (p->r->time) {
		if ((rc = find_field(p->t, p->r->time, "time", &i, e)) < 0)
			return rc;
	} else if ((i = field_called(p->t, names)) == p->t->fields.n) {
		_cleanup_free_ char *all = all_fields(p->t);

		return err_set(
			e, ERR_PARSE,
			"%s: no field of times: expected one called time, timestamp, date, "
			"datetime, night, day, start_time, created_at or ts, or --time NAME; "
			"there are: %s",
			p->t->file, all);
	}
	p->use[i] = USE_TIME;
	return 0;
}

/* A row a value: its metric is in a field, as from v_series or OpenMetrics. */
static bool is_long(const struct import_table *t)
{
	static const char *const metric[] = {"metric", NULL}, *const value[] = {"value", NULL};

	return field_called(t, metric) < t->fields.n && field_called(t, value) < t->fields.n;
}

static void plan_words(struct plan *p)
{
	static const struct {
		enum use use;
		const char *names[5];
		bool only_long;
	} words[] = {
		{USE_WORKLOAD, {"workload"}, false},
		{USE_PLACE, {"place", "partition", "cluster"}, false},
		{USE_NODES, {"nodes", "node", "nodelist", "hostname"}, false},
		{USE_NAME, {"metric"}, true},
		{USE_VALUE, {"value"}, true},
		{USE_UNIT, {"unit"}, true},
		{USE_BETTER, {"better"}, true},
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t at = field_called(p->t, words[i].names);

		if (at < p->t->fields.n && p->use[at] == USE_ENV &&
		    (!words[i].only_long || p->is_long))
			p->use[at] = words[i].use;
	}
}

enum number { NUMBER_IS, NUMBER_MISSING, NUMBER_NOT };

static enum number read_number(const char *text, double *out)
{
	struct span t = span_trim(span_of(text));
	size_t used;

	if (num_whole(t, out))
		return NUMBER_IS;
	if (num_missing(t))
		return NUMBER_MISSING;
	return num_scan(t, out, &used) != NUM_NONE && used == t.n && !isfinite(*out)
		       ? NUMBER_MISSING
		       : NUMBER_NOT;
}

/* Numbers that measure nothing, unless --metric says so: names of runs, and versions. */
static enum use use_of_number(const char *field)
{
	static const char *const names[] = {"id",   "job",   "jobid", "run", "index",
					    "seed", "build", "step",  "pr",  NULL};
	static const char *const versions[] = {"driver", "nvidia_driver", "cuda",   "nccl",
					       "slurm",  "kernel",        "commit", "git",
					       "bios",   "microcode",     "cpus",   NULL};

	for (size_t i = 0; names[i]; i++)
		if (strcasecmp(field, names[i]) == 0)
			return USE_NOTHING;
	for (size_t i = 0; versions[i]; i++)
		if (strcasecmp(field, versions[i]) == 0)
			return USE_ENV;
	return str_ends(field, "_id")       ? USE_NOTHING
	       : str_ends(field, "version") ? USE_ENV
					    : USE_METRIC;
}

/* What is a number in half of its cells and more is a metric; a cell of it that is none is then a
 * mistake to be told, and not a reason to take the field for a text. */
static void plan_numbers(struct plan *p)
{
	const struct import_table *t = p->t;
	size_t *yes = xcalloc(t->fields.n + 1, sizeof *yes);
	size_t *no = xcalloc(t->fields.n + 1, sizeof *no);
	double v;

	for (size_t i = 0; i < t->n_cells; i++) {
		const struct import_cell *c = &t->cells[i];

		switch (c->kind == CELL_NUMBER ? NUMBER_IS : read_number(text_at(t, c), &v)) {
		case NUMBER_IS:
			yes[c->field] += c->kind != CELL_TEXT;
			no[c->field] += c->kind == CELL_TEXT;
			break;
		case NUMBER_NOT:
			no[c->field]++;
			break;
		case NUMBER_MISSING:
			break;
		}
	}
	for (size_t i = 0; i < t->fields.n; i++)
		if (p->use[i] == USE_ENV && yes[i] > 0 && yes[i] >= no[i])
			p->use[i] = use_of_number(t->fields.v[i]);
	free(yes);
	free(no);
}

static int plan_metrics(struct plan *p, struct err *e)
{
	size_t at = 0;
	int rc;

	if (p->is_long)
		return 0;
	if (p->r->n_metrics == 0)
		plan_numbers(p);
	for (size_t i = 0; i < p->r->n_metrics; i++) {
		if ((rc = find_field(p->t, p->r->metrics[i].name, "metric", &at, e)) < 0)
			return rc;
		p->use[at] = USE_METRIC;
		p->metric[at] = &p->r->metrics[i];
	}
	for (size_t i = 0; i < p->t->fields.n; i++)
		if (p->use[i] == USE_METRIC)
			return 0;
	return err_set(
		e, ERR_PARSE,
		"%s: no field holds numbers, so that there is no metric; --metric NAME names "
		"one",
		p->t->file);
}

static bool is_listed(const struct strv *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (str_eq(list->v[i], name))
			return true;
	return false;
}

static int plan_env(struct plan *p, bool *is_env, struct err *e)
{
	size_t at;
	int rc;

	for (size_t i = 0; i < p->r->env.n; i++) {
		if ((rc = find_field(p->t, p->r->env.v[i], "env", &at, e)) < 0)
			return rc;
		if (p->use[at] != USE_METRIC || !p->metric[at])
			p->use[at] = USE_ENV;
	}
	for (size_t i = 0; i < p->t->fields.n; i++)
		is_env[i] = p->use[i] == USE_ENV &&
			    (p->r->env.n == 0 || is_listed(&p->r->env, p->t->fields.v[i]));
	return 0;
}

/* Rows of several branches are no one series. */
static int check_branches(const struct plan *p, struct err *e)
{
	static const char *const names[] = {"branch", NULL};
	size_t field = field_called(p->t, names);
	const char *first = NULL;

	if (field == p->t->fields.n || kvs_has(&p->r->only, p->t->fields.v[field]))
		return 0;
	for (size_t i = 0; i < p->t->n_cells; i++) {
		const char *text = text_at(p->t, &p->t->cells[i]);

		if (p->t->cells[i].field != field)
			continue;
		if (first && !str_eq(first, text))
			return err_set(
				e, ERR_USAGE,
				"%s: rows of several branches (\"%s\", \"%s\"), which are no "
				"one series: --only %s=%s takes one of them",
				p->t->file, first, text, p->t->fields.v[field], first);
		first = text;
	}
	return 0;
}

static int check_names(const struct plan *p, struct err *e)
{
	size_t at;
	int rc = 0;

	for (size_t i = 0; i < p->r->only.n && rc == 0; i++)
		rc = find_field(p->t, p->r->only.v[i].key, "only", &at, e);
	for (size_t i = 0; i < p->r->as.n && rc == 0 && !p->is_long; i++)
		rc = find_field(p->t, p->r->as.v[i].key, "as", &at, e);
	return rc == 0 ? check_branches(p, e) : rc;
}

/* -- rows ------------------------------------------------------------------------------------ */

static const struct import_cell *cell_of(const struct plan *p, const struct import_row *row,
					 enum use use)
{
	for (size_t i = 0; i < row->n; i++)
		if (p->use[p->t->cells[row->first + i].field] == use)
			return &p->t->cells[row->first + i];
	return NULL;
}

static const char *word_of(const struct plan *p, const struct import_row *row, enum use use)
{
	const struct import_cell *c = cell_of(p, row, use);

	return c ? text_at(p->t, c) : NULL;
}

static bool is_wanted(const struct plan *p, const struct import_row *row)
{
	for (size_t k = 0; k < p->r->only.n; k++) {
		bool fits = false;

		for (size_t i = 0; i < row->n && !fits; i++) {
			const struct import_cell *c = &p->t->cells[row->first + i];

			fits = str_eq(p->t->fields.v[c->field], p->r->only.v[k].key) &&
			       str_eq(text_at(p->t, c), p->r->only.v[k].value);
		}
		if (!fits)
			return false;
	}
	return true;
}

static int row_time(const struct plan *p, const struct import_row *row, struct import_when *w,
		    struct err *e)
{
	const struct import_cell *c = cell_of(p, row, USE_TIME);
	const char *text = c ? text_at(p->t, c) : "";
	char now[24];

	if (!import_when_read(text, w))
		return err_set(e, ERR_PARSE,
			       "%s, line %lld, %s: \"%s\" is no time: expected a date like "
			       "2026-11-29 or 2026-11-29T03:00:00+01:00 (the year first), or "
			       "seconds since 1970",
			       p->t->file, (long long)row->line,
			       c ? p->t->fields.v[c->field] : "time", text);
	clock_iso(p->r->until_us, now, sizeof now);
	if (w->us > p->r->until_us)
		return err_set(e, ERR_PARSE,
			       "%s, line %lld, %s: %s lies in the future (it is %s): is a clock "
			       "wrong?",
			       p->t->file, (long long)row->line, p->t->fields.v[c->field], text,
			       now);
	return 0;
}

static int too_long(const struct plan *p, const struct import_row *row, const char *what,
		    struct err *e)
{
	return err_set(e, ERR_PARSE, "%s, line %lld: a %s of more than %d bytes", p->t->file,
		       (long long)row->line, what, IMPORT_NAME_MAX);
}

/* The part of a name with labels that metrics.def can know. */
static const struct metric_def *def_of(const char *metric)
{
	_cleanup_free_ char *bare = xstrndup(metric, strcspn(metric, "{"));

	return metric_def_find(bare);
}

static int check_value(const struct plan *p, const struct import_row *row,
		       const struct import_sample *s, struct err *e)
{
	const struct metric_def *d = def_of(s->metric);

	if (!d)
		return 0;
	if (s->unit && !str_eq(s->unit, d->unit))
		return err_set(
			e, ERR_USAGE,
			"%s: %s is in %s, not in %s: convert the values, or take another name",
			p->t->file, d->name, d->unit, s->unit);
	if (s->value < d->min || s->value > d->max)
		return err_set(e, ERR_PARSE,
			       "%s, line %lld, %s: %g is out of range: expected %g to %g %s",
			       p->t->file, (long long)row->line, s->metric, s->value, d->min,
			       d->max, d->unit);
	return 0;
}

/* What is known of a metric by its name, where nothing was said. */
static void complete(struct import_sample *s, const struct import_metric *said)
{
	const struct metric_def *d = def_of(s->metric);

	if (said && said->unit)
		s->unit = said->unit;
	if (said && said->directed) {
		s->better = said->better;
		s->directed = true;
	}
	if (d && !s->unit)
		s->unit = d->unit;
	if (d && !s->directed) {
		s->better = d->better;
		s->directed = true;
	}
}

static int add_sample(const struct plan *p, const struct import_row *row,
		      const struct import_cell *c, const struct import_metric *said,
		      struct import_sample *s, struct import_samples *out, struct err *e)
{
	const char *as = kvs_get(&p->r->as, s->metric);
	int rc;

	switch (read_number(text_at(p->t, c), &s->value)) {
	case NUMBER_IS:
		break;
	case NUMBER_MISSING:
		if (out->missing++ == 0)
			out->missing_line = row->line;
		return 0;
	case NUMBER_NOT:
		return err_set(e, ERR_PARSE,
			       "%s, line %lld, %s: \"%s\" is no number: expected one like 10.43 "
			       "(blank, nan or N/A: no value)",
			       p->t->file, (long long)row->line, s->metric, text_at(p->t, c));
	}
	if (as)
		s->metric = as;
	if (strlen(s->metric) > IMPORT_NAME_MAX)
		return too_long(p, row, "name of a metric", e);
	complete(s, said);
	if ((rc = check_value(p, row, s, e)) < 0)
		return rc;
	out->low += s->value <= 0;
	out->v = xgrow(out->v, out->n, &out->cap, sizeof *out->v);
	out->v[out->n++] = *s;
	return 0;
}

/* The rule for a metric of a row of its own; false: it is not wanted. */
static bool find_said(const struct import_rules *r, const char *metric,
		      const struct import_metric **said)
{
	*said = NULL;
	for (size_t i = 0; i < r->n_metrics; i++) {
		size_t n = strlen(r->metrics[i].name);

		if (strncmp(metric, r->metrics[i].name, n) == 0 &&
		    (metric[n] == '\0' || metric[n] == '{')) {
			*said = &r->metrics[i];
			return true;
		}
	}
	return r->n_metrics == 0;
}

static int long_row(const struct plan *p, const struct import_row *row, struct import_sample *s,
		    struct import_samples *out, struct err *e)
{
	const struct import_cell *value = cell_of(p, row, USE_VALUE);
	const char *better = word_of(p, row, USE_BETTER);
	const struct import_metric *said;

	s->metric = word_of(p, row, USE_NAME);
	if (!s->metric)
		return err_set(e, ERR_PARSE, "%s, line %lld: no metric is named", p->t->file,
			       (long long)row->line);
	if (!value || !find_said(p->r, s->metric, &said))
		return 0;
	s->unit = word_of(p, row, USE_UNIT);
	s->directed = better != NULL;
	if (better && !better_parse(better, &s->better))
		return err_set(e, ERR_PARSE,
			       "%s, line %lld, better: \"%s\": expected up, down or none",
			       p->t->file, (long long)row->line, better);
	return add_sample(p, row, value, said, s, out, e);
}

static int wide_row(const struct plan *p, const struct import_row *row,
		    const struct import_sample *common, struct import_samples *out, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < row->n && rc == 0; i++) {
		const struct import_cell *c = &p->t->cells[row->first + i];
		struct import_sample s = *common;

		if (p->use[c->field] != USE_METRIC)
			continue;
		s.metric = p->t->fields.v[c->field];
		rc = add_sample(p, row, c, p->metric[c->field], &s, out, e);
	}
	return rc;
}

static int one_row(const struct plan *p, size_t i, const char *workload, struct import_when *w,
		   struct import_samples *out, struct err *e)
{
	const struct import_row *row = &p->t->rows[i];
	struct import_sample s = {.row = i, .line = row->line, .better = BETTER_NONE};
	int rc;

	if (!is_wanted(p, row)) {
		out->filtered++;
		return 0;
	}
	if ((rc = row_time(p, row, w, e)) < 0)
		return rc;
	s.at_us = w->us;
	s.timed = w->timed;
	memcpy(s.night, w->night, sizeof s.night);
	s.workload = p->r->workload ? p->r->workload : word_of(p, row, USE_WORKLOAD);
	if (!s.workload)
		s.workload = workload;
	s.place = p->r->place ? p->r->place : word_of(p, row, USE_PLACE);
	if (!s.place)
		s.place = "";
	if (strlen(s.workload) > IMPORT_NAME_MAX || strlen(s.place) > IMPORT_NAME_MAX)
		return too_long(p, row, "workload or place", e);
	s.nodes = word_of(p, row, USE_NODES);
	return p->is_long ? long_row(p, row, &s, out, e) : wide_row(p, row, &s, out, e);
}

/* The name of the file, without its folder and what is behind the first dot. */
static char *default_workload(const char *file)
{
	const char *base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
	size_t n = strcspn(base, ".");

	return xstrndup(base, n ? n : strlen(base));
}

static int make_plan(struct plan *p, bool *is_env, struct err *e)
{
	int rc = plan_time(p, e);

	if (rc == 0)
		plan_words(p);
	if (rc == 0)
		rc = plan_metrics(p, e);
	if (rc == 0)
		rc = plan_env(p, is_env, e);
	return rc == 0 ? check_names(p, e) : rc;
}

int import_samples(const struct import_table *t, const struct import_rules *r,
		   struct import_samples *out, struct err *e)
{
	struct plan p = {.t = t, .r = r, .is_long = is_long(t)};
	struct import_when w = {0};
	int rc;

	*out = (struct import_samples){.is_env = xcalloc(t->fields.n + 1, sizeof *out->is_env),
				       .workload = default_workload(t->file)};
	p.use = xcalloc(t->fields.n + 1, sizeof *p.use);
	p.metric = xcalloc(t->fields.n + 1, sizeof *p.metric);
	rc = make_plan(&p, out->is_env, e);
	for (size_t i = 0; i < t->n_rows && rc == 0; i++)
		rc = one_row(&p, i, out->workload, &w, out, e);
	if (rc == 0 && out->n == 0)
		rc = err_set(e, ERR_PARSE, "%s: not a single value in its %zu rows%s", t->file,
			     t->n_rows, out->filtered ? " (--only left rows out)" : "");
	free(p.use);
	free(p.metric);
	if (rc < 0)
		import_samples_done(out);
	return rc;
}

void import_samples_done(struct import_samples *s)
{
	free(s->v);
	free(s->is_env);
	free(s->workload);
	*s = (struct import_samples){0};
}

char *import_environment(const struct import_table *t, const struct import_samples *s, size_t row)
{
	const struct import_row *r = &t->rows[row];
	struct json *j = json_object();
	char *text = NULL;
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct import_cell *c = &t->cells[r->first + i];

		if (!s->is_env[c->field])
			continue;
		json_set_text(j, t->fields.v[c->field], text_at(t, c));
		n++;
	}
	if (n)
		text = json_print(j, false);
	json_free(j);
	return text;
}
