/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bus bandwidth by message size, from a stage of two arms. */
#include "tests/unit/store.h"

#include <math.h>

#include "orchestrator/report/markdown.h"
#include "orchestrator/report/tlog.h"
#include "orchestrator/report/sizes.h"

/* A block whose treatment has 1.1 times the bandwidth at 1 MiB and 0.8 times at 64 MiB. */
static void run_block(struct store *st, int index)
{
	static const char *const nodes[] = {"n1"};
	int64_t block = store_block(st, st->stage, st->arm, index, 1), attempt;
	struct trial_result *t = store_trials(st->arm, 1);
	double base = 100 + index;
	struct err e = {0};
	bool again;

	for (int i = 1; i < 3; i++) {
		trial_result_metric(&t[i], "coll_busbw_gb_per_s", "mean",
				    "in_place=1,size_bytes=1048576,type=float",
				    i == 2 ? 1.1 * base : base);
		trial_result_metric(&t[i], "coll_busbw_gb_per_s", "mean",
				    "in_place=1,size_bytes=67108864,type=float",
				    i == 2 ? 0.8 * base : base);
		trial_result_metric(&t[i], "coll_busbw_gb_per_s", "max",
				    "in_place=1,size_bytes=67108864,type=float", 1e6);
	}
	attempt = store_plan(st, block);
	assert_ok(query_attempt_ingest(st->db, attempt, "0123", t, 3, nodes, 1, STORE_NOW_US + 1,
				       &again, &e));
	store_trials_free(t, 1);
}

static void load(struct store *st, struct report *r)
{
	struct stage_row *stages = NULL;
	struct err e = {0};
	size_t n = 0;

	assert_ok(query_stages(st->db, st->campaign, &stages, &n, &e));
	assert_ok(report_sizes_load(st->db, r, stages, n, &e));
	stage_rows_free(stages, n);
}

static void test_each_size_by_itself(void **state)
{
	struct store st = store_new(":memory:");
	struct report r = {0};
	struct buf b = {0};
	struct doc doc = {.writer = &markdown_writer, .out = &b};

	(void)state;
	for (int i = 1; i <= 3; i++)
		run_block(&st, i);
	load(&st, &r);
	assert_int_equal(r.n_sizes, 1);
	assert_int_equal(r.sizes[0].n, 2);
	assert_true(r.sizes[0].v[0].bytes == 1048576);
	assert_true(fabs(r.sizes[0].v[0].pairs.effect.est - 0.1) < 1e-9);
	assert_true(fabs(r.sizes[0].v[1].pairs.effect.est + 0.2) < 1e-9);
	assert_int_equal(r.sizes[0].v[1].pairs.effect.n, 3);
	assert_true(fabs(r.sizes[0].v[1].pairs.after - 0.8 * r.sizes[0].v[1].pairs.before) < 1e-9);
	tlog_sizes(&r, &doc);
	doc_end(&doc);
	assert_non_null(strstr(b.data, "| 1 MiB |"));
	assert_non_null(strstr(b.data, "| 64 MiB |"));
	assert_non_null(strstr(b.data, "+10.0 %"));
	assert_non_null(strstr(b.data, "-20.0 %"));
	buf_free(&b);
	report_sizes_done(&r);
	db_close(st.db);
}

/* No collective: no table, no row. */
static void test_nothing_without_sizes(void **state)
{
	struct store st = store_new(":memory:");
	struct report r = {0};
	struct buf b = {0};
	struct doc doc = {.writer = &markdown_writer, .out = &b};

	(void)state;
	store_run(&st, st.block, st.arm, 2);
	load(&st, &r);
	assert_int_equal(r.n_sizes, 0);
	tlog_sizes(&r, &doc);
	doc_end(&doc);
	assert_int_equal(b.len, 0);
	buf_free(&b);
	report_sizes_done(&r);
	db_close(st.db);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_each_size_by_itself),
		cmocka_unit_test(test_nothing_without_sizes),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
