/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Canary stages: what stands against what, when one is planned, and what follows from it. */
#include "orchestrator/method/canary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/stats.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/fingerprint.h"
#include "orchestrator/method/method.h"

enum { BLOCKS_A_NIGHT = 2 }; /* of a fix that is watched: its recipe says nothing about it */

/* -- arms ------------------------------------------------------------------------------------- */

/* Arms of a stage: the reference, if there is one, then what is watched. */
struct lineup {
	struct config current, reference;
	bool alone;   /* there is no reference */
	char *beside; /* what the reference is, for people; NULL: the same configuration */
};

static void lineup_done(struct lineup *l)
{
	config_done(&l->current);
	config_done(&l->reference);
	free(l->beside);
}

static bool differs(const struct lineup *l)
{
	return !l->alone && !str_eq(l->current.hash, l->reference.hash);
}

static int get_fix(struct campaign *c, struct fix_row *fix, struct err *e)
{
	bool found = false;
	int rc = query_fix_get(c->ws->db, c->row.id, fix, &found, e);

	if (rc == 0 && !found)
		rc = err_set(e, ERR_STATE,
			     "campaign %lld is no canary and has no fix that could be watched",
			     (long long)c->row.id);
	return rc;
}

static int watched(struct campaign *c, struct config *out, struct err *e)
{
	struct fix_row fix = {0};
	int rc;

	if (c->recipe->canary.blocks)
		return campaign_default(c, out, e);
	rc = get_fix(c, &fix, e);
	if (rc == 0)
		rc = query_config_get(c->ws->db, fix.config, out, e);
	fix_row_done(&fix);
	return rc;
}

/* The reference that does not depend on the night: what the recipe declares, the default beside a
 * fix, else the same configuration. */
static int declared(struct campaign *c, struct lineup *l, struct err *e)
{
	const struct canary *k = &c->recipe->canary;

	l->alone = k->alone;
	if (!k->blocks) {
		l->beside = xstrdup("default");
		return campaign_default(c, &l->reference, e);
	}
	config_copy(&l->reference, &l->current);
	if (canary_declares(c->recipe)) {
		l->beside = bundle_text(&k->reference);
		config_lay(c->recipe, &k->reference, &l->reference);
	}
	return 0;
}

/* May the key be set back? A fix has arguments of its own, which another command would lose. */
static bool settable(const struct campaign *c, const struct fingerprint_key *k)
{
	return k->set.env.n || (k->set.command.n && c->recipe->canary.blocks);
}

/* Of {key: value}, or {key: {was: value, is: ...}}; NULL: not there. */
static const char *old_value(const struct json *old, const char *key)
{
	const struct json *v = json_get(old, key);

	if (v && json_type(v) == JSON_OBJECT)
		v = json_get(v, "was");
	return v ? json_text(v, NULL) : NULL;
}

/* A value that differed between nodes ("a (n1), b (n2)") cannot be put back on all. */
static bool of_all_nodes(const char *value)
{
	return !strstr(value, "), ");
}

/* Lay the value that each settable key had over the reference, which is the current configuration
 * so far. */
static void set_back(struct campaign *c, const struct json *old, struct lineup *l)
{
	const struct recipe *r = c->recipe;
	struct buf keys = {0};

	for (size_t i = 0; i < r->n_fingerprint; i++) {
		const struct fingerprint_key *k = &r->fingerprint[i];
		const char *was = old_value(old, k->name);
		struct bundle b = {0};

		if (!was || !of_all_nodes(was) || !settable(c, k))
			continue;
		fingerprint_set(k, was, &b);
		config_lay(r, &b, &l->reference);
		kvs_set(&l->reference.settings, k->name, was);
		buf_printf(&keys, "%s%s=%s", keys.len ? ", " : "", k->name, was);
		bundle_done(&b);
	}
	kvs_sort(&l->reference.settings);
	if (keys.len && differs(l)) {
		free(l->beside);
		l->beside = xstrdup(keys.data);
	}
	buf_free(&keys);
}

static int set_back_text(struct campaign *c, const char *text, struct lineup *l, struct err *e)
{
	_cleanup_(json_freep) struct json *old = NULL;
	int rc = text ? json_parse("environment", text, strlen(text), &old, e) : 0;

	if (rc == 0 && old)
		set_back(c, old, l);
	return rc;
}

/* Of a night: beside the configuration as it stands what is declared, else the same in the
 * environment that it is held against. */
static int lineup_night(struct campaign *c, struct lineup *l, struct err *e)
{
	_cleanup_free_ char *env = NULL;
	int rc = watched(c, &l->current, e);

	if (rc == 0)
		rc = declared(c, l, e);
	if (rc < 0 || l->alone || canary_declares(c->recipe))
		return rc;
	rc = canary_reference_environment(c, l->current.hash, &env, e);
	return rc < 0 ? rc : set_back_text(c, env, l, e);
}

/* Of a re-run: beside it the same with what changed set back, else what is declared. Where neither
 * differs it is measured alone, and held against its own past. */
static int lineup_rerun(struct campaign *c, const char *changed, struct lineup *l, struct err *e)
{
	int rc = watched(c, &l->current, e);

	if (rc < 0)
		return rc;
	config_copy(&l->reference, &l->current);
	rc = set_back_text(c, changed, l, e);
	if (rc == 0 && !differs(l)) {
		config_done(&l->reference);
		rc = declared(c, l, e);
	}
	l->alone = !differs(l);
	return rc;
}

/* -- planning --------------------------------------------------------------------------------- */

static int add_stage(struct campaign *c, struct canary_row *row, struct lineup *l, int blocks,
		     const char *avoid, struct err *e)
{
	struct arm_plan arms[2] = {{.config = l->reference,
				    .label = l->beside ? l->beside : (char *)"reference"},
				   {.config = l->current, .label = (char *)"current"}};
	size_t skip = l->alone;
	struct stage_row s = {
		.kind = STAGE_CANARY, .planned_blocks = blocks, .avoid_nodes = (char *)avoid};
	double wall_s = c->recipe->budget.wall_s;
	int64_t now = clock_utc_us(c->ws->clock);
	int rc = stage_add(c, &s, arms + skip, 2 - skip, e);

	row->stage = s.id;
	row->campaign = c->row.id;
	if (rc == 0)
		rc = history_canary_put(c->ws->db, row, e);
	/* The budget of the recipe is that of a night. */
	return rc < 0 ? rc : campaign_reopen(c, wall_s > 0 ? now + (int64_t)(wall_s * 1e6) : 0, e);
}

/* The stage, what it is for and that the campaign runs again: all of it or nothing. */
static int plan_stage(struct campaign *c, struct canary_row *row, struct lineup *l, int blocks,
		      const char *avoid, struct err *e)
{
	struct db *db = c->ws->db;
	int rc = db_begin(db, "canary", e);

	if (rc == 0 && (rc = add_stage(c, row, l, blocks, avoid, e)) == 0)
		rc = db_commit(db, e);
	if (rc < 0)
		db_rollback(db);
	else
		campaign_tell(c, PROGRESS_STAGE, 0, "canary of %s (%s): %d block%s%s%s", row->night,
			      canary_purpose_name(row->purpose), blocks, blocks == 1 ? "" : "s",
			      l->alone    ? ", alone"
			      : l->beside ? " against "
					  : " against itself",
			      !l->alone && l->beside ? l->beside : "");
	return rc;
}

/* Is there a stage for this already? */
static int planned_before(struct campaign *c, const struct canary_row *want, bool *out,
			  struct err *e)
{
	struct canary_row *v = NULL;
	size_t n = 0;
	int rc = history_canaries(c->ws->db, c->row.id, &v, &n, e);

	*out = false;
	for (size_t i = 0; rc == 0 && i < n; i++)
		*out = *out || (str_eq(v[i].night, want->night) && v[i].purpose == want->purpose &&
				v[i].regression == want->regression);
	free(v);
	return rc;
}

static int check_over(const struct campaign *c, struct err *e)
{
	const struct facts *f = &c->facts;
	bool open = f->n_stages && f->stages[f->n_stages - 1].open;

	/* A canary that was only created has nothing to finish first. */
	if (!open && (c->row.state == CAMPAIGN_DONE || c->recipe->canary.blocks))
		return 0;
	return err_set(e, ERR_STATE, "campaign %lld is not done: `fettle resume %lld` first",
		       (long long)c->row.id, (long long)c->row.id);
}

/* A fix in one of these states holds, as far as anybody knows. */
static bool holds(const struct fix_row *f)
{
	return str_eq(f->state, "validated") || str_eq(f->state, "accepted, pending convergence");
}

static int check_fix(struct campaign *c, struct err *e)
{
	struct fix_row fix = {0};
	int rc = c->recipe->canary.blocks ? 0 : get_fix(c, &fix, e);

	if (rc == 0 && fix.state && !holds(&fix))
		rc = err_set(e, ERR_STATE, "the fix of campaign %lld is %s: it is not watched",
			     (long long)c->row.id, fix.state);
	fix_row_done(&fix);
	return rc;
}

static int blocks_a_night(const struct campaign *c)
{
	return c->recipe->canary.blocks ? c->recipe->canary.blocks : BLOCKS_A_NIGHT;
}

static int plan_night(struct campaign *c, const char *night, struct err *e)
{
	struct canary_row row = {.purpose = CANARY_NIGHT, .open = true};
	_cleanup_free_ char *avoid = NULL;
	struct lineup l = {0};
	int rc = lineup_night(c, &l, e);

	str_copy(row.night, sizeof row.night, night);
	if (rc == 0 && (rc = place_night(c, blocks_a_night(c), &avoid, e)) == 0)
		rc = plan_stage(c, &row, &l, blocks_a_night(c), avoid, e);
	lineup_done(&l);
	return rc;
}

int canary_begin(struct campaign *c, struct err *e)
{
	char night[11];

	limits_night(c, night);
	return plan_night(c, night, e);
}

/* What the three plans have in common: open the campaign, see whether it is time, plan. */
struct plan {
	struct workspace *w;
	const struct campaign_options *o;
	struct canary_row row; /* night, purpose and regression */
	const struct wanted_row *wanted;
	int (*make)(struct campaign *c, struct plan *p, bool *planned, struct err *e);
};

static int plan_open(struct campaign *c, struct plan *p, bool *planned, struct err *e)
{
	bool before = false;
	int rc = planned_before(c, &p->row, &before, e);

	if (rc < 0 || before)
		return rc;
	if ((rc = check_over(c, e)) < 0)
		return rc;
	return p->make(c, p, planned, e);
}

static int plan_in(struct plan *p, int64_t campaign, const char *night, bool *planned,
		   struct err *e)
{
	struct campaign *c = NULL;
	int rc;

	*planned = false;
	if (!history_night_valid(night))
		return err_set(e, ERR_USAGE, "%s is no date: YYYY-MM-DD", night);
	str_copy(p->row.night, sizeof p->row.night, night);
	rc = campaign_open(p->w, campaign, p->o, &c, e);
	if (rc == 0)
		rc = plan_open(c, p, planned, e);
	campaign_close(c);
	return rc;
}

static int make_night(struct campaign *c, struct plan *p, bool *planned, struct err *e)
{
	int rc = check_fix(c, e);

	if (rc == 0)
		rc = plan_night(c, p->row.night, e);
	*planned = rc == 0;
	return rc;
}

int canary_plan(struct workspace *w, int64_t campaign, const char *night,
		const struct campaign_options *o, bool *planned, struct err *e)
{
	struct plan p = {
		.w = w, .o = o, .row = {.purpose = CANARY_NIGHT, .open = true}, .make = make_night};

	return plan_in(&p, campaign, night, planned, e);
}

static int make_rerun(struct campaign *c, struct plan *p, bool *planned, struct err *e)
{
	_cleanup_free_ char *avoid = NULL;
	struct lineup l = {0};
	int rc = lineup_rerun(c, p->wanted->changed, &l, e);

	/* Alone it would share what was odd about the night that is in doubt. */
	if (rc == 0 && !(l.alone && strcmp(p->row.night, p->wanted->not_before) < 0) &&
	    (rc = canary_avoid_suspects(c, p->wanted, &avoid, e)) == 0 &&
	    (rc = plan_stage(c, &p->row, &l, CANARY_RERUN_MAX, avoid, e)) == 0)
		*planned = true;
	lineup_done(&l);
	return rc;
}

int canary_rerun(struct workspace *w, const struct wanted_row *r, const char *night,
		 const struct campaign_options *o, bool *planned, struct err *e)
{
	struct plan p = {
		.w = w,
		.o = o,
		.row = {.purpose = CANARY_RERUN, .regression = r->regression, .open = true},
		.wanted = r,
		.make = make_rerun};

	return plan_in(&p, r->campaign, night, planned, e);
}

/* As many blocks as its final stage had: the gain must show as it did then. */
static int make_revalidation(struct campaign *c, struct plan *p, bool *planned, struct err *e)
{
	const struct stage_row *final = facts_stage(&c->facts, STAGE_FINAL, 0);
	struct lineup l = {0};
	int rc;

	if (!final || c->recipe->canary.blocks)
		return err_set(e, ERR_STATE, "campaign %lld has no fix to validate again",
			       (long long)c->row.id);
	rc = check_fix(c, e);
	if (rc == 0 && (rc = lineup_night(c, &l, e)) == 0)
		rc = plan_stage(c, &p->row, &l, final->planned_blocks, NULL, e);
	*planned = rc == 0;
	lineup_done(&l);
	return rc;
}

int canary_revalidate(struct workspace *w, int64_t campaign, const char *night,
		      const struct campaign_options *o, bool *planned, struct err *e)
{
	struct plan p = {.w = w,
			 .o = o,
			 .row = {.purpose = CANARY_REVALIDATE, .open = true},
			 .make = make_revalidation};

	return plan_in(&p, campaign, night, planned, e);
}

const struct stage_ops canary_canary = {.kind = STAGE_CANARY,
					.step = 1,
					.wanted = canary_wanted,
					.block_arms = stage_all_arms,
					.look = canary_look,
					.conclude = canary_conclude};
