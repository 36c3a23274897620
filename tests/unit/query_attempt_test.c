/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/store.h"

struct planned {
	int64_t attempt, allocation;
	int number;
	char token[64];
};

static int plan(struct store *st, int64_t block, struct planned *p, struct err *e)
{
	return query_attempt_plan(st->db, st->campaign, block, "slurm", 77, &p->attempt, &p->number,
				  &p->allocation, p->token, e);
}

static void intent_is_stored_before_the_submit(void **state)
{
	struct store st = store_new(":memory:");
	_cleanup_free_ char *want = NULL;
	struct planned p = {0};
	struct err e = {0};
	char uuid[37];
	char *text;

	(void)state;
	assert_ok(plan(&st, st.block, &p, &e));
	assert_ok(query_workspace_uuid(st.db, &clock_system, uuid, &e));
	want = xasprintf("fettle:%.8s:a%lld", uuid, (long long)p.allocation);
	assert_string_equal(p.token, want);
	assert_int_equal(p.number, 1);
	text = store_text(st.db, "SELECT token || ' ' || scheduler || ' ' || planned_us || ' ' || "
				 "coalesce(job_id, 'none') FROM allocation");
	free(want);
	want = xasprintf("%s slurm 77 none", p.token);
	assert_string_equal(text, want);
	free(text);
	text = store_text(st.db, "SELECT dir || ' ' || state FROM attempt");
	assert_string_equal(text, "blocks/1.1 planned");
	free(text);
	db_close(st.db);
}

/* A plan that is made twice for one block would run it twice. */
static void an_open_or_valid_attempt_refuses_another(void **state)
{
	struct store st = store_new(":memory:");
	struct planned p = {0}, q = {.number = -1};
	struct err e = {0};

	(void)state;
	assert_ok(plan(&st, st.block, &p, &e));
	assert_int_equal(plan(&st, st.block, &q, &e), -ERR_STATE);
	assert_contains(e.text, "attempt 1 of block 1 is planned");
	assert_int_equal(q.number, -1);
	assert_ok(query_allocation_submitted(st.db, p.allocation, "1", 1, &e));
	assert_int_equal(plan(&st, st.block, &q, &e), -ERR_STATE);
	assert_contains(e.text, "is submitted");
	assert_ok(query_attempt_fail(st.db, p.attempt, ATTEMPT_VOID, "node failed", 2, &e));
	store_run(&st, st.block, st.arm, 2);
	assert_int_equal(plan(&st, st.block, &q, &e), -ERR_STATE);
	assert_contains(e.text, "attempt 2 of block 1 is valid");
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM allocation"), 2);
	db_close(st.db);
}

static void the_next_attempt_is_the_whole_block_again(void **state)
{
	struct store st = store_new(":memory:");
	struct planned p[3] = {{0}};
	struct err e = {0};

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_ok(plan(&st, st.block, &p[i], &e));
		assert_int_equal(p[i].number, i + 1);
		assert_int_equal(p[i].allocation, i + 1);
		assert_ok(query_attempt_fail(st.db, p[i].attempt, i ? ATTEMPT_LOST : ATTEMPT_VOID,
					     "x", 3, &e));
	}
	assert_string_not_equal(p[0].token, p[1].token);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM attempt WHERE state = 'lost'"),
			 2);
	assert_int_equal(store_count(st.db, "SELECT count(DISTINCT dir) FROM attempt"), 3);
	db_close(st.db);
}

/* A token names one job for ever, also when rows were deleted in between. */
static void tokens_are_not_used_again(void **state)
{
	struct store st = store_new(":memory:");
	struct planned p = {0};
	struct err e = {0};

	(void)state;
	assert_ok(plan(&st, st.block, &p, &e));
	assert_int_equal(store_exec(st.db, "DELETE FROM attempt; DELETE FROM allocation"),
			 SQLITE_OK);
	assert_ok(plan(&st, st.block, &p, &e));
	assert_int_equal(p.allocation, 2);
	assert_true(str_ends(p.token, ":a2"));
	db_close(st.db);
}

static void plans_of_strangers_are_refused(void **state)
{
	struct store st = store_new(":memory:");
	struct store other = {.db = st.db, .campaign = store_campaign(st.db, "other")};
	struct planned p;
	struct err e = {0};

	(void)state;
	assert_int_equal(plan(&st, 99, &p, &e), -ERR_NOT_FOUND);
	assert_int_equal(plan(&other, st.block, &p, &e), -ERR_STATE);
	assert_contains(e.text, "block 1 belongs to another campaign");
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM allocation"), 0);
	assert_false(db_in_transaction(st.db));
	db_close(st.db);
}

static void a_submit_is_noted_once(void **state)
{
	struct store st = store_new(":memory:");
	struct planned p = {0};
	struct err e = {0};

	(void)state;
	assert_ok(plan(&st, st.block, &p, &e));
	assert_ok(query_allocation_submitted(st.db, p.allocation, "4711", 100, &e));
	assert_ok(
		query_allocation_submitted(st.db, p.allocation, "4711", 200, &e)); /* found again */
	assert_int_equal(store_count(st.db, "SELECT submitted_us FROM allocation"), 100);
	assert_int_equal(query_allocation_submitted(st.db, p.allocation, "4712", 300, &e),
			 -ERR_STATE);
	assert_contains(e.text, "job 4711");
	assert_contains(e.text, "job 4712");
	assert_int_equal(store_count(st.db, "SELECT job_id FROM allocation"), 4711);
	assert_int_equal(query_allocation_submitted(st.db, 99, "1", 1, &e), -ERR_NOT_FOUND);
	db_close(st.db);
}

static void an_end_is_noted_with_its_nodes(void **state)
{
	struct store st = store_new(":memory:");
	struct planned p = {0};
	struct err e = {0};
	char *text;

	(void)state;
	assert_ok(plan(&st, st.block, &p, &e));
	assert_ok(query_allocation_end(st.db, p.allocation, "timeout", "TimeLimit", "n2,n1,,n3", 10,
				       20, &e));
	text = store_text(st.db,
			  "SELECT outcome || ' ' || reason || ' ' || start_us || ' ' || end_us "
			  "FROM allocation");
	assert_string_equal(text, "timeout TimeLimit 10 20");
	free(text);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM allocation_node"), 3);
	/* told again, with less: what was known stays */
	assert_ok(query_allocation_end(st.db, p.allocation, "timeout", NULL, NULL, 0, 0, &e));
	assert_int_equal(store_count(st.db, "SELECT end_us - start_us FROM allocation"), 10);
	assert_int_equal(query_allocation_end(st.db, 99, "ok", NULL, "n1", 1, 2, &e),
			 -ERR_NOT_FOUND);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM allocation_node"), 3);
	db_close(st.db);
}

static void a_cut_list_of_nodes_loses_its_stump(void **state)
{
	struct store st = store_new(":memory:");
	struct planned p = {0};
	struct err e = {0};
	char nodes[256];
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof nodes - 1; i++)
		nodes[i] = "node0001,"[i % 9];
	nodes[255] = '\0';
	memcpy(nodes, "first", 5);
	assert_ok(plan(&st, st.block, &p, &e));
	assert_ok(query_allocation_end(st.db, p.allocation, "ok", NULL, nodes, 1, 2, &e));
	text = store_text(st.db, "SELECT group_concat(node, ' ') FROM allocation_node");
	assert_string_equal(text, "first001 node0001");
	free(text);
	db_close(st.db);
}

/* The agent knows the nodes that it ran on; the scheduler's word does not change that. */
static void nodes_of_the_agent_stand(void **state)
{
	struct store st = store_new(":memory:");
	struct err e = {0};
	char *text;

	(void)state;
	store_run(&st, st.block, st.arm, 2); /* on n1 */
	assert_ok(query_allocation_end(st.db, 1, "ok", NULL, "n1.example.org", 1, 2, &e));
	text = store_text(st.db, "SELECT group_concat(node, ' ') FROM allocation_node");
	assert_string_equal(text, "n1");
	free(text);
	db_close(st.db);
}

static void failing_twice_is_the_same_as_once(void **state)
{
	struct store st = store_new(":memory:");
	struct planned p = {0};
	struct err e = {0};

	(void)state;
	assert_ok(plan(&st, st.block, &p, &e));
	assert_int_equal(query_attempt_fail(st.db, p.attempt, ATTEMPT_VALID, "x", 1, &e),
			 -ERR_STATE);
	assert_ok(query_attempt_fail(st.db, p.attempt, ATTEMPT_VOID, "node failed", 5, &e));
	assert_ok(query_attempt_fail(st.db, p.attempt, ATTEMPT_VOID, "told again", 6, &e));
	assert_int_equal(store_count(st.db, "SELECT ended_us FROM attempt"), 5);
	assert_int_equal(query_attempt_fail(st.db, p.attempt, ATTEMPT_LOST, "x", 7, &e),
			 -ERR_STATE);
	assert_contains(e.text, "is void and cannot become lost");
	assert_int_equal(query_attempt_fail(st.db, 99, ATTEMPT_LOST, "x", 7, &e), -ERR_NOT_FOUND);
	db_close(st.db);
}

static void a_valid_attempt_cannot_fail(void **state)
{
	struct store st = store_new(":memory:");
	struct err e = {0};

	(void)state;
	store_run(&st, st.block, st.arm, 2);
	assert_int_equal(query_attempt_fail(st.db, 1, ATTEMPT_VOID, "x", 9, &e), -ERR_STATE);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM attempt WHERE state = 'valid'"),
			 1);
	db_close(st.db);
}

/* The index, not only our own care. */
static void one_attempt_of_a_block_is_valid(void **state)
{
	struct store st = store_new(":memory:");

	(void)state;
	store_run(&st, st.block, st.arm, 2);
	assert_int_equal(store_exec(st.db,
				    "INSERT INTO attempt(block, number, allocation, state, dir, "
				    "manifest_hash) VALUES (1, 2, 1, 'valid', 'x', 'y')"),
			 SQLITE_CONSTRAINT_UNIQUE);
	assert_int_equal(store_exec(st.db,
				    "INSERT INTO attempt(block, number, allocation, state, dir) "
				    "VALUES (1, 2, 1, 'valid', 'x')"),
			 SQLITE_CONSTRAINT_CHECK);
	db_close(st.db);
}

static int64_t trials_planned(struct store *st, int position, int64_t *attempt)
{
	struct block_row *v = NULL;
	size_t n = 0;
	struct err e = {0};
	int64_t slots = -1;

	assert_ok(query_blocks(st->db, st->stage, &v, &n, &e));
	for (size_t i = 0; i < n; i++)
		if (v[i].position == position) {
			slots = (int64_t)v[i].n_slots;
			*attempt = v[i].attempt_id;
			assert_int_equal(v[i].slots[0].index, position ? 1 : 0);
		}
	block_rows_free(v, n);
	return slots;
}

/* Blocks of one allocation share its token, its job and its warm-up. */
static void an_allocation_holds_several_blocks(void **state)
{
	struct store st = store_new(":memory:");
	const int64_t blocks[] = {st.block, store_block(&st, st.stage, st.arm, 1, 2)};
	int64_t allocation, first = 0, second = 0;
	char token[64];
	struct err e = {0};

	(void)state;
	assert_ok(query_allocation_plan(st.db, st.campaign, blocks, 2, "slurm", 77, &allocation,
					token, &e));
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM allocation"), 1);
	assert_int_equal(trials_planned(&st, 0, &first), 5);
	assert_int_equal(trials_planned(&st, 1, &second), 4); /* no warm-up of its own */
	assert_true(first < second);
	assert_ok(query_allocation_submitted(st.db, allocation, "4711", 78, &e));
	assert_int_equal(
		store_count(st.db, "SELECT count(*) FROM attempt WHERE state = 'submitted'"), 2);
	/* times only widen: each block tells its own part */
	assert_ok(query_allocation_end(st.db, allocation, "ok", NULL, NULL, 100, 200, &e));
	assert_ok(query_allocation_end(st.db, allocation, "ok", NULL, NULL, 200, 300, &e));
	assert_ok(query_allocation_end(st.db, allocation, "node_fail", NULL, NULL, 0, 0, &e));
	assert_int_equal(store_count(st.db, "SELECT start_us FROM allocation"), 100);
	assert_int_equal(store_count(st.db, "SELECT end_us FROM allocation"), 300);
	db_close(st.db);
}

/* One block that has an open attempt refuses the whole plan. */
static void a_refused_plan_leaves_nothing(void **state)
{
	struct store st = store_new(":memory:");
	const int64_t blocks[] = {store_block(&st, st.stage, st.arm, 1, 2), st.block};
	struct planned p = {0};
	int64_t allocation = -1;
	char token[64];
	struct err e = {0};

	(void)state;
	assert_ok(plan(&st, st.block, &p, &e));
	assert_int_equal(query_allocation_plan(st.db, st.campaign, blocks, 2, "slurm", 77,
					       &allocation, token, &e),
			 -ERR_STATE);
	assert_int_equal(allocation, -1);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM allocation"), 1);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM attempt"), 1);
	db_close(st.db);
}

/* A block whose turn never came is not held to have failed. */
static void what_was_not_begun_does_not_count(void **state)
{
	struct store st = store_new(":memory:");
	struct block_row *v = NULL;
	size_t n = 0;
	struct err e = {0};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct planned p = {0};

		assert_ok(plan(&st, st.block, &p, &e));
		assert_ok(query_attempt_fail(
			st.db, p.attempt, ATTEMPT_VOID,
			i < 3 ? QUERY_NOT_BEGUN ": job 1 is gone" : "node down", STORE_NOW_US, &e));
	}
	assert_ok(query_blocks(st.db, st.stage, &v, &n, &e));
	assert_int_equal(v[0].voids, 1);
	assert_int_equal(v[0].attempt, 4);
	block_rows_free(v, n);
	db_close(st.db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intent_is_stored_before_the_submit),
		cmocka_unit_test(an_open_or_valid_attempt_refuses_another),
		cmocka_unit_test(the_next_attempt_is_the_whole_block_again),
		cmocka_unit_test(tokens_are_not_used_again),
		cmocka_unit_test(plans_of_strangers_are_refused),
		cmocka_unit_test(a_submit_is_noted_once),
		cmocka_unit_test(an_end_is_noted_with_its_nodes),
		cmocka_unit_test(a_cut_list_of_nodes_loses_its_stump),
		cmocka_unit_test(nodes_of_the_agent_stand),
		cmocka_unit_test(failing_twice_is_the_same_as_once),
		cmocka_unit_test(a_valid_attempt_cannot_fail),
		cmocka_unit_test(one_attempt_of_a_block_is_valid),
		cmocka_unit_test(an_allocation_holds_several_blocks),
		cmocka_unit_test(a_refused_plan_leaves_nothing),
		cmocka_unit_test(what_was_not_begun_does_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
