/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a sample costs: hours from the throughput and the resources, bytes and operations from what
 * the node was seen to do. */
#include "tests/unit/store.h"

#include "orchestrator/report/objectives.h"

enum { PAIRS = 2 };

/* One value a trial of an arm: the mean is what counts. */
struct seen {
	const char *metric, *labels;
	double base, treatment;
};

/* A confirm stage with one block whose trials saw this. */
static int64_t run_stage(struct store *st, const struct seen *v, size_t n)
{
	static const char *const nodes[] = {"n1"};
	int64_t arm[2], stage = store_stage(st, STAGE_CONFIRM, 2, st->hypothesis, arm),
			block = store_block(st, stage, arm, 0, PAIRS);
	struct trial_result *t = store_trials(arm, PAIRS);
	struct err e = {0};
	bool again;

	/* the second pair twice as much as the first: their mean is 1.5 times it */
	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < 2 * PAIRS + 1; k++)
			trial_result_metric(&t[k], v[i].metric, "mean", v[i].labels,
					    (t[k].arm == arm[0] ? v[i].base : v[i].treatment) *
						    (t[k].repeat + 1));
	assert_ok(query_attempt_ingest(st->db, store_plan(st, block), "77", t, 2 * PAIRS + 1, nodes,
				       1, STORE_NOW_US, &again, &e));
	store_trials_free(t, PAIRS);
	return stage;
}

static void load(struct store *st, struct report *r)
{
	struct stage_row *s = NULL;
	size_t n = 0;
	struct err e = {0};

	assert_ok(query_stages(st->db, st->campaign, &s, &n, &e));
	assert_ok(report_objectives_load(st->db, r, s, n, &e));
	stage_rows_free(s, n);
}

static void assert_close(double a, double b)
{
	if (!(fabs(a - b) <= 1e-9 * fabs(b)))
		fail_msg("%.12g is not %.12g", a, b);
}

/* Two nodes of four GPUs at 100 and 200 samples a second (times 1.5). */
static void test_a_sample_has_its_bytes_and_operations(void **state)
{
	static const struct seen seen[] = {
		{"throughput_samples_per_s", "", 100, 200},
		{"net_rx_bytes_per_s", "iface=eth0", 1e6, 4e6},
		{"net_rx_bytes_per_s", "iface=ib0", 2e6, 4e6},
		{"net_rx_bytes_per_s", "iface=lo", 1e9, 1e9},
		{"net_rx_bytes_per_s", "iface=lom1", 1e6, 0},
		{"net_tx_bytes_per_s", "iface=eth0", 1e6, 4e6},
		{"net_tx_bytes_per_s", "iface=lo", 1e9, 1e9},
		{"disk_r_iops", "device=nvme0n1", 300, 100},
		{"disk_w_iops", "device=nvme0n1", 100, 100},
		{"disk_w_iops", "device=nvme1n1", 100, 200},
	};
	struct store st = store_new(":memory:");
	struct recipe recipe = {.resources = {.nodes = 2, .gpus_per_node = 4}};
	struct report r = {.recipe = &recipe};

	(void)state;
	run_stage(&st, seen, ARRAY_LEN(seen));
	load(&st, &r);
	assert_int_equal(r.n_costs, 2);
	assert_string_equal(r.costs[0].unit, "sample");
	assert_close(r.costs[0].per_s, 150);
	assert_close(r.costs[0].node_hours, 2 / (3600 * 150.0));
	assert_close(r.costs[0].gpu_hours, 8 / (3600 * 150.0));
	/* rates of both nodes over the throughput: the factor 1.5 of the means falls out */
	assert_close(r.costs[0].net_bytes, 2 * 5e6 / 100);
	assert_close(r.costs[1].net_bytes, 2 * 12e6 / 200);
	assert_close(r.costs[0].storage_ops, 2 * 500 / 100.0);
	assert_close(r.costs[1].storage_ops, 2 * 400 / 200.0);
	report_objectives_done(&r);
	db_close(st.db);
}

/* A token, a step; what was not sampled is not known, and is not zero. */
static void test_what_was_not_sampled_is_not_known(void **state)
{
	static const struct seen seen[] = {{"throughput_tokens_per_s", "", 1000, 1000},
					   {"net_rx_bytes_per_s", "iface=eth0", 1e6, 1e6}};
	struct store st = store_new(":memory:");
	struct recipe recipe = {.resources = {.nodes = 1}};
	struct report r = {.recipe = &recipe};

	(void)state;
	run_stage(&st, seen, ARRAY_LEN(seen));
	load(&st, &r);
	assert_string_equal(r.costs[0].unit, "token");
	assert_true(isnan(r.costs[0].gpu_hours));
	assert_true(isnan(r.costs[0].net_bytes)); /* what was sent is missing */
	assert_true(isnan(r.costs[0].storage_ops));
	report_objectives_done(&r);
	db_close(st.db);
}

static void test_without_a_throughput_the_time_of_a_step_counts(void **state)
{
	struct store st = store_new(":memory:");
	struct recipe recipe = {0};
	struct report r = {.recipe = &recipe};

	(void)state;
	run_stage(&st, NULL, 0);
	load(&st, &r);
	assert_string_equal(r.costs[0].unit, "step");
	assert_close(r.costs[0].per_s, 1000 / 102.0); /* slots 1 and 3: 101 and 103 ms */
	report_objectives_done(&r);
	db_close(st.db);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_a_sample_has_its_bytes_and_operations),
		cmocka_unit_test(test_what_was_not_sampled_is_not_known),
		cmocka_unit_test(test_without_a_throughput_the_time_of_a_step_counts),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
