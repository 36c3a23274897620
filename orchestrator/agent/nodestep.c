/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/nodestep.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/agent/procs.h"
#include "orchestrator/base/clock.h"
#include "orchestrator/base/log.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"

enum {
	READY_US = 60000000, /* a busy controller may take half a minute to make a step */
	TRIES_MAX = 3,       /* srun under load: "Unable to confirm allocation" */
	RETRY_PAUSE_US = 1000000,
	ENTER_US = 15000000,  /* what nodes may take to tell their environment, and some more */
	REPORT_US = 20000000, /* beyond the grace: kill, look again, send */
	STOP_US = 10000000,
	LINE_MAX_BYTES = 64 << 10,
	REPORT_MAX = 8 << 20, /* 1,000 ranks with 8 KiB of evidence each */
	WHY_MAX = 300,
};

struct node {
	char *name, *switches; /* switches: NULL until it has said hello */
	char boot_id[37], machine[32], why[WHY_MAX];
	bool up, entered, looked, ended;
	bool has_clock;
	int64_t offset_us, error_us; /* its clock less ours, and by how much that may be wrong */
	int64_t mono_us, mono_at_us; /* its other clock, and its first one then */
	size_t leftovers, shm_removed;
	bool cleaned;
	struct buf report;
};

struct nodestep {
	struct node *v;
	size_t n;
	int fd;                    /* srun's stdin, stdout and stderr; -1: it has ended */
	pid_t pid;                 /* its parent; 0: reaped */
	int64_t enter_us, look_us; /* when that was asked for last */
	struct buf line;
	char said[WHY_MAX]; /* srun's last words */
};

static int64_t utc_us(void)
{
	return clock_utc_us(&clock_system);
}

static int64_t mono_us(void)
{
	return clock_mono_us(&clock_system);
}

/* --- what comes ------------------------------------------------------------------------- */

/* The next word of *at, NUL-terminated; "" at the end. */
static char *next_word(char **at)
{
	char *word = *at;
	size_t n = strcspn(word, " ");

	*at = word + n + (word[n] != '\0');
	word[n] = '\0';
	return word;
}

static int64_t next_number(char **at)
{
	int64_t v = 0;

	return str_to_i64(next_word(at), &v) ? v : 0;
}

static struct node *node_of(struct nodestep *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (str_eq(s->v[i].name, name))
			return &s->v[i];
	return NULL;
}

/* The answer was written between its question and now. */
static void take_clock(struct node *n, int64_t asked, int64_t theirs)
{
	int64_t now = utc_us(), error = (now - asked + 1) / 2;

	if (theirs <= 0 || asked <= 0 || now < asked || (n->has_clock && error >= n->error_us))
		return;
	n->has_clock = true;
	n->error_us = error;
	n->offset_us = theirs - (asked + error);
}

static void take_hello(struct node *n, char *rest)
{
	n->up = true;
	n->mono_at_us = next_number(&rest);
	n->mono_us = next_number(&rest);
	str_copy(n->boot_id, sizeof n->boot_id, next_word(&rest));
	str_copy(n->machine, sizeof n->machine, next_word(&rest));
	free(n->switches);
	n->switches = xstrdup(next_word(&rest));
}

static void take_ended(struct node *n, char *rest)
{
	n->ended = true;
	n->leftovers = (size_t)next_number(&rest);
	n->shm_removed = (size_t)next_number(&rest);
	n->cleaned = next_number(&rest) == 1;
}

static void take_answer(struct nodestep *s, char *line)
{
	struct node *n = node_of(s, next_word(&line));
	const char *verb = next_word(&line);

	if (!n)
		return;
	if (str_eq(verb, "hello")) {
		take_hello(n, line);
	} else if (str_eq(verb, "more")) {
		if (n->report.len < REPORT_MAX)
			buf_str(&n->report, line);
	} else if (str_eq(verb, "error")) {
		str_copy(n->why, sizeof n->why, line);
	} else {
		int64_t asked = next_number(&line);

		take_clock(n, asked, next_number(&line));
		n->entered = n->entered || (str_eq(verb, "entered") && asked == s->enter_us);
		n->looked = n->looked || (str_eq(verb, "looked") && asked == s->look_us);
		if (str_eq(verb, "ended"))
			take_ended(n, line);
	}
}

static void take_line(struct nodestep *s, char *line)
{
	if (*line == '@')
		take_answer(s, line + 1);
	else if (*line)
		str_copy(s->said, sizeof s->said, line);
}

static void take_bytes(struct nodestep *s, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == '\n') {
			take_line(s, s->line.data ? s->line.data : (char[]){'\0'});
			buf_clear(&s->line);
		} else if (s->line.len < LINE_MAX_BYTES) {
			buf_char(&s->line, bytes[i]);
		}
	}
}

static void reap(struct nodestep *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	buf_clear(&s->line);
	if (s->pid > 0)
		kill(-s->pid, SIGKILL);
	while (s->pid > 0 && waitpid(s->pid, NULL, __WCLONE) < 0 && errno == EINTR)
		;
	s->pid = 0;
}

void nodestep_read(struct nodestep *s)
{
	char bytes[16384];
	ssize_t n;

	if (!s || s->fd < 0)
		return;
	while ((n = recv(s->fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
		take_bytes(s, bytes, (size_t)n);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		log_warn("the job step on the other nodes has ended: %s",
			 *s->said ? s->said : "it said nothing");
		reap(s);
	}
}

/* Until `done` or the time is over; false: it is over, or the step has ended. */
static bool wait_for(struct nodestep *s, bool (*done)(const struct nodestep *s), int64_t us,
		     struct signals *signals)
{
	int64_t until = mono_us() + us, left;

	while (s->fd >= 0 && !done(s) && (left = until - mono_us()) > 0 &&
	       !(signals && signals->stop)) {
		struct pollfd p[2] = {{.fd = s->fd, .events = POLLIN},
				      {.fd = signals ? signals->fd : -1, .events = POLLIN}};

		poll(p, 2, (int)(left / 1000) + 1);
		if (signals)
			signals_read(signals);
		nodestep_read(s);
	}
	return s->fd >= 0 && done(s);
}

/* --- the step --------------------------------------------------------------------------- */

/* What the batch script was asked for is not what this step is; NONE would hand nothing on. */
static bool shapes_steps(const char *var)
{
	static const char *const prefixes[] = {
		"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_CPUS_PER_",    "SLURM_TRES_PER_TASK",
		"SLURM_GPU",    "SLURM_MEM_",   "SLURM_EXPORT_ENV",   "SLURM_DISTRIBUTION",
		"SLURM_HINT",   "SLURM_EXACT",  "SLURM_THREADS_PER_", "SLURM_CPU_BIND"};

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (str_starts(var, prefixes[i]))
			return true;
	return false;
}

static void step_env(struct strv *out)
{
	for (char **p = environ; *p; p++)
		if (!shapes_steps(*p))
			strv_add(out, *p);
	strv_end(out);
}

/* This program, as the other nodes find it too. */
static char *own_path(void)
{
	static const char gone[] = " (deleted)";
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

	if (n <= 0)
		return NULL;
	path[n] = '\0';
	if (str_ends(path, gone))
		path[(size_t)n - strlen(gone)] = '\0';
	return xstrdup(path);
}

static void step_argv(const struct nodestep *s, const char *self, char *const *dirs,
		      struct strv *out)
{
	static const char *const fixed[] = {"--overlap",
					    "--ntasks-per-node=1",
					    "--cpus-per-task=1",
					    "--mem=0",
					    "--cpu-bind=none",
					    "--mpi=none",
					    "--kill-on-bad-exit=0",
					    "--export=ALL",
					    "--input=all",
					    "--job-name=fettle-samples"};
	struct buf names = {0};

	for (size_t i = 0; i < s->n; i++)
		buf_printf(&names, "%s%s", i ? "," : "", s->v[i].name);
	strv_add(out, "srun");
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		strv_add(out, fixed[i]);
	strv_addf(out, "--nodes=%zu", s->n);
	strv_addf(out, "--ntasks=%zu", s->n);
	strv_addf(out, "--nodelist=%s", names.data);
	strv_add(out, self);
	strv_add(out, "sample");
	for (; *dirs; dirs++)
		strv_add(out, *dirs);
	strv_end(out);
	buf_free(&names);
}

/* srun is not a child of the agent's: a plain wait there means the trial's processes alone. */
static void be_parent(const char *srun, const struct strv *argv, int fd)
{
	struct strv env = {0};
	struct proc_spawn p = {.file = srun,
			       .argv = argv->v,
			       .fd_in = fd,
			       .fd_out = fd,
			       .fd_err = fd,
			       .die_with_parent = true};
	struct proc_id id;
	struct err e = {0};
	int status = 0;

	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "fettle-nodes");
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	step_env(&env);
	p.env = env.v;
	if (proc_spawn(&p, &id, &e)) {
		dprintf(fd, "%s\n", e.text);
		_exit(1);
	}
	close(fd);
	waitpid(id.pid, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static bool launch(struct nodestep *s, char *const *dirs)
{
	_cleanup_free_ char *srun = proc_which("srun", NULL), *self = own_path();
	struct strv argv = {0};
	int fd[2];

	if (!srun || !self) {
		str_copy(s->said, sizeof s->said,
			 srun ? "/proc is not mounted" : "there is no srun in PATH");
		return false;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd)) {
		snprintf(s->said, sizeof s->said, "socketpair: %s", strerror(errno));
		return false;
	}
	step_argv(s, self, dirs, &argv);
	s->pid = procs_fork_silent();
	if (s->pid == 0) {
		close(fd[0]);
		be_parent(srun, &argv, fd[1]);
	}
	strv_free(&argv);
	close(fd[1]);
	s->fd = fd[0];
	if (s->pid < 0) {
		s->pid = 0;
		reap(s);
	}
	return s->fd >= 0;
}

static bool all_up(const struct nodestep *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (!s->v[i].up && !*s->v[i].why)
			return false;
	return true;
}

static void try_to_start(struct nodestep *s, char *const *dirs, struct signals *signals)
{
	int64_t begin = mono_us();

	for (int try = 1; try <= TRIES_MAX && !signals->stop; try++) {
		if (try > 1)
			poll(NULL, 0, RETRY_PAUSE_US / 1000);
		if (!launch(s, dirs))
			break;
		if (wait_for(s, all_up, READY_US - (mono_us() - begin), signals) || s->fd >= 0)
			break;
	}
	if (s->fd >= 0 && !all_up(s) && !*s->said)
		str_copy(s->said, sizeof s->said, "the job step has not started");
}

struct nodestep *nodestep_start(const struct place *p, char *const *dirs, struct signals *signals)
{
	struct nodestep *s;
	bool own = false;

	if (!getenv("SLURM_JOB_ID") || (p->nodes.n < 2 && p->expected < 2))
		return NULL;
	s = xcalloc(1, sizeof *s);
	s->fd = -1;
	s->v = xcalloc(p->nodes.n, sizeof *s->v);
	for (size_t i = 0; i < p->nodes.n; i++)
		own = own || str_eq(p->nodes.v[i], p->node);
	/* A batch script runs on the first node. */
	for (size_t i = 0; i < p->nodes.n; i++)
		if (own ? !str_eq(p->nodes.v[i], p->node) : i > 0 || p->nodes.n == 1)
			s->v[s->n++].name = xstrdup(p->nodes.v[i]);
	if (p->nodes.n < 2)
		str_copy(s->said, sizeof s->said,
			 "`scontrol show hostnames` did not name the nodes");
	else
		try_to_start(s, dirs, signals);
	if (s->fd < 0)
		log_warn("samples and evidence of the other nodes are absent: %s", s->said);
	return s;
}

void nodestep_stop(struct nodestep *s)
{
	int64_t until = mono_us() + STOP_US, left;
	char bytes[4096];

	if (!s)
		return;
	if (s->fd >= 0)
		shutdown(s->fd, SHUT_WR);
	while (s->fd >= 0 && (left = until - mono_us()) > 0) {
		struct pollfd p = {.fd = s->fd, .events = POLLIN};

		if (poll(&p, 1, (int)(left / 1000) + 1) > 0 &&
		    recv(s->fd, bytes, sizeof bytes, MSG_DONTWAIT) == 0)
			break;
	}
	reap(s);
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].name);
		free(s->v[i].switches);
		buf_free(&s->v[i].report);
	}
	free(s->v);
	buf_free(&s->line);
	free(s);
}

pid_t nodestep_pid(const struct nodestep *s)
{
	return s ? s->pid : 0;
}

int nodestep_fd(const struct nodestep *s)
{
	return s ? s->fd : -1;
}

/* --- a trial ---------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void tell(struct nodestep *s, const char *fmt, ...)
{
	struct buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	/* srun does not read: it hangs, and so would we. */
	if (s->fd >= 0 && send(s->fd, b.data, b.len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)b.len)
		reap(s);
	buf_free(&b);
}

void nodestep_enter(struct nodestep *s, size_t block)
{
	if (!s || s->fd < 0)
		return;
	for (size_t i = 0; i < s->n; i++)
		s->v[i].entered = false;
	s->enter_us = utc_us();
	tell(s, "block %lld %zu\n", (long long)s->enter_us, block);
}

static bool all_entered(const struct nodestep *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].up && !s->v[i].entered && !*s->v[i].why)
			return false;
	return true;
}

void nodestep_entered(struct nodestep *s, struct signals *signals)
{
	if (s)
		wait_for(s, all_entered, ENTER_US, signals);
}

void nodestep_trial(struct nodestep *s, size_t block, int slot, const struct kvs *added)
{
	for (size_t i = 0; s && i < s->n; i++) {
		s->v[i].looked = true;
		s->v[i].ended = s->v[i].has_clock = false;
		buf_clear(&s->v[i].report);
	}
	if (!s || s->fd < 0)
		return;
	for (size_t i = 0; i < added->n; i++)
		if (!strchr(added->v[i].value, '\n'))
			tell(s, "set %s=%s\n", added->v[i].key, added->v[i].value);
	tell(s, "trial %lld %zu %d\n", (long long)utc_us(), block, slot);
}

void nodestep_look(struct nodestep *s)
{
	if (!s || s->fd < 0)
		return;
	for (size_t i = 0; i < s->n; i++)
		s->v[i].looked = false;
	s->look_us = utc_us();
	tell(s, "look %lld\n", (long long)s->look_us);
}

bool nodestep_looking(const struct nodestep *s)
{
	for (size_t i = 0; s && s->fd >= 0 && i < s->n; i++)
		if (s->v[i].up && !s->v[i].looked && !*s->v[i].why)
			return true;
	return false;
}

static bool all_ended(const struct nodestep *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].up && !s->v[i].ended && !*s->v[i].why)
			return false;
	return true;
}

void nodestep_end(struct nodestep *s, int64_t grace_s, pid_t leader, struct evidence *ev,
		  struct nodestep_sum *sum)
{
	struct err e = {0};

	*sum = (struct nodestep_sum){.cleaned = true};
	if (!s || s->fd < 0)
		return;
	tell(s, "end %lld\n", (long long)utc_us());
	wait_for(s, all_ended, grace_s * 1000000 + REPORT_US, NULL);
	for (size_t i = 0; i < s->n; i++) {
		struct node *n = &s->v[i];

		if (!n->ended)
			continue;
		sum->leftovers += n->leftovers;
		sum->shm_removed += n->shm_removed;
		sum->cleaned = sum->cleaned && n->cleaned;
		if (n->report.len && evidence_add(ev, n->report.data, n->report.len, leader, &e))
			log_warn("node %s: %s", n->name, e.text);
	}
}

static void write_node(const struct nodestep *s, const struct node *n, struct jwrite *w)
{
	const char *why = *n->why               ? n->why
			  : s->fd < 0 || !n->up ? s->said
			  : !n->ended           ? "it did not answer at the end of the trial"
						: "";
	_cleanup_free_ char *samples = xasprintf("samples.%s", n->name);

	jwrite_object(w, NULL);
	jwrite_text(w, "node", n->name);
	jwrite_text(w, "state", n->ended ? "ok" : "absent");
	jwrite_text(w, "reason", n->ended ? "" : why);
	jwrite_text(w, "samples", n->ended ? samples : "");
	if (n->has_clock) {
		jwrite_int(w, "clock_offset_us", n->offset_us);
		jwrite_int(w, "clock_error_us", n->error_us);
	}
	if (n->up) {
		jwrite_int(w, "mono_us", n->mono_us);
		jwrite_int(w, "mono_at_us", n->mono_at_us);
		jwrite_text(w, "boot_id", n->boot_id);
		jwrite_text(w, "machine", n->machine);
	}
	jwrite_object_end(w);
}

void nodestep_write(const struct nodestep *s, struct jwrite *w)
{
	if (!s)
		return;
	jwrite_array(w, "samplers");
	for (size_t i = 0; i < s->n; i++)
		write_node(s, &s->v[i], w);
	jwrite_array_end(w);
}

void nodestep_switches(const struct nodestep *s, struct jwrite *w)
{
	for (size_t i = 0; s && i < s->n; i++)
		if (s->v[i].switches && *s->v[i].switches)
			jwrite_text(w, s->v[i].name, s->v[i].switches);
}
