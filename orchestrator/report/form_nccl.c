/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * NCCL's own file: nccl.conf. NCCL takes a line apart at its first `=`, knows no quotes, and sets
 * what the environment does not have yet.
 */
#include <string.h>

#include "orchestrator/report/recommend.h"
#include "orchestrator/report/text.h"

extern const struct recommend_form form_nccl;

enum { VALUE_BYTES_MAX = 1023 }; /* NCCL cuts what is longer */

static bool holds(const struct recommend_part *p)
{
	return p->how == RECOMMEND_VARIABLE && str_starts(p->name, "NCCL_") &&
	       text_is_name(p->name) && p->value && strlen(p->value) <= VALUE_BYTES_MAX &&
	       p->value[strcspn(p->value, "\r\n")] == '\0';
}

static int write(const struct report *r, struct strv *left, struct buf *out, struct err *e)
{
	struct recommend_parts p = {0};
	struct buf lines = {0};

	recommend_parts(r, &p);
	for (size_t i = 0; i < p.n; i++)
		if (holds(&p.v[i]))
			buf_printf(&lines, "%s=%s\n", p.v[i].name, p.v[i].value);
		else
			recommend_leave(r, &p.v[i], left);
	recommend_parts_free(&p);
	if (!lines.len)
		return err_set(e, ERR_NOT_FOUND,
			       "campaign %lld: no setting of the fix is a variable of NCCL; --as "
			       "env has them all",
			       (long long)r->campaign.id);
	recommend_comment_head(r, left, "# ", 0, out);
	recommend_comment(out, "# ", 0,
			  "\nuse: as ~/.nccl.conf, /etc/nccl.conf or $NCCL_CONF_FILE on every "
			  "node; a variable of the environment wins over it");
	buf_put(out, lines.data, lines.len);
	buf_free(&lines);
	return 0;
}

const struct recommend_form form_nccl = {
	.name = "nccl", .summary = "nccl.conf: the variables of NCCL", .write = write};
