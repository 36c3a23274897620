/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/agent/capture.h"
#include "orchestrator/agent/diskuse.h"
#include "orchestrator/agent/evidence.h"
#include "orchestrator/agent/launcher.h"
#include "orchestrator/agent/oom.h"
#include "orchestrator/agent/procs.h"
#include "orchestrator/agent/record.h"
#include "orchestrator/agent/shm.h"
#include "orchestrator/agent/trialenv.h"
#include "orchestrator/base/clock.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/log.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"

enum {
	READ_CHUNK = 256 << 10,
	READS_A_TURN = 16,          /* then signals and clocks are looked at again */
	PIPE_BYTES = 1 << 20,       /* a workload that prints in bursts does not wait for us */
	METRICS_POLL_US = 20000,    /* without inotify */
	METRICS_SAFETY_US = 200000, /* with it: a file replaced by rename makes no event on the old
				       one */
	DISK_CHECK_US = 250000,     /* how often the guard's figure is read */
	EVIDENCE_FIRST_US = 100000, /* then at twice the time, until the measured window has begun
				     */
	LOOK_WAIT_US = 5000000,     /* for the evidence of other nodes, at the end of the window */
	SETTLE_US = 100000, /* children that are about to exit on their own are no leftovers */
	KILL_ROUND_US = 20000,
	TRIES_MAX = 3,              /* of a launcher that fails before the workload starts */
	RETRY_PAUSE_US = 2000000,   /* and twice that the second time */
	KILL_GIVE_UP_US = 10000000, /* stuck in the kernel (D): no signal helps */
	SHELL_SIGNAL = 128, /* a shell exits with this and the signal that ended its child */
	OOM_TEXT_MAX = 128,
};
static const char SHM_DIR[] = "/dev/shm";

enum phase {
	PHASE_RUN,
	PHASE_TERM,      /* the group was asked to end */
	PHASE_KILL,      /* and killed */
	PHASE_SETTLE,    /* the leader has ended, others still live */
	PHASE_REST_TERM, /* these were asked to end */
	PHASE_REST_KILL,
	PHASE_DONE,
};

struct run {
	const struct trial_context *c;
	const struct block_slot *slot;
	const struct block_arm *arm;
	char *dir, *metrics, *marker;
	struct trialenv env;
	struct capture *capture;
	struct shm_list shm;
	struct proc_id leader;
	bool launched; /* by srun or the like: see block_launches() */
	bool leader_ended;
	int status;            /* of the leader, as wait4 */
	int out_fd, notify_fd; /* -1: closed, or none */
	enum phase phase;
	int64_t start_mono, phase_until, evidence_at, metrics_at, disk_at;
	int64_t looked_at; /* when the other nodes were asked last */
	bool evidence_final;
	struct rusage usage;
	struct oom_count oom; /* before it began */
	struct trial_record r;
};

static int64_t mono_us(void)
{
	return clock_mono_us(&clock_system);
}

static int64_t utc_us(void)
{
	return clock_utc_us(&clock_system);
}

/* The first word on what went wrong stays. */
__attribute__((format(printf, 4, 5))) static void conclude(struct run *t, enum trial_state state,
							   const char *ended_by, const char *fmt,
							   ...)
{
	va_list ap;

	if (t->r.ended_by)
		return;
	t->r.state = state;
	t->r.ended_by = ended_by;
	va_start(ap, fmt);
	vsnprintf(t->r.reason, sizeof t->r.reason, fmt, ap);
	va_end(ap);
}

/* --- before ----------------------------------------------------------------------------- */

/* What a trial writes there is for itself: a later one must not find it, and a campaign of
 * thousands of trials must not keep the caches and checkpoints of each. */
static const char *const own_dirs[] = {"work", "tmp", "cache", "ckpt"};

static int make_dirs(struct run *t, struct err *e)
{
	int rc = fs_mkdirs(t->dir, 0700, e);

	for (size_t i = 0; i < ARRAY_LEN(own_dirs) && !rc; i++) {
		_cleanup_free_ char *path = fs_join(t->dir, own_dirs[i]);

		rc = fs_mkdirs(path, 0700, e);
	}
	if (!rc && t->c->block->profiler.n) { /* kept: a profiler makes none of its own */
		_cleanup_free_ char *path = fs_join(t->dir, "profile");

		rc = fs_mkdirs(path, 0700, e);
	}
	return rc;
}

static void remove_dirs(const struct run *t)
{
	for (size_t i = 0; i < ARRAY_LEN(own_dirs); i++) {
		_cleanup_free_ char *path = fs_join(t->dir, own_dirs[i]);
		struct err e = {0};

		if (fs_remove_tree(path, &e))
			log_warn("%s", e.text);
	}
}

/* Wake up when the workload writes a metric. The file is made here, so that it can be watched. */
static void watch_metrics(struct run *t)
{
	int fd;

	if (t->c->block->window.source != WINDOW_METRICS || t->c->block->window.steps == 0)
		return;
	fd = fs_create(t->metrics, O_WRONLY, 0600);
	if (fd >= 0)
		close(fd);
	t->metrics_at = 0;
	if (t->launched || fs_is_network(t->metrics))
		return; /* another node may write it: no event comes */
	t->notify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (t->notify_fd >= 0 && inotify_add_watch(t->notify_fd, t->metrics, IN_MODIFY) < 0) {
		close(t->notify_fd);
		t->notify_fd = -1;
	}
}

static int prepare(struct run *t, struct err *e)
{
	int rc = make_dirs(t, e);

	if (!rc)
		rc = trialenv_make(t->c->block, t->slot, t->dir, t->c->secrets, t->c->place->host,
				   &t->env, e);
	if (!rc)
		rc = capture_open(t->dir, t->c->block->limits.log_bytes,
				  t->c->block->window.source == WINDOW_OUT &&
						  *t->c->block->window.pattern
					  ? stepcount_line
					  : NULL,
				  t->c->steps, &t->capture, e);
	if (!rc) {
		watch_metrics(t);
		shm_before(SHM_DIR, &t->shm);
	}
	return rc;
}

/* What its arm sets and takes out, and what the block declares, holds inside a container, too. */
static void declared(const struct run *t, struct kvs *env)
{
	const struct strv *names = &t->c->block->container_env;

	for (size_t i = 0; i < names->n; i++)
		if (kvs_get(&t->env.vars, names->v[i]))
			kvs_set(env, names->v[i], kvs_get(&t->env.vars, names->v[i]));
	for (size_t i = 0; i < t->arm->env.n; i++)
		kvs_set(env, t->arm->env.v[i].key, t->arm->env.v[i].value);
	for (size_t i = 0; i < t->arm->unset.n; i++)
		kvs_set(env, t->arm->unset.v[i], NULL);
}

/* So do the agent's own variables and the secrets, whose values are no arguments: they differ from
 * trial to trial, or must not be seen. */
static int enter_container(const struct run *t, struct strv *argv, struct err *e)
{
	const struct block *b = t->c->block;
	struct kvs env = {0};
	struct strv by_name = {0};
	int rc;

	declared(t, &env);
	strv_copy(&by_name, &b->secrets);
	for (size_t i = 0; i < t->env.added.n; i++)
		strv_add(&by_name, t->env.added.v[i].key);
	rc = container_enter(&b->container,
			     &(struct container_use){.workdir = b->workdir,
						     .own_dir = t->c->dir,
						     .env = &env,
						     .by_name = &by_name},
			     argv, e);
	kvs_free(&env);
	strv_free(&by_name);
	return rc;
}

static int make_argv(struct run *t, struct err *e)
{
	const struct block *b = t->c->block;
	const struct strv *launch = block_launch(b, t->slot);
	struct strv *argv = &t->r.argv;
	int rc = 0;

	for (size_t i = 0; i < launch->n; i++)
		strv_add(argv, launch->v[i]);
	if (b->container.runtime)
		rc = enter_container(t, argv, e);
	if (block_profiles(b, kvs_get(&t->env.vars, "PATH")))
		for (size_t i = 0; i < b->profiler.n; i++)
			strv_add(argv, b->profiler.v[i]);
	for (size_t i = 0; i < t->arm->argv.n; i++)
		strv_add(argv, t->arm->argv.v[i]);
	strv_end(argv);
	return rc;
}

/* The workload cannot be started: its own fault (a wrong name), or the node's (no memory, no pids).
 */
static void explain_start(struct run *t, const char *file, int rc, const struct err *e)
{
	const char *path = kvs_get(&t->env.vars, "PATH");
	_cleanup_free_ char *found = proc_which(file, path ? path : "");

	if (rc == -ERR_TEMP)
		conclude(t, TRIAL_VOID, "exec", "%s", e->text);
	else if (!strchr(file, '/') && !found)
		conclude(t, TRIAL_FAILED, "exec", "command not found: %s (PATH=%s)", file,
			 path ? path : "");
	else if (strchr(file, '/') && !found && access(t->c->block->workdir, X_OK) == 0)
		conclude(t, TRIAL_FAILED, "exec", "command not found or not executable: %s (%s)",
			 file, e->text);
	else
		conclude(t, TRIAL_FAILED, "exec", "%s", e->text);
}

static int start(struct run *t, struct err *e)
{
	const struct strv *argv = &t->r.argv;
	struct proc_spawn s = {.env = t->env.envp.v,
			       .workdir = t->c->block->workdir,
			       .fd_in = -1,
			       .new_session = true,
			       .die_with_parent = true};
	int fd[2], rc;

	if ((rc = make_argv(t, e)) < 0)
		return rc;
	if (pipe2(fd, O_CLOEXEC))
		return err_sys(e, ERR_IO, "cannot make a pipe for the output of the trial");
	fcntl(fd[0], F_SETFL, O_NONBLOCK);
	fcntl(fd[1], F_SETPIPE_SZ, PIPE_BYTES);
	nodestep_trial(t->c->others, t->c->index, t->slot->slot, &t->env.added);
	s.file = argv->v[0];
	s.argv = argv->v;
	s.fd_out = s.fd_err = fd[1];
	t->r.start_us = utc_us();
	oom_read("", &t->oom);
	t->start_mono = mono_us();
	stepcount_reset(t->c->steps, t->r.start_us);
	rc = proc_spawn(&s, &t->leader, e);
	close(fd[1]);
	t->out_fd = fd[0];
	if (rc) {
		explain_start(t, s.file, rc, e);
		t->phase = PHASE_DONE;
	} else {
		guard_watch(t->c->guard, t->slot->slot, t->leader.pid);
	}
	return 0;
}

/* --- evidence --------------------------------------------------------------------------- */

static void look_at_ranks(struct run *t, bool quick)
{
	const struct evidence_spec s = {.block = t->c->block,
					.node = t->c->place->node,
					.secrets = t->c->secrets,
					.added = &t->env.added,
					.marker = t->launched ? t->marker : NULL};

	if (quick)
		evidence_quick(&s, t->leader.pid, &t->r.evidence);
	else
		evidence_take(&s, t->leader.pid, &t->r.evidence);
}

/* Again and again until the window is being measured, so that a trial that never gets there has
 * evidence too, and one without a window has it from the second half of its run. */
static void evidence_turn(struct run *t)
{
	int64_t age = mono_us() - t->start_mono;

	if (t->evidence_final || t->phase != PHASE_RUN)
		return;
	if (stepcount_measuring(t->c->steps))
		t->evidence_final = true;
	else if (age < t->evidence_at)
		return;
	t->evidence_at = 2 * age;
	nodestep_look(t->c->others);
	t->looked_at = mono_us();
	look_at_ranks(t, false);
}

/* --- output and metrics ----------------------------------------------------------------- */

/* A full disk is the node's fault, unless the trial itself filled it. */
static void own_trouble(struct run *t, const char *text)
{
	int64_t limit = t->c->block->limits.work_bytes;

	if (limit && diskuse_bytes(t->dir) > limit)
		conclude(t, TRIAL_FAILED, "disk", "wrote more than %lld bytes into its directory",
			 (long long)limit);
	conclude(t, TRIAL_VOID, "io", "the agent could not keep the trial's output: %s", text);
}

/* Returns true when there is more. */
static bool read_output(struct run *t)
{
	static char chunk[READ_CHUNK];
	struct err e = {0};

	for (int i = 0; i < READS_A_TURN && t->out_fd >= 0; i++) {
		ssize_t n = read(t->out_fd, chunk, sizeof chunk);

		if (n < 0)
			return false;
		if (n == 0) {
			close(t->out_fd);
			t->out_fd = -1;
			return false;
		}
		if (capture_put(t->capture, chunk, (size_t)n, utc_us(), &e))
			own_trouble(t, e.text);
		if (stepcount_full(t->c->steps) && t->phase == PHASE_RUN)
			return false; /* the window ends now, not after the rest of the burst */
	}
	return t->out_fd >= 0;
}

static void read_metrics(struct run *t)
{
	char events[4096];

	if (t->notify_fd >= 0)
		while (read(t->notify_fd, events, sizeof events) > 0)
			;
	stepcount_poll_metrics(t->c->steps, t->metrics, utc_us());
	t->metrics_at = mono_us() + (t->notify_fd >= 0 ? METRICS_SAFETY_US : METRICS_POLL_US);
}

/* --- ending ----------------------------------------------------------------------------- */

static void enter(struct run *t, enum phase phase, int64_t us)
{
	t->phase = phase;
	t->phase_until = mono_us() + us;
}

static void end_group(struct run *t)
{
	int64_t grace = t->c->block->limits.grace_s * 1000000;

	if (grace > 0)
		kill(-t->leader.pid, SIGTERM);
	enter(t, PHASE_TERM, grace);
}

/* Each process of the trial that is left, however it tried to leave. Returns how many there are. */
static size_t signal_rest(struct run *t, int signo)
{
	const pid_t own[] = {guard_pid(t->c->guard), nodestep_pid(t->c->others), 0};
	struct procs p = {0};
	size_t n;

	procs_scan(&p);
	procs_mark_tree(&p, getpid(), own);
	procs_mark_session(&p, t->leader.pid);
	if (t->launched || signo == SIGKILL)
		procs_mark_env(&p, t->marker);
	n = procs_count(&p);
	procs_kill(&p, signo);
	procs_free(&p);
	return n;
}

static void add_usage(struct rusage *sum, const struct rusage *u)
{
	timeradd(&sum->ru_utime, &u->ru_utime, &sum->ru_utime);
	timeradd(&sum->ru_stime, &u->ru_stime, &sum->ru_stime);
	if (u->ru_maxrss > sum->ru_maxrss)
		sum->ru_maxrss = u->ru_maxrss;
}

/* Children, and descendants whose parents died (we are their subreaper). True when none is left at
 * all. */
static bool reap(struct run *t)
{
	struct rusage u;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &u)) > 0) {
		add_usage(&t->usage, &u);
		if (pid == t->leader.pid) {
			t->leader_ended = true;
			t->status = status;
			t->r.wall_us = mono_us() - t->start_mono;
		}
	}
	return pid < 0 && errno == ECHILD;
}

/* Under a launcher ranks may live that are nobody's descendants here. */
static bool strangers_left(struct run *t)
{
	return t->launched && signal_rest(t, 0) > 0;
}

static void children_turn(struct run *t)
{
	bool none = reap(t);

	if (!t->leader_ended)
		return;
	if (none && !(t->phase != PHASE_DONE && strangers_left(t))) {
		t->phase = PHASE_DONE;
		return;
	}
	if (t->phase == PHASE_RUN || t->phase == PHASE_TERM || t->phase == PHASE_KILL)
		enter(t, PHASE_SETTLE, SETTLE_US);
}

/* A phase lasted as long as it may. */
static void phase_over(struct run *t)
{
	int64_t grace = t->c->block->limits.grace_s * 1000000;

	switch (t->phase) {
	case PHASE_TERM:
		kill(-t->leader.pid, SIGKILL);
		enter(t, PHASE_KILL, KILL_GIVE_UP_US);
		break;
	case PHASE_KILL:
		t->r.cleaned = false;
		t->phase = PHASE_DONE;
		break;
	case PHASE_SETTLE:
		t->r.leftovers = signal_rest(t, SIGTERM);
		enter(t, PHASE_REST_TERM, grace);
		break;
	case PHASE_REST_TERM:
		signal_rest(t, SIGKILL);
		enter(t, PHASE_REST_KILL, KILL_GIVE_UP_US);
		break;
	case PHASE_REST_KILL:
		t->r.cleaned = signal_rest(t, SIGKILL) == 0;
		t->phase = PHASE_DONE;
		break;
	case PHASE_RUN:
	case PHASE_DONE:
		break;
	}
}

static void check_limits(struct run *t)
{
	const struct block_limits *l = &t->c->block->limits;

	if (t->c->signals->stop)
		conclude(t, TRIAL_VOID, "stop", "the agent was told to stop (%s)",
			 strsignal(t->c->signals->stop));
	if (mono_us() - t->start_mono > l->trial_s * 1000000)
		conclude(t, TRIAL_FAILED, "time", "ran longer than %lld s (hung?)",
			 (long long)l->trial_s);
	if (l->work_bytes && guard_work_bytes(t->c->guard) > l->work_bytes)
		conclude(t, TRIAL_FAILED, "disk", "wrote more than %lld bytes into its directory",
			 (long long)l->work_bytes);
	/* What is measured is measured: ranks that are still to be looked at live a moment longer.
	 */
	if (stepcount_full(t->c->steps) &&
	    !(nodestep_looking(t->c->others) && mono_us() - t->looked_at < LOOK_WAIT_US))
		conclude(t, TRIAL_OK, "window", "%s", "");
}

/* --- the loop --------------------------------------------------------------------------- */

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t next_wake(const struct run *t)
{
	const struct block_limits *l = &t->c->block->limits;
	int64_t at;

	if (t->phase == PHASE_REST_KILL)
		return sooner(t->phase_until, mono_us() + KILL_ROUND_US);
	if (t->phase != PHASE_RUN)
		return t->phase_until;
	at = t->start_mono + l->trial_s * 1000000 + 1;
	if (!t->evidence_final)
		at = sooner(at, t->start_mono + t->evidence_at);
	if (l->work_bytes)
		at = sooner(at, t->disk_at);
	if (stepcount_full(t->c->steps))
		at = sooner(at, t->looked_at + LOOK_WAIT_US);
	return sooner(at, t->metrics_at);
}

static void wait_for_news(struct run *t)
{
	struct pollfd p[4] = {{.fd = t->c->signals->fd, .events = POLLIN},
			      {.fd = t->out_fd, .events = POLLIN},
			      {.fd = t->notify_fd, .events = POLLIN},
			      {.fd = nodestep_fd(t->c->others), .events = POLLIN}};
	int64_t us = next_wake(t) - mono_us(), ms = us > 0 ? (us + 999) / 1000 : 0;

	poll(p, 4, ms > INT_MAX ? INT_MAX : (int)ms);
	signals_read(t->c->signals);
	if (p[3].revents)
		nodestep_read(t->c->others);
	if (p[1].revents)
		read_output(t);
	if (p[2].revents || mono_us() >= t->metrics_at)
		read_metrics(t);
}

static void one_turn(struct run *t)
{
	wait_for_news(t);
	if (mono_us() >= t->disk_at)
		t->disk_at = mono_us() + DISK_CHECK_US;
	evidence_turn(t);
	if (t->phase == PHASE_RUN) {
		check_limits(t);
		if (t->r.ended_by)
			end_group(t);
	}
	children_turn(t);
	if (t->phase == PHASE_REST_KILL && mono_us() < t->phase_until)
		signal_rest(t, SIGKILL);
	if (t->phase != PHASE_RUN && t->phase != PHASE_DONE && mono_us() >= t->phase_until)
		phase_over(t);
}

/* --- after ------------------------------------------------------------------------------ */

/* What stood in the way of the steps, as far as it can be told from here. */
static const char *explain_steps(const struct run *t)
{
	if (stepcount_limited_lines(t->c->steps))
		return "; some lines were too hard for the pattern";
	if (stepcount_steps(t->c->steps) > 0)
		return "";
	return t->c->block->window.source == WINDOW_METRICS
		       ? ": no step was written to $FETTLE_METRICS"
		       : ": no line of the output matched the step pattern";
}

/* Did memory run out? A launcher exits with a status of its own when one of its ranks is killed;
 * what other jobs of the node lost says nothing then. */
static void explain_memory(const struct run *t, char *out, size_t n)
{
	struct oom_count before = t->oom, now;
	bool killed = WIFSIGNALED(t->status) ? WTERMSIG(t->status) == SIGKILL
					     : WEXITSTATUS(t->status) == SHELL_SIGNAL + SIGKILL;

	*out = '\0';
	oom_read("", &now);
	if (!killed && (WIFSIGNALED(t->status) || before.own < 0 || now.own <= before.own))
		return;
	oom_text(&before, &now, out, n);
}

static void explain_exit(struct run *t)
{
	const struct block_window *w = &t->c->block->window;
	const char *last = t->r.out.last_line;
	char oom[OOM_TEXT_MAX];

	explain_memory(t, oom, sizeof oom);
	if (WIFSIGNALED(t->status))
		conclude(t, TRIAL_FAILED, "exit", "killed by signal %d (%s)%s%s%s%s",
			 WTERMSIG(t->status), strsignal(WTERMSIG(t->status)), oom,
			 *last ? "; its last line: \"" : "", last, *last ? "\"" : "");
	else if (WEXITSTATUS(t->status) != 0)
		conclude(t, TRIAL_FAILED, "exit", "exited with %d%s%s%s%s", WEXITSTATUS(t->status),
			 oom, *last ? "; its last line: \"" : "", last, *last ? "\"" : "");
	else if (w->steps > 0 && !stepcount_full(t->c->steps))
		conclude(t, TRIAL_FAILED, "exit", "ended after %lld of %lld steps%s",
			 (long long)stepcount_steps(t->c->steps), (long long)(w->warmup + w->steps),
			 explain_steps(t));
	else
		conclude(t, TRIAL_OK, stepcount_full(t->c->steps) ? "window" : "exit", "%s", "");
}

static void take_figures(struct run *t)
{
	struct trial_record *r = &t->r;

	if (WIFEXITED(t->status))
		r->exit = WEXITSTATUS(t->status);
	if (WIFSIGNALED(t->status))
		r->signal = WTERMSIG(t->status);
	r->steps_seen = stepcount_steps(t->c->steps);
	r->window_start_us = stepcount_start_us(t->c->steps);
	r->window_end_us = stepcount_end_us(t->c->steps);
	r->user_us = (int64_t)t->usage.ru_utime.tv_sec * 1000000 + t->usage.ru_utime.tv_usec;
	r->sys_us = (int64_t)t->usage.ru_stime.tv_sec * 1000000 + t->usage.ru_stime.tv_usec;
	r->maxrss_kib = t->usage.ru_maxrss;
}

static void end_on_others(struct run *t)
{
	struct nodestep_sum sum;

	nodestep_end(t->c->others, t->c->block->limits.grace_s, t->leader.pid, &t->r.evidence,
		     &sum);
	t->r.leftovers += sum.leftovers;
	t->r.shm_removed += (int64_t)sum.shm_removed;
	t->r.cleaned = t->r.cleaned && sum.cleaned;
}

static void finish(struct run *t)
{
	struct err e = {0};

	guard_watch(t->c->guard, t->slot->slot, 0);
	while (read_output(t)) /* what the pipe still holds: nobody writes to it any more */
		;
	if (t->c->block->window.source == WINDOW_METRICS && t->leader.pid)
		stepcount_poll_metrics(t->c->steps, t->metrics, utc_us());
	if (capture_finish(t->capture, utc_us(), &t->r.out, &e))
		own_trouble(t, e.text);
	if (t->leader.pid) {
		explain_exit(t);
		take_figures(t);
	}
	t->r.shm_removed = (int64_t)shm_clean(SHM_DIR, &t->shm, t->r.start_us);
	end_on_others(t);
	remove_dirs(t);
}

static void run_free(struct run *t)
{
	if (t->out_fd >= 0)
		close(t->out_fd);
	if (t->notify_fd >= 0)
		close(t->notify_fd);
	capture_free(t->capture);
	trialenv_free(&t->env);
	evidence_free(&t->r.evidence);
	strv_free(&t->r.argv);
	shm_free(&t->shm);
	free(t->dir);
	free(t->metrics);
	free(t->marker);
}

static void run_init(struct run *t, const struct trial_context *c, const struct block_slot *slot)
{
	*t = (struct run){.c = c,
			  .slot = slot,
			  .arm = &c->block->arms[slot->arm_index],
			  .out_fd = -1,
			  .notify_fd = -1,
			  .evidence_at = EVIDENCE_FIRST_US,
			  .metrics_at = INT64_MAX,
			  .r.cleaned = true};
	t->launched = block_launches(c->block, slot);
	t->dir = xasprintf("%s/t%02d", c->dir, slot->slot);
	t->metrics = fs_join(t->dir, "metrics.jsonl");
	t->marker = trialenv_marker(c->block, slot->slot);
}

static void run_once(struct run *t, const struct trial_context *c, const struct block_slot *slot)
{
	struct err why = {0};

	run_init(t, c, slot);
	if (prepare(t, &why) || start(t, &why)) {
		conclude(t, TRIAL_VOID, "io", "%s", why.text);
		t->phase = PHASE_DONE;
	}
	if (t->phase == PHASE_RUN)
		look_at_ranks(t, true);
	while (t->phase != PHASE_DONE)
		one_turn(t);
	if (t->capture)
		finish(t);
}

/* The launcher never got as far as the workload: nothing that an arm can be charged with. */
static bool never_started(struct run *t)
{
	_cleanup_free_ char *out = fs_join(t->dir, "out");

	return t->launched && t->r.state == TRIAL_FAILED && t->r.steps_seen == 0 &&
	       (str_eq(t->r.ended_by, "exit") || str_eq(t->r.ended_by, "time")) &&
	       launcher_failed_before_start(out);
}

/* True when another try makes sense; false when a signal came meanwhile. */
static bool pause_before_retry(const struct trial_context *c, int try)
{
	struct pollfd p = {.fd = c->signals->fd, .events = POLLIN};
	int64_t until = mono_us() + (int64_t)try * RETRY_PAUSE_US;

	while (!c->signals->stop && mono_us() < until) {
		poll(&p, 1, (int)((until - mono_us()) / 1000) + 1);
		signals_read(c->signals);
	}
	return !c->signals->stop;
}

static void charge_launcher(struct run *t)
{
	_cleanup_free_ char *was = xstrdup(t->r.reason);

	t->r.state = TRIAL_VOID;
	snprintf(t->r.reason, sizeof t->r.reason, "the launcher did not start the workload: %s",
		 was);
}

int trial_run(const struct trial_context *c, const struct block_slot *slot,
	      struct trial_outcome *out, struct err *e)
{
	_cleanup_free_ char *clean = NULL;
	struct run t;
	int rc, try = 1;

	run_once(&t, c, slot);
	while (never_started(&t) && str_eq(t.r.ended_by, "exit") && try < TRIES_MAX &&
	       pause_before_retry(c, try)) {
		try++;
		run_free(&t);
		run_once(&t, c, slot);
	}
	if (never_started(&t))
		charge_launcher(&t);
	rc = record_trial(c, slot, &t.r, out->xxh, e);
	if (rc)
		out->xxh[0] = '\0';
	out->state = t.r.state;
	clean = trialenv_redact(c->secrets, t.r.reason);
	str_copy(out->reason, sizeof out->reason, clean);
	run_free(&t);
	return rc;
}
