/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the cluster's accounts say that jobs took: energy, memory, what they held. They come some
 * time after a job's end, and many clusters keep none; nothing waits for them but the end of a
 * campaign, for a moment.
 */
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

enum {
	JOBS_A_QUESTION = 200,
	EVERY_US = 60 * 1000000, /* the database is not ours alone */
	LAST_LOOKS = 3,          /* at the end of a campaign */
	LAST_PAUSE_US = 2 * 1000000,
};
/* A record that has not come in a day does not come. */
static const int64_t SINCE_US = INT64_C(86400) * 1000000;

static int store(struct campaign *c, const struct unaccounted_row *rows,
		 const struct sched_account *accounts, size_t n, size_t *left, struct err *e)
{
	int rc = db_begin(c->ws->db, "store accounts", e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < n && rc == 0; i++) {
		const struct consumed_row row = {.elapsed_s = accounts[i].elapsed_s,
						 .maxrss_kib = accounts[i].maxrss_kib,
						 .energy_j = accounts[i].energy_j,
						 .tres = (char *)(uintptr_t)accounts[i].tres};

		if (accounts[i].known)
			rc = query_account_put(c->ws->db, rows[i].allocation, &row,
					       clock_utc_us(c->ws->clock), e);
		else
			++*left;
	}
	if (rc == 0)
		rc = db_commit(c->ws->db, e);
	if (rc < 0)
		db_rollback(c->ws->db);
	return rc;
}

/* *left: jobs whose records have not come yet. */
static int look(struct campaign *c, size_t *left, struct err *e)
{
	struct unaccounted_row *rows = NULL;
	_cleanup_free_ struct sched_account *accounts = NULL;
	_cleanup_free_ const char **ids = NULL;
	size_t n = 0;
	int rc = query_unaccounted(c->ws->db, c->row.id, clock_utc_us(c->ws->clock) - SINCE_US,
				   JOBS_A_QUESTION, &rows, &n, e),
	    told;

	*left = 0;
	if (rc < 0 || n == 0)
		return rc;
	ids = xcalloc(n, sizeof *ids);
	accounts = xcalloc(n, sizeof *accounts);
	for (size_t i = 0; i < n; i++)
		ids[i] = rows[i].job_id;
	told = c->sched->account(c->run, ids, n, accounts, NULL);
	c->no_accounts = told == -ERR_RECIPE;
	if (told == 0)
		rc = store(c, rows, accounts, n, left, e);
	unaccounted_rows_free(rows, n);
	return rc;
}

int accounts_take(struct campaign *c, struct err *e)
{
	int64_t now = clock_mono_us(c->ws->clock);
	size_t left;

	if (!c->sched->account || c->no_accounts ||
	    (c->accounts_us && now - c->accounts_us < EVERY_US))
		return 0;
	c->accounts_us = now;
	return look(c, &left, e);
}

int accounts_take_last(struct campaign *c, struct err *e)
{
	size_t left = 1;
	int rc = 0;

	for (int i = 0; i < LAST_LOOKS && left && rc == 0 && c->sched->account && !c->no_accounts;
	     i++) {
		if (i)
			rc = c->sched->wait(c->run, LAST_PAUSE_US, -1, e);
		if (rc == 0)
			rc = look(c, &left, e);
	}
	return rc;
}
