/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jobs that a scheduler lost sight of, took twice, put off or could not cancel: none is left
 * without an owner and none is run again while it lives. Scheduler fake behind a front that
 * misbehaves.
 */
#include "tests/unit/world.h"

#include "tests/unit/store.h"

/* What the front does to the scheduler behind it. One campaign at a time. */
static struct front {
	bool twin;            /* a submit is answered with the id of a job that is dead at once */
	bool no_find;         /* find cannot be asked */
	bool no_cancel;       /* cancel cannot be asked */
	bool absent;          /* find knows of no job */
	bool unlaunched;      /* every job looks like one whose prolog failed */
	bool reused;          /* the number of every job is another's by now, and that one runs */
	const char *risen[2]; /* tokens of jobs that live when it is asked at the end */
	struct clock_virtual *ends_in_poll; /* a job's last minute passes while it is polled */
	int put_off;                        /* so many submits are refused for now */
	int submits, cancels;
} front;

static const struct sched *behind(void)
{
	return sched_find("fake");
}

static int front_submit(struct sched_run *s, const struct sched_job *job, char id[64],
			struct err *e)
{
	int rc;

	front.submits++;
	if (front.put_off > 0) {
		front.put_off--;
		return err_set(e, ERR_TEMP, "another job runs");
	}
	rc = behind()->submit(s, job, id, e);
	if (rc == 0 && front.twin)
		str_copy(id, 64, "dead");
	return rc;
}

static int front_poll(struct sched_run *s, const char *const *ids, size_t n,
		      struct sched_status *out, struct err *e)
{
	int rc;

	if (front.ends_in_poll)
		clock_advance(front.ends_in_poll, 60 * 1000000);
	rc = behind()->poll(s, ids, n, out, e);
	for (size_t i = 0; i < n; i++)
		if (str_eq(ids[i], "dead")) {
			out[i].state = JOB_ENDED;
			out[i].end = END_FAILED;
		} else if (rc == 0 && front.unlaunched) {
			out[i].state = JOB_ENDED;
			out[i].end = END_LAUNCH_FAILED;
		} else if (rc == 0 && front.reused) {
			str_copy(out[i].token, sizeof out[i].token, "fettle:00000000:a1");
			out[i].state = JOB_RUNNING;
		}
	return rc;
}

static int front_find(struct sched_run *s, const char *token, struct sched_status *out,
		      struct err *e)
{
	if (front.no_find)
		return err_set(e, ERR_TEMP, "the controller does not answer");
	return front.absent ? 0 : behind()->find(s, token, out, e);
}

static int front_cancel(struct sched_run *s, const char *id, struct err *e)
{
	if (front.no_cancel)
		return err_set(e, ERR_TEMP, "the controller does not answer");
	front.cancels++;
	return behind()->cancel(s, id, e);
}

static int front_alive(struct sched_run *s, const char *prefix, struct sched_status **out,
		       size_t *n, struct err *e)
{
	(void)s, (void)e;
	assert_true(str_starts(prefix, "fettle:"));
	*out = xcalloc(ARRAY_LEN(front.risen), sizeof **out);
	for (*n = 0; *n < ARRAY_LEN(front.risen) && front.risen[*n]; (*n)++) {
		(*out)[*n] = (struct sched_status){.state = JOB_PENDING};
		snprintf((*out)[*n].id, sizeof(*out)[*n].id, "%zu", *n + 4711);
		str_copy((*out)[*n].token, sizeof(*out)[*n].token, front.risen[*n]);
	}
	return 0;
}

static struct campaign *open_front(struct world *w)
{
	static struct sched s;
	struct campaign_options o = {.sched = &s, .spec = "{\"fixed\": true}", .take_over = true};
	struct campaign *c = NULL;
	struct err e = {0};

	s = *behind();
	s.submit = front_submit;
	s.poll = front_poll;
	s.find = front_find;
	s.cancel = front_cancel;
	s.alive = front_alive;
	assert_ok(campaign_open(w->ws, w->id, &o, &c, &e));
	return c;
}

/* Step until the step waits for a job. */
static void step_to_wait(struct campaign *c)
{
	enum campaign_step step = CAMPAIGN_AGAIN;
	struct err e = {0};

	for (int i = 0; i < 100 && step == CAMPAIGN_AGAIN; i++)
		assert_ok(campaign_step(c, &step, &e));
	assert_int_equal(step, CAMPAIGN_WAIT);
}

static void step_once(struct campaign *c)
{
	enum campaign_step step;
	struct err e = {0};

	assert_ok(campaign_step(c, &step, &e));
}

static void wait_for_jobs(struct campaign *c, int seconds)
{
	struct err e = {0};

	for (int i = 0; i < seconds; i++)
		assert_ok(campaign_wait(c, 1000000, -1, &e));
}

static int64_t attempts(struct world *w, const char *state)
{
	_cleanup_free_ char *sql = xasprintf("SELECT count(*) FROM attempt WHERE state = '%s'",
					     state);

	return store_count(w->ws->db, sql);
}

static void start(struct world *w, struct front f)
{
	front = f;
	world_open(w, 1);
}

/* To the end with a scheduler that behaves; every attempt counts exactly once. */
static void finish(struct world *w)
{
	front = (struct front){0};
	run(w, "{\"fixed\": true}");
	assert_int_equal(state_of(w), CAMPAIGN_DONE);
	assert_int_equal(store_count(w->ws->db,
				     "SELECT max(n) FROM (SELECT count(*) AS n FROM attempt "
				     "WHERE state = 'valid' GROUP BY block)"),
			 1);
	assert_int_equal(attempts(w, "planned") + attempts(w, "submitted"), 0);
}

static void test_the_twin_of_a_dead_job_is_waited_for(void **state)
{
	struct campaign *c;
	struct world w;

	(void)state;
	start(&w, (struct front){.twin = true});
	c = open_front(&w);
	step_to_wait(c);
	step_to_wait(c);
	assert_int_equal(attempts(&w, "submitted"), 1);
	wait_for_jobs(c, 30);
	step_to_wait(c);
	assert_int_equal(attempts(&w, "valid"), 1);
	assert_int_equal(attempts(&w, "lost"), 0);
	assert_int_equal(attempts(&w, "void"), 0);
	campaign_close(c);
	world_close(&w);
}

static void test_a_cancel_reaches_the_twin_too(void **state)
{
	struct campaign *c;
	struct world w;
	struct err e = {0};

	(void)state;
	start(&w, (struct front){.twin = true});
	c = open_front(&w);
	step_to_wait(c);
	assert_ok(campaign_cancel(c, "stopped", &e));
	assert_int_equal(front.cancels, 2);
	assert_int_equal(attempts(&w, "void"), 1);
	campaign_close(c);
	finish(&w);
	world_close(&w);
}

/* slurmctld was killed, lost its last state and gave the number out again. */
static void test_a_number_that_is_another_jobs_is_not_waited_for(void **state)
{
	struct campaign *c;
	struct world w;
	struct err e = {0};

	(void)state;
	start(&w, (struct front){0});
	c = open_front(&w);
	step_to_wait(c);
	front.reused = true;
	step_once(c);
	assert_int_equal(attempts(&w, "lost"), 1);
	assert_int_equal(store_count(w.ws->db,
				     "SELECT count(*) FROM allocation WHERE outcome = 'vanished'"),
			 1);
	/* nor is the other one cancelled */
	front.reused = false;
	step_to_wait(c);
	front.reused = true;
	assert_ok(campaign_cancel(c, "stopped", &e));
	assert_int_equal(front.cancels, 0);
	campaign_close(c);
	finish(&w);
	world_close(&w);
}

/* slurmctld was killed and took up a job again that had ended; another campaign's job is not ours.
 */
static void test_a_job_that_rose_again_is_ended_with_the_campaign(void **state)
{
	enum campaign_step step = CAMPAIGN_AGAIN;
	_cleanup_free_ char *token = NULL, *text = NULL;
	struct campaign *c;
	struct world w;
	struct err e = {0};

	(void)state;
	start(&w, (struct front){0});
	c = open_front(&w);
	step_to_wait(c);
	token = store_text(w.ws->db, "SELECT token FROM allocation WHERE id = 1");
	front.risen[0] = "fettle:00000000:a1";
	front.risen[1] = token;
	for (int i = 0; i < 100000 && step != CAMPAIGN_OVER; i++) {
		assert_ok(campaign_step(c, &step, &e));
		if (step == CAMPAIGN_WAIT)
			wait_for_jobs(c, 30);
	}
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_int_equal(front.cancels, 1);
	text = store_text(w.ws->db, "SELECT text FROM event WHERE kind = 'cancel'");
	assert_contains(text, "job 4712");
	assert_contains(text, "lives on though its blocks are done");
	campaign_close(c);
	world_close(&w);
}

/* A job that cannot be cancelled still has its owner: the attempt, which the resume adopts. */
static void test_what_cannot_be_cancelled_stays_in_flight(void **state)
{
	struct campaign *c;
	struct world w;
	struct err e = {0};
	int before;

	(void)state;
	start(&w, (struct front){.no_cancel = true});
	c = open_front(&w);
	step_to_wait(c);
	assert_ok(campaign_cancel(c, "stopped", &e));
	campaign_close(c);
	assert_int_equal(state_of(&w), CAMPAIGN_STOPPED);
	assert_int_equal(attempts(&w, "submitted"), 1);
	assert_int_equal(store_count(w.ws->db, "SELECT count(*) FROM event WHERE kind = 'cancel'"),
			 1);
	before = front.submits;
	c = open_front(&w);
	wait_for_jobs(c, 30);
	step_to_wait(c);
	assert_int_equal(attempts(&w, "valid"), 1);
	assert_int_equal(attempts(&w, "void"), 0);
	assert_int_equal(front.submits, before + 1);
	campaign_close(c);
	finish(&w);
	world_close(&w);
}

/* Killed between the submit and its note, and the scheduler cannot be asked for the token. */
static void test_what_cannot_be_found_stays_in_flight(void **state)
{
	struct campaign *c;
	struct world w;
	struct err e = {0};

	(void)state;
	start(&w, (struct front){0});
	c = open_front(&w);
	step_to_wait(c);
	campaign_close(c);
	assert_int_equal(store_exec(w.ws->db, "UPDATE allocation SET job_id = NULL"), 0);
	assert_int_equal(store_exec(w.ws->db, "UPDATE attempt SET state = 'planned'"), 0);
	front.no_find = true;
	c = open_front(&w);
	assert_ok(campaign_cancel(c, "stopped", &e));
	campaign_close(c);
	assert_int_equal(attempts(&w, "planned"), 1);
	front.no_find = false;
	c = open_front(&w);
	step_to_wait(c);
	assert_int_equal(front.submits, 1); /* found again, not started again */
	assert_int_equal(attempts(&w, "submitted"), 1);
	campaign_close(c);
	finish(&w);
	world_close(&w);
}

static void test_a_cancel_keeps_what_is_done_already(void **state)
{
	struct campaign *c;
	struct world w;
	struct err e = {0};

	(void)state;
	start(&w, (struct front){0});
	c = open_front(&w);
	step_to_wait(c);
	wait_for_jobs(c, 30);
	assert_ok(campaign_cancel(c, "stopped", &e));
	assert_int_equal(attempts(&w, "valid"), 1);
	assert_int_equal(attempts(&w, "void"), 0);
	campaign_close(c);
	finish(&w);
	world_close(&w);
}

/* The manifest was not there at the first look, and the job had ended when it was asked for. */
static void test_results_that_come_in_the_last_moment_count(void **state)
{
	struct campaign *c;
	struct world w;

	(void)state;
	start(&w, (struct front){0});
	c = open_front(&w);
	step_to_wait(c);
	front.ends_in_poll = &w.time;
	for (int i = 0; i < 20; i++)
		step_once(c);
	assert_true(attempts(&w, "valid") > 1);
	assert_int_equal(attempts(&w, "lost") + attempts(&w, "void"), 0);
	campaign_close(c);
	finish(&w);
	world_close(&w);
}

/* An attempt that was planned and never submitted is submitted by its owner only. */
static void test_an_owner_that_was_taken_over_submits_nothing(void **state)
{
	struct lease other = {.host = "elsewhere", .pid = 4711};
	enum campaign_step step;
	struct campaign *c;
	struct world w;
	struct err e = {0};

	(void)state;
	start(&w, (struct front){.put_off = 100, .absent = true});
	c = open_front(&w);
	step_to_wait(c);
	front.put_off = front.submits = 0;
	other.heartbeat_us = w.time.utc_us;
	assert_ok(query_lease_take(w.ws->db, w.id, &other, 0, true, &e));
	assert_int_equal(campaign_step(c, &step, &e), -ERR_STATE);
	assert_int_equal(front.submits, 0);
	campaign_close(c);
	world_close(&w);
}

/* Nor does it cancel what is no longer its own. */
static void test_an_owner_that_was_taken_over_cancels_nothing(void **state)
{
	struct lease other = {.host = "elsewhere", .pid = 4711};
	struct campaign *c;
	struct world w;
	struct err e = {0};

	(void)state;
	start(&w, (struct front){0});
	c = open_front(&w);
	step_to_wait(c);
	other.heartbeat_us = w.time.utc_us;
	assert_ok(query_lease_take(w.ws->db, w.id, &other, 0, true, &e));
	assert_int_equal(campaign_cancel(c, "stopped", &e), -ERR_STATE);
	assert_int_equal(front.cancels, 0);
	campaign_close(c);
	world_close(&w);
}

/* The next try comes after a wait, and only the first one is written down. */
static void test_a_submit_that_is_put_off_is_tried_again(void **state)
{
	struct campaign *c;
	struct world w;

	(void)state;
	start(&w, (struct front){.put_off = 5});
	c = open_front(&w);
	for (int i = 1; i <= 4; i++) {
		step_to_wait(c);
		assert_int_equal(attempts(&w, "planned"), 1);
		assert_int_equal(front.submits, i + 1);
	}
	step_to_wait(c);
	assert_int_equal(attempts(&w, "submitted"), 1);
	assert_int_equal(store_count(w.ws->db, "SELECT count(*) FROM event WHERE kind = 'submit'"),
			 1);
	campaign_close(c);
	finish(&w);
	world_close(&w);
}

/* What Slurm says of a failed prolog it can also say of a job cancelled while it ran: only where no
 * agent had claimed the attempt was the launch what failed. */
static void a_job_that_looks_unlaunched_is(bool claimed, const char *end)
{
	_cleanup_free_ char *dir = NULL, *path = NULL, *told = NULL;
	enum campaign_step step;
	struct campaign *c;
	struct world w;
	struct err e = {0};

	start(&w, (struct front){0});
	c = open_front(&w);
	step_to_wait(c);
	dir = store_text(w.ws->db, "SELECT dir FROM attempt WHERE state = 'submitted'");
	path = xasprintf("%s/%s/claim.json", w.dir, dir);
	if (claimed)
		assert_ok(fs_write_atomic(path, "{}", 2, 0600, &e));
	front.unlaunched = true;
	assert_ok(campaign_step(c, &step, &e));
	assert_int_equal(attempts(&w, "void"), 1);
	told = store_text(w.ws->db, "SELECT outcome FROM allocation ORDER BY id LIMIT 1");
	assert_string_equal(told, end);
	campaign_close(c);
	finish(&w);
	world_close(&w);
}

static void test_a_claim_tells_a_cancelled_job_from_a_failed_launch(void **state)
{
	(void)state;
	a_job_that_looks_unlaunched_is(false, "launch_failed");
	a_job_that_looks_unlaunched_is(true, "cancelled");
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_the_twin_of_a_dead_job_is_waited_for),
		cmocka_unit_test(test_a_cancel_reaches_the_twin_too),
		cmocka_unit_test(test_a_number_that_is_another_jobs_is_not_waited_for),
		cmocka_unit_test(test_a_job_that_rose_again_is_ended_with_the_campaign),
		cmocka_unit_test(test_what_cannot_be_cancelled_stays_in_flight),
		cmocka_unit_test(test_what_cannot_be_found_stays_in_flight),
		cmocka_unit_test(test_a_cancel_keeps_what_is_done_already),
		cmocka_unit_test(test_a_submit_that_is_put_off_is_tried_again),
		cmocka_unit_test(test_results_that_come_in_the_last_moment_count),
		cmocka_unit_test(test_a_claim_tells_a_cancelled_job_from_a_failed_launch),
		cmocka_unit_test(test_an_owner_that_was_taken_over_submits_nothing),
		cmocka_unit_test(test_an_owner_that_was_taken_over_cancels_nothing),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
