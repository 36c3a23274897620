/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/paths.h"
#include "orchestrator/base/proc.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/forecast.h"
#include "orchestrator/report/text.h"

extern const struct cmd cmd_doctor;

enum {
	TOOL_US = 20 * 1000000,  /* nvidia-smi takes up to 10 s without persistence mode */
	OUTPUT_MAX = 256 * 1024, /* ldconfig -p on a full system is 150 KB */
	PROC_FILE_MAX = 1 << 20, /* /proc/cpuinfo of 512 CPUs is about 800 KB */
	EXIT_PERMANENT = 4,
};

struct args {
	struct drive_options look;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->look;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "doctor takes no argument, got %s", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* -- findings --------------------------------------------------------------------------------- */

enum health { HEALTH_OK, HEALTH_MISSING, HEALTH_BAD }; /* bad: fettle cannot work without it */

static const char *health_name(enum health h)
{
	switch (h) {
	case HEALTH_OK:
		return "ok";
	case HEALTH_MISSING:
		return "missing";
	case HEALTH_BAD:
		return "bad";
	}
	return "";
}

struct doctor {
	const struct args *args;
	struct json *list;
	bool bad;
};

static void tell(struct doctor *d, enum health h, const char *name, const char *advice,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
static void tell(struct doctor *d, enum health h, const char *name, const char *advice,
		 const char *fmt, ...)
{
	struct json *o = json_object();
	struct buf raw = {0}, b = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&raw, fmt, ap);
	va_end(ap);
	text_line(&b, raw.data);
	json_set_text(o, "name", name);
	json_set_text(o, "state", health_name(h));
	json_set_text(o, "detail", b.data ? b.data : "");
	json_set_text(o, "advice", advice);
	json_add(d->list, o);
	if (!d->args->look.json)
		printf("%-8s %-18s %s%s%s\n", health_name(h), name, b.data ? b.data : "",
		       advice ? "; " : "", advice ? advice : "");
	d->bad = d->bad || h == HEALTH_BAD;
	buf_free(&raw);
	buf_free(&b);
}

/* Output of a program; false when it is not there, failed, or took too long: *why says so. */
static bool ask(const char *const *argv, struct buf *out, struct err *why)
{
	struct proc_spawn s = {.file = argv[0],
			       .argv = (char *const *)argv,
			       .fd_in = -1,
			       .fd_out = -1,
			       .fd_err = -1,
			       .new_session = true};
	struct buf err_out = {0};
	int status = 0;

	if (proc_capture(&s, TOOL_US, OUTPUT_MAX, out, &err_out, &status, why) == 0 && status) {
		struct buf *words = err_out.len ? &err_out : out;

		err_set(why, ERR_IO, "%s ended with status %d: %.200s", argv[0], status >> 8 & 0xff,
			words->data ? words->data : "no word");
	}
	buf_free(&err_out);
	return why->code == ERR_OK;
}

/* The text after "key<blanks>:" in a file of /proc, or NULL; heap. */
static char *proc_field(const char *path, const char *key)
{
	struct buf b = {0};
	const char *p;
	char *out = NULL;

	if (fs_read(path, PROC_FILE_MAX, &b, NULL) == 0 && b.data && (p = strstr(b.data, key))) {
		p += strlen(key);
		p += strspn(p, " \t:");
		out = xstrndup(p, strcspn(p, "\n"));
	}
	buf_free(&b);
	return out;
}

/* -- fettle's own parts ----------------------------------------------------------------------- */

static void recipes(struct doctor *d)
{
	_cleanup_free_ char *shipped = paths_recipes();
	struct drive_path path;
	struct knob *v = NULL;
	struct err e = {0};
	size_t n = 0;

	drive_path_init(&path);
	if (!fs_exists(shipped))
		tell(d, HEALTH_MISSING, "recipes", "run `make install`, or set FETTLE_RECIPES",
		     "%s does not exist", shipped);
	else if (script_catalogue(&path.path, &v, &n, &e) < 0)
		tell(d, HEALTH_BAD, "recipes", NULL, "%s", e.text);
	else
		tell(d, HEALTH_OK, "recipes", NULL, "%s, %zu knobs", shipped, n);
	if (path.path.site)
		tell(d, fs_exists(path.path.site) ? HEALTH_OK : HEALTH_BAD, "site policy", NULL,
		     "%s%s", path.path.site,
		     fs_exists(path.path.site) ? "" : " does not exist, but FETTLE_SITE names it");
	if (path.path.user)
		tell(d, HEALTH_OK, "own defaults", NULL, "%s", path.path.user);
	drive_path_done(&path);
	for (size_t i = 0; i < n; i++)
		knob_done(&v[i]);
	free(v);
}

/* Lines "ok NAME: TEXT", "no NAME: TEXT", "bad NAME: TEXT". */
static void agent_lines(struct doctor *d, char *text)
{
	for (char *line = text, *next; line && *line; line = next) {
		char *end = strchr(line, '\n'), *colon, *word;
		_cleanup_free_ char *name = NULL;

		next = end ? end + 1 : NULL;
		if (end)
			*end = '\0';
		word = strchr(line, ' ');
		colon = word ? strchr(word, ':') : NULL;
		if (!colon)
			continue;
		name = xasprintf("agent %.*s", (int)(colon - word - 1), word + 1);
		tell(d,
		     str_starts(line, "ok ")    ? HEALTH_OK
		     : str_starts(line, "bad ") ? HEALTH_BAD
						: HEALTH_MISSING,
		     name, NULL, "%s", colon[1] == ' ' ? colon + 2 : colon + 1);
	}
}

/* --check ends with 4 when something that it needs is missing, and its lines say what. */
static void agent(struct doctor *d)
{
	_cleanup_free_ char *path = paths_agent();
	const char *version[] = {path, "--version", NULL}, *check[] = {path, "--check", NULL};
	struct buf out = {0};
	struct err e = {0};

	if (!fs_exists(path)) {
		tell(d, HEALTH_BAD, "agent", "run `make`, or set FETTLE_AGENT", "%s does not exist",
		     path);
		return;
	}
	if (!ask(version, &out, &e)) {
		tell(d, HEALTH_BAD, "agent", "was it built for another machine?", "%s", e.text);
		buf_free(&out);
		return;
	}
	out.data[strcspn(out.data, "\n")] = '\0';
	tell(d, HEALTH_OK, "agent", NULL, "%s, %s", path, out.data);
	buf_clear(&out);
	e = (struct err){0};
	if (!ask(check, &out, &e) && !out.len)
		tell(d, HEALTH_BAD, "agent", NULL, "%s", e.text);
	if (out.len)
		agent_lines(d, out.data);
	buf_free(&out);
}

/* -- schedulers ------------------------------------------------------------------------------- */

static void capacity(struct doctor *d, const struct sched *sched, const char *agent_path,
		     const char *helper)
{
	_cleanup_free_ char *name = xasprintf("scheduler %s", sched->name);
	_cleanup_free_ char *cwd = fs_absolute(".", NULL);
	struct sched_config c = {.blocks_root = cwd ? cwd : "/",
				 .agent = agent_path,
				 .helper = helper,
				 .clock = &clock_system};
	struct sched_capacity cap = {0};
	struct sched_run *run = NULL;
	struct err e = {0};

	if (sched->open(&c, &run, &e) == 0 && sched->capacity(run, &cap, &e) == 0)
		tell(d, HEALTH_OK, name, NULL, "%s", cap.summary);
	else
		tell(d, HEALTH_MISSING, name, NULL, "%s", e.text);
	sched->close(run);
}

static void slurm(struct doctor *d, const struct sched *sched, const char *agent_path,
		  const char *helper, const char *conf)
{
	_cleanup_free_ char *name = xasprintf("scheduler %s", sched->name);
	bool needs_helper = str_eq(sched->name, "slurm"), has_helper = fs_exists(helper);

	if (needs_helper && !has_helper)
		tell(d, HEALTH_MISSING, "fettle-slurm",
		     "install libslurm-dev (Debian) or slurm-devel (RHEL) and run `make`; until "
		     "then scheduler slurm_cli does with Slurm's commands",
		     "%s does not exist", helper);
	else if (needs_helper)
		tell(d, HEALTH_OK, "fettle-slurm", NULL, "%s", helper);
	if (!conf)
		tell(d, HEALTH_MISSING, name, "on a login node, set SLURM_CONF",
		     "no slurm.conf was found");
	else if (!fs_exists(conf))
		tell(d, HEALTH_MISSING, name, NULL, "SLURM_CONF names %s, which does not exist",
		     conf);
	else if (!needs_helper || has_helper)
		capacity(d, sched, agent_path, helper);
}

static void schedulers(struct doctor *d)
{
	_cleanup_free_ char *agent_path = paths_agent(), *helper = paths_slurm_helper();
	_cleanup_free_ char *conf = forecast_slurm_conf();

	for (const struct sched *const *s = sched_table; *s; s++) {
		if (str_eq((*s)->name, "fake"))
			continue;
		if (!forecast_wanted((*s)->name))
			capacity(d, *s, agent_path, helper);
		else
			slurm(d, *s, agent_path, helper, conf);
	}
}

/* -- this machine ----------------------------------------------------------------------------- */

static void machine(struct doctor *d)
{
	_cleanup_free_ char *cpu = proc_field("/proc/cpuinfo", "model name");
	_cleanup_free_ char *total = proc_field("/proc/meminfo", "MemTotal");
	_cleanup_free_ char *left = proc_field("/proc/meminfo", "MemAvailable");
	struct statvfs shm;
	cpu_set_t set;
	int mine = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;

	tell(d, HEALTH_OK, "cpu", NULL, "%ld online, %d usable from here, %s",
	     sysconf(_SC_NPROCESSORS_ONLN), mine, cpu ? cpu : "model unknown");
	tell(d, HEALTH_OK, "memory", NULL, "%s, of which %s available", total ? total : "unknown",
	     left ? left : "unknown");
	if (statvfs("/dev/shm", &shm) == 0)
		tell(d, HEALTH_OK, "/dev/shm", NULL,
		     "%.1f GiB (batches of DataLoader workers pass here)",
		     (double)shm.f_blocks * (double)shm.f_frsize / (1 << 30));
	else
		tell(d, HEALTH_MISSING, "/dev/shm", "DataLoader workers need it", "is not mounted");
}

static void gpus(struct doctor *d)
{
	static const char *const argv[] = {"nvidia-smi",
					   "--query-gpu=name,driver_version,memory.total",
					   "--format=csv,noheader", NULL};
	_cleanup_free_ char *path = proc_which("nvidia-smi", NULL);
	struct buf out = {0};
	struct err e = {0};

	if (!path) {
		tell(d, HEALTH_MISSING, "gpu", NULL,
		     "no nvidia-smi here: GPU metrics are absent (compute nodes may have it)");
		return;
	}
	if (!ask(argv, &out, &e)) {
		tell(d, HEALTH_MISSING, "gpu", NULL, "%s", e.text);
	} else {
		char *save = out.data;

		for (int i = 0; save && *save; i++) {
			size_t n = strcspn(save, "\n");
			_cleanup_free_ char *name = xasprintf("gpu %d", i);

			tell(d, HEALTH_OK, name, NULL, "%.*s", (int)n, save);
			save += n + (save[n] == '\n');
		}
	}
	buf_free(&out);
}

/* The workspace, or the nearest folder above it that is there. */
static char *existing_folder(const char *dir)
{
	_cleanup_free_ char *at = xstrdup(dir);

	while (!fs_exists(at)) {
		char *slash = strrchr(at, '/');

		if (!slash)
			return fs_absolute(".", NULL);
		if (slash == at)
			return xstrdup("/");
		*slash = '\0';
	}
	return fs_absolute(at, NULL);
}

static void workspace(struct doctor *d)
{
	const char *dir = workspace_default(d->args->look.workspace);
	_cleanup_free_ char *folder = existing_folder(dir);
	bool network = folder && fs_is_network(folder);
	struct statvfs fs = {0};

	if (!folder || statvfs(folder, &fs) != 0) {
		tell(d, HEALTH_BAD, "workspace", "choose another with --workspace",
		     "%s cannot be reached", dir);
		return;
	}
	tell(d, access(folder, W_OK) == 0 ? HEALTH_OK : HEALTH_BAD, "workspace",
	     access(folder, W_OK) == 0 ? NULL : "choose another with --workspace",
	     "%s %s, on a %s file system (%s journal), %.1f GiB free%s", dir,
	     fs_exists(dir) ? "exists" : "will be made", network ? "network" : "local",
	     network ? "DELETE" : "WAL", (double)fs.f_bavail * (double)fs.f_frsize / (1 << 30),
	     access(folder, W_OK) == 0 ? "" : ", not writable");
	if (!network)
		tell(d, HEALTH_OK, "for Slurm", NULL,
		     "a workspace must lie on a file system that compute nodes share");
}

/* -- what knobs and probes like to have ------------------------------------------------------- */

/* The path behind "=>" of ldconfig's line for `library`; heap, NULL when it is not there. */
static char *library_path(const char *library)
{
	static const char *const argv[] = {"/sbin/ldconfig", "-p", NULL};
	struct buf out = {0};
	struct err e = {0};
	const char *at, *to;
	char *path = NULL;

	if (ask(argv, &out, &e) && out.data && (at = strstr(out.data, library)) &&
	    (to = strstr(at, "=> ")) && to < at + strcspn(at, "\n"))
		path = xstrndup(to + 3, strcspn(to + 3, "\n"));
	buf_free(&out);
	return path;
}

static void tools(struct doctor *d)
{
	static const struct {
		const char *program, *use, *advice;
	} list[] = {
		{"python3", "runs training scripts", "install python3"},
		{"iostat", "its JSON output is read by `fettle probe`", "install sysstat"},
		{"nsys", "profiles GPU work", "it comes with the CUDA toolkit (Nsight Systems)"},
		{"srun", "starts ranks in a Slurm allocation",
		 "install slurm-client (RHEL: slurm)"},
		{"mpirun", "starts MPI ranks", "install openmpi-bin (RHEL: openmpi)"},
		{"torchrun", "starts PyTorch ranks", "it comes with PyTorch"},
	};
	_cleanup_free_ char *jemalloc = library_path("libjemalloc.so");

	if (jemalloc)
		tell(d, HEALTH_OK, "libjemalloc", NULL, "%s", jemalloc);
	else
		tell(d, HEALTH_MISSING, "libjemalloc", "install libjemalloc2 (RHEL: jemalloc)",
		     "the knob that preloads it would end invalid");
	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		_cleanup_free_ char *path = proc_which(list[i].program, NULL);

		tell(d, path ? HEALTH_OK : HEALTH_MISSING, list[i].program,
		     path ? NULL : list[i].advice, "%s%s%s", path ? path : "", path ? ", " : "",
		     list[i].use);
	}
}

static int run(int argc, char **argv)
{
	static const struct argp_child children[] = {{&look_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {.parser = parse,
					 .doc = "What this machine and its cluster offer, a line "
						"each, with what to install.\v"
						"States: ok, missing (something is left out "
						"without it), bad (fettle cannot work "
						"without it; exit status 4).",
					 .children = children};
	struct args a = {0};
	struct doctor d = {.args = &a};

	cmd_parse(&argp, argc, argv, &a);
	d.list = json_array();
	recipes(&d);
	agent(&d);
	schedulers(&d);
	machine(&d);
	gpus(&d);
	workspace(&d);
	tools(&d);
	if (a.look.json) {
		_cleanup_free_ char *text = json_print(d.list, true);

		printf("%s\n", text);
	}
	json_free(d.list);
	return d.bad ? EXIT_PERMANENT : 0;
}

const struct cmd cmd_doctor = {
	.name = "doctor", .summary = "what this machine and its cluster offer", .run = run};
