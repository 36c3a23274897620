/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The framework's JSON file (DeepSpeed's) with the fix in it. */
#include "orchestrator/base/mem.h"
#include "orchestrator/report/recommend.h"

extern const struct recommend_form form_config;

static int write(const struct report *r, struct strv *left, struct buf *out, struct err *e)
{
	_cleanup_free_ char *text = configfile_text(r->recipe, &r->fix_config.settings);
	struct recommend_parts p = {0};

	if (!text)
		return err_set(e, ERR_NOT_FOUND,
			       "campaign %lld: no setting of the fix is a key of a framework's "
			       "file",
			       (long long)r->campaign.id);
	recommend_parts(r, &p);
	for (size_t i = 0; i < p.n; i++)
		if (p.v[i].how != RECOMMEND_KEY)
			recommend_leave(r, &p.v[i], left);
	recommend_parts_free(&p);
	buf_printf(out, "%s\n", text);
	return 0;
}

const struct recommend_form form_config = {
	.name = "config",
	.summary = "the framework's JSON file (DeepSpeed's) with the fix in it",
	.write = write};
