/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/store.h"

static void a_stage_comes_back_with_its_arms(void **state)
{
	struct store st = store_new(":memory:");
	int64_t arm[2];
	int64_t second = store_stage(&st, STAGE_CONFIRM, 0, st.hypothesis, arm);
	struct stage_row *v = NULL;
	struct err e = {0};
	size_t n = 0;

	(void)state;
	assert_ok(query_stages(st.db, st.campaign, &v, &n, &e));
	assert_int_equal(n, 2);
	assert_int_equal(v[0].id, second); /* by seq */
	assert_int_equal(v[0].kind, STAGE_CONFIRM);
	assert_int_equal(v[1].id, st.stage);
	assert_int_equal(v[1].kind, STAGE_SCREEN);
	assert_int_equal(v[1].planned_blocks, 8);
	assert_true(v[1].alpha_share == 0.0125);
	assert_true(v[1].open);
	assert_null(v[1].note);
	assert_int_equal(v[1].hypothesis, 0);
	assert_int_equal(v[1].n_arms, 2);
	assert_int_equal(v[1].arms[0].id, st.arm[0]);
	assert_int_equal(v[1].arms[0].role, ROLE_BASELINE);
	assert_int_equal(v[1].arms[0].hypothesis, 0);
	assert_int_equal(v[1].arms[1].index, 1);
	assert_int_equal(v[1].arms[1].role, ROLE_TREATMENT);
	assert_int_equal(v[1].arms[1].hypothesis, st.hypothesis);
	assert_int_equal(v[1].arms[1].config, st.config[1]);
	assert_int_equal(v[1].arms[1].stage, st.stage);
	assert_string_equal(v[1].arms[1].label, "x=1");
	stage_rows_free(v, n);
	db_close(st.db);
}

static void stages_close_with_a_note(void **state)
{
	struct store st = store_new(":memory:");
	struct stage_row *v = NULL;
	struct err e = {0};
	size_t n = 0;

	(void)state;
	assert_ok(query_stage_close(st.db, st.stage, "decided", &e));
	assert_ok(query_stages(st.db, st.campaign, &v, &n, &e));
	assert_false(v[0].open);
	assert_string_equal(v[0].note, "decided");
	stage_rows_free(v, n);
	assert_int_equal(query_stage_close(st.db, 99, NULL, &e), -ERR_NOT_FOUND);
	db_close(st.db);
}

/* Stages of one knob have an experiment an arm with a hypothesis; the others differ by design. */
static void experiments_belong_to_one_knob_stages(void **state)
{
	static const enum stage_kind with[] = {STAGE_VERIFY, STAGE_CONFIRM};
	static const enum stage_kind without[] = {STAGE_AA,   STAGE_ABLATE, STAGE_FINAL,
						  STAGE_SOAK, STAGE_CANARY, STAGE_CONVERGE};
	struct store st = store_new(":memory:");
	int64_t arm[2];
	int seq = 10;

	(void)state;
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM experiment"), 1); /* the screen */
	assert_int_equal(store_count(st.db, "SELECT treatment FROM experiment"), st.arm[1]);
	assert_int_equal(store_count(st.db, "SELECT baseline FROM experiment"), st.arm[0]);
	for (size_t i = 0; i < ARRAY_LEN(without); i++)
		store_stage(&st, without[i], seq++, st.hypothesis, arm);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM experiment"), 1);
	for (size_t i = 0; i < ARRAY_LEN(with); i++)
		store_stage(&st, with[i], seq++, st.hypothesis, arm);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM experiment"), 3);
	store_stage(&st, STAGE_CONFIRM, seq, 0, arm); /* no hypothesis, no experiment */
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM experiment"), 3);
	db_close(st.db);
}

static void half_a_stage_is_none(void **state)
{
	struct store st = store_new(":memory:");
	struct arm_row arms[2] = {
		{.id = 70, .index = 0, .config = st.config[0], .label = TEXT("a")},
		{.id = 71, .index = 1, .config = 99, .label = TEXT("b")}};
	struct stage_row s = {
		.id = 69, .campaign = st.campaign, .seq = 2, .arms = arms, .n_arms = 2};
	struct err e = {0};

	(void)state;
	assert_int_equal(query_stage_add(st.db, &s, &e), -ERR_STATE);
	assert_contains(e.text, "FOREIGN KEY");
	assert_int_equal(s.id, 69);
	assert_int_equal(arms[0].id, 70);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM stage"), 1);
	arms[1].config = st.config[1];
	s.seq = 1; /* taken */
	assert_int_equal(query_stage_add(st.db, &s, &e), -ERR_STATE);
	assert_contains(e.text, "UNIQUE constraint failed: stage.campaign, stage.seq");
	db_close(st.db);
}

static void blocks_come_back_with_their_slots(void **state)
{
	struct store st = store_new(":memory:");
	int64_t third = store_block(&st, st.stage, st.arm, 2, 1);
	int64_t second = store_block(&st, st.stage, st.arm, 1, 3);
	struct block_row *v = NULL;
	struct err e = {0};
	size_t n = 0;

	(void)state;
	assert_ok(query_blocks(st.db, st.stage, &v, &n, &e));
	assert_int_equal(n, 3);
	assert_int_equal(v[0].id, st.block);
	assert_int_equal(v[1].id, second);
	assert_int_equal(v[2].id, third);
	assert_int_equal(v[0].n_slots, 5);
	assert_int_equal(v[1].n_slots, 7);
	assert_int_equal(v[2].n_slots, 3);
	assert_int_equal(v[1].slots[0].kind, SLOT_WARMUP);
	assert_int_equal(v[1].slots[6].kind, SLOT_TIMED);
	assert_int_equal(v[1].slots[6].arm, st.arm[1]);
	assert_int_equal(v[1].slots[6].repeat, 2);
	assert_int_equal(v[1].index, 1);
	assert_int_equal(v[1].stage, st.stage);
	assert_int_equal(v[1].attempt, 0);
	assert_null(v[1].token);
	block_rows_free(v, n);
	assert_ok(query_blocks(st.db, 99, &v, &n, &e));
	assert_int_equal(n, 0);
	block_rows_free(v, n);
	db_close(st.db);
}

static void blocks_show_their_newest_attempt(void **state)
{
	struct store st = store_new(":memory:");
	struct block_row *v = NULL;
	struct err e = {0};
	size_t n = 0;
	int64_t first = store_plan(&st, st.block), second;

	(void)state;
	assert_ok(query_attempt_fail(st.db, first, ATTEMPT_LOST, "no done.json", 1, &e));
	second = store_plan(&st, st.block);
	assert_ok(query_allocation_submitted(st.db, 2, "4711", 2, &e));
	assert_ok(query_blocks(st.db, st.stage, &v, &n, &e));
	assert_int_equal(v[0].attempt_id, second);
	assert_int_equal(v[0].attempt, 2);
	assert_int_equal(v[0].voids, 1);
	assert_int_equal(v[0].state, ATTEMPT_SUBMITTED);
	assert_int_equal(v[0].allocation, 2);
	assert_string_equal(v[0].dir, "blocks/1.2");
	assert_string_equal(v[0].job_id, "4711");
	assert_true(str_starts(v[0].token, "fettle:") && str_ends(v[0].token, ":a2"));
	assert_null(v[0].reason);
	block_rows_free(v, n);
	db_close(st.db);
}

/* What was open is looked at again, what is new is added, and nothing else is read. */
static void open_blocks_follow_what_happens(void **state)
{
	struct store st = store_new(":memory:");
	int64_t second = store_block(&st, st.stage, st.arm, 1, 1), third;
	struct block_row *v = NULL;
	struct err e = {0};
	size_t n = 0, total = 0;

	(void)state;
	assert_ok(query_open_blocks(st.db, st.stage, &v, &n, &total, &e));
	assert_int_equal(n, 2);
	assert_int_equal(total, 2);
	assert_int_equal(v[1].id, second);
	store_run(&st, st.block, st.arm, 2);
	third = store_block(&st, st.stage, st.arm, 2, 1);
	store_plan(&st, third);
	assert_ok(query_open_blocks(st.db, st.stage, &v, &n, &total, &e));
	assert_int_equal(n, 2);
	assert_int_equal(total, 3);
	assert_int_equal(v[0].id, second);
	assert_int_equal(v[0].attempt, 0);
	assert_int_equal(v[1].id, third);
	assert_int_equal(v[1].state, ATTEMPT_PLANNED);
	assert_int_equal(v[1].n_slots, 3);
	store_run(&st, second, st.arm, 1);
	assert_ok(query_open_blocks(st.db, st.stage, &v, &n, &total, &e));
	assert_int_equal(n, 1);
	assert_int_equal(v[0].id, third);
	block_rows_free(v, n);
	/* whoever knows nothing yet is told the same */
	v = NULL;
	n = total = 0;
	assert_ok(query_open_blocks(st.db, st.stage, &v, &n, &total, &e));
	assert_int_equal(n, 1);
	assert_int_equal(total, 3);
	block_rows_free(v, n);
	db_close(st.db);
}

static void half_a_block_is_none(void **state)
{
	struct store st = store_new(":memory:");
	const struct slot slots[2] = {{.arm = st.arm[0], .kind = SLOT_TIMED},
				      {.arm = 99, .kind = SLOT_TIMED}};
	struct err e = {0};
	int64_t id = -1;

	(void)state;
	assert_int_equal(query_block_add(st.db, st.stage, 1, slots, 2, &id, &e), -ERR_STATE);
	assert_int_equal(id, -1);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM block"), 1);
	assert_int_equal(query_block_add(st.db, st.stage, 0, slots, 1, &id, &e), -ERR_STATE);
	assert_contains(e.text, "UNIQUE constraint failed: block.stage, block.idx");
	db_close(st.db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stage_comes_back_with_its_arms),
		cmocka_unit_test(stages_close_with_a_note),
		cmocka_unit_test(experiments_belong_to_one_knob_stages),
		cmocka_unit_test(half_a_stage_is_none),
		cmocka_unit_test(blocks_come_back_with_their_slots),
		cmocka_unit_test(blocks_show_their_newest_attempt),
		cmocka_unit_test(open_blocks_follow_what_happens),
		cmocka_unit_test(half_a_block_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
