/* SPDX-License-Identifier: GPL-2.0-or-later */
/* experiments/SCHEMA.md is true: its commands run as they stand, and it tells every column. */
#include "tests/unit/store.h"

#include "orchestrator/base/proc.h"

#define PAGE "experiments/SCHEMA.md"

static char *page_text(void)
{
	struct buf b = {0};
	struct err e = {0};

	assert_ok(fs_read(PAGE, 1 << 20, &b, &e));
	return buf_take(&b);
}

/* A workspace in which every view has a row. */
static void fill(const char *path)
{
	struct store st = store_new(path);
	int64_t second = store_block(&st, st.stage, st.arm, 1, 2), id;
	struct quality_row q = {.slot = -1, .text = TEXT("a finding"), .action = QUALITY_NOTE};
	struct guard_row g = {.metric = TEXT("loss"),
			      .stat = TEXT("last"),
			      .rule = TEXT("margin"),
			      .equal = TEXT("step"),
			      .state = TEXT("passed")};
	struct verdict_row v = {.stage = st.stage,
				.hypothesis = st.hypothesis,
				.final_look = true,
				.outcome = TEXT("accepted"),
				.est = 0.1,
				.lo = 0.05,
				.hi = 0.15};
	struct fix_row fix = {.campaign = st.campaign,
			      .config = st.config[1],
			      .stage = st.stage,
			      .state = TEXT("validated"),
			      .est = 0.1};
	struct err e = {0};

	store_run(&st, st.block, st.arm, 2);
	assert_ok(query_attempt_fail(st.db, store_plan(&st, second), ATTEMPT_LOST, "no done.json",
				     1, &e));
	assert_ok(query_verdict_add(st.db, st.campaign, &v, &id, &e));
	g.verdict = id;
	assert_ok(query_guard_add(st.db, &g, &e));
	assert_ok(query_quality_put(st.db, 1, 0, &q, &e));
	assert_ok(query_hypothesis_state(st.db, st.hypothesis, HYP_TESTED, NULL, &e));
	assert_ok(query_fix_put(st.db, &fix, &id, &e));
	g.stage = st.stage;
	assert_ok(query_fix_guard_add(st.db, &g, &e));
	store_history(&st);
	db_close(st.db);
}

/* Words divided by blanks; what stands in double quotes is one word. */
static void split(const char *line, struct strv *out)
{
	while (*line) {
		bool quoted = *line == '"';
		size_t n = strcspn(line + quoted, quoted ? "\"" : " ");
		_cleanup_free_ char *word = xstrndup(line + quoted, n);

		if (n > 0)
			strv_add(out, word);
		line += n + quoted + (quoted && line[n + 1] == '"');
		line += *line == ' ';
	}
}

static void run_line(const char *line, const char *dir)
{
	struct strv argv = {0};
	struct buf out = {0}, errors = {0};
	struct err e = {0};
	int status = -1;
	struct proc_spawn s = {.workdir = dir, .fd_in = -1, .fd_out = -1, .fd_err = -1};

	split(line, &argv);
	s.argv = strv_end(&argv);
	s.file = argv.v[0];
	assert_ok(proc_capture(&s, 20000000, 1 << 20, &out, &errors, &status, &e));
	if (status != 0 || errors.len > 0)
		fail_msg("%s: %s", line, errors.data ? errors.data : "");
	if (out.len == 0 || !strchr(out.data, '\n'))
		fail_msg("no row: %s", line);
	buf_free(&out);
	buf_free(&errors);
	strv_free(&argv);
}

static void examples_run_as_they_stand(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "fettle.db");
	_cleanup_free_ char *page = page_text();
	int n = 0;

	(void)state;
	fill(path);
	for (const char *p = page; (p = strstr(p, "\nsqlite3 ")); n++) {
		_cleanup_free_ char *line = xstrndup(p + 1, strcspn(p + 1, "\n"));

		run_line(line, dir);
		p++;
	}
	assert_int_equal(n, 14); /* one a view */
}

/* The text from "## name" to the next heading; heap. */
static char *section(const char *page, const char *name)
{
	_cleanup_free_ char *heading = xasprintf("\n## %s\n", name);
	const char *start = strstr(page, heading), *end;

	if (!start)
		fail_msg(PAGE " has no section on %s", name);
	start += strlen(heading);
	end = strstr(start, "\n## ");
	return xstrndup(start, end ? (size_t)(end - start) : strlen(start));
}

static void every_column_is_told(void **state)
{
	_cleanup_free_ char *page = page_text();
	struct store st = store_new(":memory:");
	sqlite3_stmt *s = NULL;
	int n = 0;

	(void)state;
	assert_int_equal(sqlite3_prepare_v2(db_handle(st.db),
					    "SELECT m.name, p.name FROM sqlite_master m JOIN "
					    "pragma_table_info(m.name) p WHERE m.type = 'view'",
					    -1, &s, NULL),
			 SQLITE_OK);
	for (; sqlite3_step(s) == SQLITE_ROW; n++) {
		_cleanup_free_ char *text = section(page, (const char *)sqlite3_column_text(s, 0));
		_cleanup_free_ char *name = xasprintf("`%s`",
						      (const char *)sqlite3_column_text(s, 1));

		if (!strstr(text, name))
			fail_msg("%s of %s is not in " PAGE, name, sqlite3_column_text(s, 0));
	}
	sqlite3_finalize(s);
	assert_true(n > 100);
	db_close(st.db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(examples_run_as_they_stand),
		cmocka_unit_test(every_column_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
