/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One owner a campaign: who may open it, and that an owner that was taken over does nothing more,
 * in the database or beyond it.
 */
#include "tests/unit/world.h"

#include <sys/wait.h>

#include "orchestrator/base/proc.h"
#include "tests/unit/store.h"

enum { LONG_AGO_US = 1 };

static int try_open(struct world *w, bool take_over, struct campaign **c, struct err *e)
{
	const struct campaign_options o = {.sched = sched_find("fake"), .take_over = take_over};

	return campaign_open(w->ws, w->id, &o, c, e);
}

static struct lease holder(const char *host, pid_t pid)
{
	struct lease l = {.pid = pid, .heartbeat_us = LONG_AGO_US};
	struct err e = {0};

	if (host)
		str_copy(l.host, sizeof l.host, host);
	else
		assert_int_equal(gethostname(l.host, sizeof l.host), 0);
	proc_boot_id(l.boot_id);
	if (proc_start_ticks(pid, &l.start_ticks, &e) < 0)
		l.start_ticks = 1;
	return l;
}

static void hold(struct world *w, struct lease l)
{
	struct err e = {0};

	assert_ok(query_lease_take(w->ws->db, w->id, &l, 0, true, &e));
}

/* A pid that was somebody's and is nobody's. */
static pid_t dead_pid(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void test_a_living_holder_here_keeps_it_however_old_its_heartbeat(void **state)
{
	struct campaign *c = NULL;
	struct world w;
	struct err e = {0};

	(void)state;
	world_open(&w, 1);
	hold(&w, holder(NULL, getppid()));
	assert_int_equal(try_open(&w, false, &c, &e), -ERR_TEMP);
	assert_contains(e.text, "is being run by pid");
	assert_ok(try_open(&w, true, &c, &e));
	campaign_close(c);
	world_close(&w);
}

static void test_a_dead_holder_here_holds_nothing(void **state)
{
	struct campaign *c = NULL;
	struct world w;
	struct lease l = holder(NULL, dead_pid());
	struct err e = {0};

	(void)state;
	world_open(&w, 1);
	l.heartbeat_us = w.time.utc_us;
	hold(&w, l);
	assert_ok(try_open(&w, false, &c, &e));
	campaign_close(c);
	/* the same pid of another boot */
	l = holder(NULL, getppid());
	l.heartbeat_us = w.time.utc_us;
	l.boot_id[0] ^= 1;
	hold(&w, l);
	assert_ok(try_open(&w, false, &c, &e));
	campaign_close(c);
	world_close(&w);
}

static void test_a_holder_elsewhere_keeps_it_until_its_heartbeat_lapses(void **state)
{
	struct campaign *c = NULL;
	struct world w;
	struct lease l = holder("elsewhere", 4711);
	struct err e = {0};

	(void)state;
	world_open(&w, 1);
	l.heartbeat_us = w.time.utc_us;
	hold(&w, l);
	assert_int_equal(try_open(&w, false, &c, &e), -ERR_TEMP);
	clock_advance(&w.time, 110 * 1000000);
	assert_int_equal(try_open(&w, false, &c, &e), -ERR_TEMP);
	clock_advance(&w.time, 20 * 1000000);
	assert_ok(try_open(&w, false, &c, &e));
	campaign_close(c);
	world_close(&w);
}

/* The owner shows that it lives also after the clock of the day was put back. */
static void test_heartbeats_do_not_wait_for_the_clock_of_the_day(void **state)
{
	struct campaign *c = NULL;
	enum campaign_step step;
	struct world w;
	struct err e = {0};

	(void)state;
	world_open(&w, 1);
	assert_ok(try_open(&w, false, &c, &e));
	clock_advance(&w.time, 20 * 1000000);
	w.time.utc_us -= 3600 * 1000000ll;
	assert_ok(campaign_step(c, &step, &e));
	assert_int_equal(store_count(w.ws->db, "SELECT heartbeat_us FROM lease"), w.time.utc_us);
	campaign_close(c);
	world_close(&w);
}

static int64_t rows(struct db *db)
{
	return store_count(db,
			   "SELECT (SELECT count(*) FROM attempt) + (SELECT count(*) FROM block) "
			   "+ (SELECT count(*) FROM stage) + (SELECT count(*) FROM event)");
}

static int64_t submitted(struct db *db)
{
	return store_count(db, "SELECT count(*) FROM attempt WHERE state = 'submitted'");
}

/* Taken over after each number of steps: whatever comes next, nothing is written or cancelled. */
static void test_an_owner_that_was_taken_over_does_nothing_more(void **state)
{
	(void)state;
	for (int taken_at = 0; taken_at < 12; taken_at++) {
		struct campaign *c = NULL;
		enum campaign_step step = CAMPAIGN_AGAIN;
		struct world w;
		struct db *other = NULL;
		_cleanup_free_ char *path = NULL;
		struct lease l = holder("elsewhere", 4711);
		struct err e = {0};
		int64_t before;
		int rc = 0;

		world_open(&w, 1);
		path = fs_join(w.dir, "fettle.db");
		assert_ok(try_open(&w, false, &c, &e));
		for (int i = 0; i < taken_at; i++) {
			assert_ok(campaign_step(c, &step, &e));
			if (step == CAMPAIGN_WAIT)
				assert_ok(campaign_wait(c, 60 * 1000000, -1, &e));
		}
		assert_ok(db_open(path, DB_WRITE, &w.clock, &other, &e));
		l.heartbeat_us = w.time.utc_us;
		assert_ok(query_lease_take(other, w.id, &l, 0, true, &e));
		before = rows(other);
		for (int i = 0; i < 20 && rc == 0; i++) {
			rc = campaign_step(c, &step, &e);
			if (rc == 0 && step == CAMPAIGN_WAIT)
				assert_ok(campaign_wait(c, 60 * 1000000, -1, &e));
		}
		assert_int_equal(rc, -ERR_STATE);
		assert_contains(e.text, "was taken over by pid 4711 on host elsewhere");
		assert_int_equal(rows(other), before);
		assert_int_equal(campaign_cancel(c, "stopped", &e), -ERR_STATE);
		assert_int_equal(rows(other), before);
		campaign_close(c);
		assert_int_equal(store_count(other, "SELECT held FROM lease"), 1);
		assert_true(submitted(other) <= 1);
		db_close(other);
		world_close(&w);
	}
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_a_living_holder_here_keeps_it_however_old_its_heartbeat),
		cmocka_unit_test(test_a_dead_holder_here_holds_nothing),
		cmocka_unit_test(test_a_holder_elsewhere_keeps_it_until_its_heartbeat_lapses),
		cmocka_unit_test(test_heartbeats_do_not_wait_for_the_clock_of_the_day),
		cmocka_unit_test(test_an_owner_that_was_taken_over_does_nothing_more),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
