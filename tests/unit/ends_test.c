/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What follows from each end of a job: the table of orchestrator/slurm/STATES.md is the code's, and
 * a campaign does what the table says. Scheduler fake behind a front that lets its jobs end as a
 * test wants.
 */
#include "tests/unit/world.h"

#include <stdlib.h>

#include "orchestrator/method/method.h"
#include "orchestrator/sched/slurm_state.h"
#include "tests/unit/store.h"

#define DOC "orchestrator/slurm/STATES.md"

/* -- the document ------------------------------------------------------------------------------ */

/* What Slurm may say, with the raw facts that the decoder must turn into the end of that row. */
static const struct said {
	enum job_end end;
	const char *words;
	struct slurm_raw raw;
	bool by_us; /* not decoded: the campaign's own doing, or an answer without a record */
} said[] = {
	{END_OK, "COMPLETED", {.state = 0x3}, false},
	{END_FAILED, "FAILED", {.state = 0x5, .reason = 24, .exit = 0x300}, false},
	{END_TIMEOUT, "TIMEOUT", {.state = 0x6, .reason = 25}, false},
	{END_CANCELLED, "CANCELLED, while it waited or ran", {.state = 0x4, .exit = 0xf}, false},
	{END_NODE_FAIL, "NODE_FAIL, BOOT_FAIL", {.state = 0x7, .reason = 20}, false},
	{END_PREEMPTED, "PREEMPTED", {.state = 0x8}, false},
	{END_OOM, "OUT_OF_MEMORY, or FAILED by signal 125", {.state = 0xb, .reason = 181}, false},
	{END_REQUEUED,
	 "any state with a restart count or a requeue flag (an admin, or PreemptMode=REQUEUE); it "
	 "is taken out of the queue",
	 {.state = 0, .restarts = 1},
	 false},
	{END_LAUNCH_FAILED,
	 "FAILED (JobLaunchFailure), or CANCELLED right after the start by nobody (a prolog that "
	 "fails)",
	 {.state = 0x4, .nodes = "n1", .start_s = 5, .end_s = 5},
	 false},
	{END_DEADLINE, "DEADLINE", {.state = 0xa, .reason = 180}, false},
	{END_NEVER_STARTED, "PENDING for a reason that does not clear; see below", {0}, true},
	{END_VANISHED, "nothing: slurmctld does not know the job", {0}, true},
};

static void put_row(struct buf *b, const struct said *s)
{
	const struct end_rule *r = end_rule_of(s->end);

	assert_non_null(r);
	buf_printf(b, "| `%s` | %s | %s | %s | %s | %d | %s |\n", job_end_name(s->end), s->words,
		   r->voids ? "void" : "lost", r->counts ? "yes" : "no",
		   r->blames_nodes ? "yes" : "no", r->stop_after, r->advice);
}

static void test_the_document_is_the_code(void **state)
{
	struct buf want = {0}, doc = {0};
	struct err e = {0};

	(void)state;
	assert_int_equal(ARRAY_LEN(said), JOB_ENDS - 1); /* all but "none" */
	for (size_t i = 0; i < ARRAY_LEN(said); i++)
		put_row(&want, &said[i]);
	assert_ok(fs_read(DOC, 1 << 20, &doc, &e));
	if (!strstr(doc.data, want.data)) {
		fputs(want.data, stderr);
		fail_msg("%s must hold these rows", DOC);
	}
	buf_free(&want);
	buf_free(&doc);
}

static void test_slurm_s_words_give_these_ends(void **state)
{
	struct sched_status st;
	bool queued;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(said); i++) {
		if (said[i].by_us)
			continue;
		slurm_state_decode(&said[i].raw, &st, &queued);
		assert_string_equal(job_end_name(st.end), job_end_name(said[i].end));
		assert_int_equal(job_end_is_infrastructure(st.end), end_rule_of(st.end)->voids);
	}
}

/* -- a front that ends jobs ---------------------------------------------------------------------
 */

static struct front {
	enum job_end end;     /* of every job while `left` > 0 */
	enum job_state state; /* JOB_ENDED, JOB_GONE, JOB_PENDING, JOB_RUNNING */
	enum pending_for pending;
	const char *reason;
	int left; /* jobs that end so; the others are left to fake */
	bool suspended;
	char hit[16][64]; /* their ids */
	int n_hit;
	int cancels;
	char exclude[256]; /* of the last submit */
} front;

static const struct sched *behind(void)
{
	return sched_find("fake");
}

static int front_submit(struct sched_run *s, const struct sched_job *job, char id[64],
			struct err *e)
{
	int rc = behind()->submit(s, job, id, e);

	str_copy(front.exclude, sizeof front.exclude, job->exclude ? job->exclude : "");
	if (rc == 0 && front.left > 0) {
		front.left--;
		str_copy(front.hit[front.n_hit++ % 16], 64, id);
		/* It never gets as far as to write anything. */
		if (front.state != JOB_RUNNING)
			(void)behind()->cancel(s, id, e);
	}
	return rc;
}

static bool is_hit(const char *id)
{
	for (int i = 0; i < 16; i++)
		if (str_eq(front.hit[i], id))
			return true;
	return false;
}

static int front_poll(struct sched_run *s, const char *const *ids, size_t n,
		      struct sched_status *out, struct err *e)
{
	int rc = behind()->poll(s, ids, n, out, e);

	for (size_t i = 0; i < n; i++) {
		if (!is_hit(ids[i]))
			continue;
		out[i].suspended = front.suspended;
		if (front.state == JOB_RUNNING)
			continue;
		out[i].state = front.state;
		out[i].end = front.state == JOB_ENDED ? front.end : END_NONE;
		out[i].pending = front.pending;
		str_copy(out[i].reason, sizeof out[i].reason, front.reason ? front.reason : "");
	}
	return rc;
}

static int front_cancel(struct sched_run *s, const char *id, struct err *e)
{
	front.cancels++;
	return behind()->cancel(s, id, e);
}

/* A dead job is not found by its token as a twin. */
static int front_find(struct sched_run *s, const char *token, struct sched_status *out,
		      struct err *e)
{
	return behind()->find(s, token, out, e);
}

static void drive_front(struct world *w, const char *spec, int steps)
{
	static struct sched s;
	struct campaign_options o = {.sched = &s, .spec = spec, .take_over = true};
	enum campaign_step step = CAMPAIGN_AGAIN;
	struct campaign *c = NULL;
	struct err e = {0};

	s = *behind();
	s.submit = front_submit;
	s.poll = front_poll;
	s.cancel = front_cancel;
	s.find = front_find;
	assert_ok(campaign_open(w->ws, w->id, &o, &c, &e));
	for (int i = 0; i < steps && step != CAMPAIGN_OVER; i++) {
		assert_ok(campaign_step(c, &step, &e));
		if (step == CAMPAIGN_WAIT)
			assert_ok(campaign_wait(c, 5 * 1000000, -1, &e));
		if (step == CAMPAIGN_WAIT && front.state == JOB_PENDING)
			clock_advance(&w->time, 1000000);
	}
	campaign_close(c);
}

static int64_t count(struct world *w, const char *sql)
{
	return store_count(w->ws->db, sql);
}

#define FIXED "{\"fixed\": true, \"nodes\": 4, \"sd_node\": 0}"

/* Every end, one after the other: one such job is run again and the campaign is done; as many in a
 * row as the table says stop it. */
static void test_each_end_has_its_consequence(void **state)
{
	(void)state;
	for (int i = 1; i < JOB_ENDS; i++) {
		const struct end_rule *r = end_rule_of((enum job_end)i);
		struct front f = {.state = r->end == END_VANISHED ? JOB_GONE : JOB_ENDED,
				  .end = r->end,
				  .left = 1};
		_cleanup_free_ char *attempts = NULL, *reason = NULL;
		struct world w;

		if (r->end == END_NEVER_STARTED)
			continue;
		print_message("# %s\n", job_end_name(r->end));
		front = f;
		world_open(&w, 1);
		drive_front(&w, FIXED, 100000);
		assert_int_equal(state_of(&w), CAMPAIGN_DONE);
		attempts = store_text(w.ws->db,
				      "SELECT group_concat(state) FROM (SELECT state FROM "
				      "attempt ORDER BY id LIMIT 2)");
		assert_string_equal(attempts, r->voids ? "void,valid" : "lost,valid");
		assert_int_equal(count(&w, "SELECT count(*) FROM event WHERE kind IN ('void', "
					   "'lost')"),
				 1);
		world_close(&w);

		front = f;
		front.left = 1000;
		world_open(&w, 1);
		drive_front(&w, FIXED, 100000);
		assert_int_equal(state_of(&w), CAMPAIGN_STOPPED);
		assert_int_equal(count(&w, "SELECT count(*) FROM attempt"), r->stop_after);
		reason = store_text(w.ws->db, "SELECT reason FROM campaign");
		assert_contains(reason, job_end_name(r->end));
		assert_contains(reason, r->advice);
		assert_int_equal(count(&w, "SELECT count(*) FROM event WHERE kind = 'stopped'"), 1);
		/* not counted: still the first block */
		if (!r->counts)
			assert_int_equal(count(&w, "SELECT count(*) FROM block"), 1);
		/* resumed on a mended cluster it goes on to its end */
		front = (struct front){0};
		drive_front(&w, FIXED, 100000);
		assert_int_equal(state_of(&w), CAMPAIGN_DONE);
		world_close(&w);
	}
}

static void test_a_node_with_two_faults_is_left_out(void **state)
{
	struct world w;

	(void)state;
	front = (struct front){.state = JOB_ENDED, .end = END_NODE_FAIL, .left = 3};
	world_open(&w, 1);
	drive_front(&w, "{\"fixed\": true, \"nodes\": 2}", 100000);
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	/* n1 was the first and the third */
	assert_string_equal(front.exclude, "n1");
	assert_int_equal(count(&w, "SELECT count(*) FROM event WHERE kind = 'node' AND text LIKE "
				   "'node n1 is left out%'"),
			 1);
	world_close(&w);
}

/* -- jobs that wait ------------------------------------------------------------------------------
 */

static void test_a_reason_that_never_clears(void **state)
{
	_cleanup_free_ char *reason = NULL;
	struct world w;

	(void)state;
	front = (struct front){.state = JOB_PENDING,
			       .pending = PENDING_NEVER,
			       .reason = "PartitionNodeLimit",
			       .left = 1000};
	world_open(&w, 1);
	drive_front(&w, FIXED, 100000);
	assert_int_equal(state_of(&w), CAMPAIGN_STOPPED);
	reason = store_text(w.ws->db, "SELECT reason FROM campaign");
	assert_contains(reason, "never_started (PartitionNodeLimit)");
	assert_int_equal(front.cancels, 1);
	assert_int_equal(count(&w, "SELECT count(*) FROM attempt WHERE state = 'void'"), 1);
	assert_true(w.time.utc_us - 1800000000000000 >= 20 * 1000000); /* not at the first look */
	world_close(&w);
}

/* Patience is kept over restarts: a fettle that only ticks gives up at the same time. */
static void test_held_jobs_are_given_up_after_the_bound(void **state)
{
	int64_t start;
	struct world w;

	(void)state;
	front = (struct front){.state = JOB_PENDING,
			       .pending = PENDING_HELD,
			       .reason = "JobHeldUser",
			       .left = 1000};
	world_open_with(&w, 1, "budget = { stuck_min = 10 }");
	start = w.time.utc_us;
	for (int i = 0; i < 6; i++) {
		drive_front(&w, FIXED, 5);
		clock_advance(&w.time, 60 * 1000000);
		assert_int_equal(front.cancels, 0);
	}
	assert_int_equal(count(&w, "SELECT count(*) FROM event WHERE kind = 'waits'"), 1);
	drive_front(&w, FIXED, 100000);
	assert_int_equal(state_of(&w), CAMPAIGN_STOPPED);
	assert_int_equal(front.cancels, 1);
	assert_true(w.time.utc_us - start >= (int64_t)600 * 1000000);
	assert_true(w.time.utc_us - start < (int64_t)700 * 1000000);
	world_close(&w);
}

/* Released in time it runs, and nothing was lost. */
static void test_a_released_job_is_no_fault(void **state)
{
	struct world w;

	(void)state;
	front = (struct front){
		.state = JOB_PENDING, .pending = PENDING_HELD, .reason = "JobHeldUser", .left = 1};
	world_open(&w, 1);
	drive_front(&w, FIXED, 20);
	assert_int_equal(state_of(&w), CAMPAIGN_RUNNING);
	front.pending = PENDING_TURN;
	drive_front(&w, FIXED, 20);
	assert_int_equal(count(&w, "SELECT count(*) FROM event WHERE text LIKE '%waits for its "
				   "turn'"),
			 1);
	assert_int_equal(count(&w, "SELECT count(*) FROM attempt WHERE state IN ('void', 'lost')"),
			 0);
	world_close(&w);
}

static void test_a_suspended_job_does_not_count(void **state)
{
	_cleanup_free_ char *attempts = NULL;
	struct world w;

	(void)state;
	front = (struct front){.state = JOB_RUNNING, .suspended = true, .left = 1};
	world_open(&w, 1);
	drive_front(&w, FIXED, 100000);
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	attempts = store_text(w.ws->db,
			      "SELECT group_concat(state) FROM (SELECT state FROM attempt "
			      "ORDER BY id LIMIT 2)");
	assert_string_equal(attempts, "void,valid");
	assert_int_equal(count(&w, "SELECT count(*) FROM event WHERE kind = 'waits' AND text LIKE "
				   "'%was suspended'"),
			 1);
	world_close(&w);
}

static void test_words_of_pending_jobs(void **state)
{
	static const struct {
		const char *words;
		enum pending_for want;
	} v[] = {
		{"Resources", PENDING_TURN},
		{"Priority", PENDING_TURN},
		{"BeginTime", PENDING_TURN},
		{"Dependency", PENDING_TURN},
		{"", PENDING_TURN},
		{NULL, PENDING_TURN},
		{"QOSMaxJobsPerUserLimit", PENDING_TURN},
		{"AssocGrpNodeLimit", PENDING_TURN},
		{"Reservation", PENDING_TURN},
		{"Nodes", PENDING_TURN},
		{"JobHeldUser", PENDING_HELD},
		{"JobHeldAdmin", PENDING_HELD},
		{"launch failed requeued held", PENDING_HELD},
		{"ReqNodeNotAvail, UnavailableNodes:n2", PENDING_NODES},
		{"ReqNodeNotAvail(Unavailable:n2)", PENDING_NODES},
		{"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority "
		 "partitions",
		 PENDING_NODES},
		{"PartitionDown", PENDING_NODES},
		{"BadConstraints", PENDING_NEVER},
		{"PartitionNodeLimit", PENDING_NEVER},
		{"PartitionTimeLimit", PENDING_NEVER},
		{"InvalidQOS", PENDING_NEVER},
		{"InvalidAccount", PENDING_NEVER},
		{"DependencyNeverSatisfied", PENDING_NEVER},
		{"QOSMaxNodePerJobLimit", PENDING_NEVER},
		{"AssocMaxWallDurationPerJobLimit", PENDING_NEVER},
		{"QOSMinGRES", PENDING_NEVER},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		if (slurm_state_pending_for(v[i].words) != v[i].want)
			fail_msg("%s waits for %s", v[i].words ? v[i].words : "NULL",
				 pending_for_name(slurm_state_pending_for(v[i].words)));
}

/* -- what was complete before a preemption -------------------------------------------------------
 */

static int64_t trials_of(struct world *w, const char *where)
{
	_cleanup_free_ char *sql = xasprintf(
		"SELECT count(*) FROM trial t JOIN attempt a ON a.id = "
		"t.attempt WHERE %s",
		where);

	return count(w, sql);
}

/* Blocks of a warm-up and two arms four times: half of the slots hold one complete pass and a half.
 */
static void test_complete_pairs_of_a_preempted_attempt_are_kept(void **state)
{
	_cleanup_free_ char *text = NULL, *log = NULL, *path = NULL;
	struct world w;

	(void)state;
	front = (struct front){0};
	world_open_with(&w, 1, "repeats = 4, warmup_trials = 1, blocks = { aa = 6 }");
	run(&w, "{\"fixed\": true, \"by_job\": true, \"faults\": {\"preempted\": 0.3}}");
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_true(count(&w, "SELECT count(*) FROM allocation WHERE outcome = 'preempted'") > 0);
	/* a preempted attempt is void; what it had complete is a block of the same allocation */
	assert_int_equal(count(&w,
			       "SELECT count(*) FROM allocation l WHERE l.outcome = 'preempted' "
			       "AND (SELECT group_concat(state) FROM (SELECT a.state FROM attempt "
			       "a WHERE a.allocation = l.id ORDER BY a.id)) NOT IN ('void,valid', "
			       "'void')"),
			 0);
	assert_true(count(&w,
			  "SELECT count(*) FROM attempt a JOIN allocation l ON l.id = "
			  "a.allocation WHERE l.outcome = 'preempted' AND a.state = 'valid'") > 0);
	/* each arm the same number of times, and each pass whole */
	assert_int_equal(count(&w,
			       "SELECT count(*) FROM (SELECT a.id FROM attempt a JOIN trial t ON "
			       "t.attempt = a.id JOIN allocation l ON l.id = a.allocation WHERE "
			       "l.outcome = 'preempted' AND a.state = 'valid' AND t.kind = 'timed' "
			       "GROUP BY a.id, t.repeat HAVING count(DISTINCT t.arm) < 2)"),
			 0);
	assert_int_equal(trials_of(&w, "a.state <> 'valid'"), 0);
	text = store_text(w.ws->db, "SELECT text FROM event WHERE kind = 'void' AND text LIKE "
				    "'%kept as block%' LIMIT 1");
	assert_contains(text, "preempted");
	/* the log of a kept trial is where the report says */
	log = store_text(w.ws->db,
			 "SELECT t.log_path FROM trial t JOIN attempt a ON a.id = t.attempt "
			 "JOIN allocation l ON l.id = a.allocation WHERE l.outcome = "
			 "'preempted' LIMIT 1");
	path = fs_join(w.dir, log);
	assert_true(fs_exists(path));
	world_close(&w);
}

/* One pass a block: nothing is complete, nothing is kept. */
static void test_nothing_is_kept_of_half_a_pass(void **state)
{
	struct world w;

	(void)state;
	front = (struct front){0};
	world_open_with(&w, 1, "repeats = 1, blocks = { aa = 6 }");
	run(&w, "{\"fixed\": true, \"by_job\": true, \"faults\": {\"preempted\": 0.3}}");
	assert_int_equal(state_of(&w), CAMPAIGN_DONE);
	assert_true(count(&w, "SELECT count(*) FROM allocation WHERE outcome = 'preempted'") > 0);
	assert_int_equal(count(&w,
			       "SELECT count(*) FROM attempt a JOIN allocation l ON l.id = "
			       "a.allocation WHERE l.outcome = 'preempted' AND a.state = 'valid'"),
			 0);
	world_close(&w);
}

/* Every node second is in the account once, whatever went wrong. */
static void test_the_account_sums_up(void **state)
{
	struct account_row *v = NULL;
	struct cost_row cost;
	struct err e = {0};
	double sum = 0;
	struct world w;
	size_t n = 0;

	(void)state;
	front = (struct front){0};
	world_open_with(&w, 1, "repeats = 4, warmup_trials = 1, blocks = { aa = 6 }");
	run(&w, "{\"fixed\": true, \"by_job\": true, \"nodes\": 4, \"at_once\": 2, \"faults\": "
		"{\"preempted\": 0.1, \"node_fail\": 0.1, \"void\": 0.05, \"failed_trial\": "
		"0.05}}");
	assert_ok(query_account(w.ws->db, w.id, &v, &n, &e));
	assert_ok(query_cost(w.ws->db, w.id, &cost, &e));
	for (size_t i = 0; i < n; i++) {
		print_message("# %s: %d, %.0f s\n", v[i].kind, (int)v[i].allocations, v[i].node_s);
		assert_true(v[i].node_s >= 0);
		sum += v[i].node_s;
	}
	assert_true(n >= 5);
	assert_true(fabs(sum - cost.node_s) < 1e-6 * cost.node_s);
	account_rows_free(v, n);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_the_document_is_the_code),
		cmocka_unit_test(test_slurm_s_words_give_these_ends),
		cmocka_unit_test(test_each_end_has_its_consequence),
		cmocka_unit_test(test_a_node_with_two_faults_is_left_out),
		cmocka_unit_test(test_a_reason_that_never_clears),
		cmocka_unit_test(test_held_jobs_are_given_up_after_the_bound),
		cmocka_unit_test(test_a_released_job_is_no_fault),
		cmocka_unit_test(test_a_suspended_job_does_not_count),
		cmocka_unit_test(test_words_of_pending_jobs),
		cmocka_unit_test(test_complete_pairs_of_a_preempted_attempt_are_kept),
		cmocka_unit_test(test_nothing_is_kept_of_half_a_pass),
		cmocka_unit_test(test_the_account_sums_up),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
