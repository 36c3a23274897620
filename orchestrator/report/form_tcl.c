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

static int write(const struct report *r, struct strv *left, struct buf *out, struct err *e)
{
	struct buf lines = {0}, what = {0};
	int rc = recommend_module(r, left, line, &lines, e);

	if (rc < 0)
		return rc;
	buf_str(out, "#%Module1.0\n");
	recommend_comment_head(r, left, "# ", 0, out);
	recommend_comment(out, "# ", 0,
			  "\nuse: as DIR/NAME, then: module use DIR; module load NAME");
	recommend_title(r, &what);
	buf_str(out, "module-whatis ");
	quoted(out, what.data);
	buf_char(out, '\n');
	buf_put(out, lines.data, lines.len);
	buf_free(&lines);
	buf_free(&what);
	return 0;
}

const struct recommend_form form_tcl = {
	.name = "tcl",
	.summary = "a module file in Tcl (Environment Modules, Lmod): the variables",
	.write = write};
