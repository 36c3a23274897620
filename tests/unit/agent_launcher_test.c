/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include "orchestrator/agent/launcher.h"

static void only_srun_before_any_task_is_its_own_failure(void **state)
{
	static const struct {
		const char *out;
		bool before;
	} cases[] = {
		{"srun: error: Unable to confirm allocation for job 5: Socket timed out on send/recv operation\n"
		 "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 5\n",
		 true},
		{"srun: Job 5 step creation temporarily disabled, retrying (Requested nodes are busy)\n",
		 true},
		{"srun: error: n1: task 0: Exited with exit code 7\n", false},
		{"srun: error: n1: tasks 0-3: Exited with exit code 1\n", false},
		{"slurmstepd: error: execve(): pyhton3: No such file or directory\n"
		 "srun: error: n1: task 0: Exited with exit code 2\n",
		 false},
		{"step 1\nsrun: error: Timed out waiting for job step to complete\n", false},
		{"Traceback (most recent call last):\n", false},
		{"", false},
	};
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "out");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(
			fs_write_atomic(path, cases[i].out, strlen(cases[i].out), 0600, NULL), 0);
		assert_int_equal(launcher_failed_before_start(path), cases[i].before);
	}
	assert_false(launcher_failed_before_start("/nonexistent/out"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_srun_before_any_task_is_its_own_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
