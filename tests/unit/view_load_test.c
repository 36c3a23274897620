/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the view reads of a campaign, step by step of a whole one, against what is stored. */
#include "tests/unit/world.h"

#include <math.h>

#include "orchestrator/cmd/view.h"
#include "orchestrator/method/method.h"

/* What was seen on the way. */
struct seen {
	bool effect, shrunk, screen, confirm, in_flight, left, trials;
	int step;
};

static void look_at_effect(const struct view *v, struct seen *s)
{
	for (size_t i = 0; i < v->n_effect; i++) {
		const struct view_interval *e = &v->effect[i];

		assert_int_equal(e->pairs, i + 2);
		assert_true(e->lo <= e->est && e->est <= e->hi);
	}
	if (v->n_effect > 3 &&
	    v->effect[3].hi - v->effect[3].lo < v->effect[0].hi - v->effect[0].lo)
		s->shrunk = true;
	s->effect = s->effect || v->n_effect > 0;
}

static void look(struct world *w, struct campaign *c, struct seen *s)
{
	const struct stage_row *open;
	struct alpha_ledger ledger;
	struct view v;
	struct err e = {0};

	assert_ok(view_load(w->ws, w->id, w->recipe, &v, &e));
	assert_int_equal(facts_load(c, &e), 0);
	ledger = facts_ledger(c);
	assert_true(fabs(v.alpha_spent - ledger.spent) < 1e-12);
	assert_int_equal(v.tests_left, alpha_ledger_left(&ledger));
	assert_true(v.candidates_left <= v.candidates);
	assert_true(v.step >= s->step || v.step >= 2); /* a round goes back to the hypothesis */
	s->step = v.step;
	open = c->facts.n_stages ? &c->facts.stages[c->facts.n_stages - 1] : NULL;
	if (open && open->open) {
		assert_string_equal(v.stage, stage_kind_name(open->kind));
		assert_int_equal(v.blocks_done, c->facts.valid);
		assert_int_equal(v.blocks_running, c->facts.in_flight);
		assert_int_equal(v.jobs_running + v.jobs_waiting, c->facts.allocations);
		assert_true(v.knob || v.about);
		s->screen = s->screen || (open->kind == STAGE_SCREEN && v.arms > 1);
		s->confirm = s->confirm || (open->kind == STAGE_CONFIRM && v.knob && v.at_most);
	}
	s->in_flight = s->in_flight || v.blocks_running > 0;
	s->left = s->left || view_left_s(&v, clock_utc_us(w->ws->clock)) > 0;
	s->trials = s->trials || v.n_trials > 0;
	look_at_effect(&v, s);
	view_done(&v);
}

static void test_every_step_of_a_campaign(void **state)
{
	static const char spec[] = "{\"effects\": {\"A=1\": 0.02}, \"sd_run\": 0.01, "
				   "\"fixed\": true}";
	struct campaign_options o = {.sched = sched_find("fake"), .spec = spec};
	enum campaign_step step = CAMPAIGN_AGAIN;
	struct campaign *c = NULL;
	struct err e = {0};
	struct seen s = {0};
	struct world w;
	struct view v;

	(void)state;
	world_open(&w, 3);
	assert_ok(campaign_open(w.ws, w.id, &o, &c, &e));
	while (step != CAMPAIGN_OVER) {
		assert_ok(campaign_step(c, &step, &e));
		look(&w, c, &s);
		if (step == CAMPAIGN_WAIT)
			assert_ok(campaign_wait(c, 60 * 1000000, -1, &e));
	}
	campaign_close(c);
	assert_true(s.effect && s.shrunk && s.screen && s.confirm && s.in_flight && s.left &&
		    s.trials);
	/* without its recipe: no effect, no objective, the rest */
	assert_ok(view_load(w.ws, w.id, NULL, &v, &e));
	assert_int_equal(v.step, VIEW_ALL_DONE);
	assert_false(v.running);
	assert_null(v.driver);
	assert_null(v.objective);
	assert_int_equal(v.n_effect, 0);
	assert_true(v.trials_all > 0 && v.node_s > 0);
	view_done(&v);
	assert_int_equal(view_load(w.ws, 99, NULL, &v, &e), -ERR_NOT_FOUND);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest t[] = {cmocka_unit_test(test_every_step_of_a_campaign)};

	return cmocka_run_group_tests(t, NULL, NULL);
}
