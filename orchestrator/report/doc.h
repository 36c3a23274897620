/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A document in blocks: headings, paragraphs, lists, tables. The tuning log is written once, as
 * calls of this interface; a writer makes Markdown (markdown.h) or HTML (html_doc.h) of them. A
 * block ends where the next one begins; between, text is appended to it.
 *
 * Words of the program go in by doc_title(), doc_say(), doc_str(), doc_printf() and the titles of
 * columns, which translate them (base/lang.h): give whole sentences, other languages order theirs
 * otherwise. Everything that comes from outside goes through doc_text(), doc_code() or doc_strong()
 * or a %s of doc_printf(), which make it harmless. A number that is not known is "unknown". A
 * line's end in a paragraph is one for the eye of who reads Markdown.
 */
#ifndef FETTLE_REPORT_DOC_H
#define FETTLE_REPORT_DOC_H

#include "orchestrator/base/str.h"

enum doc_block {
	DOC_NOTHING,
	DOC_HEADING,
	DOC_PARA,
	DOC_ITEM,    /* of a list */
	DOC_SUBITEM, /* of the list in an item */
	DOC_TABLE,   /* its head */
	DOC_ROW,
	DOC_COMMAND, /* a line to copy */
	DOC_PICTURE, /* made by who knows the writer, straight into `out` */
};

struct doc_column {
	const char *title;
	bool right; /* numbers */
};

struct doc;
struct doc_writer {
	/* From the open block to another: ends one, begins the other. Level: of a heading. */
	void (*move)(struct doc *doc, enum doc_block to, int level);
	void (*head)(struct doc *doc); /* the cells of a table's head */
	void (*cell)(struct doc *doc, bool begin);
	void (*words)(struct doc *doc, const char *s);
	void (*text)(struct doc *doc, const char *s);
	void (*code)(struct doc *doc, const char *s);
	void (*strong)(struct doc *doc, const char *s);
	void (*link)(struct doc *doc, const char *href, const char *s); /* NULL: it has no links */
};

struct doc {
	const struct doc_writer *writer;
	struct buf *out;
	enum doc_block open;
	int level;                        /* of the last heading */
	size_t sections;                  /* headings of level 2 so far */
	bool in_cell;                     /* between the two calls of cell() */
	const struct doc_column *columns; /* of the table; borrowed until the next block */
	size_t n_columns, column;         /* column: of the next cell */
};

/* Ends the last block. */
void doc_end(struct doc *doc);

void doc_heading(struct doc *doc, int level); /* 1 to 4 */
void doc_para(struct doc *doc);
void doc_item(struct doc *doc);
void doc_subitem(struct doc *doc);
void doc_command(struct doc *doc);
void doc_picture(struct doc *doc);
void doc_title(struct doc *doc, int level, const char *words); /* a heading, whole */
void doc_say(struct doc *doc, const char *words);              /* a paragraph, whole */

void doc_str(struct doc *doc, const char *words);
/* What a %s brings comes as by doc_text(), `%s` in these quotes as by doc_code(), **%s** as by
 * doc_strong(); the words around, as by doc_str(). */
__attribute__((format(printf, 2, 3))) void doc_printf(struct doc *doc, const char *fmt, ...);
void doc_text(struct doc *doc, const char *s); /* on one line; NULL: nothing */
void doc_code(struct doc *doc, const char *s); /* as it is; NULL: nothing */
/* As doc_code(), leading to href where the writer has links; href NULL: to nowhere. */
void doc_link(struct doc *doc, const char *href, const char *s);
void doc_strong(struct doc *doc, const char *s);

void doc_percent(struct doc *doc, double v, int digits);

/* A table: the head; then rows of cells, as many as there are columns. */
void doc_table(struct doc *doc, const struct doc_column *c, size_t n);
const char *doc_column_title(const struct doc *doc, size_t i); /* for writers: translated */
void doc_row(struct doc *doc);
/* One cell each. */
void doc_cell(struct doc *doc, const char *s);          /* doc_text; NULL or "": "-" */
void doc_cell_recorded(struct doc *doc, const char *s); /* a sentence of the store: recorded.h */
void doc_cell_code(struct doc *doc, const char *s);
void doc_cell_number(struct doc *doc, double v);
void doc_cell_percent(struct doc *doc, double v, int digits);
void doc_cell_interval(struct doc *doc, double lo, double hi);
void doc_cell_i64(struct doc *doc, int64_t v);
__attribute__((format(printf, 2, 3))) void doc_cell_printf(struct doc *doc, const char *fmt, ...);
/* A cell of several pieces: between begin and end. */
void doc_cell_begin(struct doc *doc);
void doc_cell_end(struct doc *doc);

/* How figures are written, for pictures and for a %s of doc_printf(): four digits that matter
 * ("9045", "0.6206"); 0.0123 as "+1.2 %"; "+1.2 % [+0.5, +1.9]"; "2026-11-29 13:21:44 UTC". What is
 * not known, as time 0, is "unknown". */
void doc_put_number(struct buf *b, double v);
void doc_put_percent(struct buf *b, double v, int digits);
enum { DOC_FIGURES_MAX = 96 };
char *doc_number_text(char out[DOC_FIGURES_MAX], double v);
char *doc_percent_text(char out[DOC_FIGURES_MAX], double v, int digits);
char *doc_effect_text(char out[DOC_FIGURES_MAX], double est, double lo, double hi);
char *doc_time_text(char out[DOC_FIGURES_MAX], int64_t utc_us);

#endif
