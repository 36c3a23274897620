/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <libintl.h>
#include <locale.h>
#include <stdio.h>

#include "orchestrator/base/lang.h"

/* What a user's environment may say, all of it. */
static void environment(const char *language, const char *lc_all, const char *lc_messages,
			const char *lang)
{
	const char *const names[] = {"LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"};
	const char *const values[] = {language, lc_all, lc_messages, lang};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (values[i])
			setenv(names[i], values[i], 1);
		else
			unsetenv(names[i]);
}

static int setup(void **state)
{
	_cleanup_free_ char *dir = xasprintf("%s/locale", getenv("FETTLE_BUILD"));

	(void)state;
	setenv("FETTLE_LOCALE", dir, 1);
	environment(NULL, NULL, NULL, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	lang_end();
	return 0;
}

static const char *tag_of_environment(const char *language, const char *lc_all,
				      const char *lc_messages, const char *lang)
{
	const char *tag;

	environment(language, lc_all, lc_messages, lang);
	lang_begin(NULL);
	tag = lang_tag();
	lang_end();
	return tag;
}

static void only_between_begin_and_end(void **state)
{
	(void)state;
	assert_string_equal(_("unknown"), "unknown");
	lang_begin("zh");
	assert_string_equal(_("unknown"), "未知");
	assert_string_equal(lang_tag(), "zh-CN");
	lang_end();
	assert_string_equal(_("unknown"), "unknown");
	lang_begin("en");
	assert_string_equal(_("unknown"), "unknown");
	assert_string_equal(lang_tag(), "en");
	lang_end();
	lang_end(); /* once more does no harm */
}

static void what_has_no_translation_stays(void **state)
{
	(void)state;
	lang_begin("zh");
	assert_string_equal(_("no text of fettle"), "no text of fettle");
	assert_string_equal(_(""), ""); /* the catalogue's head is the translation of this */
	assert_null(lang_text(NULL));
	assert_string_equal(lang_text_in(NC_("of a test", "no text")), "no text");
	assert_string_equal(_n("one", "many", 1), "one");
	lang_end();
	assert_string_equal(_n("one", "many", 1), "one");
	assert_string_equal(_n("one", "many", 2), "many");
	assert_string_equal(_n("one", "many", 0), "many");
}

static void the_environment_says_it_as_to_gettext(void **state)
{
	(void)state;
	assert_string_equal(tag_of_environment(NULL, NULL, NULL, NULL), "en");
	assert_string_equal(tag_of_environment(NULL, NULL, NULL, "zh_CN.UTF-8"), "zh-CN");
	assert_string_equal(tag_of_environment(NULL, NULL, "zh_CN", "en_US.UTF-8"), "zh-CN");
	assert_string_equal(tag_of_environment(NULL, NULL, "en_GB", "zh_CN"), "en");
	assert_string_equal(tag_of_environment(NULL, "C", "zh_CN", "zh_CN"), "en");
	assert_string_equal(tag_of_environment(NULL, "", "", "zh_CN.GB18030"), "zh-CN");
	assert_string_equal(tag_of_environment("zh_CN:en", NULL, NULL, "de_DE"), "zh-CN");
	assert_string_equal(tag_of_environment("eo:en:zh_CN", NULL, NULL, "zh_CN"), "en");
	assert_string_equal(tag_of_environment("eo:zh", NULL, NULL, "C.UTF-8"), "zh-CN");
	/* without a locale gettext does not ask LANGUAGE either */
	assert_string_equal(tag_of_environment("zh_CN", NULL, NULL, "C"), "en");
	assert_string_equal(tag_of_environment("zh_CN", NULL, NULL, NULL), "en");
	assert_string_equal(tag_of_environment(NULL, NULL, NULL, "fr_FR.UTF-8"), "en");
	/* what is asked for by name wins */
	environment("en", NULL, NULL, "en_US.UTF-8");
	lang_begin("zh_CN.UTF-8");
	assert_string_equal(lang_tag(), "zh-CN");
	lang_end();
	environment(NULL, NULL, NULL, NULL);
}

static void a_language_that_is_not_there_is_an_error_with_those_that_are(void **state)
{
	static const char *const bad[] = {"xx",
					  "",
					  "zh_TW",
					  "../zh_CN",
					  "english?",
					  "z",
					  "a_name_of_more_than_thirty_two_bytes"};
	struct err e = {0};

	(void)state;
	assert_int_equal(lang_check("en_GB", &e), 0);
	assert_int_equal(lang_check("zh-CN", &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(lang_check(bad[i], &e), -ERR_USAGE);
		assert_non_null(strstr(e.text, "en, zh_CN"));
	}
	setenv("FETTLE_LOCALE", "/nowhere", 1);
	assert_int_equal(lang_check("zh", &e), -ERR_USAGE);
	assert_true(str_ends(e.text, ": en"));
	lang_begin("zh");
	assert_string_equal(lang_tag(), "en");
	setup(NULL);
}

/* Children, numbers and messages of the library are no document. */
static void nothing_else_changes(void **state)
{
	char number[16];

	(void)state;
	setenv("LANGUAGE", "de", 1);
	setlocale(LC_MESSAGES, "C");
	lang_begin("zh");
	snprintf(number, sizeof number, "%.1f", 1.5);
	assert_string_equal(number, "1.5");
	assert_string_equal(setlocale(LC_MESSAGES, NULL), "C");
	lang_end();
	assert_string_equal(getenv("LANGUAGE"), "de");
	unsetenv("LANGUAGE");
	lang_begin("zh");
	lang_end();
	assert_null(getenv("LANGUAGE"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(only_between_begin_and_end, teardown),
		cmocka_unit_test_teardown(what_has_no_translation_stays, teardown),
		cmocka_unit_test_teardown(the_environment_says_it_as_to_gettext, teardown),
		cmocka_unit_test_teardown(
			a_language_that_is_not_there_is_an_error_with_those_that_are, teardown),
		cmocka_unit_test_teardown(nothing_else_changes, teardown),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
