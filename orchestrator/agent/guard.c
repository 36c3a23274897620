/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/agent/diskuse.h"
#include "orchestrator/agent/procs.h"
#include "orchestrator/agent/sampler.h"
#include "orchestrator/agent/trialenv.h"
#include "orchestrator/base/clock.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"

enum {
	WORK_CHECK_US = 1000000,
	CLEAN_ROUNDS = 500, /* of 20 ms: what a KILL does not end in 10 s is stuck in the kernel */
	CLEAN_ROUND_US = 20000,
};

/* One page that both processes see. */
struct shared {
	_Atomic int slot;
	_Atomic pid_t leader;
	_Atomic int64_t work_bytes;
};

struct guard {
	struct shared *shared;
	pid_t pid;
	int fd; /* a byte means "stop"; end of file that the agent is dead */
};

/* What the child needs. */
struct duty {
	const char *dir;
	const struct block *block;
	struct shared *shared;
	struct sampler *sampler; /* NULL: no samples wanted */
	pid_t agent;
	pid_t skip[3]; /* not of the trial: this process, and the agent's one for other nodes */
	int fd;
};

static int64_t now_us(void)
{
	return clock_mono_us(&clock_system);
}

static char *trial_dir(const char *dir, int slot)
{
	return xasprintf("%s/t%02d", dir, slot);
}

/* --- the agent is dead ------------------------------------------------------------------ */

/* The trial's leader dies with the agent (PDEATHSIG). The others are found by their marks; those
 * last seen below the agent may have dropped them, so they are remembered by the sampler. */
static size_t kill_marked(const struct duty *d, const char *marker, pid_t leader)
{
	struct procs p = {0};
	size_t n;

	procs_scan(&p);
	if (leader)
		procs_mark_session(&p, leader);
	procs_mark_env(&p, marker);
	if (d->sampler)
		sampler_mark_known(d->sampler, &p);
	for (size_t i = 0; i < p.n; i++)
		if (p.v[i].ours && p.v[i].pid != leader)
			procs_mark_tree(&p, p.v[i].pid, (const pid_t[]){getpid(), 0});
	for (size_t i = 0; i < p.n; i++)
		if (p.v[i].pid == getpid())
			p.v[i].ours = false;
	n = procs_count(&p);
	procs_kill(&p, SIGKILL);
	procs_free(&p);
	return n;
}

static void clean_up_after_agent(const struct duty *d)
{
	pid_t leader = atomic_load(&d->shared->leader);
	_cleanup_free_ char *marker = trialenv_marker(d->block, atomic_load(&d->shared->slot));

	if (!leader)
		return;
	for (int i = 0; i < CLEAN_ROUNDS && kill_marked(d, marker, leader) > 0; i++)
		poll(NULL, 0, CLEAN_ROUND_US / 1000);
}

/* --- the loop --------------------------------------------------------------------------- */

static void check_work(const struct duty *d)
{
	_cleanup_free_ char *dir = NULL;
	int slot = atomic_load(&d->shared->slot);

	if (!atomic_load(&d->shared->leader))
		return;
	dir = trial_dir(d->dir, slot);
	atomic_store(&d->shared->work_bytes, diskuse_bytes(dir));
}

static void take_sample(const struct duty *d)
{
	int slot = atomic_load(&d->shared->slot);
	const struct block_slot *s = block_slot_of(d->block, slot);
	_cleanup_free_ char *marker = NULL;

	if (s && atomic_load(&d->shared->leader) && block_launches(d->block, s))
		marker = trialenv_marker(d->block, slot);
	sampler_take(d->sampler,
		     &(struct sampler_scope){.root = d->agent, .skip = d->skip, .marker = marker});
}

/* Returns when told to stop or when the agent is dead; true in the second case. */
static bool serve(const struct duty *d)
{
	int64_t period = d->block->sampler_period_ms * 1000;
	int64_t sample_at = d->sampler ? now_us() : INT64_MAX;
	int64_t work_at = d->block->limits.work_bytes ? now_us() + WORK_CHECK_US : INT64_MAX;

	for (;;) {
		int64_t next = sample_at < work_at ? sample_at : work_at, wait = next - now_us();
		struct pollfd p = {.fd = d->fd, .events = POLLIN};
		char told;

		if (poll(&p, 1,
			 next == INT64_MAX ? -1
			 : wait > 0        ? (int)((wait + 999) / 1000)
					   : 0) > 0)
			return read(d->fd, &told, 1) <= 0;
		if (now_us() >= sample_at) {
			take_sample(d);
			/* A late sample moves the next one: no burst after a stall. */
			sample_at = sample_at + period > now_us() ? sample_at + period
								  : now_us() + period;
		}
		if (now_us() >= work_at) {
			check_work(d);
			work_at = now_us() + WORK_CHECK_US;
		}
	}
}

static void run(struct duty *d)
{
	bool orphaned;

	/* Signals are for the agent, which ends this process when it is done with the trial. */
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	setsid();
	prctl(PR_SET_NAME, "fettle-guard");
	d->skip[0] = getpid();
	if (d->block->sampler_period_ms)
		sampler_open(&(struct sampler_setup){.dir = d->dir,
						     .dcgm_url = d->block->dcgm_url,
						     .period_ms = d->block->sampler_period_ms},
			     &d->sampler);
	orphaned = serve(d);
	if (orphaned)
		clean_up_after_agent(d);
	sampler_close(d->sampler);
	_exit(0);
}

/* --- the agent's side ------------------------------------------------------------------- */

int guard_start(const char *dir, const struct block *b, pid_t other, struct guard **out,
		struct err *e)
{
	struct guard *g = xcalloc(1, sizeof *g);
	struct duty d = {.dir = dir, .block = b, .agent = getpid(), .skip = {0, other, 0}};
	int fd[2] = {-1, -1};

	g->shared = mmap(NULL, sizeof *g->shared, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (g->shared == MAP_FAILED || pipe2(fd, O_CLOEXEC)) {
		free(g);
		return err_sys(e, ERR_IO, "cannot start the agent's second process");
	}
	d.shared = g->shared;
	d.fd = fd[0];
	g->fd = fd[1];
	g->pid = procs_fork_silent();
	if (g->pid == 0) {
		close(fd[1]);
		run(&d);
	}
	close(fd[0]);
	if (g->pid < 0) {
		err_sys(e, ERR_TEMP, "cannot start the agent's second process");
		guard_stop(g);
		return -ERR_TEMP;
	}
	*out = g;
	return 0;
}

void guard_watch(struct guard *g, int slot, pid_t leader)
{
	atomic_store(&g->shared->leader, 0);
	atomic_store(&g->shared->work_bytes, 0);
	atomic_store(&g->shared->slot, slot);
	atomic_store(&g->shared->leader, leader);
}

int64_t guard_work_bytes(const struct guard *g)
{
	return atomic_load(&g->shared->work_bytes);
}

pid_t guard_pid(const struct guard *g)
{
	return g->pid;
}

void guard_stop(struct guard *g)
{
	if (!g)
		return;
	if (g->pid > 0) {
		if (write(g->fd, "q", 1) < 0)
			kill(g->pid, SIGKILL);
		while (waitpid(g->pid, NULL, __WCLONE) < 0 && errno == EINTR)
			;
	}
	close(g->fd);
	munmap(g->shared, sizeof *g->shared);
	free(g);
}
