/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/history_watch.h"

#include <argp.h>
#include <errno.h>
#include <fnmatch.h>
#include <fts.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "experiments/history.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/hours.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/cmd.h"
#include "orchestrator/cmd/history_look.h"
#include "orchestrator/cmd/listing.h"
#include "orchestrator/method/gather.h"
#include "orchestrator/method/workspace.h"

static const struct cmd me = {.name = "history watch"};

enum { EXIT_PERMANENT = 4, SETTLED_MIN = 10, SETTLED_MAX_MIN = 7 * 24 * 60 };
#define US_PER_MIN INT64_C(60000000)

struct args {
	const char *workspace, *workload, *metric;
	int64_t series, settled_min;
	struct strv names;
	char **dirs; /* NULL-terminated, of argv */
	bool json;
};

enum { OPT_WORKLOAD = 512, OPT_METRIC, OPT_SETTLED };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'w':
		a->workspace = arg;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case 's':
		if (!str_to_i64(arg, &a->series) || a->series < 1)
			argp_error(state, "--series wants a number of `fettle history`, got %s",
				   arg);
		return 0;
	case 'n':
		strv_add(&a->names, arg);
		return 0;
	case OPT_WORKLOAD:
		a->workload = arg;
		return 0;
	case OPT_METRIC:
		a->metric = arg;
		return 0;
	case OPT_SETTLED:
		if (!str_to_i64(arg, &a->settled_min) || a->settled_min < 0 ||
		    a->settled_min > SETTLED_MAX_MIN)
			argp_error(state, "--settled wants minutes from 0 to %d, got %s",
				   SETTLED_MAX_MIN, arg);
		return 0;
	case ARGP_KEY_ARGS:
		a->dirs = state->argv + state->next;
		return 0;
	case ARGP_KEY_END:
		if (!a->dirs)
			argp_error(state, "which directory?");
		if (a->series ? a->workload || a->metric : !a->workload || !a->metric)
			argp_error(state, "which series? --series N, or --workload and --metric");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* -- the series ------------------------------------------------------------------------------ */

/* Of the series of this workload and metric the one that a log would be like: what fettle measures
 * itself before what was brought in. */
static int find_like(struct db *db, const struct args *a, int64_t *id, struct err *e)
{
	struct series_row *v = NULL;
	struct buf all = {0};
	size_t n = 0, best = 0, equal = 0;
	int rc = history_series_list(db, 0, &v, &n, e);

	*id = 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		/* canary, imported, observed: the earlier the better */
		if (!str_eq(v[i].workload, a->workload) || !str_eq(v[i].metric, a->metric) ||
		    v[i].role != SERIES_CURRENT || (*id && v[i].source > v[best].source))
			continue;
		if (!*id || v[i].source < v[best].source) {
			buf_clear(&all);
			equal = 0;
		}
		buf_printf(&all, "%s%lld%s%s", equal++ ? ", " : "", (long long)v[i].id,
			   *v[i].place ? " on " : "", v[i].place);
		best = i;
		*id = v[i].id;
	}
	if (equal > 1)
		rc = err_set(e, ERR_USAGE,
			     "there are several series of %s of %s: %s; --series N says which",
			     a->metric, a->workload, all.data);
	buf_free(&all);
	series_rows_free(v, n);
	return rc;
}

/* The first of its workload: as metrics.def has it. */
static int describe(const struct args *a, struct series_row *out, struct err *e)
{
	const struct metric_def *d = metric_def_find(a->metric);

	if (!d)
		return err_set(
			e, ERR_USAGE,
			"there is no series of %s of %s, and no metric of that name: `fettle "
			"history` lists series, `fettle probe --list` metrics",
			a->metric, a->workload);
	*out = (struct series_row){.workload = xstrdup(a->workload),
				   .config = xstrdup(""),
				   .place = xstrdup(""),
				   .metric = xstrdup(d->name),
				   .unit = xstrdup(d->unit),
				   .better = d->better,
				   .min_effect = 0.02};
	return 0;
}

/* The observed series beside the one that was named. */
static int open_series(struct workspace *w, const struct args *a, int64_t now_us,
		       struct series_row *out, struct err *e)
{
	int64_t like = a->series;
	int rc = like ? 0 : find_like(w->db, a, &like, e);

	if (rc == 0)
		rc = like ? history_series_get(w->db, like, out, e) : describe(a, out, e);
	if (rc < 0)
		return rc;
	if (out->role != SERIES_CURRENT)
		return err_set(e, ERR_USAGE,
			       "series %lld is that of the %s arm: ordinary jobs have none",
			       (long long)like, series_role_name(out->role));
	out->source = SERIES_OBSERVED;
	free(out->stat);
	out->stat = xstrdup("mean");
	return history_series_put(w->db, out, now_us, e);
}

/* -- logs ------------------------------------------------------------------------------------ */

struct pass {
	struct workspace *w;
	const struct args *a;
	const struct series_row *series;
	int64_t now_us;
	size_t counted, known, copies, without, growing;
};

static void say(const struct pass *p, const struct observation_row *o, const char *why)
{
	if (p->a->json) {
		_cleanup_(json_freep) struct json *j = json_object();
		_cleanup_free_ char *text = NULL;

		json_set_text(j, "kind", "log");
		json_set_text(j, "path", o->path);
		json_set_text(j, "state", observation_state_name(o->state));
		json_set_text(j, "night", o->night);
		json_set_number(j, "value", o->value);
		json_set_text(j, "why", why);
		text = json_print(j, false);
		puts(text);
		return;
	}
	if (o->state == OBSERVATION_COUNTED)
		printf("%s  %.6g %s  ", o->night, o->value, p->series->unit);
	else
		printf("%s  not counted  ", o->night);
	listing_clean(o->path);
	if (why) {
		fputs(": ", stdout);
		listing_clean(why);
	}
	putchar('\n');
}

/* What the probes make of it; *why is heap, NULL when it is counted. */
static void read_log(const struct pass *p, struct observation_row *o, char **why)
{
	struct gather *g = gather_new();
	const struct gather_file *f;
	size_t n;

	gather_file(g, o->path);
	gather_finish(g);
	f = gather_files(g, &n);
	o->value = gather_get(g, p->series->metric);
	o->state = isfinite(o->value) ? OBSERVATION_COUNTED : OBSERVATION_WITHOUT;
	if (o->state == OBSERVATION_WITHOUT)
		*why = f->probe ? xasprintf("no %s in it (read as %s%s%s)", p->series->metric,
					    f->probe, f->detail ? ": " : "",
					    f->detail ? f->detail : "")
				: xstrdup("no probe knows such a text");
	gather_free(g);
}

/* Bytes that were read by another name: a copy, or it was renamed. */
static int find_copy(const struct pass *p, struct observation_row *o, char **why, struct err *e)
{
	_cleanup_(observation_row_done) struct observation_row other = {0};
	bool found = false;
	int rc = history_observation_same(p->w->db, o->series, o->path, o->hash, &other, &found, e);

	if (rc == 0 && found) {
		o->state = OBSERVATION_COPY;
		o->value = NAN;
		*why = xasprintf("the same bytes as %s", other.path);
	}
	return rc;
}

static int new_log(struct pass *p, struct observation_row *o, struct err *e)
{
	_cleanup_free_ char *why = NULL;
	int rc;

	o->state = OBSERVATION_COUNTED;
	if ((rc = find_copy(p, o, &why, e)) < 0)
		return rc;
	if (!why)
		read_log(p, o, &why);
	p->counted += o->state == OBSERVATION_COUNTED;
	p->copies += o->state == OBSERVATION_COPY;
	p->without += o->state == OBSERVATION_WITHOUT;
	if ((rc = history_observation_put(p->w->db, o, p->now_us, e)) == 0)
		say(p, o, why);
	return rc;
}

static int one_log(struct pass *p, const char *path, const struct stat *st, struct err *e)
{
	const struct strv noon_to_noon = {0};
	_cleanup_(observation_row_done) struct observation_row was = {0};
	struct observation_row o = {
		.series = p->series->id,
		.path = (char *)(uintptr_t)path,
		.size = st->st_size,
		.mtime_us = (int64_t)st->st_mtim.tv_sec * 1000000 + st->st_mtim.tv_nsec / 1000,
		.value = NAN,
	};
	struct hours_night night;
	bool found = false;
	int rc;

	/* A clock that is ahead makes it look so, too: then it is taken when ours gets there. */
	if (p->now_us - o.mtime_us < p->a->settled_min * US_PER_MIN) {
		p->growing++;
		return 0;
	}
	if ((rc = history_observation_get(p->w->db, o.series, path, &was, &found, e)) < 0)
		return rc;
	if (found && was.size == o.size && was.mtime_us == o.mtime_us) {
		p->known++;
		return 0;
	}
	if ((rc = fs_hash_file(path, o.hash, e)) < 0)
		return rc;
	hours_night_at(&noon_to_noon, o.mtime_us, &night);
	memcpy(o.night, night.night, sizeof o.night);
	if (!found || !str_eq(was.hash, o.hash))
		return new_log(p, &o, e);
	/* Only touched: it stays where it was. */
	memcpy(o.night, was.night, sizeof o.night);
	o.state = was.state;
	o.value = was.value;
	p->known++;
	return history_observation_put(p->w->db, &o, p->now_us, e);
}

static bool is_named(const struct args *a, const char *name)
{
	for (size_t i = 0; i < a->names.n; i++)
		if (fnmatch(a->names.v[i], name, FNM_PERIOD) == 0)
			return true;
	return a->names.n == 0 && name[0] != '.';
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int one_entry(struct pass *p, FTS *tree, FTSENT *f, struct err *e)
{
	switch (f->fts_info) {
	case FTS_D:
		if (f->fts_level > 0 && f->fts_name[0] == '.')
			fts_set(tree, f, FTS_SKIP);
		return 0;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		errno = f->fts_errno;
		return err_sys(e, f->fts_level == 0 ? ERR_NOT_FOUND : ERR_IO, "%s", f->fts_path);
	case FTS_F:
		if (f->fts_statp->st_size > 0 && is_named(p->a, f->fts_name))
			return one_log(p, f->fts_accpath, f->fts_statp, e);
		return 0;
	default:
		return 0;
	}
}

/* What cannot be read keeps nothing else out. */
static int one_dir(struct pass *p, const char *dir)
{
	struct err e = {0};
	_cleanup_free_ char *root = fs_absolute(dir, &e);
	char *const roots[] = {root, NULL};
	int status = 0;
	FTSENT *f;
	FTS *tree;

	if (!root)
		return cmd_fail(&me, &e);
	if (!(tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name))) {
		err_sys(&e, ERR_IO, "%s", dir);
		return cmd_fail(&me, &e);
	}
	while ((f = fts_read(tree)))
		if (one_entry(p, tree, f, &e) < 0) {
			cmd_fail(&me, &e);
			status = EXIT_PERMANENT;
		}
	fts_close(tree);
	return status;
}

/* -- the end --------------------------------------------------------------------------------- */

static void print_end(const struct pass *p)
{
	_cleanup_(json_freep) struct json *j = json_object();
	_cleanup_free_ char *text = NULL;

	if (!p->a->json) {
		printf("series %lld (observed), %s of ", (long long)p->series->id,
		       p->series->metric);
		listing_clean(p->series->workload);
		printf(": %zu logs counted, %zu known", p->counted, p->known);
		if (p->copies)
			printf(", %zu copies", p->copies);
		if (p->without)
			printf(", %zu without it", p->without);
		if (p->growing)
			printf(", %zu written within %lld min: later", p->growing,
			       (long long)p->a->settled_min);
		putchar('\n');
		return;
	}
	json_set_text(j, "kind", "end");
	json_set_text(j, "format", "fettle.watch/1");
	json_set_i64(j, "series", p->series->id);
	json_set_i64(j, "counted", (int64_t)p->counted);
	json_set_i64(j, "known", (int64_t)p->known);
	json_set_i64(j, "copies", (int64_t)p->copies);
	json_set_i64(j, "without", (int64_t)p->without);
	json_set_i64(j, "growing", (int64_t)p->growing);
	text = json_print(j, false);
	puts(text);
}

static int watch(struct workspace *w, const struct args *a)
{
	struct series_row series = {0};
	struct pass p = {.w = w, .a = a, .series = &series, .now_us = clock_utc_us(&clock_system)};
	struct err e = {0};
	int worst = 0;

	if (open_series(w, a, p.now_us, &series, &e) < 0) {
		series_row_done(&series);
		return cmd_fail(&me, &e);
	}
	for (char **dir = a->dirs; *dir; dir++) {
		int status = one_dir(&p, *dir);

		worst = status > worst ? status : worst;
	}
	print_end(&p);
	if (history_look(w, a->json, &e) < 0)
		worst = cmd_fail(&me, &e);
	series_row_done(&series);
	return worst;
}

int history_watch(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"series", 's', "SERIES", 0, "the series that the jobs belong to", 1},
		{"workload", OPT_WORKLOAD, "NAME", 0, "or its workload", 1},
		{"metric", OPT_METRIC, "NAME", 0, "and its metric", 1},
		{"name", 'n', "GLOB", 0,
		 "only files named so, 'slurm-train-*.out' say (several: any)", 1},
		{"settled", OPT_SETTLED, "MIN", 0,
		 "leave alone what was written to within so many minutes (default: 10)", 1},
		{"workspace", 'w', "DIR", 0,
		 "workspace (default: $FETTLE_WORKSPACE, else ./fettle-workspace)", 2},
		{"json", 'j', NULL, 0, "a JSON object a log, the counts last", 2},
		{0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "DIR|FILE...",
		.doc = "Read the logs of ordinary jobs once and exit (for cron): the metric of each "
		       "becomes a value of its night in an observed series, beside the one that is "
		       "named. Such a series raises suspicions and gives no verdict.\v"
		       "A file is a job, and its night that in which it was last written to. What "
		       "was read is remembered and counts once; a log that was written to since "
		       "counts anew. Exit status 0, or 4 when something could not be read."};
	struct args a = {.settled_min = SETTLED_MIN};
	struct workspace *w = NULL;
	struct err e = {0};
	int status;

	cmd_parse(&argp, argc, argv, &a);
	if (workspace_open(workspace_default(a.workspace), DB_CREATE, &clock_system, &w, &e) < 0)
		status = cmd_fail(&me, &e);
	else
		status = watch(w, &a);
	workspace_close(w);
	strv_free(&a.names);
	return status;
}
