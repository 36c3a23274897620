/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What stands between launcher and command, word for word as pyxis' and apptainer's documentation
 * have it: pyxis, `srun --help` (a name in --container-env wins over the image's value, others do
 * not); apptainer, "Environment and Metadata" (--env wins over the image, the host does not).
 */
#include "tests/unit/check.h"

#include "orchestrator/base/container.h"

static struct container make(const char *runtime, const char *image)
{
	return (struct container){.runtime = xstrdup(runtime), .image = xstrdup(image)};
}

static char *joined(const struct strv *v)
{
	struct buf b = {0};

	for (size_t i = 0; i < v->n; i++)
		buf_printf(&b, "%s%s", i ? "\n" : "", v->v[i]);
	return buf_take(&b);
}

/* Two variables, one that must not be set, one secret. */
static void enters(struct container *c, const struct container_use *base, const char *expected)
{
	struct kvs env = {0};
	struct strv secrets = {0}, argv = {0};
	struct container_use use = *base;
	_cleanup_free_ char *text = NULL;
	struct err e = {0};

	kvs_set(&env, "NCCL_ALGO", "Ring");
	kvs_set(&env, "MALLOC_CONF", NULL);
	kvs_set(&env, "OMP_NUM_THREADS", "4");
	strv_add(&secrets, "WANDB_API_KEY");
	strv_add(&secrets, "NCCL_ALGO"); /* known already */
	use.env = &env;
	use.by_name = &secrets;
	strv_add(&argv, "srun");
	strv_add(&argv, "--ntasks=2");
	assert_ok(container_enter(c, &use, &argv, &e));
	text = joined(&argv);
	assert_string_equal(text, expected);
	kvs_free(&env);
	strv_free(&secrets);
	strv_free(&argv);
	container_done(c);
}

static void test_pyxis(void **state)
{
	struct container c = make("pyxis", "nvcr.io#nvidia/pytorch:25.09-py3");
	const struct container_use use = {.workdir = "/home/me/run",
					  .own_dir = "/scratch/ws/blocks/7.1"};

	(void)state;
	strv_add(&c.mounts, "/data/imagenet:/data:ro");
	strv_add(&c.mounts, "/opt/tools");
	strv_add(&c.args, "--no-container-mount-home");
	enters(&c, &use,
	       "srun\n--ntasks=2\n"
	       "--container-image=nvcr.io#nvidia/pytorch:25.09-py3\n"
	       "--container-workdir=/home/me/run\n"
	       "--container-mounts=/home/me/run:/home/me/run,/scratch/ws/blocks/7.1:/scratch/ws/blocks/7.1,"
	       "/data/imagenet:/data:ro,/opt/tools:/opt/tools\n"
	       "--container-env=NCCL_ALGO,OMP_NUM_THREADS,WANDB_API_KEY\n"
	       "--no-container-mount-home\n"
	       "env\n-u\nMALLOC_CONF");
}

static void test_apptainer(void **state)
{
	struct container c = make("apptainer", "/images/train.sif");
	const struct container_use use = {.workdir = "/home/me/run",
					  .own_dir = "/scratch/ws/blocks/7.1"};

	(void)state;
	strv_add(&c.mounts, "/data/imagenet:/data:ro");
	strv_add(&c.args, "--nv");
	enters(&c, &use,
	       "srun\n--ntasks=2\napptainer\nexec\n--pwd\n/home/me/run\n"
	       "--bind\n/home/me/run:/home/me/run\n"
	       "--bind\n/scratch/ws/blocks/7.1:/scratch/ws/blocks/7.1\n"
	       "--bind\n/data/imagenet:/data:ro\n"
	       "--env\nNCCL_ALGO=Ring\n--env\nOMP_NUM_THREADS=4\n"
	       "--nv\n/images/train.sif\n"
	       "env\n-u\nMALLOC_CONF");
}

/* A workspace within the working directory is there already; without directories none is mounted.
 */
static void test_singularity_and_what_is_mounted_already(void **state)
{
	struct container c = make("singularity", "docker://ubuntu:22.04");

	(void)state;
	enters(&c,
	       &(struct container_use){.workdir = "/home/me", .own_dir = "/home/me/ws/blocks/7.1"},
	       "srun\n--ntasks=2\nsingularity\nexec\n--pwd\n/home/me\n--bind\n/home/me:/home/me\n"
	       "--env\nNCCL_ALGO=Ring\n--env\nOMP_NUM_THREADS=4\ndocker://ubuntu:22.04\n"
	       "env\n-u\nMALLOC_CONF");
	c = make("pyxis", "x");
	enters(&c, &(struct container_use){.own_dir = "/home/me2"},
	       "srun\n--ntasks=2\n--container-image=x\n--container-mounts=/home/me2:/home/me2\n"
	       "--container-env=NCCL_ALGO,OMP_NUM_THREADS,WANDB_API_KEY\nenv\n-u\nMALLOC_CONF");
	c = make("pyxis", "x");
	enters(&c, &(struct container_use){.workdir = "/home/me", .own_dir = "/home/me2"},
	       "srun\n--ntasks=2\n--container-image=x\n--container-workdir=/home/me\n"
	       "--container-mounts=/home/me:/home/me,/home/me2:/home/me2\n"
	       "--container-env=NCCL_ALGO,OMP_NUM_THREADS,WANDB_API_KEY\nenv\n-u\nMALLOC_CONF");
}

/* --env NAME=VALUE is taken whole while it holds one '='; with more of them it is CSV. */
static void test_values_that_apptainer_would_split(void **state)
{
	static const char *const cases[][2] = {
		{"Ring,Tree", "X=Ring,Tree"},
		{"a:1,b:2", "X=a:1,b:2"},
		{"", "X="},
		{"a=1", "X=a=1"},
		{"a=1,b=2", "\"X=a=1,b=2\""},
		{"a=\"1\"", "\"X=a=\"\"1\"\"\""},
		{"two words", "X=two words"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct container c = make("apptainer", "i.sif");
		struct kvs env = {0};
		struct strv argv = {0};
		struct err e = {0};

		kvs_set(&env, "X", cases[i][0]);
		assert_ok(container_enter(&c, &(struct container_use){.env = &env}, &argv, &e));
		assert_int_equal(argv.n, 5);
		assert_string_equal(argv.v[2], "--env");
		assert_string_equal(argv.v[3], cases[i][1]);
		kvs_free(&env);
		strv_free(&argv);
		container_done(&c);
	}
}

static void test_mounts(void **state)
{
	static const char *const good[] = {"/a", "/a:/b", "/a:/b:ro", "/a b:/c d:rw", "/"};
	static const char *const bad[] = {"",       "a",       "/a:",        "/a:b",
					  "/a:/b:", "/a:/b:x", "/a,/b",      "/a:/b,c",
					  ":/a",    "/a\n",    "/a:/b:ro:x", "tmpfs:/a"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (!container_mount_valid(good[i]))
			fail_msg("%s is a mount", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (container_mount_valid(bad[i]))
			fail_msg("%s is no mount", bad[i]);
}

static void test_a_directory_that_cannot_be_mounted(void **state)
{
	struct container c = make("apptainer", "i.sif");
	struct kvs env = {0};
	struct strv argv = {0};
	struct err e = {0};

	(void)state;
	assert_int_equal(container_enter(&c,
					 &(struct container_use){.env = &env,
								 .workdir = "/a",
								 .own_dir = "/ws,old/blocks/1.1"},
					 &argv, &e),
			 -ERR_RECIPE);
	assert_int_equal(argv.n, 0);
	assert_contains(
		e.text,
		"/ws,old/blocks/1.1 cannot be mounted into a container: its name holds ','");
	strv_free(&argv);
	container_done(&c);
}

static void test_prefix(void **state)
{
	(void)state;
	assert_null(container_env_prefix(&(struct container){0}));
	assert_null(container_env_prefix(&(struct container){.runtime = (char[]){"pyxis"}}));
	assert_string_equal(
		container_env_prefix(&(struct container){.runtime = (char[]){"apptainer"}}),
		"APPTAINERENV_");
	assert_string_equal(
		container_env_prefix(&(struct container){.runtime = (char[]){"singularity"}}),
		"SINGULARITYENV_");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pyxis),
		cmocka_unit_test(test_apptainer),
		cmocka_unit_test(test_singularity_and_what_is_mounted_already),
		cmocka_unit_test(test_values_that_apptainer_would_split),
		cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_a_directory_that_cannot_be_mounted),
		cmocka_unit_test(test_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
