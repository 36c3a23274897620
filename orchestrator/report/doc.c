/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/doc.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/mem.h"

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

void doc_str(struct doc *doc, const char *words)
{
	doc->writer->words(doc, words);
}

__attribute__((format(printf, 2, 0))) static void put_words(struct doc *doc, const char *fmt,
							    va_list args)
{
	struct buf b = {0};

	buf_vprintf(&b, fmt, args);
	if (b.len)
		doc_str(doc, b.data);
	buf_free(&b);
}

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

void doc_put_percent(struct buf *b, double v, int digits)
{
	if (isfinite(v))
		buf_printf(b, "%+.*f %%", digits, 100 * v);
	else
		buf_str(b, "unknown");
}

void doc_number(struct doc *doc, double v)
{
	struct buf b = {0};

	doc_put_number(&b, v);
	doc_str(doc, b.data);
	buf_free(&b);
}

void doc_percent(struct doc *doc, double v, int digits)
{
	struct buf b = {0};

	doc_put_percent(&b, v, digits);
	doc_str(doc, b.data);
	buf_free(&b);
}

static void doc_interval(struct doc *doc, double lo, double hi)
{
	if (isfinite(lo) && isfinite(hi))
		doc_printf(doc, "[%+.1f, %+.1f] %%", 100 * lo, 100 * hi);
	else
		doc_str(doc, "unknown");
}

void doc_effect(struct doc *doc, double est, double lo, double hi)
{
	doc_percent(doc, est, 1);
	if (isfinite(est) && isfinite(lo) && isfinite(hi))
		doc_printf(doc, " [%+.1f, %+.1f]", 100 * lo, 100 * hi);
	else if (isfinite(est))
		doc_str(doc, " [interval unknown]");
}

void doc_time(struct doc *doc, int64_t utc_us)
{
	char text[32];

	if (utc_us <= 0) {
		doc_str(doc, "unknown");
		return;
	}
	clock_iso(utc_us, text, sizeof text);
	doc_printf(doc, "%.10s %.8s UTC", text, text + 11);
}

/* -- tables ----------------------------------------------------------------------------------- */

void doc_table(struct doc *doc, const struct doc_column *c, size_t n)
{
	move(doc, DOC_TABLE, 0);
	doc->columns = c;
	doc->n_columns = n;
	doc->writer->head(doc);
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
