/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The processes of a trial, as /proc shows them. A workload may fork, leave its session, daemonise
 * or (under srun) have its ranks started by somebody else, so three marks are used together:
 * descent from a root (the agent is their subreaper: orphans stay its descendants), the session of
 * the trial's leader, and the variable FETTLE_TRIAL=<token>:<slot> that each process of this node
 * inherits. Pid plus start time is an identity; a pid alone never is.
 */
#ifndef FETTLE_AGENT_PROCS_H
#define FETTLE_AGENT_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct procs_one {
	pid_t pid, ppid, session;
	char state;
	uint64_t start_ticks;
	int64_t utime, stime; /* clock ticks of this process alone */
	int64_t threads, rss_pages;
	bool ours;  /* matched by procs_mark_* */
	bool asked; /* its environment was looked at when it was no longer young, or none counts */
};

struct procs {
	struct procs_one *v; /* by pid */
	size_t n, cap;
};

int procs_read(pid_t pid, struct procs_one *out); /* -1: gone */
void procs_scan(struct procs *p);                 /* replace by all processes that there are now */
/* The same without those that `kernel` lists, and without a look at those that `before` (an earlier
 * result of procs_mark_env_again) knows to be others': they stand in the result as they were then.
 * Nodes have thousands of kernel threads and hundreds of daemons, which are most of the cost. */
void procs_scan_again(struct procs *p, const struct procs *before, const struct procs *kernel);
void procs_kernel_threads(
	struct procs *out); /* replace by the kernel's threads that there are now */
void procs_free(struct procs *p);

/* Mark as ours: all descendants of root (not root itself), except those that `skip` lists (it ends
 * with 0; NULL: none) and what descends from them. */
void procs_mark_tree(struct procs *p, pid_t root, const pid_t *skip);
void procs_mark_session(struct procs *p, pid_t session);
/* Those of our user whose environment at exec held the line `marker`; costs a read of
 * /proc/PID/environ each. */
void procs_mark_env(struct procs *p, const char *marker);
/* The same, asking only those that `before` (an earlier result for the same marker) cannot answer
 * for. Without a marker (NULL) descent alone tells, and nobody is adopted later. */
void procs_mark_env_again(struct procs *p, const struct procs *before, const char *marker);
size_t procs_count(const struct procs *p); /* marked and not zombies */

/* fork() without an exit signal: a plain wait does not see the child, __WCLONE does. */
pid_t procs_fork_silent(void);

/* Signal each marked process if it is still the same one. */
void procs_kill(const struct procs *p, int signo);

#endif
