/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/script/locate.h"
#include "orchestrator/script/luajson.h"
#include "orchestrator/script/luastate.h"
#include "orchestrator/script/signals.h"

/* How the child names the text in positions of errors; the parent puts the file's path there. */
#define CHUNK_SOURCE  "src"
#define CHUNK_PRELUDE "prelude"

/* Bytes of an error's text; what does not fit struct err is of no use. */
enum { ERROR_MAX = 1500 };

/* What a child says that has no time left to say it: in memory that the parent sees, too. */
struct last_words {
	bool late;
	char place[LUASTATE_PLACE_MAX];
};

/* --- the child ---------------------------------------------------------------------------- */

/* For the handler, which gets it with the signal. */
struct watch {
	const struct luastate_budget *budget;
	struct last_words *words;
};

/* The state is read in the middle of whatever it does. Should that fail, too, the parent knows at
 * least why; it is the end in any case. */
static void on_late(int sig, siginfo_t *info, void *context)
{
	const struct watch *w = info->si_value.sival_ptr;

	(void)sig;
	(void)context;
	w->words->late = true;
	if (w->budget->state)
		luastate_place(w->budget->state, w->words->place);
	kill(getpid(), SIGKILL);
}

/* Without a timer RLIMIT_CPU ends it a second later. */
static void watch_time(struct watch *w)
{
	const struct sigaction late = {.sa_sigaction = on_late, .sa_flags = SA_SIGINFO};
	const struct itimerspec end = {.it_value = {.tv_sec = SANDBOX_CPU_S}};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
				 .sigev_signo = SIGVTALRM,
				 .sigev_value = {.sival_ptr = w}};
	timer_t timer;

	if (sigaction(SIGVTALRM, &late, NULL) == 0 &&
	    timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) == 0)
		timer_settime(timer, 0, &end, NULL);
}

static void limit_child(void)
{
	const struct rlimit cpu = {SANDBOX_CPU_S + 1, SANDBOX_CPU_S + 2}, none = {0, 0};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CPU, &cpu);
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_FSIZE, &none);
	signal(SIGXCPU, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
}

static void put_line(int fd, struct json *line)
{
	_cleanup_free_ char *text = json_print(line, false);
	size_t n = strlen(text), done = 0;

	text[n++] = '\n'; /* the terminator's place: it is not printed as text any more */
	while (done < n) {
		ssize_t w = write(fd, text + done, n - done);

		if (w < 0 && errno != EINTR)
			_exit(1);
		if (w > 0)
			done += (size_t)w;
	}
	json_free(line);
}

static char *dir_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

/* Stack: where to, value that is to be taken. Says whether it could be. */
static int take_value(lua_State *l)
{
	lua_pushboolean(l, luajson_take(l, 2, lua_touserdata(l, 1)));
	return 1;
}

/* Stack: signals, key that they do not have. Nobody measured it, or nobody can. */
static int absent_signal(lua_State *l)
{
	const char *name = lua_type(l, 2) == LUA_TSTRING ? lua_tostring(l, 2) : NULL;
	char hint[160];

	if (!name || signal_is_known(name))
		return 0;
	{
		_cleanup_free_ char *near = signal_did_you_mean(name);

		str_copy(hint, sizeof(hint), near);
	}
	return luaL_error(l, "no signal is called \"%s\"%s", name, hint);
}

/* Stack: job, value of the file. Leaves what its function returns. */
static int call_function(lua_State *l)
{
	const struct sandbox_job *job = lua_touserdata(l, 1);
	size_t n = job->args ? json_len(job->args) : 0;

	if (!luajson_push_function(l, 2, job->call))
		return luaL_error(l, "there is no function '%s' in the value of this file",
				  job->call);
	luaL_checkstack(l, (int)n + 4, "too many arguments");
	for (size_t i = 0; i < n; i++) {
		luajson_push(l, json_at(job->args, i));
		if (!job->signals || !lua_istable(l, -1))
			continue;
		lua_createtable(l, 0, 1);
		lua_pushcfunction(l, absent_signal);
		lua_setfield(l, -2, "__index");
		lua_setmetatable(l, -2);
	}
	lua_call(l, (int)n, 1);
	return 1;
}

/* Call a C function with a pointer and the value at the top of the stack, for one result. */
static int protected(lua_State *l, lua_CFunction f, const void *p)
{
	lua_pushcfunction(l, f);
	lua_insert(l, -2);
	lua_pushlightuserdata(l, (void *)(uintptr_t)p);
	lua_insert(l, -2);
	return luastate_call(l, 2, 1);
}

/* Leaves the value of the file. */
static int run_file(lua_State *l, const struct script_source *prelude,
		    const struct script_source *src)
{
	int status = prelude ? luastate_run(l, prelude, "=" CHUNK_PRELUDE, 0) : 0;

	return status ? status : luastate_run(l, src, "=" CHUNK_SOURCE, 1);
}

/* Stack: value of the file, which stays. 0: out->root holds the value, or out->why says why not.
 * Else Lua's status, its error on the stack. */
static int run_job(lua_State *l, const struct sandbox_job *job, struct luajson *out)
{
	int status = 0;

	lua_pushvalue(l, 1);
	if (job->call)
		status = protected(l, call_function, job);
	return status ? status : protected(l, take_value, out);
}

static struct json *describe_failure(lua_State *l, const struct luastate_budget *b, int status,
				     const struct luajson *out)
{
	struct json *line = json_object();
	const char *text = status && lua_type(l, -1) == LUA_TSTRING ? lua_tostring(l, -1) : "";
	_cleanup_free_ char *cut = xstrndup(text, ERROR_MAX);
	const char *error = status ? cut : out->why;

	if (b->out_of_instructions) {
		json_set_text(line, "limit", "instructions");
	} else if (b->out_of_memory &&
		   (status == LUA_ERRMEM || strstr(text, "not enough memory"))) {
		json_set_text(line, "limit", "memory");
		error = b->place;
	}
	if (!status)
		json_set_text(line, "where", out->where.data ? out->where.data : "");
	json_set_text(line, "error", error);
	return line;
}

/* One job on the value of its file, or on the error (`status`) that the file ended with; false when
 * it failed. */
static bool do_job(int fd, const struct luastate_budget *budget, lua_State *l, int status,
		   const struct sandbox_job *job)
{
	struct luajson out = {0};
	struct json *line;
	bool ok;

	if (!status)
		status = run_job(l, job, &out);
	ok = !status && !out.why;
	if (ok) {
		line = json_object();
		json_set(line, "value", TAKE(out.root));
	} else {
		line = describe_failure(l, budget, status, &out);
	}
	put_line(fd, line);
	luajson_done(&out);
	return ok;
}

/* Jobs on one file that follow each other, in one state; how many were done well. */
static size_t do_file(int fd, struct luastate_budget *budget, const struct script_source *prelude,
		      const struct sandbox_job *jobs, size_t n)
{
	_cleanup_free_ char *dir = dir_of(jobs->src->path);
	lua_State *l = luastate_open(budget, dir);
	size_t i = 0;
	int status;

	if (!l)
		return 0;
	status = run_file(l, prelude, jobs->src);
	while (i < n && jobs[i].src == jobs->src && do_job(fd, budget, l, status, &jobs[i])) {
		lua_settop(l, 1);
		i++;
	}
	budget->state = NULL;
	lua_close(l); /* no finalisers: nothing of the recipe runs here */
	return i;
}

static _Noreturn void child(int fd, struct last_words *words, const struct script_source *prelude,
			    const struct sandbox_job *jobs, size_t n)
{
	struct luastate_budget budget = {0};
	struct watch watch = {&budget, words};
	size_t i = 0, done = 1;

	limit_child();
	watch_time(&watch);
	for (; i < n && done; i += done) {
		size_t same = i;

		while (same < n && jobs[same].src == jobs[i].src)
			same++;
		done = do_file(fd, &budget, prelude, &jobs[i], same - i);
		if (done < same - i)
			break;
	}
	_exit(0);
}

/* --- the parent --------------------------------------------------------------------------- */

/* All of the child's output, or a negative error when it is too much or takes too long. */
static int collect(int fd, struct buf *out, struct err *e)
{
	int64_t end = clock_mono_us(&clock_system) + SANDBOX_WALL_S * INT64_C(1000000);
	char chunk[65536];

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int64_t left = end - clock_mono_us(&clock_system);
		ssize_t n;

		if (left <= 0)
			return err_set(
				e, ERR_TEMP,
				"evaluating the recipe did not end within %d s: this machine "
				"is overloaded; try again",
				SANDBOX_WALL_S);
		if (poll(&p, 1, (int)(left / 1000) + 1) < 0 && errno != EINTR)
			return err_sys(e, ERR_IO, "waiting for the recipe's process");
		if (!(p.revents & (POLLIN | POLLHUP)))
			continue;
		n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno != EINTR)
			return err_sys(e, ERR_IO, "reading from the recipe's process");
		if (n == 0)
			return 0;
		if (n > 0 && out->len + (size_t)n > SANDBOX_OUTPUT_MAX)
			return err_set(e, ERR_LIMIT, "the recipe's value is larger than %d MiB",
				       SANDBOX_OUTPUT_MAX >> 20);
		if (n > 0)
			buf_put(out, chunk, (size_t)n);
	}
}

/* "FILE:LINE" that a message of Lua begins with, "FILE" if it has no position; heap. *rest is what
 * follows. */
static char *place_of(const char *text, const struct script_source *prelude,
		      const struct sandbox_job *job, const char **rest)
{
	int line = 0, used = 0;

	*rest = text;
	if (sscanf(text, CHUNK_SOURCE ":%d: %n", &line, &used) == 1 && used) {
		*rest = text + used;
		return xasprintf("%s:%d", job->src->path, line);
	}
	if (prelude && sscanf(text, CHUNK_PRELUDE ":%d: %n", &line, &used) == 1 && used) {
		*rest = text + used;
		return xasprintf("%s:%d", prelude->path, line);
	}
	return xstrdup(job->src->path);
}

static int failure(const struct script_source *prelude, const struct sandbox_job *job,
		   const struct json *line, struct err *e)
{
	const char *limit = json_text(json_get(line, "limit"), NULL);
	const char *where = json_text(json_get(line, "where"), NULL), *rest;
	_cleanup_free_ char *place = place_of(json_text(json_get(line, "error"), ""), prelude, job,
					      &rest);

	if (where)
		return err_set(e, ERR_RECIPE, "%s:%d: %s: %s", job->src->path,
			       job->call ? 1 : locate_line(job->src->text, where),
			       *where ? where : "the value that the file returns", rest);
	if (str_eq(limit, "instructions"))
		return err_set(
			e, ERR_RECIPE,
			"%s: evaluating it took more than %d million instructions: look for an "
			"endless loop",
			place, LUASTATE_INSTRUCTIONS_MAX / 1000000);
	if (limit)
		return err_set(e, ERR_RECIPE, "%s: evaluating it needs more than %d MiB of memory",
			       place, LUASTATE_MEMORY_MAX >> 20);
	return err_set(e, ERR_RECIPE, "%s: %s", place, rest);
}

static int too_long(const struct script_source *prelude, const struct sandbox_job *job,
		    const struct last_words *words, struct err *e)
{
	const char *rest;
	_cleanup_free_ char *place = place_of(words->place, prelude, job, &rest);

	return err_set(
		e, ERR_RECIPE,
		"%s: evaluating it took more than %d s of CPU time: look for an endless loop, or a "
		"pattern of string.find, match or gsub that backtracks without end",
		place, SANDBOX_CPU_S);
}

/* The lines of the child: {"value":...} of each job, or {"error":...} of the first that fails. */
static int read_lines(const struct buf *out, const struct script_source *prelude,
		      const struct sandbox_job *jobs, size_t n, struct json **values, size_t *done,
		      struct err *e)
{
	const char *at = out->data, *end;

	for (; at && (end = strchr(at, '\n')) && *done < n; at = end + 1) {
		struct json *line;
		struct json *v;
		int rc;

		rc = json_parse(jobs[*done].src->path, at, (size_t)(end - at), &line, e);
		if (rc)
			return rc;
		v = json_take(line, "value");
		if (v)
			values[(*done)++] = v;
		else
			rc = failure(prelude, &jobs[*done], line, e);
		json_free(line);
		if (rc)
			return rc;
	}
	return 0;
}

static int judge(const struct buf *out, int status, const struct last_words *words,
		 const struct script_source *prelude, const struct sandbox_job *jobs, size_t n,
		 struct json **values, struct err *e)
{
	size_t done = 0;
	int rc = read_lines(out, prelude, jobs, n, values, &done, e);
	const struct sandbox_job *job = &jobs[done < n ? done : n - 1];

	if (rc || (done == n && WIFEXITED(status) && !WEXITSTATUS(status)))
		return rc;
	if (WIFSIGNALED(status) &&
	    (words->late || WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
		return too_long(prelude, job, words, e);
	if (WIFSIGNALED(status))
		return err_set(e, ERR_RECIPE,
			       "%s: the process that evaluated it died of signal %d (%s)",
			       job->src->path, WTERMSIG(status), strsignal(WTERMSIG(status)));
	return err_set(e, ERR_IO, "%s: the process that evaluated it ended without an answer",
		       job->src->path);
}

static int wait_for(pid_t pid, bool kill_it)
{
	int status = 0;

	if (kill_it)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static int run(struct last_words *words, const struct script_source *prelude,
	       const struct sandbox_job *jobs, size_t n, struct json **values, struct err *e)
{
	struct buf out = {0};
	int fds[2], rc, status;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return err_sys(e, ERR_IO, "pipe to the recipe's process");
	pid = fork();
	if (!pid) {
		close(fds[0]);
		child(fds[1], words, prelude, jobs, n);
	}
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return err_sys(e, ERR_TEMP, "starting the recipe's process");
	}
	rc = collect(fds[0], &out, e);
	close(fds[0]);
	status = wait_for(pid, rc != 0);
	if (!rc)
		rc = judge(&out, status, words, prelude, jobs, n, values, e);
	buf_free(&out);
	return rc;
}

int sandbox_run(const struct script_source *prelude, const struct sandbox_job *jobs, size_t n,
		struct json **values, struct err *e)
{
	struct last_words *words;
	int rc;

	memset(values, 0, n * sizeof(*values));
	if (!n)
		return 0;
	words = mmap(NULL, sizeof(*words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (words == MAP_FAILED)
		return err_sys(e, ERR_TEMP, "memory for the recipe's process");
	rc = run(words, prelude, jobs, n, values, e);
	munmap(words, sizeof(*words));
	for (size_t i = 0; rc && i < n; i++)
		json_freep(&values[i]);
	return rc;
}
