/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/markdown.h"

#include <math.h>
#include <string.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/text.h"

/* Between these a number is written out: 23453 reads better than 2.345e+04. */
#define NUMBER_SMALL 1e-3
#define NUMBER_LARGE 1e10

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c & 0x80;
}

/* Only where it would act: `num_workers 0 -> 2 [+1, +3]` reads better without backslashes. */
static bool is_markup(const char *text, const char *p)
{
	switch (*p) {
	case '_':
		return !(p > text && is_word(p[-1]) && is_word(p[1]));
	case '>':
	case '#':
		return p == text;
	case ']':
		return p[1] == '(' || p[1] == '[' || p[1] == ':';
	case '&':
		return p[1] == '#' || is_word(p[1]);
	case '~':
		return p[1] == '~';
	default:
		return strchr("\\`*<|", *p) != NULL;
	}
}

void md_text(struct buf *b, const char *s)
{
	struct buf line = {0};

	if (!s)
		return;
	text_line(&line, s);
	for (const char *p = line.data; p && *p; p++) {
		if (is_markup(line.data, p))
			buf_char(b, '\\');
		buf_char(b, *p);
	}
	buf_free(&line);
}

static size_t longest_backticks(const char *s)
{
	size_t longest = 0;

	while (*s) {
		size_t n = strspn(s, "`");

		longest = n > longest ? n : longest;
		s += n ? n : 1;
	}
	return longest;
}

/* The only escape that works inside of code is that of the column mark of a table. */
static void put_code(struct buf *b, const char *s, bool in_table)
{
	struct buf line = {0};
	size_t ticks;

	if (!s)
		return;
	text_line(&line, s);
	if (line.len == 0) {
		buf_str(b, "\"\"");
		return;
	}
	ticks = longest_backticks(line.data) + 1;
	for (size_t i = 0; i < ticks; i++)
		buf_char(b, '`');
	if (ticks > 1)
		buf_char(b, ' ');
	for (const char *p = line.data; *p; p++) {
		if (*p == '|' && in_table)
			buf_char(b, '\\');
		buf_char(b, *p);
	}
	if (ticks > 1)
		buf_char(b, ' ');
	for (size_t i = 0; i < ticks; i++)
		buf_char(b, '`');
	buf_free(&line);
}

void md_code(struct buf *b, const char *s)
{
	put_code(b, s, false);
}

void md_number(struct buf *b, double v)
{
	double size = fabs(v);
	int digits;

	if (!isfinite(v)) {
		buf_str(b, "unknown");
		return;
	}
	if (size != 0 && (size < NUMBER_SMALL || size >= NUMBER_LARGE)) {
		buf_printf(b, "%.3e", v);
		return;
	}
	digits = size == 0 ? 0 : 3 - (int)floor(log10(size));
	if (digits <= 0 || v == floor(v))
		buf_printf(b, "%.0f", v);
	else
		buf_printf(b, "%.*f", digits, v);
}

void md_percent(struct buf *b, double v, int digits)
{
	if (isfinite(v))
		buf_printf(b, "%+.*f %%", digits, 100 * v);
	else
		buf_str(b, "unknown");
}

void md_interval(struct buf *b, double lo, double hi)
{
	if (isfinite(lo) && isfinite(hi))
		buf_printf(b, "[%+.1f, %+.1f] %%", 100 * lo, 100 * hi);
	else
		buf_str(b, "unknown");
}

void md_effect(struct buf *b, double est, double lo, double hi)
{
	md_percent(b, est, 1);
	if (isfinite(est) && isfinite(lo) && isfinite(hi))
		buf_printf(b, " [%+.1f, %+.1f]", 100 * lo, 100 * hi);
	else if (isfinite(est))
		buf_str(b, " [interval unknown]");
}

void md_time(struct buf *b, int64_t utc_us)
{
	char text[32];

	if (utc_us <= 0) {
		buf_str(b, "unknown");
		return;
	}
	clock_iso(utc_us, text, sizeof text);
	buf_printf(b, "%.10s %.8s UTC", text, text + 11);
}

void md_table(struct buf *b, const struct md_column *c, size_t n)
{
	buf_char(b, '|');
	for (size_t i = 0; i < n; i++)
		buf_printf(b, " %s |", c[i].title);
	buf_str(b, "\n|");
	for (size_t i = 0; i < n; i++)
		buf_str(b, c[i].right ? "---:|" : "---|");
	buf_char(b, '\n');
}

void md_row(struct buf *b)
{
	buf_char(b, '|');
}

void md_row_end(struct buf *b)
{
	buf_char(b, '\n');
}

void md_cell(struct buf *b, const char *s)
{
	buf_char(b, ' ');
	md_text(b, s && *s ? s : "-");
	buf_str(b, " |");
}

void md_cell_code(struct buf *b, const char *s)
{
	if (!s) {
		md_cell(b, NULL);
		return;
	}
	buf_char(b, ' ');
	put_code(b, s, true);
	buf_str(b, " |");
}

void md_cell_number(struct buf *b, double v)
{
	buf_char(b, ' ');
	md_number(b, v);
	buf_str(b, " |");
}

void md_cell_percent(struct buf *b, double v, int digits)
{
	buf_char(b, ' ');
	md_percent(b, v, digits);
	buf_str(b, " |");
}

void md_cell_i64(struct buf *b, int64_t v)
{
	buf_printf(b, " %lld |", (long long)v);
}
