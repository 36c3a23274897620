/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/viewpen.h"

#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/text.h"

#define RESET "\033[0m"

static const char *code_of(enum pen_colour c)
{
	switch (c) {
	case PEN_STRONG:
		return "\033[1m";
	case PEN_DIM:
		return "\033[2m";
	case PEN_GOOD:
		return "\033[32m";
	case PEN_BAD:
		return "\033[31m";
	case PEN_OPEN:
		return "\033[33m";
	case PEN_DATA:
		return "\033[36m";
	case PEN_PLAIN:
		break;
	}
	return "";
}

const char *pen_sign(const struct pen *p, const char *utf8, const char *ascii)
{
	return p->ascii ? ascii : utf8;
}

/* What can be shown of a text, and does nothing; heap. */
static char *harmless(const struct pen *p, const char *text)
{
	char *s = text_clean(text), *to = s;

	for (const char *from = s; p->ascii && *from; from++) {
		unsigned char c = (unsigned char)*from;

		if ((c & 0xc0) != 0x80) /* not a further byte of a character */
			*to++ = c < 0x80 ? *from : '?';
	}
	if (p->ascii)
		*to = '\0';
	return s;
}

size_t pen_width(const struct pen *p, const char *text)
{
	_cleanup_free_ char *s = text ? harmless(p, text) : NULL;

	return s ? text_width(s) : 0;
}

/* As much of s as fits into `room`, the last column a sign that something was cut. */
static void put_cut(struct pen *p, const char *s, size_t room)
{
	bool cut = text_width(s) > room;
	size_t n = text_fit(s, room - (cut && room > 0));
	_cleanup_free_ char *part = xstrndup(s, n);

	buf_str(&p->line, part);
	p->column += text_width(part);
	if (cut && p->column < p->limit) {
		buf_str(&p->line, pen_sign(p, "…", "~"));
		p->column++;
	}
}

void pen_text(struct pen *p, const char *text, enum pen_colour colour)
{
	_cleanup_free_ char *s = harmless(p, text);
	const char *code = p->colour ? code_of(colour) : "";

	if (!*s || p->column >= p->limit)
		return;
	buf_str(&p->line, code);
	put_cut(p, s, p->limit - p->column);
	if (*code)
		buf_str(&p->line, RESET);
}

static void indent(struct pen *p, size_t to)
{
	for (; p->column < to; p->column++)
		buf_char(&p->line, ' ');
	p->parted = false;
}

void pen_label(struct pen *p, const char *label)
{
	pen_text(p, label, PEN_DIM);
	indent(p, PEN_LABEL);
}

/* Bytes of the words that fit into so many columns, at least one word. */
static size_t words_that_fit(const char *s, size_t room)
{
	size_t n = text_fit(s, room), end = n;

	if (!s[n])
		return n;
	while (end > 0 && s[end] != ' ')
		end--;
	return end > 0 ? end : strcspn(s, " ") + (*s == ' ');
}

static void put_words(struct pen *p, const char *s, enum pen_colour colour)
{
	while (*s) {
		size_t room = p->limit > p->column ? p->limit - p->column : 0;
		size_t n = words_that_fit(s, room);
		_cleanup_free_ char *line = xstrndup(s, n);

		pen_text(p, line, colour);
		s += n;
		s += strspn(s, " ");
		if (*s)
			pen_break(p);
	}
}

void pen_part(struct pen *p, const char *text, enum pen_colour colour)
{
	_cleanup_free_ char *s = text ? harmless(p, text) : NULL;

	if (!s || !*s)
		return;
	if (p->parted && p->limit - p->column < text_width(s) + 2) {
		if (p->column < p->limit)
			buf_char(&p->line, ',');
		pen_break(p);
	} else if (p->parted) {
		buf_str(&p->line, ", ");
		p->column += 2;
	}
	put_words(p, s, colour);
	p->parted = true;
}

void pen_break(struct pen *p)
{
	pen_end(p);
	indent(p, PEN_LABEL);
}

void pen_end(struct pen *p)
{
	while (p->line.len && p->line.data[p->line.len - 1] == ' ')
		p->line.data[--p->line.len] = '\0';
	strv_add(p->out, p->line.len ? p->line.data : "");
	buf_clear(&p->line);
	p->column = 0;
	p->parted = false;
}

static void rule(struct pen *p, size_t to)
{
	const char *code = p->colour ? code_of(PEN_DIM) : "";

	if (p->column >= to)
		return;
	buf_str(&p->line, code);
	for (; p->column < to; p->column++)
		buf_str(&p->line, pen_sign(p, "─", "-"));
	buf_str(&p->line, *code ? RESET : "");
}

void pen_rule(struct pen *p, const char *title, enum pen_colour colour, const char *what,
	      const char *end)
{
	enum { EDGE = 3, GAP = 4 }; /* "-- ", " -- " */
	size_t tail = text_width(end) + 2 + EDGE, limit = p->limit;
	size_t width = p->ruled, name = pen_width(p, title), told = pen_width(p, what);

	rule(p, EDGE - 1);
	pen_text(p, " ", PEN_PLAIN);
	p->limit = width > tail + EDGE ? width - tail : width;
	pen_text(p, title, colour);
	pen_text(p, " ", PEN_PLAIN);
	if (EDGE + name + GAP + told + tail <= width) {
		rule(p, p->column + 2);
		pen_text(p, " ", PEN_PLAIN);
		pen_text(p, what, PEN_PLAIN);
		pen_text(p, " ", PEN_PLAIN);
	}
	p->limit = limit;
	if (p->column + tail <= width + 1) {
		rule(p, width + 1 - tail);
		pen_text(p, " ", PEN_PLAIN);
		pen_text(p, end, PEN_PLAIN);
		pen_text(p, " ", PEN_PLAIN);
		rule(p, width);
	}
	pen_end(p);
}
