/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The writer of pictures and of pages: what it writes is text that nothing in the data can break.
 */
#include "tests/unit/check.h"

#include <math.h>

#include "orchestrator/report/html.h"
#include "orchestrator/report/svg.h"

#define HOSTILE "</title><script>alert(\"1\")</script>&'\033[2J\xff"

static void test_text_is_escaped(void **state)
{
	struct buf b = {0};

	(void)state;
	html_text(&b, HOSTILE);
	assert_string_equal(b.data,
			    "&lt;/title&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;"
			    "&amp;&#39;\\x1b[2J\xef\xbf\xbd");
	html_text(&b, NULL);
	buf_free(&b);
}

static void test_every_element(void **state)
{
	struct buf b = {0};

	(void)state;
	svg_begin(&b, 600, 240.25, "a \"picture\"");
	svg_line(&b, "grid", 0, 1.25, -0.04, 1e3);
	svg_rect(&b, "band", 1, 2, 3, 4);
	svg_dot(&b, "d", 1, 2, 3.5, NULL);
	svg_dot(&b, "d", 1, 2, 3.5, "a<b");
	svg_diamond(&b, "ev", 10, 10, 5, "x&y");
	svg_text(&b, "t", 1, 2, SVG_END, "<i>");
	svg_path_begin(&b, "p");
	svg_move_to(&b, 1, 2);
	svg_line_to(&b, 3, 4);
	svg_point_at(&b, 5, 6);
	svg_path_end(&b);
	svg_end(&b);
	assert_string_equal(
		b.data,
		"<svg viewBox=\"0 0 600 240.2\" role=\"img\" aria-label=\"a &quot;picture&quot;\">"
		"<line class=\"grid\" x1=\"0\" y1=\"1.2\" x2=\"0\" y2=\"1000\"/>"
		"<rect class=\"band\" x=\"1\" y=\"2\" width=\"3\" height=\"4\"/>"
		"<circle class=\"d\" cx=\"1\" cy=\"2\" r=\"3.5\"/>"
		"<circle class=\"d\" cx=\"1\" cy=\"2\" r=\"3.5\"><title>a&lt;b</title></circle>"
		"<path class=\"ev\" d=\"M5 10L10 5L15 10L10 15z\"><title>x&amp;y</title></path>"
		"<text class=\"t\" text-anchor=\"end\" x=\"1\" y=\"2\">&lt;i&gt;</text>"
		"<path class=\"p\" d=\"M1 2L3 4M5 6h0\"/></svg>\n");
	buf_free(&b);
}

static void test_a_page_forbids_scripts(void **state)
{
	struct buf b = {0};

	(void)state;
	html_head(&b, HOSTILE, "");
	html_tail(&b);
	assert_contains(b.data, "default-src 'none'");
	assert_contains(b.data, "<title>&lt;/title&gt;");
	assert_null(strstr(b.data, "<script"));
	assert_contains(b.data, "</body>\n</html>\n");
	buf_free(&b);
}

/* Relative luminance of "#rgb" or "#rrggbb" (WCAG 2.1). */
static double luminance(const char *hex)
{
	static const double weight[] = {0.2126, 0.7152, 0.0722};
	size_t digits = strspn(hex + 1, "0123456789abcdef") == 3 ? 1 : 2;
	double sum = 0;

	for (size_t i = 0; i < 3; i++) {
		char part[3] = {hex[1 + i * digits], hex[1 + i * digits + digits - 1], '\0'};
		double v = (double)strtol(part, NULL, 16) / 255;

		sum += weight[i] * (v <= 0.03928 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4));
	}
	return sum;
}

static double contrast(const char *scheme, const char *ink, const char *paper)
{
	const char *a = strstr(scheme, ink), *b = strstr(scheme, paper);
	double x, y;

	assert_true(a && b);
	x = luminance(a + strlen(ink));
	y = luminance(b + strlen(paper));
	return (fmax(x, y) + 0.05) / (fmin(x, y) + 0.05);
}

/* Light, dark, print: text can be read on the page and on its cards. */
static void test_contrast(void **state)
{
	static const char *const inks[] = {
		"--ink:", "--soft:", "--worse:", "--better:", "--suspect:", "--event:", "--data:"};
	struct buf b = {0};
	const char *scheme;
	int schemes = 0;

	(void)state;
	html_head(&b, "", "");
	for (scheme = b.data; (scheme = strstr(scheme, ":root{")); scheme++, schemes++)
		for (size_t i = 0; i < ARRAY_LEN(inks); i++)
			if (contrast(scheme, inks[i], "--paper:") < 4.5 ||
			    contrast(scheme, inks[i], "--card:") < 4.5)
				fail_msg("scheme %d: %s", schemes, inks[i]);
	assert_int_equal(schemes, 3);
	buf_free(&b);
}

static void check_ticks(double lo, double hi, size_t want, const double *expected, size_t n,
			int digits)
{
	double v[20];
	int got_digits = -1;

	assert_int_equal(svg_ticks(lo, hi, want, v, 20, &got_digits), n);
	assert_int_equal(got_digits, digits);
	for (size_t i = 0; i < n; i++)
		assert_true(fabs(v[i] - expected[i]) <= 1e-12 * fmax(1, fabs(expected[i])));
}

static void test_ticks_are_round(void **state)
{
	double v[3];
	int digits;

	(void)state;
	check_ticks(0, 10, 5, (double[]){0, 2, 4, 6, 8, 10}, 6, 0);
	check_ticks(398.2, 422.9, 4, (double[]){400, 405, 410, 415, 420}, 5, 0);
	check_ticks(0.0013, 0.0019, 3, (double[]){0.0014, 0.0016, 0.0018}, 3, 4);
	check_ticks(-1, 1, 4, (double[]){-1, -0.5, 0, 0.5, 1}, 5, 1);
	check_ticks(1e9, 3e9, 2, (double[]){1e9, 2e9, 3e9}, 3, 0);
	assert_int_equal(svg_ticks(1, 1, 4, v, 3, &digits), 0);
	assert_int_equal(svg_ticks(2, 1, 4, v, 3, &digits), 0);
	assert_int_equal(svg_ticks(0, INFINITY, 4, v, 3, &digits), 0);
	assert_int_equal(svg_ticks(0, 100, 50, v, 3, &digits), 3); /* as many as there is room */
}

static void test_an_axis_may_run_backwards(void **state)
{
	const struct svg_axis a = {10, 20, 200, 100};

	(void)state;
	assert_true(svg_at(&a, 10) == 200);
	assert_true(svg_at(&a, 15) == 150);
	assert_true(svg_at(&a, 20) == 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_is_escaped),
		cmocka_unit_test(test_every_element),
		cmocka_unit_test(test_a_page_forbids_scripts),
		cmocka_unit_test(test_contrast),
		cmocka_unit_test(test_ticks_are_round),
		cmocka_unit_test(test_an_axis_may_run_backwards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
