/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/sched/sched.h"

#include <stdlib.h>
#include <string.h>

const char *job_state_name(enum job_state s)
{
	switch (s) {
	case JOB_PENDING:
		return "pending";
	case JOB_RUNNING:
		return "running";
	case JOB_ENDED:
		return "ended";
	case JOB_UNKNOWN:
		return "unknown";
	case JOB_GONE:
		return "gone";
	}
	return "unknown";
}

const char *job_end_name(enum job_end s)
{
	switch (s) {
	case END_NONE:
		return "none";
	case END_OK:
		return "ok";
	case END_FAILED:
		return "failed";
	case END_TIMEOUT:
		return "timeout";
	case END_CANCELLED:
		return "cancelled";
	case END_NODE_FAIL:
		return "node_fail";
	case END_PREEMPTED:
		return "preempted";
	case END_OOM:
		return "oom";
	case END_REQUEUED:
		return "requeued";
	case END_LAUNCH_FAILED:
		return "launch_failed";
	case END_DEADLINE:
		return "deadline";
	case END_NEVER_STARTED:
		return "never_started";
	case END_VANISHED:
		return "vanished";
	}
	return "none";
}

bool job_end_parse(const char *word, enum job_end *out)
{
	for (int i = 0; i < JOB_ENDS; i++)
		if (str_eq(word, job_end_name((enum job_end)i))) {
			*out = (enum job_end)i;
			return true;
		}
	return false;
}

const char *pending_for_name(enum pending_for p)
{
	switch (p) {
	case PENDING_TURN:
		return "its turn";
	case PENDING_HELD:
		return "its release";
	case PENDING_NODES:
		return "nodes";
	case PENDING_NEVER:
		return "what never comes";
	}
	return "its turn";
}

/* Out of memory and the time limit may well be what an arm did: its trials' records tell. */
bool job_end_is_infrastructure(enum job_end s)
{
	switch (s) {
	case END_CANCELLED:
	case END_NODE_FAIL:
	case END_PREEMPTED:
	case END_REQUEUED:
	case END_LAUNCH_FAILED:
	case END_DEADLINE:
	case END_NEVER_STARTED:
		return true;
	case END_NONE:
	case END_OK:
	case END_FAILED:
	case END_TIMEOUT:
	case END_OOM:
	case END_VANISHED:
		return false;
	}
	return false;
}

static void trial_steps_done(struct trial_steps *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i].v);
	free(t->v);
}

void attempt_files_done(struct attempt_files *a)
{
	for (size_t i = 0; i < a->n; i++) {
		trial_result_done(&a->trials[i]);
		if (a->quality)
			free(a->quality[i].step_ms);
		if (a->steps)
			trial_steps_done(&a->steps[i]);
	}
	free(a->trials);
	free(a->quality);
	free(a->steps);
	free(a->reason);
	strv_free(&a->nodes);
	strv_free(&a->notes);
	kvs_free(&a->switches);
	for (size_t i = 0; i < a->n_environments; i++) {
		free(a->environments[i].node);
		kvs_free(&a->environments[i].keys);
	}
	free(a->environments);
	memset(a, 0, sizeof *a);
}

const struct sched *sched_find(const char *name)
{
	for (size_t i = 0; sched_table[i]; i++)
		if (str_eq(sched_table[i]->name, name))
			return sched_table[i];
	return NULL;
}
