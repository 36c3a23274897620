/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tests/fixtures/samples-expected.tsv: what each probe must get from each text, one value a line
 * (the table's own head says how). Texts of third parties lie in $FETTLE_SAMPLES (default
 * ../shared/samples) and are read there; without that folder their lines are counted in the closing
 * line, and those of the project's own fixtures are checked all the same.
 */
#include "tests/unit/probe_check.h"

#include <zlib.h>

#define TABLE "tests/fixtures/samples-expected.tsv"
#define OWN   "tests/fixtures/"

enum { FILE_FIELD, PROBE_FIELD, METRIC, LABELS, VALUE, TOLERANCE, STATUS, FIELDS };
enum { HEAD_BYTES = 64 * 1024 /* as fettle probe */, TELL_MAX = 40 };

struct expected {
	char *f[FIELDS];
	int line; /* of the table */
};

struct table {
	struct buf text;
	struct expected *v;
	size_t n, cap;
};

/* What is wrong so far, and what was looked at. */
struct tally {
	struct buf wrong;
	size_t n_wrong, checked, files, unchecked, unchecked_files;
};

static void complain(struct tally *t, const struct expected *x, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void complain(struct tally *t, const struct expected *x, const char *fmt, ...)
{
	va_list ap;

	if (++t->n_wrong > TELL_MAX)
		return;
	buf_printf(&t->wrong, TABLE ":%d: %s (%s) %s %s: ", x->line, x->f[FILE_FIELD],
		   x->f[PROBE_FIELD], x->f[METRIC], x->f[LABELS]);
	va_start(ap, fmt);
	buf_vprintf(&t->wrong, fmt, ap);
	va_end(ap);
	buf_str(&t->wrong, "\n");
}

static void add_line(struct table *t, char *line, int no)
{
	struct expected x = {.line = no};

	for (int i = 0; i < FIELDS; i++) {
		x.f[i] = strsep(&line, "\t");
		if (!x.f[i] || !*x.f[i])
			fail_msg(TABLE ":%d: field %d of %d is missing or empty (write -)", no,
				 i + 1, FIELDS);
	}
	if (line)
		fail_msg(TABLE ":%d: more than %d fields", no, FIELDS);
	t->v = xgrow(t->v, t->n, &t->cap, sizeof(*t->v));
	t->v[t->n++] = x;
}

static void table_read(struct table *t)
{
	struct err e;
	char *at, *line;

	if (fs_read(TABLE, 4 << 20, &t->text, &e))
		fail_msg("%s", e.text);
	at = t->text.data;
	for (int no = 1; (line = strsep(&at, "\n")); no++)
		if (*line && *line != '#')
			add_line(t, line, no);
}

static void table_free(struct table *t)
{
	buf_free(&t->text);
	free(t->v);
}

/* `labels` of a line: real labels, and the words step, rank and nth. */
struct where {
	int64_t step, rank; /* -2: any */
	int64_t nth;        /* negative: from the last */
	char labels[8][96]; /* ",key=value," */
	size_t n;
};

static void where_read(struct where *w, const char *text)
{
	_cleanup_free_ char *copy = xstrdup(text);
	char *at = copy, *one;

	*w = (struct where){.step = -2, .rank = -2};
	while (!str_eq(text, "-") && (one = strsep(&at, ","))) {
		if (str_starts(one, "step="))
			assert_true(str_to_i64(one + 5, &w->step));
		else if (str_starts(one, "rank="))
			assert_true(str_to_i64(one + 5, &w->rank));
		else if (str_starts(one, "nth="))
			assert_true(str_to_i64(one + 4, &w->nth));
		else if (strchr(one, '=') && w->n < ARRAY_LEN(w->labels))
			snprintf(w->labels[w->n++], sizeof(w->labels[0]), ",%s,", one);
		else
			fail_msg("labels \"%s\": expected key=value,key=value", text);
	}
}

static bool is_there(const struct found *v, const struct where *w, const char *name)
{
	_cleanup_free_ char *labels = NULL;

	if (!str_eq(v->name, name) || (w->step != -2 && v->step != w->step) ||
	    (w->rank != -2 && v->rank != w->rank))
		return false;
	labels = xasprintf(",%s,", v->labels);
	for (size_t i = 0; i < w->n; i++)
		if (!strstr(labels, w->labels[i]))
			return false;
	return true;
}

static const struct found *find(const struct findings *f, const struct where *w, const char *name,
				size_t *count)
{
	const struct found *hit = NULL;
	int64_t nth = w->nth;

	*count = 0;
	for (size_t i = 0; i < f->n; i++)
		*count += is_there(&f->v[i], w, name);
	nth += nth < 0 ? (int64_t)*count : 0;
	for (size_t i = 0; i < f->n && !hit; i++)
		if (is_there(&f->v[i], w, name) && !nth--)
			hit = &f->v[i];
	return hit;
}

static void check_number(struct tally *t, const struct expected *x, const struct found *v)
{
	double want, tolerance;

	if (!str_to_double(x->f[VALUE], &want))
		fail_msg(TABLE ":%d: value \"%s\" is no number", x->line, x->f[VALUE]);
	if (str_eq(x->f[TOLERANCE], "-"))
		tolerance = 1e-9 * fabs(want);
	else if (!str_to_double(x->f[TOLERANCE], &tolerance))
		fail_msg(TABLE ":%d: tolerance \"%s\" is no number", x->line, x->f[TOLERANCE]);
	if (v->text)
		complain(t, x, "%s, not %s", v->text, x->f[VALUE]);
	else if (!(fabs(v->value - want) <= tolerance))
		complain(t, x, "%.12g, not %s", v->value, x->f[VALUE]);
}

static void check_value(struct tally *t, const struct expected *x, const struct findings *f)
{
	const char *want = x->f[VALUE];
	struct where w;
	size_t n;
	int64_t count;

	where_read(&w, x->f[LABELS]);
	const struct found *v = find(f, &w, x->f[METRIC], &n);

	if (str_eq(want, "none")) {
		if (n)
			complain(t, x, "found %zu times, not to be there", n);
	} else if (str_starts(want, "count:")) {
		if (!str_to_i64(want + 6, &count) || (int64_t)n != count)
			complain(t, x, "found %zu times, not %s", n, want + 6);
	} else if (!v) {
		complain(t, x, "not found (%zu alike)", n);
	} else if (str_starts(want, "missing:")) {
		if (v->is_fact || !str_eq(v->text, want + 8))
			complain(t, x, "%s, not %s", v->text ? v->text : "a value", want);
	} else if (str_starts(want, "fact:")) {
		if (!v->is_fact || !str_eq(v->text, want + 5))
			complain(t, x, "\"%s\", not \"%s\"", v->text ? v->text : "a value",
				 want + 5);
	} else {
		check_number(t, x, v);
	}
}

static void check_sniff(struct tally *t, const struct expected *x, const char *path,
			const struct probe *p)
{
	_cleanup_free_ char *head = xmalloc(HEAD_BYTES);
	gzFile gz = gzopen(path, "rbe");
	int n;

	assert_non_null(gz);
	n = gzread(gz, head, HEAD_BYTES);
	gzclose(gz);
	const struct probe *got = n > 0 ? probe_sniff(head, (size_t)n) : NULL;

	if (got != p)
		complain(t, x, "recognised as %s", got ? got->name : "nothing");
}

/* One text through one probe; line[0..n) are what is expected of it. */
static void check_text(struct tally *t, const struct expected *line, size_t n, const char *path)
{
	_cleanup_free_ char *name = xstrdup(line->f[PROBE_FIELD]);
	struct findings f = {0};
	struct probe_sink sink = {
		.value = found_value, .fact = found_fact, .ctx = &f, .ignored = found_ignored};
	const struct probe *p;
	bool by_itself = str_ends(name, "*");
	struct err e;

	if (by_itself)
		name[strlen(name) - 1] = '\0';
	if (!(p = probe_find(name)))
		fail_msg(TABLE ":%d: no probe \"%s\"", line->line, name);
	if (by_itself)
		check_sniff(t, line, path, p);
	f.status = probe_file(p, NULL, path, &sink, &f.detail, &e);
	for (size_t i = 0; i < n; i++) {
		const struct expected *x = &line[i];

		if (!str_eq(x->f[STATUS], "-") &&
		    !str_eq(x->f[STATUS], probe_status_name(f.status)))
			complain(t, x, "status %s (%s), not %s", probe_status_name(f.status),
				 f.detail.data ? f.detail.data : "", x->f[STATUS]);
		if (!str_eq(x->f[METRIC], "-"))
			check_value(t, x, &f);
	}
	findings_free(&f);
}

static void check_group(struct tally *t, const struct expected *line, size_t n)
{
	bool own = str_starts(line->f[FILE_FIELD], OWN);
	_cleanup_free_ char *path = own ? xstrdup(line->f[FILE_FIELD])
					: sample_path(line->f[FILE_FIELD]);

	if (str_eq(line->f[PROBE_FIELD], "-"))
		return;
	if (!own && access(path, R_OK)) {
		t->unchecked += n;
		t->unchecked_files++;
		return;
	}
	t->checked += n;
	t->files++;
	check_text(t, line, n, path);
}

static struct tally tally;

static void test_values(void **state)
{
	struct table t = {0};
	size_t from = 0;

	(void)state;
	table_read(&t);
	for (size_t i = 1; i <= t.n; i++)
		if (i == t.n || !str_eq(t.v[i].f[FILE_FIELD], t.v[from].f[FILE_FIELD]) ||
		    !str_eq(t.v[i].f[PROBE_FIELD], t.v[from].f[PROBE_FIELD])) {
			check_group(&tally, t.v + from, i - from);
			from = i;
		}
	if (tally.n_wrong) {
		fputs(tally.wrong.data, stderr); /* cmocka cuts messages */
		fail_msg("%zu expectations are not met", tally.n_wrong);
	}
	table_free(&t);
	buf_free(&tally.wrong);
}

/* Where the folder of third parties' texts is absent, our own still show that each probe reads. */
static void test_own_fixtures(void **state)
{
	struct table t = {0};
	struct buf none = {0};

	(void)state;
	table_read(&t);
	for (size_t k = 0; probe_table[k]; k++) {
		const char *name = probe_table[k]->name;
		bool there = str_eq(name, "pattern"); /* reads nothing without the user's pattern */

		for (size_t i = 0; i < t.n && !there; i++)
			there = str_starts(t.v[i].f[PROBE_FIELD], name) &&
				str_eq(t.v[i].f[PROBE_FIELD] + strlen(name),
				       str_ends(t.v[i].f[PROBE_FIELD], "*") ? "*" : "") &&
				str_starts(t.v[i].f[FILE_FIELD], OWN) &&
				!str_eq(t.v[i].f[METRIC], "-");
		if (!there)
			buf_printf(&none, " %s", name);
	}
	if (none.len)
		fail_msg("no line of " TABLE " reads a fixture of ours with:%s", none.data);
	table_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_own_fixtures),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	_cleanup_free_ char *folder = sample_path("");

	/* run.sh repeats this before its last line. */
	printf("# not checked: %zu of %zu expected values, of %zu texts that are not in %s\n",
	       tally.unchecked, tally.unchecked + tally.checked, tally.unchecked_files, folder);
	return failed;
}
