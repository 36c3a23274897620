/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/plot.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/text.h"

enum {
	LABEL = 10,       /* columns of a label at the left, and one blank */
	COLUMNS_MIN = 16, /* of dots, however narrow the terminal */
	DOTS_X = 2,
	DOTS_Y = 4,
};
#define RESET "\033[0m"
#define DATA  "\033[36m"

struct field {
	const struct plot *p;
	size_t columns;
	double x_lo, x_hi, y_lo, y_hi;
	uint8_t *cells;    /* rows x columns of dots, bit by braille's numbers */
	const char **line; /* by column: colour of the change that stands there, NULL: none */
};

static size_t column_of(const struct field *f, double x, size_t columns)
{
	double at = f->x_hi > f->x_lo ? (x - f->x_lo) / (f->x_hi - f->x_lo) : 0.5;

	at = fmin(fmax(at, 0), 1);
	return (size_t)lround(at * (double)(columns - 1));
}

static void measure(struct field *f)
{
	const struct plot *p = f->p;

	f->x_lo = p->x[0];
	f->x_hi = p->x[p->n - 1];
	f->y_lo = f->y_hi = p->y[0];
	for (size_t i = 1; i < p->n; i++) {
		f->y_lo = fmin(f->y_lo, p->y[i]);
		f->y_hi = fmax(f->y_hi, p->y[i]);
	}
	if (f->y_lo == f->y_hi) { /* equal values run through the middle */
		double half = f->y_lo == 0 ? 1 : fabs(f->y_lo) * 0.01;

		f->y_lo -= half;
		f->y_hi += half;
	}
}

static void put_dots(struct field *f)
{
	static const uint8_t bits[DOTS_Y][DOTS_X] = {
		{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
	const struct plot *p = f->p;
	size_t dots = f->columns * DOTS_X, rows = p->height * DOTS_Y;

	for (size_t i = 0; i < p->n; i++) {
		double up = (p->y[i] - f->y_lo) / (f->y_hi - f->y_lo);
		size_t x = column_of(f, p->x[i], dots);
		size_t y = (size_t)lround((1 - up) * (double)(rows - 1));

		f->cells[y / DOTS_Y * f->columns + x / DOTS_X] |= bits[y % DOTS_Y][x % DOTS_X];
	}
}

static void colour(const struct field *f, const char *code, struct buf *out)
{
	if (f->p->colour && code)
		buf_str(out, code);
}

/* U+2800 and the dots, in UTF-8. */
static void put_braille(uint8_t dots, struct buf *out)
{
	buf_char(out, '\xe2');
	buf_char(out, (char)(0xa0 | dots >> 6));
	buf_char(out, (char)(0x80 | (dots & 0x3f)));
}

static void put_cell(const struct field *f, size_t row, size_t column, struct buf *out)
{
	uint8_t dots = f->cells[row * f->columns + column];
	const char *line = f->line[column];

	if (!dots && !line) {
		buf_char(out, ' ');
		return;
	}
	colour(f, dots ? DATA : line, out);
	if (dots && f->p->ascii)
		buf_char(out, '*');
	else if (dots)
		put_braille(dots, out);
	else
		buf_str(out, f->p->ascii ? ":" : "┊");
	colour(f, RESET, out);
}

/* A value in the columns of a label; its unit stands in the heading. */
static void put_value(double v, struct buf *out)
{
	char text[32];

	snprintf(text, sizeof text, "%.6g", v);
	buf_printf(out, "%*s ", LABEL - 1, text);
}

static void put_rows(const struct field *f, struct buf *out)
{
	const struct plot *p = f->p;
	size_t middle = p->height / 2;

	for (size_t row = 0; row < p->height; row++) {
		bool labelled = row == 0 || row == p->height - 1 ||
				(row == middle && p->height > 4);
		double share = (double)row / (double)(p->height - 1);

		if (labelled)
			put_value(f->y_hi - share * (f->y_hi - f->y_lo), out);
		else
			buf_printf(out, "%*s", LABEL, "");
		buf_str(out, p->ascii ? (labelled ? "+" : "|") : labelled ? "┤" : "│");
		for (size_t column = 0; column < f->columns; column++)
			put_cell(f, row, column, out);
		while (out->len && out->data[out->len - 1] == ' ')
			out->data[--out->len] = '\0';
		buf_char(out, '\n');
	}
}

static void put_axis(const struct field *f, struct buf *out)
{
	const struct plot *p = f->p;
	size_t names = strlen(p->left) + strlen(p->right);

	buf_printf(out, "%*s%s", LABEL, "", p->ascii ? "+" : "└");
	for (size_t i = 0; i < f->columns; i++)
		buf_str(out, p->ascii ? "-" : "─");
	buf_printf(out, "\n%*s%s", LABEL + 1, "", p->left);
	if (f->x_hi > f->x_lo && names + 2 <= f->columns)
		buf_printf(out, "%*s%s", (int)(f->columns - names), "", p->right);
	buf_char(out, '\n');
}

/* Where two marks share a column the later one is seen; the list under the plot has both. */
static void put_marks(const struct field *f, enum plot_row row, struct buf *out)
{
	const struct plot *p = f->p;
	_cleanup_free_ const struct plot_mark **at = xcalloc(f->columns, sizeof *at);
	size_t used = 0;

	for (size_t i = 0; i < p->n_marks; i++)
		if (p->marks[i].row == row) {
			size_t column = column_of(f, p->marks[i].x, f->columns);

			at[column] = &p->marks[i];
			used = column + 1 > used ? column + 1 : used;
		}
	if (!used)
		return;
	text_cell_right(out, p->row_name[row], LABEL);
	buf_char(out, ' ');
	for (size_t column = 0; column < used; column++) {
		if (at[column])
			colour(f, at[column]->colour, out);
		buf_char(out, at[column] ? at[column]->sign : ' ');
		if (at[column] && at[column]->colour)
			colour(f, RESET, out);
	}
	buf_char(out, '\n');
}

void plot_draw(const struct plot *p, struct buf *out)
{
	size_t columns = p->width > LABEL + 1 + COLUMNS_MIN ? p->width - LABEL - 1 : COLUMNS_MIN;
	_cleanup_free_ uint8_t *cells = xcalloc(p->height * columns, 1);
	_cleanup_free_ const char **line = xcalloc(columns, sizeof *line);
	struct field f = {.p = p, .columns = columns, .cells = cells, .line = line};

	measure(&f);
	put_dots(&f);
	for (size_t i = 0; i < p->n_marks; i++)
		if (p->marks[i].row == PLOT_CHANGES)
			line[column_of(&f, p->marks[i].x, columns)] = p->marks[i].colour
									      ? p->marks[i].colour
									      : "";
	put_rows(&f, out);
	put_axis(&f, out);
	for (int row = 0; row < PLOT_ROWS; row++)
		put_marks(&f, (enum plot_row)row, out);
}
