/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes: start one from arrays (never through a shell), wait with a deadline, and recognise
 * one again after our own restart. A pid alone is no identity: pid plus start time is.
 */
#ifndef FETTLE_BASE_PROC_H
#define FETTLE_BASE_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

struct proc_id {
	pid_t pid;
	uint64_t start_ticks; /* field 22 of /proc/PID/stat */
};

struct proc_spawn {
	const char *file; /* looked up in PATH of `env` (or ours) if it holds no slash */
	char *const *argv;
	char *const *env;          /* NULL: inherit */
	const char *workdir;       /* NULL: inherit */
	int fd_in, fd_out, fd_err; /* -1: /dev/null */
	bool new_session;          /* setsid */
	bool die_with_parent;      /* PR_SET_PDEATHSIG SIGKILL */
};

/* Start it. Failure of exec itself (no such file, not executable) is reported here as ERR_NOT_FOUND
 * or ERR_IO naming the file. Signal mask and dispositions of the child are the defaults. */
int proc_spawn(const struct proc_spawn *s, struct proc_id *out, struct err *e);

/* same pid, same start time, not a zombie */
bool proc_alive(const struct proc_id *id);
int proc_start_ticks(pid_t pid, uint64_t *out, struct err *e);
void proc_boot_id(char out[37]); /* "" when unknown */
/* Which machine this is, as a lease knows it: name ("unknown" when there is none) and boot. Tests
 * of two login nodes on one machine say so in $FETTLE_TEST_HOST and $FETTLE_TEST_BOOT_ID. */
void proc_host(char name[65], char boot_id[37]);

/* Wait for a child: 0 and *status (as waitpid), or -ERR_TEMP after timeout_us (< 0: never). */
int proc_wait(const struct proc_id *id, int64_t timeout_us, int *status, struct err *e);

/* Run to the end and keep up to max bytes of its stdout (and of stderr in err_out, may be NULL).
 * Killed after timeout_us: -ERR_TEMP. A non-zero exit is no error: see *status. */
int proc_capture(const struct proc_spawn *s, int64_t timeout_us, size_t max, struct buf *out,
		 struct buf *err_out, int *status, struct err *e);

/* Look `file` up in the PATH value given (NULL: ours). Returns a heap path or NULL. */
char *proc_which(const char *file, const char *path);

/* argv of a live process, or an environment variable of it; heap, NULL when not readable. */
int proc_cmdline(pid_t pid, struct strv *out);
char *proc_env(pid_t pid, const char *name);

#endif
