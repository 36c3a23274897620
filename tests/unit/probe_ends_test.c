/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a run ended: out of memory, by Slurm, by its benchmark. */
#include "tests/unit/probe_check.h"

extern const struct probe probe_torch_memory, probe_slurm_end, probe_mllog, probe_train_log;

#define MIB (1.0 / 1024)

static void check_nth(const struct findings *f, const char *name, size_t k, double want)
{
	const struct found *v = found_nth(f, name, k);

	if (!v || fabs(v->value - want) > 1e-9)
		fail_msg("%s %zu: %g, not %g", name, k, v ? v->value : NAN, want);
}

static void test_oom(void **state)
{
	static const double tried[] = {24 * MIB, 0.5 * MIB, 6, 2.5, 1},
			    unused[] = {0.5, 0.25, 8 * MIB, 4, 512 * MIB},
			    is_free[] = {2.5 * MIB, MIB, 5.5, 0, 12 * MIB},
			    allocated[] = {14.25, 7, 17.25, 50, 15};
	struct findings f = findings_fixture(&probe_torch_memory, "torch-oom.txt");

	(void)state;
	check_status(&f, PROBE_FAILED);
	assert_string_equal(f.detail.data,
			    "line 1: out of device memory: 24.00 MiB more was asked for, more than "
			    "that is reserved and unused (fragmentation)");
	assert_int_equal(found_count(&f, "torch.oom"), 6);
	assert_int_equal(found_count(&f, "oom_tried_gib"), 5);
	for (size_t i = 0; i < ARRAY_LEN(tried); i++) {
		check_nth(&f, "oom_tried_gib", i, tried[i]);
		check_nth(&f, "oom_unallocated_gib", i, unused[i]);
		check_nth(&f, "oom_free_gib", i, is_free[i]);
		check_nth(&f, "oom_allocated_gib", i, allocated[i]);
	}
	assert_string_equal(found_nth(&f, "oom_tried_gib", 2)->labels, "device=3");
	assert_int_equal(found_nth(&f, "oom_tried_gib", 2)->rank, 3);
	/* The wrapped one has the line where it begins. */
	assert_int_equal(found_nth(&f, "oom_tried_gib", 4)->line, 5);
	assert_string_equal(found_nth(&f, "oom_tried_gib", 4)->labels, "device=2");
	findings_free(&f);
}

/* What stands before the error is no part of it, and other devices have a number too. */
static void test_oom_devices(void **state)
{
	struct findings f = findings_text(
		&probe_torch_memory,
		"GPU 7 free: RuntimeError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 5; "
		"8.00 GiB total capacity; 6.00 GiB already allocated; 1.00 GiB free; 3.00 GiB "
		"allowed; 6.50 GiB reserved in total by PyTorch) (malloc at /a/b.cpp:501)\n"
		"RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 2; 60.00 GiB "
		"total capacity; 59.00 GiB already allocated; 59.00 GiB current active; 0.25 GiB "
		"free; 59.50 GiB reserved in total by PyTorch)\n");

	(void)state;
	check_nth(&f, "oom_free_gib", 0, 1);
	check_nth(&f, "oom_unallocated_gib", 0, 0.5);
	assert_string_equal(found_nth(&f, "oom_tried_gib", 0)->labels, "device=5");
	assert_string_equal(found_nth(&f, "oom_tried_gib", 1)->labels, "device=2");
	check_nth(&f, "oom_free_gib", 1, 0.25);
	check_nth(&f, "oom_unallocated_gib", 1, 0.5);
	findings_free(&f);
}

static void test_oom_cut(void **state)
{
	struct findings f = findings_text(&probe_torch_memory,
					  "CUDA out of memory. Tried to allocate 2.00 GiB."
					  " GPU 0 has a total capacity of 8.00 GiB of\n");

	(void)state;
	check_status(&f, PROBE_FAILED);
	check_nth(&f, "oom_tried_gib", 0, 2);
	assert_null(found_nth(&f, "oom_unallocated_gib", 0));
	findings_free(&f);
	/* Lines of another kind do not become part of it without end. */
	f = findings_text(
		&probe_torch_memory,
		"CUDA out of memory. Tried to allocate 1.00 GiB.\na\nb\nc\nd\ne\nf\ng\nh\n"
		"9.00 GiB is reserved by PyTorch but unallocated.\n");
	check_nth(&f, "oom_tried_gib", 0, 1);
	assert_null(found_nth(&f, "oom_unallocated_gib", 0));
	findings_free(&f);
	f = findings_text(&probe_torch_memory, "the host is out of memory\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

/* A training log that also says that it ran out of memory keeps its values. */
static void test_oom_in_training(void **state)
{
	struct findings f = findings_text(
		&probe_train_log, "iter 10: loss 2.25, time 1.5ms, mfu 1.5%\n"
				  "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
				  "8.00 GiB. GPU 0 has a total capacity of 9.00 GiB of which 1.00 "
				  "GiB is free.\n");

	(void)state;
	check_status(&f, PROBE_OK);
	check_at(&f, "loss", 10, NULL, 2.25);
	check_nth(&f, "oom_tried_gib", 0, 8);
	check_nth(&f, "oom_free_gib", 0, 1);
	assert_non_null(found_nth(&f, "torch.oom", 0));
	findings_free(&f);
}

static void test_memory_summary(void **state)
{
	struct findings f = findings_fixture(&probe_torch_memory, "torch-memory_summary.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_fact(&f, "torch.memory_device", "0");
	check_at(&f, "cuda_ooms", -1, NULL, 1);
	check_at(&f, "alloc_retries", -1, NULL, 14);
	check_at(&f, "mem_allocated_gib", -1, NULL, 682537 * MIB * MIB);
	check_at(&f, "mem_peak_allocated_gib", -1, NULL, 65430 * MIB);
	check_at(&f, "mem_peak_active_gib", -1, NULL, MIB);
	check_at(&f, "mem_reserved_gib", -1, NULL, 70210 * MIB);
	check_at(&f, "mem_inactive_split_gib", -1, NULL, 0.5 * MIB);
	assert_int_equal(found_count(&f, "mem_peak_reserved_gib"), 1);
	assert_string_equal(found_nth(&f, "mem_peak_reserved_gib", 0)->labels, "device=0");
	assert_string_equal(found_nth(&f, "cuda_ooms", 0)->labels, "device=0");
	findings_free(&f);
	/* Without its head the rows are another table's. */
	f = findings_text(&probe_torch_memory, "| Allocated memory | 1 MiB | 2 MiB | 3 MiB |\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	f = findings_text(
		&probe_torch_memory,
		"| PyTorch CUDA memory summary, device ID 1 |\n"
		"| Allocated memory | 1 MiB | 2 XiB | 3 MiB | 3 MiB |\n| Active memory | 5");
	check_status(&f, PROBE_PARTIAL);
	check_nth(&f, "mem_allocated_gib", 0, MIB);
	assert_null(found_nth(&f, "mem_peak_active_gib", 0));
	findings_free(&f);
}

static void test_memory_stats(void **state)
{
	struct findings f = findings_fixture(&probe_torch_memory, "torch-memory_stats.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_nth(&f, "mem_allocated_gib", 0, 1);
	check_nth(&f, "mem_peak_allocated_gib", 0, 3);
	check_nth(&f, "mem_peak_reserved_gib", 0, 4);
	check_nth(&f, "alloc_retries", 0, 7);
	check_nth(&f, "cuda_ooms", 0, 0);
	assert_int_equal(found_count(&f, "cuda_ooms"), 1);
	check_nth(&f, "mem_peak_active_gib", 0, 2);
	check_nth(&f, "mem_inactive_split_gib", 0, 0.5);
	check_nth(&f, "mem_peak_inactive_split_gib", 0, 0.75);
	check_nth(&f, "mem_reserved_gib", 0, 5);
	findings_free(&f);
}

static void test_slurm(void **state)
{
	static const char *const want[] = {
		"TIMEOUT JOB 1234 ON gpu-a",
		"NODE_FAIL STEP 1234.0 ON gpu-a",
		"PREEMPTED STEP 1234.0 ON gpu-a",
		"REQUEUED JOB 1234 ON gpu-a",
		"TASK_FAILURE STEP 1234.0 ON gpu-a",
		"SIGNAL STEP 1234.0 ON gpu-a",
		"FAILED STEP 1234.0 ON gpu-a",
		"CANCELLED JOB 1234 ON gpu-a",
		"OUT_OF_MEMORY 1234.batch",
		"OUT_OF_MEMORY 1234.0",
		"OUT_OF_MEMORY 1234.0",
		"OUT_OF_MEMORY 1234.0",
		"OUT_OF_MEMORY gpu-a: task 13: Out Of Memory",
		"TERMINATED gpu-b: tasks 1-7: Terminated",
		"EXIT gpu-a: task 0: Exited with exit code 1",
		"ABORTED",
		"NODE_FAIL gpu-b",
		"TIMEOUT STEP 2545.7 ON n1",
	};
	struct findings f = findings_fixture(&probe_slurm_end, "slurm-end.txt");

	(void)state;
	check_status(&f, PROBE_FAILED);
	assert_string_equal(f.detail.data, "line 9: OUT_OF_MEMORY 1234.batch");
	assert_int_equal(found_count(&f, "slurm.end"), ARRAY_LEN(want));
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		assert_string_equal(found_nth(&f, "slurm.end", i)->text, want[i]);
	assert_int_equal(found_nth(&f, "slurm.end", 17)->rank, 3);
	check_at(&f, "host_oom_kills", -1, "step=1234.batch", 1);
	check_nth(&f, "host_oom_kills", 1, 2);
	check_nth(&f, "host_oom_kills", 3, 3);
	findings_free(&f);
}

static void test_slurm_wordings(void **state)
{
	static const struct {
		const char *text, *end;
	} t[] = {
		{"slurmstepd: error: Step 7.0 exceeded memory limit (9 > 8), being killed\n",
		 "OUT_OF_MEMORY"},
		{"slurmstepd: error: Exceeded job memory limit\n", "OUT_OF_MEMORY"},
		{"srun: error: n2: task 1: Segmentation fault (core dumped)\n",
		 "SIGNAL n2: task 1: Segmentation fault (core dumped)"},
		{"srun: error: n2: tasks 0-3,7: Killed\n", "KILLED n2: tasks 0-3,7: Killed"},
		{"slurmstepd: error: *** STEPD TERMINATED ON n1 AT 2026-11-28T02:14:07 DUE TO JOB "
		 "NOT RUNNING ***\n",
		 "CANCELLED STEPD TERMINATED ON n1 AT 2026-11-28T02:14:07"},
		{"slurmd[n1]: error: *** JOB 7 CANCELLED AT 2013-02-03T04:05:06 DUE TO TIME LIMIT "
		 "***\n",
		 "TIMEOUT JOB 7"},
		{"slurmstepd: error: *** STEP 7.0 ON n1 UNCORRECTABLE MEMORY ERROR AT "
		 "2019-11-28T02:14:07 ***\n",
		 "NODE_FAIL STEP 7.0 ON n1"},
		{"slurmstepd: error: Detected 5 oom-kill event(s). Some of your processes may have "
		 "been killed by the cgroup out-of-memory handler.\n",
		 "OUT_OF_MEMORY"},
		{"slurmstepd: error: Detected 5 oom-kill event(s) in step 7.batch cgroup.\n",
		 "OUT_OF_MEMORY 7.batch"},
		{"slurmstepd: error: Job 7 exceeded virtual memory limit (9 > 8), being killed\n",
		 "OUT_OF_MEMORY"},
		{"srun: Force Terminated StepId=7.0\n", "CANCELLED"},
		{"srun: Job step 7.0 aborted before step completely launched.\n", "NOT_STARTED"},
		{"srun: error: Unable to create job step: Job/step already completing\n",
		 "NOT_STARTED Unable to create job step: Job/step already completing"},
		{"slurmstepd: error: spank: required plugin spank_x.so: task_init() failed with "
		 "rc=-1\n",
		 "NOT_STARTED spank: required plugin spank_x.so: task_init() failed with rc=-1"},
		{"slurmstepd: error: Failed to invoke spank plugin stack\n",
		 "NOT_STARTED Failed to invoke spank plugin stack"},
		{"slurmstepd: error: Detected 5 oom-kill event\n", NULL},
		{"hello\nslurmstepd: error: mpi/pmix_v3: something\n", NULL},
		{"slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-11\n", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct findings f = findings_text(&probe_slurm_end, t[i].text);

		assert_int_equal(found_count(&f, "slurm.end"), t[i].end ? 1 : 0);
		if (t[i].end)
			check_fact(&f, "slurm.end", t[i].end);
		assert_int_equal(f.status == PROBE_FAILED, t[i].end != NULL);
		assert_true(f.detail.len > 0);
		findings_free(&f);
	}
}

static void test_mllog(void **state)
{
	struct findings f = findings_fixture(&probe_mllog, "mllog.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_fact(&f, "mllog.submission_benchmark", "resnet");
	check_fact(&f, "mllog.status", "success");
	check_at(&f, "samples_per_step", -1, NULL, 3200);
	check_at(&f, "throughput_samples_per_s", 400, NULL, 56250.5);
	check_at(&f, "step_time_ms", 400, NULL, 62.5);
	check_at(&f, "loss", 400, NULL, 2.5);
	assert_int_equal(found_count(&f, "loss"), 1); /* the second rank's line */
	assert_true(found_nth(&f, "loss", 0)->t_us == 1795958461000000);
	check_at(&f, "eval_accuracy", 4, NULL, 0.7125);
	check_at(&f, "consumed_samples", 4, NULL, 1280000);
	check_at(&f, "time_to_train_s", -1, NULL, 120.5);
	findings_free(&f);
}

#define EVENT(key, more)                                                                           \
	":::MLLOG {\"namespace\": \"\", \"time_ms\": 1000, \"event_type\": \"X\", \"key\": \"" key \
	"\", \"value\": null, \"metadata\": {" more "}}\n"

static void test_mllog_failures(void **state)
{
	struct findings f = findings_text(&probe_mllog,
					  EVENT("run_start", "") EVENT("epoch_start", ""));

	(void)state;
	check_status(&f, PROBE_FAILED);
	assert_non_null(strstr(f.detail.data, "line 1: a run_start without run_stop"));
	assert_null(found_nth(&f, "time_to_train_s", 0));
	findings_free(&f);
	f = findings_text(&probe_mllog,
			  EVENT("run_start", "") EVENT("run_stop", "\"status\": \"aborted\""));
	check_status(&f, PROBE_FAILED);
	assert_non_null(strstr(f.detail.data, "status aborted"));
	assert_null(found_nth(&f, "time_to_train_s", 0));
	findings_free(&f);
	f = findings_text(&probe_mllog, ":::MLLOG {\"time_ms\": 1, \"key\": \"global_batch_size\", "
					"\"value\": 8}\n:::MLLOG {\"namespace\": \"\", \"ti\n");
	check_status(&f, PROBE_PARTIAL);
	check_at(&f, "samples_per_step", -1, NULL, 8);
	findings_free(&f);
	f = findings_text(&probe_mllog, ":::SYSJSON {}\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

/* What was logged in 2018 and 2019. */
static void test_mllog_old(void **state)
{
	struct findings f = findings_text(
		&probe_mllog,
		":::MLL 1560826879.75 submission_benchmark: {\"value\": \"gnmt\", \"metadata\": {}}\n"
		":::MLL 1560826880.5 run_start: {\"value\": null, \"metadata\": {\"lineno\": 1}}\n"
		":::MLL 1560826880.6 global_batch_size: {\"value\": 512, \"metadata\": {}}\n"
		":::MLL 1560826885.25 eval_accuracy: {\"value\": 24.5, \"metadata\": {\"epoch_num\": "
		"8}}\n"
		":::MLL 1560826886.0 eval_accuracy: {\"value\": {\"BBOX\": 0.1}, \"metadata\": {}}\n"
		":::MLL 1560826887.0 run_stop: {\"value\": null, \"metadata\": {\"status\": "
		"\"success\"}}");

	(void)state;
	check_status(&f, PROBE_OK);
	check_fact(&f, "mllog.submission_benchmark", "gnmt");
	check_at(&f, "samples_per_step", -1, NULL, 512);
	check_at(&f, "eval_accuracy", 8, NULL, 24.5);
	assert_true(found_at(&f, "eval_accuracy", 8, NULL)->t_us == 1560826885250000);
	assert_int_equal(found_count(&f, "eval_accuracy"), 1);
	check_at(&f, "time_to_train_s", -1, NULL, 6.5);
	findings_free(&f);
	f = findings_text(
		&probe_mllog,
		"NCF_RAW_:::MLPv0.5.0 ncf 1541632000.125000000 (main.py:187) run_start\n"
		":::MLPv0.5.0 [1df9b2ab-3dc8][1570666471.29151][0]\n"
		":::MLPv0.5.0 ncf 1541632001.5 (main.py:188) global_batch_size: 1024\n"
		":::MLPv0.5.0 ncf 1541632002.5 (main.py:189) eval_accuracy: {\"epoch\": 3, "
		"\"value\": 0.625}\n"
		":::MLPv0.5.0 ncf 1541632002.625 (main.py:190) run_stop: {\"success\": true}\n"
		":::MLPv0.5.0 ncf 1541632003.5 (main.py:191) run_final\n");
	check_status(&f, PROBE_OK);
	check_at(&f, "samples_per_step", -1, NULL, 1024);
	check_at(&f, "eval_accuracy", 3, NULL, 0.625);
	check_at(&f, "time_to_train_s", -1, NULL, 2.5);
	findings_free(&f);
}

#define STATS(key, value, more)                                                                    \
	":::MLLOG {\"namespace\": \"\", \"time_ms\": 1000, \"event_type\": \"X\", \"key\": \"" key \
	"\", \"value\": " value ", \"metadata\": {" more "}}\n"

/* A throughput that is logged as a point and among the tracked ones counts once. */
static void test_mllog_twice(void **state)
{
	struct findings f = findings_text(
		&probe_mllog,
		STATS("throughput", "20.5", "")
			STATS("tracked_stats",
			      "{\"throughput\": 20.5, \"time\": 0.25, \"data\": 0.125}",
			      "\"step\": 2") STATS("throughput", "21.5", "")
				STATS("tracked_stats", "{\"throughput\": 21.5, \"loss\": 1.5}",
				      "\"step\": 4"));

	(void)state;
	check_status(&f, PROBE_OK);
	assert_int_equal(found_count(&f, "throughput_samples_per_s"), 2);
	check_nth(&f, "throughput_samples_per_s", 0, 20.5);
	check_at(&f, "throughput_samples_per_s", 4, NULL, 21.5);
	check_at(&f, "step_time_ms", 2, NULL, 250);
	check_at(&f, "data_wait_ms", 2, NULL, 125);
	check_at(&f, "loss", 4, NULL, 1.5);
	findings_free(&f);
	f = findings_text(&probe_mllog,
			  STATS("throughput", "20.5", "") STATS("throughput", "21.5", ""));
	assert_int_equal(found_count(&f, "throughput_samples_per_s"), 2);
	findings_free(&f);
	f = findings_text(&probe_mllog, STATS("tracked_stats", "{\"imgs_sec\": 100.5}",
					      "\"step\": 1") STATS("throughput", "100.5", ""));
	assert_int_equal(found_count(&f, "throughput_samples_per_s"), 1);
	findings_free(&f);
	/* Settings alone are a log of this kind already; a load generator's is none. */
	assert_ptr_equal(sniff_text(STATS("seed", "1", "")), &probe_train_log);
	assert_null(sniff_text(":::MLLOG {\"key\": \"loadgen_version\"}\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_oom),
		cmocka_unit_test(test_oom_devices),
		cmocka_unit_test(test_oom_cut),
		cmocka_unit_test(test_oom_in_training),
		cmocka_unit_test(test_memory_summary),
		cmocka_unit_test(test_memory_stats),
		cmocka_unit_test(test_slurm),
		cmocka_unit_test(test_slurm_wordings),
		cmocka_unit_test(test_mllog),
		cmocka_unit_test(test_mllog_failures),
		cmocka_unit_test(test_mllog_old),
		cmocka_unit_test(test_mllog_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
