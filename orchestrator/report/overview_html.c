/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page of the index: a table that a script of a few lines sorts and searches. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/html.h"
#include "orchestrator/report/overview.h"
#include "orchestrator/report/recorded.h"
#include "orchestrator/report/svg.h"
#include "orchestrator/report/text.h"

enum { PICTURE_WIDTH = 132, PICTURE_HEIGHT = 14 };

static const char css[] =
	"body{max-width:1480px}h1{margin-bottom:8px}\n"
	".head{display:flex;flex-wrap:wrap;gap:4px 24px;margin:0 0 20px}\n"
	".find{display:flex;flex-wrap:wrap;gap:6px 14px;align-items:center;margin:0 0 12px}\n"
	".find[hidden]{display:none}\n"
	"input{font:inherit;color:inherit;background:var(--card);border:1px solid var(--soft);"
	"border-radius:6px;padding:5px 10px;width:min(340px,100%)}\n"
	"th button{font:inherit;color:inherit;background:none;border:0;padding:0;cursor:pointer;"
	"text-align:inherit;white-space:nowrap;text-decoration:underline dotted;"
	"text-underline-offset:4px}\n"
	"th[aria-sort=ascending] button::after{content:\"\\00a0\\2191\"}\n"
	"th[aria-sort=descending] button::after{content:\"\\00a0\\2193\"}\n"
	"th[aria-sort]{color:var(--ink)}\n"
	":focus-visible{outline:2px solid var(--data);outline-offset:2px}\n"
	".campaigns th,.campaigns td{padding:7px 14px 7px 0}\n"
	".campaigns th:last-child,.campaigns td:last-child{padding-right:0}\n"
	".campaigns th{vertical-align:bottom}\n"
	"section table{width:auto}section th,section td{padding-right:28px}\n"
	".scale{margin-top:12px;font-size:13px}\n"
	".campaigns td{overflow-wrap:normal}\n"
	".campaigns td:first-child{min-width:170px;max-width:320px;overflow-wrap:anywhere}\n"
	".campaigns td:nth-child(2),.campaigns td:nth-child(5){max-width:220px;"
	"overflow-wrap:anywhere}\n"
	".campaigns td:nth-child(5){min-width:130px}\n"
	".campaigns a.name{font-weight:600;font-size:14px;display:inline-block;max-height:4.5em;"
	"overflow:hidden;vertical-align:top}\n"
	".campaigns small{display:block;color:var(--soft);font-size:12px;line-height:1.35;"
	"max-height:5.4em;overflow:hidden}.campaigns .n small{white-space:nowrap}\n"
	".badge{font-size:12px;font-weight:600;border:1px solid currentColor;border-radius:999px;"
	"padding:1px 9px;white-space:nowrap}\n"
	".effect{white-space:nowrap}.effect b{font-size:14px}\n"
	".effect svg{width:132px;height:14px;display:block;margin-top:3px}\n"
	".zero{stroke:var(--soft);stroke-dasharray:2 2}.bar{stroke-width:2.5;stroke:var(--data)}\n"
	".bar.better{stroke:var(--better)}.bar.worse{stroke:var(--worse)}\n"
	".dot{fill:var(--data)}.dot.better{fill:var(--better)}.dot.worse{fill:var(--worse)}\n"
	".files{white-space:nowrap}.files a+a{margin-left:8px}\n"
	"code{font:12px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,\"Liberation Mono\","
	"monospace}\n"
	"@media screen and (max-width:640px){body{padding:20px 14px 48px}"
	".campaigns td:first-child{min-width:150px}}\n"
	"@media print{.find{display:none}th button{text-decoration:none}}\n";

/* Its hash stands below; a test compares them. Without it the table is what it was, sorted. */
static const char script[] =
	"\"use strict\";\n"
	"(() => {\n"
	"const table = document.querySelector(\"table.campaigns\");\n"
	"if (!table) return;\n"
	"const body = table.tBodies[0], rows = Array.from(body.rows);\n"
	"const heads = Array.from(table.tHead.rows[0].cells);\n"
	"const value = (row, i) => row.cells[i].dataset.v ?? row.cells[i].textContent.trim();\n"
	"function sort(i, down) {\n"
	"  const number = heads[i].dataset.sort === \"n\";\n"
	"  const order = (a, b) => number ? a - b : a.localeCompare(b, undefined, {numeric: true});\n"
	"  rows.sort((x, y) => {\n"
	"    const a = value(x, i), b = value(y, i);\n"
	"    if (a === \"\" || b === \"\") return (a === \"\") - (b === \"\");\n"
	"    return down ? order(b, a) : order(a, b);\n"
	"  });\n"
	"  body.append(...rows);\n"
	"  heads.forEach((h, k) => k === i ? h.setAttribute(\"aria-sort\", down ? \"descending\" : "
	"\"ascending\")\n"
	"                                  : h.removeAttribute(\"aria-sort\"));\n"
	"}\n"
	"heads.forEach((h, i) => {\n"
	"  if (!h.dataset.sort) return;\n"
	"  const b = document.createElement(\"button\");\n"
	"  b.type = \"button\";\n"
	"  b.append(...h.childNodes);\n"
	"  h.append(b);\n"
	"  b.addEventListener(\"click\", () => {\n"
	"    const was = h.getAttribute(\"aria-sort\");\n"
	"    sort(i, was ? was === \"ascending\" : h.dataset.sort === \"n\");\n"
	"  });\n"
	"});\n"
	"const find = document.querySelector(\".find\"), input = find.querySelector(\"input\");\n"
	"const count = find.querySelector(\"[role=status]\");\n"
	"const texts = new Map(rows.map(r => [r, r.textContent.toLowerCase()]));\n"
	"input.addEventListener(\"input\", () => {\n"
	"  const words = input.value.toLowerCase().split(/\\s+/).filter(Boolean);\n"
	"  let shown = 0;\n"
	"  for (const r of rows) {\n"
	"    r.hidden = !words.every(w => texts.get(r).includes(w));\n"
	"    shown += !r.hidden;\n"
	"  }\n"
	"  count.textContent = shown + \" / \" + rows.length;\n"
	"});\n"
	"find.hidden = false;\n"
	"})();\n";
static const char script_hash[] = "sha256-jmUankOdp96RgPu3aqYBisZnnyINWZFKwcNbSJNjD30=";

struct page {
	const struct overview *s;
	struct svg_axis axis; /* of the logarithms of 1 + effect */
	bool gpus;            /* a campaign has them */
	struct buf *out;
};

static void put(struct page *p, const char *markup)
{
	buf_str(p->out, markup);
}

static void text(struct page *p, const char *s)
{
	html_text(p->out, s);
}

static void link_to(struct page *p, const char *class, const char *href, const char *words)
{
	put(p, "<a");
	if (*class)
		buf_printf(p->out, " class=\"%s\"", class);
	put(p, " href=\"");
	text(p, href);
	put(p, "\">");
	text(p, words);
	put(p, "</a>");
}

static void note(struct page *p, const char *words)
{
	if (!words || !*words)
		return;
	put(p, "<small>");
	text(p, words);
	put(p, "</small>");
}

static void number(struct page *p, double v, int digits, const char *unit)
{
	if (!isfinite(v)) {
		put(p, "<td class=\"n\" data-v=\"\">\xe2\x80\x93</td>"); /* a dash */
		return;
	}
	buf_printf(p->out, "<td class=\"n\" data-v=\"%.6g\">", v);
	buf_printf(p->out, "%.*f%s</td>", digits, v, unit);
}

/* -- cells ------------------------------------------------------------------------------------ */

static void name_cell(struct page *p, const struct overview_campaign *c)
{
	_cleanup_free_ char *page = overview_path(p->s, c, "html");

	put(p, "<td data-v=\"");
	text(p, c->name);
	put(p, "\">");
	if (c->problem)
		text(p, c->name);
	else
		link_to(p, "name", page, *c->name ? c->name : "\"\"");
	buf_printf(p->out, " <span class=\"soft\">#%lld</span>", (long long)c->id);
	if (p->s->n_workspaces > 1)
		note(p, p->s->workspaces[c->workspace].name);
	note(p, c->question);
	if (c->problem) {
		_cleanup_free_ char *why = xasprintf(_("There is no tuning log: %s"), c->problem);

		note(p, why);
	}
	put(p, "</td>");
}

static void state_cell(struct page *p, const struct overview_campaign *c)
{
	static const char *const classes[] = {[CAMPAIGN_RUNNING] = "event",
					      [CAMPAIGN_STOPPED] = "suspect",
					      [CAMPAIGN_FAILED] = "worse",
					      [CAMPAIGN_DONE] = "soft"};

	_cleanup_free_ char *reason = recorded_text(c->reason);

	buf_printf(p->out, "<td><span class=\"badge %s\">", classes[c->state]);
	text(p, lang_word("campaign_state", campaign_state_name(c->state)));
	put(p, "</span>");
	if (c->state != CAMPAIGN_DONE)
		note(p, reason);
	put(p, "</td>");
}

/* What came out, as people say it; heap. */
static char *result_words(const struct overview_campaign *c)
{
	switch (c->result) {
	case OVERVIEW_UNKNOWN:
		return xstrdup("");
	case OVERVIEW_OPEN:
		return xasprintf(_("nothing yet (%zu tested)"), c->count);
	case OVERVIEW_DEFAULT:
		return xasprintf(_("the default stays (%zu tested)"), c->count);
	case OVERVIEW_FIX:
		return recorded_text(c->outcome);
	case OVERVIEW_TEST:
		return xstrdup(lang_word("verdict_outcome", c->outcome));
	case OVERVIEW_LADDER:
		return xasprintf(_("ladder: %zu of %zu rungs held"), c->count, c->of);
	case OVERVIEW_CANARY:
		return xasprintf(_n("canary: %zu night", "canary: %zu nights", c->count), c->count);
	}
	return xstrdup("");
}

static const char *class_of(int judge)
{
	return judge > 0 ? "better" : judge < 0 ? "worse" : "soft";
}

static void result_cell(struct page *p, const struct overview_campaign *c)
{
	_cleanup_free_ char *words = result_words(c);

	put(p, "<td>");
	if (c->changes) {
		put(p, "<code>");
		text(p, c->changes);
		put(p, "</code>");
	}
	buf_printf(p->out, "<div class=\"%s\">", class_of(c->judge));
	text(p, words);
	put(p, "</div></td>");
}

static double log_of(double effect)
{
	return log(1 + fmax(effect, -0.99));
}

/* The interval on the scale of all rows; what it says stands beside it as text. */
static void picture(struct page *p, const struct overview_campaign *c)
{
	double zero = svg_at(&p->axis, 0), middle = PICTURE_HEIGHT / 2.0;
	double lo = log_of(isfinite(c->lo) ? c->lo : c->est),
	       hi = log_of(isfinite(c->hi) ? c->hi : c->est);
	_cleanup_free_ char *bar = xasprintf("bar %s", class_of(c->judge)),
			    *dot = xasprintf("dot %s", class_of(c->judge));

	buf_printf(p->out, "<svg aria-hidden=\"true\" viewBox=\"0 0 %d %d\">", PICTURE_WIDTH,
		   PICTURE_HEIGHT);
	svg_line(p->out, "zero", zero, 0, zero, PICTURE_HEIGHT);
	svg_line(p->out, bar, svg_at(&p->axis, fmax(lo, p->axis.lo)), middle,
		 svg_at(&p->axis, fmin(hi, p->axis.hi)), middle);
	svg_dot(p->out, dot, svg_at(&p->axis, log_of(c->est)), middle, 3.5, NULL);
	put(p, "</svg>");
}

static void effect_cell(struct page *p, const struct overview_campaign *c)
{
	if (!isfinite(c->est)) {
		put(p, "<td class=\"effect\" data-v=\"\">\xe2\x80\x93</td>");
		return;
	}
	buf_printf(p->out, "<td class=\"effect\" data-v=\"%.6g\"><b>%+.1f&nbsp;%%</b>", c->est,
		   100 * c->est);
	if (isfinite(c->lo) && isfinite(c->hi))
		buf_printf(p->out, " <span class=\"soft\">[%+.1f, %+.1f]</span>", 100 * c->lo,
			   100 * c->hi);
	picture(p, c);
	put(p, "</td>");
}

/* Where a campaign has GPUs they are what is counted, and the nodes' hours stand below. */
static void hours_cell(struct page *p, const struct overview_campaign *c)
{
	_cleanup_free_ char *nodes = NULL;

	if (!p->gpus || !isfinite(c->node_hours)) {
		number(p, c->node_hours, 2, "");
		return;
	}
	nodes = xasprintf(_("%.2f node-hours"), c->node_hours);
	buf_printf(p->out, "<td class=\"n\" data-v=\"");
	if (isfinite(c->gpu_hours))
		buf_printf(p->out, "%.6g\">%.2f", c->gpu_hours, c->gpu_hours);
	else
		put(p, "\">\xe2\x80\x93");
	note(p, nodes);
	put(p, "</td>");
}

static void time_cell(struct page *p, const struct overview_campaign *c)
{
	char iso[32];

	clock_iso(c->created_us, iso, sizeof iso);
	buf_printf(p->out,
		   "<td class=\"effect\" data-v=\"%lld\"><time datetime=\"%s\">%.10s</time>"
		   "<small>%.5s UTC</small></td>",
		   (long long)c->created_us, iso, iso, iso + 11);
}

static void files_cell(struct page *p, const struct overview_campaign *c)
{
	put(p, "<td class=\"files\">");
	for (const struct report_format *const *f = report_format_table; !c->problem && *f; f++) {
		_cleanup_free_ char *page = overview_path(p->s, c, (*f)->extension);

		if (!str_eq((*f)->extension, "html"))
			link_to(p, "", page, (*f)->extension);
	}
	put(p, "</td>");
}

static void row(struct page *p, const struct overview_campaign *c)
{
	put(p, "<tr>");
	name_cell(p, c);
	put(p, "<td>");
	text(p, c->workload);
	put(p, "</td>");
	state_cell(p, c);
	put(p, "<td>");
	text(p, c->bottleneck ? _(c->bottleneck) : "\xe2\x80\x93");
	put(p, "</td>");
	result_cell(p, c);
	effect_cell(p, c);
	number(p, 100 * c->noise, 2, "&nbsp;%");
	number(p, c->runs < 0 ? NAN : (double)c->runs, 0, "");
	hours_cell(p, c);
	time_cell(p, c);
	buf_printf(p->out, "<td>%s<small>", lang_word("run_mode", run_mode_name(c->mode)));
	text(p, c->scheduler);
	put(p, "</small></td>");
	files_cell(p, c);
	put(p, "</tr>\n");
}

/* -- the table -------------------------------------------------------------------------------- */

static void heads(struct page *p)
{
	static const struct {
		const char *title, *sort, *more;
	} columns[] = {
		{N_("campaign"), "t", ""},
		{N_("workload"), "t", ""},
		{N_("state"), "t", ""},
		{N_("bottleneck"), "t", ""},
		{N_("validated"), "t", ""},
		{N_("effect, interval"), "n", ""},
		{N_("noise"), "n", " class=\"n\""},
		{N_("runs"), "n", " class=\"n\""},
		{"hours", "n", " class=\"n\""},
		{N_("started"), "n", " aria-sort=\"descending\""},
		{N_("mode"), "t", ""},
	};

	put(p, "<thead><tr>");
	for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
		buf_printf(p->out, "<th scope=\"col\" data-sort=\"%s\"%s>", columns[i].sort,
			   columns[i].more);
		text(p, !str_eq(columns[i].title, "hours") ? _(columns[i].title)
			: p->gpus                          ? _("GPU-hours")
							   : _("node-hours"));
		put(p, "</th>");
	}
	put(p, "<th scope=\"col\">");
	text(p, _("files"));
	put(p, "</th></tr></thead>\n");
}

static void find_box(struct page *p)
{
	put(p, "<p class=\"find\" hidden><label for=\"find\">");
	text(p, _("Search"));
	put(p, "</label><input id=\"find\" type=\"search\" autocomplete=\"off\">"
	       "<span class=\"soft\" role=\"status\">");
	buf_printf(p->out, "%zu / %zu</span></p>\n", p->s->n_campaigns, p->s->n_campaigns);
}

static void scale_words(struct page *p)
{
	_cleanup_free_ char *words = xasprintf(
		_("Effects are on the campaign's own objective, + is better, with their intervals. "
		  "The pictures have one scale, from %+.0f %% to %+.0f %%; the broken line is no "
		  "change."),
		100 * expm1(p->axis.lo), 100 * expm1(p->axis.hi));

	put(p, "<p class=\"soft scale\">");
	text(p, words);
	put(p, "</p>\n");
}

static void table(struct page *p)
{
	if (p->s->n_campaigns == 0) {
		put(p, "<p>");
		text(p, _("No campaign yet."));
		put(p, "</p>\n");
		return;
	}
	find_box(p);
	put(p, "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"");
	text(p, _("Campaigns"));
	put(p, "\"><table class=\"campaigns\">\n");
	heads(p);
	put(p, "<tbody>\n");
	for (size_t i = 0; i < p->s->n_campaigns; i++)
		row(p, &p->s->campaigns[i]);
	put(p, "</tbody></table></div>\n");
	scale_words(p);
}

/* -- workspaces ------------------------------------------------------------------------------- */

static void workspace_name(struct page *p, const struct overview_workspace *w)
{
	put(p, "<td>");
	text(p, w->name);
	put(p, "</td><td>");
	if (w->url)
		link_to(p, "", w->url, w->path);
	else
		text(p, w->path);
	buf_printf(p->out, "</td><td class=\"n\">%zu</td><td>", w->campaigns);
}

static void workspace_row(struct page *p, const struct overview_workspace *w)
{
	_cleanup_free_ char *nights = overview_nights_path(w),
			    *words = xasprintf(_("%zu series over nights"), w->series);

	put(p, "<tr>");
	workspace_name(p, w);
	if (w->series)
		link_to(p, "", nights, words);
	else
		put(p, "\xe2\x80\x93");
	buf_printf(p->out, "</td><td class=\"n%s\">%zu</td></tr>\n", w->regressions ? " worse" : "",
		   w->regressions);
}

static void workspaces(struct page *p)
{
	static const char *const titles[] = {N_("workspace"), N_("path of its raw logs"),
					     N_("campaigns"), N_("nights"),
					     N_("confirmed regressions, open")};

	put(p, "<section><h2>");
	text(p, _("Workspaces"));
	put(p, "</h2>\n<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"");
	text(p, _("Workspaces"));
	put(p, "\"><table>\n<tr>");
	for (size_t i = 0; i < ARRAY_LEN(titles); i++) {
		put(p, i == 2 || i == 4 ? "<th class=\"n\">" : "<th>");
		text(p, _(titles[i]));
		put(p, "</th>");
	}
	put(p, "</tr>\n");
	for (size_t i = 0; i < p->s->n_workspaces; i++)
		workspace_row(p, &p->s->workspaces[i]);
	put(p, "</table></div></section>\n");
}

/* -- page ------------------------------------------------------------------------------------- */

static void measure(struct page *p)
{
	double lo = -0.02, hi = 0.02; /* never narrower than what hardly matters */

	for (size_t i = 0; i < p->s->n_campaigns; i++) {
		const struct overview_campaign *c = &p->s->campaigns[i];

		p->gpus |= isfinite(c->gpu_hours);
		if (!isfinite(c->est))
			continue;
		lo = fmin(lo, log_of(fmin(c->est, isfinite(c->lo) ? c->lo : c->est)));
		hi = fmax(hi, log_of(fmax(c->est, isfinite(c->hi) ? c->hi : c->est)));
	}
	p->axis = (struct svg_axis){lo, hi, 4, PICTURE_WIDTH - 4};
}

static void header(struct page *p)
{
	size_t fixes = 0, running = 0;

	for (size_t i = 0; i < p->s->n_campaigns; i++) {
		const struct overview_campaign *c = &p->s->campaigns[i];

		fixes += c->result == OVERVIEW_FIX && c->judge > 0;
		running += c->state == CAMPAIGN_RUNNING;
	}
	_cleanup_free_ char *all = xasprintf(_n("%zu campaign", "%zu campaigns", p->s->n_campaigns),
					     p->s->n_campaigns),
			    *good = xasprintf(_("%zu with a validated gain"), fixes),
			    *now = xasprintf(_("%zu running"), running);

	put(p, "<header><h1>");
	text(p, _("Tuning campaigns"));
	put(p, "</h1>\n<p class=\"head\"><span>");
	text(p, all);
	put(p, "</span><span class=\"better\">");
	text(p, good);
	put(p, "</span><span>");
	text(p, now);
	put(p, "</span></p></header>\n");
}

void overview_page(const struct overview *s, struct buf *out)
{
	struct page p = {.s = s, .out = out};

	measure(&p);
	html_head_script(out, _("Tuning campaigns"), css, script_hash);
	header(&p);
	put(&p, "<main>\n");
	table(&p);
	workspaces(&p);
	put(&p, "</main>\n<script>");
	put(&p, script);
	put(&p, "</script>\n");
	html_tail(out);
}
