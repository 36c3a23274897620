/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JUnit XML, which CI systems read: one test case a series, failed while a confirmed regression of
 * it for the worse is open; a suspicion is its output and fails nothing. A regression whose series
 * have all ended is a case of its own.
 */
#include "orchestrator/base/mem.h"
#include "orchestrator/report/html.h"
#include "orchestrator/report/outlet.h"

/* The change in this series that a regression tells of, for the worse; NULL: none. */
static const struct change_row *worse_in(const struct regression_view *r, int64_t series)
{
	for (size_t i = 0; i < r->n_moved; i++) {
		const struct change_row *c = &r->moved[i].change;

		if (c->series == series && c->direction == CHANGE_WORSE &&
		    c->level != CHANGE_DISMISSED)
			return c;
	}
	return NULL;
}

static void begin_case(struct buf *out, const char *group, const char *place, const char *name,
		       int64_t id)
{
	buf_str(out, "<testcase classname=\"");
	html_text(out, group);
	if (*place) {
		buf_char(out, '.');
		html_text(out, place);
	}
	buf_str(out, "\" name=\"");
	html_text(out, name);
	buf_printf(out, " (%lld)\">", (long long)id);
}

static void put_effect(struct buf *out, const struct change_row *c)
{
	struct buf b = {0};

	nights_effect(c->est, c->lo, c->hi, &b);
	html_text(out, b.data);
	buf_printf(out, " since %s", c->night);
	buf_free(&b);
}

static void put_cause(struct buf *out, const struct regression_view *r)
{
	struct buf b = {0};

	outlet_cause(&b, r);
	if (b.len) {
		buf_str(out, "\nlikeliest cause: ");
		html_text(out, b.data);
	}
	buf_printf(out, "\nfettle regressions show %lld", (long long)r->row.id);
	buf_free(&b);
}

static void failure(struct buf *out, const struct regression_view *r, const struct change_row *c)
{
	buf_printf(out, "<failure type=\"regression\" message=\"regression %lld",
		   (long long)r->row.id);
	if (c) {
		buf_str(out, ": ");
		put_effect(out, c);
	}
	buf_str(out, "\">");
	if (c)
		html_text(out, c->why);
	put_cause(out, r);
	buf_str(out, "</failure>");
}

/* Returns whether it failed; `seen` marks the regressions that did it. */
static bool series_case(struct buf *out, const struct outlet_view *v, const struct series_row *s,
			bool *seen)
{
	_cleanup_free_ char *title = nights_title(s);
	const struct change_row *c;
	bool failed = false;

	begin_case(out, s->workload, s->place, title, s->id);
	for (size_t i = 0; i < v->n_regressions; i++)
		if (outlet_is_alarm(&v->regressions[i].row) &&
		    (c = worse_in(&v->regressions[i], s->id))) {
			seen[i] = true;
			if (!failed) /* one is all that the format has room for; the newest */
				failure(out, &v->regressions[i], c);
			failed = true;
		}
	for (size_t i = 0; !failed && i < v->n_regressions; i++)
		if ((c = worse_in(&v->regressions[i], s->id))) {
			buf_printf(out, "<system-out>regression %lld, %s, %s: ",
				   (long long)v->regressions[i].row.id,
				   change_level_name(v->regressions[i].row.level),
				   regression_state_name(v->regressions[i].row.state));
			put_effect(out, c);
			buf_str(out, "</system-out>");
			break;
		}
	buf_str(out, "</testcase>\n");
	return failed;
}

static void write_junit(const struct outlet_view *v, struct buf *out)
{
	_cleanup_free_ bool *seen = xcalloc(v->n_regressions + 1, sizeof *seen);
	struct buf cases = {0};
	size_t n = v->n_series, failed = 0;

	for (size_t i = 0; i < v->n_series; i++)
		failed += series_case(&cases, v, &v->series[i].row, seen);
	for (size_t i = 0; i < v->n_regressions; i++)
		if (!seen[i] && outlet_is_alarm(&v->regressions[i].row)) {
			begin_case(&cases, "regressions", "", "regression",
				   v->regressions[i].row.id);
			failure(&cases, &v->regressions[i],
				v->regressions[i].n_moved ? &v->regressions[i].moved[0].change
							  : NULL);
			buf_str(&cases, "</testcase>\n");
			n++;
			failed++;
		}
	buf_printf(out,
		   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		   "<testsuites name=\"fettle\" tests=\"%zu\" failures=\"%zu\" errors=\"0\">\n"
		   "<testsuite name=\"series\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
		   "skipped=\"0\">\n%s</testsuite>\n</testsuites>\n",
		   n, failed, n, failed, cases.data ? cases.data : "");
	buf_free(&cases);
}

const struct outlet outlet_junit = {
	.name = "junit", .summary = "JUnit XML for CI: a test case a series", .write = write_junit};
