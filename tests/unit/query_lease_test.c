/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two owners on two connections to one file. */
#include "tests/unit/store.h"

enum { LAPSE_US = 1000 };

struct pair {
	char *dir, *path;
	struct store a;
	struct db *b;
};

static struct pair pair_new(void)
{
	struct pair p = {.dir = scratch_new()};
	struct err e = {0};

	p.path = fs_join(p.dir, "fettle.db");
	p.a = store_new(p.path);
	assert_ok(db_open(p.path, DB_WRITE, NULL, &p.b, &e));
	return p;
}

static void pair_free(struct pair *p)
{
	db_close(p->b);
	db_close(p->a.db);
	free(p->path);
	scratch_free(&p->dir);
}
#define _cleanup_pair_ __attribute__((cleanup(pair_free)))

static struct lease owner(const char *host, int64_t pid, int64_t now_us)
{
	struct lease l = {.pid = pid, .start_ticks = UINT64_MAX, .heartbeat_us = now_us};

	str_copy(l.host, sizeof l.host, host);
	str_copy(l.boot_id, sizeof l.boot_id, "b00t");
	return l;
}

static void free_lease_is_taken(void **state)
{
	_cleanup_pair_ struct pair p = pair_new();
	struct lease mine = owner("n1", 10, 5000), got;
	struct err e = {0};
	bool held = true;

	(void)state;
	assert_ok(query_lease_get(p.b, p.a.campaign, &got, &held, &e));
	assert_false(held);
	assert_ok(query_lease_take(p.a.db, p.a.campaign, &mine, LAPSE_US, false, &e));
	assert_int_equal(mine.fence, 1);
	assert_ok(query_lease_get(p.b, p.a.campaign, &got, &held, &e));
	assert_true(held);
	assert_string_equal(got.host, "n1");
	assert_string_equal(got.boot_id, "b00t");
	assert_int_equal(got.pid, 10);
	assert_true(got.start_ticks == UINT64_MAX);
	assert_int_equal(got.heartbeat_us, 5000);
	assert_int_equal(got.fence, 1);
	assert_ok(query_lease_check(p.b, p.a.campaign, &mine, &e));
}

static void held_lease_is_refused_with_its_owner(void **state)
{
	_cleanup_pair_ struct pair p = pair_new();
	struct lease mine = owner("n1", 10, 5000), yours = owner("n2", 10, 5000 + LAPSE_US);
	struct err e = {0};

	(void)state;
	assert_ok(query_lease_take(p.a.db, p.a.campaign, &mine, LAPSE_US, false, &e));
	assert_int_equal(query_lease_take(p.b, p.a.campaign, &yours, LAPSE_US, false, &e),
			 -ERR_TEMP);
	assert_contains(e.text,
			"is being run by pid 10 on host n1 (last heartbeat 1970-01-01T00:00:00Z");
	assert_int_equal(yours.fence, 0);
	assert_false(db_in_transaction(p.b));
	/* the clock of the other host is behind: that is no lapse */
	yours.heartbeat_us = 0;
	assert_int_equal(query_lease_take(p.b, p.a.campaign, &yours, LAPSE_US, false, &e),
			 -ERR_TEMP);
	/* same host, another process; same pid, other start; same pid, other boot */
	yours = owner("n1", 11, 5001);
	assert_int_equal(query_lease_take(p.b, p.a.campaign, &yours, LAPSE_US, false, &e),
			 -ERR_TEMP);
	yours = owner("n1", 10, 5001);
	yours.start_ticks = 3;
	assert_int_equal(query_lease_take(p.b, p.a.campaign, &yours, LAPSE_US, false, &e),
			 -ERR_TEMP);
	yours = owner("n1", 10, 5001);
	yours.boot_id[0] = 'x';
	assert_int_equal(query_lease_take(p.b, p.a.campaign, &yours, LAPSE_US, false, &e),
			 -ERR_TEMP);
}

/* Two processes find the same dead holder: the second one finds the first. */
static void dead_holder_is_replaced_once(void **state)
{
	_cleanup_pair_ struct pair p = pair_new();
	struct lease dead = owner("n1", 10, 5000), mine = owner("n1", 11, 5001),
		     yours = owner("n1", 12, 5001), got;
	bool held = false;
	struct err e = {0};

	(void)state;
	assert_ok(query_lease_take(p.a.db, p.a.campaign, &dead, LAPSE_US, false, &e));
	assert_ok(query_lease_seize(p.a.db, p.a.campaign, &mine, &dead, &e));
	assert_int_equal(mine.fence, 2);
	assert_int_equal(query_lease_seize(p.b, p.a.campaign, &yours, &dead, &e), -ERR_TEMP);
	assert_contains(e.text, "is being run by pid 11");
	assert_ok(query_lease_get(p.b, p.a.campaign, &got, &held, &e));
	assert_true(held && got.pid == 11);
	/* a holder that let go in between leaves a free lease */
	assert_ok(query_lease_drop(p.a.db, p.a.campaign, &mine, &e));
	assert_ok(query_lease_seize(p.b, p.a.campaign, &yours, &mine, &e));
}

struct fenced {
	struct db *db;
	int64_t campaign;
	const struct lease *mine;
};

static int still_mine(void *ctx, struct err *e)
{
	const struct fenced *f = ctx;

	return query_lease_check(f->db, f->campaign, f->mine, e);
}

static int64_t events(struct db *db)
{
	return store_count(db, "SELECT count(*) FROM event");
}

/* Whoever lost the lease writes nothing more, with a transaction of his own or without. */
static void fenced_owner_writes_nothing(void **state)
{
	_cleanup_pair_ struct pair p = pair_new();
	struct lease mine = owner("n1", 10, 5000), yours = owner("n2", 10, 5001);
	struct fenced f = {.db = p.a.db, .campaign = p.a.campaign, .mine = &mine};
	struct err e = {0};

	(void)state;
	assert_ok(query_lease_take(p.a.db, p.a.campaign, &mine, LAPSE_US, false, &e));
	db_guard(p.a.db, still_mine, &f);
	assert_ok(query_event_add(p.a.db, p.a.campaign, 1, "note", "mine", &e));
	assert_ok(db_begin(p.a.db, "two", &e));
	assert_ok(query_event_add(p.a.db, p.a.campaign, 1, "note", "mine", &e));
	assert_ok(db_commit(p.a.db, &e));
	assert_int_equal(events(p.a.db), 2);
	assert_ok(query_lease_take(p.b, p.a.campaign, &yours, LAPSE_US, true, &e));
	assert_int_equal(query_event_add(p.a.db, p.a.campaign, 1, "note", "late", &e), -ERR_STATE);
	assert_contains(e.text, "was taken over by pid 10 on host n2");
	assert_int_equal(db_begin(p.a.db, "two", &e), -ERR_STATE);
	assert_false(db_in_transaction(p.a.db));
	assert_int_equal(events(p.b), 2);
	db_guard(p.a.db, NULL, NULL);
	assert_ok(query_event_add(p.a.db, p.a.campaign, 1, "note", "free", &e));
}

static void own_lease_is_renewed(void **state)
{
	_cleanup_pair_ struct pair p = pair_new();
	struct lease mine = owner("n1", 10, 5000), got;
	struct err e = {0};
	bool held;

	(void)state;
	assert_ok(query_lease_take(p.a.db, p.a.campaign, &mine, LAPSE_US, false, &e));
	mine.heartbeat_us = 6000;
	assert_ok(query_lease_take(p.a.db, p.a.campaign, &mine, LAPSE_US, false, &e));
	assert_int_equal(mine.fence, 1); /* no take-over */
	mine.heartbeat_us = 7000;
	assert_ok(query_lease_beat(p.a.db, p.a.campaign, &mine, &e));
	assert_ok(query_lease_get(p.b, p.a.campaign, &got, &held, &e));
	assert_int_equal(got.heartbeat_us, 7000);
}

static void stale_owner_is_fenced(struct pair *p, const struct lease *old)
{
	struct err e = {0};

	assert_int_equal(query_lease_beat(p->a.db, p->a.campaign, old, &e), -ERR_STATE);
	assert_contains(e.text, "was taken over by pid 20 on host n2");
	assert_int_equal(query_lease_check(p->a.db, p->a.campaign, old, &e), -ERR_STATE);
	assert_int_equal(query_lease_drop(p->a.db, p->a.campaign, old, &e), -ERR_STATE);
}

static void lapsed_lease_is_taken_over(void **state)
{
	_cleanup_pair_ struct pair p = pair_new();
	struct lease mine = owner("n1", 10, 5000), yours = owner("n2", 20, 5001 + LAPSE_US);
	struct err e = {0};
	struct lease got;
	bool held;

	(void)state;
	assert_ok(query_lease_take(p.a.db, p.a.campaign, &mine, LAPSE_US, false, &e));
	assert_ok(query_lease_take(p.b, p.a.campaign, &yours, LAPSE_US, false, &e));
	assert_int_equal(yours.fence, 2);
	stale_owner_is_fenced(&p, &mine);
	assert_ok(query_lease_beat(p.b, p.a.campaign, &yours, &e));
	assert_ok(query_lease_get(p.a.db, p.a.campaign, &got, &held, &e));
	assert_true(held); /* the stale owner's drop did nothing */
}

static void force_takes_a_fresh_one(void **state)
{
	_cleanup_pair_ struct pair p = pair_new();
	struct lease mine = owner("n1", 10, 5000), yours = owner("n2", 20, 5000);
	struct err e = {0};

	(void)state;
	assert_ok(query_lease_take(p.a.db, p.a.campaign, &mine, LAPSE_US, false, &e));
	assert_ok(query_lease_take(p.b, p.a.campaign, &yours, LAPSE_US, true, &e));
	assert_int_equal(yours.fence, 2);
	stale_owner_is_fenced(&p, &mine);
}

static void fence_outlives_a_drop(void **state)
{
	_cleanup_pair_ struct pair p = pair_new();
	struct lease mine = owner("n1", 10, 5000), again = mine;
	struct err e = {0};

	(void)state;
	assert_ok(query_lease_take(p.a.db, p.a.campaign, &mine, LAPSE_US, false, &e));
	assert_ok(query_lease_drop(p.a.db, p.a.campaign, &mine, &e));
	assert_int_equal(query_lease_beat(p.a.db, p.a.campaign, &mine, &e), -ERR_STATE);
	assert_contains(e.text, "not held any more");
	assert_int_equal(query_lease_check(p.a.db, p.a.campaign, &mine, &e), -ERR_STATE);
	assert_ok(query_lease_take(p.b, p.a.campaign, &again, LAPSE_US, false, &e));
	assert_int_equal(again.fence, 2);
	assert_int_equal(query_lease_check(p.a.db, p.a.campaign, &mine, &e), -ERR_STATE);
	assert_ok(query_lease_check(p.a.db, p.a.campaign, &again, &e));
}

/* A write of the old owner, checked in its own transaction, does not happen. */
static void fenced_transaction_stores_nothing(void **state)
{
	_cleanup_pair_ struct pair p = pair_new();
	struct lease mine = owner("n1", 10, 5000), yours = owner("n2", 20, 9000);
	struct err e = {0};

	(void)state;
	assert_ok(query_lease_take(p.a.db, p.a.campaign, &mine, LAPSE_US, false, &e));
	assert_ok(query_lease_take(p.b, p.a.campaign, &yours, LAPSE_US, false, &e));
	assert_ok(db_begin(p.a.db, "old owner", &e));
	assert_ok(query_event_add(p.a.db, p.a.campaign, 1, "stopped", "x", &e));
	assert_int_equal(query_lease_check(p.a.db, p.a.campaign, &mine, &e), -ERR_STATE);
	db_rollback(p.a.db);
	assert_int_equal(store_count(p.b, "SELECT count(*) FROM event"), 0);
}

static void a_lease_needs_its_campaign(void **state)
{
	_cleanup_pair_ struct pair p = pair_new();
	struct lease mine = owner("n1", 10, 5000);
	struct err e = {0};

	(void)state;
	assert_int_equal(query_lease_take(p.a.db, 77, &mine, LAPSE_US, false, &e), -ERR_STATE);
	assert_contains(e.text, "FOREIGN KEY");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(free_lease_is_taken),
		cmocka_unit_test(held_lease_is_refused_with_its_owner),
		cmocka_unit_test(dead_holder_is_replaced_once),
		cmocka_unit_test(fenced_owner_writes_nothing),
		cmocka_unit_test(own_lease_is_renewed),
		cmocka_unit_test(lapsed_lease_is_taken_over),
		cmocka_unit_test(force_takes_a_fresh_one),
		cmocka_unit_test(fence_outlives_a_drop),
		cmocka_unit_test(fenced_transaction_stores_nothing),
		cmocka_unit_test(a_lease_needs_its_campaign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
