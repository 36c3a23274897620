/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/sched/slurm_state.h"

/* What slurmctld 22.05 and 24.11 were seen to say of each way in which a job can be or end. */
static const struct row {
	const char *what;
	/* what slurmctld says */
	uint32_t state, reason;
	const char *reason_text;
	int exit;
	uint32_t restarts;
	const char *nodes;
	int start_s, end_s;
	/* what it means */
	enum job_state want_state;
	enum job_end want_end;
	int want_exit;
	const char *want_reason;
	bool want_queued;
} rows[] = {
	{"waits", 0x0, 3, "Resources", 0, 0, "", 99, 0, JOB_PENDING, END_NONE, 0, "Resources",
	 false},
	{"waits, no reason yet", 0x0, 0, "None", 0, 0, "", 0, 0, JOB_PENDING, END_NONE, 0, "",
	 false},
	{"bit 0x200 means nothing", 0x200, 0, "None", 0, 0, "", 0, 0, JOB_PENDING, END_NONE, 0, "",
	 false},
	{"node boots", 0x4001, 0, NULL, 0, 0, "", 9, 0, JOB_PENDING, END_NONE, 0, "CONFIGURING",
	 false},
	{"runs", 0x1, 0, NULL, 0, 0, "n1", 9, 0, JOB_RUNNING, END_NONE, 0, "", false},
	{"suspended", 0x2, 0, NULL, 0, 0, "n1", 9, 0, JOB_RUNNING, END_NONE, 0, "SUSPENDED", false},
	{"ok", 0x3, 0, "None", 0, 0, "", 9, 10, JOB_ENDED, END_OK, 0, "COMPLETED", false},
	{"ok, not yet cleaned up", 0x8003, 0, "None", 0, 0, "", 0, 0, JOB_RUNNING, END_NONE, 0,
	 "COMPLETED+COMPLETING", false},
	{"exit 3", 0x5, 24, "NonZeroExitCode", 0x300, 0, "", 0, 0, JOB_ENDED, END_FAILED, 3,
	 "FAILED (NonZeroExitCode)", false},
	{"exit 3, completing", 0x8005, 24, NULL, 0x300, 0, "", 0, 0, JOB_RUNNING, END_NONE, 0,
	 "FAILED+COMPLETING", false},
	{"signal 9 in 22.05", 0x5, 23, "JobLaunchFailure", 9, 0, "n1", 0, 0, JOB_ENDED, END_FAILED,
	 137, "FAILED (JobLaunchFailure)", false},
	{"signal 11 in 24.11", 0x5, 33, "RaisedSignal", 11, 0, "", 0, 0, JOB_ENDED, END_FAILED, 139,
	 "FAILED (RaisedSignal)", false},
	{"launch failure", 0x5, 23, "JobLaunchFailure", 0x100, 0, "", 0, 0, JOB_ENDED,
	 END_LAUNCH_FAILED, 1, "FAILED (JobLaunchFailure)", false},
	{"launch failed bit", 0x105, 0, NULL, 0x100, 0, "", 0, 0, JOB_ENDED, END_LAUNCH_FAILED, 1,
	 "FAILED", false},
	{"time limit", 0x6, 25, "TimeLimit", 0x9, 0, "", 0, 0, JOB_ENDED, END_TIMEOUT, 137,
	 "TIMEOUT (TimeLimit)", false},
	{"time limit, completing", 0x8006, 25, "TimeLimit", 0, 0, "", 0, 0, JOB_RUNNING, END_NONE,
	 0, "TIMEOUT+COMPLETING (TimeLimit)", false},
	{"cancelled while it ran", 0x4, 0, "None", 0xf, 0, "n1", 5, 5, JOB_ENDED, END_CANCELLED,
	 143, "CANCELLED", false},
	{"cancelled while it waited", 0x4, 0, "None", 0, 0, "", 5, 5, JOB_ENDED, END_CANCELLED, 0,
	 "CANCELLED", false},
	{"prolog failed after a while", 0x4, 0, "None", 0, 0, "n1", 5, 47, JOB_ENDED,
	 END_LAUNCH_FAILED, 0, "CANCELLED", false},
	{"prolog failed", 0x4, 0, "None", 0, 0, "n1", 5, 5, JOB_ENDED, END_LAUNCH_FAILED, 0,
	 "CANCELLED", false},
	{"node down", 0x7, 20, "NodeDown", 0xf, 0, "", 0, 0, JOB_ENDED, END_NODE_FAIL, 143,
	 "NODE_FAIL (NodeDown)", false},
	{"boot failed", 0x9, 0, NULL, 0, 0, "", 0, 0, JOB_ENDED, END_NODE_FAIL, 0, "BOOT_FAIL",
	 false},
	{"node down and requeued", 0x0, 9, "BeginTime", 0, 1, "", 0, 0, JOB_ENDED, END_REQUEUED, 0,
	 "PENDING (BeginTime)", true},
	{"requeueing", 0x8400, 0, NULL, 0, 0, "", 0, 0, JOB_ENDED, END_REQUEUED, 0,
	 "PENDING+COMPLETING", true},
	{"requeued and held", 0x800, 0, NULL, 0, 0, "", 0, 0, JOB_ENDED, END_REQUEUED, 0, "PENDING",
	 true},
	{"special exit", 0x1005, 0, NULL, 0x100, 0, "", 0, 0, JOB_ENDED, END_REQUEUED, 1, "FAILED",
	 false},
	{"ran again", 0x1, 0, NULL, 0, 1, "n2", 0, 0, JOB_ENDED, END_REQUEUED, 0, "RUNNING", true},
	{"ran again to its end", 0x3, 0, NULL, 0, 2, "", 0, 0, JOB_ENDED, END_REQUEUED, 0,
	 "COMPLETED", false},
	{"preempted", 0x8, 0, NULL, 0, 0, "", 0, 0, JOB_ENDED, END_PREEMPTED, 0, "PREEMPTED",
	 false},
	{"preempted, in its grace time", 0x8008, 0, NULL, 0, 0, "", 0, 0, JOB_RUNNING, END_NONE, 0,
	 "PREEMPTED+COMPLETING", false},
	{"deadline passed in the queue", 0xa, 180, "DeadLine", 0, 0, "", 0, 0, JOB_ENDED,
	 END_DEADLINE, 0, "DEADLINE (DeadLine)", false},
	{"out of memory, cgroup", 0xb, 181, "OutOfMemory", 0xfd, 0, "", 0, 0, JOB_ENDED, END_OOM,
	 253, "OUT_OF_MEMORY (OutOfMemory)", false},
	{"out of memory, state FAILED", 0x5, 0, NULL, 0xfd, 0, "", 0, 0, JOB_ENDED, END_OOM, 253,
	 "FAILED", false},
	{"a state of the future", 0xc, 0, NULL, 0, 0, "", 0, 0, JOB_UNKNOWN, END_NONE, 0,
	 "unknown state", false},
};

static struct slurm_raw raw_of(const struct row *r)
{
	return (struct slurm_raw){.state = r->state,
				  .reason = r->reason,
				  .reason_text = r->reason_text,
				  .exit = r->exit,
				  .restarts = r->restarts,
				  .nodes = r->nodes,
				  .start_s = r->start_s,
				  .end_s = r->end_s};
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		const struct slurm_raw raw = raw_of(r);
		struct sched_status st;
		bool still_queued;

		print_message("# %s\n", r->what);
		slurm_state_decode(&raw, &st, &still_queued);
		assert_int_equal(st.state, r->want_state);
		assert_int_equal(st.end, r->want_end);
		assert_int_equal(st.exit_status, r->want_exit);
		assert_string_equal(st.reason, r->want_reason);
		assert_int_equal(still_queued, r->want_queued);
	}
}

/* Slurm gives a waiting job an expected start: that is no start. */
static void test_times_and_texts(void **state)
{
	struct slurm_raw r = {.job = "17",
			      .name = "fettle:0:a1",
			      .nodes = "n1,n2",
			      .state = 1,
			      .start_s = 7,
			      .end_s = 90};
	struct sched_status st;
	bool still_queued;

	(void)state;
	slurm_state_decode(&r, &st, &still_queued);
	assert_string_equal(st.id, "17");
	assert_string_equal(st.token, "fettle:0:a1");
	assert_string_equal(st.nodes, "n1,n2");
	assert_int_equal(st.start_us, 7000000);
	assert_int_equal(st.end_us, 0);
	r.state = 0;
	slurm_state_decode(&r, &st, &still_queued);
	assert_int_equal(st.start_us, 0);
	r.state = 3;
	slurm_state_decode(&r, &st, &still_queued);
	assert_int_equal(st.end_us, 90000000);
}

static void test_long_node_list_is_cut(void **state)
{
	char nodes[2000];
	struct slurm_raw r = {.state = 1, .nodes = nodes};
	struct sched_status st;
	bool still_queued;

	(void)state;
	memset(nodes, 'n', sizeof(nodes) - 1);
	nodes[sizeof(nodes) - 1] = '\0';
	slurm_state_decode(&r, &st, &still_queued);
	assert_int_equal(strlen(st.nodes), sizeof(st.nodes) - 1);
}

static void test_refusal(void **state)
{
	struct slurm_raw refused = {.state = 5, .reason = 21, .exit = 1, .nodes = ""};
	struct slurm_raw ran = {.state = 5, .reason = 24, .exit = 0x100, .nodes = "n1"};

	(void)state;
	assert_true(slurm_state_is_refusal(&refused));
	assert_false(slurm_state_is_refusal(&ran));
	refused.nodes = "n1";
	assert_false(slurm_state_is_refusal(&refused));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_times_and_texts),
		cmocka_unit_test(test_long_node_list_is_cut),
		cmocka_unit_test(test_refusal),
	};

	return cmocka_run_group_tests_name("slurm_state", tests, NULL, NULL);
}
