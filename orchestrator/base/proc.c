/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* Linux 5.3; the number is the same on every architecture */
#endif
#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9 */
#endif

enum {
	STAT_MAX = 4096, /* /proc/PID/stat is one line of about 300 bytes */
	/* argv and environ: the kernel's own bound is 1/4 of the stack */
	PROC_FILE_MAX = 4 << 20,
	POLL_FALLBACK_MS = 20, /* without pidfd (RHEL 8) a child is looked at this often */
	CHUNK_BYTES = 65536,
	US_PER_MS = 1000,
};

/* What the child tells through the pipe when it cannot become the program. */
struct spawn_failure {
	int error;
	enum spawn_step { STEP_SETUP, STEP_WORKDIR, STEP_EXEC } step;
};

/* --- identity --------------------------------------------------------------------------- */

/* The text after "pid (comm) " of /proc/PID/stat: comm may hold blanks and parentheses. */
static int read_stat(pid_t pid, char *state, uint64_t *start_ticks)
{
	char path[64], text[STAT_MAX];
	unsigned long long ticks;
	const char *p;
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	p = strrchr(text, ')');
	if (!p || sscanf(p + 1,
			 " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d"
			 " %*d %llu",
			 state, &ticks) != 2)
		return -1;
	*start_ticks = ticks;
	return 0;
}

int proc_start_ticks(pid_t pid, uint64_t *out, struct err *e)
{
	char state;

	if (read_stat(pid, &state, out))
		return err_set(e, ERR_NOT_FOUND, "there is no process %ld", (long)pid);
	return 0;
}

bool proc_alive(const struct proc_id *id)
{
	uint64_t ticks;
	char state;

	return id->pid > 0 && read_stat(id->pid, &state, &ticks) == 0 && ticks == id->start_ticks &&
	       state != 'Z' && state != 'X';
}

void proc_boot_id(char out[37])
{
	struct buf b = {0};

	out[0] = '\0';
	if (fs_read("/proc/sys/kernel/random/boot_id", 64, &b, NULL) == 0 && b.len >= 36) {
		memcpy(out, b.data, 36);
		out[36] = '\0';
	}
	buf_free(&b);
}

void proc_host(char name[65], char boot_id[37])
{
	const char *test_name = getenv("FETTLE_TEST_HOST"),
		   *test_boot = getenv("FETTLE_TEST_BOOT_ID");

	if (test_name)
		str_copy(name, 65, test_name);
	else if (gethostname(name, 64) < 0)
		str_copy(name, 65, "unknown");
	name[64] = '\0';
	if (test_boot)
		str_copy(boot_id, 37, test_boot);
	else
		proc_boot_id(boot_id);
}

/* --- spawn ------------------------------------------------------------------------------ */

static void child_fail(int report, enum spawn_step step)
{
	const struct spawn_failure f = {.error = errno, .step = step};

	if (write(report, &f, sizeof f) != (ssize_t)sizeof f)
		_exit(126);
	_exit(127);
}

static void reset_signals(void)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		sigaction(s, &dfl, NULL); /* KILL, STOP and libc's own refuse: as wanted */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Copies above the standard three first: a source may itself be 0, 1 or 2. */
static int child_fds(const struct proc_spawn *s)
{
	const int wanted[3] = {s->fd_in, s->fd_out, s->fd_err};
	int copy[3];

	for (int i = 0; i < 3; i++) {
		int fd = wanted[i] >= 0 ? wanted[i] : open("/dev/null", O_RDWR | O_CLOEXEC);

		copy[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (copy[i] < 0)
			return -1;
	}
	for (int i = 0; i < 3; i++)
		if (dup2(copy[i], i) < 0)
			return -1;
	return 0;
}

/* Only async-signal-safe calls from here: the parent may have threads. */
static void child_main(const struct proc_spawn *s, const char *path, pid_t parent, int report)
{
	reset_signals();
	if (s->new_session && setsid() < 0)
		child_fail(report, STEP_SETUP);
	if (s->die_with_parent) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL))
			child_fail(report, STEP_SETUP);
		if (getppid() != parent) /* it died before the call: no signal will come */
			_exit(127);
	}
	if (child_fds(s))
		child_fail(report, STEP_SETUP);
	if (s->workdir && chdir(s->workdir))
		child_fail(report, STEP_WORKDIR);
	/* Defence against a library that forgets O_CLOEXEC; older kernels do without. 4: CLOEXEC */
	syscall(SYS_close_range, 3U, ~0U, 4U);
	execve(path, s->argv, s->env ? s->env : environ);
	child_fail(report, STEP_EXEC);
}

static const char *env_path(char *const *env)
{
	for (; env && *env; env++)
		if (str_starts(*env, "PATH="))
			return *env + strlen("PATH=");
	return NULL;
}

static char *program_path(const struct proc_spawn *s, struct err *e)
{
	const char *path = s->env ? env_path(s->env) : getenv("PATH");
	char *p;

	if (strchr(s->file, '/'))
		return xstrdup(s->file);
	p = proc_which(s->file, path ? path : "/usr/local/bin:/usr/bin:/bin");
	if (!p)
		err_set(e, ERR_NOT_FOUND, "program %s not found in PATH (%s)", s->file,
			path ? path : "PATH is not set");
	return p;
}

/* Both ends above the standard three, so that child_fds() cannot run over the one that it keeps. */
static int report_pipe(int fd[2])
{
	int low[2];

	if (pipe2(low, O_CLOEXEC))
		return -1;
	fd[0] = fcntl(low[0], F_DUPFD_CLOEXEC, 3);
	fd[1] = fcntl(low[1], F_DUPFD_CLOEXEC, 3);
	close(low[0]);
	close(low[1]);
	if (fd[0] >= 0 && fd[1] >= 0)
		return 0;
	if (fd[0] >= 0)
		close(fd[0]);
	return -1;
}

static int explain_failure(const struct proc_spawn *s, const struct spawn_failure *f, struct err *e)
{
	enum err_code code = f->error == ENOENT || f->error == ENOTDIR ? ERR_NOT_FOUND : ERR_IO;

	errno = f->error;
	switch (f->step) {
	case STEP_SETUP:
		return err_sys(e, ERR_IO, "cannot prepare to run %s", s->file);
	case STEP_WORKDIR:
		return err_sys(e, code, "cannot run %s in directory %s", s->file, s->workdir);
	case STEP_EXEC:
		return err_sys(e, code, "cannot run %s", s->file);
	}
	return err_sys(e, ERR_IO, "cannot run %s", s->file);
}

/* The pipe closes by itself when exec succeeds. */
static int await_exec(const struct proc_spawn *s, int report, pid_t pid, struct err *e)
{
	struct spawn_failure f;
	ssize_t n;

	do
		n = read(report, &f, sizeof f);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof f)
		return err_set(e, ERR_IO, "cannot run %s: its start was cut short", s->file);
	return explain_failure(s, &f, e);
}

/* Block everything over the fork: a handler of ours must not run in the child. */
static pid_t fork_quietly(const struct proc_spawn *s, const char *path, const int report[2])
{
	sigset_t all, old;
	pid_t parent = getpid(), pid;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	pid = fork();
	if (pid == 0)
		child_main(s, path, parent, report[1]);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return pid;
}

int proc_spawn(const struct proc_spawn *s, struct proc_id *out, struct err *e)
{
	_cleanup_free_ char *path = program_path(s, e);
	int report[2], rc;
	char state;
	pid_t pid;

	if (!path)
		return -ERR_NOT_FOUND;
	if (report_pipe(report))
		return err_sys(e, ERR_IO, "cannot make a pipe to run %s", s->file);
	pid = fork_quietly(s, path, report);
	close(report[1]);
	if (pid < 0)
		rc = err_sys(e, ERR_TEMP, "cannot start a process for %s", s->file);
	else
		rc = await_exec(s, report[0], pid, e);
	close(report[0]);
	if (rc)
		return rc;
	*out = (struct proc_id){.pid = pid};
	read_stat(pid, &state, &out->start_ticks); /* ours and not reaped: it is there */
	return 0;
}

/* --- wait ------------------------------------------------------------------------------- */

static int64_t now_us(void)
{
	return clock_mono_us(&clock_system);
}

static int open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0U);
}

/* Milliseconds for poll(2) until the deadline (< 0: none), rounded up, and capped to `cap` if >= 0.
 */
static int poll_ms(int64_t deadline_us, int cap)
{
	int64_t left_ms = cap >= 0 ? cap : INT32_MAX;

	if (deadline_us >= 0) {
		int64_t d = (deadline_us - now_us() + US_PER_MS - 1) / US_PER_MS;

		d = d > 0 ? d : 0;
		left_ms = d < left_ms ? d : left_ms;
	} else if (cap < 0) {
		return -1;
	}
	return (int)left_ms;
}

static int reap(const struct proc_id *id, int *status, struct err *e)
{
	pid_t got;

	do
		got = waitpid(id->pid, status, WNOHANG);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_sys(e, ERR_STATE, "cannot wait for process %ld", (long)id->pid);
	return got > 0;
}

int proc_wait(const struct proc_id *id, int64_t timeout_us, int *status, struct err *e)
{
	int64_t deadline = timeout_us < 0 ? -1 : now_us() + timeout_us;
	struct pollfd p = {.fd = open_pidfd(id->pid), .events = POLLIN};
	int rc;

	for (;;) {
		rc = reap(id, status, e);
		if (rc != 0)
			break;
		if (deadline >= 0 && now_us() >= deadline) {
			rc = err_set(e, ERR_TEMP, "process %ld still runs after %.1f s",
				     (long)id->pid, (double)timeout_us / 1e6);
			break;
		}
		poll(&p, p.fd >= 0 ? 1 : 0, poll_ms(deadline, p.fd >= 0 ? -1 : POLL_FALLBACK_MS));
	}
	if (p.fd >= 0)
		close(p.fd);
	return rc > 0 ? 0 : rc;
}

/* --- capture ---------------------------------------------------------------------------- */

struct capture {
	struct proc_id id;
	int pidfd; /* -1: the kernel has none */
	int fd[2]; /* read ends of stdout and stderr, -1 once they ended */
	struct buf *to[2];
	size_t max;
};

static bool has_exited(const struct proc_id *id)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)id->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == id->pid;
}

/* Read what is there; keep up to max bytes of it, and drop the rest so that the child never blocks.
 */
static void drain(struct capture *c, int i)
{
	char chunk[CHUNK_BYTES / 4];
	ssize_t n;

	while (c->fd[i] >= 0) {
		n = read(c->fd[i], chunk, sizeof chunk);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			close(c->fd[i]);
			c->fd[i] = -1;
			return;
		}
		if (c->to[i] && c->to[i]->len < c->max) {
			size_t room = c->max - c->to[i]->len;

			buf_put(c->to[i], chunk, (size_t)n < room ? (size_t)n : room);
		}
	}
}

/* Until the child has ended: a grandchild that keeps the pipe open is not waited for. */
static int capture_loop(struct capture *c, int64_t deadline)
{
	for (;;) {
		struct pollfd p[3] = {{.fd = c->fd[0], .events = POLLIN},
				      {.fd = c->fd[1], .events = POLLIN},
				      {.fd = c->pidfd, .events = POLLIN}};
		bool over = has_exited(&c->id);

		drain(c, 0);
		drain(c, 1);
		if (over)
			return 0;
		if (deadline >= 0 && now_us() >= deadline)
			return -1;
		poll(p, 3, poll_ms(deadline, c->pidfd >= 0 ? -1 : POLL_FALLBACK_MS));
	}
}

static void close_ends(int fd[2])
{
	for (int i = 0; i < 2; i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

/* A pipe whose read end never blocks and whose write end does. */
static int capture_pipe(int *read_end, int *write_end)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		return -1;
	fcntl(fd[0], F_SETFL, O_NONBLOCK);
	*read_end = fd[0];
	*write_end = fd[1];
	return 0;
}

static int capture_start(const struct proc_spawn *s, struct capture *c, struct err *e)
{
	struct proc_spawn mine = *s;
	int child_end[2] = {-1, -1}, rc;

	if (capture_pipe(&c->fd[0], &child_end[0]) ||
	    (c->to[1] && capture_pipe(&c->fd[1], &child_end[1]))) {
		rc = err_sys(e, ERR_IO, "cannot make a pipe to run %s", s->file);
	} else {
		mine.fd_out = child_end[0];
		if (c->to[1])
			mine.fd_err = child_end[1];
		rc = proc_spawn(&mine, &c->id, e);
	}
	close_ends(child_end);
	return rc;
}

int proc_capture(const struct proc_spawn *s, int64_t timeout_us, size_t max, struct buf *out,
		 struct buf *err_out, int *status, struct err *e)
{
	struct capture c = {.pidfd = -1, .fd = {-1, -1}, .to = {out, err_out}, .max = max};
	int rc = capture_start(s, &c, e);

	if (rc == 0) {
		c.pidfd = open_pidfd(c.id.pid);
		if (capture_loop(&c, timeout_us < 0 ? -1 : now_us() + timeout_us)) {
			kill(s->new_session ? -c.id.pid : c.id.pid, SIGKILL);
			proc_wait(&c.id, -1, status, NULL);
			rc = err_set(e, ERR_TEMP, "%s did not end within %.1f s and was killed",
				     s->file, (double)timeout_us / 1e6);
		} else {
			rc = proc_wait(&c.id, -1, status, e);
		}
		if (c.pidfd >= 0)
			close(c.pidfd);
	}
	close_ends(c.fd);
	return rc;
}

/* --- looking things up ------------------------------------------------------------------ */

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

char *proc_which(const char *file, const char *path)
{
	if (!path)
		path = getenv("PATH");
	if (strchr(file, '/'))
		return is_program(file) ? xstrdup(file) : NULL;
	while (path && *file) {
		size_t n = strcspn(path, ":");
		char *full = n ? xasprintf("%.*s/%s", (int)n, path, file) : xasprintf("./%s", file);

		if (is_program(full))
			return full;
		free(full);
		path = path[n] ? path + n + 1 : NULL;
	}
	return NULL;
}

static int read_proc_file(pid_t pid, const char *what, struct buf *b)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, what);
	return fs_read(path, PROC_FILE_MAX, b, NULL);
}

int proc_cmdline(pid_t pid, struct strv *out)
{
	struct buf b = {0};
	int rc = read_proc_file(pid, "cmdline", &b);

	for (size_t i = 0; rc == 0 && i < b.len; i += strlen(b.data + i) + 1)
		strv_add(out, b.data + i);
	buf_free(&b);
	return rc;
}

char *proc_env(pid_t pid, const char *name)
{
	struct buf b = {0};
	size_t n = strlen(name);
	char *found = NULL;

	if (read_proc_file(pid, "environ", &b) == 0)
		for (size_t i = 0; !found && i < b.len; i += strlen(b.data + i) + 1)
			if (strncmp(b.data + i, name, n) == 0 && b.data[i + n] == '=')
				found = xstrdup(b.data + i + n + 1);
	buf_free(&b);
	return found;
}
