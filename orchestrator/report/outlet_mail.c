/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A mail as sendmail(8) takes it: header, empty line, plain text. The header is ASCII and has no
 * word from outside but in its subject; lines stay below the 998 bytes of RFC 5322.
 */
#include <string.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/report/outlet.h"

enum {
	LINE_MAX_BYTES = 900,
	SUBJECT_MAX = 160,
	/* of an encoded word: with its frame below the 75 characters of RFC 2047 */
	WORD_BYTES = 42,
};

static bool is_ascii(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s >= 0x80)
			return false;
	return true;
}

static bool begins_character(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

/* RFC 4648 */
static void base64(struct buf *out, const char *s, size_t n)
{
	static const char
		digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = 0;

		for (size_t k = 0; k < 3; k++)
			v = v << 8 | (i + k < n ? (unsigned char)s[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			buf_char(out, i + k <= n ? digits[v >> (18 - 6 * k) & 0x3f] : '=');
	}
}

/* As words that say their coding (RFC 2047), each of whole characters, a line each. */
static void encode(struct buf *out, const char *s)
{
	while (*s) {
		size_t n = strlen(s);

		if (n > WORD_BYTES)
			for (n = WORD_BYTES; !begins_character(s[n]); n--)
				;
		buf_str(out, "\n =?UTF-8?B?");
		base64(out, s, n);
		buf_str(out, "?=");
		s += n;
	}
}

static void subject(struct buf *out, const struct outlet_view *v)
{
	struct buf b = {0}, line = {0};

	outlet_headline(&b, v);
	for (size_t i = 0; i < v->n_regressions; i++)
		if (outlet_is_told(v, &v->regressions[i].row)) {
			buf_str(&b, _(": "));
			outlet_moved(&b, &v->regressions[i]);
			break;
		}
	outlet_text(&line, b.data, SUBJECT_MAX);
	buf_str(out, "Subject: fettle:");
	if (is_ascii(line.data))
		buf_printf(out, " %s", line.data);
	else
		encode(out, line.data);
	buf_char(out, '\n');
	buf_free(&b);
	buf_free(&line);
}

static void fold(struct buf *out, const char *text)
{
	size_t column = 0;

	for (; text && *text; text++) {
		bool begins = begins_character(*text);

		if (column >= LINE_MAX_BYTES && begins && *text != '\n') {
			buf_char(out, '\n');
			column = 0;
		}
		buf_char(out, *text);
		column = *text == '\n' ? 0 : column + 1;
	}
}

static void write_mail(const struct outlet_view *v, struct buf *out)
{
	struct regression_style st = {.program = "fettle", .workspace = v->workspace};
	struct buf body = {0};

	if (v->to)
		buf_printf(out, "To: %s\n", v->to);
	subject(out, v);
	buf_str(out, "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n"
		     "Content-Transfer-Encoding: 8bit\nAuto-Submitted: auto-generated\n\n");
	regressions_text(v->regressions, v->n_regressions, &st, &body);
	for (size_t i = 0; i < v->n_regressions; i++)
		if (outlet_is_told(v, &v->regressions[i].row)) {
			buf_char(&body, '\n');
			regression_text(&v->regressions[i], &st, &body);
		}
	fold(out, body.data);
	buf_free(&body);
}

const struct outlet outlet_mail = {.name = "mail",
				   .summary = "a mail with its header, for sendmail -t",
				   .for_people = true,
				   .write = write_mail};
