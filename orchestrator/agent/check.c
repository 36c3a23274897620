/* SPDX-License-Identifier: GPL-2.0-or-later */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "orchestrator/agent/check.h"

#include <errno.h>
#include <fcntl.h>
#include <pcre2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/agent/procs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"
#include "orchestrator/base/str.h"

struct checks {
	bool bad;
};

/* need: the agent cannot do its work without it; else `without` says what is lost. */
static void report(struct checks *c, const char *name, bool works, bool need, const char *detail)
{
	printf("%s %s: %s\n", works ? "ok" : need ? "bad" : "no", name, detail);
	c->bad = c->bad || (need && !works);
}

/* A grandchild whose parent has ended must become ours. */
static bool adopts_orphans(void)
{
	int fd[2];
	pid_t child, orphan = 0;
	bool ours = false;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1) || pipe2(fd, O_CLOEXEC))
		return false;
	child = fork();
	if (child == 0) {
		pid_t inner = fork();

		if (inner == 0) {
			pause();
			_exit(0);
		}
		_exit(write(fd[1], &inner, sizeof inner) != (ssize_t)sizeof inner);
	}
	if (child > 0 && read(fd[0], &orphan, sizeof orphan) == (ssize_t)sizeof orphan &&
	    orphan > 0) {
		waitpid(child, NULL, 0);
		kill(orphan, SIGKILL);
		ours = waitpid(orphan, NULL, 0) == orphan;
	}
	close(fd[0]);
	close(fd[1]);
	return ours;
}

static bool reads_proc(void)
{
	struct procs_one one;
	_cleanup_free_ char *path = proc_env(getpid(), "PATH");

	return procs_read(getpid(), &one) == 0 && one.ppid == getppid() &&
	       str_eq(path, getenv("PATH"));
}

static bool has_jit(void)
{
	uint32_t jit = 0;
	pcre2_code *code;
	int error;
	PCRE2_SIZE at;
	bool works;

	if (pcre2_config(PCRE2_CONFIG_JIT, &jit) || !jit)
		return false;
	code = pcre2_compile((PCRE2_SPTR) "a+b", PCRE2_ZERO_TERMINATED, 0, &error, &at, NULL);
	works = code && pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
	pcre2_code_free(code);
	return works;
}

static bool has_inotify(void)
{
	int fd = inotify_init1(IN_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool check_print(void)
{
	_cleanup_free_ char *smi = proc_which("nvidia-smi", NULL), *srun = proc_which("srun", NULL);
	struct checks c = {0};
	char boot[37];

	proc_boot_id(boot);
	report(&c, "subreaper", adopts_orphans(), true,
	       "daemons that a trial leaves are found and ended");
	report(&c, "proc", reads_proc(), true,
	       "arguments and environment of a trial can be proved");
	report(&c, "boot-id", boot[0] != '\0', false,
	       boot[0] ? boot : "a claim of an earlier boot is not told apart");
	report(&c, "shm", access("/dev/shm", W_OK) == 0, false,
	       "/dev/shm, cleaned after each trial");
	report(&c, "inotify", has_inotify(), false,
	       "metrics.jsonl is followed without delay, else every 20 ms");
	report(&c, "pattern-jit", has_jit(), false,
	       "the step pattern is compiled, else interpreted");
	report(&c, "nvidia-smi", smi != NULL, false, smi ? smi : "GPU samples are absent");
	report(&c, "srun", srun != NULL, false,
	       srun ? srun : "trials over several nodes need a launcher");
	return !c.bad;
}
