/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The first block of a small campaign as it is handed to the agent, byte for byte as in
 * tests/golden/block.json but for the workspace's id and directories. UPDATE_GOLDEN=1 writes it.
 */
#include "tests/unit/world.h"

#include "tests/unit/recipe.h"
#include "tests/unit/store.h"

#define GOLDEN "tests/golden/block.json"

static const char recipe_text[] =
	"return { name = 'golden', objective = 'throughput_samples_per_s', scheduler = 'fake', seed = 7,\n"
	"workload = { command = { 'python3', 'train.py', '--lr', '0.1', 'a b' },\n"
	"  env = { FOO = 'bar' }, secrets = { 'WANDB_API_KEY' },\n"
	"  window = { warmup_steps = 2, steps = 5, pattern = '^step ' }, metrics = { file = true },\n"
	"  limits = { trial_s = 42, log_mib = 2 } },\n"
	"resources = { nodes = 1, tasks_per_node = 2, launcher = 'srun' },\n"
	"knobs = { { name = 'A', env = 'A', class = 'neutral', values = { 1 } },\n"
	"  { name = 'F', arg = '--f', flag = true, class = 'neutral', default = false, values = { true } } },\n"
	"fingerprint = { tool = { file = '/sw/VERSION' }, nccl = { command = { 'cat', 'v' } }, foo = { env = 'FOO' } },\n"
	"repeats = 2, warmup_trials = 1 }\n";

static void replace(char **text, const char *what, const char *with)
{
	struct buf b = {0};
	const char *p = *text, *hit;

	while ((hit = strstr(p, what))) {
		buf_put(&b, p, (size_t)(hit - p));
		buf_str(&b, with);
		p = hit + strlen(what);
	}
	buf_str(&b, p);
	free(*text);
	*text = buf_take(&b);
}

static void step_until_written(struct world *w, const char *path)
{
	for (int i = 0; i < 20 && !fs_exists(path); i++)
		drive(w, NULL, 1);
	assert_true(fs_exists(path));
}

/* block.json of a block, with the workspace's own words masked; heap. */
static char *masked(struct world *w, const char *block)
{
	_cleanup_free_ char *dir = fs_join(w->dir, "blocks"), *sub = fs_join(dir, block),
			    *path = fs_join(sub, "block.json"), *cwd = fs_absolute(".", NULL);
	struct buf b = {0};
	struct err e = {0};
	char uuid8[9] = "", *text;

	step_until_written(w, path);
	assert_ok(fs_read(path, 1 << 20, &b, &e));
	text = buf_take(&b);
	str_copy(uuid8, sizeof uuid8, w->ws->uuid);
	replace(&text, uuid8, "UUID8UID");
	replace(&text, cwd, "/CWD");
	return text;
}

static void set_environment(void)
{
	/* cmocka looks at it with every line that it prints. */
	const char *format = getenv("CMOCKA_MESSAGE_OUTPUT");
	_cleanup_free_ char *kept = format ? xstrdup(format) : NULL;

	clearenv();
	if (kept)
		setenv("CMOCKA_MESSAGE_OUTPUT", kept, 1);
	setenv("PATH", "/usr/bin:/bin", 1);
	setenv("NCCL_DEBUG", "WARN", 1);
	setenv("SLURM_JOB_ID", "17", 1); /* of the shell that started us: not the trials' */
	setenv("WANDB_API_KEY", "do-not-tell", 1); /* by name only */
	setenv("MY_OWN", "1", 1);                  /* not on the allow-list */
}

static void test_block_json_is_the_golden_one(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = write_file(dir, "c.lua", recipe_text), *text = NULL;
	const bool update = getenv("UPDATE_GOLDEN") != NULL;
	struct buf golden = {0};
	struct err e = {0};
	struct world w;

	(void)state;
	set_environment();
	world_open_recipe(&w, 7, path);
	text = masked(&w, "1.1");
	replace(&text, dir, "/RECIPE");
	if (update)
		assert_ok(fs_write_atomic(GOLDEN, text, strlen(text), 0644, &e));
	assert_ok(fs_read(GOLDEN, 1 << 20, &golden, &e));
	assert_string_equal(text, golden.data);
	assert_null(strstr(text, "do-not-tell"));
	buf_free(&golden);
	world_close(&w);
}

/* The same seed plans the same slots; another one another order within 8 blocks. */
static char *slot_order(uint64_t seed)
{
	struct world w;
	char *order;

	world_open(&w, seed);
	run(&w, "{\"fixed\": true}");
	order = store_text(w.ws->db, "SELECT group_concat(block || ':' || idx || ':' || arm || ':' "
				     "|| repeat) FROM (SELECT * FROM slot ORDER BY block, idx)");
	world_close(&w);
	return order;
}

static void test_the_plan_of_slots_is_a_function_of_the_seed(void **state)
{
	_cleanup_free_ char *a = slot_order(7), *b = slot_order(7), *c = slot_order(8);

	(void)state;
	assert_string_equal(a, b);
	assert_string_not_equal(a, c);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_the_plan_of_slots_is_a_function_of_the_seed),
		cmocka_unit_test(test_block_json_is_the_golden_one),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
