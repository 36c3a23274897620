/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/html_doc.h"

#include "orchestrator/report/html.h"

static bool in_list(enum doc_block b)
{
	return b == DOC_ITEM || b == DOC_SUBITEM;
}

/* End the open block, as far as the next one does not go on with it. */
static void close_block(struct doc *doc, enum doc_block to)
{
	struct buf *b = doc->out;

	switch (doc->open) {
	case DOC_HEADING:
		buf_printf(b, "</h%d>\n", doc->level);
		break;
	case DOC_PARA:
		buf_str(b, "</p>\n");
		break;
	case DOC_ITEM:
		if (to != DOC_SUBITEM)
			buf_str(b, to == DOC_ITEM ? "</li>\n" : "</li></ul>\n");
		break;
	case DOC_SUBITEM:
		buf_str(b, to == DOC_SUBITEM ? "</li>\n"
			   : to == DOC_ITEM  ? "</li></ul></li>\n"
					     : "</li></ul></li></ul>\n");
		break;
	case DOC_TABLE:
	case DOC_ROW:
		if (doc->open == DOC_ROW)
			buf_str(b, "</tr>\n");
		if (to != DOC_ROW)
			buf_str(b, "</table></div>\n");
		break;
	case DOC_COMMAND:
		buf_str(b, "</code></pre>\n");
		break;
	case DOC_NOTHING:
	case DOC_PICTURE:
		break;
	}
}

static void open_heading(struct doc *doc, int level)
{
	if (level == 2) {
		if (doc->sections)
			buf_str(doc->out, "</section>\n");
		buf_printf(doc->out, "<section id=\"" HTML_DOC_ID "\">\n", doc->sections + 1);
	}
	buf_printf(doc->out, "<h%d>", level);
}

static void put_move(struct doc *doc, enum doc_block to, int level)
{
	struct buf *b = doc->out;

	close_block(doc, to);
	switch (to) {
	case DOC_HEADING:
		open_heading(doc, level);
		break;
	case DOC_PARA:
		buf_str(b, "<p>");
		break;
	case DOC_ITEM:
		buf_str(b, in_list(doc->open) ? "<li>" : "<ul>\n<li>");
		break;
	case DOC_SUBITEM:
		buf_str(b, doc->open == DOC_SUBITEM ? "<li>"
			   : doc->open == DOC_ITEM  ? "\n<ul>\n<li>"
						    : "<ul>\n<li><ul>\n<li>");
		break;
	case DOC_TABLE:
		buf_str(b, "<div class=\"wide\" tabindex=\"0\"><table>\n<tr>");
		break;
	case DOC_ROW:
		buf_str(b, "<tr>");
		break;
	case DOC_COMMAND:
		buf_str(b, "<pre tabindex=\"0\"><code>");
		break;
	case DOC_NOTHING:
		if (doc->sections)
			buf_str(b, "</section>\n");
		break;
	case DOC_PICTURE:
		break;
	}
}

static bool is_right(const struct doc *doc, size_t column)
{
	return column < doc->n_columns && doc->columns[column].right;
}

static void put_head(struct doc *doc)
{
	for (size_t i = 0; i < doc->n_columns; i++) {
		buf_str(doc->out, is_right(doc, i) ? "<th class=\"n\">" : "<th>");
		html_text(doc->out, doc_column_title(doc, i));
		buf_str(doc->out, "</th>");
	}
	buf_str(doc->out, "</tr>\n");
}

static void put_cell(struct doc *doc, bool begin)
{
	if (begin)
		buf_str(doc->out, is_right(doc, doc->column) ? "<td class=\"n\">" : "<td>");
	else
		buf_str(doc->out, "</td>");
}

static void put_text(struct doc *doc, const char *s)
{
	html_text(doc->out, s);
}

static void put_in(struct doc *doc, const char *element, const char *s)
{
	buf_printf(doc->out, "<%s>", element);
	html_text(doc->out, s);
	buf_printf(doc->out, "</%s>", element);
}

static void put_code(struct doc *doc, const char *s)
{
	put_in(doc, "code", *s ? s : "\"\"");
}

static void put_link(struct doc *doc, const char *href, const char *s)
{
	buf_str(doc->out, "<a href=\"");
	html_text(doc->out, href);
	buf_str(doc->out, "\">");
	put_code(doc, s);
	buf_str(doc->out, "</a>");
}

static void put_strong(struct doc *doc, const char *s)
{
	put_in(doc, "strong", s);
}

const struct doc_writer html_doc_writer = {.move = put_move,
					   .head = put_head,
					   .cell = put_cell,
					   .words = put_text,
					   .text = put_text,
					   .code = put_code,
					   .strong = put_strong,
					   .link = put_link};
