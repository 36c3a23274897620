/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a budget has room for, and what of it is kept: a change that was accepted is worth nothing
 * while it was not measured on fresh blocks, so the search ends while the room that is left still
 * takes the ablation, the final stage and the soak.
 *
 * Room and costs are counted in useful trials (of attempts that count). What one of them costs is
 * measured: all that the campaign spent so far, with attempts that were void and waits in the
 * queue, by the useful trials that it has for it. Nothing here looks at a value of the objective,
 * and nothing here can accept: why that leaves all error rates alone is in STATISTICS.md.
 */
#include <math.h>
#include <stdio.h>

#include "experiments/design.h"
#include "orchestrator/base/hours.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

/* Of time and node-hours a fifth more than the mean so far: the length of trials varies, and the
 * share of attempts that are void is known from few of them. */
static const double MARGIN = 1.2;

enum {
	OPENINGS_COUNTED = 32 /* a fortnight of nights: each is an opening and a closing */
};

/* -- what is left ------------------------------------------------------------------------------ */

int reserve_load_rates(struct campaign *c, struct err *e)
{
	const struct budget *b = &c->recipe->budget;
	struct useful_row u;
	int rc;

	c->rates = (struct reserve_rates){0};
	if (c->row.deadline_us <= 0 && !b->deadline && !(b->node_hours > 0) &&
	    !(b->gpu_hours > 0) && b->trials <= 0)
		return 0;
	if ((rc = query_useful(c->ws->db, c->row.id, &u, e)) < 0 || u.trials == 0)
		return rc;
	c->rates = (struct reserve_rates){.trials = (double)c->trials / (double)u.trials,
					  .node_s = MARGIN * c->node_s / (double)u.trials,
					  .wall_s = MARGIN * u.busy_s / (double)u.trials};
	return 0;
}

/* Seconds until then in which the window lets blocks run; INFINITY where it opens so often until
 * then that nothing is decided by it yet, and counting the nights of years would cost more. */
static double open_s(const struct campaign *c, int64_t until_us)
{
	const struct budget *b = &c->recipe->budget;
	int64_t at = clock_utc_us(c->ws->clock);
	double sum = 0;
	int openings = 0;

	while (at < until_us) {
		struct hours_state s;

		if (++openings > OPENINGS_COUNTED)
			return INFINITY;
		hours_both_at(&b->window, &b->site_window, at, &s);
		if (s.open) {
			int64_t end = s.closes_us < until_us ? s.closes_us : until_us;

			sum += (double)(end - at) / 1e6;
			at = end;
		} else if (s.opens_us > at) {
			at = s.opens_us;
		} else {
			break;
		}
	}
	return sum;
}

/* How many units of which one useful trial takes `rate` are in what is left. */
static double fits(double left, double rate)
{
	return rate > 0 ? fmax(left, 0) / rate : INFINITY;
}

double reserve_room(const struct campaign *c)
{
	const struct budget *b = &c->recipe->budget;
	const struct reserve_rates *per = &c->rates;
	double spent_s = c->node_s - c->row.resume_node_s, room = INFINITY;
	int64_t deadline;

	if (b->trials > 0)
		room = fits((double)(b->trials - (c->trials - c->row.resume_trials)), per->trials);
	if (b->node_hours > 0)
		room = fmin(room, fits(3600 * b->node_hours - spent_s, per->node_s));
	if (b->gpu_hours > 0)
		room = fmin(room,
			    fits(3600 * b->gpu_hours / c->recipe->resources.gpus_per_node - spent_s,
				 per->node_s));
	if (c->row.deadline_us > 0 && per->wall_s > 0)
		room = fmin(room, fits(open_s(c, c->row.deadline_us), per->wall_s));
	if (b->deadline && per->wall_s > 0 && hours_moment(b->deadline, &deadline, NULL) == 0)
		room = fmin(room, fits(open_s(c, deadline), per->wall_s));
	return room;
}

/* -- what stages take -------------------------------------------------------------------------- */

double reserve_blocks(const struct recipe *r, size_t arms, size_t blocks)
{
	return (double)(blocks * (arms * (size_t)r->repeats + (size_t)r->warmup_trials));
}

double reserve_ablation(const struct recipe *r, int unit, size_t changes)
{
	return changes < 2 ? 0
			   : reserve_blocks(r, changes + 1,
					    (size_t)unit * design_ablate_blocks(r->mode));
}

double reserve_final(const struct recipe *r, int unit)
{
	size_t blocks = r->final_blocks > 0 ? (size_t)r->final_blocks
					    : (size_t)unit * design_final_blocks(r->mode);
	double soak = r->soak_trials > 0 ? r->soak_trials + r->warmup_trials : 0;

	return r->final_blocks == BLOCKS_NONE ? 0 : reserve_blocks(r, 2, blocks) + soak;
}

double reserve_first_look(const struct recipe *r, int unit)
{
	return reserve_blocks(r, 2, (size_t)unit * decide_next_look(r->mode, 0));
}

double reserve_screen(const struct recipe *r, size_t candidates)
{
	return (double)design_screen_runs(r->mode, candidates) * r->repeats +
	       (double)design_screen_blocks(r->mode, candidates) * r->warmup_trials;
}

double reserve_fix(const struct facts *f, const struct recipe *r, size_t more)
{
	return reserve_ablation(r, f->unit, facts_changes(f) + more) + reserve_final(r, f->unit);
}

/* -- an open stage ------------------------------------------------------------------------------
 */

/* What has to be left behind these blocks; 0: the stage is none of those that are cut short. A
 * confirm stage is cut for what was accepted before it; without that a verdict about it is all that
 * the budget can give. A screen is cut for the confirm stage that it is made for, too, as long as
 * there is room for that. */
static double kept_behind(const struct facts *f, const struct recipe *r, enum stage_kind k)
{
	bool any = facts_last_accepted(f) != NULL;
	double confirm = reserve_first_look(r, f->unit) + reserve_fix(f, r, 1);

	if (reserve_final(r, f->unit) == 0)
		return 0;
	if (k == STAGE_CONFIRM)
		return any ? reserve_fix(f, r, 1) : 0;
	if (k == STAGE_SCREEN)
		return any || f->room >= confirm ? confirm : 0;
	return 0;
}

bool reserve_cuts(const struct campaign *c, const struct stage_row *s, double trials)
{
	const struct facts *f = &c->facts;
	double kept = kept_behind(f, c->recipe, s->kind);

	return s->open && f->valid > 0 && kept > 0 && f->room < trials + kept;
}

/* -- the end of the search ----------------------------------------------------------------------
 */

#define NOT_TRIED "the room that was left is kept for the final stage"

static bool same_change(const struct hypothesis_row *a, const struct hypothesis_row *b)
{
	return str_eq(a->knob, b->knob) && str_eq(a->value, b->value);
}

/* Was it a candidate in some round, and was there a verdict about it in one? */
static void history_of(const struct facts *f, const struct hypothesis_row *h, bool *candidate,
		       bool *decided)
{
	*candidate = *decided = false;
	for (size_t i = 0; i < f->n_hyps; i++) {
		enum hypothesis_state s = f->hyps[i].state;

		if (!same_change(&f->hyps[i], h))
			continue;
		*decided = *decided || s == HYP_TESTED;
		*candidate = *candidate || s == HYP_TESTED || s == HYP_PROPOSED ||
			     s == HYP_SCREENED_OUT;
	}
}

/* Candidates over all rounds, each change once, and those without a verdict. */
static void count_candidates(const struct facts *f, size_t *all, size_t *open)
{
	*all = *open = 0;
	for (size_t i = 0; i < f->n_hyps; i++) {
		bool candidate, decided, again = false;

		for (size_t k = 0; k < i && !again; k++)
			again = same_change(&f->hyps[k], &f->hyps[i]);
		history_of(f, &f->hyps[i], &candidate, &decided);
		*all += !again && candidate;
		*open += !again && candidate && !decided;
	}
}

static int close_candidates(struct campaign *c, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < c->facts.n_hyps && rc == 0; i++)
		if (c->facts.hyps[i].state == HYP_PROPOSED)
			rc = query_hypothesis_state(c->ws->db, c->facts.hyps[i].id, HYP_NOT_TRIED,
						    NOT_TRIED, e);
	return rc;
}

int reserve_end_search(struct campaign *c, struct err *e)
{
	struct db *db = c->ws->db;
	_cleanup_free_ char *text = NULL;
	size_t all, open;
	int rc = db_begin(db, "end the search", e);

	if (rc < 0)
		return rc;
	count_candidates(&c->facts, &all, &open);
	text = xasprintf("stopped searching to keep room for the final stage: %zu of %zu "
			 "candidates without a verdict",
			 open, all);
	if ((rc = close_candidates(c, e)) == 0 &&
	    (rc = campaign_event(c, e, "budget", "%s", text)) == 0)
		rc = db_commit(db, e);
	if (rc < 0) {
		db_rollback(db);
		return rc;
	}
	campaign_tell(c, PROGRESS_NOTE, 5, "%s", text);
	return 0;
}

int reserve_skip_ablation(struct campaign *c, struct err *e)
{
	static const char text[] = "the fix goes to the final stage as it is: there is no room "
				   "for taking out its changes one by one";

	campaign_tell(c, PROGRESS_NOTE, 5, "%s", text);
	return campaign_event(c, e, "budget", "%s", text);
}
