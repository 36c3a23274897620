/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page of a night: what ran, what moved, what is confirmed, what is left, what it cost. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/nightly.h"
#include "orchestrator/report/recorded.h"
#include "orchestrator/report/regressions.h"
#include "orchestrator/report/text.h"

/* -- regressions ------------------------------------------------------------------------------ */

static bool is_news(const struct nightly *n, const struct regression_row *r)
{
	switch (r->state) {
	case REGRESSION_OPEN:
		return true;
	case REGRESSION_ACKNOWLEDGED:
		if (!str_eq(r->who, "fettle")) /* else long past when it was imported */
			return true;
		break;
	case REGRESSION_FIXED:
	case REGRESSION_ACCEPTED:
	case REGRESSION_TRANSIENT:
	case REGRESSION_DISMISSED:
		break;
	}
	return str_eq(r->found_night, n->night) || str_eq(r->confirmed_night, n->night) ||
	       r->state_us >= n->now_us;
}

static bool is_level(const struct nightly_regression *r, const struct change_row *c)
{
	return c->level == r->row.level;
}

static int find_canary(struct db *db, struct nightly_regression *r, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && !r->may_rerun && i < r->n_changes; i++) {
		struct series_row s = {0};

		rc = history_series_get(db, r->changes[i].series, &s, e);
		r->may_rerun = s.source == SERIES_CANARY;
		series_row_done(&s);
	}
	return rc;
}

static int fill(struct db *db, struct nightly_regression *r, struct err *e)
{
	int rc = history_changes(db, r->row.id, 0, &r->changes, &r->n_changes, e);

	if (rc == 0)
		rc = history_causes(db, r->row.id, &r->causes, &r->n_causes, e);
	for (size_t i = 0; rc == 0 && i < r->n_changes; i++) {
		const struct change_row *c = &r->changes[i];
		bool better = !r->worst || is_level(r, c) > is_level(r, r->worst) ||
			      (is_level(r, c) == is_level(r, r->worst) &&
			       fabs(c->est) > fabs(r->worst->est));

		r->worst = better ? c : r->worst;
	}
	if (rc < 0 || !r->worst || (rc = find_canary(db, r, e)) < 0)
		return rc;
	return history_series_get(db, r->worst->series, &r->series, e);
}

int nightly_regressions(struct nightly *n, struct nightly_regression **out, size_t *count,
			struct err *e)
{
	struct regression_row *rows = NULL;
	struct nightly_regression *v;
	size_t all = 0, used = 0;
	int rc = n->w ? history_regressions(n->w->db, true, &rows, &all, e) : 0;

	v = xcalloc(all + 1, sizeof *v);
	for (size_t i = 0; rc == 0 && i < all; i++) {
		if (!is_news(n, &rows[i]))
			continue;
		v[used].row = rows[i];
		rows[i].who = rows[i].note = NULL;
		rc = fill(n->w->db, &v[used++], e);
	}
	regression_rows_free(rows, all);
	if (rc < 0) {
		nightly_regressions_free(v, used);
		return rc;
	}
	*out = v;
	*count = used;
	return 0;
}

void nightly_regressions_free(struct nightly_regression *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].row.who);
		free(v[i].row.note);
		change_rows_free(v[i].changes, v[i].n_changes);
		cause_rows_free(v[i].causes, v[i].n_causes);
		series_row_done(&v[i].series);
	}
	free(v);
}

/* "4  since 2026-11-29  train, step_time_ms +25.1 % [+24.0, +26.2], 2 more series" */
static void put_change(const struct nightly_regression *r, struct buf *b)
{
	const struct change_row *c = r->worst;
	_cleanup_free_ char *what = NULL;

	buf_printf(b, _("  %lld  since %s"), (long long)r->row.id, r->row.night);
	if (!c)
		return;
	what = *r->series.place
		       ? xasprintf(P_("workload", "%s on %s"), r->series.workload, r->series.place)
		       : xstrdup(r->series.workload);
	buf_str(b, "  ");
	text_line(b, what);
	buf_str(b, _(", "));
	text_line(b, r->series.metric);
	buf_printf(b, " %+.1f %%", 100 * c->est);
	if (isfinite(c->lo) && isfinite(c->hi))
		buf_printf(b, " [%+.1f, %+.1f]", 100 * c->lo, 100 * c->hi);
	if (r->n_changes > 1)
		buf_printf(b, _(", %zu more series"), r->n_changes - 1);
}

static void put_cause(const struct cause_row *c, struct buf *b)
{
	buf_printf(b, "\n     %s", _("likeliest cause: "));
	regression_cause(c, b);
	if (c->proved)
		buf_str(b, _(", proved: the re-run differed in nothing else"));
}

static void put_state(const struct regression_row *r, struct buf *b)
{
	_cleanup_free_ char *by = xasprintf(_(" by %s"), r->who ? r->who : ""),
			    *note = recorded_text(r->note);

	buf_printf(b, "\n     %s", lang_word("regression_state", regression_state_name(r->state)));
	text_line(b, r->who ? by : "");
	buf_str(b, note ? _(": ") : "");
	text_line(b, note ? note : "");
}

static void put_regression(const struct nightly_regression *r, struct buf *b)
{
	put_change(r, b);
	if (r->row.level == CHANGE_CONFIRMED && r->n_causes)
		put_cause(&r->causes[0], b);
	if (r->row.state != REGRESSION_OPEN)
		put_state(&r->row, b);
	buf_char(b, '\n');
}

enum part {
	PART_ALARM,
	PART_KNOWN,
	PART_SUSPECT,
	PART_ALONE,
	PART_BETTER,
	PART_SHIFT,
	PART_CLOSED,
	PARTS
};

static enum part part_of(const struct nightly_regression *v)
{
	const struct regression_row *r = &v->row;

	if (r->state != REGRESSION_OPEN && r->state != REGRESSION_ACKNOWLEDGED)
		return PART_CLOSED;
	if (r->level == CHANGE_SUSPECT)
		return v->may_rerun ? PART_SUSPECT : PART_ALONE;
	switch (r->kind) {
	case REGRESSION_BETTER:
		return PART_BETTER;
	case REGRESSION_SHIFT:
		return PART_SHIFT;
	case REGRESSION_WORSE:
		break;
	}
	return r->state == REGRESSION_OPEN ? PART_ALARM : PART_KNOWN;
}

/* Where a canary came to no point, that nothing moved would be too much said. */
static bool is_blind(const struct nightly *n)
{
	bool blind = false;

	for (size_t i = 0; i < n->n_items; i++) {
		const struct nightly_item *it = &n->items[i];

		if (it->due.canary && it->result.outcome == NIGHTLY_ENDED)
			return false;
		blind = blind || (it->due.canary && it->result.outcome != NIGHTLY_IDLE);
	}
	return blind;
}

static void put_regressions(const struct nightly *night, const struct nightly_regression *v,
			    size_t n, struct buf *b)
{
	static const char *const heads[PARTS] = {
		[PART_ALARM] = N_("CONFIRMED regressions, open"),
		[PART_KNOWN] = N_("confirmed regressions, acknowledged"),
		[PART_SUSPECT] = N_("suspicions (they page nobody; a re-run settles them)"),
		[PART_ALONE] = N_("suspicions of what fettle does not measure itself (they page "
				  "nobody; more nights will tell)"),
		[PART_BETTER] = N_("changes for the better"),
		[PART_SHIFT] = N_("shifts: the cost moved from one metric to another"),
		[PART_CLOSED] = N_("closed tonight"),
	};
	bool any = false;

	for (enum part p = PART_ALARM; p < PARTS; p++) {
		bool head = false;

		for (size_t i = 0; i < n; i++) {
			if (part_of(&v[i]) != p)
				continue;
			if (!head)
				buf_printf(b, "\n%s\n", _(heads[p]));
			head = any = true;
			put_regression(&v[i], b);
		}
	}
	if (!any)
		buf_str(b, is_blind(night)
				   ? _("\nno canary measured anything: no open regression, no "
				       "suspicion\n")
				   : _("\nnothing moved: no open regression, no suspicion\n"));
}

/* -- what ran --------------------------------------------------------------------------------- */

static void put_cost_of(double gpu_hours, double node_hours, struct buf *b)
{
	char text[48];

	progress_cost(node_hours * 3600, text, sizeof text);
	if (gpu_hours > 0)
		buf_printf(b, _("%.3g GPU-h"), gpu_hours);
	else
		buf_str(b, node_hours > 0 ? text : _("cost not known"));
}

static const char *what(const struct nightly_item *it)
{
	return it->watches_fix ? _("fix") : it->due.canary ? _("canary") : _("sweep");
}

/* What it is and its name, in columns. */
static void put_name(const struct nightly_item *it, struct buf *b)
{
	text_cell(b, what(it), 6);
	buf_str(b, "  ");
	text_cell(b, it->due.name, 24);
	buf_str(b, "  ");
}

static const char *outcome_word(enum nightly_outcome o)
{
	switch (o) {
	case NIGHTLY_IDLE:
		return P_("part of a night", "idle");
	case NIGHTLY_ENDED:
		return P_("part of a night", "ended");
	case NIGHTLY_LEFT:
		return P_("part of a night", "left");
	case NIGHTLY_STOPPED:
		return P_("part of a night", "stopped");
	}
	return "";
}

static void put_item(const struct nightly_item *it, struct buf *b)
{
	const struct nightly_result *r = &it->result;
	_cleanup_free_ char *said = recorded_text(r->said);

	buf_str(b, "  ");
	put_name(it, b);
	if (r->node_s > 0) {
		put_cost_of(r->node_s / 3600 * it->recipe->r->resources.gpus_per_node,
			    r->node_s / 3600, b);
		buf_str(b, "  ");
	}
	buf_str(b, r->outcome == NIGHTLY_STOPPED ? _("STOPPED") : outcome_word(r->outcome));
	if (said)
		buf_printf(b, "%s%s", _(": "), said);
	if (r->outcome == NIGHTLY_STOPPED && it->campaign)
		buf_printf(b, _(" (campaign %lld)"), (long long)it->campaign);
	buf_char(b, '\n');
}

/* In the order in which they ran; only those with this outcome, or all that ran. */
static bool put_items(const struct nightly *n, bool left, struct buf *b)
{
	bool any = false;

	for (size_t place = 0; place <= 2 * n->n_items; place++)
		for (size_t i = 0; i < n->n_items; i++) {
			const struct nightly_item *it = &n->items[i];
			size_t at = it->choice.state == DUE_RUN ? it->choice.place : 2 * n->n_items;
			bool is_left = it->result.outcome == NIGHTLY_LEFT;

			if (at != place || it->result.outcome == NIGHTLY_IDLE || is_left != left)
				continue;
			put_item(it, b);
			any = true;
		}
	return any;
}

static void put_checks(const struct nightly *n, bool fixes, const char *head, struct buf *b)
{
	bool any = false;

	for (size_t i = 0; i < n->n_checks; i++) {
		const struct nightly_check *c = &n->checks[i];
		_cleanup_free_ char *about = NULL, *said = NULL;

		if ((c->regression == 0) != fixes)
			continue;
		if (!any)
			buf_printf(b, "\n%s\n", head);
		any = true;
		about = recorded_text(c->about);
		said = recorded_text(c->result.said);
		buf_printf(b, "  %s%s", about, _(": "));
		if (c->result.outcome != NIGHTLY_IDLE || !said)
			buf_printf(b, "%s%s", outcome_word(c->result.outcome), said ? _(": ") : "");
		buf_printf(b, "%s\n", said ? said : "");
	}
}

static void put_head(const struct nightly *n, struct buf *b)
{
	size_t usable = 0;

	for (size_t i = 0; i < n->n_recipes; i++)
		usable += n->recipes[i].r != NULL;
	buf_printf(b,
		   _n("fettle nightly: night %s, %zu recipe in %s",
		      "fettle nightly: night %s, %zu recipes in %s", usable),
		   n->night, usable, n->o->dir);
	for (size_t i = 0; i < n->window->n; i++)
		buf_printf(b, "%s%s", i ? _(", ") : _("; window "), n->window->v[i]);
	buf_char(b, '\n');
}

static void put_faults(const struct nightly *n, struct buf *b)
{
	bool any = false;

	for (size_t i = 0; i < n->n_recipes; i++) {
		if (!n->recipes[i].fault)
			continue;
		if (!any)
			buf_str(b, _("\nrecipes that cannot be run\n"));
		any = true;
		buf_printf(b, "  %s\n", n->recipes[i].fault);
	}
}

static void put_left(const struct nightly *n, struct buf *b)
{
	struct buf left = {0};

	if (put_items(n, true, &left))
		buf_printf(b, _("\nleft for the next night\n%s"), left.data);
	buf_free(&left);
}

static void put_cost(const struct nightly *n, struct buf *b)
{
	char text[48];

	progress_cost(n->spent_node_s, text, sizeof text);
	buf_str(b, _("\ncost of this night: "));
	if (n->spent_gpu_s > 0)
		buf_printf(b, _("%.3g GPU-h, "), n->spent_gpu_s / 3600);
	buf_str(b, text);
	if (n->o->gpu_hours > 0)
		buf_printf(b, _(" of at most %.3g GPU-h"), n->o->gpu_hours);
	if (n->o->node_hours > 0)
		buf_printf(b, _(" of at most %.3g node-h"), n->o->node_hours);
	buf_printf(b, _("\nfalse wins of the sweeps to expect in a year: at most %.3g\n"),
		   n->false_wins_year);
}

/* What to type next: the first thing that needs somebody. */
static void put_next(const struct nightly *n, const struct nightly_regression *v, size_t count,
		     struct buf *b)
{
	for (size_t i = 0; i < count; i++)
		if (nightly_is_alarm(&v[i].row)) {
			_cleanup_free_ char *show = drive_command("regressions show", n->w,
								  v[i].row.id);

			buf_printf(b, _("next: %s\n"), show);
			return;
		}
	for (size_t i = 0; i < n->n_items; i++)
		if (n->items[i].result.outcome == NIGHTLY_STOPPED && n->items[i].campaign) {
			_cleanup_free_ char *look = drive_command("status", n->w,
								  n->items[i].campaign);

			buf_printf(b, _("next: %s\n"), look);
			return;
		}
	for (size_t i = 0; i < n->n_recipes; i++)
		if (n->recipes[i].fault) {
			buf_printf(b, _("next: fettle check %s\n"), n->recipes[i].path);
			return;
		}
}

static int put_page(struct nightly *n, struct buf *b, struct err *e)
{
	struct nightly_regression *v = NULL;
	size_t count = 0;
	int rc = nightly_regressions(n, &v, &count, e);

	if (rc < 0)
		return rc;
	put_head(n, b);
	buf_char(b, '\n');
	if (!put_items(n, false, b))
		buf_str(b, _("  nothing ran\n"));
	put_checks(n, false, _("re-runs of suspicions"), b);
	put_checks(n, true, _("fixes whose environment changed"), b);
	put_regressions(n, v, count, b);
	put_left(n, b);
	put_faults(n, b);
	put_cost(n, b);
	put_next(n, v, count, b);
	nightly_regressions_free(v, count);
	return 0;
}

/* -- the dry run ------------------------------------------------------------------------------ */

static const char *plan_word(enum due_state s)
{
	switch (s) {
	case DUE_RUN:
		return P_("plan of a night", "runs");
	case DUE_DONE:
		return P_("plan of a night", "done");
	case DUE_NOT_YET:
		return P_("plan of a night", "not due");
	case DUE_NO_ROOM:
		return P_("plan of a night", "no room");
	}
	return "";
}

static void put_planned(const struct nightly_item *it, struct buf *b)
{
	const struct due_choice *c = &it->choice;
	_cleanup_free_ char *why = recorded_text(c->why);

	if (c->state == DUE_RUN)
		buf_printf(b, "  %2zu. ", c->place + 1);
	else
		buf_str(b, "   -  ");
	put_name(it, b);
	text_cell(b, plan_word(c->state), 7);
	buf_str(b, "  ");
	put_cost_of(it->due.gpu_hours, it->due.node_hours, b);
	buf_printf(b, _("  risk %.2f  %s\n"), c->risk, why);
}

static void put_plan(const struct nightly *n, struct buf *b)
{
	double gpu_hours = 0, node_hours = 0;

	put_head(n, b);
	buf_char(b, '\n');
	for (size_t place = 0; place <= n->n_items; place++)
		for (size_t i = 0; i < n->n_items; i++) {
			const struct nightly_item *it = &n->items[i];
			bool runs = it->choice.state == DUE_RUN;

			if ((runs ? it->choice.place : n->n_items) != place)
				continue;
			put_planned(it, b);
			gpu_hours += runs && it->due.gpu_hours > 0 ? it->due.gpu_hours : 0;
			node_hours += runs && it->due.node_hours > 0 ? it->due.node_hours : 0;
		}
	for (size_t i = 0; i < n->n_recipes; i++) {
		const struct recipe *r = n->recipes[i].r;

		if (r && r->schedule.every == CADENCE_NONE && !r->schedule.after_change)
			buf_printf(b, _("   -  %s says no `schedule`: left alone\n"), r->name);
	}
	put_faults(n, b);
	buf_str(b, _("\nexpected cost: "));
	put_cost_of(gpu_hours, node_hours, b);
	if (n->spent_node_s > 0)
		buf_str(b, _(", beside what this night has cost already"));
	buf_str(b, _("\nrisk: the chance that a look shows a change that nobody has seen; what is "
		     "worth most for its hours comes first"));
	buf_printf(b, _("\nfalse wins of the sweeps to expect in a year: at most %.3g\n"),
		   n->false_wins_year);
}

int nightly_page(struct nightly *n, struct buf *out, struct err *e)
{
	if (!n->o->plan)
		return put_page(n, out, e);
	put_plan(n, out);
	return 0;
}
