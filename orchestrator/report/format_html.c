/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tuning log as one page with pictures: the sections of tlog.h, and what html_log.h draws. */
#include <string.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/html.h"
#include "orchestrator/report/html_doc.h"
#include "orchestrator/report/html_pictures.h"
#include "orchestrator/report/nights_chart.h"
#include "orchestrator/report/tlog.h"

static const char css[] =
	"body{max-width:980px}section>p,section>ul,header>p{max-width:88ch}\n"
	"section>p,section>ul,section>pre,section>.wide,section>figure{margin:0 0 14px}\n"
	"h1{margin-bottom:10px}h2{border-top:1px solid var(--line);padding-top:24px}\n"
	"h3{margin:28px 0 8px;font-size:16px}h4{margin:18px 0 6px;font-size:13px;"
	"font-weight:600;color:var(--soft)}\n"
	"ul{padding-left:20px}li{margin:2px 0}\n"
	"code{font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,\"Liberation Mono\","
	"monospace;background:var(--card);border:1px solid var(--line);border-radius:4px;"
	"padding:0 4px}\n"
	"td code{font-size:12px}\n"
	"pre{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:10px "
	"12px;overflow-x:auto}pre code{border:0;padding:0;background:none;overflow-wrap:normal}\n"
	"nav{font-size:13px;margin:14px 0 0;display:flex;flex-wrap:wrap;gap:4px 14px}\n"
	".wide td{overflow-wrap:normal;max-width:520px}\n"
	"@media screen and (max-width:640px){body{padding:20px 14px 48px}}\n"
	"@media print{nav{display:none}pre{white-space:pre-wrap}}\n";

/* Behind which section a picture stands. */
static const struct {
	tlog_section *section;
	html_picture *draw;
} pictures[] = {
	{tlog_summary, html_waterfall}, {tlog_summary, html_forest},
	{tlog_baseline, html_ladder},   {tlog_hypotheses, html_split},
	{tlog_validation, html_pairs},  {tlog_validation, html_steps},
	{tlog_canaries, html_series},   {tlog_record, html_timeline},
};

static void draw_pictures(const struct report *r, tlog_section *section, struct doc *doc)
{
	for (size_t i = 0; i < ARRAY_LEN(pictures); i++)
		if (pictures[i].section == section) {
			doc_picture(doc);
			pictures[i].draw(r, doc->out);
		}
}

/* The headings of sections stand in the body as it was made, escaped. */
static void contents(const char *body, struct buf *out)
{
	size_t n = 0;

	buf_printf(out, "<nav aria-label=\"%s\">\n", _("Sections"));
	for (const char *p = body; (p = strstr(p, "<h2>")) != NULL;) {
		const char *end = strstr(p, "</h2>");

		if (!end)
			break;
		p += strlen("<h2>");
		buf_printf(out, "<a href=\"#" HTML_DOC_ID "\">%.*s</a>\n", ++n, (int)(end - p), p);
	}
	buf_str(out, "</nav>\n");
}

static int write_html(const struct report *r, struct buf *b, struct err *e)
{
	_cleanup_free_ char *title = xasprintf(_("Tuning log: %s"), r->campaign.name);
	struct buf sheet = {0}, head = {0}, body = {0};
	struct doc top = {.writer = &html_doc_writer, .out = &head},
		   doc = {.writer = &html_doc_writer, .out = &body};

	(void)e;
	tlog_head(r, &top);
	doc_end(&top);
	for (tlog_section *const *s = tlog_sections; *s; s++)
		if (*s != tlog_head) {
			(*s)(r, &doc);
			draw_pictures(r, *s, &doc);
		}
	doc_end(&doc);

	buf_str(&sheet, svg_css);
	buf_str(&sheet, nights_chart_css);
	buf_str(&sheet, html_pictures_css);
	buf_str(&sheet, css);
	html_head(b, title, sheet.data);
	buf_str(b, "<header>\n");
	if (r->home) {
		buf_str(b, "<p class=\"soft\"><a href=\"");
		html_text(b, r->home);
		buf_printf(b, "\">%s</a></p>\n", _("All campaigns"));
	}
	buf_str(b, head.data);
	contents(body.data, b);
	buf_str(b, "</header>\n<main>\n");
	buf_str(b, body.data);
	buf_str(b, "</main>\n");
	html_tail(b);
	buf_free(&sheet);
	buf_free(&head);
	buf_free(&body);
	return 0;
}

const struct report_format format_html = {.name = "html",
					  .extension = "html",
					  .summary = "the tuning log as a page with pictures",
					  .for_people = true,
					  .write = write_html};
