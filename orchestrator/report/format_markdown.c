/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tuning log as Markdown. */
#include "orchestrator/report/markdown.h"
#include "orchestrator/report/tlog.h"

static int write_markdown(const struct report *r, struct buf *b, struct err *e)
{
	struct doc doc = {.writer = &markdown_writer, .out = b};

	(void)e;
	for (tlog_section *const *s = tlog_sections; *s; s++)
		(*s)(r, &doc);
	doc_end(&doc);
	return 0;
}

const struct report_format format_markdown = {.name = "markdown",
					      .extension = "md",
					      .summary = "the tuning log for people",
					      .for_people = true,
					      .write = write_markdown};
