/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/tried.h"

#include <stdlib.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

/* By campaign. */
struct tried {
	struct campaign_row *campaigns;
	size_t n;
	struct hypothesis_row **hyps;
	size_t *n_hyps;
	struct verdict_row **verdicts;
	size_t *n_verdicts;
	struct trying *v;
	size_t n_v, cap_v;
};

void tried_free(struct tried *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++) {
		hypothesis_rows_free(t->hyps[i], t->n_hyps[i]);
		verdict_rows_free(t->verdicts[i], t->n_verdicts[i]);
	}
	campaign_rows_free(t->campaigns, t->n);
	free(t->hyps);
	free(t->n_hyps);
	free(t->verdicts);
	free(t->n_verdicts);
	free(t->v);
	free(t);
}

static const struct verdict_row *last_verdict(const struct tried *t, size_t c, int64_t hypothesis)
{
	for (size_t i = t->n_verdicts[c]; i-- > 0;)
		if (t->verdicts[c][i].hypothesis == hypothesis && t->verdicts[c][i].final_look)
			return &t->verdicts[c][i];
	return NULL;
}

static int load_campaign(struct workspace *w, struct tried *t, size_t c, struct err *e)
{
	int64_t id = t->campaigns[c].id;
	int rc = query_hypotheses(w->db, id, &t->hyps[c], &t->n_hyps[c], e);

	if (rc == 0)
		rc = query_verdicts(w->db, id, &t->verdicts[c], &t->n_verdicts[c], e);
	for (size_t i = 0; rc == 0 && i < t->n_hyps[c]; i++) {
		const struct hypothesis_row *h = &t->hyps[c][i];

		t->v = xgrow(t->v, t->n_v, &t->cap_v, sizeof *t->v);
		t->v[t->n_v++] = (struct trying){&t->campaigns[c], h, last_verdict(t, c, h->id)};
	}
	return rc;
}

static int load(const char *dir, struct tried *t, struct err *e)
{
	struct workspace *w = NULL;
	int rc = workspace_open(workspace_default(dir), DB_READ, &clock_system, &w, e);

	if (rc == 0)
		rc = query_campaign_list(w->db, NULL, &t->campaigns, &t->n, e);
	t->hyps = xcalloc(t->n + 1, sizeof *t->hyps);
	t->n_hyps = xcalloc(t->n + 1, sizeof *t->n_hyps);
	t->verdicts = xcalloc(t->n + 1, sizeof *t->verdicts);
	t->n_verdicts = xcalloc(t->n + 1, sizeof *t->n_verdicts);
	for (size_t i = 0; rc == 0 && i < t->n; i++)
		rc = load_campaign(w, t, i, e);
	workspace_close(w);
	return rc;
}

int tried_load(const char *dir, struct tried **out, struct err *e)
{
	struct tried *t = xcalloc(1, sizeof *t);
	int rc = 0;

	/* A workspace that is not there is no fault unless it was asked for. */
	if (dir || fs_exists(workspace_default(NULL)))
		rc = load(dir, t, e);
	if (rc < 0)
		tried_free(t);
	else
		*out = t;
	return rc;
}

size_t tried_n(const struct tried *t)
{
	return t->n_v;
}

const struct trying *tried_at(const struct tried *t, size_t i)
{
	return &t->v[i];
}

static size_t count(const struct tried *t, const char *knob, const char *outcome)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_v; i++)
		n += str_eq(t->v[i].hyp->knob, knob) && t->v[i].verdict &&
		     (!outcome || str_eq(t->v[i].verdict->outcome, outcome));
	return n;
}

size_t tried_tested(const struct tried *t, const char *knob)
{
	return count(t, knob, NULL);
}

size_t tried_accepted(const struct tried *t, const char *knob)
{
	return count(t, knob, verdict_outcome_name(VERDICT_ACCEPTED));
}

bool tried_known(const struct tried *t, const char *knob)
{
	for (size_t i = 0; i < t->n_v; i++)
		if (str_eq(t->v[i].hyp->knob, knob))
			return true;
	return false;
}
