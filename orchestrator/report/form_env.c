/* SPDX-License-Identifier: GPL-2.0-or-later */
/* KEY=value lines for `set -a; . FILE`, the command as a comment. */
#include "orchestrator/base/mem.h"
#include "orchestrator/report/recommend.h"

extern const struct recommend_form form_env;

/* Arguments that the campaign says: the others are the script's. */
static void arguments(const struct report *r, struct buf *out)
{
	for (size_t i = 1; i < r->fix_config.argv.n; i++)
		recommend_word(out, r->fix_config.argv.v[i]);
}

static int write(const struct report *r, struct strv *left, struct buf *out, struct err *e)
{
	bool copy = recommend_is_copy(r);
	struct strv none = {0};
	struct buf line = {0};

	(void)left; /* it holds all: what is no variable stands in its head */
	(void)e;
	recommend_comment_head(r, &none, "# ", 0, out);
	if (copy)
		recommend_comment(out, "# ", 0,
				  "\nuse: put this line behind the exports of your script: set -a; "
				  ". ./FILE; set +a\n"
				  "arguments for its launch line, in place of its own:");
	else
		recommend_comment(out, "# ", 0, "\nuse: set -a; . ./FILE; set +a\ncommand:");
	if (copy)
		arguments(r, &line);
	else
		recommend_command(r, false, &line);
	recommend_comment(out, "# ", 0, line.data ? line.data : "(none)");
	recommend_config_keys(r, out);
	recommend_variables(r, "", out);
	buf_free(&line);
	return 0;
}

const struct recommend_form form_env = {
	.name = "env",
	.summary = "KEY=value lines for `set -a; . ./FILE`, the command as a comment",
	.write = write};
