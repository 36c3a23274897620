/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "experiments/model.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/cmd.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/listing.h"
#include "orchestrator/cmd/pivot.h"
#include "orchestrator/report/text.h"
#include "probes/input.h"
#include "probes/probe.h"
#include "probes/timeline.h"
#include "probes/trace.h"

extern const struct cmd cmd_probe;

enum {
	ALSO_MAX = 8,     /* other formats that a text holds too */
	RANKS_MAX = 4096, /* traces that are compared: one a rank */
	SPOOL_CHUNK = 128 * 1024,
	EXIT_USAGE = 2,
	EXIT_PERMANENT = 4,
};

struct args {
	char **files; /* NULL-terminated, of argv */
	const char *as, *pattern, *metric;
	bool json, list, values;
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
	case 'v':
		a->values = true;
		return 0;
	case ARGP_KEY_ARGS:
		a->files = state->argv + state->next;
		return 0;
	case ARGP_KEY_END:
		if (!a->files && !a->list)
			argp_error(state, "which file? (--list says what can be read)");
		if (a->values && a->json)
			argp_error(state, "--json has every value already: leave --values out");
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

static struct json *probes_json(void)
{
	struct json *all = json_array();

	for (const struct probe *const *p = probe_table; *p; p++) {
		struct json *o = json_object();

		json_set_text(o, "name", (*p)->name);
		json_set_text(o, "summary", (*p)->summary);
		json_set_text(o, "example", (*p)->example);
		json_set_bool(o, "recognised", (*p)->sniff != NULL);
		json_add(all, o);
	}
	return all;
}

static struct json *metrics_json(void)
{
	struct json *all = json_array();

	for (size_t i = 0; metric_defs[i].name; i++) {
		struct json *o = json_object();

		json_set_text(o, "name", metric_defs[i].name);
		json_set_text(o, "unit", metric_defs[i].unit);
		json_set_text(o, "better", better_name(metric_defs[i].better));
		json_set_text(o, "summary", metric_defs[i].summary);
		json_add(all, o);
	}
	return all;
}

/* Formats begin their lines, metrics are set in: completion takes the former. */
static int list(bool json)
{
	_cleanup_(json_freep) struct json *all = json_object();
	_cleanup_free_ char *text = NULL;

	if (json) {
		json_set(all, "formats", probes_json());
		json_set(all, "metrics", metrics_json());
		text = json_print(all, true);
		printf("%s\n", text);
		return 0;
	}
	for (const struct probe *const *p = probe_table; *p; p++) {
		printf("%-18s %s\n", (*p)->name, (*p)->summary);
		if ((*p)->example)
			printf("%-18s e.g. %s\n", "", (*p)->example);
	}
	printf("\nMetrics, with their unit and whether more (up) or less (down) is better:\n");
	for (size_t i = 0; metric_defs[i].name; i++)
		printf("  %-32s %-10s %-5s %s\n", metric_defs[i].name, metric_defs[i].unit,
		       better_name(metric_defs[i].better), metric_defs[i].summary);
	return 0;
}

/* -- reading ---------------------------------------------------------------------------------- */

/* With --json and --values things are printed as they come: a log may be larger than memory. In
 * JSON every line is an object of its own, for the same reason. Else they go into a table. */
/* What reads a text: the format that fits best, and others that it holds too. */
struct choice {
	const struct probe *probe, *also[ALSO_MAX];
	size_t n_also;
	const char *name, *path; /* as it is called, and where it lies */
	char *spooled;           /* the file that a pipe became, NULL none */
};

struct reading {
	const char *file;
	const struct probe *probe;
	const struct choice *choice;
	bool json;
	struct listing *table; /* NULL: print at once */
	struct pivot *steps;   /* with table: what belongs to a step */
	struct ranks *ranks;
	long long values, missing, facts, ignored;
	int64_t lines, used, last_line; /* of the text; that gave something; the last of those */
};

/* Traces of several ranks, to be compared at the end. */
struct ranks {
	struct timeline *v[RANKS_MAX];
	int rank[RANKS_MAX];
	size_t n;
};

static void use_line(struct reading *r, int64_t line)
{
	r->used += line > 0 && line != r->last_line;
	r->last_line = line;
}

/* Text of the file may hold escapes that act on a terminal. */
static void print_clean(const char *s)
{
	listing_clean(s);
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
	use_line(r, v->line);
	if (r->table && !pivot_take(r->steps, v))
		listing_value(r->table, v);
	else if (r->table)
		return;
	else if (r->json)
		value_json(v);
	else
		value_text(v);
}

static void take_fact(void *ctx, const struct probe_fact *f)
{
	struct reading *r = ctx;

	r->facts++;
	use_line(r, f->line);
	if (r->table) {
		listing_fact(r->table, f);
		return;
	}
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
	printf("%6lld  ", (long long)f->line);
	print_origin(f->rank, f->local_rank, f->host);
	print_clean(f->key);
	fputs(" = ", stdout);
	print_clean(f->text);
	putchar('\n');
}

static void take_ignored(void *ctx, const struct probe_ignored *i)
{
	struct reading *r = ctx;

	r->ignored++;
	if (r->table) {
		listing_ignored(r->table, i);
	} else if (r->json) {
		_cleanup_(json_freep) struct json *o = json_object();

		json_set_text(o, "kind", "ignored");
		set_clean(o, "why", i->why);
		json_set_i64(o, "line", i->line);
		set_clean(o, "raw", i->raw);
		print_object(o);
	} else {
		printf("%6lld  ignored: ", (long long)i->line);
		print_clean(i->why);
		putchar('\n');
	}
}

static void take_timeline(void *ctx, struct timeline *t, int rank)
{
	struct reading *r = ctx;

	if (r->ranks->n == RANKS_MAX) {
		timeline_free(t);
		return;
	}
	r->ranks->rank[r->ranks->n] = rank >= 0 ? rank : (int)r->ranks->n;
	r->ranks->v[r->ranks->n++] = t;
}

static void end_json(const struct reading *r, enum probe_status s, const char *detail)
{
	_cleanup_(json_freep) struct json *o = json_object();
	struct json *also = json_array();

	json_set_text(o, "kind", "status");
	set_clean(o, "file", r->file);
	json_set_text(o, "probe", r->probe->name);
	json_set_text(o, "status", probe_status_name(s));
	set_clean(o, "detail", detail && *detail ? detail : NULL);
	json_set_i64(o, "values", r->values);
	json_set_i64(o, "missing", r->missing);
	json_set_i64(o, "facts", r->facts);
	json_set_i64(o, "ignored", r->ignored);
	json_set_i64(o, "lines", r->lines);
	json_set_i64(o, "lines_used", r->used);
	for (size_t i = 0; r->choice && i < r->choice->n_also; i++)
		json_add_text(also, r->choice->also[i]->name);
	json_set(o, "also", also);
	print_object(o);
}

static void print_end(const struct reading *r, enum probe_status s, const char *detail)
{
	if (r->table) {
		pivot_print(r->steps);
		listing_print(r->table);
	}
	if (r->json) {
		end_json(r, s, detail);
		return;
	}
	for (size_t i = 0; r->choice && i < r->choice->n_also; i++)
		printf("%s%s%s", i ? ", " : "also of format ", r->choice->also[i]->name,
		       i + 1 < r->choice->n_also ? "" : " (--as NAME reads it so)\n");
	print_clean(r->file);
	printf(": %s (%s): %lld values, %lld without a value, %lld facts, from %lld of %lld lines",
	       probe_status_name(s), r->probe->name, r->values, r->missing, r->facts,
	       (long long)r->used, (long long)r->lines);
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

/* What comes through a pipe is there once, and is looked at before it is read: a file is made of
 * it.
 */
static int spool(const char *file, char **path, struct err *e)
{
	_cleanup_free_ char *chunk = xmalloc(SPOOL_CHUNK);
	const char *dir = getenv("TMPDIR");
	int in = fs_open(file), out, rc = 0;
	ssize_t n = 0;

	if (in < 0)
		return err_sys(e, ERR_IO, "%s", file);
	*path = xasprintf("%s/fettle-probe-XXXXXX", dir && *dir ? dir : "/tmp");
	out = mkostemp(*path, O_CLOEXEC);
	if (out < 0) {
		rc = err_sys(e, ERR_IO, "%s", *path);
		free(TAKE(*path));
	}
	while (rc == 0 && (n = read(in, chunk, SPOOL_CHUNK)) > 0)
		if (fs_write_all(out, chunk, (size_t)n) < 0)
			rc = err_sys(e, ERR_IO, "%s", *path);
	if (rc == 0 && n < 0)
		rc = err_sys(e, ERR_IO, "%s", file);
	if (out >= 0)
		close(out);
	close(in);
	return rc;
}

static int choose_by_text(struct choice *c, struct err *e)
{
	const struct probe *fits[ALSO_MAX + 1];
	gzFile f = input_open(c->path);
	size_t found;
	int n, rc = 0, z = Z_OK;

	if (!f)
		return drive_not_there(c->name, e);
	n = probe_sniff_file(f, fits, ARRAY_LEN(fits), &found);
	if (n < 0)
		rc = cannot_read(f, c->name, e);
	gzerror(f, &z);
	gzclose(f);
	if (rc < 0)
		return rc;
	c->probe = found ? fits[0] : NULL;
	for (size_t i = 1; i < found; i++)
		c->also[c->n_also++] = fits[i];
	if (found)
		return 0;
	return err_set(e, ERR_NOT_FOUND,
		       "%s: %s; `fettle probe --list` says what can be read, --as NAME chooses, "
		       "--pattern RE reads a format of your own",
		       c->name,
		       n           ? "no probe knows such a text"
		       : z == Z_OK ? "the file is empty"
				   : "a gzip file that is cut before its text");
}

static int choose(const struct args *a, const char *file, struct choice *c, struct err *e)
{
	const char *as = a->pattern ? "pattern" : a->as;
	struct stat st;
	int rc;

	c->name = c->path = str_eq(file, "-") ? "/dev/stdin" : file;
	if (as && !(c->probe = probe_find(as)))
		return unknown_probe(as, e);
	if (stat(c->path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))) {
		if ((rc = spool(c->path, &c->spooled, e)) < 0)
			return rc;
		c->path = c->spooled;
	}
	return as ? 0 : choose_by_text(c, e);
}

static void choice_done(struct choice *c)
{
	if (c->spooled)
		unlink(c->spooled);
	free(c->spooled);
}

static int read_file(const struct args *a, const struct choice *choice, struct ranks *ranks)
{
	const struct probe *p = choice->probe;
	struct reading r = {.file = choice->name,
			    .probe = p,
			    .choice = choice,
			    .json = a->json,
			    .ranks = ranks};
	struct probe_context c = {.file = choice->name,
				  .pattern = a->pattern,
				  .metric = a->metric,
				  .lines = &r.lines};
	struct probe_sink sink = {.value = take_value,
				  .fact = take_fact,
				  .ctx = &r,
				  .timeline = take_timeline,
				  .ignored = take_ignored};
	struct buf detail = {0};
	struct err e = {0};
	enum probe_status s;
	int status;

	if (!a->json && !a->values) {
		r.table = listing_new();
		r.steps = pivot_new(p->table);
	}
	s = probe_file(p, &c, choice->path, &sink, &detail, &e);
	status = s == PROBE_OK || s == PROBE_PARTIAL ? 0 : EXIT_PERMANENT;
	if (e.code != ERR_OK) {
		status = cmd_fail(&cmd_probe, &e);
	} else {
		print_end(&r, s, detail.data);
		fflush(stdout);
		if (status)
			fprintf(stderr, "fettle probe: error: %s: %s%s%s\n", choice->name,
				s == PROBE_ABSENT ? "nothing of this kind is in it"
						  : "the tool failed",
				detail.len ? ": " : "", detail.len ? detail.data : "");
	}
	pivot_free(r.steps);
	listing_free(r.table);
	buf_free(&detail);
	return status;
}

/* The same collectives on all ranks: who waits, and for whom. */
static void compare_ranks(const struct args *a, const struct ranks *ranks)
{
	static const struct probe all = {.name = "ranks"};
	struct reading r = {.file = "all ranks", .probe = &all, .json = a->json};
	struct probe_sink sink = {.value = take_value, .fact = take_fact, .ctx = &r};
	struct emit o;

	if (ranks->n < 2)
		return;
	emit_open(&o, NULL, &sink);
	trace_emit_waits(&o, ranks->v, ranks->rank, ranks->n);
	emit_close(&o);
}

static int read_all(const struct args *a)
{
	struct ranks *ranks = xcalloc(1, sizeof(*ranks));
	int worst = 0;

	for (char **file = a->files; *file; file++) {
		struct choice choice = {0};
		struct err e = {0};
		int status;

		if (file != a->files && !a->json)
			putchar('\n');
		fflush(stdout); /* errors stand where they belong */
		status = choose(a, *file, &choice, &e) < 0 ? cmd_fail(&cmd_probe, &e)
							   : read_file(a, &choice, ranks);
		choice_done(&choice);
		worst = status > worst ? status : worst;
	}
	compare_ranks(a, ranks);
	for (size_t i = 0; i < ranks->n; i++)
		timeline_free(ranks->v[i]);
	free(ranks);
	return worst;
}

static int run(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"as", 'a', "PROBE", 0, "read it with this probe instead of looking which one fits",
		 0},
		{"pattern", 'p', "RE", 0,
		 "read lines that match; named groups are metrics, `step` and `rank` (PCRE2)", 0},
		{"metric", 'm', "METRIC", 0, "with --pattern: metric that the group `value` feeds",
		 0},
		{"values", 'v', NULL, 0, "each value with its line, in place of the table", 0},
		{"json", 'j', NULL, 0, "a JSON object a line, the status of a file last", 0},
		{"list", 'l', NULL, 0, "name the formats and the metrics", 0},
		{0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "FILE...",
		.doc = "Read what a tool or a training script printed (gzip too): a table of its "
		       "metrics, facts, what was ignored and why, status. Traces of several ranks "
		       "are compared. - is the standard input.\v"
		       "Exit status 0 when it was read whole or in part, 4 when the tool failed or "
		       "nothing of the kind is in the file."};
	struct args a = {0};

	cmd_parse(&argp, argc, argv, &a);
	return a.list ? list(a.json) : read_all(&a);
}

const struct cmd cmd_probe = {
	.name = "probe", .summary = "read any tool's output: values, facts, status", .run = run};
