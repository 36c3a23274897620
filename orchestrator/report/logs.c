/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The way from a page to the raw logs. */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/report.h"
#include "orchestrator/report/text.h"

void report_lies_in(struct report *r, const char *dir)
{
	_cleanup_free_ char *to = fs_absolute(r->workspace, NULL);
	_cleanup_free_ char *way = to ? fs_relative(dir, to) : NULL;
	struct buf b = {0};

	free(r->logs);
	r->logs = NULL;
	if (!way)
		return;
	text_url(&b, way);
	buf_char(&b, '/');
	r->logs = buf_take(&b);
}

/* Paths come from files that jobs wrote: none of them leads out of the workspace. */
static bool is_below(const char *path)
{
	return str_starts(path, "blocks/") && !strstr(path, "/../") && !str_ends(path, "/..");
}

char *report_log_url(const struct report *r, const char *path)
{
	_cleanup_free_ char *full = fs_join(r->workspace, path);
	struct buf b = {0};

	if (!r->logs || !is_below(path) || !fs_exists(full))
		return NULL;
	buf_str(&b, r->logs);
	text_url(&b, path);
	return buf_take(&b);
}
