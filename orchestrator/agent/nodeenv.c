/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/nodeenv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/agent/jwrite.h"
#include "orchestrator/agent/sampler.h"
#include "orchestrator/base/clock.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/log.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/nodefacts.h"
#include "orchestrator/base/proc.h"

enum {
	OUTPUT_MAX = 1 << 20, /* nvidia-smi -q of 16 GPUs is 300 KiB */
	REAP_US = 2000000,    /* a driver that hangs keeps even a killed process: it is left */

	/* the end of a program that has closed its output is seen so late */
	ROUND_MS = 50,
};

/* A program that runs, and what it has printed. */
struct child {
	const char *name; /* of the key; NULL: a tool of ours */
	struct proc_id id;
	int fd;
	bool runs, late; /* late: killed, since the time was over */
	int status;
	struct buf out;
};

/* -- programs ---------------------------------------------------------------------------------- */

static int start(const struct proc_spawn *as, struct child *c, struct err *e)
{
	struct proc_spawn s = *as;
	int fd[2], rc;

	if (pipe2(fd, O_CLOEXEC))
		return err_sys(e, ERR_IO, "cannot make a pipe");
	fcntl(fd[0], F_SETFL, O_NONBLOCK);
	s.fd_in = s.fd_err = -1;
	s.fd_out = fd[1];
	s.new_session = s.die_with_parent = true;
	rc = proc_spawn(&s, &c->id, e);
	close(fd[1]);
	c->fd = fd[0];
	c->runs = rc == 0;
	if (rc) {
		close(fd[0]);
		c->fd = -1;
	}
	return rc;
}

/* What it printed so far; of more than we keep nothing is read, and it waits for its end. */
static void drain(struct child *c)
{
	char bytes[8192];
	ssize_t n = 0;

	while (c->fd >= 0 && c->out.len < OUTPUT_MAX && (n = read(c->fd, bytes, sizeof bytes)) > 0)
		buf_put(&c->out, bytes, (size_t)n);
	if (c->fd >= 0 && (n == 0 || c->out.len >= OUTPUT_MAX)) {
		close(c->fd);
		c->fd = -1;
	}
}

/* It has ended, or is made to: with it goes what it started. */
static void finish(struct child *c)
{
	drain(c);
	kill(-c->id.pid, SIGKILL);
	proc_wait(&c->id, REAP_US, &c->status, NULL);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->runs = false;
}

static bool has_ended(const struct child *c)
{
	siginfo_t si = {0};

	return waitid(P_PID, (id_t)c->id.pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       si.si_pid == c->id.pid;
}

/* Until all have ended or the time is over; those that still run then are killed. */
static void collect(struct child *v, size_t n, int64_t limit_us)
{
	int64_t until = clock_mono_us(&clock_system) + limit_us;
	_cleanup_free_ struct pollfd *p = xcalloc(n + 1, sizeof *p);

	for (;;) {
		int64_t left = until - clock_mono_us(&clock_system);
		size_t run = 0;

		for (size_t i = 0; i < n; i++) {
			v[i].late = v[i].runs && left <= 0 && !has_ended(&v[i]);
			if (v[i].late || (v[i].runs && has_ended(&v[i])))
				finish(&v[i]);
			if (v[i].runs)
				drain(&v[i]);
			run += v[i].runs;
			p[i] = (struct pollfd){.fd = v[i].runs ? v[i].fd : -1, .events = POLLIN};
		}
		if (run == 0)
			return;
		poll(p, n, left / 1000 < ROUND_MS ? (int)(left / 1000) + 1 : ROUND_MS);
	}
}

/* -- what they say ----------------------------------------------------------------------------- */

static bool is_text(const char *s)
{
	return s && s[strspn(s, " \t\r\n")];
}

static void take_key(const struct child *c, int64_t limit_us, struct kvs *keys, struct kvs *absent)
{
	_cleanup_free_ char *why = NULL;

	if (c->late)
		why = xasprintf("its command did not end within %g s and was killed",
				(double)limit_us / 1e6);
	else if (WIFSIGNALED(c->status))
		why = xasprintf("its command was ended by signal %d", WTERMSIG(c->status));
	else if (WEXITSTATUS(c->status))
		why = xasprintf("its command exited with %d", WEXITSTATUS(c->status));
	else if (!is_text(c->out.data))
		why = xstrdup("its command printed nothing");
	else
		nodefacts_put(keys, c->name, c->out.data);
	if (why)
		nodefacts_put(absent, c->name, why);
}

/* The recipe's own word counts for a key that we know as well. */
static void read_file(const struct block *b, const struct block_key *k, struct kvs *keys,
		      struct kvs *absent)
{
	_cleanup_free_ char *path = k->file[0] == '/' ? xstrdup(k->file)
						      : fs_join(b->workdir, k->file);
	char text[NODEFACTS_VALUE_MAX * 4];
	int rc = nodefacts_line(path, text, sizeof text);
	_cleanup_free_ char *why = xasprintf(
		"%s: %s", path, rc == ENODATA ? "there is no text in it" : strerror(rc));

	nodefacts_put(rc ? absent : keys, k->name, rc ? why : text);
}

static void key_environment(const struct block *b, struct strv *out)
{
	struct kvs all = {0};

	kvs_copy(&all, &b->env);
	for (size_t i = 0; i < b->key_env.n; i++)
		kvs_set(&all, b->key_env.v[i].key, b->key_env.v[i].value);
	for (size_t i = 0; i < all.n; i++)
		strv_addf(out, "%s=%s", all.v[i].key, all.v[i].value);
	strv_end(out);
	kvs_free(&all);
}

/* A program of the node's own, where it has it. */
static void start_tool(const char *name, const char *option, struct child *c)
{
	char *const argv[] = {(char *)(uintptr_t)name, (char *)(uintptr_t)option, NULL};
	_cleanup_free_ char *program = proc_which(name, NULL);

	if (program)
		start(&(struct proc_spawn){.file = program, .argv = argv}, c, NULL);
}

/* "slurm 22.05.8", of Debian "slurm-wlm 22.05.8" */
static void take_slurm(const struct child *c, struct kvs *keys)
{
	const char *text = c->out.data ? c->out.data : "", *blank = strchr(text, ' ');

	if (str_starts(text, "slurm") && blank)
		nodefacts_put(keys, "slurm", blank);
}

static void start_keys(const struct block *b, struct child *v, struct kvs *absent)
{
	struct strv env = {0};

	key_environment(b, &env);
	for (size_t i = 0; i < b->n_keys; i++) {
		const struct proc_spawn s = {.file = b->keys[i].command.n ? b->keys[i].command.v[0]
									  : NULL,
					     .argv = b->keys[i].command.v,
					     .env = env.v,
					     .workdir = b->workdir};
		struct err e = {0};

		v[i].name = b->keys[i].name;
		if (s.file && start(&s, &v[i], &e))
			nodefacts_put(absent, v[i].name, e.text);
	}
	strv_free(&env);
}

/* The interpreter that a block's first arm runs: the first word of its command that is one, or a
 * launcher that lies beside one; heap, NULL: none on the host. */
static char *interpreter(const struct block *b)
{
	static const char *const launchers[] = {"torchrun", "accelerate", "deepspeed"};
	const struct strv *argv = &b->arms[0].argv;

	for (size_t i = 0; i < argv->n && !b->container.runtime; i++) {
		const char *name = fs_basename(argv->v[i]);
		bool runs = str_starts(name, "python");

		for (size_t k = 0; k < ARRAY_LEN(launchers); k++)
			runs = runs || str_eq(name, launchers[k]);
		if (runs && strchr(argv->v[i], '/'))
			return argv->v[i][0] == '/' ? xstrdup(argv->v[i])
						    : fs_join(b->workdir, argv->v[i]);
		if (runs)
			return proc_which(name, kvs_get(&b->env, "PATH"));
	}
	return NULL;
}

static void read_python(const struct block *b, struct kvs *keys)
{
	_cleanup_free_ char *path = interpreter(b);

	if (path)
		nodefacts_python(path, keys);
}

void nodeenv_read(const struct block *b, int64_t limit_us, struct kvs *keys, struct kvs *absent)
{
	size_t n = b->n_keys + 2;
	struct child *v = xcalloc(n, sizeof *v), *smi = &v[n - 1], *slurm = &v[n - 2];

	for (size_t i = 0; i < n; i++)
		v[i].fd = -1;
	start_tool("nvidia-smi", "-q", smi);
	if (getenv("SLURM_JOB_ID"))
		start_tool("srun", "--version", slurm);
	start_keys(b, v, absent);
	nodefacts_read("", keys);
	read_python(b, keys);
	collect(v, n, limit_us);
	if (smi->out.data)
		nodefacts_smi(smi->out.data, keys);
	take_slurm(slurm, keys);
	for (size_t i = 0; i < b->n_keys; i++) {
		if (b->keys[i].command.n && v[i].id.pid > 0)
			take_key(&v[i], limit_us, keys, absent);
		else if (*b->keys[i].file)
			read_file(b, &b->keys[i], keys, absent);
	}
	for (size_t i = 0; i < n; i++)
		buf_free(&v[i].out);
	free(v);
}

/* A key of the recipe's own that could not be read is not what we know by the same name. */
static void put_pairs(struct jwrite *w, const char *key, struct kvs *pairs,
		      const struct kvs *without)
{
	kvs_sort(pairs);
	jwrite_object(w, key);
	for (size_t i = 0; i < pairs->n; i++)
		if (!without || !kvs_has(without, pairs->v[i].key))
			jwrite_text(w, pairs->v[i].key, pairs->v[i].value);
	jwrite_object_end(w);
}

void nodeenv_write(const struct block *b, const char *dir, const char *node, bool own)
{
	_cleanup_free_ char *path = sampler_path(dir, "environment", own ? NULL : node, ".json");
	struct kvs keys = {0}, absent = {0};
	struct jwrite w;
	struct err e = {0};

	if (!b->tells_environment)
		return;
	nodeenv_read(b, NODEENV_LIMIT_US, &keys, &absent);
	jwrite_init(&w);
	jwrite_object(&w, NULL);
	jwrite_text(&w, "format", "fettle.environment/1");
	jwrite_text(&w, "token", b->token);
	jwrite_text(&w, "node", node);
	put_pairs(&w, "keys", &keys, &absent);
	put_pairs(&w, "absent", &absent, NULL);
	jwrite_object_end(&w);
	if (jwrite_file(&w, path, &e))
		log_warn("%s", e.text);
	jwrite_free(&w);
	kvs_free(&keys);
	kvs_free(&absent);
}
