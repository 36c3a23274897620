/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/markdown.h"

#include <string.h>

#include "orchestrator/report/text.h"

static bool in_list(enum doc_block b)
{
	return b == DOC_ITEM || b == DOC_SUBITEM;
}

/* A blank line between blocks, none between the items of a list and the rows of a table. */
static void put_move(struct doc *doc, enum doc_block to, int level)
{
	struct buf *b = doc->out;
	bool first = doc->open == DOC_NOTHING;

	if (!first && b->len && b->data[b->len - 1] != '\n')
		buf_char(b, '\n');
	if (!first && to != DOC_NOTHING && to != DOC_ROW && !(in_list(doc->open) && in_list(to)))
		buf_char(b, '\n');
	switch (to) {
	case DOC_HEADING:
		for (int i = 0; i < level; i++)
			buf_char(b, '#');
		buf_char(b, ' ');
		break;
	case DOC_ITEM:
		buf_str(b, "- ");
		break;
	case DOC_SUBITEM:
		buf_str(b, "  - ");
		break;
	case DOC_TABLE:
	case DOC_ROW:
		buf_char(b, '|');
		break;
	case DOC_COMMAND:
		buf_str(b, "    ");
		break;
	case DOC_NOTHING:
	case DOC_PARA:
	case DOC_PICTURE:
		break;
	}
}

static void put_head(struct doc *doc)
{
	for (size_t i = 0; i < doc->n_columns; i++)
		buf_printf(doc->out, " %s |", doc_column_title(doc, i));
	buf_str(doc->out, "\n|");
	for (size_t i = 0; i < doc->n_columns; i++)
		buf_str(doc->out, doc->columns[i].right ? "---:|" : "---|");
}

static void put_cell(struct doc *doc, bool begin)
{
	buf_str(doc->out, begin ? " " : " |");
}

static void put_words(struct doc *doc, const char *s)
{
	buf_str(doc->out, s);
}

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

static void put_text(struct doc *doc, const char *s)
{
	struct buf line = {0};

	text_line(&line, s);
	for (const char *p = line.data; p && *p; p++) {
		if (is_markup(line.data, p))
			buf_char(doc->out, '\\');
		buf_char(doc->out, *p);
	}
	buf_free(&line);
}

static void put_strong(struct doc *doc, const char *s)
{
	buf_str(doc->out, "**");
	put_text(doc, s);
	buf_str(doc->out, "**");
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
static void put_code(struct doc *doc, const char *s)
{
	struct buf *b = doc->out, line = {0};
	size_t ticks;

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
		if (*p == '|' && doc->in_cell)
			buf_char(b, '\\');
		buf_char(b, *p);
	}
	if (ticks > 1)
		buf_char(b, ' ');
	for (size_t i = 0; i < ticks; i++)
		buf_char(b, '`');
	buf_free(&line);
}

const struct doc_writer markdown_writer = {.move = put_move,
					   .head = put_head,
					   .cell = put_cell,
					   .words = put_words,
					   .text = put_text,
					   .code = put_code,
					   .strong = put_strong};
