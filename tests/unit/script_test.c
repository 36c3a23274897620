/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a campaign file to a plan: good ones, bad ones, the site's policy, the catalogue. */
#include "tests/unit/near.h"
#include "tests/unit/recipe.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BAD "tests/fixtures/recipes/bad"

/* --- bad recipes: each file says in itself what must be said, and marks the line -------------- */

static int marked_line(const char *text)
{
	const char *mark = strstr(text, "-- HERE");
	int line = 1;

	for (const char *p = text; mark && p < mark; p++)
		line += *p == '\n';
	return line;
}

static void check_bad(const char *name)
{
	_cleanup_free_ char *path = fs_join(BAD, name), *absolute = NULL, *at = NULL;
	_cleanup_loaded_ struct loaded l = load_file(path, NULL);
	struct buf text = {0};
	struct err e = {0};
	int said = 0;

	assert_ok(fs_read(path, 1 << 20, &text, &e));
	absolute = fs_absolute(path, &e);
	if (!l.rc)
		fail_msg("%s was accepted", path);
	assert_int_equal(l.rc, -ERR_RECIPE);
	assert_int_equal(err_exit_status(l.e.code), 2);
	assert_null(strchr(l.e.text, '\n'));
	at = xasprintf("%s:%d: ", absolute, marked_line(text.data));
	if (strncmp(l.e.text, at, strlen(at)))
		fail_msg("%s: expected it to begin with \"%s\"", l.e.text, at);
	for (const char *p = text.data; (p = strstr(p, "-- says: ")); said++) {
		_cleanup_free_ char *part = NULL;

		p += strlen("-- says: ");
		part = xstrndup(p, strcspn(p, "\n"));
		assert_contains(l.e.text, part);
	}
	assert_true(said > 0);
	buf_free(&text);
}

static void test_bad_recipes(void **state)
{
	DIR *d = opendir(BAD);
	struct dirent *entry;
	int n = 0;

	(void)state;
	assert_non_null(d);
	while ((entry = readdir(d))) {
		if (!str_ends(entry->d_name, ".lua"))
			continue;
		check_bad(entry->d_name);
		n++;
	}
	closedir(d);
	assert_true(n >= 40);
}

#define GOOD                                                               \
	"return { name = 'c', objective = 'throughput_samples_per_s',\r\n" \
	"workload = { command = { 'true' } } }\r\n"

/* What other systems' editors write: a mark of UTF-8 and CRLF are read over; UTF-16 is named. */
static void test_other_editors(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "c.lua");
	_cleanup_free_ char *big = xmalloc((1 << 20) + 1);
	struct err e = {0};
	char hash[33];

	(void)state;
	fs_hash("\xef\xbb\xbf" GOOD, strlen(GOOD) + 3, hash); /* by which resume sees a change */
	{
		_cleanup_loaded_ struct loaded l = load_text(dir, "\xef\xbb\xbf" GOOD);

		assert_ok(l.rc);
		assert_string_equal(l.sources.v[0].hash, hash);
	}
	assert_ok(fs_write_atomic(path, "\xff\xfer\0e\0t\0", 8, 0600, &e));
	{
		_cleanup_loaded_ struct loaded l = load_file(path, NULL);

		assert_int_equal(l.rc, -ERR_RECIPE);
		assert_contains(l.e.text, "save it as UTF-8");
	}
	memset(big, ' ', (1 << 20) + 1);
	assert_ok(fs_write_atomic(path, big, (1 << 20) + 1, 0600, &e));
	{
		_cleanup_loaded_ struct loaded l = load_file(path, NULL);

		assert_int_equal(l.rc, -ERR_RECIPE);
		assert_contains(l.e.text, "larger than 1 MiB");
	}
}

static void test_not_a_text(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "c.lua");
	struct err e = {0};

	(void)state;
	assert_ok(fs_write_atomic(path, "\x1bLua\0T", 6, 0600, &e));
	{
		_cleanup_loaded_ struct loaded l = load_file(path, NULL);

		assert_int_equal(l.rc, -ERR_RECIPE);
		assert_contains(l.e.text, "NUL byte");
	}
	{
		_cleanup_loaded_ struct loaded l = load_text(dir, "\x1bLua");

		assert_int_equal(l.rc, -ERR_RECIPE);
		assert_contains(l.e.text, "attempt to load a binary chunk");
	}
	{
		_cleanup_loaded_ struct loaded l = load_file("/nonexistent/c.lua", NULL);

		assert_int_equal(l.rc, -ERR_RECIPE);
		assert_contains(l.e.text, "/nonexistent/c.lua");
	}
}

/* --- a good one ------------------------------------------------------------------------------ */

static const char good[] =
	"return {\n"
	"	name = 'loader', question = 'Which loader?',\n"
	"	workload = {\n"
	"		command = { 'python3', 'train.py', '--batch-size', 32 }, workdir = "
	"'w/../w/.',\n"
	"		env = { B = 2, A = 'x y', PYTORCH_CUDA_ALLOC_CONF = 'max_split_size_mb:64' "
	"},\n"
	"		secrets = { 'WANDB_API_KEY' },\n"
	"		window = { warmup_steps = 20, steps = 200, pattern = '^step' },\n"
	"		limits = { trial_s = 60.5, log_mib = 0.5 },\n"
	"	},\n"
	"	resources = { nodes = 2, tasks_per_node = 4, mem_gib_per_node = 1.5, "
	"time_limit_min = 30,\n"
	"		partition = 'gpu', launcher = 'torchrun', nice = -5, cpus_per_gpu = 2, "
	"licenses = 'matlab:1', switches = '1@60' },\n"
	"	objective = { metric = 'step_time_ms', stat = 'median' },\n"
	"	target = 12.5,\n"
	"	guards = { loss = 0.01, mem_peak_reserved_gib = { margin = 0.1, at_most = 70 } },\n"
	"	knobs = {\n"
	"		'pin_memory', 'max_split_size_mb',\n"
	"		{ name = 'mine', env = 'MINE', class = 'numerics', values = { 0.5, 1e6, "
	"'x' == 'y' and 1 or 2 } },\n"
	"		knob('batch_size', { values = { 64, 128 } }),\n"
	"		num_workers = { 2, 4 }, prefetch_factor = 4,\n"
	"	},\n"
	"	budget = { minutes = 1.5, node_hours = 2, trials = 99 }, mode = 'strict', rounds = "
	"2, min_effect = 0.02,\n"
	"	blocks = { aa = 3, final = 5, soak = 7 }, repeats = 2, warmup_trials = 0, seed = "
	"42, scheduler = 'local',\n"
	"}\n";

static struct loaded load_good(const char *dir)
{
	_cleanup_free_ char *w = fs_join(dir, "w");
	struct err e = {0};

	assert_ok(fs_mkdirs(w, 0700, &e));
	return load_text(dir, good);
}

static void test_every_field_arrives(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_loaded_ struct loaded l = load_good(dir);
	_cleanup_free_ char *real = fs_absolute(dir, NULL), *w = fs_join(real, "w");
	const struct recipe *r = l.recipe;

	(void)state;
	if (l.rc)
		fail_msg("%s", l.e.text);
	assert_string_equal(r->name, "loader");
	assert_string_equal(r->question, "Which loader?");
	assert_string_equal(r->workload.name, "loader");
	assert_int_equal(r->workload.command.n, 4);
	assert_string_equal(r->workload.command.v[3], "32");
	assert_string_equal(r->workload.workdir, w);
	assert_string_equal(kvs_get(&r->workload.env, "A"), "x y");
	assert_string_equal(kvs_get(&r->workload.env, "B"), "2");
	assert_string_equal(r->workload.secrets.v[0], "WANDB_API_KEY");
	assert_int_equal(r->workload.warmup_steps, 20);
	assert_int_equal(r->workload.steps, 200);
	assert_false(r->workload.whole_run);
	assert_string_equal(r->workload.step_pattern, "^step");
	assert_int_equal(r->workload.source, SOURCE_PROBE);
	assert_string_equal(r->workload.probe, "train_log");
	assert_int_equal(r->workload.trial_limit_s, 61);
	assert_int_equal(r->workload.log_limit_bytes, 512 * 1024);
	assert_int_equal(r->workload.at.line, 4);
	assert_int_equal(r->resources.nodes, 2);
	assert_int_equal(r->resources.mem_mib_per_node, 1536);
	assert_int_equal(r->resources.time_limit_s, 1800);
	assert_string_equal(r->resources.partition, "gpu");
	assert_null(r->resources.account);
	assert_string_equal(r->resources.launcher, "torchrun");
	assert_int_equal(r->resources.options.nice, -5);
	assert_int_equal(r->resources.options.cpus_per_gpu, 2);
	assert_string_equal(r->resources.options.licenses, "matlab:1");
	assert_string_equal(r->resources.options.switches, "1@60");
	assert_null(r->resources.options.begin);
	assert_string_equal(r->objective, "step_time_ms");
	assert_string_equal(r->objective_stat, "median");
	assert_int_equal(r->better, BETTER_DOWN);
	assert_true(r->target == 12.5);
	assert_int_equal(r->n_guards, 2);
	assert_string_equal(r->guards[0].metric, "loss");
	assert_string_equal(r->guards[0].stat, "last");
	assert_true(r->guards[0].margin == 0.01);
	assert_string_equal(r->guards[1].stat, "max");
	assert_int_equal(r->guards[1].at.line, 14);
	assert_true(r->guards[1].at_most == 70 && isnan(r->guards[1].at_least));
	assert_true(isnan(r->guards[0].at_most) && r->guards[0].better == BETTER_DOWN);
	assert_true(r->budget.wall_s == 90 && r->budget.node_hours == 2);
	assert_int_equal(r->budget.trials, 99);
	assert_int_equal(r->mode, MODE_STRICT);
	assert_int_equal(r->rounds, 2);
	assert_true(r->alpha == 0.01 && r->min_effect == 0.02);
	assert_int_equal(r->aa_blocks, 3);
	assert_int_equal(r->final_blocks, 5);
	assert_int_equal(r->soak_trials, 7);
	assert_int_equal(r->repeats, 2);
	assert_int_equal(r->warmup_trials, 0);
	assert_int_equal(r->seed, 42);
	assert_string_equal(r->scheduler, "local");
	assert_string_equal(r->hash, l.sources.hash);
}

static void test_knobs_of_a_campaign(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_loaded_ struct loaded l = load_good(dir);
	const struct knob *k;

	(void)state;
	if (l.rc)
		fail_msg("%s", l.e.text);
	assert_int_equal(l.recipe->n_knobs, 6);
	k = recipe_knob(l.recipe, "pin_memory");
	assert_true(k->flag && k->how == HOW_ARG && !k->user_defined);
	assert_string_equal(k->default_value, "false");
	assert_int_equal(k->at.line, 16);
	/* The default is what the environment says, and the catalogue's list is without it. */
	k = recipe_knob(l.recipe, "max_split_size_mb");
	assert_string_equal(k->default_value, "64");
	assert_int_equal(k->values.n, 3);
	assert_string_equal(k->values.v[0], "128");
	assert_string_equal(k->subkey, "max_split_size_mb");
	k = recipe_knob(l.recipe, "mine");
	assert_true(k->user_defined);
	assert_int_equal(k->cls, CLASS_NUMERICS);
	assert_int_equal(k->proof.level, PROOF_DELIVERED);
	assert_null(k->default_value);
	assert_string_equal(k->values.v[0], "0.5");
	assert_string_equal(k->values.v[1], "1000000");
	/* ... and what the command says. */
	k = recipe_knob(l.recipe, "batch_size");
	assert_string_equal(k->default_value, "32");
	assert_int_equal(k->cls, CLASS_OPTIMISATION);
	k = recipe_knob(l.recipe, "num_workers");
	assert_int_equal(k->proof.level, PROOF_EFFECTIVE);
	assert_string_equal(k->proof.metric, "tree_procs");
	k = recipe_knob(l.recipe, "prefetch_factor");
	assert_int_equal(k->values.n, 1);
	assert_string_equal(k->requires_knob, "num_workers");
	assert_int_equal(k->requires_values.n, 2); /* 2 and 4; the default 0 is not above 0 */
}

static void test_reload_gives_the_same_plan(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_loaded_ struct loaded l = load_good(dir);
	_cleanup_free_ char *first = dump_text(l.recipe), *second = NULL;
	struct recipe *again = NULL;
	struct err e = {0};

	(void)state;
	fs_remove_tree(dir, NULL); /* nothing is read from files any more */
	assert_ok(script_reload(&l.sources, &again, &e));
	second = dump_text(again);
	assert_string_equal(first, second);
	recipe_free(again);
}

static void test_sources_that_are_stored(void **state)
{
	static const char *const names[] = {"campaign",         "lib/prelude",
					    "knobs/batch_size", "knobs/cuda_allocator",
					    "knobs/dataloader", "rules/default"};
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_loaded_ struct loaded l = load_good(dir);
	size_t n = 0;
	char hash[33];

	(void)state;
	for (size_t i = 0; i < l.sources.n; i++) {
		if (strstr(l.sources.v[i].name, "lint"))
			continue; /* rules are not the campaign's */
		assert_true(n < ARRAY_LEN(names));
		assert_string_equal(l.sources.v[i].name, names[n++]);
		fs_hash(l.sources.v[i].text, strlen(l.sources.v[i].text), hash);
		assert_string_equal(l.sources.v[i].hash, hash);
	}
	assert_int_equal(n, ARRAY_LEN(names));
}

/* Lua's own order of keys differs from process to process. */
static void test_same_plan_in_20_processes(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = NULL, *w = fs_join(dir, "w");
	struct err e = {0};
	char first[33] = "";

	(void)state;
	assert_ok(fs_mkdirs(w, 0700, &e));
	path = write_file(dir, "c.lua", good);
	for (int i = 0; i < 20; i++) {
		int fds[2], status;
		char hash[33] = "";
		pid_t pid;

		assert_int_equal(pipe(fds), 0);
		pid = fork();
		if (!pid) {
			struct loaded l = load_file(path, NULL);
			char *text = l.rc ? xstrdup("failed") : dump_text(l.recipe);
			bool bad = l.rc;

			fs_hash(text, strlen(text), hash);
			free(text);
			loaded_done(&l);
			_exit(bad || write(fds[1], hash, 32) != 32);
		}
		assert_true(pid > 0);
		close(fds[1]);
		assert_int_equal(read(fds[0], hash, 32), 32);
		close(fds[0]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		if (i)
			assert_string_equal(hash, first);
		memcpy(first, hash, sizeof(first));
	}
}

/* --- what depends on other fields --------------------------------------------------------------
 */

static void test_defaults_by_mode(void **state)
{
	static const struct {
		const char *mode;
		int rounds, soak;
		double alpha;
	} cases[] = {{"quick", 1, 3, 0.05},
		     {"standard", 3, 6, 0.05},
		     {"long", 5, 10, 0.05},
		     {"strict", 3, 10, 0.01}};
	_cleanup_scratch_ char *dir = scratch_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_free_ char *mode = xasprintf("mode = '%s'", cases[i].mode),
				    *text = campaign_with(mode);
		_cleanup_loaded_ struct loaded l = load_text(dir, text);

		if (l.rc)
			fail_msg("%s", l.e.text);
		assert_string_equal(run_mode_name(l.recipe->mode), cases[i].mode);
		assert_int_equal(l.recipe->rounds, cases[i].rounds);
		assert_true(l.recipe->alpha == cases[i].alpha);
		assert_true(isnan(l.recipe->target));
		assert_true(l.recipe->workload.whole_run);
		assert_string_equal(l.recipe->objective_stat, "value");
		assert_int_equal(l.recipe->soak_trials, cases[i].soak);
	}
}

static void test_requires_settled_by_the_command(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	struct strv warnings = {0};

	(void)state;
	{
		_cleanup_loaded_ struct loaded l = load_text(
			dir, "return { name = 'c', objective = 'trial_wall_s', knobs = { "
			     "prefetch_factor = { 4 } },\n"
			     "workload = { command = { 'true', '--num-workers', '2' } } }\n");

		assert_int_equal(l.rc, 0);
		assert_null(l.recipe->knobs[0].requires_knob); /* always met */
		script_warnings(l.recipe, &warnings);
		assert_int_equal(warnings.n, 0);
	}
	{
		_cleanup_free_ char *text = campaign_with("knobs = { prefetch_factor = { 4 } }");
		_cleanup_loaded_ struct loaded l = load_text(dir, text);

		assert_int_equal(l.rc, 0);
		assert_string_equal(l.recipe->knobs[0].requires_knob, "num_workers");
		assert_int_equal(l.recipe->knobs[0].requires_values.n, 0); /* never met */
		script_warnings(l.recipe, &warnings);
		assert_int_equal(warnings.n, 1);
		assert_contains(warnings.v[0], "add num_workers to knobs or to the command");
	}
	strv_free(&warnings);
}

static void test_warnings(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *text = campaign_with(
		"knobs = { batch_size = { 2 } }, budget = { minutes = 1 }");
	_cleanup_loaded_ struct loaded l = load_text(dir, text);
	struct strv warnings = {0};

	(void)state;
	assert_int_equal(l.rc, 0);
	script_warnings(l.recipe, &warnings);
	assert_int_equal(warnings.n, 2);
	assert_contains(warnings.v[0], "no guard watches the loss");
	assert_contains(warnings.v[1], "longer than the whole budget");
	strv_free(&warnings);
}

static void test_metric_of_ones_own(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_loaded_ struct loaded l = load_text(
		dir, "return { name = 'c', objective = { metric = 'tokens', better = 'up' },\n"
		     "workload = { command = { 'true' }, metrics = { pattern = '(?<step>\\\\d+) "
		     "(?<tokens>\\\\S+)' } } }\n");

	(void)state;
	if (l.rc)
		fail_msg("%s", l.e.text);
	assert_int_equal(l.recipe->workload.source, SOURCE_PATTERN);
	assert_null(l.recipe->workload.probe);
	assert_int_equal(l.recipe->better, BETTER_UP);
	assert_string_equal(l.recipe->workload.pattern, "(?<step>\\d+) (?<tokens>\\S+)");
}

static void test_better_must_be_said(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_loaded_ struct loaded l = load_text(
		dir, "return { name = 'c', objective = 'tokens',\n"
		     "workload = { command = { 'true' }, metrics = { file = true } } }\n");

	(void)state;
	assert_int_equal(l.rc, -ERR_RECIPE);
	assert_contains(l.e.text, "c.lua:1: objective: which way is better for \"tokens\"?");
}

/* --- the command -------------------------------------------------------------------------------
 */

static void test_command_not_found(void **state)
{
	static const struct {
		const char *command, *says; /* NULL: found */
	} cases[] = {
		{"'sh'", NULL},
		{"'/bin/sh'", NULL},
		{"'./tool'", NULL},
		{"'no-such-program-anywhere'",
		 "command not found: \"no-such-program-anywhere\" is in no directory"},
		{"'/bin/no-such-program'",
		 "command not found: /bin/no-such-program does not exist"},
		{"'./c.lua'", "c.lua does not exist or is not executable"},
	};
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *tool = write_file(dir, "tool", "#!/bin/sh\n");
	struct err e = {0};

	(void)state;
	assert_int_equal(chmod(tool, 0700), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_free_ char *text = xasprintf(
			"return { name = 'c', objective = 'trial_wall_s',\nworkload = { command = "
			"{ %s } } }\n",
			cases[i].command);
		_cleanup_loaded_ struct loaded l = load_text(dir, text);
		int rc;

		assert_int_equal(l.rc, 0);
		rc = script_check_command(l.recipe, "/usr/bin:/bin", &e);
		assert_int_equal(rc, cases[i].says ? -ERR_RECIPE : 0);
		if (!cases[i].says)
			continue;
		assert_contains(e.text, cases[i].says);
		assert_contains(e.text, "c.lua:2: workload.command: ");
	}
}

static void test_command_in_path_of_its_env(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *tool = write_file(dir, "tool", "#!/bin/sh\n"), *text = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(chmod(tool, 0700), 0);
	text = xasprintf("return { name = 'c', objective = 'trial_wall_s',\n"
			 "workload = { command = { 'tool' }, env = { PATH = '%s' } } }\n",
			 dir);
	{
		_cleanup_loaded_ struct loaded l = load_text(dir, text);

		assert_ok(script_check_command(l.recipe, "/nonexistent", &e));
	}
}

/* --- the site ----------------------------------------------------------------------------------
 */

static const char site_text[] =
	"return {\n"
	"	defaults = { resources = { partition = 'gpu', nodes = 2 }, mode = 'quick',\n"
	"		workload = { env = { SITE = '1' }, limits = { trial_s = 30 } } },\n"
	"	caps = { nodes = 4, trials = 200,\n"
	"		minutes = 60 },\n"
	"	forbidden = { NCCL_PROTO = 'LL128 corrupts data here' },\n"
	"	recipe_path = { 'more' },\n"
	"}\n";

struct site_dir {
	char *dir, *site;
};

static struct site_dir site_new(void)
{
	struct site_dir s = {.dir = scratch_new()};

	s.site = write_file(s.dir, "site.lua", site_text);
	return s;
}

static void site_free(struct site_dir *s)
{
	scratch_free(&s->dir);
	free(s->site);
}
#define _cleanup_site_ __attribute__((cleanup(site_free)))

static struct loaded load_at_site(const struct site_dir *s, const char *fields)
{
	_cleanup_free_ char *text = campaign_with(fields),
			    *path = write_file(s->dir, "c.lua", text);

	return load_file(path, s->site);
}

static void test_site_lies_under_the_campaign(void **state)
{
	_cleanup_site_ struct site_dir s = site_new();
	_cleanup_loaded_ struct loaded l = load_at_site(
		&s, "resources = { nodes = 3 }, budget = { trials = 50 }");

	(void)state;
	if (l.rc)
		fail_msg("%s", l.e.text);
	assert_int_equal(l.recipe->resources.nodes, 3);
	assert_string_equal(l.recipe->resources.partition, "gpu");
	assert_int_equal(l.recipe->mode, MODE_QUICK);
	assert_string_equal(kvs_get(&l.recipe->workload.env, "SITE"), "1");
	assert_int_equal(l.recipe->workload.trial_limit_s, 30);
	assert_int_equal(l.recipe->budget.trials, 50);
	assert_true(l.recipe->budget.wall_s == 3600); /* left open: the cap */
	assert_string_equal(l.sources.v[1].name, "site");
}

/* A mode for those that do not say one is stored beside the other sources, and holds again. */
static void test_a_mode_where_nobody_says_one(void **state)
{
	static const struct {
		const char *fields;
		bool site;
		enum run_mode mode;
	} cases[] = {{"rounds = 2", false, MODE_STRICT},
		     {"mode = 'quick'", false, MODE_QUICK},
		     {"rounds = 2", true, MODE_QUICK}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_site_ struct site_dir s = site_new();
		_cleanup_free_ char *text = campaign_with(cases[i].fields),
				    *path = write_file(s.dir, "c.lua", text);
		const struct script_path with = {.dirs = recipe_dirs,
						 .site = cases[i].site ? s.site : NULL,
						 .probes = recipe_probes,
						 .mode = "strict"};
		_cleanup_loaded_ struct loaded l = {0};
		struct recipe *again = NULL;
		struct err e = {0};

		assert_ok(script_load(path, &with, &l.recipe, &l.sources, &e));
		assert_int_equal(l.recipe->mode, cases[i].mode);
		assert_near(l.recipe->alpha, cases[i].mode == MODE_STRICT ? 0.01 : 0.05, 1e-12);
		assert_ok(script_reload(&l.sources, &again, &e));
		assert_int_equal(again->mode, cases[i].mode);
		assert_string_equal(again->hash, l.recipe->hash);
		recipe_free(again);
	}
}

static void test_caps(void **state)
{
	static const struct {
		const char *fields, *says, *cap;
	} cases[] = {
		{"\nresources = { nodes = 16 }",
		 "c.lua:2: resources.nodes: 16 is more than this site allows: 4",
		 "site.lua:4: caps.nodes"},
		{"budget = {\nminutes = 90 }",
		 "c.lua:2: budget.minutes: 90 is more than this site allows: 60",
		 "site.lua:5: caps.minutes"},
		{"budget = { trials = 201 }",
		 "budget.trials: 201 is more than this site allows: 200",
		 "site.lua:4: caps.trials"},
		{"\nknobs = { 'NCCL_PROTO' }",
		 "c.lua:2: knob NCCL_PROTO is forbidden at this site: LL128 corrupts",
		 "site.lua:6: forbidden"},
		{"\nknobs = { { name = 'p', env = 'NCCL_PROTO', class = 'numerics', values = { "
		 "'LL' } } }",
		 "c.lua:2: knob p is forbidden at this site", "site.lua:6: forbidden"},
	};
	_cleanup_site_ struct site_dir s = site_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_loaded_ struct loaded l = load_at_site(&s, cases[i].fields);

		assert_int_equal(l.rc, -ERR_RECIPE);
		assert_contains(l.e.text, cases[i].says);
		assert_contains(l.e.text, cases[i].cap);
	}
}

static void test_bad_sites(void **state)
{
	static const struct {
		const char *site, *says;
	} cases[] = {
		{"return { cap = {} }",
		 "site.lua:1: cap: there is no such field in site (did you mean \"caps\"?)"},
		{"return { caps = {\nnodes = 0 } }",
		 "site.lua:2: caps.nodes: expected a whole number"},
		{"return { defaults = {\nobjective = 'loss' } }",
		 "site.lua:2: defaults.objective: each campaign says"},
		{"return { defaults = { resources = {\nnodes = 'x' } } }",
		 "site.lua:2: defaults.resources.nodes: expected a whole number"},
		{"return { defaults = {\nmodes = 'x' } }",
		 "site.lua:2: defaults.modes: there is no such field"},
		{"return { forbidden = { 1 } }",
		 "site.lua:1: forbidden[1]: expected the name of a knob"},
		{"return {", "site.lua:1: unexpected symbol near <eof>"},
	};
	_cleanup_site_ struct site_dir s = site_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_loaded_ struct loaded l = {0};

		free(write_file(s.dir, "site.lua", cases[i].site));
		l = load_at_site(&s, "");
		assert_int_equal(l.rc, -ERR_RECIPE);
		assert_contains(l.e.text, cases[i].says);
	}
}

/* A site's own knob goes before the shipped one of that name, and its faults name its file. */
static void test_recipe_path_of_the_site(void **state)
{
	_cleanup_site_ struct site_dir s = site_new();
	_cleanup_free_ char *knobs = fs_join(s.dir, "more/knobs"), *file = NULL;
	struct err e = {0};

	(void)state;
	assert_ok(fs_mkdirs(knobs, 0700, &e));
	file = write_file(
		knobs, "site.lua",
		"return { {\n name = 'num_workers', arg = '--loaders', class = 'neutral',\n values "
		"= { 3 } },\n"
		" { name = 'local_ssd', env = 'SSD', class = 'neutral', values = { '/ssd' } } }\n");
	{
		_cleanup_loaded_ struct loaded l = load_at_site(
			&s, "knobs = { 'num_workers', 'local_ssd', 'pin_memory' }");

		if (l.rc)
			fail_msg("%s", l.e.text);
		assert_string_equal(l.recipe->knobs[0].target, "--loaders");
		assert_false(l.recipe->knobs[0].user_defined);
		assert_string_equal(l.recipe->knobs[1].values.v[0], "/ssd");
		assert_int_equal(l.recipe->n_knobs, 3);
	}
	free(file);
	file = write_file(knobs, "site.lua",
			  "return { name = 'x', env = 'X', class = 'neutral',\nvalues = 3 }\n");
	{
		_cleanup_loaded_ struct loaded l = load_at_site(&s, "knobs = { 'x' }");

		assert_int_equal(l.rc, -ERR_RECIPE);
		assert_contains(l.e.text,
				"more/knobs/site.lua:2: values: expected a list of values");
	}
	free(file);
	file = write_file(knobs, "site.lua",
			  "error('a campaign without knobs runs no knob file')\n");
	{
		_cleanup_loaded_ struct loaded l = load_at_site(&s, "repeats = 2");

		if (l.rc)
			fail_msg("%s", l.e.text);
	}
}

/* --- workload files ----------------------------------------------------------------------------
 */

static void test_workload_file(void **state)
{
	_cleanup_site_ struct site_dir s = site_new();
	_cleanup_free_ char *dir = fs_join(s.dir, "more/workloads"), *file = NULL, *script = NULL,
			    *real = NULL;
	struct err e = {0};

	(void)state;
	assert_ok(fs_mkdirs(dir, 0700, &e));
	real = fs_absolute(dir, &e);
	script = fs_join(real, "train.sh");
	file = write_file(dir, "mine.lua",
			  "return { name = 'mine', command = { 'sh', path('train.sh') },\n"
			  " env = { A = '1', B = '1' }, window = { steps = 5, pattern = 'x' },\n"
			  " limits = { trial_s = 'long' } }\n");
	{
		_cleanup_free_ char *path = write_file(
			s.dir, "c.lua",
			"return { name = 'c', objective = 'trial_wall_s',\n"
			"workload = workload('mine', { env = { B = '2' }, limits = { trial_s = 9 } "
			"}) }\n");
		_cleanup_loaded_ struct loaded l = load_file(path, s.site);
		const struct workload *w = l.recipe ? &l.recipe->workload : NULL;

		if (l.rc)
			fail_msg("%s", l.e.text);
		assert_string_equal(w->name, "mine");
		assert_string_equal(w->command.v[1], script);
		assert_string_equal(kvs_get(&w->env, "A"), "1");
		assert_string_equal(kvs_get(&w->env, "B"), "2");
		assert_string_equal(kvs_get(&w->env, "SITE"), "1");
		assert_int_equal(w->steps, 5);
		assert_int_equal(w->trial_limit_s, 9);
	}
	{
		_cleanup_free_ char *path = write_file(
			s.dir, "c.lua",
			"return { name = 'c', objective = 'trial_wall_s',\n"
			"workload = workload('mine') }\n");
		_cleanup_loaded_ struct loaded l = load_file(path, s.site);

		assert_int_equal(l.rc, -ERR_RECIPE);
		assert_contains(l.e.text,
				"workloads/mine.lua:3: limits.trial_s: expected a number");
	}
}

static void test_workload_name_stays_on_the_path(void **state)
{
	static const char *const names[] = {"../c", "/etc/passwd", ".hidden", ""};
	_cleanup_scratch_ char *dir = scratch_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		_cleanup_free_ char *text = xasprintf(
			"return { name = 'c', objective = 'trial_wall_s',\n"
			"workload = { use = '%s' } }\n",
			names[i]);
		_cleanup_loaded_ struct loaded l = load_text(dir, text);

		assert_int_equal(l.rc, -ERR_RECIPE);
		assert_contains(l.e.text,
				"c.lua:2: workload.use: expected the name of a file in workloads/");
	}
}

static void test_recipes_not_found(void **state)
{
	static const char *const nowhere[] = {"/nonexistent", NULL};
	const struct script_path path = {.dirs = nowhere};
	struct knob *knobs = NULL;
	struct err e = {0};
	size_t n = 0;

	(void)state;
	assert_int_equal(script_catalogue(&path, &knobs, &n, &e), -ERR_RECIPE);
	assert_contains(e.text, "/nonexistent; set FETTLE_RECIPES");
}

/* Everything that is shipped or that tests run is right. */
static void test_shipped_campaigns_load(void **state)
{
	static const char *const dirs[] = {"recipes/campaigns", "tests/fixtures/recipes"};
	int n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		DIR *d = opendir(dirs[i]);
		struct dirent *entry;

		assert_non_null(d);
		while ((entry = readdir(d))) {
			_cleanup_free_ char *path = fs_join(dirs[i], entry->d_name);
			_cleanup_loaded_ struct loaded l = {0};

			if (!str_ends(entry->d_name, ".lua"))
				continue;
			l = load_file(path, NULL);
			if (l.rc)
				fail_msg("%s", l.e.text);
			n++;
		}
		closedir(d);
	}
	assert_true(n >= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_recipes),
		cmocka_unit_test(test_not_a_text),
		cmocka_unit_test(test_other_editors),
		cmocka_unit_test(test_every_field_arrives),
		cmocka_unit_test(test_knobs_of_a_campaign),
		cmocka_unit_test(test_reload_gives_the_same_plan),
		cmocka_unit_test(test_sources_that_are_stored),
		cmocka_unit_test(test_same_plan_in_20_processes),
		cmocka_unit_test(test_defaults_by_mode),
		cmocka_unit_test(test_requires_settled_by_the_command),
		cmocka_unit_test(test_warnings),
		cmocka_unit_test(test_metric_of_ones_own),
		cmocka_unit_test(test_better_must_be_said),
		cmocka_unit_test(test_command_not_found),
		cmocka_unit_test(test_command_in_path_of_its_env),
		cmocka_unit_test(test_site_lies_under_the_campaign),
		cmocka_unit_test(test_a_mode_where_nobody_says_one),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_bad_sites),
		cmocka_unit_test(test_recipe_path_of_the_site),
		cmocka_unit_test(test_workload_file),
		cmocka_unit_test(test_workload_name_stays_on_the_path),
		cmocka_unit_test(test_recipes_not_found),
		cmocka_unit_test(test_shipped_campaigns_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
