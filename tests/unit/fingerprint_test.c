/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What makes a fix expire. */
#include "tests/unit/store.h"

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"
#include "orchestrator/method/fingerprint.h"

static void assert_changes(const char *then, const char *now, const char *want)
{
	struct strv v = {0};
	struct err e = {0};
	struct buf b = {0};

	assert_ok(fingerprint_changes(then, now, &v, &e));
	for (size_t i = 0; i < v.n; i++)
		buf_printf(&b, "%s%s", i ? "; " : "", v.v[i]);
	assert_string_equal(b.data ? b.data : "", want);
	buf_free(&b);
	strv_free(&v);
}

static void test_the_same_environment_has_no_changes(void **state)
{
	_cleanup_free_ char *now = fingerprint_this_machine();

	(void)state;
	assert_changes(now, now, "");
	assert_contains(now, "\"kernel\"");
}

static void test_what_differs_is_named(void **state)
{
	(void)state;
	assert_changes("{\"kernel\":\"5.10\",\"cpus\":8}", "{\"kernel\":\"6.1\",\"cpus\":4}",
		       "kernel: 5.10 -> 6.1; cpus: 8 -> 4");
	/* what an older program did not record says nothing */
	assert_changes("{\"kernel\":\"5.10\"}", "{\"kernel\":\"5.10\",\"cpus\":4}", "");
}

/* A kernel that keeps another page for itself, a driver told in a line of its own. */
static void test_what_was_written_another_way_is_no_change(void **state)
{
	(void)state;
	assert_changes("{\"memory\":\"131895220 kB\",\"cpus\":8}",
		       "{\"memory\":\"126 GiB\",\"cpus\":\"8\"}", "");
	assert_changes("{\"memory\":\"65895220 kB\"}", "{\"memory\":\"126 GiB\"}",
		       "memory: 65895220 kB -> 126 GiB");
	assert_changes("{\"nvidia_driver\":\"NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat\"}",
		       "{\"nvidia_driver\":\"535.104.05\"}", "");
}

/* Tonight's nodes are some of those, or others that are alike; one that is new is a change. */
static void test_nodes_that_differed_then(void **state)
{
	static const char two[] = "{\"kernel\":\"5.10 (n1, n2), 6.1 (n3)\"}";

	(void)state;
	assert_changes(two, "{\"kernel\":\"6.1\"}", "");
	assert_changes(two, "{\"kernel\":\"6.1 (n9), 5.10 (n7)\"}", "");
	assert_changes(two, "{\"kernel\":\"6.2\"}", "kernel: 5.10 (n1, n2), 6.1 (n3) -> 6.2");
	assert_changes("{\"kernel\":\"5.10\"}", two, "kernel: 5.10 -> 5.10 (n1, n2), 6.1 (n3)");
	/* brackets alone do not make a list */
	assert_changes("{\"r\":\"400 Gb/sec (4X NDR)\"}", "{\"r\":\"400 Gb/sec (2X NDR)\"}",
		       "r: 400 Gb/sec (4X NDR) -> 400 Gb/sec (2X NDR)");
}

static void test_another_login_node_is_no_other_cluster(void **state)
{
	(void)state;
	assert_changes("{\"host\":\"a\",\"scheduler\":\"slurm\"}",
		       "{\"host\":\"b\",\"scheduler\":\"slurm\"}", "");
	assert_changes("{\"host\":\"a\",\"scheduler\":\"local\"}",
		       "{\"host\":\"b\",\"scheduler\":\"local\"}", "host: a -> b");
}

static void test_a_broken_fingerprint_is_an_error(void **state)
{
	struct strv v = {0};
	struct err e = {0};

	(void)state;
	assert_true(fingerprint_changes("{", "{}", &v, &e) < 0);
	assert_contains(e.text, "stored fingerprint");
}

/* -- nodes together ---------------------------------------------------------------------------- */

static void test_what_nodes_share_stands_once(void **state)
{
	struct fingerprint_node v[7] = {{.node = "n1"}, {.node = "n2"}, {.node = "n3"},
					{.node = "n4"}, {.node = "n5"}, {.node = "n6"},
					{.node = "n6"}};
	_cleanup_free_ char *two = NULL, *all = NULL, *none = fingerprint_join(v, 0);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		kvs_set(&v[i].keys, "os", "Debian");
		kvs_set(&v[i].keys, "kernel", i == 1 || i == 6 ? "6.1" : "5.10");
	}
	kvs_set(&v[0].keys, "bios", "1.2"); /* the others do not tell */
	two = fingerprint_join(v, 2);
	all = fingerprint_join(v, ARRAY_LEN(v));
	assert_string_equal(none, "{}");
	assert_string_equal(two, "{\"bios\":\"1.2\",\"kernel\":\"5.10 (n1), 6.1 (n2)\",\"os\":"
				 "\"Debian\"}");
	/* n6 changed on the way */
	assert_contains(all, "\"kernel\":\"5.10 (n1, n3, n4 and 2 more), 6.1 (n2, n6)\"");
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		kvs_free(&v[i].keys);
}

static void test_many_values_are_counted(void **state)
{
	struct fingerprint_node v[6] = {{.node = "a"}, {.node = "b"}, {.node = "c"},
					{.node = "d"}, {.node = "e"}, {.node = "f"}};
	_cleanup_free_ char *text = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		kvs_set(&v[i].keys, "k", (char[]){(char)('1' + i), 0});
	text = fingerprint_join(v, ARRAY_LEN(v));
	assert_string_equal(text, "{\"k\":\"1 (a), 2 (b), 3 (c), 4 (d), 2 more\"}");
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		kvs_free(&v[i].keys);
}

/* -- the agent's file -------------------------------------------------------------------------- */

static int parse(const char *text, char **node, struct kvs *keys, struct strv *notes, struct err *e)
{
	return fingerprint_parse("environment.json", text, strlen(text), "t:1", node, keys, notes,
				 e);
}

#define HEAD "{\"format\":\"fettle.environment/1\",\"token\":\"t:1\","

static void test_the_file_of_a_node(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"{", "environment.json"},
		{"{\"format\":\"fettle.environment/2\"}", "format is not"},
		{"{\"format\":\"fettle.environment/1\",\"token\":\"t:2\"}", "another attempt"},
		{HEAD "\"node\":\"\"}", "node: expected its name"},
		{"[]", "format is not"},
	};
	_cleanup_free_ char *node = NULL;
	struct kvs keys = {0};
	struct strv notes = {0};
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(parse(bad[i].text, &node, &keys, &notes, &e), -ERR_PARSE);
		assert_contains(e.text, bad[i].says);
		assert_null(node);
	}
	assert_ok(parse(HEAD "\"node\":\"n1\",\"keys\":{\"kernel\":\" 6.1\\n\",\"cpus\":8,\"a b\":"
			     "\"x\",\"\":\"x\",\"empty\":\" \"},\"absent\":{\"tool\":\"no such "
			     "file\"},\"more\":[]}",
			&node, &keys, &notes, &e));
	assert_string_equal(node, "n1");
	assert_int_equal(keys.n, 1);
	assert_string_equal(kvs_get(&keys, "kernel"), "6.1");
	assert_string_equal(notes.v[0], "node n1 tells nothing of fingerprint.tool: no such file");
	kvs_free(&keys);
	strv_free(&notes);
}

static void write_text(const char *dir, const char *name, const char *text)
{
	_cleanup_free_ char *path = fs_join(dir, name);
	struct err e = {0};

	assert_ok(fs_write_atomic(path, text, strlen(text), 0600, &e));
}

static void test_files_of_an_attempt(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *trial = fs_join(dir, "t01");
	struct fingerprint_key named = {.name = (char *)(uintptr_t) "nccl"};
	struct recipe plain = {0}, own = {.fingerprint = &named, .n_fingerprint = 1};
	struct attempt_files a = {.trials = xcalloc(1, sizeof *a.trials), .n = 1};
	struct err e = {0};

	(void)state;
	a.trials[0].slot = 1;
	assert_ok(fs_mkdirs(trial, 0700, &e));
	write_text(trial, "out", "n1:1:1 [0] NCCL INFO x\nNCCL version 2.18.3+cuda12.1\nstep 1\n");
	write_text(dir, "environment.json", HEAD "\"node\":\"n1\",\"keys\":{\"kernel\":\"6.1\"}}");
	write_text(dir, "environment.n2.json",
		   HEAD "\"node\":\"n2\",\"keys\":{\"kernel\":\"5\",\"nccl\":\"2\"}}");
	write_text(dir, "environment.n3.json", "{");
	for (int i = 1; i <= 4; i++)
		strv_addf(&a.nodes, "n%d", i);
	fingerprint_read(&plain, dir, "t:1", &a);
	assert_int_equal(a.n_environments, 2);
	assert_string_equal(a.environments[1].node, "n2");
	assert_string_equal(kvs_get(&a.environments[1].keys, "kernel"), "5");
	assert_string_equal(kvs_get(&a.environments[0].keys, "nccl"), "2.18.3+cuda12.1");
	assert_string_equal(kvs_get(&a.environments[1].keys, "nccl"), "2.18.3+cuda12.1");
	assert_int_equal(a.notes.n, 1);
	assert_contains(a.notes.v[0], "environment.n3.json");
	attempt_files_done(&a);
	/* the recipe says itself what nccl is */
	a.trials = xcalloc(1, sizeof *a.trials);
	a.n = 1;
	a.trials[0].slot = 1;
	strv_add(&a.nodes, "n1");
	fingerprint_read(&own, dir, "t:1", &a);
	assert_int_equal(a.n_environments, 1);
	assert_null(kvs_get(&a.environments[0].keys, "nccl"));
	attempt_files_done(&a);
}

static void test_what_is_known_here(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *git = fs_join(dir, ".git");
	struct fingerprint_key keys[] = {
		{.name = TEXT("omp"), .how = FINGERPRINT_ENV, .env = TEXT("OMP_NUM_THREADS")},
		{.name = TEXT("home"), .how = FINGERPRINT_ENV, .env = TEXT("HOME")},
		{.name = TEXT("modules"), .how = FINGERPRINT_FILE, .file = TEXT("m")}};
	struct recipe r = {.workload = {.workdir = dir}, .fingerprint = keys, .n_fingerprint = 2};
	struct kvs env = {0}, out = {0};
	struct err e = {0};

	(void)state;
	assert_ok(fs_mkdirs(git, 0700, &e));
	write_text(git, "HEAD", "0123456789012345678901234567890123456789\n");
	kvs_set(&env, "LOADEDMODULES", "gcc/12:cuda/12.4");
	kvs_set(&env, "OMP_NUM_THREADS", "8");
	kvs_set(&r.workload.env, "OMP_NUM_THREADS", "4");
	r.workload.container = (struct container){.runtime = TEXT("apptainer"),
						  .image = TEXT("i.sif")};
	write_text(dir, "i.sif", "12345");
	fingerprint_here(&r, &env, false, &out);
	assert_string_equal(kvs_get(&out, "git"), "0123456789012345678901234567890123456789");
	assert_string_equal(kvs_get(&out, "modules"), "gcc/12:cuda/12.4");
	assert_string_equal(kvs_get(&out, "omp"), "4");
	assert_true(str_starts(kvs_get(&out, "container"), "i.sif, 5 bytes of "));
	assert_false(kvs_has(&out, "home"));
	assert_false(kvs_has(&out, "host"));
	kvs_free(&out);
	out = (struct kvs){0};
	r.n_fingerprint = 3; /* now modules are something of the recipe's own */
	fingerprint_here(&r, &env, true, &out);
	assert_false(kvs_has(&out, "modules"));
	assert_true(kvs_has(&out, "host"));
	kvs_free(&out);
	kvs_free(&env);
	kvs_free(&r.workload.env);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_the_same_environment_has_no_changes),
		cmocka_unit_test(test_what_differs_is_named),
		cmocka_unit_test(test_what_was_written_another_way_is_no_change),
		cmocka_unit_test(test_nodes_that_differed_then),
		cmocka_unit_test(test_another_login_node_is_no_other_cluster),
		cmocka_unit_test(test_the_file_of_a_node),
		cmocka_unit_test(test_files_of_an_attempt),
		cmocka_unit_test(test_what_is_known_here),
		cmocka_unit_test(test_a_broken_fingerprint_is_an_error),
		cmocka_unit_test(test_what_nodes_share_stands_once),
		cmocka_unit_test(test_many_values_are_counted),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
