/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/html.h"

#include "orchestrator/base/lang.h"
#include "orchestrator/report/text.h"

/* Colours by what they mean: a picture and a table say the same thing in the same one. Tested for a
 * contrast of 4.5 to 1 for text on --paper and --card (WCAG 2.1, 1.4.3). */
static const char style[] =
	":root{color-scheme:light dark;--paper:#fbfaf8;--card:#fff;--ink:#1d2430;--soft:#5b6472;"
	"--line:#e3e1dc;--data:#33658a;--mean:#1d2430;--worse:#b3261e;--better:#1a7a4c;"
	"--suspect:#8a5a00;--event:#6b4fa0}\n"
	"@media(prefers-color-scheme:dark){:root{--paper:#14171c;--card:#1b2027;--ink:#e6e9ee;"
	"--soft:#9aa4b2;--line:#2e353f;--data:#7db7e0;--mean:#e6e9ee;--worse:#ff8a80;"
	"--better:#67d39b;--suspect:#f0b95a;--event:#b9a2ee}}\n"
	"@media print{:root{color-scheme:light;--paper:#fff;--card:#fff;--ink:#000;--soft:#444;"
	"--line:#ccc;--data:#33658a;--mean:#000;--worse:#b3261e;--better:#1a7a4c;"
	"--suspect:#8a5a00;--event:#6b4fa0}}\n"
	"*{box-sizing:border-box}\n"
	"body{margin:0 auto;max-width:1240px;padding:32px 20px 64px;background:var(--paper);"
	"color:var(--ink);font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica "
	"Neue\",\"Noto Sans\",Arial,\"PingFang SC\",\"Microsoft YaHei\",\"Noto Sans CJK SC\","
	"\"Noto Sans SC\",\"WenQuanYi Micro Hei\",sans-serif;overflow-wrap:anywhere}\n"
	"h1{font-size:26px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}\n"
	"h2{font-size:18px;margin:40px 0 12px}\n"
	"h3{font-size:15px;margin:0}\n"
	"p{margin:0 0 8px}\n"
	"a{color:inherit;text-decoration-color:var(--soft);text-underline-offset:3px}\n"
	".soft{color:var(--soft)}\n"
	".worse{color:var(--worse)}.better{color:var(--better)}.suspect{color:var(--suspect)}"
	".event{color:var(--event)}\n"
	"table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px;"
	"width:100%}\n"
	"th,td{text-align:left;vertical-align:top;padding:4px 12px 4px 0;"
	"border-bottom:1px solid var(--line)}\n"
	"th{color:var(--soft);font-weight:500;white-space:nowrap}\n"
	"tr:last-child td{border-bottom:0}\n"
	"td.n,th.n{text-align:right;white-space:nowrap}\n"
	".wide{overflow-x:auto}\n"
	".card{background:var(--card);border:1px solid var(--line);border-radius:8px;"
	"padding:16px}\n"
	"@media print{body{max-width:none;padding:0;font-size:11pt}.card{break-inside:avoid;"
	"border-color:#ccc}h2{break-after:avoid}}\n";

void html_text(struct buf *out, const char *s)
{
	struct buf clean = {0};

	text_line(&clean, s);
	for (const char *p = clean.data; p && *p; p++)
		switch (*p) {
		case '&':
			buf_str(out, "&amp;");
			break;
		case '<':
			buf_str(out, "&lt;");
			break;
		case '>':
			buf_str(out, "&gt;");
			break;
		case '"':
			buf_str(out, "&quot;");
			break;
		case '\'':
			buf_str(out, "&#39;");
			break;
		default:
			buf_char(out, *p);
		}
	buf_free(&clean);
}

static void head(struct buf *out, const char *title, const char *css, const char *hash)
{
	buf_printf(out, "<!DOCTYPE html>\n<html lang=\"%s\">\n<head>\n", lang_tag());
	buf_str(out, "<meta charset=\"utf-8\">\n"
		     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		     "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'");
	if (hash)
		buf_printf(out, "; script-src '%s'", hash);
	buf_str(out, "\">\n"
		     "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
		     "<meta name=\"generator\" content=\"fettle\">\n<title>");
	html_text(out, title);
	buf_str(out, "</title>\n<style>\n");
	buf_str(out, style);
	buf_str(out, css);
	buf_str(out, "</style>\n</head>\n<body>\n");
}

void html_head(struct buf *out, const char *title, const char *css)
{
	head(out, title, css, NULL);
}

void html_head_script(struct buf *out, const char *title, const char *css, const char *hash)
{
	head(out, title, css, hash);
}

void html_tail(struct buf *out)
{
	buf_str(out, "</body>\n</html>\n");
}
