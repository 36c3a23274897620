/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "experiments/model.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/cmd.h"
#include "orchestrator/cmd/pivot.h"
#include "orchestrator/report/text.h"
#include "probes/probe.h"
#include "probes/trace.h"

extern const struct cmd cmd_probe;

enum {
	HEAD_BYTES = 64 *
		     1024, /* what is looked at to tell the kind: banners come after warnings */
	EXIT_USAGE = 2,
	EXIT_PERMANENT = 4,
	RANKS_MAX = 4096, /* traces that are compared: a file a rank */
};

struct args {
	const char *file, *as, *pattern, *metric;
	struct strv files;
	bool json, list;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'a':
		a->as = arg;
		return 0;
	case 'p':
		a->pattern = arg;
		return 0;
	case 'm':
		a->metric = arg;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case 'l':
		a->list = true;
		return 0;
	case ARGP_KEY_ARG:
		strv_add(&a->files, arg);
		return 0;
	case ARGP_KEY_END:
		if (!a->files.n && !a->list)
			argp_error(state, "which file? (--list says what can be read)");
		if (a->metric && !a->pattern)
			argp_error(state, "--metric goes with --pattern");
		if (a->pattern && a->as && !str_eq(a->as, "pattern"))
			argp_error(state, "--pattern is itself a way of reading: leave --as out");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* -- list ------------------------------------------------------------------------------------- */

static int list(bool json)
{
	_cleanup_(json_freep) struct json *all = json_array();
	_cleanup_free_ char *text = NULL;

	for (const struct probe *const *p = probe_table; *p; p++) {
		struct json *o = json_object();

		json_set_text(o, "name", (*p)->name);
		json_set_text(o, "summary", (*p)->summary);
		json_set_text(o, "example", (*p)->example);
		json_set_bool(o, "recognised", (*p)->sniff != NULL);
		json_add(all, o);
		if (json)
			continue;
		printf("%-18s %s\n", (*p)->name, (*p)->summary);
		if ((*p)->example)
			printf("%-18s e.g. %s\n", "", (*p)->example);
	}
	text = json_print(all, true);
	if (json)
		printf("%s\n", text);
	return 0;
}

/* -- reading ---------------------------------------------------------------------------------- */

/* Values and facts are printed as they come: a log may be larger than memory. In JSON every line is
 * an object of its own, for the same reason. */
struct reading {
	const struct probe *probe;
	bool json;
	long long values, missing, facts;
	struct pivot *table; /* NULL in JSON */
	struct ranks *ranks;
};

/* Traces of several ranks, kept to be compared when all were read. */
struct ranks {
	struct timeline *time[RANKS_MAX];
	int rank[RANKS_MAX];
	size_t n;
};

/* Text of the file may hold escapes that act on a terminal. */
static void print_clean(const char *s)
{
	struct buf b = {0};

	text_line(&b, s);
	fputs(b.data ? b.data : "", stdout);
	buf_free(&b);
}

static void set_clean(struct json *o, const char *key, const char *s)
{
	struct buf b = {0};

	if (s)
		text_utf8(&b, s);
	json_set_text(o, key, s ? (b.data ? b.data : "") : NULL);
	buf_free(&b);
}

static void print_object(const struct json *o)
{
	_cleanup_free_ char *text = json_print(o, false);

	printf("%s\n", text);
}

/* Who wrote a line, as the prefixes of launchers say. */
static void json_origin(struct json *o, int rank, int local_rank, const char *host)
{
	if (rank >= 0)
		json_set_i64(o, "rank", rank);
	if (local_rank >= 0)
		json_set_i64(o, "local_rank", local_rank);
	if (*host)
		set_clean(o, "host", host);
}

static void print_origin(int rank, int local_rank, const char *host)
{
	if (rank >= 0)
		printf("rank %-3d ", rank);
	else if (local_rank >= 0)
		printf("local rank %-3d ", local_rank);
	if (*host) {
		fputs("host ", stdout);
		print_clean(host);
		putchar(' ');
	}
}

static void value_json(const struct probe_value *v)
{
	_cleanup_(json_freep) struct json *o = json_object();
	struct json *labels = json_object();
	const struct metric_def *def = metric_def_find(v->metric);

	json_set_text(o, "kind", "value");
	set_clean(o, "metric", v->metric);
	if (v->missing)
		json_set_text(o, "value", NULL);
	else
		json_set_number(o, "value", v->value);
	set_clean(o, "missing", v->missing);
	json_set_text(o, "unit", def ? def->unit : NULL);
	if (v->step >= 0)
		json_set_i64(o, "step", v->step);
	if (v->t_us >= 0)
		json_set_i64(o, "t_us", v->t_us);
	json_origin(o, v->rank, v->local_rank, v->host);
	for (size_t i = 0; i < v->n_labels; i++)
		set_clean(labels, v->labels[i].key, v->labels[i].value);
	json_set(o, "labels", labels);
	set_clean(o, "file", v->file);
	json_set_i64(o, "line", v->line);
	set_clean(o, "raw", v->raw);
	print_object(o);
}

static void value_text(const struct probe_value *v)
{
	const struct metric_def *def = metric_def_find(v->metric);

	printf("%6lld  ", (long long)v->line);
	if (v->step >= 0)
		printf("step %-6lld ", (long long)v->step);
	print_origin(v->rank, v->local_rank, v->host);
	print_clean(v->metric);
	for (size_t i = 0; i < v->n_labels; i++) {
		fputs(i ? "," : "{", stdout);
		print_clean(v->labels[i].key);
		putchar('=');
		print_clean(v->labels[i].value);
	}
	fputs(v->n_labels ? "} " : " ", stdout);
	if (v->missing) {
		fputs("unknown: ", stdout);
		print_clean(v->missing);
		putchar('\n');
	} else {
		printf("%.10g%s%s\n", v->value, def && strcmp(def->unit, "1") ? " " : "",
		       def && strcmp(def->unit, "1") ? def->unit : "");
	}
}

static void take_value(void *ctx, const struct probe_value *v)
{
	struct reading *r = ctx;

	r->values += !v->missing;
	r->missing += v->missing != NULL;
	if (r->json) {
		value_json(v);
	} else if (!pivot_take(r->table, v)) {
		pivot_print(r->table);
		value_text(v);
	}
}

static void take_fact(void *ctx, const struct probe_fact *f)
{
	struct reading *r = ctx;

	r->facts++;
	if (r->json) {
		_cleanup_(json_freep) struct json *o = json_object();

		json_set_text(o, "kind", "fact");
		set_clean(o, "key", f->key);
		set_clean(o, "text", f->text);
		json_origin(o, f->rank, f->local_rank, f->host);
		json_set_i64(o, "line", f->line);
		print_object(o);
		return;
	}
	pivot_print(r->table);
	printf("%6lld  ", (long long)f->line);
	print_origin(f->rank, f->local_rank, f->host);
	print_clean(f->key);
	fputs(" = ", stdout);
	print_clean(f->text);
	putchar('\n');
}

static void print_end(const struct args *a, const struct reading *r, enum probe_status s,
		      const char *detail)
{
	if (r->json) {
		_cleanup_(json_freep) struct json *o = json_object();

		json_set_text(o, "kind", "status");
		set_clean(o, "file", a->file);
		json_set_text(o, "probe", r->probe->name);
		json_set_text(o, "status", probe_status_name(s));
		set_clean(o, "detail", detail && *detail ? detail : NULL);
		json_set_i64(o, "values", r->values);
		json_set_i64(o, "missing", r->missing);
		json_set_i64(o, "facts", r->facts);
		print_object(o);
		return;
	}
	print_clean(a->file);
	printf(": %s (%s): %lld values, %lld without a value, %lld facts", probe_status_name(s),
	       r->probe->name, r->values, r->missing, r->facts);
	if (detail && *detail) {
		fputs("; ", stdout);
		print_clean(detail);
	}
	putchar('\n');
}

/* -- which probe ------------------------------------------------------------------------------ */

static int unknown_probe(const char *name, struct err *e)
{
	const char *names[64] = {NULL};
	const char *near;
	size_t n = 0;

	for (const struct probe *const *p = probe_table; *p && n + 1 < ARRAY_LEN(names); p++)
		names[n++] = (*p)->name;
	near = str_nearest(name, names);
	return err_set(e, ERR_USAGE,
		       "there is no probe \"%s\"%s%s%s; `fettle probe --list` names them", name,
		       near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static int cannot_read(gzFile f, const char *file, struct err *e)
{
	int z;
	const char *why = gzerror(f, &z);

	return z == Z_ERRNO ? err_sys(e, ERR_IO, "%s", file)
			    : err_set(e, ERR_IO, "%s: a damaged gzip file: %s", file, why);
}

static int choose(const struct args *a, const struct probe **out, struct err *e)
{
	_cleanup_free_ char *head = NULL;
	gzFile f;
	int n, rc = 0;

	if (a->as || a->pattern) {
		*out = probe_find(a->as ? a->as : "pattern");
		return *out ? 0 : unknown_probe(a->as ? a->as : "pattern", e);
	}
	if (!(f = gzopen(a->file, "rbe")))
		return err_sys(e, ERR_NOT_FOUND, "%s", a->file);
	head = xmalloc(HEAD_BYTES);
	n = gzread(f, head, HEAD_BYTES);
	if (n < 0)
		rc = cannot_read(f, a->file, e);
	gzclose(f);
	if (rc < 0)
		return rc;
	*out = probe_sniff(head, (size_t)n);
	if (!*out)
		return err_set(
			e, ERR_NOT_FOUND,
			"%s: %s; `fettle probe --list` says what can be read, --as NAME chooses, "
			"--pattern RE reads a format of your own",
			a->file, n ? "no probe knows such a text" : "the file is empty");
	return 0;
}

static void take_timeline(void *ctx, struct timeline *t, int rank)
{
	struct reading *r = ctx;
	struct ranks *all = r->ranks;

	if (!all || all->n == RANKS_MAX) {
		timeline_free(t);
		return;
	}
	all->rank[all->n] = rank >= 0 ? rank : (int)all->n;
	all->time[all->n++] = t;
}

static int read_file(const struct args *a, const struct probe *p, struct ranks *ranks)
{
	struct probe_context c = {.file = a->file, .pattern = a->pattern, .metric = a->metric};
	struct reading r = {
		.probe = p, .json = a->json, .ranks = ranks, .table = pivot_new(p->table)};
	struct probe_sink sink = {
		.value = take_value, .fact = take_fact, .timeline = take_timeline, .ctx = &r};
	struct buf detail = {0};
	struct err e = {0};
	enum probe_status s = probe_file(p, &c, a->file, &sink, &detail, &e);
	int status = s == PROBE_OK || s == PROBE_PARTIAL ? 0 : EXIT_PERMANENT;

	pivot_print(r.table);
	pivot_free(r.table);
	if (e.code != ERR_OK) {
		status = cmd_fail(&cmd_probe, &e);
	} else {
		print_end(a, &r, s, detail.data);
		if (status)
			fprintf(stderr, "fettle probe: error: %s: %s%s%s\n", a->file,
				s == PROBE_ABSENT ? "nothing of this kind is in it"
						  : "the tool failed",
				detail.len ? ": " : "", detail.len ? detail.data : "");
	}
	buf_free(&detail);
	return status;
}

/* The same collective on each rank: who waited, and for whom. */
static void compare_ranks(const struct args *a, const struct ranks *ranks)
{
	struct reading r = {.json = a->json, .table = pivot_new(NULL)};
	struct probe_sink sink = {.value = take_value, .fact = take_fact, .ctx = &r};
	struct emit o;

	emit_open(&o, NULL, &sink);
	trace_emit_waits(&o, ranks->time, ranks->rank, ranks->n);
	emit_close(&o);
	pivot_free(r.table);
}

/* All files, one after another; the exit status is the worst of theirs. */
static int read_files(struct args *a)
{
	struct ranks *ranks = a->files.n > 1 ? xcalloc(1, sizeof(*ranks)) : NULL;
	int status = 0;

	for (size_t i = 0; i < a->files.n; i++) {
		const struct probe *p = NULL;
		struct err e = {0};
		int one;

		a->file = a->files.v[i];
		one = choose(a, &p, &e) < 0 ? cmd_fail(&cmd_probe, &e) : read_file(a, p, ranks);
		status = one > status ? one : status;
	}
	if (ranks && ranks->n > 1)
		compare_ranks(a, ranks);
	for (size_t i = 0; ranks && i < ranks->n; i++)
		timeline_free(ranks->time[i]);
	free(ranks);
	return status;
}

static int run(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"as", 'a', "NAME", 0, "read it with this probe instead of looking which one fits",
		 0},
		{"pattern", 'p', "RE", 0,
		 "read lines that match; named groups are metrics, `step` and `rank` (PCRE2)", 0},
		{"metric", 'm', "NAME", 0, "with --pattern: metric that the group `value` feeds",
		 0},
		{"json", 'j', NULL, 0, "a JSON object a line, the status last", 0},
		{"list", 'l', NULL, 0, "name the probes", 0},
		{0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "FILE...",
		.doc = "Read what a tool or a training script printed (gzip too): values with "
		       "their "
		       "line, facts, status. Traces give a table, a row a step (shares in "
		       "percent); those of several ranks are compared.\v"
		       "Exit status 0 when it was read whole or in part, 4 when the tool failed or "
		       "nothing of the kind is in the file."};
	struct args a = {0};
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &a);
	status = a.list ? list(a.json) : read_files(&a);
	strv_free(&a.files);
	return status;
}

const struct cmd cmd_probe = {
	.name = "probe", .summary = "read any tool's output: values, facts, status", .run = run};
