/* SPDX-License-Identifier: GPL-2.0-or-later */
/* recipes/README.md is the reference of the recipe language: it has a row for every field, equal to
 * what the schema says, and its examples are run. */
#include "tests/unit/recipe.h"

#include "orchestrator/script/schema.h"

#define README "recipes/README.md"

static char *readme(void)
{
	struct buf text = {0};
	struct err e = {0};

	assert_ok(fs_read(README, 1 << 20, &text, &e));
	return buf_take(&text);
}

static void test_every_field_is_described(void **state)
{
	_cleanup_free_ char *text = readme();
	size_t rows = 0;

	(void)state;
	for (size_t i = 0; schema_all[i]; i++) {
		_cleanup_free_ char *heading = xasprintf("# %s\n", schema_all[i]->name);
		struct buf b = {0};

		assert_contains(text, heading);
		reader_reference(schema_all[i], &b);
		for (char *row = b.data, *end; row && (end = strchr(row, '\n'));
		     row = end + 1, rows++) {
			_cleanup_free_ char *one = xstrndup(row, (size_t)(end - row) + 1);

			assert_contains(text, one);
		}
		buf_free(&b);
	}
	assert_true(rows > 100);
}

/* The words of the schema are those that the database stores, in the order of the enums. */
static void check_words(const struct field *fields, const char *name, const char *(*word)(int))
{
	const struct field *f = fields;

	while (f->name && !str_eq(f->name, name))
		f++;
	assert_non_null(f->words);
	for (int i = 0; f->words[i]; i++)
		assert_string_equal(f->words[i], word(i));
}

static const char *mode_word(int v)
{
	return run_mode_name((enum run_mode)v);
}

static const char *class_word(int v)
{
	return knob_class_name((enum knob_class)v);
}

static const char *bottleneck_word(int v)
{
	return bottleneck_name((enum bottleneck)v);
}

static void test_words_are_those_of_the_model(void **state)
{
	(void)state;
	check_words(schema_campaign.fields, "mode", mode_word);
	check_words(schema_knob.fields, "class", class_word);
	check_words(schema_knob.fields, "bottleneck", bottleneck_word);
	check_words(schema_finding.fields, "bottleneck", bottleneck_word);
	check_words(schema_expectation.fields, "bottleneck", bottleneck_word);
}

/* --- the examples ----------------------------------------------------------------------------- */

/* Each block of Lua whose first line is a file's name, written to that file. */
static size_t write_examples(const char *dir)
{
	static const char *const folders[] = {"knobs", "rules", "workloads", "lint"};
	_cleanup_free_ char *text = readme();
	struct err e = {0};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		_cleanup_free_ char *folder = fs_join(dir, folders[i]);

		assert_ok(fs_mkdirs(folder, 0700, &e));
	}
	for (char *at = text; (at = strstr(at, "```lua\n")); n++) {
		char *end = strstr(at += strlen("```lua\n"), "```");
		_cleanup_free_ char *block = xstrndup(at, (size_t)(end - at)), *name = NULL,
				    *path = NULL;

		assert_true(str_starts(block, "-- "));
		name = xstrndup(block + 3, strcspn(block + 3, "\n"));
		path = write_file(dir, name, block);
		at = end + 3;
	}
	return n;
}

static struct loaded load_example(const char *dir, const char *name, const char *site)
{
	const char *const dirs[] = {dir, "recipes", NULL};
	const struct script_path path = {.dirs = dirs, .site = site};
	_cleanup_free_ char *file = fs_join(dir, name);
	struct loaded l = {0};

	l.rc = script_load(file, &path, &l.recipe, &l.sources, &l.e);
	if (l.rc)
		fail_msg("%s", l.e.text);
	return l;
}

static void test_examples_are_right(void **state)
{
	static const struct signal v[] = {{"ckpt_time_s", 2}, {"step_time_ms.max", 3000}};
	static const struct script_signals signals = {v, 2};
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *site = fs_join(dir, "site.lua");
	struct diagnosis d;
	struct err e = {0};

	(void)state;
	assert_int_equal(write_examples(dir), 11);
	{
		_cleanup_loaded_ struct loaded l = load_example(dir, "short.lua", site);

		assert_string_equal(l.recipe->resources.partition, "gpu");
		assert_int_equal(l.recipe->budget.trials, 1000);
	}
	{
		_cleanup_loaded_ struct loaded l = load_example(dir, "whole.lua", NULL);

		assert_int_equal(l.recipe->n_knobs, 6);
		assert_int_equal(recipe_knob(l.recipe, "local_cache")->requires_values.n, 4);
		assert_string_equal(recipe_knob(l.recipe, "num_workers")->default_value, "1");
		assert_ok(script_diagnose(&l.sources, &signals, &l.recipe->thresholds, &d, &e));
		assert_int_equal(d.n_found, 1);
		assert_string_equal(d.found[0].rule, "checkpoints");
		diagnosis_done(&d);
	}
}

/* Is `name = ` somewhere in the text, as a field of a table? */
static bool mentions(const char *text, const char *name)
{
	_cleanup_free_ char *field = xasprintf("%s = ", name);

	for (const char *p = text; (p = strstr(p, field)); p++)
		if (p == text || strchr("\t {,", p[-1]))
			return true;
	return false;
}

/* An example of every field: of a campaign in the whole one, of a knob in the knob's file, ... */
static void test_examples_use_every_field(void **state)
{
	/* What excludes another field of the example, or stands in the reference alone. */
	static const char *const elsewhere[] = {"use",    "file", "pattern", "arg",
						"subkey", "flag", "min",     "max",
						"maps",   "fact", "metric",  "worth_trying",
						"share",  "gain", "ceiling", "why",
						"among",  NULL};
	_cleanup_free_ char *text = readme();

	(void)state;
	for (size_t i = 0; schema_all[i]; i++) {
		for (const struct field *f = schema_all[i]->fields; f->name; f++) {
			bool excused = false;

			for (size_t j = 0; elsewhere[j]; j++)
				excused = excused || str_eq(elsewhere[j], f->name);
			if (!excused && !mentions(text, f->name))
				fail_msg("no example of %s in %s", f->name, schema_all[i]->name);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_field_is_described),
		cmocka_unit_test(test_words_are_those_of_the_model),
		cmocka_unit_test(test_examples_are_right),
		cmocka_unit_test(test_examples_use_every_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
