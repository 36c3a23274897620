/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/text.h"

#include <string.h>
#include <unistr.h>
#include <uniwidth.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Length of the UTF-8 sequence at p and its code point; 0 when it is none (RFC 3629: no overlong
 * forms, no surrogates, nothing above U+10FFFF). The terminating NUL ends every sequence. */
static size_t utf8_length(const unsigned char *p, uint32_t *code)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = p[0] < 0x80       ? 1
		   : p[0] >> 5 == 6  ? 2
		   : p[0] >> 4 == 14 ? 3
		   : p[0] >> 3 == 30 ? 4
				     : 0;

	if (n <= 1) {
		*code = p[0];
		return n;
	}
	*code = p[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		*code = *code << 6 | (p[i] & 0x3f);
	}
	if (*code < smallest[n] || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff))
		return 0;
	return n;
}

void text_utf8(struct buf *out, const char *s)
{
	uint32_t code;

	while (s && *s) {
		size_t n = utf8_length((const unsigned char *)s, &code);

		if (n)
			buf_put(out, s, n);
		else
			buf_str(out, REPLACEMENT);
		s += n ? n : 1;
	}
}

/* Embeddings, overrides and isolates of the bidirectional algorithm, and the marks. */
static bool changes_direction(uint32_t c)
{
	return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e ||
	       c == 0x200f || c == 0x61c;
}

void text_line(struct buf *out, const char *s)
{
	uint32_t code;

	while (s && *s) {
		size_t n = utf8_length((const unsigned char *)s, &code);

		/* the last two of each plane are no characters, and no XML holds them */
		if (n == 0 || changes_direction(code) || code == 0x2028 || code == 0x2029 ||
		    (code & 0xfffe) == 0xfffe)
			buf_str(out, REPLACEMENT);
		else if (code == '\n' || code == '\t' || code == '\r')
			buf_char(out, ' ');
		else if (code < 0x20 || (code >= 0x7f && code < 0xa0))
			buf_printf(out, "\\x%02x", (unsigned)code);
		else
			buf_put(out, s, n);
		s += n ? n : 1;
	}
}

size_t text_width(const char *s)
{
	int n = u8_strwidth((const uint8_t *)s, "UTF-8");

	return n > 0 ? (size_t)n : 0;
}

size_t text_fit(const char *s, size_t columns)
{
	size_t at = 0, used = 0;

	while (s[at]) {
		ucs4_t c;
		int n = u8_strmbtouc(&c, (const uint8_t *)s + at), width;

		if (n <= 0)
			break;
		width = uc_width(c, "UTF-8");
		used += width > 0 ? (size_t)width : 0;
		if (used > columns)
			break;
		at += (size_t)n;
	}
	return at;
}

static void blanks(struct buf *out, size_t n)
{
	while (n-- > 0)
		buf_char(out, ' ');
}

void text_cell(struct buf *out, const char *s, size_t columns)
{
	size_t from = out->len, used;

	text_line(out, s);
	used = out->len > from ? text_width(out->data + from) : 0;
	blanks(out, used < columns ? columns - used : 0);
}

void text_cell_right(struct buf *out, const char *s, size_t columns)
{
	size_t used = text_width(s);

	blanks(out, used < columns ? columns - used : 0);
	text_line(out, s);
}

char *text_clean(const char *s)
{
	struct buf b = {0};

	text_line(&b, s);
	return buf_take(&b);
}

void text_lua(struct buf *out, const char *s)
{
	buf_char(out, '"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '\n')
			buf_str(out, "\\n");
		else if (c < 0x20 || c == 0x7f)
			buf_printf(out, "\\%03u", c);
		else if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else
			buf_char(out, (char)c);
	}
	buf_char(out, '"');
}

void text_sh(struct buf *out, const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_./:,@%+=-";

	if (*s && s[strspn(s, plain)] == '\0') {
		buf_str(out, s);
		return;
	}
	buf_char(out, '\'');
	for (; *s; s++) {
		if (*s == '\'')
			buf_str(out, "'\\''");
		else
			buf_char(out, *s);
	}
	buf_char(out, '\'');
}

void text_url(struct buf *out, const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_./-";

	for (; *path; path++)
		if (strchr(plain, *path))
			buf_char(out, *path);
		else
			buf_printf(out, "%%%02X", (unsigned char)*path);
}

void text_csv(struct buf *out, const char *s)
{
	struct buf clean = {0};
	double number;

	text_line(&clean, s);
	s = clean.data ? clean.data : "";
	buf_char(out, '"');
	if (*s && strchr("=+-@", *s) && !str_to_double(s, &number))
		buf_char(out, '\'');
	for (; *s; s++) {
		if (*s == '"')
			buf_char(out, '"');
		buf_char(out, *s);
	}
	buf_char(out, '"');
	buf_free(&clean);
}

bool text_is_name(const char *s)
{
	static const char
		name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

	return *s && !(*s >= '0' && *s <= '9') && s[strspn(s, name)] == '\0';
}
