/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/doc.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/recorded.h"

/* Between these a number is written out: 23453 reads better than 2.345e+04. */
#define NUMBER_SMALL 1e-3
#define NUMBER_LARGE 1e10

/* -- blocks ----------------------------------------------------------------------------------- */

static void move(struct doc *doc, enum doc_block to, int level)
{
	doc->writer->move(doc, to, level);
	doc->open = to;
	if (to == DOC_HEADING)
		doc->level = level;
	if (to == DOC_HEADING && level == 2)
		doc->sections++;
}

void doc_end(struct doc *doc)
{
	move(doc, DOC_NOTHING, 0);
}

void doc_heading(struct doc *doc, int level)
{
	move(doc, DOC_HEADING, level);
}

void doc_para(struct doc *doc)
{
	move(doc, DOC_PARA, 0);
}

void doc_item(struct doc *doc)
{
	move(doc, DOC_ITEM, 0);
}

void doc_subitem(struct doc *doc)
{
	move(doc, DOC_SUBITEM, 0);
}

void doc_command(struct doc *doc)
{
	move(doc, DOC_COMMAND, 0);
}

void doc_picture(struct doc *doc)
{
	move(doc, DOC_PICTURE, 0);
}

void doc_title(struct doc *doc, int level, const char *words)
{
	doc_heading(doc, level);
	doc_str(doc, words);
}

void doc_say(struct doc *doc, const char *words)
{
	doc_para(doc);
	doc_str(doc, words);
}

/* -- text ------------------------------------------------------------------------------------- */

static void put(struct doc *doc, const char *words)
{
	doc->writer->words(doc, words);
}

void doc_str(struct doc *doc, const char *words)
{
	put(doc, lang_text(words));
}

/* What a conversion brings stands between a mark of its kind and the end mark. No format has these
 * bytes; where an argument has one the counts differ. */
enum { MARK_TEXT = 1, MARK_CODE, MARK_STRONG, MARK_END };

static bool is_mark(char c)
{
	return c >= MARK_TEXT && c <= MARK_END;
}

static size_t count_marks(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += is_mark(*s);
	return n;
}

/* The length of the conversion at p, which is a '%'. */
static size_t conversion(const char *p)
{
	size_t n = 1 + strspn(p + 1, "0123456789$.*-+# 'hlzjt");

	return n + (p[n] != '\0');
}

/* If `quote` stands right before the end of b and at `after`: takes it off b. */
static bool quoted(struct buf *b, const char *after, const char *quote)
{
	size_t n = strlen(quote);

	if (!str_starts(after, quote) || b->len < n || !str_ends(b->data, quote))
		return false;
	b->len -= n;
	b->data[b->len] = '\0';
	return true;
}

/* The format with each %s between marks. */
static char *mark(const char *fmt)
{
	struct buf b = {0};

	while (*fmt) {
		size_t n = *fmt == '%' ? conversion(fmt) : 1;
		const char *after = fmt + n;

		if (*fmt != '%' || fmt[n - 1] != 's') {
			buf_put(&b, fmt, n);
		} else if (quoted(&b, after, "`")) {
			buf_printf(&b, "%c%.*s%c", MARK_CODE, (int)n, fmt, MARK_END);
			n += strlen("`");
		} else if (quoted(&b, after, "**")) {
			buf_printf(&b, "%c%.*s%c", MARK_STRONG, (int)n, fmt, MARK_END);
			n += strlen("**");
		} else {
			buf_printf(&b, "%c%.*s%c", MARK_TEXT, (int)n, fmt, MARK_END);
		}
		fmt += n;
	}
	return buf_take(&b);
}

static void put_marked(struct doc *doc, char *s)
{
	while (*s) {
		size_t n = 0;
		char kind = is_mark(*s) ? *s++ : '\0', end;

		while (s[n] && !is_mark(s[n]))
			n++;
		end = s[n];
		s[n] = '\0';
		if (kind == MARK_TEXT)
			doc_text(doc, s);
		else if (kind == MARK_CODE)
			doc_code(doc, s);
		else if (kind == MARK_STRONG)
			doc_strong(doc, s);
		else
			put(doc, s);
		s[n] = end;
		s += n + (end == MARK_END);
	}
}

/* mark() keeps the conversions of fmt, which is what compilers check: clang does not see that. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
__attribute__((format(printf, 2, 0))) static void put_words(struct doc *doc, const char *fmt,
							    va_list args)
{
	_cleanup_free_ char *marked = mark(lang_text(fmt));
	struct buf b = {0};

	buf_vprintf(&b, marked, args);
	if (b.len && count_marks(b.data) == count_marks(marked))
		put_marked(doc, b.data);
	else if (b.len) /* an argument has marks of its own: nothing of it is believed */
		doc_text(doc, b.data);
	buf_free(&b);
}
#pragma GCC diagnostic pop

void doc_printf(struct doc *doc, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	put_words(doc, fmt, args);
	va_end(args);
}

void doc_text(struct doc *doc, const char *s)
{
	if (s)
		doc->writer->text(doc, s);
}

void doc_code(struct doc *doc, const char *s)
{
	if (s)
		doc->writer->code(doc, s);
}

void doc_link(struct doc *doc, const char *href, const char *s)
{
	if (s && href && doc->writer->link)
		doc->writer->link(doc, href, s);
	else
		doc_code(doc, s);
}

void doc_strong(struct doc *doc, const char *s)
{
	if (s)
		doc->writer->strong(doc, s);
}

/* -- numbers ---------------------------------------------------------------------------------- */

void doc_put_number(struct buf *b, double v)
{
	double size = fabs(v);
	int digits;

	if (!isfinite(v)) {
		buf_str(b, _("unknown"));
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

void doc_put_percent(struct buf *b, double v, int digits)
{
	if (isfinite(v))
		buf_printf(b, "%+.*f %%", digits, 100 * v);
	else
		buf_str(b, _("unknown"));
}

char *doc_number_text(char out[DOC_FIGURES_MAX], double v)
{
	struct buf b = {0};

	doc_put_number(&b, v);
	str_copy(out, DOC_FIGURES_MAX, b.data);
	buf_free(&b);
	return out;
}

char *doc_percent_text(char out[DOC_FIGURES_MAX], double v, int digits)
{
	struct buf b = {0};

	doc_put_percent(&b, v, digits);
	str_copy(out, DOC_FIGURES_MAX, b.data);
	buf_free(&b);
	return out;
}

char *doc_effect_text(char out[DOC_FIGURES_MAX], double est, double lo, double hi)
{
	struct buf b = {0};

	doc_put_percent(&b, est, 1);
	if (isfinite(est) && isfinite(lo) && isfinite(hi))
		buf_printf(&b, " [%+.1f, %+.1f]", 100 * lo, 100 * hi);
	else if (isfinite(est))
		buf_str(&b, _(" [interval unknown]"));
	str_copy(out, DOC_FIGURES_MAX, b.data);
	buf_free(&b);
	return out;
}

char *doc_time_text(char out[DOC_FIGURES_MAX], int64_t utc_us)
{
	char text[32];

	clock_iso(utc_us, text, sizeof text);
	if (utc_us > 0)
		snprintf(out, DOC_FIGURES_MAX, "%.10s %.8s UTC", text, text + 11);
	else
		str_copy(out, DOC_FIGURES_MAX, _("unknown"));
	return out;
}

static void doc_number(struct doc *doc, double v)
{
	char text[DOC_FIGURES_MAX];

	put(doc, doc_number_text(text, v));
}

void doc_percent(struct doc *doc, double v, int digits)
{
	char text[DOC_FIGURES_MAX];

	put(doc, doc_percent_text(text, v, digits));
}

static void doc_interval(struct doc *doc, double lo, double hi)
{
	if (isfinite(lo) && isfinite(hi))
		doc_printf(doc, "[%+.1f, %+.1f] %%", 100 * lo, 100 * hi);
	else
		doc_str(doc, "unknown");
}

/* -- tables ----------------------------------------------------------------------------------- */

void doc_table(struct doc *doc, const struct doc_column *c, size_t n)
{
	move(doc, DOC_TABLE, 0);
	doc->columns = c;
	doc->n_columns = n;
	doc->writer->head(doc);
}

const char *doc_column_title(const struct doc *doc, size_t i)
{
	return lang_text(doc->columns[i].title);
}

void doc_row(struct doc *doc)
{
	move(doc, DOC_ROW, 0);
	doc->column = 0;
}

void doc_cell_begin(struct doc *doc)
{
	doc->in_cell = true;
	doc->writer->cell(doc, true);
}

void doc_cell_end(struct doc *doc)
{
	doc->writer->cell(doc, false);
	doc->in_cell = false;
	doc->column++;
}

void doc_cell(struct doc *doc, const char *s)
{
	doc_cell_begin(doc);
	doc_text(doc, s && *s ? s : "-");
	doc_cell_end(doc);
}

void doc_cell_recorded(struct doc *doc, const char *s)
{
	_cleanup_free_ char *text = recorded_text(s);

	doc_cell(doc, text);
}

void doc_cell_code(struct doc *doc, const char *s)
{
	if (!s) {
		doc_cell(doc, NULL);
		return;
	}
	doc_cell_begin(doc);
	doc_code(doc, s);
	doc_cell_end(doc);
}

void doc_cell_number(struct doc *doc, double v)
{
	doc_cell_begin(doc);
	doc_number(doc, v);
	doc_cell_end(doc);
}

void doc_cell_percent(struct doc *doc, double v, int digits)
{
	doc_cell_begin(doc);
	doc_percent(doc, v, digits);
	doc_cell_end(doc);
}

void doc_cell_interval(struct doc *doc, double lo, double hi)
{
	doc_cell_begin(doc);
	doc_interval(doc, lo, hi);
	doc_cell_end(doc);
}

void doc_cell_i64(struct doc *doc, int64_t v)
{
	doc_cell_printf(doc, "%lld", (long long)v);
}

void doc_cell_printf(struct doc *doc, const char *fmt, ...)
{
	va_list args;

	doc_cell_begin(doc);
	va_start(args, fmt);
	put_words(doc, fmt, args);
	va_end(args);
	doc_cell_end(doc);
}
