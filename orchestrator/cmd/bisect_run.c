/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The campaigns of a bisection, and what their verdicts say of a cause. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/bisect.h"
#include "orchestrator/report/report.h"
#include "orchestrator/report/text.h"

enum answer { ANSWER_PROVED, ANSWER_REFUTED, ANSWER_OPEN };

static int create(struct workspace *w, const struct bisect *b, struct bisect_key *k, struct err *e)
{
	struct script_sources sources = {0};
	struct recipe *r = NULL;
	int rc = ab_load(k->recipe, b->scheduler, &r, &sources, e);

	if (rc == 0)
		rc = campaign_create(w, r, &sources, AB_RECIPE_NAME, b->scheduler, &k->campaign, e);
	recipe_free(r);
	script_sources_free(&sources);
	return rc;
}

/* B is as it was: where the change was for the worse B has to be better. What was measured refutes
 * the key only where it rules out that the key alone did all of it. */
static enum answer answer_of(enum verdict_outcome o, const struct verdict_row *v,
			     const struct change_row *c)
{
	bool for_better = c->direction == CHANGE_BETTER;
	bool ruled_out = for_better ? v->lo > -fabs(c->est) : v->hi < fabs(c->est);

	switch (o) {
	case VERDICT_ACCEPTED:
		return for_better ? ANSWER_REFUTED : ANSWER_PROVED;
	case VERDICT_REJECTED_WORSE:
		return for_better ? ANSWER_PROVED : ANSWER_REFUTED;
	case VERDICT_EQUIVALENT:
	case VERDICT_REJECTED_NO_GAIN:
		return ruled_out ? ANSWER_REFUTED : ANSWER_OPEN;
	case VERDICT_REJECTED_GUARD:
	case VERDICT_INCONCLUSIVE:
	case VERDICT_INVALID:
		return ANSWER_OPEN;
	}
	return ANSWER_OPEN;
}

#define BEFORE "; before that: "

static char *sentence(const struct bisect_key *k, const struct verdict_row *v, enum answer a)
{
	static const char *const words[] = {"it is the cause", "it is not the cause", "still open"};
	struct buf b = {0};

	buf_printf(&b, "measured alone, as it was against as it is: %s", words[a]);
	if (v->n > 1 && isfinite(v->est))
		buf_printf(&b, ", %+.1f %% [%+.1f, %+.1f] (+ is better) over %d pairs",
			   100 * v->est, 100 * v->lo, 100 * v->hi, v->n);
	buf_printf(&b, " (%s, campaign %lld)", v->outcome, (long long)k->campaign);
	return buf_take(&b);
}

/* Proved causes come first, refuted ones last; else the order stays. */
static void rank_again(struct cause_row *v, size_t n, const char *refuted)
{
	struct cause_row *sorted = xcalloc(n + 1, sizeof *sorted);
	size_t used = 0;

	for (int turn = 0; turn < 3; turn++)
		for (size_t i = 0; i < n; i++) {
			bool last = refuted && v[i].kind == CAUSE_ENVIRONMENT &&
				    str_eq(v[i].key, refuted);

			if (turn == (v[i].proved ? 0 : last ? 2 : 1))
				sorted[used++] = v[i];
		}
	for (size_t i = 0; i < n; i++) {
		v[i] = sorted[i];
		v[i].rank = (int)i + 1;
	}
	free(sorted);
}

static void apply(struct cause_row *v, size_t n, const char *key, enum answer a, const char *why)
{
	for (size_t i = 0; i < n; i++) {
		const char *before;
		char *both;

		if (v[i].kind != CAUSE_ENVIRONMENT || !str_eq(v[i].key, key))
			continue;
		before = strstr(v[i].why, BEFORE); /* of an answer that was kept already */
		before = before ? before + strlen(BEFORE) : v[i].why;
		both = xasprintf("%s%s%s", why, BEFORE, before);
		free(v[i].why);
		v[i].why = both;
		v[i].proved = a == ANSWER_PROVED;
		/* as of a re-run: later nights rank the others, and leave this */
		if (a == ANSWER_PROVED && v[i].score < 1)
			v[i].score += 1;
		else if (a == ANSWER_REFUTED)
			v[i].score = 0;
	}
	rank_again(v, n, a == ANSWER_REFUTED ? key : NULL);
}

static int keep(struct workspace *w, const struct bisect *b, const struct bisect_key *k,
		enum answer a, const char *why, struct err *e)
{
	struct cause_row *v = NULL;
	size_t n = 0;
	int rc = db_begin(w->db, "answer of a bisection", e);

	if (rc < 0)
		return rc;
	if ((rc = history_causes(w->db, b->view.row.id, &v, &n, e)) == 0) {
		apply(v, n, k->cause->key, a, why);
		rc = history_causes_put(w->db, b->view.row.id, v, n, e);
	}
	cause_rows_free(v, n);
	if (rc == 0)
		return db_commit(w->db, e);
	db_rollback(w->db);
	return rc;
}

static void tell(const struct bisect_key *k, enum answer a, const char *why, bool as_json)
{
	static const char *const words[] = {"proved", "refuted", "open"};
	_cleanup_(json_freep) struct json *j = json_object();
	_cleanup_free_ char *json = NULL;
	struct buf line = {0};

	if (as_json) {
		json_set_text(j, "kind", "cause");
		json_set_text(j, "key", k->cause->key);
		json_set_text(j, "answer", words[a]);
		json_set_i64(j, "campaign", k->campaign);
		json_set_text(j, "text", why);
		json = json_print(j, false);
		printf("%s\n", json);
		return;
	}
	regression_cause(k->cause, &line);
	buf_str(&line, ": ");
	text_line(&line, why);
	printf("%s\n", line.data);
	buf_free(&line);
}

/* Its verdict, kept. ERR_TEMP: it has none. */
static int take_answer(struct workspace *w, const struct bisect *b, const struct bisect_key *k,
		       bool as_json, struct err *e)
{
	struct verdict_row *v = NULL;
	enum verdict_outcome o;
	size_t n = 0;
	int rc = query_verdicts(w->db, k->campaign, &v, &n, e);

	if (rc == 0 &&
	    (n == 0 || !v[n - 1].final_look || !verdict_outcome_parse(v[n - 1].outcome, &o)))
		rc = err_set(
			e, ERR_TEMP,
			"campaign %lld came to no verdict: `fettle resume %lld` goes on, and the "
			"same command keeps its answer then",
			(long long)k->campaign, (long long)k->campaign);
	if (rc == 0) {
		enum answer a = answer_of(o, &v[n - 1], &b->moved->change);
		_cleanup_free_ char *why = sentence(k, &v[n - 1], a);

		if ((rc = keep(w, b, k, a, why, e)) == 0)
			tell(k, a, why, as_json);
	}
	verdict_rows_free(v, n);
	return rc;
}

static int run_key(const struct cmd *c, struct workspace *w, const struct bisect *b,
		   struct bisect_key *k, const struct drive_options *o, struct err *e)
{
	struct campaign_row row = {0};
	bool over = false;
	int rc = 0, status = 0;

	if (!k->campaign)
		rc = create(w, b, k, e);
	if (rc == 0 && (rc = query_campaign_get(w->db, k->campaign, &row, e)) == 0)
		over = row.state == CAMPAIGN_DONE;
	campaign_row_done(&row);
	if (rc < 0)
		return rc;
	if (!over)
		status = drive_campaign(c, w, k->campaign, o);
	rc = take_answer(w, b, k, o->json, e);
	return rc < 0 ? rc : status > 2 ? status : 0;
}

int bisect_run(const struct cmd *c, struct workspace *w, struct bisect *b,
	       const struct drive_options *o)
{
	for (size_t i = 0; i < b->n; i++) {
		struct err e = {0};
		int rc;

		if (b->keys[i].cannot)
			continue;
		rc = run_key(c, w, b, &b->keys[i], o, &e);
		if (rc < 0)
			return cmd_fail(c, &e);
		if (rc > 0)
			return rc;
	}
	return 0;
}
