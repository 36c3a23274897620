/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What Slurm's commands print (22.05, as it was printed here), and what is made of it. */
#include "tests/unit/check.h"

#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/sched/slurm_errors.h"
#include "orchestrator/sched/slurm_limits.h"
#include "orchestrator/sched/slurm_text.h"

static void test_durations(void **state)
{
	static const struct {
		const char *text;
		int64_t s;
	} rows[] = {
		{"60", 3600},        {"1:30", 90},       {"2:00:01", 7201}, {"1-12", 129600},
		{"1-12:30", 131400}, {"1-0:0:5", 86405}, {"", -1},          {"x", -1},
		{"1:2:3:4", -1},     {"-5", -1},         {"1-", -1},        {"1-2-3", -1},
		{"1:-2", -1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (slurm_limits_duration_s(rows[i].text) != rows[i].s)
			fail_msg("%s: %lld", rows[i].text,
				 (long long)slurm_limits_duration_s(rows[i].text));
}

static void test_squeue(void **state)
{
	static const char text[] =
		"8|FAILED|768|0|1795971610|1795971611|1795971609|tune|n3|NonZeroExitCode|"
		"(NonZeroExitCode)|fettle:aa:a2\n"
		"9|PENDING|0:0|0|1795975210|N/A|1795971610|tune||ReqNodeNotAvail|(ReqNodeNotAvail, "
		"UnavailableNodes:n1)|a|name|with bars\n"
		"7|CANCELLED|0:15|1|1795971610|1795978810|1795971610|tune|n[1-2]|None|n[1-2]|x\n"
		"no record\n"
		"x|RUNNING|0|0|0|0|0|tune||None||x\n"
		"10|A_STATE_OF_THE_FUTURE|0|0|0|0|0|tune||None||x\n";
	_cleanup_(json_freep) struct json *jobs = slurm_text_squeue(text);
	const struct json *j;

	(void)state;
	assert_int_equal(json_len(jobs), 4);
	j = json_at(jobs, 0);
	assert_string_equal(json_text(json_get(j, "job"), ""), "8");
	assert_string_equal(json_text(json_get(j, "name"), ""), "fettle:aa:a2");
	assert_string_equal(json_text(json_get(j, "reason_text"), ""), "NonZeroExitCode");
	assert_int_equal(json_i64(json_get(j, "state"), -1), 5);
	assert_int_equal(json_i64(json_get(j, "exit"), -1), 0x300);
	assert_int_equal(json_i64(json_get(j, "reason"), -1), 1);
	assert_true(json_i64(json_get(j, "start_s"), 0) == 1795971610);
	j = json_at(jobs, 1);
	assert_string_equal(json_text(json_get(j, "name"), ""), "a|name|with bars");
	assert_string_equal(json_text(json_get(j, "reason_text"), ""),
			    "ReqNodeNotAvail, UnavailableNodes:n1");
	assert_int_equal(json_i64(json_get(j, "end_s"), -1), 0);
	j = json_at(jobs, 2);
	assert_string_equal(json_text(json_get(j, "nodes"), ""), "n[1-2]");
	assert_int_equal(json_i64(json_get(j, "reason"), -1), 0);
	assert_int_equal(json_i64(json_get(j, "restarts"), -1), 1);
	assert_int_equal(json_i64(json_get(json_at(jobs, 3), "state"), -1), 0xff);
}

static void test_states(void **state)
{
	static const struct {
		const char *word;
		bool known;
		uint32_t bits;
	} rows[] = {
		{"PENDING", true, 0},         {"CANCELLED by 1000", true, 4},
		{"CANCELLED+", true, 4},      {"OUT_OF_MEMORY", true, 11},
		{"COMPLETING", true, 0x8001}, {"REQUEUE_HOLD", true, 0x800},
		{"PEND", false, 0xff},        {"", false, 0xff},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t bits = 1;

		assert_int_equal(slurm_text_state(rows[i].word, &bits), rows[i].known);
		assert_int_equal(bits, rows[i].bits);
	}
}

static void test_sacct(void **state)
{
	static const char text[] =
		"7|CANCELLED by 0|0:15|1795971610|1795978810|1795971600|tune|n[1-2]|7200||"
		"1200|billing=4,cpu=4,node=2|fettle:aa:a1\n"
		"7.batch|CANCELLED|0:15|1795971610|1795978810|1795971600||n1|7200|1500K|600|cpu=2|"
		"batch\n"
		"7.0|COMPLETED|0:0|1795971611|1795978810|1795971611||n[1-2]|7199|2.5M|500|cpu=4|x\n"
		"8|COMPLETED|3:0|1795971610|Unknown|1795971600|tune|None assigned|0|||cpu=1|y\n"
		"9.batch|COMPLETED|0:0|1|2|1|tune|n1|0|9G||cpu=1|y\n";
	_cleanup_(json_freep) struct json *jobs = slurm_text_sacct(text);
	const struct json *j;

	(void)state;
	assert_int_equal(json_len(jobs), 2);
	j = json_at(jobs, 0);
	assert_int_equal(json_i64(json_get(j, "state"), -1), 4);
	assert_int_equal(json_i64(json_get(j, "exit"), -1), 15);
	assert_int_equal(json_i64(json_get(j, "maxrss_kib"), -1), 2560);
	assert_int_equal(json_i64(json_get(j, "energy_j"), -1), 1200);
	assert_string_equal(json_text(json_get(j, "tres"), ""), "billing=4,cpu=4,node=2");
	assert_true(json_bool(json_get(j, "ran"), false));
	assert_false(json_bool(json_get(json_at(jobs, 1), "ran"), false));
	j = json_at(jobs, 1);
	assert_int_equal(json_i64(json_get(j, "exit"), -1), 0x300);
	assert_int_equal(json_i64(json_get(j, "end_s"), -1), 0);
	assert_int_equal(json_i64(json_get(j, "maxrss_kib"), -1), -1);
	assert_string_equal(json_text(json_get(j, "nodes"), "x"), "");
}

static void test_kib(void **state)
{
	(void)state;
	assert_int_equal(slurm_text_kib("1500K"), 1500);
	assert_int_equal(slurm_text_kib("1.5G"), 1572864);
	assert_int_equal(slurm_text_kib("4096"), 4);
	assert_int_equal(slurm_text_kib(""), -1);
	assert_int_equal(slurm_text_kib("x"), -1);
}

static void test_value(void **state)
{
	static const char line[] = "PartitionName=tune MaxNodes=UNLIMITED MaxTime=02:00:00 "
				   "TotalNodes=4 Alternate=(null)";
	static const char config[] = "Configuration data\nClusterName             = fettle\n";
	_cleanup_free_ char *most = slurm_text_value(line, "MaxNodes");
	_cleanup_free_ char *nodes = slurm_text_value(line, "TotalNodes");
	_cleanup_free_ char *cluster = slurm_text_value(config, "ClusterName");

	(void)state;
	assert_string_equal(most, "UNLIMITED");
	assert_string_equal(nodes, "4");
	assert_string_equal(cluster, "fettle");
	assert_null(slurm_text_value(line, "Nodes")); /* only as a whole word */
	assert_null(slurm_text_value(line, "Alternate"));
}

static void test_forecast(void **state)
{
	_cleanup_free_ char *nodes = NULL, *partition = NULL;
	int64_t start_s;

	(void)state;
	assert_true(slurm_text_forecast("sbatch: Job 10 to start at 1795978812 using 2 processors "
					"on nodes n[3-4] in partition tune\n",
					&start_s, &nodes, &partition));
	assert_true(start_s == 1795978812);
	assert_string_equal(nodes, "n[3-4]");
	assert_string_equal(partition, "tune");
	assert_false(slurm_text_forecast("allocation failure: x\n", &start_s, &nodes, &partition));
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text, *what, *said;
		int number;
	} rows[] = {
		{"sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job "
		 "submission failed: Invalid partition name specified\n",
		 "Invalid partition name specified", "invalid partition specified: nope", 2000},
		{"allocation failure: Requested node configuration is not available\n",
		 "Requested node configuration is not available", NULL, 2014},
		{"slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
		 "Unable to contact slurm controller (connect failure)", NULL, 1800},
		{"scancel: error: Kill job error on job id 9: Invalid job id specified\n",
		 "Kill job error on job id 9: Invalid job id specified", NULL, 2017},
		{"sbatch: error: If munged is up, restart with --num-threads=10\nsbatch: error: "
		 "Munge encode failed: Failed to access \"/x\": No such file or directory\n",
		 "If munged is up", NULL, 1007},
		{"sbatch: error: Batch job submission failed: Invalid node list specified\n",
		 "Invalid node list specified", NULL, 2018},
		{"sbatch: error: xgetaddrinfo: getaddrinfo() failed: Temporary failure in name "
		 "resolution: Resource temporarily unavailable\nsbatch: error: Invalid argument\n",
		 "getaddrinfo() failed", NULL, 1800},
		{"something new\n", "something new", NULL, SLURM_ERRORS_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf said = {0};
		_cleanup_free_ char *what = slurm_text_refusal(rows[i].text, &said);

		assert_contains(what, rows[i].what);
		if (rows[i].said)
			assert_string_equal(said.data, rows[i].said);
		assert_int_equal(slurm_errors_number(rows[i].text), rows[i].number);
		buf_free(&said);
	}
}

static void test_lines_that_differ_by_their_number_are_one(void **state)
{
	static const struct {
		const char *said, *lines;
	} rows[] = {
		{NULL, ""},
		{"", ""},
		{"fettle-slurm: error: no such name, attempt number -1\n"
		 "fettle-slurm: error: no such name, attempt number 0\n"
		 "fettle-slurm: error: no such name, attempt number 10\n"
		 "fettle-slurm: fatal: given up\n",
		 "; no such name, attempt number -1 (3 times); fatal: given up"},
		{"error: a 1\nerror: b 1\nerror: a 1", "; a 1; b 1; a 1"},
		{"12\n\n13\n", "; 12; 13"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(buf_free) struct buf out = {0};

		slurm_errors_put_lines(&out, rows[i].said, "; ");
		assert_string_equal(out.data ? out.data : "", rows[i].lines);
	}
}

static void test_nodes(void **state)
{
	(void)state;
	assert_true(slurm_text_node_idle("idle"));
	assert_false(slurm_text_node_idle("idle*"));
	assert_true(slurm_text_node_out("down*"));
	assert_true(slurm_text_node_out("draining"));
	assert_false(slurm_text_node_out("mixed"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_squeue),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_sacct),
		cmocka_unit_test(test_kib),
		cmocka_unit_test(test_value),
		cmocka_unit_test(test_forecast),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_lines_that_differ_by_their_number_are_one),
		cmocka_unit_test(test_nodes),
	};

	return cmocka_run_group_tests_name("slurm_text", tests, NULL, NULL);
}
