/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Settings that are planted, each in a line of a table: lint must find each as an error, by the
 * rule that is named, and propose what is named. And files as typical clusters have them: nothing
 * of them is an error.
 */
#include "tests/unit/lint.h"

#include <dirent.h>

enum { COLUMNS = 5 };

struct row {
	char *column[COLUMNS]; /* kind, context, text, rule, write */
};

static void take_apart(char *line, struct row *r)
{
	for (size_t i = 0; i < COLUMNS; i++)
		if (!(r->column[i] = strsep(&line, "\t")))
			fail_msg("a row with %zu columns", i);
}

/* \n as a line break. */
static char *text_of(const char *s)
{
	struct buf b = {0};

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] == 'n') {
			buf_char(&b, '\n');
			s++;
		} else {
			buf_char(&b, *s);
		}
	}
	return buf_take(&b);
}

static void add_campaign(struct lint_input *in, const char *dir, const char *fields)
{
	_cleanup_free_ char *text = xasprintf(
		"return { name = 'c', objective = 'trial_wall_s', %s%s }",
		strstr(fields, "workload") ? "" : "workload = { command = { 'true' } }, ", fields);
	_cleanup_loaded_ struct loaded l = load_text(dir, text);
	struct err e = {0};

	if (l.rc)
		fail_msg("%s: %s", text, l.e.text);
	assert_ok(lint_input_recipe(in, l.recipe, NULL, &e));
}

static struct linted lint_row(const struct row *r)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *text = text_of(r->column[2]), *name = xasprintf("x.%s", r->column[0]);
	struct lint_input *in = lint_input_new();

	lint_context(in, r->column[1]);
	if (str_eq(r->column[0], "campaign"))
		add_campaign(in, dir, text);
	else
		lint_file(in, dir, name, text);
	return lint_these(in);
}

/* Is there such an error, with such a proposal? */
static bool caught(const struct row *r, const struct linted *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->f[i].severity == LINT_ERROR && str_eq(l->f[i].rule, r->column[3]) &&
		    (!*r->column[4] || (l->f[i].write && strstr(l->f[i].write, r->column[4]))))
			return true;
	return false;
}

/* The rows of a table that are not caught are told; how many are there, and how many are caught. */
static void check_table(const char *path, size_t *rows, size_t *hits)
{
	struct buf b = {0};
	struct err e = {0};

	*rows = *hits = 0;
	assert_ok(fs_read(path, 1 << 20, &b, &e));
	for (char *rest = b.data, *line; (line = strsep(&rest, "\n"));) {
		struct row r;
		struct linted l;
		bool hit;

		if (!*line || *line == '#')
			continue;
		take_apart(line, &r);
		l = lint_row(&r);
		hit = caught(&r, &l);
		if (!hit)
			print_message("%s: %s: not found by %s:\n", path, r.column[2], r.column[3]);
		for (size_t i = 0; i < l.n && !hit; i++) {
			_cleanup_free_ char *words = lint_text(&l.f[i]);

			print_message("\t%s %s: %s\n", lint_severity_name(l.f[i].severity),
				      l.f[i].rule, words);
		}
		*rows += 1;
		*hits += hit;
		linted_done(&l);
	}
	buf_free(&b);
}

static void test_the_first_set(void **state)
{
	size_t rows, hits;

	(void)state;
	check_table("tests/fixtures/lint/planted.tsv", &rows, &hits);
	assert_int_equal(rows, 40);
	assert_int_equal(hits, rows);
}

/* The worst severity that lint finds in the row. */
static const char *worst(const struct row *r)
{
	_cleanup_linted_ struct linted l = lint_row(r);
	const char *said = "none";

	for (size_t i = 0; i < l.n; i++) {
		if (l.f[i].severity == LINT_ERROR)
			return "error";
		if (l.f[i].severity == LINT_WARNING)
			said = "warning";
	}
	return said;
}

/* The rates of the frozen rules are in the table; what they missed is found by now. */
static void test_the_second_set(void **state)
{
	size_t rows = 0, errors = 0, warnings = 0;
	struct buf b = {0};
	struct err e = {0};

	(void)state;
	assert_ok(fs_read("tests/fixtures/lint/planted-second.tsv", 1 << 20, &b, &e));
	for (char *rest = b.data, *line; (line = strsep(&rest, "\n"));) {
		struct row r;

		if (!*line || *line == '#')
			continue;
		take_apart(line, &r);
		rows++;
		errors += str_eq(r.column[3], "error");
		warnings += str_eq(r.column[3], "warning");
		if (!str_eq(worst(&r), str_eq(r.column[3], "none") ? "error" : r.column[3]))
			fail_msg("%s: %s, and it was %s", r.column[2], worst(&r), r.column[3]);
	}
	buf_free(&b);
	assert_int_equal(rows, 40);
	assert_int_equal(errors, 35);
	assert_int_equal(warnings, 2);
}

/* --- good ones ------------------------------------------------------------------------------- */

static void check_good(const char *dir, const char *name)
{
	_cleanup_free_ char *path = fs_join(dir, name);
	struct lint_input *in = lint_input_new();
	_cleanup_linted_ struct linted l = {0};
	enum lintfile_kind kind;
	struct err e = {0};

	assert_ok(lintfile_kind(path, &kind, &e));
	assert_ok(lintfile_add(in, kind, path, &e));
	l = lint_these(in);
	for (size_t i = 0; i < l.n; i++)
		if (l.f[i].severity == LINT_ERROR) {
			_cleanup_free_ char *words = lint_text(&l.f[i]);

			fail_msg("%s:%d: %s", path, l.f[i].line, words);
		}
}

static void test_good_files_have_no_error(void **state)
{
	static const char dir[] = "tests/fixtures/lint/good";
	DIR *d = opendir(dir);
	size_t n = 0;

	(void)state;
	assert_non_null(d);
	for (struct dirent *x; (x = readdir(d));)
		if (*x->d_name != '.') {
			check_good(dir, x->d_name);
			n++;
		}
	closedir(d);
	assert_true(n >= 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_set),
		cmocka_unit_test(test_the_second_set),
		cmocka_unit_test(test_good_files_have_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
