/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/gather.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "probes/emit.h"
#include "probes/input.h"
#include "probes/timeline.h"
#include "probes/trace.h"

enum {
	DEPTH_MAX = 12, /* of directories */
	RANKS_MAX = 4096,
	SERIES_MAX = 1 << 16,   /* different (metric, rank, device) of one heap */
	VALUES_MAX = 1 << 16,   /* of a series that are kept; of more the mean still counts */
	WARM_STEPS_FEWEST = 10, /* fewer steps than this have no warm-up to leave out */
	FACT_MAX = 64,
};

/* Values of one metric from one file, rank and device. */
struct series {
	char *metric, *labels;
	int rank;
	size_t file;
	bool is_step, is_sum, is_trace, is_device;
	double *v;
	size_t n, cap;
	double total;
	size_t all; /* n may be fewer */
};

struct fact {
	char *key, *text;
};

struct gather {
	struct gather_file *files;
	size_t n_files, cap_files;
	struct series *series;
	size_t n_series, cap_series;
	struct gather_signal *signals;
	size_t n_signals, cap_signals;
	struct fact facts[FACT_MAX];
	size_t n_facts;
	struct timeline *ranks[RANKS_MAX];
	int rank[RANKS_MAX];
	size_t n_ranks, last; /* last: the series that was added to */
	bool is_trace;        /* the file that is read now */
};

struct gather *gather_new(void)
{
	return xcalloc(1, sizeof(struct gather));
}

void gather_free(struct gather *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->n_files; i++) {
		free(g->files[i].path);
		free(g->files[i].detail);
	}
	for (size_t i = 0; i < g->n_series; i++) {
		free(g->series[i].metric);
		free(g->series[i].labels);
		free(g->series[i].v);
	}
	for (size_t i = 0; i < g->n_signals; i++)
		free(g->signals[i].name);
	for (size_t i = 0; i < g->n_facts; i++) {
		free(g->facts[i].key);
		free(g->facts[i].text);
	}
	for (size_t i = 0; i < g->n_ranks; i++)
		timeline_free(g->ranks[i]);
	free(g->files);
	free(g->series);
	free(g->signals);
	free(g);
}

/* -- what probes tell -------------------------------------------------------------------------- */

/* Labels that tell devices of one node apart; any other makes a value one of many kinds (a kernel,
 * a message size), of which no single number can be made. */
static bool is_device_label(const char *key)
{
	static const char *const keys[] = {"device", "gpu", "iface", "port", "op", "cpu"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (str_eq(keys[i], key))
			return true;
	return false;
}

/* False: the value is none of a signal's. */
static bool look_at_labels(const struct probe_value *v, struct series *s, struct buf *text)
{
	for (size_t i = 0; i < v->n_labels; i++) {
		const struct kv *l = &v->labels[i];

		if (str_eq(l->key, "scope")) {
			if (!str_eq(l->value, "steps"))
				return false;
			s->is_sum = true;
			continue;
		}
		/* One NVTX device a rank: its rows are the rank's. */
		if (!is_device_label(l->key))
			return false;
		s->is_device = true;
		buf_printf(text, "%s=%s,", l->key, l->value);
	}
	return true;
}

static bool is_same(const struct series *a, const struct series *b, const char *metric,
		    const char *labels)
{
	return a->file == b->file && a->rank == b->rank && a->is_sum == b->is_sum &&
	       a->is_step == b->is_step && str_eq(a->metric, metric) && str_eq(a->labels, labels);
}

static struct series *series_of(struct gather *g, const struct series *like, const char *metric,
				const char *labels)
{
	/* A probe tells the metrics of a line in one order: the next series is near the last. */
	for (size_t k = 0; k < g->n_series; k++) {
		size_t i = (g->last + 1 + k) % g->n_series;

		if (is_same(&g->series[i], like, metric, labels)) {
			g->last = i;
			return &g->series[i];
		}
	}
	if (g->n_series == SERIES_MAX)
		return NULL;
	g->series = xgrow(g->series, g->n_series, &g->cap_series, sizeof(*g->series));
	g->last = g->n_series;
	g->series[g->n_series] = *like;
	g->series[g->n_series].metric = xstrdup(metric);
	g->series[g->n_series].labels = xstrdup(labels);
	return &g->series[g->n_series++];
}

static void take_value(void *ctx, const struct probe_value *v)
{
	struct gather *g = ctx;
	struct series like = {.rank = v->rank >= 0 ? v->rank : v->local_rank,
			      .file = g->n_files - 1,
			      .is_step = v->step >= 0,
			      .is_trace = g->is_trace},
		      *s;
	struct buf labels = {0};

	if (!v->missing && metric_def_find(v->metric) && look_at_labels(v, &like, &labels) &&
	    (s = series_of(g, &like, v->metric, labels.data ? labels.data : ""))) {
		if (s->n < VALUES_MAX) {
			s->v = xgrow(s->v, s->n, &s->cap, sizeof(*s->v));
			s->v[s->n++] = v->value;
		}
		s->total += v->value;
		s->all++;
		g->files[g->n_files - 1].values++;
	}
	buf_free(&labels);
}

static void take_fact(void *ctx, const struct probe_fact *f)
{
	struct gather *g = ctx;

	if (g->n_facts == FACT_MAX || gather_fact(g, f->key))
		return;
	g->facts[g->n_facts++] = (struct fact){xstrdup(f->key), xstrdup(f->text)};
}

static void take_timeline(void *ctx, struct timeline *t, int rank)
{
	struct gather *g = ctx;

	if (g->n_ranks == RANKS_MAX) {
		timeline_free(t);
		return;
	}
	g->rank[g->n_ranks] = rank >= 0 ? rank : (int)g->n_ranks;
	g->ranks[g->n_ranks++] = t;
}

/* -- files ------------------------------------------------------------------------------------- */

static const struct probe *probe_of(const char *path, struct err *e)
{
	const struct probe *best;
	gzFile f = input_open(path);
	size_t found = 0;
	int n = f ? probe_sniff_file(f, &best, 1, &found) : -1, z = Z_ERRNO;

	if (n < 0 && (!f || (gzerror(f, &z), z == Z_ERRNO)))
		err_sys(e, fs_code(errno), "cannot read %s", path);
	gzclose(f);
	return found ? best : NULL;
}

static void tell_fault(struct gather_file *f, const struct err *e, struct buf *detail)
{
	if (e->code)
		buf_printf(detail, "%s%s", detail->len ? "; " : "", e->text);
	f->fault = e->code;
	f->detail = detail->len ? buf_take(detail) : NULL;
	buf_free(detail);
}

void gather_file(struct gather *g, const char *path)
{
	struct probe_context c = {.file = path};
	struct probe_sink sink = {
		.value = take_value, .fact = take_fact, .timeline = take_timeline, .ctx = g};
	struct err e = {0};
	const struct probe *p = probe_of(path, &e);
	struct gather_file *f;
	struct buf detail = {0};

	g->files = xgrow(g->files, g->n_files, &g->cap_files, sizeof(*g->files));
	f = &g->files[g->n_files++];
	*f = (struct gather_file){.path = xstrdup(path), .status = PROBE_ABSENT};
	if (p) {
		f->probe = p->name;
		g->is_trace = str_eq(p->name, "pytorch_trace") || str_eq(p->name, "nsys");
		f->status = probe_file(p, &c, path, &sink, &detail, &e);
	}
	tell_fault(f, &e, &detail);
}

struct walk {
	struct gather *g;
	size_t left;
};

static void walk(struct walk *w, const char *dir, int depth, bool *opened)
{
	struct dirent **names = NULL;
	int n = scandir(dir, &names, NULL, alphasort);

	*opened = n >= 0;
	for (int i = 0; i < n; i++) {
		_cleanup_free_ char *path = fs_join(dir, names[i]->d_name);
		struct stat st;
		bool ok;

		if (names[i]->d_name[0] != '.' && lstat(path, &st) == 0) {
			if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
				walk(w, path, depth + 1, &ok);
			else if (S_ISREG(st.st_mode) && w->g->n_files == GATHER_FILES_MAX)
				w->left++;
			else if (S_ISREG(st.st_mode))
				gather_file(w->g, path);
		}
		free(names[i]);
	}
	free(names);
}

bool gather_dir(struct gather *g, const char *dir, size_t *left)
{
	struct walk w = {.g = g};
	bool opened;

	walk(&w, dir, 0, &opened);
	*left = w.left;
	return opened;
}

/* -- signals ----------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Steps of a program that warms up are not those that count. */
static double mean_of(const struct series *s)
{
	size_t skip = s->is_step && !s->is_trace && s->n >= WARM_STEPS_FEWEST ? s->n / 10 : 0;
	double sum = 0;

	if (s->all > s->n)
		return s->total / (double)s->all;
	for (size_t i = skip; i < s->n; i++)
		sum += s->v[i];
	return sum / (double)(s->n - skip);
}

static struct gather_signal *add_signal(struct gather *g, const char *name, double value, size_t n,
					size_t file)
{
	g->signals = xgrow(g->signals, g->n_signals, &g->cap_signals, sizeof(*g->signals));
	g->signals[g->n_signals] = (struct gather_signal){
		.name = xstrdup(name), .value = value, .n = n, .source = g->files[file].path};
	return &g->signals[g->n_signals++];
}

static void add_stat(struct gather *g, const char *metric, const char *stat, double value, size_t n,
		     size_t file)
{
	_cleanup_free_ char *name = xasprintf("%s.%s", metric, stat);

	add_signal(g, name, value, n, file);
}

/* What a series is worth when several tell of one metric; the best kind is the one that counts. */
static int worth(const struct series *s)
{
	bool is_time = str_ends(s->metric, "_ms") || str_starts(s->metric, "kernel_count") ||
		       str_starts(s->metric, "alloc_calls");

	if (!s->is_trace)
		return s->is_device ? 4 : 5;
	if (s->is_step) /* of a trace: shares come from the sum of steps, times a step from here */
		return is_time ? 3 : 1;
	return s->is_sum && is_time ? 1 : 2;
}

/* Over ranks, files or devices. */
struct over {
	double sum, min, max;
	size_t n, values, file;
};

static struct over over_series(const struct gather *g, const char *metric, int kind)
{
	struct over o = {.min = INFINITY, .max = -INFINITY};

	for (size_t i = 0; i < g->n_series; i++) {
		const struct series *s = &g->series[i];
		double m;

		if (worth(s) != kind || !str_eq(s->metric, metric))
			continue;
		m = mean_of(s);
		if (o.n++ == 0)
			o.file = s->file;
		o.sum += m;
		o.values += s->all;
		o.min = fmin(o.min, m);
		o.max = fmax(o.max, m);
	}
	return o;
}

/* p95 and max of the steps of a single program. */
static void add_tails(struct gather *g, const char *metric)
{
	for (size_t i = 0; i < g->n_series; i++) {
		struct series *s = &g->series[i];

		if (!str_eq(s->metric, metric) || !s->is_step || s->is_trace || s->n < 2)
			continue;
		qsort(s->v, s->n, sizeof(*s->v), by_value);
		add_stat(g, metric, "p95", s->v[(s->n - 1) * 95 / 100], s->n, s->file);
		add_stat(g, metric, "max", s->v[s->n - 1], s->n, s->file);
		return;
	}
}

static void settle(struct gather *g, const char *metric)
{
	const struct metric_def *def = metric_def_find(metric);
	int best = 0;
	struct over o;

	for (size_t i = 0; i < g->n_series; i++)
		if (str_eq(g->series[i].metric, metric) && worth(&g->series[i]) > best)
			best = worth(&g->series[i]);
	o = over_series(g, metric, best);
	/* The busiest disk, the slowest file system: a mean over idle ones tells nothing. */
	add_signal(g, metric, best == 4 && def->better == BETTER_DOWN ? o.max : o.sum / (double)o.n,
		   o.values, o.file);
	if (o.n > 1) {
		add_stat(g, metric, "min", o.min, o.values, o.file);
		add_stat(g, metric, "max", o.max, o.values, o.file);
	} else {
		add_tails(g, metric);
	}
}

static bool is_settled(const struct gather *g, size_t series)
{
	for (size_t i = 0; i < series; i++)
		if (str_eq(g->series[i].metric, g->series[series].metric))
			return true;
	return false;
}

/* What follows from others where nobody told it. */
static void derive(struct gather *g)
{
	double step = gather_get(g, "step_time_ms"), wait = gather_get(g, "data_wait_ms"), ncpu;
	const char *cpus = gather_fact(g, "host.ncpu");

	if (isnan(gather_get(g, "data_wait_ratio")) && step > 0 && wait >= 0 && wait <= step)
		add_signal(g, "data_wait_ratio", wait / step, 1, 0);
	if (cpus && str_to_double(cpus, &ncpu) && ncpu > 0)
		add_signal(g, "ncpu", ncpu, 1, 0);
}

static void compare_ranks(struct gather *g)
{
	const struct probe_sink sink = {.value = take_value, .fact = take_fact, .ctx = g};
	struct emit o;

	if (g->n_ranks < 2)
		return;
	g->is_trace = true;
	emit_open(&o, NULL, &sink);
	trace_emit_waits(&o, g->ranks, g->rank, g->n_ranks);
	emit_close(&o);
}

void gather_finish(struct gather *g)
{
	if (!g->n_files)
		return;
	compare_ranks(g);
	for (size_t i = 0; i < g->n_series; i++)
		if (!is_settled(g, i))
			settle(g, g->series[i].metric);
	derive(g);
}

const struct gather_file *gather_files(const struct gather *g, size_t *n)
{
	*n = g->n_files;
	return g->files;
}

const struct gather_signal *gather_signals(const struct gather *g, size_t *n)
{
	*n = g->n_signals;
	return g->signals;
}

double gather_get(const struct gather *g, const char *name)
{
	for (size_t i = 0; i < g->n_signals; i++)
		if (str_eq(g->signals[i].name, name))
			return g->signals[i].value;
	return NAN;
}

const char *gather_fact(const struct gather *g, const char *key)
{
	for (size_t i = 0; i < g->n_facts; i++)
		if (str_eq(g->facts[i].key, key))
			return g->facts[i].text;
	return NULL;
}

struct script_signals gather_script(const struct gather *g, struct signal **array)
{
	*array = xcalloc(g->n_signals + 1, sizeof(**array));
	for (size_t i = 0; i < g->n_signals; i++)
		(*array)[i] = (struct signal){g->signals[i].name, g->signals[i].value};
	return (struct script_signals){*array, g->n_signals};
}
