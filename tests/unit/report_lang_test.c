/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tuning log in Chinese: as it was read by somebody (UPDATE_GOLDEN=1 writes it anew), and in
 * structure and numbers the English one. */
#include "tests/unit/check.h"

#include <ctype.h>

#include "experiments/history.h"
#include "experiments/model.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/report/recorded.h"
#include "orchestrator/report/report.h"
#include "tests/unit/report_sample.h"

static int setup(void **state)
{
	_cleanup_free_ char *dir = xasprintf("%s/locale", getenv("FETTLE_BUILD"));

	(void)state;
	setenv("FETTLE_LOCALE", dir, 1);
	unsetenv("LANGUAGE");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	lang_end();
	return 0;
}

static char *written(const char *format, const char *lang)
{
	struct report r = sample_report();
	struct buf b = {0};
	struct err e = {0};

	lang_begin(lang);
	assert_ok(report_format_find(format)->write(&r, &b, &e));
	lang_end();
	return buf_take(&b);
}

static void as_it_was(void **state)
{
	static const char path[] = "tests/golden/report.zh.md";
	_cleanup_free_ char *text = written("markdown", "zh");
	struct buf was = {0};
	struct err e = {0};

	(void)state;
	if (getenv("UPDATE_GOLDEN"))
		assert_ok(fs_write_atomic(path, text, strlen(text), 0644, &e));
	assert_ok(fs_read(path, 1 << 20, &was, &e));
	assert_string_equal(text, was.data);
	buf_free(&was);
}

/* -- structure and numbers -------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The numbers of a line in the order of their texts: languages order them otherwise. */
static void numbers(const char *line, struct strv *out)
{
	while (*line) {
		size_t n = strspn(line, "0123456789.");

		if (isdigit((unsigned char)*line)) {
			_cleanup_free_ char *number = xstrndup(line, n);

			while (n && number[n - 1] == '.') /* the end of an English sentence */
				number[--n] = '\0';
			strv_add(out, number);
		}
		line += n ? n : 1;
	}
	if (out->n)
		qsort(out->v, out->n, sizeof *out->v, by_text);
}

static size_t count(const char *s, char c)
{
	size_t n = 0;

	for (; *s; s++)
		n += *s == c;
	return n;
}

static void same_line(const char *en, const char *zh)
{
	size_t mark = strspn(en, " #-|");
	struct strv a = {0}, b = {0};

	if (strncmp(en, zh, mark) != 0 || count(en, '|') != count(zh, '|') ||
	    count(en, '`') != count(zh, '`') || count(en, '*') != count(zh, '*'))
		fail_msg("another structure:\n%s\n%s", en, zh);
	numbers(en, &a);
	numbers(zh, &b);
	if (a.n != b.n)
		fail_msg("other numbers:\n%s\n%s", en, zh);
	for (size_t i = 0; i < a.n; i++)
		if (strcmp(a.v[i], b.v[i]) != 0)
			fail_msg("%s is %s:\n%s\n%s", a.v[i], b.v[i], en, zh);
	strv_free(&a);
	strv_free(&b);
}

static void line_by_line_the_same_structure_and_numbers(void **state)
{
	_cleanup_free_ char *en = written("markdown", "en"), *zh = written("markdown", "zh");
	char *a = en, *b = zh;

	(void)state;
	while (*a && *b) {
		size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");
		bool more = a[n] && b[m];

		a[n] = b[m] = '\0';
		same_line(a, b);
		a += n + more;
		b += m + more;
	}
	assert_true(*a == '\0' && *b == '\0');
}

static size_t times(const char *text, const char *part)
{
	size_t n = 0;

	for (const char *p = text; (p = strstr(p, part)) != NULL; p++)
		n++;
	return n;
}

static void the_page_says_its_language_and_has_the_same_elements(void **state)
{
	static const char *const elements[] = {"<h2>",     "<h3>",      "<h4>",   "<table",  "<tr",
					       "<td",      "<svg",      "<text",  "<circle", "<li>",
					       "<section", "<details>", "<code>", "<title>"};
	_cleanup_free_ char *en = written("html", "en"), *zh = written("html", "zh");

	(void)state;
	assert_non_null(strstr(en, "<html lang=\"en\">"));
	assert_non_null(strstr(zh, "<html lang=\"zh-CN\">"));
	for (size_t i = 0; i < ARRAY_LEN(elements); i++)
		if (times(en, elements[i]) != times(zh, elements[i]))
			fail_msg("%zu %s are %zu", times(en, elements[i]), elements[i],
				 times(zh, elements[i]));
}

/* What programs read has one language. */
static void other_formats_stay_english(void **state)
{
	(void)state;
	for (const struct report_format *const *f = report_format_table; *f; f++)
		if (!(*f)->for_people) {
			struct report r = sample_report();
			struct buf en = {0};
			struct err e = {0};

			assert_ok((*f)->write(&r, &en, &e));
			for (size_t i = 0; i < en.len; i++)
				assert_false((unsigned char)en.data[i] >= 0xe4 &&
					     (unsigned char)en.data[i] <= 0xe9);
			buf_free(&en);
		}
}

/* -- stored sentences ------------------------------------------------------------------------- */

static void assert_recorded(const char *en, const char *zh)
{
	_cleanup_free_ char *text = recorded_text(en);

	assert_string_equal(text, zh);
}

static void stored_sentences_are_made_anew(void **state)
{
	(void)state;
	assert_null(recorded_text(NULL));
	assert_recorded("screen mean -1.10 %", "screen mean -1.10 %");
	lang_begin("zh");
	assert_null(recorded_text(NULL));
	assert_recorded("", "");
	assert_recorded("screen mean -1.10 %", "筛选均值 -1.10 %");
	/* a number's place takes numbers only, and nothing may be left over */
	assert_recorded("screen mean of all %", "screen mean of all %");
	assert_recorded("screen mean -1.10 % of it", "screen mean -1.10 % of it");
	/* other order, a sentence in a sentence, what no format knows, conversions left out */
	assert_recorded("3 of 4 trials failed: no reason given", "4 次试验中 3 次失败：未给出原因");
	assert_recorded("3 of 4 trials failed: %s %n \x01", "4 次试验中 3 次失败：%s %n \x01");
	assert_recorded("went back by itself after 2 nights, on 2026-11-29",
			"2 夜后自行恢复，于 2026-11-29");
	assert_recorded("CPUs are 80 % busy, so decoding competes with computing",
			"CPU 繁忙度 80 %，解码与计算争抢 CPU");
	assert_recorded(
		"noise of a run within a block 1.46 %; A/A difference +0.39 % [-4.63, 5.68] over "
		"3 pairs; smallest effect to be seen 2.6 %; repeats = 7 would show 1.0 % if the "
		"noise is that of runs",
		"区块内单次运行的噪声 1.46 %；A/A 差异 +0.39 % [-4.63, 5.68]，共 3 对；可分辨的最小效应 "
		"2.6 %；若噪声来自单次运行，repeats = 7 可分辨 1.0 %");
	assert_recorded("64 workers", "64 个 worker");
	assert_recorded("64 workers on 8 CPUs", "64 workers on 8 CPUs"); /* nothing is lost */
	assert_recorded("a sentence of nobody", "a sentence of nobody");
	lang_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(as_it_was, teardown),
		cmocka_unit_test_teardown(line_by_line_the_same_structure_and_numbers, teardown),
		cmocka_unit_test_teardown(the_page_says_its_language_and_has_the_same_elements,
					  teardown),
		cmocka_unit_test_teardown(other_formats_stay_english, teardown),
		cmocka_unit_test_teardown(stored_sentences_are_made_anew, teardown),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
