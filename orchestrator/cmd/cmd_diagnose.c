/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/paths.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/listing.h"
#include "orchestrator/method/gather.h"

extern const struct cmd cmd_diagnose;

enum { EXIT_PERMANENT = 4, SHOWN_MAX = 24 };

struct args {
	char **paths; /* NULL-terminated, of argv */
	struct kvs thresholds, facts;
	bool json;
};

/* NAME=NUMBER */
static void take_pair(const char *arg, const char *option, struct kvs *out,
		      struct argp_state *state)
{
	const char *eq = strchr(arg, '=');
	_cleanup_free_ char *name = eq ? xstrndup(arg, (size_t)(eq - arg)) : NULL;
	double v;

	if (!name || !*name || !str_to_double(eq + 1, &v))
		argp_error(state, "--%s wants NAME=NUMBER, got %s", option, arg);
	kvs_set(out, name, eq + 1);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 't':
		take_pair(arg, "threshold", &a->thresholds, state);
		return 0;
	case 's':
		take_pair(arg, "signal", &a->facts, state);
		return 0;
	case ARGP_KEY_ARGS:
		a->paths = state->argv + state->next;
		return 0;
	case ARGP_KEY_END:
		if (!a->paths)
			argp_error(state, "which directory or file?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* -- reading ----------------------------------------------------------------------------------- */

static int read_path(struct gather *g, const char *path, size_t *left, struct err *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return drive_not_there(path, e);
	if (!S_ISDIR(st.st_mode)) {
		gather_file(g, path);
		return 0;
	}
	return gather_dir(g, path, left) ? 0 : err_sys(e, ERR_IO, "%s", path);
}

static size_t files_read(const struct gather *g)
{
	size_t n, read = 0;
	const struct gather_file *f = gather_files(g, &n);

	for (size_t i = 0; i < n; i++)
		read += f[i].values > 0;
	return read;
}

/* Those that are there and could not be read: the answer is without them. */
static int tell_unread(const struct gather *g)
{
	size_t n;
	const struct gather_file *f = gather_files(g, &n);
	struct err e;
	int status = 0;

	for (size_t i = 0; i < n; i++)
		if (f[i].fault == ERR_IO || f[i].fault == ERR_READ) {
			err_set(&e, f[i].fault, "%s", f[i].detail);
			status = cmd_fail(&cmd_diagnose, &e);
		}
	return status;
}

/* The signals of the files, and over them those that the user gives. */
static struct script_signals all_signals(const struct gather *g, const struct kvs *given,
					 struct signal **array)
{
	struct script_signals s = gather_script(g, array);
	double v = NAN;

	*array = xrealloc(*array, s.n + given->n + 1, sizeof(**array));
	for (size_t i = 0; i < given->n; i++)
		if (str_to_double(given->v[i].value, &v))
			(*array)[s.n++] = (struct signal){given->v[i].key, v};
	s.v = *array;
	return s;
}

/* -- a page ------------------------------------------------------------------------------------ */

static double ceiling_of(double share)
{
	return share < 1 ? share / (1 - share) : INFINITY;
}

/* "RECIPES" of a rule's advice is where they are here. */
static void print_run(const char *indent, const char *run)
{
	_cleanup_free_ char *recipes = paths_recipes();
	const char *hole = strstr(run, "RECIPES/"), *note = strstr(run, " (RECIPES:");
	const char *after = note ? strchr(note, ')') : NULL;

	if (hole && after && hole < note)
		printf("%srun: %.*s%s%.*s%s\n", indent, (int)(hole - run), run, recipes,
		       (int)(note - hole - 7), hole + 7, after + 1);
	else
		printf("%srun: %s\n", indent, run);
}

static void print_tries(const struct finding *f)
{
	for (size_t i = 0; i < f->tries.n; i++)
		printf("%s%s", i ? ", " : "   try: ", f->tries.v[i]);
	if (f->tries.n)
		printf("  (fettle knobs explain %s)\n", f->tries.v[0]);
}

static void print_limit(const struct finding *f)
{
	if (isfinite(f->limit) && f->source)
		printf("   [%s: above %.4g; %s]\n", f->rule, f->limit, f->source);
	else
		printf("   [%s]\n", f->rule);
}

static void print_finding(const struct finding *f, int number)
{
	if (f->under) {
		printf("   because: %s\n", f->evidence);
		print_tries(f);
		return;
	}
	printf("%d. %s", number, bottleneck_name(f->bottleneck));
	if (isfinite(f->share) && f->bottleneck == BOTTLENECK_COMPUTE)
		printf(": %.1f %% of the step\n", 100 * f->share);
	else if (isfinite(f->share))
		printf(": %.1f %% of the step; without it at most %+.1f %%\n", 100 * f->share,
		       100 * ceiling_of(f->share));
	else
		printf("\n");
	printf("   %s\n", f->evidence);
	print_limit(f);
	print_tries(f);
}

static void print_open(const struct open_branch *o)
{
	printf("   open: %s Not measured: %s\n", o->asks, o->missing);
	if (o->run)
		print_run("         ", o->run);
}

static void print_findings(const struct diagnosis *d)
{
	int number = 0;

	if (!d->n_found)
		printf("No rule names a bottleneck from what was measured.\n");
	for (size_t i = 0; i < d->n_found; i++) {
		const struct finding *f = &d->found[i];
		bool last = i + 1 == d->n_found || !d->found[i + 1].under;
		const char *branch = f->under ? f->under : f->rule;

		number += !f->under;
		print_finding(f, number);
		for (size_t k = 0; last && k < d->n_open; k++)
			if (str_eq(d->open[k].under, branch))
				print_open(&d->open[k]);
	}
}

/* Branches that one measurement closes stand together. */
static void print_open_branches(const struct diagnosis *d)
{
	_cleanup_free_ bool *done = xcalloc(d->n_open + 1, sizeof(*done));
	bool any = false;

	for (size_t i = 0; i < d->n_open; i++) {
		const char *run = d->open[i].run;

		if (d->open[i].under || done[i])
			continue;
		printf("%s", any ? "" : "\nOpen, for want of a measurement:\n");
		any = true;
		for (size_t k = i; k < d->n_open; k++) {
			if (d->open[k].under || done[k] || !str_eq(d->open[k].run, run))
				continue;
			printf("   %s (%s)\n", d->open[k].asks, d->open[k].missing);
			done[k] = true;
		}
		if (run)
			print_run("      ", run);
	}
}

/* Shares, rates and times; what is nothing is left out. */
static bool is_shown(const struct gather_signal *s)
{
	return s->value != 0 &&
	       (str_ends(s->name, "_ratio") || str_ends(s->name, "_pct") ||
		str_ends(s->name, "step_ms") || str_starts(s->name, "step_time_ms") ||
		str_starts(s->name, "throughput_") || str_ends(s->name, "_per_step"));
}

static void print_measured(const struct gather *g)
{
	size_t n, shown = 0;
	const struct gather_signal *s = gather_signals(g, &n);

	printf("\nMeasured:\n");
	for (size_t i = 0; i < n && shown < SHOWN_MAX; i++) {
		if (!is_shown(&s[i]))
			continue;
		printf("   %-26s %-10.4g ", s[i].name, s[i].value);
		listing_clean(s[i].source);
		putchar('\n');
		shown++;
	}
}

static void print_files(const struct gather *g, size_t left)
{
	size_t n, read = files_read(g), partial = 0;
	const struct gather_file *f = gather_files(g, &n);

	printf("%zu of %zu file%s gave figures", read, n, n == 1 ? "" : "s");
	for (size_t i = 0; i < n; i++)
		partial += f[i].values && f[i].status != PROBE_OK;
	if (partial)
		printf(", %zu of them in part", partial);
	if (left)
		printf("; %zu more were not read", left);
	printf(".\n");
	for (size_t i = 0; i < n; i++) {
		if (!f[i].values || f[i].status == PROBE_OK)
			continue;
		fputs("   ", stdout);
		listing_clean(f[i].path);
		printf(" is %s (%s)%s", probe_status_name(f[i].status), f[i].probe,
		       f[i].detail ? ": " : "");
		listing_clean(f[i].detail ? f[i].detail : "");
		putchar('\n');
	}
	putchar('\n');
}

/* -- JSON -------------------------------------------------------------------------------------- */

static struct json *findings_json(const struct diagnosis *d)
{
	struct json *all = json_array();

	for (size_t i = 0; i < d->n_found; i++) {
		const struct finding *f = &d->found[i];
		struct json *o = json_object(), *tries = json_array();

		json_set_text(o, "bottleneck", bottleneck_name(f->bottleneck));
		json_set_number(o, "share", f->share);
		json_set_number(o, "ceiling", isnan(f->share) ? NAN : ceiling_of(f->share));
		json_set_text(o, "evidence", f->evidence);
		json_set_text(o, "rule", f->rule);
		json_set_text(o, "under", f->under);
		json_set_number(o, "limit", f->limit);
		json_set_text(o, "source", f->source);
		for (size_t k = 0; k < f->tries.n; k++)
			json_add_text(tries, f->tries.v[k]);
		json_set(o, "try", tries);
		json_add(all, o);
	}
	return all;
}

static struct json *open_json(const struct diagnosis *d)
{
	struct json *all = json_array();

	for (size_t i = 0; i < d->n_open; i++) {
		struct json *o = json_object();

		json_set_text(o, "rule", d->open[i].rule);
		json_set_text(o, "under", d->open[i].under);
		json_set_text(o, "asks", d->open[i].asks);
		json_set_text(o, "missing", d->open[i].missing);
		json_set_text(o, "run", d->open[i].run);
		json_add(all, o);
	}
	return all;
}

static struct json *files_json(const struct gather *g)
{
	struct json *all = json_array();
	size_t n;
	const struct gather_file *f = gather_files(g, &n);

	for (size_t i = 0; i < n; i++) {
		struct json *o = json_object();

		json_set_text(o, "file", f[i].path);
		json_set_text(o, "probe", f[i].probe);
		json_set_text(o, "status", f[i].probe ? probe_status_name(f[i].status) : NULL);
		json_set_i64(o, "values", (int64_t)f[i].values);
		json_set_text(o, "detail", f[i].detail);
		json_add(all, o);
	}
	return all;
}

static void print_json(const struct gather *g, const struct script_signals *s,
		       const struct diagnosis *d)
{
	_cleanup_(json_freep) struct json *o = json_object();
	struct json *signals = json_object();
	_cleanup_free_ char *text = NULL;

	for (size_t i = 0; i < s->n; i++)
		json_set_number(signals, s->v[i].name, s->v[i].value);
	json_set_text(o, "format", "fettle.diagnosis/1");
	json_set(o, "findings", findings_json(d));
	json_set(o, "open", open_json(d));
	json_set(o, "signals", signals);
	json_set(o, "files", files_json(g));
	text = json_print(o, true);
	printf("%s\n", text);
}

/* -- running ----------------------------------------------------------------------------------- */

static int answer(const struct args *a, const struct gather *g, size_t left, struct err *e)
{
	struct script_sources rules = {0};
	struct diagnosis d = {0};
	struct drive_path path;
	struct signal *array;
	struct script_signals s = all_signals(g, &a->facts, &array);
	int rc;

	drive_path_init(&path);
	rc = script_rules(&path.path, &rules, e);
	drive_path_done(&path);
	if (rc == 0)
		rc = script_check_rules(&rules, &a->thresholds, e);
	if (rc == 0)
		rc = script_diagnose(&rules, &s, &a->thresholds, &d, e);
	if (rc == 0 && a->json) {
		print_json(g, &s, &d);
	} else if (rc == 0) {
		print_files(g, left);
		print_findings(&d);
		print_open_branches(&d);
		print_measured(g);
	}
	diagnosis_done(&d);
	script_sources_free(&rules);
	free(array);
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"json", 'j', NULL, 0, "JSON instead of text", 0},
		{"threshold", 't', "RULE=NUMBER", 0, "another limit for a rule", 0},
		{"signal", 's', "NAME=NUMBER", 0, "what no file says, such as ncpu=8 or nodes=2",
		 0},
		{0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "DIR|FILE...",
		.doc = "Say where a job's time went, from any logs and traces: bottlenecks in order "
		       "with their figures, what each could give at most, what to try, and which "
		       "questions stay open for want of which measurement.\v"
		       "Exit status 0 when something could be read, 4 when no file holds a figure or "
		       "one could not be read."};
	struct args a = {0};
	struct gather *g;
	struct err e = {0};
	size_t left = 0;
	int rc = 0, status = 0;

	cmd_parse(&argp, argc, argv, &a);
	g = gather_new();
	for (char **p = a.paths; *p && rc == 0; p++)
		rc = read_path(g, *p, &left, &e);
	gather_finish(g);
	if (rc == 0)
		status = tell_unread(g);
	if (rc == 0 && files_read(g) == 0) {
		fprintf(stderr, "fettle diagnose: error: none of these files holds a figure that a "
				"probe can read; `fettle probe --list` names the formats\n");
		status = EXIT_PERMANENT;
	} else if (rc == 0) {
		rc = answer(&a, g, left, &e);
	}
	gather_free(g);
	kvs_free(&a.thresholds);
	kvs_free(&a.facts);
	return rc ? cmd_fail(&cmd_diagnose, &e) : status;
}

const struct cmd cmd_diagnose = {.name = "diagnose",
				 .summary = "where a job's time went, from any logs and traces",
				 .run = run};
