/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jobs that wait for what may not come, and jobs that somebody suspends. What was seen of a job is
 * an event, so that patience outlasts the process: `fettle tick` from cron is as patient as `fettle
 * run`.
 */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

enum {
	/* A reason that never clears must be told for so long: Slurm shows some of them for a
	 * moment while it is still thinking. */
	NEVER_US = 20 * 1000000,
};

/* What the newest event about the job says after "job ID: "; heap, "" when there is none. From
 * memory but for the first time. */
static const char *last_word(struct campaign *c, const char *job, int64_t *since_us)
{
	_cleanup_free_ char *start = xasprintf("job %s: ", job);
	struct event_row last;
	bool found = false;
	const char *known = kvs_get(&c->waits, job);

	if (!known || *since_us < 0) {
		(void)query_event_last(c->ws->db, c->row.id, "waits", start, &last, &found, NULL);
		if (found)
			*since_us = last.at_us;
		kvs_set(&c->waits, job, found ? last.text + strlen(start) : "");
		event_row_done(&last);
		known = kvs_get(&c->waits, job);
	}
	return known;
}

/* Say once that it is so; *since_us: when it was first said. */
static int note(struct campaign *c, const struct block_row *b, const char *word, const char *reason,
		int64_t *since_us, struct err *e)
{
	*since_us = -1;
	if (str_eq(last_word(c, b->job_id, since_us), word))
		return 0;
	*since_us = clock_utc_us(c->ws->clock);
	kvs_set(&c->waits, b->job_id, word);
	campaign_tell(c, PROGRESS_NOTE, 0, "block %d: its job %s: %s%s%s%s", b->index + 1,
		      b->job_id, word, *reason ? " (" : "", reason, *reason ? ")" : "");
	return campaign_event(c, e, "waits", "job %s: %s", b->job_id, word);
}

static int64_t patience_us(const struct campaign *c, enum pending_for p)
{
	switch (p) {
	case PENDING_TURN:
		return INT64_MAX;
	case PENDING_HELD:
	case PENDING_NODES:
		return (int64_t)(c->recipe->budget.stuck_s * 1e6);
	case PENDING_NEVER:
		return NEVER_US;
	}
	return INT64_MAX;
}

int waits_pending(struct campaign *c, const struct block_row *b, const struct sched_status *st,
		  bool *give_up, struct err *e)
{
	_cleanup_free_ char *word = xasprintf("waits for %s", pending_for_name(st->pending));
	int64_t since_us = 0, patience = patience_us(c, st->pending);
	const char *known;
	int rc;

	*give_up = false;
	if (st->pending == PENDING_TURN) {
		known = last_word(c, b->job_id, &(int64_t){0});
		return !*known || str_eq(known, word) ? 0 : note(c, b, word, "", &since_us, e);
	}
	rc = note(c, b, word, st->reason, &since_us, e);
	*give_up = rc == 0 && clock_utc_us(c->ws->clock) - since_us >= patience;
	return rc;
}

#define SUSPENDED_WORD "was suspended"

int waits_suspended(struct campaign *c, const struct block_row *b, struct err *e)
{
	int64_t since_us;

	return note(c, b, SUSPENDED_WORD, "", &since_us, e);
}

bool waits_was_suspended(struct campaign *c, const struct block_row *b)
{
	return b->job_id && str_eq(last_word(c, b->job_id, &(int64_t){0}), SUSPENDED_WORD);
}
