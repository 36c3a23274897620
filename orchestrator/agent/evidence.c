/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/evidence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "orchestrator/agent/jread.h"
#include "orchestrator/agent/procs.h"
#include "orchestrator/agent/trialenv.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

enum {
	RANKS_MAX = 1024, /* of one node */
	ARGV_KEPT = 512,
	ENV_KEPT = 8192,         /* of a rank on another node, when it is read back */
	PROC_TEXT_MAX = 4 << 20, /* environ and cmdline; maps of a process with 30,000 regions */
	WRAPPERS_MAX = 8,        /* sh -c, in timeout, in numactl, ... */
	WORLD_MAX = 1000000,
};

/* Rank variables and the one that tells how many there are, best first. */
static const struct {
	const char *rank, *world;
} launchers[] = {
	{"RANK", "WORLD_SIZE"},
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	{"PMI_RANK", "PMI_SIZE"},
	{"SLURM_PROCID", "SLURM_NTASKS"},
};

/* --- one process ------------------------------------------------------------------------ */

static int read_text(pid_t pid, const char *what, struct buf *out)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, what);
	return fs_read(path, PROC_TEXT_MAX, out, NULL);
}

static int read_environ(pid_t pid, struct kvs *out)
{
	struct buf b = {0};
	int rc = read_text(pid, "environ", &b);

	for (size_t i = 0, next; rc == 0 && i < b.len; i = next) {
		char *eq = strchr(b.data + i, '=');

		next = i + strlen(b.data + i) + 1;
		if (!eq)
			continue;
		*eq = '\0';
		kvs_set(out, b.data + i, eq + 1);
	}
	if (rc == 0 && b.len == 0)
		rc = -1; /* a zombie, or before exec was through */
	buf_free(&b);
	return rc;
}

static bool in_list(const struct strv *list, const char *s)
{
	for (size_t i = 0; i < list->n; i++)
		if (str_eq(list->v[i], s))
			return true;
	return false;
}

static bool is_named(const struct block *b, const char *key)
{
	for (size_t i = 0; i < b->n_arms; i++)
		if (kvs_has(&b->arms[i].env, key) || in_list(&b->arms[i].unset, key))
			return true;
	for (size_t i = 0; i < b->env_prefixes.n; i++)
		if (str_starts(key, b->env_prefixes.v[i]))
			return true;
	return false;
}

/* Given anew to each job step, shell or process: no difference between arms is told by them. */
static bool is_passing(const char *key)
{
	static const char *const prefixes[] = {"SLURM_",       "SLURMD_",       "SRUN_",
					       "FETTLE_TRIAL", "APPTAINERENV_", "SINGULARITYENV_"};
	static const char *const names[] = {"_", "PWD", "OLDPWD", "SHLVL"};

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (str_starts(key, prefixes[i]))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(key, names[i]))
			return true;
	return false;
}

static void sort_environ(const struct evidence_spec *s, const struct kvs *env,
			 struct evidence_rank *r)
{
	for (size_t i = 0; i < env->n; i++) {
		const char *key = env->v[i].key, *value = env->v[i].value;
		char hash[32];

		if (in_list(&s->block->secrets, key))
			continue;
		if ((is_passing(key) || str_eq(kvs_get(s->added, key), value)) &&
		    !is_named(s->block, key))
			continue;
		if (is_named(s->block, key)) {
			_cleanup_free_ char *clean = trialenv_redact(s->secrets, value);

			kvs_set(&r->env, key, clean);
			continue;
		}
		snprintf(hash, sizeof hash, "xxh64:%016llx",
			 (unsigned long long)XXH64(value, strlen(value), 0));
		kvs_set(&r->env_other, key, hash);
	}
}

static void read_argv(const struct evidence_spec *s, pid_t pid, struct strv *out)
{
	struct buf b = {0};

	if (read_text(pid, "cmdline", &b) == 0)
		for (size_t i = 0; i < b.len && out->n < ARGV_KEPT; i += strlen(b.data + i) + 1) {
			_cleanup_free_ char *clean = trialenv_redact(s->secrets, b.data + i);

			strv_add(out, clean);
		}
	buf_free(&b);
}

static bool preloaded(const char *list, const char *path)
{
	const char *base = fs_basename(path);

	while (list && *list) {
		size_t n = strcspn(list, ": ");
		_cleanup_free_ char *item = xstrndup(list, n);

		if (n && (str_eq(item, path) || str_eq(fs_basename(item), base)))
			return true;
		list += n + (list[n] != '\0');
	}
	return false;
}

static bool is_telling(const struct block *b, const char *path)
{
	static const char *const words[] = {"jemalloc", "tcmalloc", "nccl", "iomp", "gomp"};
	const char *base = fs_basename(path);

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strstr(base, words[i]))
			return true;
	if (preloaded(kvs_get(&b->env, "LD_PRELOAD"), path))
		return true;
	for (size_t i = 0; i < b->n_arms; i++)
		if (preloaded(kvs_get(&b->arms[i].env, "LD_PRELOAD"), path))
			return true;
	return false;
}

static void read_maps(const struct evidence_spec *s, pid_t pid, struct strv *out)
{
	struct buf b = {0};
	const char *last = "";

	if (read_text(pid, "maps", &b) == 0 && b.data)
		for (char *line = b.data, *next; line; line = next) {
			char *end = strchr(line, '\n'), *path;

			next = end ? end + 1 : NULL;
			if (end)
				*end = '\0';
			path = strchr(line, '/');
			/* The regions of one library follow each other. */
			if (!path || str_eq(path, last))
				continue;
			last = path;
			if (is_telling(s->block, path) && !in_list(out, path))
				strv_add(out, path);
		}
	buf_free(&b);
}

static int read_rank(const struct evidence_spec *s, pid_t pid, bool with_maps,
		     struct evidence_rank *r)
{
	struct procs_one one;
	struct kvs env = {0};

	if (read_environ(pid, &env) || procs_read(pid, &one)) {
		kvs_free(&env);
		return -1;
	}
	r->pid = pid;
	r->node = xstrdup(s->node ? s->node : "");
	r->threads = one.threads;
	sort_environ(s, &env, r);
	read_argv(s, pid, &r->argv);
	if (with_maps)
		read_maps(s, pid, &r->maps);
	kvs_free(&env);
	return 0;
}

static void rank_free(struct evidence_rank *r)
{
	free(r->node);
	strv_free(&r->argv);
	kvs_free(&r->env);
	kvs_free(&r->env_other);
	strv_free(&r->maps);
}

void evidence_free(struct evidence *ev)
{
	for (size_t i = 0; i < ev->n; i++)
		rank_free(&ev->v[i]);
	free(ev->v);
	*ev = (struct evidence){0};
}

static int add_rank(const struct evidence_spec *s, pid_t pid, int rank, bool with_maps,
		    struct evidence *ev)
{
	struct evidence_rank r = {.rank = rank};

	if (ev->n >= RANKS_MAX || read_rank(s, pid, with_maps, &r)) {
		rank_free(&r);
		return -1;
	}
	ev->v = xgrow(ev->v, ev->n, &ev->cap, sizeof *ev->v);
	ev->v[ev->n++] = r;
	ev->seen += rank >= 0;
	return 0;
}

/* --- which processes are ranks ---------------------------------------------------------- */

struct member {
	const struct procs_one *one;
	long rank[ARRAY_LEN(launchers)], world[ARRAY_LEN(launchers)]; /* -1: not set */
};

struct family {
	struct procs procs;
	struct member *v;
	size_t n, cap;
	pid_t launcher; /* the leader, when the block puts srun or the like before each command;
			   else 0 */
};

static long small_number(const char *s)
{
	int64_t v;

	return s && str_to_i64(s, &v) && v >= 0 && v < WORLD_MAX ? (long)v : -1;
}

static void add_member(struct family *f, const struct procs_one *one)
{
	struct member m = {.one = one};
	struct kvs env = {0};

	if (one->state == 'Z' || read_environ(one->pid, &env)) {
		kvs_free(&env);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(launchers); i++) {
		m.rank[i] = small_number(kvs_get(&env, launchers[i].rank));
		m.world[i] = small_number(kvs_get(&env, launchers[i].world));
	}
	kvs_free(&env);
	f->v = xgrow(f->v, f->n, &f->cap, sizeof *f->v);
	f->v[f->n++] = m;
}

static void find_family(const struct evidence_spec *s, pid_t leader, struct family *f)
{
	procs_scan(&f->procs);
	if (leader)
		procs_mark_tree(&f->procs, leader, NULL);
	if (s->marker)
		procs_mark_env(&f->procs, s->marker);
	for (size_t i = 0; i < f->procs.n; i++)
		if (f->procs.v[i].ours || f->procs.v[i].pid == leader)
			add_member(f, &f->procs.v[i]);
}

static const struct member *member_of(const struct family *f, pid_t pid)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].one->pid == pid)
			return &f->v[i];
	return NULL;
}

/* A rank has the variable itself; workers and children of a rank only inherit its value. So does a
 * launcher: in a batch step of Slurm it finds SLURM_PROCID=0. */
static bool owns_rank(const struct family *f, const struct member *m, size_t which)
{
	const struct member *up = member_of(f, m->one->ppid);

	return m->one->pid != f->launcher && m->rank[which] >= 0 &&
	       (!up || up->rank[which] != m->rank[which]);
}

static int64_t count_children(const struct family *f, pid_t pid)
{
	int64_t n = 0;

	for (size_t i = 0; i < f->procs.n; i++)
		n += f->procs.v[i].ppid == pid && f->procs.v[i].state != 'Z';
	return n;
}

static bool runs_one_of(pid_t pid, const char *const *names)
{
	struct buf b = {0};
	bool found = false;

	if (read_text(pid, "cmdline", &b) == 0 && b.len)
		for (; *names && !found; names++)
			found = str_eq(fs_basename(b.data + (b.data[0] == '-')), *names);
	buf_free(&b);
	return found;
}

/* Shells and programs that only prepare and wait for another one. */
static bool is_wrapper(pid_t pid)
{
	static const char *const names[] = {"sh",    "bash",    "dash",    "zsh",
					    "ksh",   "ash",     "env",     "timeout",
					    "time",  "stdbuf",  "nice",    "setsid",
					    "nohup", "taskset", "numactl", NULL};

	return runs_one_of(pid, names);
}

/* What enters a container and waits outside for what runs in it; apptainer calls itself otherwise
 * once it has begun. Its environment is the host's and proves nothing. */
static bool is_container(pid_t pid)
{
	static const char *const names[] = {"apptainer",
					    "singularity",
					    "Apptainer runtime parent",
					    "Singularity runtime parent",
					    "appinit",
					    "sinit",
					    "bwrap",
					    NULL};

	return runs_one_of(pid, names);
}

/* What a script runs on the way, or a container to mount its image, and never is the workload. */
static bool is_errand(pid_t pid)
{
	static const char *const names[] = {"sleep",      "tee",           "cat",
					    "tail",       "grep",          "date",
					    "squashfuse", "squashfuse_ll", "fuse-overlayfs",
					    "fuse2fs",    "gocryptfs",     NULL};

	return runs_one_of(pid, names);
}

/* True when `child` has lived for at least half of the life of `up`: what a wrapper was started for
 * has, the `sleep` or `grep` of a script that is itself the workload has not. */
static bool is_its_purpose(const struct procs_one *up, const struct procs_one *child)
{
	struct timespec ts;
	uint64_t now;

	clock_gettime(CLOCK_BOOTTIME, &ts); /* what start_ticks counts from */
	now = ((uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000) *
	      (uint64_t)sysconf(_SC_CLK_TCK) / 1000;
	return 2 * child->start_ticks <= up->start_ticks + now;
}

/* True when `child` runs a program of its own by now. Between fork and exec it still shows the
 * wrapper's arguments, in mid-exec none: what it will be cannot be told yet. */
static bool has_begun(pid_t up, pid_t child)
{
	struct buf a = {0}, b = {0};
	bool begun = read_text(up, "cmdline", &a) == 0 && read_text(child, "cmdline", &b) == 0 &&
		     b.len > 0 && (a.len != b.len || memcmp(a.data, b.data, a.len) != 0);

	buf_free(&a);
	buf_free(&b);
	return begun;
}

/* The process that does the work on behalf of pid; 0: it is in a container, and not there yet. */
static pid_t behind_wrappers(const struct family *f, pid_t pid)
{
	bool container = false;

	for (int depth = 0; depth < WRAPPERS_MAX; depth++) {
		const struct member *up = member_of(f, pid);
		pid_t child = 0;

		container = is_container(pid);
		if (!container && !is_wrapper(pid))
			break;
		for (size_t i = 0; up && i < f->n && !child; i++)
			if (f->v[i].one->ppid == pid &&
			    (container || is_its_purpose(up->one, f->v[i].one)) &&
			    has_begun(pid, f->v[i].one->pid) && !is_errand(f->v[i].one->pid))
				child = f->v[i].one->pid;
		if (!child)
			break;
		pid = child;
	}
	return container ? 0 : pid;
}

static int add_family_rank(const struct evidence_spec *s, const struct family *f, pid_t pid,
			   int rank, struct evidence *ev)
{
	pid = behind_wrappers(f, pid);
	if (pid == 0 || add_rank(s, pid, rank, true, ev))
		return -1;
	ev->v[ev->n - 1].children = count_children(f, pid);
	return 0;
}

static void add_ranks(const struct evidence_spec *s, const struct family *f, size_t which,
		      pid_t launcher, struct evidence *ev)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct member *m = &f->v[i];

		if (!owns_rank(f, m, which) || m->one->pid == launcher)
			continue;
		add_family_rank(s, f, m->one->pid, (int)m->rank[which], ev);
		if (m->world[which] > ev->expected)
			ev->expected = (int)m->world[which];
	}
}

/* The best launcher of which some process other than the leader is a rank; -1: none. */
static int launcher_used(const struct family *f, pid_t leader)
{
	for (size_t which = 0; which < ARRAY_LEN(launchers); which++)
		for (size_t i = 0; i < f->n; i++)
			if (f->v[i].one->pid != leader && owns_rank(f, &f->v[i], which))
				return (int)which;
	return -1;
}

/* One process does everything: its own variable tells the rank, else it is rank 0. */
static void add_single(const struct evidence_spec *s, const struct family *f, pid_t leader,
		       struct evidence *ev)
{
	const struct member *m = member_of(f, leader);
	int rank = 0;

	ev->expected = 1;
	if (s->block->container.runtime && s->block->launch.n)
		return; /* srun is not in the container */
	for (size_t i = ARRAY_LEN(launchers); m && i-- > 0;)
		if (m->rank[i] >= 0) {
			rank = (int)m->rank[i];
			ev->expected = m->world[i] > 0 ? (int)m->world[i] : 1;
		}
	add_family_rank(s, f, leader, rank, ev);
}

static int by_rank(const void *a, const void *b)
{
	int x = ((const struct evidence_rank *)a)->rank,
	    y = ((const struct evidence_rank *)b)->rank;

	return (x > y) - (x < y);
}

static size_t others(const struct evidence *ev, pid_t leader)
{
	size_t n = 0;

	for (size_t i = 0; i < ev->n; i++)
		n += ev->v[i].rank >= 0 && ev->v[i].pid != leader;
	return n;
}

int evidence_take(const struct evidence_spec *s, pid_t leader, struct evidence *out)
{
	struct evidence ev = {0};
	struct family f = {.launcher = s->block->launch.n > 0 ? leader : 0};
	int which;

	find_family(s, leader, &f);
	which = launcher_used(&f, leader);
	if (which < 0) {
		add_single(s, &f, leader, &ev);
	} else {
		const struct member *m = member_of(&f, leader);

		/* srun itself has the rank variables of the batch script; it is no rank all the
		 * same. */
		if (m && (s->marker || !owns_rank(&f, m, (size_t)which)))
			add_family_rank(s, &f, leader, -1, &ev);
		add_ranks(s, &f, (size_t)which, s->marker ? leader : 0, &ev);
		if (ev.expected < ev.seen)
			ev.expected = ev.seen;
	}
	free(f.v);
	procs_free(&f.procs);
	/* Ranks that an earlier look saw have ended: a launcher, or a script that does something
	 * behind them, must not stand for what it started. */
	if (ev.seen == 0 || others(&ev, leader) < others(out, leader)) {
		int rc = ev.seen == 0 ? -1 : 0;

		evidence_free(&ev);
		return rc;
	}
	qsort(ev.v, ev.n, sizeof *ev.v, by_rank);
	evidence_free(out);
	*out = ev;
	return 0;
}

int evidence_quick(const struct evidence_spec *s, pid_t leader, struct evidence *out)
{
	struct evidence ev = {.expected = 1};

	if (s->block->container.runtime) /* it is not in there yet */
		return -1;
	if (add_rank(s, leader, 0, false, &ev)) {
		evidence_free(&ev);
		return -1;
	}
	evidence_free(out);
	*out = ev;
	return 0;
}

/* --- other nodes ------------------------------------------------------------------------ */

static void read_one(struct jread *r, yajl_val v, struct evidence *ev)
{
	struct evidence_rank one = {0};

	if (!YAJL_IS_OBJECT(v)) {
		jread_fail(r, NULL, "expected an object");
		return;
	}
	one.rank = (int)jread_need_int(r, v, "rank", 0, WORLD_MAX);
	one.pid = (pid_t)jread_int(r, v, "pid", 0, 0, INT32_MAX);
	one.node = xstrdup(jread_need_text(r, v, "node"));
	jread_texts(r, v, "argv", ARGV_KEPT, &one.argv);
	jread_pairs(r, v, "env", ENV_KEPT, &one.env);
	jread_pairs(r, v, "env_other", ENV_KEPT, &one.env_other);
	jread_texts(r, v, "maps", ENV_KEPT, &one.maps);
	one.threads = jread_int(r, v, "threads", 0, 0, INT64_MAX);
	one.children = jread_int(r, v, "children", 0, 0, INT64_MAX);
	ev->v = xgrow(ev->v, ev->n, &ev->cap, sizeof *ev->v);
	ev->v[ev->n++] = one;
	ev->seen++;
}

static void read_ranks(struct jread *r, yajl_val top, struct evidence *ev)
{
	yajl_val list = jread_array(r, top, "ranks", RANKS_MAX);

	ev->expected = (int)jread_int(r, top, "ranks_expected", 0, 0, WORLD_MAX);
	for (size_t i = 0; list && i < list->u.array.len && !r->rc; i++) {
		jread_enter_nth(r, "ranks", i);
		read_one(r, list->u.array.values[i], ev);
	}
}

/* Moves the ranks of `from`. */
static void take_over(struct evidence *ev, struct evidence *from, pid_t leader)
{
	for (size_t i = 0; from->n && i < ev->n; i++)
		if (ev->v[i].pid == leader && ev->v[i].rank >= 0) {
			ev->v[i].rank = -1;
			ev->seen--;
		}
	for (size_t i = 0; i < from->n; i++) {
		ev->v = xgrow(ev->v, ev->n, &ev->cap, sizeof *ev->v);
		ev->v[ev->n++] = from->v[i];
	}
	ev->seen += from->seen;
	ev->expected = from->expected > ev->expected ? from->expected : ev->expected;
	ev->expected = ev->seen > ev->expected ? ev->seen : ev->expected;
	from->n = 0;
	if (ev->n > 1)
		qsort(ev->v, ev->n, sizeof *ev->v, by_rank);
}

int evidence_add(struct evidence *ev, const char *text, size_t n, pid_t leader, struct err *e)
{
	struct jread r = {.file = "evidence of another node", .e = e};
	yajl_val top = jread_parse(&r, text, n);
	struct evidence more = {0};

	if (top && !YAJL_IS_OBJECT(top))
		jread_fail(&r, NULL, "expected an object");
	if (!r.rc)
		read_ranks(&r, top, &more);
	yajl_tree_free(top);
	if (!r.rc)
		take_over(ev, &more, leader);
	evidence_free(&more);
	return r.rc;
}

/* --- record ----------------------------------------------------------------------------- */

static void write_kvs(struct jwrite *w, const char *key, const struct kvs *k)
{
	jwrite_object(w, key);
	for (size_t i = 0; i < k->n; i++)
		jwrite_text(w, k->v[i].key, k->v[i].value);
	jwrite_object_end(w);
}

void evidence_write(const struct evidence *ev, struct jwrite *w)
{
	jwrite_array(w, "ranks");
	for (size_t i = 0; i < ev->n; i++) {
		const struct evidence_rank *r = &ev->v[i];

		jwrite_object(w, NULL);
		jwrite_int(w, "rank", r->rank);
		jwrite_text(w, "node", r->node);
		jwrite_int(w, "pid", r->pid);
		jwrite_texts(w, "argv", r->argv.v, r->argv.n);
		write_kvs(w, "env", &r->env);
		write_kvs(w, "env_other", &r->env_other);
		jwrite_texts(w, "maps", r->maps.v, r->maps.n);
		jwrite_int(w, "threads", r->threads);
		jwrite_int(w, "children", r->children);
		jwrite_object_end(w);
	}
	jwrite_array_end(w);
	jwrite_int(w, "ranks_seen", ev->seen);
	jwrite_int(w, "ranks_expected", ev->expected);
}
