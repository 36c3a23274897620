/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/sched/slurm_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/log.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"
#include "orchestrator/base/str.h"
#include "orchestrator/sched/slurm_errors.h"
#include "orchestrator/sched/slurm_wire.h"

enum {
	US_PER_S = 1000000,
	HELLO_US = 70 * US_PER_S, /* no RPC in it, but libslurm may look for its configuration for
				     60 s */
	DEFAULT_MESSAGE_TIMEOUT_S = 100,
	EXTRA_S = 5,
	SLICE_MS = 100,
	FAILURES_MAX = 3,
	REST_US = 30 * US_PER_S,
	GOODBYE_US = 2 * US_PER_S, /* an idle helper ends at once when its stdin closes */
	STDERR_MAX = 2048,
	CHUNK = 65536,
	LOADER_FAILED = 127, /* the dynamic loader: a library is missing */
};

struct slurm_pipe {
	char *helper;
	const struct clock *clock;
	struct proc_id id; /* pid 0: not running */
	int to, from, err; /* our ends; -1 when not running */
	struct buf in;     /* bytes of replies not yet taken */
	int64_t next_request, call_us;
	bool hung;    /* the last helper had to be ended */
	bool greeted; /* it has answered its first request */
	int failures; /* in a row */
	int64_t failed_at_us;
	char last_failure[1024];
};

/* --- process ---------------------------------------------------------------------------- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* What it said on stderr: "; LINE" for each, nothing where there is none or `n` is an error. */
static void put_lines(struct buf *out, char text[static STDERR_MAX], ssize_t n)
{
	text[n > 0 ? n : 0] = '\0';
	slurm_errors_put_lines(out, text, "; ");
}

static void read_stderr(struct slurm_pipe *p, struct buf *out)
{
	char text[STDERR_MAX];

	put_lines(out, text, p->err >= 0 ? read(p->err, text, sizeof(text) - 1) : -1);
}

/* The same of one that hangs: libslurm's words wait in the memory file that it has in the place of
 * stderr. */
static void peek_stderr(struct slurm_pipe *p, struct buf *out)
{
	_cleanup_free_ char *path = xasprintf("/proc/%ld/fd/2", (long)p->id.pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char text[STDERR_MAX];

	if (fd < 0)
		return;
	put_lines(out, text,
		  pread(fd, text, sizeof(text) - 1, 0)); /* a pipe refuses pread: then none */
	close(fd);
}

/* End it. Politely only when it waits for us: one that is busy may be so for minutes. */
static int stop_helper(struct slurm_pipe *p, bool politely)
{
	int status = 0;

	if (p->id.pid <= 0)
		return 0;
	close_fd(&p->to);
	if (!politely || proc_wait(&p->id, GOODBYE_US, &status, NULL)) {
		kill(p->id.pid, SIGKILL);
		if (proc_wait(&p->id, GOODBYE_US, &status, NULL))
			log_warn("fettle-slurm (process %ld) does not end", (long)p->id.pid);
	}
	close_fd(&p->from);
	close_fd(&p->err);
	buf_clear(&p->in);
	p->id = (struct proc_id){0};
	return status;
}

static int make_pipes(int fd[3][2], struct err *e)
{
	for (int i = 0; i < 3; i++)
		fd[i][0] = fd[i][1] = -1;
	for (int i = 0; i < 3; i++)
		if (pipe2(fd[i], O_CLOEXEC))
			return err_sys(e, ERR_TEMP, "cannot make a pipe to fettle-slurm");
	return 0;
}

/* Our ends must not block: a hung helper is noticed by the clock. Its own ends stay blocking. */
static void keep_ends(struct slurm_pipe *p, int fd[3][2])
{
	p->to = fd[0][1];
	p->from = fd[1][0];
	p->err = fd[2][0];
	fd[0][1] = fd[1][0] = fd[2][0] = -1;
	fcntl(p->to, F_SETFL, O_NONBLOCK);
	fcntl(p->from, F_SETFL, O_NONBLOCK);
	fcntl(p->err, F_SETFL, O_NONBLOCK);
}

static int spawn_helper(struct slurm_pipe *p, struct err *e)
{
	char *argv[] = {p->helper, NULL};
	int fd[3][2], rc;

	rc = make_pipes(fd, e);
	if (rc == 0) {
		/* A session of its own: Ctrl-C is for us, who then need it to cancel jobs. */
		const struct proc_spawn s = {.file = p->helper,
					     .argv = argv,
					     .fd_in = fd[0][0],
					     .fd_out = fd[1][1],
					     .fd_err = fd[2][1],
					     .new_session = true,
					     .die_with_parent = true};

		rc = proc_spawn(&s, &p->id, e);
	}
	if (rc == 0)
		keep_ends(p, fd);
	for (int i = 0; i < 6; i++)
		close_fd(&fd[i / 2][i % 2]);
	return rc;
}

/* --- lines ------------------------------------------------------------------------------ */

/* Wait for `events`: 1 ready, 0 too late. In slices: the clock need not be the one of poll(2). */
static int await(struct slurm_pipe *p, int fd, short events, int64_t deadline_us)
{
	struct pollfd f = {.fd = fd, .events = events};

	for (;;) {
		int n;

		if (clock_mono_us(p->clock) >= deadline_us)
			return 0;
		n = poll(&f, 1, SLICE_MS);
		if (n > 0)
			return 1;
		if (n < 0 && errno != EINTR)
			return 0;
	}
}

static int no_time(struct slurm_pipe *p, struct err *e)
{
	struct buf said = {0};
	int rc;

	p->hung = true;
	peek_stderr(p, &said);
	rc = err_set(e, ERR_TEMP, "fettle-slurm did not answer within %lld s and was ended%s",
		     (long long)(p->call_us / US_PER_S),
		     said.len ? said.data
			      : ": is munged running here, and slurmctld (`scontrol ping`)?");
	buf_free(&said);
	return rc;
}

/* The helper closes its end only by dying, with SIGPIPE for us: the caller of a library must not
 * get that. */
static ssize_t write_quietly(int fd, const char *data, size_t n)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
	ssize_t w;

	sigaction(SIGPIPE, &ignore, &old);
	w = write(fd, data, n);
	sigaction(SIGPIPE, &old, NULL);
	return w;
}

static int died(struct slurm_pipe *p, struct err *e)
{
	struct buf said = {0};
	int status, rc;

	read_stderr(p, &said);
	status = stop_helper(p, true);
	if (WIFEXITED(status) && WEXITSTATUS(status) == LOADER_FAILED)
		rc = err_set(e, ERR_NOT_FOUND,
			     "%s cannot start%s (it must be built against the Slurm that is "
			     "installed: run `make` again)",
			     p->helper, said.len ? said.data : "");
	else if (WIFSIGNALED(status))
		rc = err_set(e, ERR_TEMP, "fettle-slurm was killed by signal %d%s",
			     WTERMSIG(status), said.len ? said.data : "");
	else
		rc = err_set(e, p->greeted ? ERR_TEMP : ERR_NOT_FOUND,
			     "fettle-slurm ended with status %d%s", WEXITSTATUS(status),
			     said.len ? said.data : "");
	buf_free(&said);
	return rc;
}

/* libslurm ends its process by itself or through the helper's last answer: one thing to a user. */
static int not_here(struct err *e)
{
	struct err why = *e;

	return err_set(e, ERR_NOT_FOUND, SLURM_ERRORS_NOT_HERE ": %s (%s)", why.text,
		       slurm_errors_advice(SLURM_ERRORS_NO_CONF));
}

static int send_line(struct slurm_pipe *p, const char *text, int64_t deadline_us, struct err *e)
{
	size_t n = strlen(text), done = 0;

	while (done < n) {
		ssize_t w = write_quietly(p->to, text + done, n - done);

		if (w >= 0)
			done += (size_t)w;
		else if (errno == EAGAIN && !await(p, p->to, POLLOUT, deadline_us))
			return no_time(p, e);
		else if (errno == EPIPE)
			return died(p, e);
		else if (errno != EAGAIN && errno != EINTR)
			return err_sys(e, ERR_TEMP, "cannot write to fettle-slurm");
	}
	return 0;
}

/* A whole line in p->in: its length without the newline, or a negative error. */
static ssize_t receive_line(struct slurm_pipe *p, int64_t deadline_us, struct err *e)
{
	_cleanup_free_ char *chunk = xmalloc(CHUNK);

	for (;;) {
		char *newline = p->in.len ? memchr(p->in.data, '\n', p->in.len) : NULL;
		ssize_t n;

		if (newline)
			return newline - p->in.data;
		if (p->in.len > WIRE_LINE_MAX)
			return err_set(e, ERR_TEMP,
				       "fettle-slurm sent a line of more than %d bytes",
				       WIRE_LINE_MAX);
		n = read(p->from, chunk, CHUNK);
		if (n > 0)
			buf_put(&p->in, chunk, (size_t)n);
		else if (n == 0)
			return died(p, e);
		else if (errno == EAGAIN && !await(p, p->from, POLLIN, deadline_us))
			return no_time(p, e);
		else if (errno != EAGAIN && errno != EINTR)
			return err_sys(e, ERR_TEMP, "cannot read from fettle-slurm");
	}
}

static int receive_reply(struct slurm_pipe *p, int64_t id, int64_t deadline_us, struct json **reply,
			 struct err *e)
{
	ssize_t n = receive_line(p, deadline_us, e);
	int rc;

	if (n < 0)
		return (int)n;
	rc = json_parse("reply of fettle-slurm", p->in.data, (size_t)n, reply, e);
	p->in.len -= (size_t)n + 1;
	memmove(p->in.data, p->in.data + n + 1, p->in.len);
	if (rc == 0 && json_i64(json_get(*reply, "id"), -1) != id) {
		json_freep(reply);
		rc = err_set(e, ERR_PARSE, "fettle-slurm answered another request than %lld",
			     (long long)id);
	}
	return rc;
}

/* --- calls ------------------------------------------------------------------------------ */

static int refused(const struct json *reply, struct err *e)
{
	const char *code = json_text(json_get(reply, "code"), WIRE_PERM);
	enum err_code class = str_eq(code, WIRE_TEMP)       ? ERR_TEMP
			      : str_eq(code, WIRE_NOTFOUND) ? ERR_NOT_FOUND
							    : ERR_RECIPE;
	struct buf said = {0};
	int rc;

	slurm_errors_put_lines(&said, json_text(json_get(reply, "stderr"), ""), "; Slurm: ");
	rc = err_set(e, class, "%s%s",
		     json_text(json_get(reply, "text"), "fettle-slurm gave no reason"),
		     said.data ? said.data : "");
	buf_free(&said);
	return rc;
}

/* One request and its reply, ok or not. Negative: there was no reply, and the helper is gone. */
static int exchange(struct slurm_pipe *p, struct json *req, int64_t limit_us, struct json **reply,
		    struct err *e)
{
	int64_t id = ++p->next_request, deadline_us = clock_mono_us(p->clock) + limit_us;
	_cleanup_free_ char *text = NULL;
	struct buf line = {0};
	int rc;

	json_set_i64(req, "id", id);
	text = json_print(req, false);
	buf_printf(&line, "%s\n", text);
	rc = send_line(p, line.data, deadline_us, e);
	buf_free(&line);
	if (rc == 0)
		rc = receive_reply(p, id, deadline_us, reply, e);
	if (rc)
		stop_helper(p, false);
	return rc;
}

static int greet(struct slurm_pipe *p, struct err *e)
{
	_cleanup_(json_freep) struct json *req = json_object(), *reply = NULL;
	int64_t timeout_s;
	int rc;

	json_set_text(req, "op", "hello");
	p->call_us = HELLO_US;
	p->greeted = false;
	rc = exchange(p, req, HELLO_US, &reply, e);
	if (rc == 0 && !json_bool(json_get(reply, "ok"), false))
		rc = refused(reply, e);
	if (rc)
		return rc == -ERR_NOT_FOUND ? not_here(e) : rc;
	p->greeted = true;
	if (!str_eq(json_text(json_get(reply, "format"), ""), WIRE_FORMAT))
		return err_set(e, ERR_STATE,
			       "%s speaks %s, expected %s: it belongs to another fettle", p->helper,
			       json_text(json_get(reply, "format"), "nothing known"), WIRE_FORMAT);
	timeout_s = json_i64(json_get(reply, "message_timeout_s"), DEFAULT_MESSAGE_TIMEOUT_S);
	p->call_us = (2 * timeout_s + EXTRA_S) * US_PER_S;
	return 0;
}

static int start_helper(struct slurm_pipe *p, struct err *e)
{
	int rc = spawn_helper(p, e);

	if (rc == 0)
		rc = greet(p, e);
	if (rc)
		stop_helper(p, false);
	return rc;
}

static void note_failure(struct slurm_pipe *p, const struct err *e)
{
	p->failures++;
	p->failed_at_us = clock_mono_us(p->clock);
	str_copy(p->last_failure, sizeof(p->last_failure), e->text);
}

static int check_rest(struct slurm_pipe *p, struct err *e)
{
	int64_t left_us = p->failed_at_us + REST_US - clock_mono_us(p->clock);

	if (p->failures < FAILURES_MAX || left_us <= 0)
		return 0;
	return err_set(e, ERR_TEMP,
		       "fettle-slurm failed %d times in a row, the last time with: %s. Next try in "
		       "%lld s; to look: "
		       "`scontrol ping`, or echo '{\"id\":1,\"op\":\"hello\"}' | %s",
		       p->failures, p->last_failure, (long long)(left_us / US_PER_S + 1),
		       p->helper);
}

/* Negative with *answered false: the helper failed, not the request. */
static int call_once(struct slurm_pipe *p, struct json *req, struct json **reply, bool *answered,
		     struct err *e)
{
	int rc = 0;

	*answered = false;
	p->hung = false;
	if (p->id.pid <= 0)
		rc = start_helper(p, e);
	if (rc == 0)
		rc = exchange(p, req, p->call_us, reply, e);
	if (rc) {
		note_failure(p, e);
		return rc;
	}
	*answered = true;
	p->failures = 0;
	if (json_bool(json_get(*reply, "ok"), false))
		return 0;
	rc = refused(*reply, e);
	json_freep(reply);
	return rc;
}

int slurm_pipe_call(struct slurm_pipe *p, struct json *req, bool repeatable, struct json **reply,
		    struct err *e)
{
	struct err local = {0};
	bool answered;
	int rc;

	e = e ? e : &local;
	*reply = NULL;
	rc = check_rest(p, e);
	if (rc)
		return rc;
	rc = call_once(p, req, reply, &answered, e);
	if (rc && !answered && repeatable && !p->hung) /* what hung would hang again */
		rc = call_once(p, req, reply, &answered, e);
	if (rc && !answered) /* whatever it was, the request itself was not judged */
		rc = err_set(e, ERR_TEMP, "%s", p->last_failure);
	return rc;
}

int slurm_pipe_open(const char *helper, const struct clock *clock, struct slurm_pipe **out,
		    struct err *e)
{
	struct slurm_pipe *p = xcalloc(1, sizeof(*p));
	int rc;

	*p = (struct slurm_pipe){
		.helper = xstrdup(helper), .clock = clock, .to = -1, .from = -1, .err = -1};
	rc = start_helper(p, e);
	if (rc) {
		slurm_pipe_close(p);
		return rc;
	}
	*out = p;
	return 0;
}

void slurm_pipe_close(struct slurm_pipe *p)
{
	if (!p)
		return;
	stop_helper(p, true);
	buf_free(&p->in);
	free(p->helper);
	free(p);
}
