/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include "experiments/model.h"

/* A recipe on the stack: knobs with texts that nobody frees. */
static struct knob knobs[] = {
	{.name = (char *)"workers",
	 .how = HOW_ARG,
	 .target = (char *)"--num-workers",
	 .default_value = (char *)"0",
	 .at = {.file = (char *)"c.lua", .line = 7}},
	{.name = (char *)"joined", .how = HOW_ARG, .target = (char *)"--opt="},
	{.name = (char *)"pin",
	 .how = HOW_ARG,
	 .target = (char *)"--pin-memory",
	 .flag = true,
	 .default_value = (char *)"false"},
	{.name = (char *)"threads", .how = HOW_ENV, .target = (char *)"OMP_NUM_THREADS"},
	{.name = (char *)"buffsize",
	 .how = HOW_ENV,
	 .target = (char *)"NCCL_BUFFSIZE",
	 .default_value = (char *)"4194304"},
	{.name = (char *)"split",
	 .how = HOW_ENV,
	 .target = (char *)"ALLOC_CONF",
	 .subkey = (char *)"max_split_size_mb"},
	{.name = (char *)"segments",
	 .how = HOW_ENV,
	 .target = (char *)"ALLOC_CONF",
	 .subkey = (char *)"expandable_segments",
	 .default_value = (char *)"False"},
	{.name = (char *)"bad_name", .how = HOW_ENV, .target = (char *)"A=B"},
};

/* Lists are written as texts: elements divided by blanks, "K=v" for pairs. */
static void add_words(struct strv *out, const char *list)
{
	while (*list) {
		size_t n = strcspn(list, " ");
		_cleanup_free_ char *word = xstrndup(list, n);

		if (n > 0)
			strv_add(out, word);
		list += n + (list[n] == ' ');
	}
}

static void add_pairs(struct kvs *out, const char *list)
{
	struct strv words = {0};

	add_words(&words, list);
	for (size_t i = 0; i < words.n; i++) {
		char *eq = strchr(words.v[i], '=');

		if (eq)
			*eq = '\0';
		kvs_set(out, words.v[i], eq ? eq + 1 : NULL);
	}
	strv_free(&words);
}

static struct recipe recipe_of(const char *command, const char *env)
{
	struct recipe r = {.name = (char *)"demo", .knobs = knobs, .n_knobs = ARRAY_LEN(knobs)};

	r.workload.name = (char *)"w";
	add_words(&r.workload.command, command);
	add_pairs(&r.workload.env, env);
	return r;
}

static void recipe_drop(struct recipe *r)
{
	strv_free(&r->workload.command);
	kvs_free(&r->workload.env);
}

static int build(const char *command, const char *env, const char *settings, struct config *out,
		 struct err *e)
{
	struct recipe r = recipe_of(command, env);
	struct kvs s = {0};
	int rc;

	add_pairs(&s, settings);
	rc = config_build(&r, &s, out, e);
	kvs_free(&s);
	recipe_drop(&r);
	return rc;
}

static char *argv_text(const struct config *c)
{
	struct buf b = {0};

	for (size_t i = 0; i < c->argv.n; i++)
		buf_printf(&b, "%s%s", i > 0 ? " " : "", c->argv.v[i]);
	return buf_take(&b);
}

static char *env_text(const struct config *c)
{
	struct buf b = {0};

	for (size_t i = 0; i < c->env.n; i++)
		buf_printf(&b, "%s%s%s%s", i > 0 ? " " : "", c->env.v[i].key,
			   c->env.v[i].value ? "=" : "",
			   c->env.v[i].value ? c->env.v[i].value : "");
	return buf_take(&b);
}

static void settings_become_command_and_environment(void **state)
{
	static const struct {
		const char *command, *env, *settings;
		const char *want_argv, *want_env, *want_text;
	} rows[] = {
		/* nothing set, defaults stay implicit */
		{"t.py", "", "", "t.py", "", "default"},
		{"t.py --num-workers 0", "", "", "t.py --num-workers 0", "", "default"},
		/* an argument: appended, replaced in both forms, every occurrence, never argv[0] */
		{"t.py", "", "workers=4", "t.py --num-workers 4", "", "workers=4"},
		{"t.py --num-workers 2 -x", "", "workers=4", "t.py --num-workers 4 -x", "",
		 "workers=4"},
		{"t.py --num-workers=2 -x", "", "workers=4", "t.py --num-workers=4 -x", "",
		 "workers=4"},
		{"t.py --num-workers 2 --num-workers=3", "", "workers=4",
		 "t.py --num-workers 4 --num-workers=4", "", "workers=4"},
		{"t.py --num-workers-max 2", "", "workers=4",
		 "t.py --num-workers-max 2 --num-workers 4", "", "workers=4"},
		{"t.py --num-workers --num-workers", "", "workers=4", "t.py --num-workers 4", "",
		 "workers=4"},
		{"--num-workers 2", "", "workers=4", "--num-workers 2 --num-workers 4", "",
		 "workers=4"},
		/* a last argument without its value cannot hold one: the value is put after a new
		   one */
		{"t.py --num-workers", "", "workers=4", "t.py --num-workers --num-workers 4", "",
		 "workers=4"},
		/* a target that ends in '=' is one token */
		{"t.py", "", "joined=a", "t.py --opt=a", "", "joined=a"},
		{"t.py --opt=b c", "", "joined=a", "t.py --opt=a c", "", "joined=a"},
		{"t.py --opt b", "", "joined=a", "t.py --opt a", "", "joined=a"},
		/* flags */
		{"t.py", "", "pin=true", "t.py --pin-memory", "", "pin=true"},
		{"t.py --pin-memory", "", "pin=true", "t.py --pin-memory", "", "pin=true"},
		{"t.py --pin-memory -x --pin-memory", "", "pin=false", "t.py -x", "", "pin=false"},
		{"t.py -x", "", "pin=false", "t.py -x", "", "default"},
		/* what equals the default is no setting, unless the command says otherwise */
		{"t.py", "", "workers=0", "t.py", "", "default"},
		{"t.py --num-workers 0", "", "workers=0", "t.py --num-workers 0", "", "default"},
		{"t.py --num-workers 6", "", "workers=0", "t.py --num-workers 0", "", "workers=0"},
		/* variables */
		{"t.py", "", "threads=2", "t.py", "OMP_NUM_THREADS=2", "threads=2"},
		{"t.py", "OMP_NUM_THREADS=8 A=1", "threads=2", "t.py", "A=1 OMP_NUM_THREADS=2",
		 "threads=2"},
		{"t.py", "B=1 A", "", "t.py", "A B=1", "default"},
		{"t.py", "", "buffsize=4194304", "t.py", "", "default"},
		{"t.py", "NCCL_BUFFSIZE=1", "buffsize=4194304", "t.py", "NCCL_BUFFSIZE=4194304",
		 "buffsize=4194304"},
		{"t.py", "NCCL_BUFFSIZE", "buffsize=8", "t.py", "NCCL_BUFFSIZE=8", "buffsize=8"},
		/* a setting without a value means the default */
		{"t.py", "", "threads", "t.py", "", "default"},
		/* keys inside a list: others kept, order stable */
		{"t.py", "", "split=64", "t.py", "ALLOC_CONF=max_split_size_mb:64", "split=64"},
		{"t.py", "ALLOC_CONF=a:1,max_split_size_mb:32,b:2", "split=64", "t.py",
		 "ALLOC_CONF=a:1,max_split_size_mb:64,b:2", "split=64"},
		{"t.py", "ALLOC_CONF=a:[1:2,max_split_size_mb:9],b:2", "split=64", "t.py",
		 "ALLOC_CONF=a:[1:2,max_split_size_mb:9],b:2,max_split_size_mb:64", "split=64"},
		{"t.py", "", "split=64 segments=True", "t.py",
		 "ALLOC_CONF=expandable_segments:True,max_split_size_mb:64",
		 "segments=True, split=64"},
		{"t.py", "ALLOC_CONF=expandable_segments:True", "segments=False", "t.py",
		 "ALLOC_CONF=expandable_segments:False", "segments=False"},
		{"t.py", "ALLOC_CONF=b:1", "segments=False", "t.py", "ALLOC_CONF=b:1", "default"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct config c = {0};
		struct err e = {0};
		char *argv, *env, *text;

		assert_ok(build(rows[i].command, rows[i].env, rows[i].settings, &c, &e));
		argv = argv_text(&c);
		env = env_text(&c);
		text = config_text(&c);
		assert_string_equal(argv, rows[i].want_argv);
		assert_string_equal(env, rows[i].want_env);
		assert_string_equal(text, rows[i].want_text);
		free(argv);
		free(env);
		free(text);
		config_done(&c);
	}
}

static void what_cannot_be_passed_is_refused(void **state)
{
	_cleanup_free_ char *huge = xmalloc(131072 + 16);
	struct config c = {0};
	struct err e = {0};

	(void)state;
	assert_int_equal(build("t.py", "", "wrokers=1", &c, &e), -ERR_RECIPE);
	assert_contains(e.text, "no knob \"wrokers\"; did you mean \"workers\"?");
	assert_int_equal(build("t.py", "", "zzzzzzz=1", &c, &e), -ERR_RECIPE);
	assert_null(strstr(e.text, "did you mean"));
	assert_int_equal(build("t.py", "", "pin=yes", &c, &e), -ERR_RECIPE);
	assert_contains(e.text, "a flag takes \"true\" or \"false\"");
	assert_int_equal(build("t.py", "", "split=64,b:1", &c, &e), -ERR_RECIPE);
	assert_contains(e.text, "a comma would begin");
	assert_ok(build("t.py", "", "split=[1:2,3:4]", &c, &e));
	config_done(&c);
	assert_int_equal(build("t.py", "", "bad_name=1", &c, &e), -ERR_RECIPE);
	memcpy(huge, "workers=", 8);
	memset(huge + 8, '1', 131072);
	huge[8 + 131072] = '\0';
	assert_int_equal(build("t.py", "", huge, &c, &e), -ERR_RECIPE);
	assert_contains(e.text, "c.lua:7: knob workers");
	assert_contains(e.text, "128 KiB");
	assert_null(c.argv.v); /* no side effect */
}

static void same_hash(const char *cmd_a, const char *env_a, const char *set_a, const char *cmd_b,
		      const char *env_b, const char *set_b, bool same)
{
	struct config a = {0}, b = {0};
	struct err e = {0};

	assert_ok(build(cmd_a, env_a, set_a, &a, &e));
	assert_ok(build(cmd_b, env_b, set_b, &b, &e));
	assert_int_equal(strlen(a.hash), 32);
	if ((strcmp(a.hash, b.hash) == 0) != same)
		fail_msg("%s | %s | %s: %s than %s | %s | %s", cmd_a, env_a, set_a,
			 same ? "another hash" : "no other hash", cmd_b, env_b, set_b);
	config_done(&a);
	config_done(&b);
}

static void hash_is_the_identity(void **state)
{
	(void)state;
	/* the same effective configuration, however it came about */
	same_hash("t", "", "workers=4 threads=2", "t", "", "threads=2 workers=4", true);
	same_hash("t", "B=1 A=2", "", "t", "A=2 B=1", "", true);
	same_hash("t", "", "workers=0", "t", "", "", true);
	same_hash("t", "", "threads=2", "t", "OMP_NUM_THREADS=2", "", true);
	same_hash("t", "", "workers=4", "t --num-workers 4", "", "", true);
	/* different ones, even where a joined text would be equal */
	same_hash("t a b", "", "", "t ab", "", "", false);
	same_hash("t A=1", "", "", "t", "A=1", "", false);
	same_hash("t", "A", "", "t", "A=", "", false);
	same_hash("t", "A", "", "t", "", "", false);
	same_hash("t", "", "workers=4", "t", "", "workers=5", false);
}

static void hash_never_changes(void **state)
{
	struct config c = {0};
	struct err e = {0};

	(void)state;
	/* Stored configurations are found again by it: another value needs a migration. */
	assert_ok(build("t.py --x 1", "A=1", "workers=4", &c, &e));
	assert_string_equal(c.hash, "c6b2bc34d1e701ebd93b376357fb8615");
	config_done(&c);
}

static void copies_are_deep(void **state)
{
	struct config a = {0}, b = {0};
	struct err e = {0};

	(void)state;
	assert_ok(build("t.py", "A=1", "workers=4", &a, &e));
	config_copy(&b, &a);
	config_copy(&b, &b);
	config_done(&a);
	assert_string_equal(b.argv.v[2], "4");
	assert_string_equal(kvs_get(&b.settings, "workers"), "4");
	assert_string_equal(kvs_get(&b.env, "A"), "1");
	assert_int_equal(strlen(b.hash), 32);
	config_done(&b);
	config_done(&b);
	config_done(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_become_command_and_environment),
		cmocka_unit_test(what_cannot_be_passed_is_refused),
		cmocka_unit_test(hash_is_the_identity),
		cmocka_unit_test(hash_never_changes),
		cmocka_unit_test(copies_are_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
