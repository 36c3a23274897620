/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The night itself: canaries, what they moved, re-runs of suspicions, fixes whose environment
 * changed, sweeps. Killed at any point, the same command goes on: a stage is planned once a night,
 * and what is open is gone on with first. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/nightly.h"
#include "orchestrator/method/canary.h"
#include "orchestrator/method/fingerprint.h"
#include "orchestrator/report/report.h"

enum { STATUS_LATER = 3, STATUS_PERMANENT = 4 };

const char *nightly_outcome_name(enum nightly_outcome o)
{
	switch (o) {
	case NIGHTLY_IDLE:
		return "idle";
	case NIGHTLY_ENDED:
		return "ended";
	case NIGHTLY_LEFT:
		return "left";
	case NIGHTLY_STOPPED:
		return "stopped";
	}
	return "";
}

static void put(struct nightly_result *r, enum nightly_outcome o, int status, char *said)
{
	r->outcome = o;
	r->status = status;
	free(r->said);
	r->said = said;
}

static void put_error(struct nightly_result *r, const struct err *e)
{
	put(r, e->code == ERR_TEMP ? NIGHTLY_LEFT : NIGHTLY_STOPPED, err_exit_status(e->code),
	    xstrdup(e->text));
}

/* -- room ------------------------------------------------------------------------------------- */

/* Bound the next campaign by what is left. Why there is nothing left, or NULL. */
static const char *bound(struct nightly *n, int gpus)
{
	int64_t now = clock_utc_us(n->w->clock);
	double node_s = INFINITY;

	if (drive_asked_to_stop(&n->drive))
		return DRIVE_STOPPED;
	if (now >= n->bounds.wait_until_us || (n->bounds.until_us && now >= n->bounds.until_us))
		return "the night is over";
	if (n->o->node_hours > 0)
		node_s = 3600 * n->o->node_hours - n->spent_node_s;
	if (n->o->gpu_hours > 0 && gpus > 0)
		node_s = fmin(node_s, (3600 * n->o->gpu_hours - n->spent_gpu_s) / gpus);
	n->bounds.spend_node_s = isinf(node_s) ? 0 : node_s;
	return node_s > 0 ? NULL : "the night has spent what it may";
}

static int gpus_of(const struct nightly *n, int64_t campaign)
{
	for (size_t i = 0; i < n->n_items; i++)
		if (n->items[i].campaign == campaign)
			return n->items[i].recipe->r->resources.gpus_per_node;
	return 0;
}

/* -- one campaign ----------------------------------------------------------------------------- */

static void conclude(struct nightly *n, int64_t campaign, struct nightly_result *r)
{
	struct campaign_row row;
	struct err e = {0};
	bool signalled;

	if (query_campaign_get(n->w->db, campaign, &row, &e) < 0) {
		put_error(r, &e);
		return;
	}
	signalled = str_eq(row.reason, DRIVE_STOPPED);
	switch (row.state) {
	case CAMPAIGN_DONE:
		put(r, NIGHTLY_ENDED, 0, NULL);
		break;
	case CAMPAIGN_RUNNING:
		put(r, NIGHTLY_LEFT, STATUS_LATER, TAKE(row.reason));
		break;
	case CAMPAIGN_STOPPED:
		put(r, signalled ? NIGHTLY_LEFT : NIGHTLY_STOPPED, STATUS_LATER, TAKE(row.reason));
		break;
	case CAMPAIGN_FAILED:
		put(r, NIGHTLY_STOPPED, STATUS_PERMANENT, TAKE(row.reason));
		break;
	}
	campaign_row_done(&row);
}

static double cost_of(struct nightly *n, int64_t campaign)
{
	struct cost_row cost = {0};

	return query_cost(n->w->db, campaign, &cost, NULL) < 0 ? 0 : cost.node_s;
}

/* Drive it as far as the night goes. */
static void go(struct nightly *n, int64_t campaign, struct nightly_result *r)
{
	double before = cost_of(n, campaign), took;
	struct err e = {0};

	if (drive_go(&n->drive, campaign, &e) < 0)
		put_error(r, &e);
	else
		conclude(n, campaign, r);
	took = cost_of(n, campaign) - before;
	r->node_s += took;
	n->spent_node_s += took;
	n->spent_gpu_s += took * gpus_of(n, campaign);
}

static int create(struct nightly *n, struct nightly_item *it, struct err *e)
{
	struct nightly_recipe *x = it->recipe;

	if (it->campaign)
		return 0;
	return campaign_create(n->w, x->r, &x->sources, x->path, x->scheduler, &it->campaign, e);
}

/* Which night it is, and in which environment. */
static int remember(struct nightly *n, const struct nightly_item *it, const char *kind,
		    struct err *e)
{
	_cleanup_free_ char *now = NULL, *text = NULL;
	struct campaign_row row;
	int rc = query_campaign_get(n->w->db, it->campaign, &row, e);

	if (rc < 0)
		return rc;
	rc = fingerprint_now(n->w, &row, it->recipe->r, &now, e);
	campaign_row_done(&row);
	if (rc < 0)
		return rc;
	text = xasprintf("%s %s", n->night, now);
	return query_event_add(n->w->db, it->campaign, clock_utc_us(n->w->clock), kind, text, e);
}

/* -- canaries --------------------------------------------------------------------------------- */

/* What the stage of tonight said when it was closed, without the night; heap, NULL: nothing. */
static char *stage_note(struct nightly *n, int64_t campaign, int64_t stage)
{
	struct stage_row *v = NULL;
	size_t count = 0;
	char *out = NULL;

	if (query_stages(n->w->db, campaign, &v, &count, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (v[i].id == stage && v[i].note)
			out = xstrdup(v[i].note +
				      (str_starts(v[i].note, n->night) ? strlen(n->night) + 2 : 0));
	stage_rows_free(v, count);
	return out;
}

static bool has_point(struct nightly *n, int64_t campaign)
{
	struct series_row *s = NULL;
	size_t count = 0;
	bool found = false;

	if (history_series_list(n->w->db, campaign, &s, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count && !found; i++) {
		struct point_row *p = NULL;
		size_t points = 0;

		if (history_points(n->w->db, s[i].id, n->night, &p, &points, NULL) == 0)
			found = points && str_eq(p[0].night, n->night);
		free(p);
	}
	series_rows_free(s, count);
	return found;
}

/* A look that came to its end: what it saw. One that measured nothing needs somebody. */
static void say_look(struct nightly *n, struct nightly_item *it)
{
	struct canary_row *v = NULL;
	size_t count = 0;
	char *note = NULL;

	if (history_canaries(n->w->db, it->campaign, &v, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count && !note; i++)
		if (v[i].purpose == CANARY_NIGHT && str_eq(v[i].night, n->night))
			note = stage_note(n, it->campaign, v[i].stage);
	free(v);
	if (has_point(n, it->campaign))
		put(&it->result, NIGHTLY_ENDED, 0, note);
	else
		put(&it->result, NIGHTLY_STOPPED, STATUS_PERMANENT,
		    note ? note : xstrdup("nothing was measured"));
}

static int plan_canary(struct nightly *n, struct nightly_item *it, bool *planned, struct err *e)
{
	const struct campaign_options o = drive_campaign_options(&n->drive);
	int rc = create(n, it, e);

	return rc < 0 ? rc : canary_plan(n->w, it->campaign, n->night, &o, planned, e);
}

static void run_canary(struct nightly *n, struct nightly_item *it)
{
	struct err e = {0};
	bool planned = false;

	if (it->due.left) {
		go(n, it->campaign, &it->result);
		if (it->result.outcome != NIGHTLY_ENDED)
			return;
	}
	if (it->choice.since == 0) /* it had its look tonight, and ended it just now */
		return;
	if (plan_canary(n, it, &planned, &e) < 0)
		put_error(&it->result, &e);
	else if (planned)
		go(n, it->campaign, &it->result);
}

/* -- re-runs and fixes ------------------------------------------------------------------------ */

static struct nightly_check *add_check(struct nightly *n, int64_t regression, int64_t campaign,
				       char *about)
{
	struct nightly_check *c;

	n->checks = xgrow(n->checks, n->n_checks, &n->cap_checks, sizeof *n->checks);
	c = &n->checks[n->n_checks++];
	*c = (struct nightly_check){.regression = regression, .campaign = campaign, .about = about};
	return c;
}

/* Planned just now, or by a call of this night that was killed. */
static bool is_open(struct nightly *n, int64_t campaign)
{
	struct campaign_row row;
	bool open;

	if (query_campaign_get(n->w->db, campaign, &row, NULL) < 0)
		return false;
	open = row.state == CAMPAIGN_RUNNING;
	campaign_row_done(&row);
	return open;
}

static void say_rerun(struct nightly *n, struct nightly_check *c)
{
	struct change_row *v = NULL;
	size_t count = 0;

	if (history_changes(n->w->db, c->regression, 0, &v, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (v[i].rerun && v[i].why) {
			free(c->result.said);
			c->result.said = xasprintf("%s: %s", change_level_name(v[i].level),
						   v[i].why);
			break;
		}
	change_rows_free(v, count);
}

static void run_rerun(struct nightly *n, const struct wanted_row *w)
{
	struct nightly_check *c = add_check(n, w->regression, w->campaign,
					    xasprintf("regression %lld", (long long)w->regression));
	const char *why = bound(n, gpus_of(n, w->campaign));
	const struct campaign_options o = drive_campaign_options(&n->drive);
	struct err e = {0};
	bool planned = false;

	if (why) {
		put(&c->result, NIGHTLY_LEFT, STATUS_LATER, xstrdup(why));
		return;
	}
	if (canary_rerun(n->w, w, n->night, &o, &planned, &e) < 0) {
		put_error(&c->result, &e);
		return;
	}
	if (!planned && !is_open(n, w->campaign)) {
		put(&c->result, NIGHTLY_IDLE, 0, xstrdup("to be measured again on another night"));
		return;
	}
	go(n, w->campaign, &c->result);
	if (c->result.outcome == NIGHTLY_ENDED)
		say_rerun(n, c);
}

static int run_reruns(struct nightly *n, struct err *e)
{
	struct wanted_row *v = NULL;
	size_t count = 0;
	int rc = track_wanted(n->w->db, &v, &count, e);

	for (size_t i = 0; rc == 0 && i < count; i++)
		run_rerun(n, &v[i]);
	wanted_rows_free(v, count);
	return rc;
}

static char *join(const struct strv *v)
{
	struct buf b = {0};

	for (size_t i = 0; i < v->n; i++)
		buf_printf(&b, "%s%s", i ? ", " : "", v->v[i]);
	return buf_take(&b);
}

static void say_fix(struct nightly *n, struct nightly_check *c)
{
	struct fix_row fix = {0};
	bool found = false;

	if (query_fix_get(n->w->db, c->campaign, &fix, &found, NULL) == 0 && found) {
		free(c->result.said);
		c->result.said = str_eq(fix.state, "gain not seen again")
					 ? xstrdup("gain not seen again: the fix has expired")
					 : xasprintf("%s, holds for the environment of tonight",
						     fix.state);
	}
	fix_row_done(&fix);
}

static void revalidate(struct nightly *n, const struct nightly_item *it, const char *changes)
{
	struct nightly_check *c = add_check(n, 0, it->campaign,
					    xasprintf("%s: %s", it->recipe->r->name, changes));
	const char *why = bound(n, it->recipe->r->resources.gpus_per_node);
	const struct campaign_options o = drive_campaign_options(&n->drive);
	struct err e = {0};
	bool planned = false;

	if (!why && it->result.outcome == NIGHTLY_LEFT)
		why = "its canary of tonight is not over";
	if (why) {
		put(&c->result, NIGHTLY_LEFT, STATUS_LATER, xstrdup(why));
		return;
	}
	if (canary_revalidate(n->w, it->campaign, n->night, &o, &planned, &e) < 0)
		put_error(&c->result, &e);
	else if (planned || is_open(n, it->campaign))
		go(n, it->campaign, &c->result);
	if (c->result.outcome == NIGHTLY_ENDED)
		say_fix(n, c);
}

static int run_revalidations(struct nightly *n, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n->n_items; i++) {
		struct nightly_item *it = &n->items[i];
		_cleanup_free_ char *text = NULL;
		struct campaign_row row;
		struct strv changes = {0};

		if (!it->watches_fix)
			continue;
		rc = query_campaign_get(n->w->db, it->campaign, &row, e);
		if (rc < 0)
			return rc;
		rc = drive_expired(n->w, &row, NULL, &changes, e);
		text = join(&changes);
		if (rc == 0 && changes.n)
			revalidate(n, it, text);
		campaign_row_done(&row);
		strv_free(&changes);
	}
	return rc;
}

/* -- sweeps ----------------------------------------------------------------------------------- */

static char *found(struct nightly *n, const struct nightly_item *it)
{
	int64_t campaign = it->campaign;
	struct config config = {0};
	struct fix_row fix = {0};
	char *out = NULL;
	bool is_there = false;

	if (query_fix_get(n->w->db, campaign, &fix, &is_there, NULL) == 0 && is_there &&
	    query_config_get(n->w->db, fix.config, &config, NULL) == 0) {
		_cleanup_free_ char *text = config_text(&config);

		out = xasprintf("%s: %s, %+.1f %% [%+.1f, %+.1f]", text, fix.state, 100 * fix.est,
				100 * fix.lo, 100 * fix.hi);
	}
	config_done(&config);
	fix_row_done(&fix);
	return out || it->recipe->r->n_knobs == 0 ? out : xstrdup("nothing better was found");
}

static void write_reports(struct nightly *n, int64_t campaign)
{
	struct report *rep = NULL;
	struct recipe *r = NULL;

	if (drive_report(n->w, campaign, &r, &rep, NULL) == 0)
		(void)drive_write_reports(n->w, rep, campaign, n->o->drive.lang, NULL);
	report_free(rep);
	recipe_free(r);
}

static bool seen_tonight(const struct nightly *n, const struct nightly_item *it)
{
	for (size_t i = 0; i < it->nights.n; i++)
		if (str_eq(it->nights.v[i], n->night))
			return true;
	return false;
}

/* What an earlier night left has the time of its recipe again: that is what a night may take. */
static int begin_sweep(struct nightly *n, struct nightly_item *it, struct err *e)
{
	double wall_s = it->recipe->r->budget.wall_s;
	int64_t now = clock_utc_us(n->w->clock);
	int rc = create(n, it, e);

	if (rc < 0 || (it->due.left && seen_tonight(n, it)))
		return rc;
	if (it->due.left && wall_s > 0)
		rc = query_campaign_deadline(n->w->db, it->campaign, now + (int64_t)(wall_s * 1e6),
					     e);
	return rc < 0 ? rc : remember(n, it, NIGHTLY_SWEEP, e);
}

static void run_sweep(struct nightly *n, struct nightly_item *it)
{
	struct err e = {0};

	if (begin_sweep(n, it, &e) < 0) {
		put_error(&it->result, &e);
		return;
	}
	go(n, it->campaign, &it->result);
	if (it->result.outcome != NIGHTLY_ENDED)
		return;
	it->result.said = found(n, it);
	write_reports(n, it->campaign);
}

/* -- all of it -------------------------------------------------------------------------------- */

static struct nightly_item *at_place(struct nightly *n, size_t place)
{
	for (size_t i = 0; i < n->n_items; i++)
		if (n->items[i].choice.state == DUE_RUN && n->items[i].choice.place == place)
			return &n->items[i];
	return NULL;
}

/* The environment is known once it has run. */
static void end_canary(struct nightly *n, struct nightly_item *it)
{
	struct err e = {0};

	say_look(n, it);
	if (remember(n, it, NIGHTLY_CANARY, &e) < 0)
		put_error(&it->result, &e);
}

static void run_items(struct nightly *n, bool canaries)
{
	for (size_t place = 0; place < 2 * n->n_items; place++) {
		struct nightly_item *it = at_place(n, place);
		const char *why;

		if (!it || it->due.canary != canaries)
			continue;
		why = bound(n, it->recipe->r->resources.gpus_per_node);
		if (why)
			put(&it->result, NIGHTLY_LEFT, STATUS_LATER, xstrdup(why));
		else if (canaries)
			run_canary(n, it);
		else
			run_sweep(n, it);
		if (canaries && it->result.outcome == NIGHTLY_ENDED)
			end_canary(n, it);
	}
}

/* What does not run now: there is no room for it, or an earlier call of this night did it. */
static void tell_others(struct nightly *n, bool canaries)
{
	for (size_t i = 0; i < n->n_items; i++) {
		struct nightly_item *it = &n->items[i];

		if (it->due.canary != canaries)
			continue;
		if (it->choice.state == DUE_NO_ROOM)
			put(&it->result, NIGHTLY_LEFT, STATUS_LATER,
			    xstrdup("no room in what was left of the night"));
		if (it->choice.state != DUE_DONE || !it->campaign)
			continue;
		conclude(n, it->campaign, &it->result);
		if (it->result.outcome == NIGHTLY_ENDED && canaries)
			say_look(n, it);
		else if (it->result.outcome == NIGHTLY_ENDED)
			it->result.said = found(n, it);
	}
}

bool nightly_is_alarm(const struct regression_row *r)
{
	return r->state == REGRESSION_OPEN && r->level == CHANGE_CONFIRMED &&
	       r->kind == REGRESSION_WORSE;
}

static int count_alarms(struct nightly *n, struct err *e)
{
	struct regression_row *v = NULL;
	size_t count = 0;
	int rc = history_regressions(n->w->db, false, &v, &count, e);

	n->alarms = 0;
	for (size_t i = 0; rc == 0 && i < count; i++)
		n->alarms += nightly_is_alarm(&v[i]);
	regression_rows_free(v, count);
	return rc;
}

int nightly_run(struct nightly *n, struct err *e)
{
	int rc;

	tell_others(n, true);
	run_items(n, true);
	rc = track_night(n->w->db, n->night, clock_utc_us(n->w->clock), &n->track, e);
	if (rc == 0)
		rc = run_reruns(n, e);
	if (rc == 0)
		rc = run_revalidations(n, e);
	if (rc == 0 && (rc = nightly_reconsider(n, e)) == 0) {
		tell_others(n, false);
		run_items(n, false);
	}
	return rc < 0 ? rc : count_alarms(n, e);
}

int nightly_status(const struct nightly *n)
{
	int status = n->alarms ? 1 : 0;

	for (size_t i = 0; i < n->n_recipes; i++)
		status = drive_worse(status, n->recipes[i].fault ? STATUS_PERMANENT : 0);
	for (size_t i = 0; i < n->n_items; i++)
		status = drive_worse(status, n->items[i].result.status);
	for (size_t i = 0; i < n->n_checks; i++)
		status = drive_worse(status, n->checks[i].result.status);
	return status;
}
