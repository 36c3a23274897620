/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that the kernel killed because memory ran out, as its counters tell: whose log nobody
 * may read (dmesg), and Slurm is not always there to say so. */
#ifndef FETTLE_AGENT_OOM_H
#define FETTLE_AGENT_OOM_H

#include <stddef.h>
#include <stdint.h>

struct oom_count {
	int64_t own;  /* in our cgroup and those below it; -1: not told */
	int64_t node; /* on the whole node; -1: not told */
};

/* From <root>/proc/self/cgroup, <root>/sys/fs/cgroup (memory.events, memory.oom_control) and
 * <root>/proc/vmstat; root "" is the machine. */
void oom_read(const char *root, struct oom_count *out);

/* What happened between two counts, to be put behind "killed by signal 9": a sentence that begins
 * with ": ", or "". */
void oom_text(const struct oom_count *before, const struct oom_count *after, char *out, size_t n);

#endif
