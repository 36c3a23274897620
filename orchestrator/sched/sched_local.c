/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scheduler `local`: the agent runs on this machine, detached from us, so that it survives our end
 * and a later fettle finds it again. One allocation at a time: two would disturb each other's
 * figures.
 *
 * What was started is kept in <blocks_root>/.tokens/, so that a restart needs to look at one file
 * and not at every block: `<token>` (JSON: block directories, boot id) is there before the agent is
 * started, the links `<token>.id` -> pid:start_ticks and `id.<pid:start_ticks>` -> token after. The
 * agent holds a lock on `<token>` as its standard input: while we are killed between the two, the
 * lock tells that it lives. The link `running` -> token is set in between: it is what other fettles
 * in this workspace, and a later one, wait for.
 */
#include "orchestrator/sched/sched.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum {
	HINT_MAX = 1 << 20, /* 1,000 directories of 1,000 bytes */
	CLAIM_MAX = 16 << 10,
	WITHOUT_PIDFD_MS = 50, /* RHEL 8: look again this often */
	/* The agent gives a trial its grace (at most 600 s, usually 5), then kills; after this we
	 * kill the agent, and its guard the rest. */
	CANCEL_KILL_US = 60000000,
	DIRS_MAX = 10000,
};

struct job {
	char id[64], token[64];
	struct proc_id proc;
	char boot_id[37];
	struct strv dirs;
	bool child; /* of this process: its exit status can be had */
	bool ended, cancelled, timed_out;
	int exit_status;
	int64_t start_us, end_us, kill_at_us, limit_us; /* the last two: monotonic; 0: none */
};

struct sched_run {
	struct sched_config c; /* its strings are borrowed */
	char *tokens;          /* directory of hints */
	char boot_id[37], host[256];
	struct job *jobs;
	size_t n, cap;
};

/* --- files ------------------------------------------------------------------------------ */

static bool token_ok(const char *token)
{
	return *token && *token != '.' && !strchr(token, '/') && strlen(token) < 64;
}

static char *hint_path(const struct sched_run *s, const char *token, const char *suffix)
{
	return xasprintf("%s/%s%s", s->tokens, token, suffix);
}

/* Text of a symbolic link; "" if there is none. */
static bool read_link(const char *path, char *out, size_t n)
{
	ssize_t len = readlink(path, out, n - 1);

	out[len > 0 ? len : 0] = '\0';
	return len > 0;
}

static int write_hint(const struct sched_run *s, const struct sched_job *job, struct err *e)
{
	_cleanup_free_ char *path = hint_path(s, job->token, ""),
			    *id = hint_path(s, job->token, ".id");
	_cleanup_free_ char *text = NULL;
	struct json *j = json_object(), *dirs = json_array();

	for (size_t i = 0; i < job->n_block_dirs; i++)
		json_add_text(dirs, job->block_dirs[i]);
	json_set_text(j, "format", "fettle.local/1");
	json_set_text(j, "token", job->token);
	json_set_text(j, "boot_id", s->boot_id);
	json_set_i64(j, "submit_us", clock_utc_us(s->c.clock));
	json_set_i64(j, "time_limit_s", job->time_limit_s);
	json_set(j, "dirs", dirs);
	text = json_print(j, false);
	json_free(j);
	unlink(id);
	return fs_write_atomic(path, text, strlen(text), 0600, e);
}

static int read_hint(const struct sched_run *s, const char *token, struct job *out, struct err *e)
{
	_cleanup_free_ char *path = hint_path(s, token, "");
	_cleanup_(json_freep) struct json *j = NULL;
	const struct json *dirs;
	int64_t limit_s;
	int rc = json_read_file(path, HINT_MAX, &j, e);

	if (rc)
		return rc;
	dirs = json_get(j, "dirs");
	for (size_t i = 0; i < json_len(dirs) && i < DIRS_MAX; i++)
		strv_add(&out->dirs, json_text(json_at(dirs, i), ""));
	str_copy(out->token, sizeof out->token, token);
	str_copy(out->boot_id, sizeof out->boot_id, json_text(json_get(j, "boot_id"), ""));
	out->start_us = json_i64(json_get(j, "submit_us"), 0);
	limit_s = json_i64(json_get(j, "time_limit_s"), 0);
	if (limit_s > 0)
		out->limit_us = clock_mono_us(s->c.clock) + limit_s * 1000000 -
				(clock_utc_us(s->c.clock) - out->start_us);
	return 0;
}

/* Both links; they may be there already. */
static int write_id(const struct sched_run *s, const struct job *job, struct err *e)
{
	_cleanup_free_ char *by_token = hint_path(s, job->token, ".id"),
			    *name = xasprintf("id.%s", job->id);
	_cleanup_free_ char *by_id = hint_path(s, name, "");

	unlink(by_id); /* of an earlier boot */
	if (symlink(job->token, by_id) || (symlink(job->id, by_token) && errno != EEXIST))
		return err_sys(e, ERR_IO, "cannot note the process of %s in %s", job->token,
			       s->tokens);
	return 0;
}

static bool parse_id(const char *id, struct proc_id *out)
{
	long pid;
	unsigned long long ticks;
	int used = 0;

	if (sscanf(id, "%ld:%llu%n", &pid, &ticks, &used) != 2 || id[used] || pid <= 1)
		return false;
	*out = (struct proc_id){.pid = (pid_t)pid, .start_ticks = ticks};
	return true;
}

static void format_id(const struct proc_id *p, char out[64])
{
	snprintf(out, 64, "%ld:%llu", (long)p->pid, (unsigned long long)p->start_ticks);
}

/* Who claimed the first of the directories that is claimed. False: none is. */
static bool read_claim(const struct strv *dirs, struct proc_id *out, char boot_id[37])
{
	for (size_t i = 0; i < dirs->n; i++) {
		_cleanup_free_ char *path = fs_join(dirs->v[i], "claim.json");
		_cleanup_(json_freep) struct json *j = NULL;

		if (json_read_file(path, CLAIM_MAX, &j, NULL))
			continue;
		out->pid = (pid_t)json_i64(json_get(j, "pid"), 0);
		out->start_ticks = (uint64_t)json_i64(json_get(j, "start_ticks"), 0);
		str_copy(boot_id, 37, json_text(json_get(j, "boot_id"), ""));
		return true;
	}
	return false;
}

/* A cancel is noted, so that a later fettle reads the end as one. */
static void note_cancel(const struct sched_run *s, const char *token)
{
	_cleanup_free_ char *path = hint_path(s, token, ".cancel");
	int fd = fs_create(path, O_WRONLY, 0600);

	if (fd >= 0)
		close(fd);
}

static bool was_cancelled(const struct sched_run *s, const char *token)
{
	_cleanup_free_ char *path = hint_path(s, token, ".cancel");

	return fs_exists(path);
}

static bool all_done(const struct strv *dirs)
{
	for (size_t i = 0; i < dirs->n; i++) {
		_cleanup_free_ char *path = fs_join(dirs->v[i], "done.json");

		if (!fs_exists(path))
			return false;
	}
	return true;
}

/* --- jobs ------------------------------------------------------------------------------- */

static int64_t mono_us(const struct sched_run *s)
{
	return clock_mono_us(s->c.clock);
}

static struct job *job_by_id(struct sched_run *s, const char *id)
{
	for (size_t i = 0; i < s->n; i++)
		if (str_eq(s->jobs[i].id, id))
			return &s->jobs[i];
	return NULL;
}

static struct job *job_by_token(struct sched_run *s, const char *token)
{
	for (size_t i = 0; i < s->n; i++)
		if (str_eq(s->jobs[i].token, token))
			return &s->jobs[i];
	return NULL;
}

/* Takes what job owns. */
static struct job *job_add(struct sched_run *s, const struct job *job)
{
	s->jobs = xgrow(s->jobs, s->n, &s->cap, sizeof *s->jobs);
	s->jobs[s->n] = *job;
	return &s->jobs[s->n++];
}

static void job_ended(struct sched_run *s, struct job *j)
{
	j->ended = true;
	j->end_us = clock_utc_us(s->c.clock);
}

/* Another boot has other processes, and its agent is gone for good. */
static void refresh(struct sched_run *s, struct job *j)
{
	int status;
	pid_t got;

	if (j->ended)
		return;
	if (!j->child) {
		if (!str_eq(j->boot_id, s->boot_id) || !proc_alive(&j->proc))
			job_ended(s, j);
		return;
	}
	got = waitpid(j->proc.pid, &status, WNOHANG);
	if (got == 0)
		return;
	if (got == j->proc.pid)
		j->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	job_ended(s, j);
}

static void end_softly(struct sched_run *s, struct job *j)
{
	refresh(s, j);
	if (j->ended)
		return;
	kill(j->proc.pid, SIGTERM);
	kill(j->proc.pid, SIGCONT); /* a stopped process would keep the signal for later */
	if (!j->kill_at_us)
		j->kill_at_us = mono_us(s) + CANCEL_KILL_US;
}

/* What is due by the clock: a limit reached, a cancel that was not obeyed. */
static void enforce(struct sched_run *s, struct job *j)
{
	if (j->ended)
		return;
	if (j->limit_us && mono_us(s) >= j->limit_us && !j->timed_out) {
		j->timed_out = true;
		end_softly(s, j);
	}
	if (j->kill_at_us && mono_us(s) >= j->kill_at_us && !j->ended)
		kill(j->proc.pid, SIGKILL); /* its guard ends the trial */
}

static enum job_end end_of(const struct job *j)
{
	if (all_done(&j->dirs) && !j->cancelled && !j->timed_out)
		return END_OK;
	return j->cancelled ? END_CANCELLED : j->timed_out ? END_TIMEOUT : END_FAILED;
}

static void fill_status(struct sched_run *s, struct job *j, struct sched_status *out)
{
	refresh(s, j);
	enforce(s, j);
	*out = (struct sched_status){.state = j->ended ? JOB_ENDED : JOB_RUNNING,
				     .start_us = j->start_us};
	str_copy(out->id, sizeof out->id, j->id);
	str_copy(out->token, sizeof out->token, j->token);
	str_copy(out->nodes, sizeof out->nodes, s->host);
	if (!j->ended)
		return;
	out->end = end_of(j);
	out->exit_status = j->exit_status;
	out->end_us = j->end_us;
	if (out->end == END_FAILED && j->exit_status)
		snprintf(out->reason, sizeof out->reason, "the agent ended with status %d",
			 j->exit_status);
	else if (out->end == END_FAILED)
		snprintf(out->reason, sizeof out->reason, "the agent ended without done.json");
}

/* --- find ------------------------------------------------------------------------------- */

static bool runs_block(pid_t pid, const char *dir)
{
	struct strv argv = {0};
	bool found = false;

	if (proc_cmdline(pid, &argv) == 0 && argv.n > 1)
		for (size_t i = 1; i < argv.n && !found; i++)
			found = str_eq(argv.v[i], dir);
	found = found && strstr(fs_basename(argv.v[0]), "agent");
	strv_free(&argv);
	return found;
}

/* An agent that was started but has not claimed yet: its arguments name the directory. */
static bool find_starting(const struct strv *dirs, struct proc_id *out)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	bool found = false;
	int64_t pid;

	while (d && dirs->n && !found && (de = readdir(d))) {
		if (!str_to_i64(de->d_name, &pid) || !runs_block((pid_t)pid, dirs->v[0]))
			continue;
		out->pid = (pid_t)pid;
		found = proc_start_ticks(out->pid, &out->start_ticks, NULL) == 0;
	}
	if (d)
		closedir(d);
	return found;
}

/* Somebody who inherited the agent's standard input lives. */
static bool is_locked(const struct sched_run *s, const char *token)
{
	_cleanup_free_ char *path = hint_path(s, token, "");
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return locked;
}

/* The process of a hint: noted, claimed, or starting. 1 found, 0 there is none, negative: not known
 * now. */
static int find_process(struct sched_run *s, struct job *j, struct err *e)
{
	_cleanup_free_ char *link = hint_path(s, j->token, ".id");

	if (read_link(link, j->id, sizeof j->id) && parse_id(j->id, &j->proc))
		return 1;
	if (!read_claim(&j->dirs, &j->proc, j->boot_id) && !find_starting(&j->dirs, &j->proc)) {
		if (is_locked(s, j->token))
			return err_set(e, ERR_TEMP, "the agent of %s is just starting", j->token);
		return 0;
	}
	format_id(&j->proc, j->id);
	if (str_eq(j->boot_id, s->boot_id))
		write_id(s, j, NULL);
	return 1;
}

static void job_free(struct job *j)
{
	strv_free(&j->dirs);
}

/* 1 and *out in the table; 0 proved absent. */
static int load_job(struct sched_run *s, const char *token, struct job **out, struct err *e)
{
	struct job j = {0};
	int rc;

	*out = job_by_token(s, token);
	if (*out)
		return 1;
	if (!token_ok(token))
		return 0;
	rc = read_hint(s, token, &j, e);
	if (rc == -ERR_NOT_FOUND)
		return 0; /* the hint is written before anything is started */
	if (!rc)
		rc = find_process(s, &j, e);
	j.cancelled = rc == 1 && was_cancelled(s, token);
	if (rc == 1)
		*out = job_add(s, &j);
	else
		job_free(&j);
	return rc;
}

static int local_find(struct sched_run *s, const char *token, struct sched_status *out,
		      struct err *e)
{
	struct job *j = NULL;
	int rc = load_job(s, token, &j, e);

	if (rc == 1)
		fill_status(s, j, out);
	return rc;
}

static struct job *find_by_id(struct sched_run *s, const char *id)
{
	_cleanup_free_ char *name = xasprintf("id.%s", id), *link = hint_path(s, name, "");
	struct job *j = job_by_id(s, id);
	char token[64];

	if (!j && !strchr(id, '/') && read_link(link, token, sizeof token) &&
	    load_job(s, token, &j, NULL) == 1 && !str_eq(j->id, id))
		j = NULL; /* the same numbers in another boot */
	return j;
}

/* --- submit ----------------------------------------------------------------------------- */

static int check_job(const struct sched_run *s, const struct sched_job *job, struct err *e)
{
	if (!token_ok(job->token))
		return err_set(e, ERR_STATE, "\"%s\" cannot be a job's token", job->token);
	if (job->n_block_dirs == 0 || job->n_block_dirs > DIRS_MAX)
		return err_set(e, ERR_STATE, "%s has no block to run", job->token);
	if (job->nodes > 1)
		return err_set(e, ERR_LIMIT, "scheduler local has one node, %d are asked for",
			       job->nodes);
	if (access(s->c.agent, X_OK))
		return err_sys(e, ERR_NOT_FOUND, "cannot run %s", s->c.agent);
	if (access(job->workdir, X_OK))
		return err_sys(e, ERR_NOT_FOUND, "cannot run in directory %s", job->workdir);
	return 0;
}

/* `running` names the token that was started last in this workspace, by whomever. */
static int look_at_last(struct sched_run *s, struct err *e)
{
	_cleanup_free_ char *path = hint_path(s, "running", "");
	struct job *j = NULL;
	char token[64];
	int rc = read_link(path, token, sizeof token) ? load_job(s, token, &j, e) : 0;

	return rc == 1 ? 0 : rc;
}

static int note_running(const struct sched_run *s, const char *token, struct err *e)
{
	_cleanup_free_ char *path = hint_path(s, "running", ""), *tmp = NULL;

	tmp = xasprintf("%s.%ld", path, (long)getpid());
	unlink(tmp);
	if (symlink(token, tmp) || rename(tmp, path))
		return err_sys(e, ERR_IO, "cannot note that %s runs in %s", token, s->tokens);
	return 0;
}

/* Two at once would disturb each other's figures, so one is waited for, by the caller, who can be
 * interrupted. An agent that was cancelled or has left its manifest is about to end; should it not,
 * it is killed, whoever started it. */
static int check_free(struct sched_run *s, struct err *e)
{
	int rc = look_at_last(s, e);

	for (size_t i = 0; i < s->n && rc == 0; i++) {
		struct job *j = &s->jobs[i];

		refresh(s, j);
		if (!j->ended && !j->kill_at_us && (j->cancelled || all_done(&j->dirs)))
			j->kill_at_us = mono_us(s) + CANCEL_KILL_US;
		enforce(s, j);
		if (!j->ended)
			rc = err_set(e, ERR_TEMP, "%s still runs on this machine", j->token);
	}
	return rc;
}

static int spawn_agent(struct sched_run *s, const struct sched_job *job, int lock,
		       struct proc_id *out, struct err *e)
{
	int fd = fs_create(job->output, O_WRONLY | O_APPEND, 0600), rc;
	struct proc_spawn spawn = {.file = s->c.agent,
				   .env = job->env,
				   .workdir = job->workdir,
				   .fd_in = lock,
				   .fd_out = fd,
				   .fd_err = fd,
				   .new_session = true};
	struct strv argv = {0};

	if (fd < 0)
		return err_sys(e, ERR_IO, "cannot write %s", job->output);
	strv_add(&argv, s->c.agent);
	for (size_t i = 0; i < job->n_block_dirs; i++)
		strv_add(&argv, job->block_dirs[i]);
	spawn.argv = strv_end(&argv);
	rc = proc_spawn(&spawn, out, e);
	strv_free(&argv);
	close(fd);
	return rc;
}

static struct job *note_started(struct sched_run *s, const struct sched_job *job,
				const struct proc_id *proc)
{
	struct job j = {.proc = *proc, .child = true, .start_us = clock_utc_us(s->c.clock)};

	format_id(proc, j.id);
	str_copy(j.token, sizeof j.token, job->token);
	str_copy(j.boot_id, sizeof j.boot_id, s->boot_id);
	for (size_t i = 0; i < job->n_block_dirs; i++)
		strv_add(&j.dirs, job->block_dirs[i]);
	if (job->time_limit_s > 0)
		j.limit_us = mono_us(s) + job->time_limit_s * 1000000;
	return job_add(s, &j);
}

/* "No process" is not the doubt that -ERR_TEMP means here: nothing was started. */
static int not_accepted(struct err *e)
{
	if (e)
		e->code = ERR_LIMIT;
	return -ERR_LIMIT;
}

static int start_job(struct sched_run *s, const struct sched_job *job, char id[64], struct err *e)
{
	_cleanup_free_ char *hint = hint_path(s, job->token, "");
	struct proc_id proc;
	struct job *j;
	int lock, rc = write_hint(s, job, e);

	if (!rc)
		rc = note_running(s, job->token, e);
	if (rc)
		return rc;
	lock = open(hint, O_RDONLY | O_CLOEXEC);
	if (lock < 0)
		return err_sys(e, ERR_IO, "cannot open %s", hint);
	flock(lock,
	      LOCK_EX | LOCK_NB); /* where locks do not work, claims and arguments still tell */
	rc = spawn_agent(s, job, lock, &proc, e);
	close(lock);
	if (rc) {
		unlink(hint);
		return rc == -ERR_TEMP ? not_accepted(e) : rc;
	}
	j = note_started(s, job, &proc);
	write_id(s, j, NULL); /* without it find() goes by the claim */
	str_copy(id, 64, j->id);
	return 0;
}

/* Between the look whether this machine is free and the note that it is not any more nobody else
 * may look. A descriptor, or negative. */
static int one_at_a_time(const struct sched_run *s, struct err *e)
{
	_cleanup_free_ char *path = hint_path(s, "lock", "");
	int fd = fs_create(path, O_RDWR, 0600);

	if (fd < 0)
		return err_sys(e, ERR_IO, "cannot open %s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		close(fd);
		return err_set(e, ERR_TEMP, "another fettle is just starting a block here");
	}
	return fd;
}

/* A token that was accepted before is not started again: its id is given. */
static int local_submit(struct sched_run *s, const struct sched_job *job, char id[64],
			struct err *e)
{
	struct job *known = NULL;
	int rc = check_job(s, job, e), mutex;

	if (!rc)
		rc = load_job(s, job->token, &known, e);
	if (rc == 1)
		str_copy(id, 64, known->id);
	if (rc)
		return rc == 1 ? 0 : rc;
	mutex = one_at_a_time(s, e);
	if (mutex < 0)
		return mutex;
	if (job->exclusive)
		rc = check_free(s, e);
	if (!rc)
		rc = start_job(s, job, id, e);
	close(mutex);
	return rc;
}

/* --- the rest of the interface ---------------------------------------------------------- */

static int local_open(const struct sched_config *c, struct sched_run **out, struct err *e)
{
	_cleanup_free_ char *tokens = fs_join(c->blocks_root, ".tokens");
	struct sched_run *s;
	int rc = fs_mkdirs(tokens, 0700, e);

	if (rc)
		return rc;
	s = xcalloc(1, sizeof *s);
	s->c = *c;
	s->tokens = TAKE(tokens);
	proc_boot_id(s->boot_id);
	if (gethostname(s->host, sizeof s->host - 1))
		str_copy(s->host, sizeof s->host, "localhost");
	*out = s;
	return 0;
}

static void local_close(struct sched_run *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		job_free(&s->jobs[i]);
	free(s->jobs);
	free(s->tokens);
	free(s);
}

static int local_poll(struct sched_run *s, const char *const *ids, size_t n,
		      struct sched_status *out, struct err *e)
{
	(void)e;
	for (size_t i = 0; i < n; i++) {
		struct job *j = find_by_id(s, ids[i]);

		if (j) {
			fill_status(s, j, &out[i]);
			continue;
		}
		out[i] = (struct sched_status){.state = JOB_GONE};
		str_copy(out[i].id, sizeof out[i].id, ids[i]);
	}
	return 0;
}

static int local_cancel(struct sched_run *s, const char *id, struct err *e)
{
	struct job *j = find_by_id(s, id);

	if (!j)
		return 0;
	refresh(s, j);
	if (!j->ended && kill(j->proc.pid, 0) && errno == EPERM)
		return err_set(e, ERR_STATE,
			       "%s is run by another user of this workspace: only they, or root, "
			       "can end it",
			       j->token);
	if (!j->ended) {
		j->cancelled = true;
		note_cancel(s, j->token);
		end_softly(s, j);
	}
	return 0;
}

static int local_capacity(struct sched_run *s, struct sched_capacity *out, struct err *e)
{
	bool busy = false;

	(void)e;
	for (size_t i = 0; i < s->n; i++) {
		refresh(s, &s->jobs[i]);
		busy = busy || !s->jobs[i].ended;
	}
	*out = (struct sched_capacity){
		.nodes_total = 1, .nodes_idle = !busy, .jobs_at_once = 1, .blocks_at_most = 1};
	snprintf(out->summary, sizeof out->summary, "this machine (%.200s), %ld CPUs", s->host,
		 sysconf(_SC_NPROCESSORS_ONLN));
	return 0;
}

static int local_will_run(struct sched_run *s, const struct sched_job *job,
			  struct sched_forecast *out, struct err *e)
{
	int rc = check_job(s, job, e);

	*out = (struct sched_forecast){.start_us = rc ? 0 : clock_utc_us(s->c.clock)};
	return rc;
}

/* When something is due by the clock, within timeout_us. */
static int64_t due_in(struct sched_run *s, int64_t timeout_us)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct job *j = &s->jobs[i];
		int64_t at[2] = {j->timed_out ? 0 : j->limit_us, j->kill_at_us};

		for (size_t k = 0; k < 2 && !j->ended; k++)
			if (at[k] && at[k] - mono_us(s) < timeout_us)
				timeout_us = at[k] > mono_us(s) ? at[k] - mono_us(s) : 0;
	}
	return timeout_us;
}

static int local_wait(struct sched_run *s, int64_t timeout_us, int fd, struct err *e)
{
	struct pollfd *p = xcalloc(s->n + 1, sizeof *p);
	size_t n = 1;
	int64_t ms;

	p[0] = (struct pollfd){.fd = fd, .events = POLLIN};
	timeout_us = due_in(s, timeout_us);
	for (size_t i = 0; i < s->n; i++) {
		int pidfd;

		refresh(s, &s->jobs[i]);
		if (s->jobs[i].ended)
			continue;
		pidfd = (int)syscall(SYS_pidfd_open, s->jobs[i].proc.pid, 0U);
		if (pidfd >= 0)
			p[n++] = (struct pollfd){.fd = pidfd, .events = POLLIN};
		else if (timeout_us > WITHOUT_PIDFD_MS * 1000)
			timeout_us = WITHOUT_PIDFD_MS * 1000;
	}
	ms = timeout_us < 0 ? 0 : (timeout_us + 999) / 1000;
	if (poll(p, (nfds_t)n, ms > INT32_MAX ? INT32_MAX : (int)ms) < 0 && errno != EINTR)
		err_sys(e, ERR_IO, "cannot wait for processes");
	for (size_t i = 1; i < n; i++)
		close(p[i].fd);
	free(p);
	for (size_t i = 0; i < s->n; i++) {
		refresh(s, &s->jobs[i]);
		enforce(s, &s->jobs[i]);
	}
	return 0;
}

const struct sched sched_local = {
	.name = "local",
	.summary = "this machine, one allocation at a time",
	.open = local_open,
	.close = local_close,
	.submit = local_submit,
	.poll = local_poll,
	.cancel = local_cancel,
	.find = local_find,
	.capacity = local_capacity,
	.will_run = local_will_run,
	.wait = local_wait,
};
