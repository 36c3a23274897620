/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/sched/slurm_state.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "orchestrator/base/mem.h"

enum {
	STATE_BASE = 0xff,
	STATE_LAUNCH_FAILED = 0x100,
	STATE_REQUEUE = 0x400,
	STATE_REQUEUE_HOLD = 0x800,
	STATE_SPECIAL_EXIT = 0x1000,
	STATE_CONFIGURING = 0x4000,
	STATE_COMPLETING = 0x8000,
	STATE_ANY_REQUEUE = STATE_REQUEUE | STATE_REQUEUE_HOLD | STATE_SPECIAL_EXIT,
	REASON_NONE = 0,
	REASON_BAD_CONSTRAINTS = 21,
	REASON_LAUNCH_FAILURE = 23,
	OOM_SIGNAL = 125, /* task/cgroup reports an out-of-memory kill as this signal */
	SIGNAL_STATUS = 128,
	US_PER_S = 1000000,
};

enum slurm_base {
	SLURM_PENDING,
	SLURM_RUNNING,
	SLURM_SUSPENDED,
	SLURM_COMPLETED,
	SLURM_CANCELLED,
	SLURM_FAILED,
	SLURM_TIMEOUT,
	SLURM_NODE_FAIL,
	SLURM_PREEMPTED,
	SLURM_BOOT_FAIL,
	SLURM_DEADLINE,
	SLURM_OOM,
};

/* A node's health check takes so long at most; only a guard against sites where our signal of a
 * cancelled job gets lost. */
enum { PROLOG_MAX_S = 300 };

static const char *const base_names[] = {
	[SLURM_PENDING] = "PENDING",     [SLURM_RUNNING] = "RUNNING",
	[SLURM_SUSPENDED] = "SUSPENDED", [SLURM_COMPLETED] = "COMPLETED",
	[SLURM_CANCELLED] = "CANCELLED", [SLURM_FAILED] = "FAILED",
	[SLURM_TIMEOUT] = "TIMEOUT",     [SLURM_NODE_FAIL] = "NODE_FAIL",
	[SLURM_PREEMPTED] = "PREEMPTED", [SLURM_BOOT_FAIL] = "BOOT_FAIL",
	[SLURM_DEADLINE] = "DEADLINE",   [SLURM_OOM] = "OUT_OF_MEMORY",
};

static bool was_requeued(const struct slurm_raw *r)
{
	return r->restarts || (r->state & STATE_ANY_REQUEUE);
}

static bool has_text(const char *s)
{
	return s && *s;
}

/* A prolog that fails leaves a job that was given nodes, ended soon after its start, and was
 * cancelled by nobody: a job that ran and was cancelled carries the signal. */
static enum job_end decode_cancelled(const struct slurm_raw *r)
{
	bool was_placed = has_text(r->nodes) && r->start_s > 0 &&
			  r->end_s - r->start_s <= PROLOG_MAX_S;

	return was_placed && r->exit == 0 && r->reason == REASON_NONE ? END_LAUNCH_FAILED
								      : END_CANCELLED;
}

/* 22.05 says JobLaunchFailure also of a script that a signal killed: then the signal tells. */
static enum job_end decode_failed(const struct slurm_raw *r)
{
	if (WIFSIGNALED(r->exit))
		return WTERMSIG(r->exit) == OOM_SIGNAL ? END_OOM : END_FAILED;
	if ((r->state & STATE_LAUNCH_FAILED) || r->reason == REASON_LAUNCH_FAILURE ||
	    r->reason == REASON_BAD_CONSTRAINTS)
		return END_LAUNCH_FAILED;
	return END_FAILED;
}

static enum job_end decode_end(const struct slurm_raw *r)
{
	switch ((enum slurm_base)(r->state & STATE_BASE)) {
	case SLURM_PENDING:
	case SLURM_RUNNING:
	case SLURM_SUSPENDED:
		return END_NONE;
	case SLURM_COMPLETED:
		return END_OK;
	case SLURM_CANCELLED:
		return decode_cancelled(r);
	case SLURM_DEADLINE: /* taken out of the queue because it could no longer be in time */
		return END_DEADLINE;
	case SLURM_FAILED:
		return decode_failed(r);
	case SLURM_TIMEOUT:
		return END_TIMEOUT;
	case SLURM_NODE_FAIL:
	case SLURM_BOOT_FAIL:
		return END_NODE_FAIL;
	case SLURM_PREEMPTED:
		return END_PREEMPTED;
	case SLURM_OOM:
		return END_OOM;
	}
	return END_NONE;
}

/* While it is completing its processes may still be there: the nodes are not free yet. */
static enum job_state decode_state(const struct slurm_raw *r)
{
	uint32_t base = r->state & STATE_BASE;

	if (base >= ARRAY_LEN(base_names))
		return JOB_UNKNOWN;
	if (base == SLURM_PENDING || (base == SLURM_RUNNING && (r->state & STATE_CONFIGURING)))
		return JOB_PENDING;
	if (base <= SLURM_SUSPENDED || (r->state & STATE_COMPLETING))
		return JOB_RUNNING;
	return JOB_ENDED;
}

static void explain(const struct slurm_raw *r, struct sched_status *out)
{
	uint32_t base = r->state & STATE_BASE;
	const char *name = base < ARRAY_LEN(base_names) ? base_names[base] : "unknown state";
	const char *why = has_text(r->reason_text) && strcmp(r->reason_text, "None") != 0
				  ? r->reason_text
				  : "";

	if (base == SLURM_PENDING && !was_requeued(r))
		snprintf(out->reason, sizeof(out->reason), "%s", why);
	else if (base == SLURM_RUNNING && !was_requeued(r) && !(r->state & STATE_COMPLETING))
		snprintf(out->reason, sizeof(out->reason), "%s",
			 r->state & STATE_CONFIGURING ? "CONFIGURING" : "");
	else
		snprintf(out->reason, sizeof(out->reason), "%s%s%s%s%s", name,
			 r->state & STATE_COMPLETING ? "+COMPLETING" : "", *why ? " (" : "", why,
			 *why ? ")" : "");
}

/* Does the reason begin with this word? */
static bool reason_is(const char *text, const char *word)
{
	size_t n = strlen(word);

	return strncmp(text, word, n) == 0 && (!text[n] || strchr(" ,_(", text[n]));
}

static bool reason_in(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (reason_is(text, *words))
			return true;
	return false;
}

/* The limits of an association or QOS that one job of its size meets for ever. Those over all jobs
 * of a user or group pass when other jobs end. */
static bool limit_of_one_job(const char *text)
{
	return (strncmp(text, "QOS", 3) == 0 || strncmp(text, "Assoc", 5) == 0) &&
	       (strstr(text, "PerJob") || strstr(text, "PerNode") || strstr(text, "QOSMin"));
}

enum pending_for slurm_state_pending_for(const char *reason_text)
{
	static const char *const held[] = {"JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue",
					   "launch failed requeued held", NULL};
	static const char *const nodes[] = {"ReqNodeNotAvail",
					    "Nodes required for job are DOWN",
					    "Nodes_required_for_job_are_DOWN",
					    "PartitionDown",
					    "PartitionInactive",
					    NULL};
	static const char *const never[] = {"BadConstraints",
					    "PartitionNodeLimit",
					    "PartitionTimeLimit",
					    "PartitionConfig",
					    "InvalidAccount",
					    "InvalidQOS",
					    "AccountNotAllowed",
					    "QOSNotAllowed",
					    "DependencyNeverSatisfied",
					    "MaxMemPerLimit",
					    "DeadLine",
					    "ReservationDeleted",
					    "Reservation was deleted",
					    NULL};
	const char *text = reason_text ? reason_text : "";

	if (reason_in(text, held))
		return PENDING_HELD;
	if (reason_in(text, nodes))
		return PENDING_NODES;
	return reason_in(text, never) || limit_of_one_job(text) ? PENDING_NEVER : PENDING_TURN;
}

static int exit_status(int wait_status)
{
	return WIFSIGNALED(wait_status) ? SIGNAL_STATUS + WTERMSIG(wait_status)
					: WEXITSTATUS(wait_status);
}

void slurm_state_decode(const struct slurm_raw *r, struct sched_status *out, bool *still_queued)
{
	*out = (struct sched_status){.state = decode_state(r)};
	str_copy(out->id, sizeof(out->id), r->job ? r->job : "");
	str_copy(out->token, sizeof(out->token), r->name ? r->name : "");
	str_copy(out->nodes, sizeof(out->nodes), r->nodes ? r->nodes : "");
	explain(r, out);
	out->suspended = r->suspended || (r->state & STATE_BASE) == SLURM_SUSPENDED;
	if (out->state == JOB_PENDING)
		out->pending = slurm_state_pending_for(r->reason_text);
	*still_queued = false;
	if (was_requeued(r)) {
		*still_queued = out->state != JOB_ENDED;
		out->state = JOB_ENDED;
		out->end = END_REQUEUED;
	} else if (out->state == JOB_ENDED) {
		out->end = decode_end(r);
	}
	if (out->state == JOB_ENDED)
		out->exit_status = exit_status(r->exit);
	if (out->state != JOB_PENDING)
		out->start_us = r->start_s * US_PER_S;
	if (out->state == JOB_ENDED)
		out->end_us = r->end_s * US_PER_S;
}

bool slurm_state_is_refusal(const struct slurm_raw *r)
{
	return (r->state & STATE_BASE) == SLURM_FAILED && r->reason == REASON_BAD_CONSTRAINTS &&
	       !has_text(r->nodes);
}
