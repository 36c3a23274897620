/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A mail as sendmail(8) takes it: header, empty line, plain text. The header is ASCII and has no
 * word from outside but in its subject; lines stay below the 998 bytes of RFC 5322.
 */
#include <string.h>

#include "orchestrator/report/outlet.h"

enum { LINE_MAX_BYTES = 900, SUBJECT_MAX = 160 };

/* The body has the name as it is; here what is not ASCII would need a coding of its own. */
static void subject(struct buf *out, const struct outlet_view *v)
{
	struct buf b = {0}, line = {0};

	outlet_headline(&b, v);
	for (size_t i = 0; i < v->n_regressions; i++)
		if (outlet_is_told(v, &v->regressions[i].row)) {
			buf_str(&b, ": ");
			outlet_moved(&b, &v->regressions[i]);
			break;
		}
	outlet_text(&line, b.data, SUBJECT_MAX);
	buf_str(out, "Subject: fettle: ");
	for (const char *p = line.data; *p; p++)
		buf_char(out, (unsigned char)*p < 0x80 ? *p : '?');
	buf_char(out, '\n');
	buf_free(&b);
	buf_free(&line);
}

static void fold(struct buf *out, const char *text)
{
	size_t column = 0;

	for (; text && *text; text++) {
		bool begins = ((unsigned char)*text & 0xc0) != 0x80;

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
