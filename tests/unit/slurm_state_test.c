/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/sched/slurm_state.h"

/* What slurmctld 22.05 and 24.11 were seen to say of each way in which a job can be or end. */
static const struct row {
	const char *what;
	struct slurm_raw raw;
	enum job_state state;
	enum job_end end;
	int exit_status;
	const char *reason;
	bool still_queued;
} rows[] = {
	{"waits", {.state = 0x0, .reason = 3, .reason_text = "Resources", .start_s = 99}, JOB_PENDING, END_NONE, 0, "Resources", false},
	{"waits, no reason yet", {.state = 0x0, .reason_text = "None"}, JOB_PENDING, END_NONE, 0, "", false},
	{"bit 0x200 means nothing", {.state = 0x200, .reason_text = "None"}, JOB_PENDING, END_NONE, 0, "", false},
	{"node boots", {.state = 0x4001, .start_s = 9}, JOB_PENDING, END_NONE, 0, "CONFIGURING", false},
	{"runs", {.state = 0x1, .start_s = 9, .nodes = "n1"}, JOB_RUNNING, END_NONE, 0, "", false},
	{"suspended", {.state = 0x2, .start_s = 9, .nodes = "n1"}, JOB_RUNNING, END_NONE, 0, "SUSPENDED", false},
	{"ok", {.state = 0x3, .reason_text = "None", .start_s = 9, .end_s = 10}, JOB_ENDED, END_OK, 0, "COMPLETED", false},
	{"ok, not yet cleaned up", {.state = 0x8003, .reason_text = "None"}, JOB_RUNNING, END_NONE, 0, "COMPLETED+COMPLETING", false},
	{"exit 3", {.state = 0x5, .reason = 24, .reason_text = "NonZeroExitCode", .exit = 0x300}, JOB_ENDED, END_FAILED, 3,
	 "FAILED (NonZeroExitCode)", false},
	{"exit 3, completing", {.state = 0x8005, .reason = 24, .exit = 0x300}, JOB_RUNNING, END_NONE, 0, "FAILED+COMPLETING", false},
	{"signal 9 in 22.05", {.state = 0x5, .reason = 23, .reason_text = "JobLaunchFailure", .exit = 9, .nodes = "n1"}, JOB_ENDED,
	 END_FAILED, 137, "FAILED (JobLaunchFailure)", false},
	{"signal 11 in 24.11", {.state = 0x5, .reason = 33, .reason_text = "RaisedSignal", .exit = 11}, JOB_ENDED, END_FAILED, 139,
	 "FAILED (RaisedSignal)", false},
	{"launch failure", {.state = 0x5, .reason = 23, .reason_text = "JobLaunchFailure", .exit = 0x100}, JOB_ENDED,
	 END_LAUNCH_FAILED, 1, "FAILED (JobLaunchFailure)", false},
	{"launch failed bit", {.state = 0x105, .exit = 0x100}, JOB_ENDED, END_LAUNCH_FAILED, 1, "FAILED", false},
	{"time limit", {.state = 0x6, .reason = 25, .reason_text = "TimeLimit", .exit = 0x9}, JOB_ENDED, END_TIMEOUT, 137,
	 "TIMEOUT (TimeLimit)", false},
	{"time limit, completing", {.state = 0x8006, .reason = 25, .reason_text = "TimeLimit"}, JOB_RUNNING, END_NONE, 0,
	 "TIMEOUT+COMPLETING (TimeLimit)", false},
	{"cancelled while it ran", {.state = 0x4, .reason_text = "None", .exit = 0xf, .nodes = "n1", .start_s = 5, .end_s = 5}, JOB_ENDED,
	 END_CANCELLED, 143, "CANCELLED", false},
	{"cancelled while it waited", {.state = 0x4, .reason_text = "None", .start_s = 5, .end_s = 5}, JOB_ENDED, END_CANCELLED, 0,
	 "CANCELLED", false},
	{"prolog failed", {.state = 0x4, .reason_text = "None", .nodes = "n1", .start_s = 5, .end_s = 5}, JOB_ENDED,
	 END_LAUNCH_FAILED, 0, "CANCELLED", false},
	{"node down", {.state = 0x7, .reason = 20, .reason_text = "NodeDown", .exit = 0xf}, JOB_ENDED, END_NODE_FAIL, 143,
	 "NODE_FAIL (NodeDown)", false},
	{"boot failed", {.state = 0x9}, JOB_ENDED, END_NODE_FAIL, 0, "BOOT_FAIL", false},
	{"node down and requeued", {.state = 0x0, .reason = 9, .reason_text = "BeginTime", .restarts = 1}, JOB_ENDED, END_REQUEUED, 0,
	 "PENDING (BeginTime)", true},
	{"requeueing", {.state = 0x8400}, JOB_ENDED, END_REQUEUED, 0, "PENDING+COMPLETING", true},
	{"requeued and held", {.state = 0x800}, JOB_ENDED, END_REQUEUED, 0, "PENDING", true},
	{"special exit", {.state = 0x1005, .exit = 0x100}, JOB_ENDED, END_REQUEUED, 1, "FAILED", false},
	{"ran again", {.state = 0x1, .restarts = 1, .nodes = "n2"}, JOB_ENDED, END_REQUEUED, 0, "RUNNING", true},
	{"ran again to its end", {.state = 0x3, .restarts = 2}, JOB_ENDED, END_REQUEUED, 0, "COMPLETED", false},
	{"preempted", {.state = 0x8}, JOB_ENDED, END_PREEMPTED, 0, "PREEMPTED", false},
	{"preempted, in its grace time", {.state = 0x8008}, JOB_RUNNING, END_NONE, 0, "PREEMPTED+COMPLETING", false},
	{"deadline passed in the queue", {.state = 0xa, .reason_text = "DeadLine", .reason = 180}, JOB_ENDED, END_CANCELLED, 0,
	 "DEADLINE (DeadLine)", false},
	{"out of memory, cgroup", {.state = 0xb, .reason = 181, .reason_text = "OutOfMemory", .exit = 0xfd}, JOB_ENDED, END_OOM, 253,
	 "OUT_OF_MEMORY (OutOfMemory)", false},
	{"out of memory, state FAILED", {.state = 0x5, .exit = 0xfd}, JOB_ENDED, END_OOM, 253, "FAILED", false},
	{"a state of the future", {.state = 0xc}, JOB_UNKNOWN, END_NONE, 0, "unknown state", false},
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct sched_status st;
		bool still_queued;

		print_message("# %s\n", r->what);
		slurm_state_decode(&r->raw, &st, &still_queued);
		assert_int_equal(st.state, r->state);
		assert_int_equal(st.end, r->end);
		assert_int_equal(st.exit_status, r->exit_status);
		assert_string_equal(st.reason, r->reason);
		assert_int_equal(still_queued, r->still_queued);
	}
}

/* Slurm gives a waiting job an expected start: that is no start. */
static void test_times_and_texts(void **state)
{
	struct slurm_raw r = {.job = "17", .name = "fettle:0:a1", .nodes = "n1,n2", .state = 1, .start_s = 7, .end_s = 90};
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
