/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/store.h"

static int64_t add(struct store *st, int round, int rank, const char *knob, double gain)
{
	struct hypothesis_row h = {
		.campaign = st->campaign,
		.round = round,
		.rank = rank,
		.knob = TEXT(knob),
		.value = TEXT("on"),
		.from_value = TEXT("off"),
		.cls = CLASS_OPTIMISATION,
		.proof = PROOF_ACKNOWLEDGED,
		.user_defined = true,
		.bottleneck = BOTTLENECK_MEMORY,
		.gain = gain,
		.ceiling = INFINITY,
		.state = HYP_LINTED_OUT,
		.reason = TEXT("needs 2 GPUs"),
	};
	struct err e = {0};
	int64_t id = 0;

	assert_ok(query_hypothesis_add(st->db, &h, &id, &e));
	return id;
}

static void hypotheses_come_back_by_round_and_rank(void **state)
{
	struct store st = store_new(":memory:");
	int64_t third = add(&st, 2, 1, "c", NAN), second = add(&st, 1, 2, "b", 0.25);
	struct hypothesis_row *v = NULL;
	struct err e = {0};
	size_t n = 0;

	(void)state;
	assert_ok(query_hypotheses(st.db, st.campaign, &v, &n, &e));
	assert_int_equal(n, 3);
	assert_int_equal(v[0].id, st.hypothesis);
	assert_null(v[0].from_value);
	assert_null(v[0].reason);
	assert_int_equal(v[0].cls, CLASS_NEUTRAL);
	assert_string_equal(v[0].evidence, "data wait 12 %");
	assert_true(v[0].ceiling == 0.136);
	assert_false(v[0].user_defined);
	assert_int_equal(v[1].id, second);
	assert_string_equal(v[1].from_value, "off");
	assert_int_equal(v[1].cls, CLASS_OPTIMISATION);
	assert_int_equal(v[1].proof, PROOF_ACKNOWLEDGED);
	assert_int_equal(v[1].bottleneck, BOTTLENECK_MEMORY);
	assert_true(v[1].user_defined);
	assert_true(v[1].gain == 0.25 && isinf(v[1].ceiling));
	assert_string_equal(v[1].evidence, "");
	assert_int_equal(v[2].id, third);
	assert_true(isnan(v[2].gain)); /* unknown stays unknown */
	assert_int_equal(v[2].state, HYP_LINTED_OUT);
	assert_string_equal(v[2].reason, "needs 2 GPUs");
	hypothesis_rows_free(v, n);
	db_close(st.db);
}

static void state_changes_are_stored(void **state)
{
	struct store st = store_new(":memory:");
	struct hypothesis_row *v = NULL;
	struct err e = {0};
	size_t n = 0;

	(void)state;
	assert_ok(query_hypothesis_state(st.db, st.hypothesis, HYP_SCREENED_OUT, "slower", &e));
	assert_ok(query_hypotheses(st.db, st.campaign, &v, &n, &e));
	assert_int_equal(v[0].state, HYP_SCREENED_OUT);
	assert_string_equal(v[0].reason, "slower");
	hypothesis_rows_free(v, n);
	assert_int_equal(query_hypothesis_state(st.db, 99, HYP_TESTED, NULL, &e), -ERR_NOT_FOUND);
	db_close(st.db);
}

static void findings_come_back_in_order(void **state)
{
	struct store st = store_new(":memory:");
	const struct finding_row in[] = {
		{2, TEXT("host"), TEXT("few threads"), TEXT("host_cpu"), 0.3},
		{1, TEXT("storage"), TEXT("data wait 12 %"), TEXT("data_wait"), 0.12},
		{1, TEXT("unknown"), NULL, NULL, NAN},
	};
	struct finding_row *v = NULL;
	struct finding_row bad = {.bottleneck = TEXT("gremlins")};
	struct err e = {0};
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(in); i++)
		assert_ok(query_finding_add(st.db, st.campaign, &in[i], &e));
	assert_ok(query_findings(st.db, st.campaign, &v, &n, &e));
	assert_int_equal(n, 3);
	assert_string_equal(v[0].rule, "data_wait");
	assert_true(v[0].share == 0.12);
	assert_string_equal(v[1].evidence, "");
	assert_true(isnan(v[1].share));
	assert_int_equal(v[2].round, 2);
	assert_string_equal(v[2].bottleneck, "host");
	finding_rows_free(v, n);
	assert_int_equal(query_finding_add(st.db, st.campaign, &bad, &e), -ERR_STATE);
	db_close(st.db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hypotheses_come_back_by_round_and_rank),
		cmocka_unit_test(state_changes_are_stored),
		cmocka_unit_test(findings_come_back_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
