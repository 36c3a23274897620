/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/attempt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/agent/block.h"
#include "orchestrator/agent/guard.h"
#include "orchestrator/agent/nodeenv.h"
#include "orchestrator/agent/record.h"
#include "orchestrator/agent/trial.h"
#include "orchestrator/agent/trialenv.h"
#include "orchestrator/agent/stepcount.h"
#include "orchestrator/base/clock.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/log.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"

struct attempt {
	char *dir;
	struct block *block;
	struct kvs secrets;
	const struct place *place;
	size_t index; /* of its directory among those of the allocation */
	struct stepcount *steps;
	struct guard *guard;
	char (*xxh)[33];
	size_t n_done;
	char reason[512]; /* of a partial end */
	int64_t start_us;
};

static void attempt_free(struct attempt *a)
{
	guard_stop(a->guard);
	stepcount_free(a->steps);
	kvs_free(&a->secrets);
	block_free(a->block);
	free(a->xxh);
	free(a->dir);
}

static int prepare(struct attempt *a, const char *dir, struct err *e)
{
	_cleanup_free_ char *path = NULL;
	int rc;

	a->dir = fs_absolute(dir, e);
	if (!a->dir)
		return -ERR_NOT_FOUND;
	path = fs_join(a->dir, "block.json");
	rc = block_read(path, &a->block, e);
	if (!rc)
		rc = stepcount_new(&a->block->window, &a->steps, e);
	if (!rc)
		rc = trialenv_secrets(a->block, &a->secrets, e);
	if (rc)
		return rc;
	a->xxh = xcalloc(a->block->n_slots, sizeof *a->xxh);
	a->start_us = clock_utc_us(&clock_system);
	return 0;
}

/* Why no further slot may start, or false. */
static bool must_stop(struct attempt *a, struct signals *signals)
{
	int64_t deadline = a->block->deadline_us;

	signals_read(signals);
	if (signals->stop)
		snprintf(a->reason, sizeof a->reason, "the agent was told to stop (%s)",
			 strsignal(signals->stop));
	else if (deadline && clock_utc_us(&clock_system) >= deadline)
		snprintf(a->reason, sizeof a->reason, "the deadline has passed");
	return a->reason[0] != '\0';
}

static void run_slots(struct attempt *a, struct nodestep *others, struct signals *signals)
{
	struct trial_context c = {.dir = a->dir,
				  .block = a->block,
				  .secrets = &a->secrets,
				  .place = a->place,
				  .others = others,
				  .index = a->index,
				  .steps = a->steps,
				  .guard = a->guard,
				  .signals = signals};
	struct trial_outcome o;
	struct err e = {0};

	for (size_t i = 0; i < a->block->n_slots && !must_stop(a, signals); i++) {
		if (trial_run(&c, &a->block->slots[i], &o, &e)) {
			str_copy(a->reason, sizeof a->reason, e.text);
			return;
		}
		memcpy(a->xxh[a->n_done++], o.xxh, sizeof o.xxh);
		log_info("slot %d, arm %lld: %s%s%s", a->block->slots[i].slot,
			 (long long)a->block->arms[a->block->slots[i].arm_index].arm,
			 record_state_name(o.state), o.reason[0] ? ": " : "", o.reason);
		if (o.state == TRIAL_VOID && signals->stop)
			str_copy(a->reason, sizeof a->reason, o.reason);
	}
}

/* A trial that a stop ended has a record, but the attempt is not complete. */
static bool is_complete(const struct attempt *a)
{
	return a->n_done == a->block->n_slots && !a->reason[0];
}

/* One step for the whole allocation, made when its first block is about to run. */
static void start_others(struct allocation *l, const struct block *b, struct signals *signals)
{
	if (!l->asked && b->sample_nodes && b->sampler_period_ms)
		l->others = nodestep_start(&l->place, l->dirs, signals);
	l->asked = true;
}

/* Every node at the same time, and before anything is measured. */
static void tell_environment(struct allocation *l, const struct attempt *a, struct signals *signals)
{
	nodestep_enter(l->others, a->index);
	nodeenv_write(a->block, a->dir, l->place.node, true);
	nodestep_entered(l->others, signals);
}

int attempt_run(struct allocation *l, size_t index, struct signals *signals, enum attempt_end *end,
		struct err *e)
{
	struct attempt a = {.place = &l->place, .index = index};
	int rc = prepare(&a, l->dirs[index], e);

	if (!rc)
		rc = record_claim(a.dir, a.block, l->place.host, l->place.boot_id, e);
	if (rc == 1) {
		log_info("%s is claimed already: nothing to do", a.dir);
		*end = ATTEMPT_TAKEN;
		rc = 0;
	} else if (!rc) {
		start_others(l, a.block, signals);
		rc = guard_start(a.dir, a.block, nodestep_pid(l->others), &a.guard, e);
		if (!rc)
			tell_environment(l, &a, signals);
		if (!rc)
			run_slots(&a, l->others, signals);
		guard_stop(TAKE(a.guard));
		if (!rc) {
			*end = is_complete(&a) ? ATTEMPT_COMPLETE : ATTEMPT_PARTIAL;
			rc = record_done(
				a.dir, a.block, &l->place, l->others,
				&(struct done_record){.complete = *end == ATTEMPT_COMPLETE,
						      .reason = a.reason,
						      .start_us = a.start_us,
						      .end_us = clock_utc_us(&clock_system),
						      .xxh = a.xxh,
						      .n_done = a.n_done},
				e);
		}
	}
	attempt_free(&a);
	return rc;
}
