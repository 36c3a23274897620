/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A module file in Tcl, which Environment Modules and Lmod read. */
#include <string.h>

#include "orchestrator/report/recommend.h"
#include "orchestrator/report/text.h"

extern const struct recommend_form form_tcl;

/* A word in quotes in which nothing is replaced. */
static void quoted(struct buf *out, const char *s)
{
	buf_char(out, '"');
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			buf_printf(out, "\\u%04x", (unsigned)*s);
		else if (strchr("\"\\$[]{};", *s))
			buf_printf(out, "\\%c", *s);
		else
			buf_char(out, *s);
	buf_char(out, '"');
}

static void line(const struct recommend_part *p, struct buf *out)
{
	buf_printf(out, "%s %s", p->value ? "setenv" : "unsetenv", p->name);
	if (p->value) {
		buf_char(out, ' ');
		quoted(out, p->value);
	}
	buf_char(out, '\n');
}

static void whatis(const char *title, struct buf *out)
{
	buf_str(out, "module-whatis ");
	quoted(out, title);
	buf_str(out, "\n");
}

static int write(const struct report *r, struct strv *left, struct buf *out, struct err *e)
{
	static const struct recommend_syntax syntax = {
		.first = "#%Module1.0\n",
		.comment = "# ",
		.use = "\nuse: as DIR/NAME, then: module use DIR; module load NAME",
		.whatis = whatis,
		.line = line};

	return recommend_module(r, &syntax, left, out, e);
}

const struct recommend_form form_tcl = {
	.name = "tcl",
	.summary = "a module file in Tcl (Environment Modules, Lmod): the variables",
	.write = write};
