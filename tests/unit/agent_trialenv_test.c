/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/agent/jwrite.h"
#include "orchestrator/agent/trialenv.h"

static struct block *block_of(const char *env, const char *arm, const char *more)
{
	_cleanup_free_ char *text = xasprintf(
		"{\"format\":\"fettle.block/"
		"1\",\"token\":\"t:1\",\"block\":17,\"attempt\":1,\"workdir\":\"/w\","
		"\"env\":{%s},\"arms\":[{\"arm\":1,\"argv\":[\"true\"]},{\"arm\":2,\"argv\":["
		"\"true\"],%s}],"
		"\"slots\":[{\"slot\":3,\"arm\":2}]%s}",
		env, arm, more);
	struct block *b = NULL;
	struct err e = {0};

	assert_ok(block_parse("block.json", text, strlen(text), &b, &e));
	return b;
}

static struct trialenv make(const struct block *b, const struct kvs *secrets)
{
	struct trialenv env;
	struct err e = {0};

	assert_ok(trialenv_make(b, &b->slots[0], "/b/t03", secrets, "host1", &env, &e));
	return env;
}

static void layers_lie_over_each_other(void **state)
{
	int64_t port = 0;
	_cleanup_(block_freep) struct block *b = block_of(
		"\"PATH\":\"/p\",\"A\":\"base\",\"B\":\"base\",\"TMPDIR\":\"/mine\"",
		"\"env\":{\"A\":\"arm\",\"C\":\"arm\"},\"unset\":[\"B\",\"WANDB_MODE\"]", "");
	struct trialenv env = make(b, &(struct kvs){0});

	(void)state;
	assert_string_equal(kvs_get(&env.vars, "PATH"), "/p");
	assert_string_equal(kvs_get(&env.vars, "A"), "arm");
	assert_false(kvs_has(&env.vars, "B"));
	assert_string_equal(kvs_get(&env.vars, "C"), "arm");
	assert_string_equal(kvs_get(&env.vars, "TMPDIR"), "/mine"); /* the base wins over ours */
	assert_false(kvs_has(&env.vars, "WANDB_MODE"));             /* and so does an arm's unset */
	assert_string_equal(kvs_get(&env.vars, "HF_HUB_OFFLINE"), "1");
	assert_string_equal(kvs_get(&env.vars, "XDG_CACHE_HOME"), "/b/t03/cache");
	assert_string_equal(kvs_get(&env.vars, "FETTLE_METRICS"), "/b/t03/metrics.jsonl");
	assert_string_equal(kvs_get(&env.vars, "FETTLE_CKPT_DIR"), "/b/t03/ckpt");
	assert_string_equal(kvs_get(&env.vars, "FETTLE_SLOT"), "3");
	assert_string_equal(kvs_get(&env.vars, "FETTLE_ARM_INDEX"), "1");
	assert_string_equal(kvs_get(&env.vars, "FETTLE_BLOCK"), "17");
	assert_string_equal(kvs_get(&env.vars, "FETTLE_SET"), "A B C WANDB_MODE");
	assert_string_equal(kvs_get(&env.vars, "FETTLE_TRIAL"), "t:1:3");
	assert_string_equal(kvs_get(&env.vars, "MASTER_ADDR"), "127.0.0.1");
	assert_true(str_to_i64(kvs_get(&env.vars, "MASTER_PORT"), &port));
	assert_in_range(port, 1, 65535);
	assert_false(kvs_has(&env.added, "TMPDIR"));
	assert_true(kvs_has(&env.added, "MASTER_PORT"));
	assert_int_equal(env.envp.n, env.vars.n);
	trialenv_free(&env);
}

static void an_allocation_gives_its_variables_under_the_arms(void **state)
{
	_cleanup_(block_freep) struct block *b = block_of(
		"", "\"env\":{\"SLURM_CPU_BIND\":\"none\"}", ",\"launch\":[\"srun\"]");
	struct trialenv env;

	(void)state;
	setenv("SLURM_JOB_ID", "4711", 1);
	setenv("SLURM_CPU_BIND", "cores", 1);
	setenv("SLURM_EXPORT_ENV", "NONE", 1);
	setenv("CUDA_VISIBLE_DEVICES", "2,3", 1);
	setenv("OTHER_OF_THE_AGENT", "1", 1);
	env = make(b, &(struct kvs){0});
	assert_string_equal(kvs_get(&env.vars, "SLURM_JOB_ID"), "4711");
	assert_string_equal(kvs_get(&env.vars, "CUDA_VISIBLE_DEVICES"), "2,3");
	assert_string_equal(kvs_get(&env.vars, "SLURM_CPU_BIND"), "none");
	assert_string_equal(kvs_get(&env.vars, "MASTER_ADDR"),
			    "host1"); /* ranks may be elsewhere */
	assert_false(kvs_has(&env.vars, "SLURM_EXPORT_ENV"));
	assert_false(kvs_has(&env.vars, "OTHER_OF_THE_AGENT"));
	trialenv_free(&env);
	unsetenv("SLURM_JOB_ID");
	env = make(b, &(struct kvs){0});
	assert_false(kvs_has(&env.vars, "CUDA_VISIBLE_DEVICES"));
	trialenv_free(&env);
	unsetenv("SLURM_CPU_BIND");
	unsetenv("SLURM_EXPORT_ENV");
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("OTHER_OF_THE_AGENT");
}

static void secrets_come_by_name_from_environment_and_file(void **state)
{
	_cleanup_(block_freep) struct block *b = block_of("", "\"unset\":[]",
							  ",\"secrets\":[\"S1\",\"S2\",\"S3\"]");
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "secrets");
	struct kvs secrets = {0};
	struct trialenv env;
	struct err e = {0};

	(void)state;
	assert_int_equal(
		fs_write_atomic(path, "S2=two=2\nOTHER=x\nnonsense\nS1=file", 33, 0600, NULL), 0);
	setenv("S1", "one", 1);
	assert_ok(trialenv_secrets(b, &secrets, &e));
	assert_int_equal(secrets.n, 1);
	setenv("FETTLE_SECRETS", path, 1);
	assert_ok(trialenv_secrets(b, &secrets, &e));
	assert_int_equal(secrets.n, 2);
	assert_string_equal(kvs_get(&secrets, "S1"), "file"); /* the file was made for this job */
	assert_string_equal(kvs_get(&secrets, "S2"), "two=2");
	env = make(b, &secrets);
	assert_string_equal(kvs_get(&env.vars, "S2"), "two=2");
	assert_false(kvs_has(&env.vars, "FETTLE_SECRETS"));
	trialenv_free(&env);
	chmod(path, 0640);
	assert_int_equal(trialenv_secrets(b, &secrets, &e), -ERR_IO);
	assert_contains(e.text, "chmod 600");
	kvs_free(&secrets);
	unsetenv("S1");
	unsetenv("FETTLE_SECRETS");
}

static void secret_values_are_taken_out_of_text(void **state)
{
	struct kvs secrets = {0};
	_cleanup_free_ char *a = NULL, *b = NULL;

	(void)state;
	kvs_set(&secrets, "K", "hunter2");
	kvs_set(&secrets, "L", "hunter2222");
	kvs_set(&secrets, "SHORT", "1");
	a = trialenv_redact(&secrets, "--key=hunter2 and hunter2222, 1 hunter");
	b = trialenv_redact(&secrets, "");
	assert_string_equal(a, "--key=*** and ***, 1 hunter");
	assert_string_equal(b, "");
	kvs_free(&secrets);
}

/* --- the writer's repair of text -------------------------------------------------------- */

static void what_is_not_utf8_is_replaced(void **state)
{
	static const struct {
		const char *raw, *want;
	} cases[] = {
		{"caf\xc3\xa9 \xe6\xad\xa5", "caf\xc3\xa9 \xe6\xad\xa5"},
		{"caf\xe9", "caf\xef\xbf\xbd"},
		{"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong */
		{"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
		{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
		{"\xe6\xad", "\xef\xbf\xbd\xef\xbf\xbd"}, /* cut */
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf b = {0};

		jwrite_utf8(&b, cases[i].raw, strlen(cases[i].raw));
		assert_string_equal(b.data, cases[i].want);
		buf_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers_lie_over_each_other),
		cmocka_unit_test(an_allocation_gives_its_variables_under_the_arms),
		cmocka_unit_test(secrets_come_by_name_from_environment_and_file),
		cmocka_unit_test(secret_values_are_taken_out_of_text),
		cmocka_unit_test(what_is_not_utf8_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
