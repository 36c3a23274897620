/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A module file of Lmod, in Lua: `module load` sets the variables, `module unload` takes them back.
 */
#include "orchestrator/report/recommend.h"
#include "orchestrator/report/text.h"

extern const struct recommend_form form_lmod;

static void quoted(struct buf *out, const char *s)
{
	buf_char(out, '"');
	for (; *s; s++)
		if (*s == '"' || *s == '\\')
			buf_printf(out, "\\%c", *s);
		else if ((unsigned char)*s < 0x20 || *s == 0x7f)
			buf_printf(out, "\\%03d", *s);
		else
			buf_char(out, *s);
	buf_char(out, '"');
}

static void line(const struct recommend_part *p, struct buf *out)
{
	buf_printf(out, "%s(\"%s\"", p->value ? "setenv" : "unsetenv", p->name);
	if (p->value) {
		buf_str(out, ", ");
		quoted(out, p->value);
	}
	buf_str(out, ")\n");
}

static int write(const struct report *r, struct strv *left, struct buf *out, struct err *e)
{
	struct buf lines = {0}, what = {0};
	int rc = recommend_module(r, left, line, &lines, e);

	if (rc < 0)
		return rc;
	recommend_comment_head(r, left, "-- ", 0, out);
	recommend_comment(out, "-- ", 0,
			  "\nuse: as DIR/NAME.lua, then: module use DIR; module load NAME");
	recommend_title(r, &what);
	buf_str(out, "whatis(");
	quoted(out, what.data);
	buf_str(out, ")\n");
	buf_put(out, lines.data, lines.len);
	buf_free(&lines);
	buf_free(&what);
	return 0;
}

const struct recommend_form form_lmod = {
	.name = "lmod", .summary = "a module file of Lmod: the variables", .write = write};
