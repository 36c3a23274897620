/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include "orchestrator/agent/block.h"

static const char GOOD[] =
	"{\"format\":\"fettle.block/"
	"1\",\"token\":\"fettle:1f3a9c02:a9\",\"block\":17,\"attempt\":2,"
	"\"deadline_us\":5,\"window\":{\"pattern\":\"^step "
	"\",\"source\":\"out\",\"warmup\":20,\"steps\":200},"
	"\"limits\":{\"trial_s\":600,\"log_bytes\":67108864,\"work_bytes\":2147483648,\"grace_s\":"
	"7},"
	"\"launch\":[\"srun\",\"-N2\"],\"container\":{\"runtime\":\"pyxis\",\"image\":\"i\","
	"\"mounts\":[\"/a:/b\"],\"args\":[\"--x\"],\"env\":[\"SEED\"]},\"workdir\":\"/abs\",\"env\":{\"PATH\":\"/usr/bin\"},"
	"\"secrets\":[\"KEY\"],\"sampler\":{\"period_ms\":500},\"evidence\":{\"env_prefixes\":["
	"\"NCCL_\"]},"
	"\"arms\":[{\"arm\":41,\"config\":\"x\",\"argv\":[\"python3\",\"train.py\"],\"env\":{\"A\":"
	"\"1\"},"
	"\"unset\":[\"B\"]},{\"arm\":42,\"argv\":[\"true\"],\"later\":{\"any\":[1,2.5,null]}}],"
	"\"slots\":[{\"slot\":0,\"arm\":42,\"repeat\":0,\"kind\":\"warmup\"},"
	"{\"slot\":1,\"arm\":41,\"repeat\":3}],\"later\":true}";

static void a_whole_block_is_read(void **state)
{
	struct block *b = NULL;
	struct err e = {0};

	(void)state;
	assert_ok(block_parse("block.json", GOOD, strlen(GOOD), &b, &e));
	assert_string_equal(b->token, "fettle:1f3a9c02:a9");
	assert_int_equal(b->block, 17);
	assert_int_equal(b->attempt, 2);
	assert_int_equal(b->deadline_us, 5);
	assert_string_equal(b->window.pattern, "^step ");
	assert_int_equal(b->window.source, WINDOW_OUT);
	assert_int_equal(b->window.warmup, 20);
	assert_int_equal(b->window.steps, 200);
	assert_int_equal(b->limits.work_bytes, INT64_C(2147483648));
	assert_int_equal(b->limits.grace_s, 7);
	assert_int_equal(b->launch.n, 2);
	assert_string_equal(b->launch.v[1], "-N2");
	assert_string_equal(b->container.runtime, "pyxis");
	assert_string_equal(b->container.image, "i");
	assert_string_equal(b->container.mounts.v[0], "/a:/b");
	assert_string_equal(b->container.args.v[0], "--x");
	assert_string_equal(b->container_env.v[0], "SEED");
	assert_string_equal(b->workdir, "/abs");
	assert_string_equal(kvs_get(&b->env, "PATH"), "/usr/bin");
	assert_string_equal(b->secrets.v[0], "KEY");
	assert_int_equal(b->sampler_period_ms, 500);
	assert_string_equal(b->env_prefixes.v[0], "NCCL_");
	assert_int_equal(b->n_arms, 2);
	assert_string_equal(b->arms[0].argv.v[1], "train.py");
	assert_string_equal(b->arms[0].unset.v[0], "B");
	assert_int_equal(b->n_slots, 2);
	assert_int_equal(b->slots[0].arm_index, 1);
	assert_string_equal(b->slots[0].kind, "warmup");
	assert_string_equal(b->slots[1].kind, "timed"); /* the default */
	assert_int_equal(b->slots[1].repeat, 3);
	block_free(b);
}

/* Replace the first `from` of GOOD by `to` and expect the error. */
static void refuse(const char *from, const char *to, const char *want)
{
	const char *at = strstr(GOOD, from);
	_cleanup_free_ char *text = NULL;
	struct block *b = NULL;
	struct err e = {0};

	assert_non_null(at);
	text = xasprintf("%.*s%s%s", (int)(at - GOOD), GOOD, to, at + strlen(from));
	assert_true(block_parse("b/block.json", text, strlen(text), &b, &e) < 0);
	assert_null(b);
	assert_contains(e.text, "b/block.json: ");
	assert_contains(e.text, want);
}

static void each_fault_is_named_with_its_key(void **state)
{
	static const struct {
		const char *from, *to, *want;
	} cases[] = {
		{"fettle.block/1", "fettle.block/2", "format: expected \"fettle.block/1\""},
		{"\"format\":\"fettle.block/1\",", "", "format: is missing"},
		{"fettle:1f3a9c02:a9", "", "token: is empty"},
		{"fettle:1f3a9c02:a9", "a b", "token: holds a character"},
		{"1f3a9c02", "0123456789012345678901234567890123456789012345678901234567890123",
		 "token: is longer than 63 bytes"},
		{"\"block\":17", "\"block\":\"17\"", "block: expected a whole number, found text"},
		{"\"block\":17", "\"block\":1.5", "block: expected a whole number, found 1.5"},
		{"\"block\":17,", "", "block: is missing"},
		{"\"attempt\":2", "\"attempt\":-1", "attempt: -1 is not within"},
		{"\"source\":\"out\"", "\"source\":\"rank0\"",
		 "window.source: expected \"out\" or \"metrics\""},
		{"\"^step \"", "\"\"", "window.pattern: is empty"},
		{"\"warmup\":20", "\"warmup\":null",
		 "window.warmup: expected a whole number, found null"},
		{"{\"trial_s\":600", "{\"trial_s\":0", "limits.trial_s: 0 is not within"},
		{"\"log_bytes\":67108864", "\"log_bytes\":1", "limits.log_bytes: 1 is not within"},
		{"[\"srun\",\"-N2\"]", "\"srun\"", "launch: expected an array, found text"},
		{"[\"srun\",\"-N2\"]", "[\"srun\",2]",
		 "launch: element 1: expected text, found a number"},
		{"\"pyxis\"", "\"docker\"",
		 "container.runtime: \"docker\" is not pyxis, apptainer or singularity"},
		{"\"image\":\"i\",", "", "container.image: is missing"},
		{"\"/abs\"", "\"rel\"", "workdir: \"rel\" is not an absolute path"},
		{"\"PATH\":\"/usr/bin\"", "\"A=B\":\"1\"", "env: \"A=B\" is no name"},
		{"\"PATH\":\"/usr/bin\"", "\"PATH\":1", "env: PATH: expected text, found a number"},
		{"[\"KEY\"]", "[\"\"]", "secrets: \"\" is no name"},
		{"\"period_ms\":500", "\"period_ms\":1", "sampler.period_ms: 1 is below 10"},
		{"[\"python3\",\"train.py\"]", "[]", "arms[0].argv: is missing or empty"},
		{"\"arm\":42,\"argv\"", "\"arm\":41,\"argv\"", "arms[1].arm: 41 stands twice"},
		{"\"slot\":0,\"arm\":42", "\"slot\":0,\"arm\":43",
		 "slots[0].arm: 43 is not one of arms"},
		{"\"slot\":1", "\"slot\":0", "slots[1].slot: 0 stands twice"},
		{"\"/abs\"", "\"/a\\u0000b\"", "a string holds \\u0000"},
		{"\"later\":true", "\"later\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
		 "nested deeper than 32"},
		{"\"later\":true}", "\"later\":true", "not JSON"},
		{"\"later\":true}", "\"later\":true}}", "not JSON"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		refuse(cases[i].from, cases[i].to, cases[i].want);
}

static void other_values_than_an_object_are_refused(void **state)
{
	static const char *const texts[] = {"", "[]", "1", "null", "\"x\"", "{}"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct block *b = NULL;

		assert_true(block_parse("x", texts[i], strlen(texts[i]), &b, NULL) < 0);
		assert_null(b);
	}
}

static void every_cut_of_a_good_file_is_refused(void **state)
{
	(void)state;
	for (size_t n = 0; n < strlen(GOOD); n++) {
		struct block *b = NULL;

		assert_true(block_parse("x", GOOD, n, &b, NULL) < 0);
		assert_null(b);
	}
}

static void an_absent_file_is_not_found(void **state)
{
	struct block *b = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(block_read("/nonexistent/block.json", &b, &e), -ERR_NOT_FOUND);
	assert_contains(e.text, "/nonexistent/block.json");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_block_is_read),
		cmocka_unit_test(each_fault_is_named_with_its_key),
		cmocka_unit_test(other_values_than_an_object_are_refused),
		cmocka_unit_test(every_cut_of_a_good_file_is_refused),
		cmocka_unit_test(an_absent_file_is_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
