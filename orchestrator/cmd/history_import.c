/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/history_import.h"

#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "orchestrator/base/hours.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/cmd.h"
#include "orchestrator/cmd/history_look.h"
#include "orchestrator/cmd/import.h"
#include "orchestrator/cmd/listing.h"
#include "orchestrator/method/workspace.h"

static const struct cmd me = {.name = "history import"};

enum { SERIES_SHOWN_MAX = 40, NOTES_SHOWN_MAX = 10 };
#define DAY_US (INT64_C(86400) * 1000000)

struct args {
	struct import_rules rules;
	struct import_options o;
	const char *workspace;
	char **files; /* NULL-terminated, of argv */
	bool json, dry;
};

/* -- options --------------------------------------------------------------------------------- */

static void take_metric(struct import_rules *r, const char *arg, struct argp_state *state)
{
	struct import_metric m, *all = xrealloc(r->metrics, r->n_metrics + 1, sizeof *all);
	struct err e = {0};

	r->metrics = all;
	if (import_metric_parse(arg, &m, &e) < 0)
		argp_error(state, "--metric %s", e.text);
	all[r->n_metrics++] = m;
}

static void take_pair(struct kvs *out, const char *option, const char *arg,
		      struct argp_state *state)
{
	const char *eq = strrchr(arg, '=');
	_cleanup_free_ char *name = eq ? xstrndup(arg, (size_t)(eq - arg)) : NULL;

	if (!name || !*name || !eq[1])
		argp_error(state, "--%s wants FIELD=%s, got %s", option,
			   str_eq(option, "as") ? "METRIC" : "VALUE", arg);
	kvs_set(out, name, eq + 1);
}

static void take_format(struct import_rules *r, const char *arg, struct argp_state *state)
{
	static const char *const words[] = {"csv", "jsonl", "openmetrics"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_eq(arg, words[i])) {
			r->format = (enum import_format)(IMPORT_CSV + i);
			return;
		}
	argp_error(state, "--format wants csv, jsonl or openmetrics, got %s", arg);
}

/* Nights, and times that name no zone, are by the local clock: make it that of the zone. */
static void take_zone(const char *zone, struct argp_state *state)
{
	_cleanup_free_ char *text = xasprintf("00:00-24:00 %s", zone);
	struct hours h;
	struct err e = {0};

	if (hours_parse(text, &h, &e) < 0)
		argp_error(state, "--zone: %s", e.text);
	setenv("TZ", zone, 1);
	tzset();
}

static void take_min_effect(struct import_options *o, const char *arg, struct argp_state *state)
{
	if (!str_to_double(arg, &o->min_effect) || !(o->min_effect >= 2 && o->min_effect <= 100))
		argp_error(state, "--min-effect wants per cent from 2 to 100, got %s", arg);
	o->min_effect /= 100;
}

enum {
	OPT_TIME = 512,
	OPT_WORKLOAD,
	OPT_PLACE,
	OPT_ENV,
	OPT_ONLY,
	OPT_AS,
	OPT_ZONE,
	OPT_FORMAT,
	OPT_MIN_EFFECT,
	OPT_REPLACE
};

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
	case 'n':
		a->dry = true;
		return 0;
	case 'm':
		take_metric(&a->rules, arg, state);
		return 0;
	case OPT_TIME:
		a->rules.time = arg;
		return 0;
	case OPT_WORKLOAD:
		if (!*arg)
			argp_error(state, "--workload wants a name");
		a->rules.workload = arg;
		return 0;
	case OPT_PLACE:
		a->rules.place = arg;
		return 0;
	case OPT_ENV:
		strv_add(&a->rules.env, arg);
		return 0;
	case OPT_ONLY:
		take_pair(&a->rules.only, "only", arg, state);
		return 0;
	case OPT_AS:
		take_pair(&a->rules.as, "as", arg, state);
		return 0;
	case OPT_ZONE:
		take_zone(arg, state);
		return 0;
	case OPT_FORMAT:
		take_format(&a->rules, arg, state);
		return 0;
	case OPT_MIN_EFFECT:
		take_min_effect(&a->o, arg, state);
		return 0;
	case OPT_REPLACE:
		a->o.replace = true;
		return 0;
	case ARGP_KEY_ARGS:
		a->files = state->argv + state->next;
		return 0;
	case ARGP_KEY_END:
		if (!a->files)
			argp_error(state, "which file?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* -- what was done --------------------------------------------------------------------------- */

static struct json *series_json(const struct import_series *s)
{
	struct json *j = json_object();

	json_set_i64(j, "series", s->row.id);
	json_set_text(j, "workload", s->row.workload);
	json_set_text(j, "place", s->row.place);
	json_set_text(j, "metric", s->row.metric);
	json_set_text(j, "unit", s->row.unit);
	json_set_text(j, "better", better_name(s->row.better));
	json_set_bool(j, "new", s->is_new);
	json_set_i64(j, "nights", (int64_t)s->nights);
	json_set_i64(j, "added", (int64_t)s->added);
	json_set_i64(j, "same", (int64_t)s->same);
	json_set_i64(j, "extended", (int64_t)s->more);
	json_set_i64(j, "replaced", (int64_t)s->replaced);
	json_set_text(j, "first", s->first);
	json_set_text(j, "last", s->last);
	return j;
}

static void print_json(const struct args *a, const char *file, size_t rows,
		       const struct import_result *r)
{
	_cleanup_(json_freep) struct json *j = json_object();
	struct json *series = json_array(), *notes = json_array();
	_cleanup_free_ char *text = NULL;

	json_set_text(j, "format", "fettle.import/1");
	json_set_text(j, "file", file);
	json_set_bool(j, "dry_run", a->dry);
	json_set_i64(j, "rows", (int64_t)rows);
	json_set_i64(j, "duplicates", (int64_t)r->duplicates);
	for (size_t i = 0; i < r->n; i++)
		json_add(series, series_json(&r->v[i]));
	for (size_t i = 0; i < r->notes.n; i++)
		json_add_text(notes, r->notes.v[i]);
	json_set(j, "series", series);
	json_set(j, "notes", notes);
	text = json_print(j, false);
	puts(text);
}

static void print_count(size_t n, const char *what)
{
	if (n)
		printf(", %zu %s", n, what);
}

static void print_series(const struct import_series *s)
{
	printf("  series %lld ", (long long)s->row.id);
	listing_clean(s->row.workload);
	if (*s->row.place) {
		fputs(" on ", stdout);
		listing_clean(s->row.place);
	}
	fputs(" ", stdout);
	listing_clean(s->row.metric);
	if (*s->row.unit) {
		fputs(" ", stdout);
		listing_clean(s->row.unit);
	}
	printf("%s: %zu nights, %s to %s", s->is_new ? " (new)" : "", s->nights, s->first, s->last);
	print_count(s->added, "added");
	print_count(s->same, "as stored");
	print_count(s->more, "with further runs");
	print_count(s->replaced, "replaced");
	putchar('\n');
}

static void print_text(const struct args *a, const char *file, size_t rows,
		       const struct import_result *r)
{
	size_t added = 0;

	for (size_t i = 0; i < r->n; i++)
		added += r->v[i].added;
	listing_clean(file);
	printf(": %zu rows, %zu series, %zu points added", rows, r->n, added);
	print_count(r->duplicates, "duplicates left out");
	puts(a->dry ? " (not stored: --dry-run)" : "");
	for (size_t i = 0; i < r->n && i < SERIES_SHOWN_MAX; i++)
		print_series(&r->v[i]);
	if (r->n > SERIES_SHOWN_MAX)
		printf("  and %zu series more\n", r->n - SERIES_SHOWN_MAX);
	for (size_t i = 0; i < r->notes.n && i < NOTES_SHOWN_MAX; i++) {
		fputs("  note: ", stdout);
		listing_clean(r->notes.v[i]);
		putchar('\n');
	}
	if (r->notes.n > NOTES_SHOWN_MAX)
		printf("  and %zu notes more (--json has all)\n", r->notes.n - NOTES_SHOWN_MAX);
}

/* -- files ----------------------------------------------------------------------------------- */

/* All of a file, or nothing of it. */
static int store_file(struct workspace *w, const struct args *a, const struct import_table *t,
		      struct import_samples *s, struct err *e)
{
	struct import_result r;
	int rc = db_begin(w->db, "import a history", e);

	if (rc < 0)
		return rc;
	rc = import_store(w->db, t, s, &a->o, &r, e);
	if (rc < 0 || a->dry)
		db_rollback(w->db);
	else
		rc = db_commit(w->db, e);
	if (rc == 0 && a->json)
		print_json(a, t->file, t->n_rows, &r);
	else if (rc == 0)
		print_text(a, t->file, t->n_rows, &r);
	if (rc == 0)
		import_result_done(&r);
	return rc;
}

static int one_file(struct workspace *w, const struct args *a, const char *file, struct err *e)
{
	struct import_table t = {0};
	struct import_samples s = {0};
	int rc = import_read(file, &a->rules, &t, e);

	if (rc == 0)
		rc = import_samples(&t, &a->rules, &s, e);
	if (rc == 0)
		rc = store_file(w, a, &t, &s, e);
	import_samples_done(&s);
	import_table_done(&t);
	return rc;
}

/* A file that is refused keeps none of the others out. */
static int all_files(struct workspace *w, const struct args *a)
{
	struct err e = {0};
	bool any = false;
	int worst = 0;

	for (char **file = a->files; *file; file++) {
		int status = one_file(w, a, *file, &e) < 0 ? cmd_fail(&me, &e) : 0;

		any = any || status == 0;
		worst = status > worst ? status : worst;
	}
	if (any && !a->dry && history_look(w, a->json, &e) < 0)
		worst = cmd_fail(&me, &e);
	return worst;
}

int history_import(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"metric", 'm', "NAME[:BETTER[:UNIT]]", 0,
		 "only this field; better is up, down or none (several: one each)", 1},
		{"time", OPT_TIME, "FIELD", 0, "field of the times (default: found by its name)",
		 1},
		{"workload", OPT_WORKLOAD, "NAME", 0,
		 "what was measured (default: field `workload`, else the file's name)", 1},
		{"place", OPT_PLACE, "NAME", 0,
		 "partition or nodes (default: field `place`, `partition` or `cluster`)", 1},
		{"env", OPT_ENV, "FIELD", 0,
		 "a field of the environment (default: all that are texts)", 1},
		{"only", OPT_ONLY, "FIELD=VALUE", 0, "only rows with this value", 1},
		{"as", OPT_AS, "FIELD=METRIC", 0, "a metric that was renamed goes on as METRIC", 1},
		{"zone", OPT_ZONE, "ZONE", 0,
		 "time zone of the nights and of times without one (default: this machine's)", 1},
		{"format", OPT_FORMAT, "csv|jsonl|openmetrics", 0,
		 "what the file is (default: by the first line)", 1},
		{"min-effect", OPT_MIN_EFFECT, "PCT", 0,
		 "relative change that matters (default: 2)", 1},
		{"replace", OPT_REPLACE, NULL, 0,
		 "where a value contradicts what is there, take the file's", 2},
		{"dry-run", 'n', NULL, 0, "say what would be stored, and store nothing", 2},
		{"workspace", 'w', "DIR", 0,
		 "workspace (default: $FETTLE_WORKSPACE, else ./fettle-workspace)", 2},
		{"json", 'j', NULL, 0, "a JSON object a file", 2},
		{0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "FILE...",
		.doc = "Store a history that was measured elsewhere: CSV with a header line, JSON "
		       "lines, or OpenMetrics text with timestamps, gzip too. A field of times, "
		       "one a metric; texts are kept as what the values hold for.\v"
		       "A night lasts from noon to noon; a date alone is that night. Rows of one "
		       "night are its replicates. Of a file all is stored or nothing; a file that "
		       "has grown may be imported again. Exit status 0, 2 for a wrong option, 4 for "
		       "a file that could not be taken."};
	struct args a = {.o = {.min_effect = NAN}};
	struct workspace *w = NULL;
	struct err e = {0};
	int status;

	cmd_parse(&argp, argc, argv, &a);
	a.o.now_us = clock_utc_us(&clock_system);
	a.rules.until_us = a.o.now_us + DAY_US;
	if (workspace_open(workspace_default(a.workspace), DB_CREATE, &clock_system, &w, &e) < 0)
		status = cmd_fail(&me, &e);
	else
		status = all_files(w, &a);
	workspace_close(w);
	import_rules_done(&a.rules);
	return status;
}
