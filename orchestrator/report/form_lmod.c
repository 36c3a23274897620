/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A module file of Lmod, in Lua: `module load` sets the variables, `module unload` takes them back.
 */
#include "orchestrator/report/recommend.h"
#include "orchestrator/report/text.h"

extern const struct recommend_form form_lmod;

static void line(const struct recommend_part *p, struct buf *out)
{
	buf_printf(out, "%s(\"%s\"", p->value ? "setenv" : "unsetenv", p->name);
	if (p->value) {
		buf_str(out, ", ");
		text_lua(out, p->value);
	}
	buf_str(out, ")\n");
}

static void whatis(const char *title, struct buf *out)
{
	buf_str(out, "whatis(");
	text_lua(out, title);
	buf_str(out, ")\n");
}

static int write(const struct report *r, struct strv *left, struct buf *out, struct err *e)
{
	static const struct recommend_syntax syntax = {
		.first = "",
		.comment = "-- ",
		.use = "\nuse: as DIR/NAME.lua, then: module use DIR; module load NAME",
		.whatis = whatis,
		.line = line};

	return recommend_module(r, &syntax, left, out, e);
}

const struct recommend_form form_lmod = {
	.name = "lmod", .summary = "a module file of Lmod: the variables", .write = write};
