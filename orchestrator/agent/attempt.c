/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/attempt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/agent/block.h"
#include "orchestrator/agent/guard.h"
#include "orchestrator/agent/record.h"
#include "orchestrator/agent/trial.h"
#include "orchestrator/agent/trialenv.h"
#include "orchestrator/agent/stepcount.h"
#include "orchestrator/base/clock.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/log.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"

enum {
	HOST_MAX = 256,
	NODES_TEXT_MAX = 1 << 20, /* 10,000 names of 100 bytes */
	EXPAND_TIMEOUT_US = 20000000,
};

struct attempt {
	char *dir;
	struct block *block;
	struct kvs secrets;
	char host[HOST_MAX], boot_id[37];
	struct strv nodes;
	struct stepcount *steps;
	struct guard *guard;
	char (*xxh)[33];
	size_t n_done;
	char reason[512]; /* of a partial end */
	int64_t start_us;
};

static void add_lines(const char *text, struct strv *out)
{
	while (*text) {
		size_t n = strcspn(text, "\n,");
		_cleanup_free_ char *name = xstrndup(text, n);

		if (n)
			strv_add(out, name);
		text += n + (text[n] != '\0');
	}
}

/* "n[1-4]" needs Slurm's own reader; a list without brackets does not. */
static void expand_nodes(const char *list, struct strv *out)
{
	char *argv[] = {(char *)"scontrol", (char *)"show", (char *)"hostnames",
			(char *)(uintptr_t)list, NULL};
	const struct proc_spawn s = {.file = "scontrol", .argv = argv, .fd_in = -1, .fd_err = -1};
	struct buf b = {0};
	int status = 0;

	if (strchr(list, '[') &&
	    proc_capture(&s, EXPAND_TIMEOUT_US, NODES_TEXT_MAX, &b, NULL, &status, NULL) == 0 &&
	    status == 0)
		add_lines(b.data ? b.data : "", out);
	if (out->n == 0 && strchr(list, '['))
		strv_add(out, list);
	else if (out->n == 0)
		add_lines(list, out);
	buf_free(&b);
}

static void find_place(struct attempt *a)
{
	const char *list = getenv("SLURM_JOB_NODELIST"), *name = getenv("SLURMD_NODENAME");

	if (gethostname(a->host, sizeof a->host - 1))
		str_copy(a->host, sizeof a->host, "localhost");
	proc_boot_id(a->boot_id);
	if (list && *list)
		expand_nodes(list, &a->nodes);
	else
		strv_add(&a->nodes, name && *name ? name : a->host);
}

static void attempt_free(struct attempt *a)
{
	guard_stop(a->guard);
	stepcount_free(a->steps);
	kvs_free(&a->secrets);
	strv_free(&a->nodes);
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
	find_place(a);
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

static void run_slots(struct attempt *a, struct signals *signals)
{
	struct trial_context c = {.dir = a->dir,
				  .block = a->block,
				  .secrets = &a->secrets,
				  .host = a->host,
				  .boot_id = a->boot_id,
				  .nodes = &a->nodes,
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

int attempt_run(const char *dir, struct signals *signals, enum attempt_end *end, struct err *e)
{
	struct attempt a = {0};
	int rc = prepare(&a, dir, e);

	if (!rc)
		rc = record_claim(a.dir, a.block, a.host, a.boot_id, e);
	if (rc == 1) {
		log_info("%s is claimed already: nothing to do", a.dir);
		*end = ATTEMPT_TAKEN;
		rc = 0;
	} else if (!rc) {
		rc = guard_start(a.dir, a.block, &a.guard, e);
		if (!rc)
			run_slots(&a, signals);
		guard_stop(TAKE(a.guard));
		if (!rc) {
			*end = is_complete(&a) ? ATTEMPT_COMPLETE : ATTEMPT_PARTIAL;
			rc = record_done(
				a.dir, a.block, &a.nodes,
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
