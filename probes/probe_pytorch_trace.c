/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The PyTorch profiler's trace (Kineto's Chrome trace JSON, 2021 to now; usually gzip). Of each
 * event only what a timeline needs is kept, so that a trace of any size takes 24 bytes for each
 * thing that the device did; those of no use (operators, flows, call stacks) are told by their
 * first bytes and not even parsed. Times are microseconds with a fraction, absolute (2021) or
 * relative to baseTimeNanoseconds. A trace that a kill has cut is read up to there. Profiling slows
 * a program: of these metrics the shares count, and trace_step_ms is nobody's step_time_ms.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <xxhash.h>

#include "experiments/model.h"
#include "orchestrator/base/mem.h"
#include "probes/emit.h"
#include "probes/probe.h"
#include "probes/trace.h"
#include "probes/tracejson.h"

enum {
	NAME_MAX_BYTES = 1024, /* kernels of deep templates have some 800; the rest tells no more */
	DUR_MAX_DAYS = 11,
};
#define NS_MAX     TIMELINE_NS_LIMIT
#define DUR_MAX_NS (INT64_C(86400000000000) * DUR_MAX_DAYS)

enum category {
	CAT_UNKNOWN, /* not told yet, or none of the others */
	CAT_OP,      /* cpu_op, Operator */
	CAT_ANNOTATION,
	CAT_CALL, /* cuda_runtime, cuda_driver, Runtime */
	CAT_KERNEL,
	CAT_MEMCPY,
	CAT_MEMSET,
	CAT_OTHER, /* told, and of no interest */
};

/* The member whose value comes next. */
enum field {
	F_NONE,
	F_PH,
	F_CAT,
	F_NAME,
	F_TID,
	F_PID,
	F_TS,
	F_DUR,
	F_BYTES,
	F_COLLECTIVE,
	F_NELEMS,
	F_GROUP,
	F_DEVICE_TYPE,
	F_ALLOCATED,
	F_RESERVED,
	F_RANK,
	F_WORLD,
	F_BACKEND,
	F_NCCL,
	F_GPU_NAME,
	F_USAGE,
};

/* Members of the document that are read, beside the events. */
enum side { SIDE_NONE, SIDE_DISTRIBUTED, SIDE_DEVICES, SIDE_USAGE };

struct event {
	char ph;
	enum category cat;
	bool has_ts, has_dur, is_memory;
	int64_t ts_ns, dur_ns, bytes, device_type, allocated, reserved;
	uint32_t thread;
	uint64_t coll; /* hash of what names a collective, 0 unknown */
	size_t n_name;
	char name[NAME_MAX_BYTES];
};

struct probe_run {
	struct emit out;
	struct tracejson *json;
	enum field field;
	struct event ev;
	struct timeline *time;
	struct kernels *kernels;
	int64_t n_broken, world;
	bool told_gpu;
	bool lists_devices; /* deviceProperties was seen */
	bool has_device;    /* something was in it, or did something */
	enum side side;
	char usage[48];   /* metric that the next value under "fettle" is of */
	int64_t last_end; /* of the outermost operator that was added last, and its thread */
	uint32_t last_thread;
	double peak_allocated, peak_reserved, loader_cpu, loader_ready;
};

/* -- values ----------------------------------------------------------------------------------- */

/* Microseconds with a fraction as nanoseconds, exactly: a double cannot hold 2026's. */
static bool parse_us(const char *s, size_t n, int64_t *ns)
{
	size_t i = 0, digits = 0;
	int64_t us = 0, frac = 0, scale = 100;
	bool minus = n && s[0] == '-';

	for (i = minus; i < n && s[i] >= '0' && s[i] <= '9' && digits < 17; i++, digits++)
		us = us * 10 + (s[i] - '0');
	if (i < n && s[i] == '.')
		for (i++; i < n && s[i] >= '0' && s[i] <= '9'; i++, scale /= 10)
			frac += scale * (s[i] - '0');
	if (i < n) {
		double v;

		if (!num_whole((struct span){s, n}, &v) || v * 1e3 > (double)NS_MAX ||
		    v * 1e3 < -(double)NS_MAX)
			return false;
		*ns = (int64_t)(v * 1e3);
		return true;
	}
	if (!digits || us > NS_MAX / 1000 - 1)
		return false;
	*ns = minus ? -(us * 1000 + frac) : us * 1000 + frac;
	return true;
}

static int64_t parse_i64(const char *s, size_t n)
{
	int64_t v;

	return num_whole_i64((struct span){s, n}, &v) ? v : -1;
}

static bool is_word(const char *s, size_t n, const char *word)
{
	return strlen(word) == n && memcmp(s, word, n) == 0;
}

/* Schemas differ in case: "Kernel" of 2021 is "kernel". */
static enum category category_of(const char *s, size_t n)
{
	static const struct {
		const char *word;
		enum category cat;
	} cats[] = {
		{"cpu_op", CAT_OP},         {"kernel", CAT_KERNEL},
		{"cuda_runtime", CAT_CALL}, {"user_annotation", CAT_ANNOTATION},
		{"cuda_driver", CAT_CALL},  {"gpu_memcpy", CAT_MEMCPY},
		{"gpu_memset", CAT_MEMSET}, {"operator", CAT_OP},
		{"runtime", CAT_CALL},      {"memcpy", CAT_MEMCPY},
		{"memset", CAT_MEMSET},     {"hip_runtime", CAT_CALL},
		{"xpu_runtime", CAT_CALL},  {"privateuse1_runtime", CAT_CALL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cats); i++)
		if (strlen(cats[i].word) == n && strncasecmp(s, cats[i].word, n) == 0)
			return cats[i].cat;
	return CAT_OTHER;
}

/* No device so far: then operators are what computes. Kineto lists none for XPU (to 2.8) and says
 * nothing at all of 2021: there the first kernel tells. */
static bool is_host(const struct probe_run *r)
{
	return !r->has_device;
}

static void take_name(struct probe_run *r, const char *s, size_t n)
{
	struct event *ev = &r->ev;

	if (ev->cat == CAT_OTHER) {
		ev->is_memory = is_word(s, n, "[memory]");
		return;
	}
	if (ev->cat == CAT_OP && n && s[0] != 'P' && s[0] != 'e' && !is_host(r))
		return; /* ProfilerStep, enumerate(DataLoader) */
	ev->n_name = n < NAME_MAX_BYTES ? n : NAME_MAX_BYTES;
	memcpy(ev->name, s, ev->n_name);
	if (ev->cat == CAT_UNKNOWN)
		ev->is_memory = is_word(s, n, "[memory]");
}

/* A PyTorch without Kineto (Debian's, and before 1.8) writes no category, but whose events they
 * are. */
static void take_pid(struct event *ev, const char *s, size_t n)
{
	struct span name = {ev->name, ev->n_name};

	if (is_word(s, n, "CPU functions"))
		ev->cat = CAT_OP;
	else if (is_word(s, n, "CUDA functions"))
		ev->cat = span_starts(name, "Memcpy")   ? CAT_MEMCPY
			  : span_starts(name, "Memset") ? CAT_MEMSET
							: CAT_KERNEL;
}

static void take_coll(struct event *ev, const char *s, size_t n)
{
	ev->coll = XXH3_64bits_withSeed(s, n, ev->coll + (uint64_t)n) | 1;
}

static void take_event(struct probe_run *r, const char *s, size_t n)
{
	struct event *ev = &r->ev;

	switch (r->field) {
	case F_PH:
		ev->ph = n == 1 ? s[0] : '?';
		break;
	case F_CAT:
		ev->cat = category_of(s, n);
		break;
	case F_NAME:
		take_name(r, s, n);
		break;
	case F_TID:
		ev->thread = (uint32_t)XXH3_64bits(s, n);
		break;
	case F_PID:
		take_pid(ev, s, n);
		break;
	case F_TS:
		ev->has_ts = parse_us(s, n, &ev->ts_ns);
		break;
	case F_DUR:
		ev->has_dur = parse_us(s, n, &ev->dur_ns) && ev->dur_ns >= 0;
		break;
	case F_BYTES:
		ev->bytes = parse_i64(s, n);
		break;
	case F_COLLECTIVE:
	case F_NELEMS:
	case F_GROUP:
		take_coll(ev, s, n);
		break;
	case F_DEVICE_TYPE:
		ev->device_type = parse_i64(s, n);
		break;
	case F_ALLOCATED:
		ev->allocated = parse_i64(s, n);
		break;
	case F_RESERVED:
		ev->reserved = parse_i64(s, n);
		break;
	case F_NONE:
	case F_RANK:
	case F_WORLD:
	case F_BACKEND:
	case F_NCCL:
	case F_GPU_NAME:
	case F_USAGE:
		break;
	}
}

/* What the kernel said of the recorded steps: recipes/profile/sitecustomize.py wrote it. */
static void take_usage(struct probe_run *r, struct span text)
{
	double v;

	if (str_eq(r->usage, "rank") || str_eq(r->usage, "world_size") || !num_whole(text, &v) ||
	    !metric_def_find(r->usage))
		return;
	emit_value(&r->out, r->usage, v, NULL);
	if (str_eq(r->usage, "loader_cpu_ratio"))
		r->loader_cpu = v;
	if (str_eq(r->usage, "loader_ready_ratio"))
		r->loader_ready = v;
}

static void take_side(struct probe_run *r, const char *s, size_t n)
{
	char clean[PROBE_RAW_MAX];
	int64_t v = parse_i64(s, n);
	size_t k = n < sizeof(clean) ? n : sizeof(clean);
	struct span text = {clean, k};

	memcpy(clean, s, k);
	text.n = input_clean(clean, k);
	if (r->field == F_USAGE)
		take_usage(r, text);
	else if (r->field == F_RANK && v >= 0 && v < 10000000)
		r->out.rank = (int)v;
	else if (r->field == F_WORLD && v > 0)
		r->world = v;
	else if (r->field == F_BACKEND)
		emit_fact(&r->out, "trace.backend", text);
	else if (r->field == F_NCCL)
		emit_fact(&r->out, "trace.nccl_version", text);
	else if (r->field == F_GPU_NAME && text.n && !r->told_gpu)
		emit_fact(&r->out, "trace.gpu", text);
	r->told_gpu |= r->field == F_GPU_NAME;
}

/* -- events ----------------------------------------------------------------------------------- */

/* Operators inside of others are left out as far as the trace has them in order: that costs memory
 * and changes no sum. */
static void mark_host(struct probe_run *r, struct span name, int64_t end)
{
	const struct event *ev = &r->ev;

	if (trace_is_host_comm(name)) {
		timeline_add_gpu(r->time, TIMELINE_COMM, ev->ts_ns, end,
				 (uint32_t)XXH3_64bits(name.s, name.n));
	} else if (span_has(name, "Optimizer.step#")) {
		timeline_add_host(r->time, TIMELINE_OPTIM, ev->ts_ns, end, ev->thread);
	} else if (trace_is_operator(name) && (ev->thread != r->last_thread || end > r->last_end)) {
		timeline_add_gpu(r->time, TIMELINE_COMPUTE, ev->ts_ns, end, ev->thread);
		r->last_end = end;
		r->last_thread = ev->thread;
	}
}

static void mark(struct probe_run *r, struct span name, int64_t end)
{
	const struct event *ev = &r->ev;
	int64_t number;

	if (trace_profiler_step(name, &number))
		timeline_add_step(r->time, number, ev->ts_ns, end, ev->thread,
				  tracejson_line(r->json));
	else if (trace_is_data(name))
		timeline_add_host(r->time, TIMELINE_DATA, ev->ts_ns, end, ev->thread);
	else if (is_host(r))
		mark_host(r, name, end);
}

static void device_event(struct probe_run *r, struct span name, int64_t end)
{
	const struct event *ev = &r->ev;
	enum timeline_gpu kind = TIMELINE_COPY;
	uint64_t key = 0;

	if (!r->has_device)
		timeline_drop_gpu(r->time);
	r->has_device = true;
	if (ev->cat == CAT_KERNEL) {
		kind = kernels_add(r->kernels, name, ev->dur_ns);
		if (kind == TIMELINE_COMM)
			key = ev->coll ? ev->coll : XXH3_64bits(name.s, name.n);
	} else if (ev->cat == CAT_MEMCPY) {
		kind = trace_copy(name);
		timeline_add_bytes(r->time, kind, ev->bytes);
	}
	timeline_add_gpu(r->time, kind, ev->ts_ns, end, (uint32_t)key);
}

static void memory_event(struct probe_run *r)
{
	const struct event *ev = &r->ev;

	if (ev->device_type != 1)
		return;
	if ((double)ev->allocated > r->peak_allocated)
		r->peak_allocated = (double)ev->allocated;
	if ((double)ev->reserved > r->peak_reserved)
		r->peak_reserved = (double)ev->reserved;
}

static void on_end(void *ctx, bool whole)
{
	struct probe_run *r = ctx;
	const struct event *ev = &r->ev;
	struct span name = {ev->name, ev->n_name};
	int64_t end = ev->ts_ns + ev->dur_ns;

	if (!whole) {
		r->n_broken++;
		return;
	}
	if (ev->is_memory)
		memory_event(r);
	if (ev->ph != 'X' || ev->cat == CAT_OTHER ||
	    (ev->cat == CAT_UNKNOWN && !(r->lists_devices && is_host(r))))
		return;
	if (!ev->has_ts || !ev->has_dur || ev->dur_ns > DUR_MAX_NS) {
		r->n_broken++;
		return;
	}
	if (ev->cat == CAT_CALL)
		timeline_add_host(r->time, trace_call(name), ev->ts_ns, end, ev->thread);
	else if (ev->cat == CAT_OP || ev->cat == CAT_ANNOTATION || ev->cat == CAT_UNKNOWN)
		mark(r, name, end);
	else
		device_event(r, name, end);
}

static void on_begin(void *ctx)
{
	struct probe_run *r = ctx;
	struct event *ev = &r->ev;

	memset(ev, 0, offsetof(struct event, name)); /* all but the name's text */
	ev->bytes = ev->device_type = ev->allocated = ev->reserved = -1;
}

/* -- members -------------------------------------------------------------------------------- */

static enum field event_key(const struct event *ev, const char *s, size_t n)
{
	switch (n) {
	case 2:
		return is_word(s, n, "ph") ? F_PH : is_word(s, n, "ts") ? F_TS : F_NONE;
	case 3:
		return is_word(s, n, "cat")                             ? F_CAT
		       : is_word(s, n, "dur")                           ? F_DUR
		       : is_word(s, n, "tid")                           ? F_TID
		       : is_word(s, n, "pid") && ev->cat == CAT_UNKNOWN ? F_PID
									: F_NONE;
	case 4:
		return is_word(s, n, "name") ? F_NAME : F_NONE;
	default:
		return F_NONE;
	}
}

static enum field args_key(const struct event *ev, const char *s, size_t n)
{
	if (ev->is_memory || ev->cat == CAT_UNKNOWN) {
		if (is_word(s, n, "Device Type"))
			return F_DEVICE_TYPE;
		if (is_word(s, n, "Total Allocated"))
			return F_ALLOCATED;
		if (is_word(s, n, "Total Reserved"))
			return F_RESERVED;
	}
	if (n == 5 && is_word(s, n, "bytes"))
		return F_BYTES;
	if (n < 12 || (ev->cat != CAT_KERNEL && ev->cat != CAT_UNKNOWN))
		return F_NONE;
	if (is_word(s, n, "Collective name"))
		return F_COLLECTIVE;
	if (is_word(s, n, "In msg nelems"))
		return F_NELEMS;
	return is_word(s, n, "Process Group Name") ? F_GROUP : F_NONE;
}

static bool wants_args(const struct event *ev)
{
	switch (ev->cat) {
	case CAT_UNKNOWN:
	case CAT_KERNEL:
	case CAT_MEMCPY:
		return true;
	case CAT_OTHER:
		return ev->is_memory;
	case CAT_OP:
	case CAT_ANNOTATION:
	case CAT_CALL:
	case CAT_MEMSET:
		return false;
	}
	return false;
}

/* Of the maps beside the list of events. */
static enum field side_key(const char *s, size_t n)
{
	return is_word(s, n, "rank")           ? F_RANK
	       : is_word(s, n, "world_size")   ? F_WORLD
	       : is_word(s, n, "backend")      ? F_BACKEND
	       : is_word(s, n, "nccl_version") ? F_NCCL
	       : is_word(s, n, "name")         ? F_GPU_NAME
					       : F_NONE;
}

static enum side side_of(struct span key)
{
	return span_eq(key, "distributedInfo")    ? SIDE_DISTRIBUTED
	       : span_eq(key, "deviceProperties") ? SIDE_DEVICES
	       : span_eq(key, "fettle")           ? SIDE_USAGE
						  : SIDE_NONE;
}

static bool on_key(void *ctx, enum tracejson_place place, struct span key)
{
	struct probe_run *r = ctx;

	r->field = F_NONE;
	switch (place) {
	case TRACEJSON_TOP:
		r->side = side_of(key);
		r->lists_devices |= r->side == SIDE_DEVICES;
		return r->side != SIDE_NONE;
	case TRACEJSON_SIDE:
		r->has_device |= r->side == SIDE_DEVICES;
		r->field = side_key(key.s, key.n);
		if (r->field == F_NONE && r->side == SIDE_USAGE) {
			r->field = F_USAGE;
			snprintf(r->usage, sizeof(r->usage), "%.*s", (int)key.n, key.s);
		}
		break;
	case TRACEJSON_EVENT:
		if (key.n == 4 && is_word(key.s, key.n, "args"))
			return wants_args(&r->ev);
		r->field = event_key(&r->ev, key.s, key.n);
		break;
	case TRACEJSON_ARGS:
		r->field = args_key(&r->ev, key.s, key.n);
		break;
	}
	return r->field != F_NONE;
}

static void on_value(void *ctx, struct span text)
{
	struct probe_run *r = ctx;

	if (r->field >= F_RANK)
		take_side(r, text.s, text.n);
	else
		take_event(r, text.s, text.n);
}

/* -- events that need no look ----------------------------------------------------------------- */

static void skip_blanks(struct span *t)
{
	while (t->n && *t->s == ' ')
		*t = (struct span){t->s + 1, t->n - 1};
}

/* `"key": "text` at t: what t holds of the text; t moves behind it and its comma. */
static bool member(struct span *t, const char *key, struct span *text)
{
	size_t n = strlen(key);
	const char *end;

	skip_blanks(t);
	if (t->n < n || memcmp(t->s, key, n) != 0)
		return false;
	*t = (struct span){t->s + n, t->n - n};
	skip_blanks(t);
	if (t->n < 2 || t->s[0] != ':')
		return false;
	*t = (struct span){t->s + 1, t->n - 1};
	skip_blanks(t);
	if (!t->n || *t->s != '"')
		return false;
	*t = (struct span){t->s + 1, t->n - 1};
	end = memchr(t->s, '"', t->n);
	*text = (struct span){t->s, end ? (size_t)(end - t->s) : t->n};
	*t = (struct span){t->s + text->n, t->n - text->n};
	if (t->n)
		*t = (struct span){t->s + 1, t->n - 1};
	skip_blanks(t);
	if (t->n && *t->s == ',')
		*t = (struct span){t->s + 1, t->n - 1};
	return true;
}

/* A launch says only that there are calls in the trace: the first of them did. */
static bool is_old_news(const struct probe_run *r, struct span name)
{
	static const char launch[] = "cudaLaunch";

	return name.n > sizeof(launch) && memcmp(name.s, launch, sizeof(launch) - 1) == 0 &&
	       timeline_saw(r->time, TIMELINE_LAUNCH);
}

/* Kineto writes ph, cat and name first. An event in another order is looked at. */
static bool on_head(void *ctx, struct span head)
{
	const struct probe_run *r = ctx;
	struct span t = {head.s + 1, head.n - 1}, ph, cat, name;
	enum category c;

	if (!member(&t, "\"ph\"", &ph) || ph.n != 1)
		return false;
	if (strchr("sftMCbne", ph.s[0]))
		return true;
	if (!member(&t, "\"cat\"", &cat))
		return false;
	c = category_of(cat.s, cat.n);
	if (ph.s[0] == 'X' && c == CAT_OTHER)
		return true;
	if (!member(&t, "\"name\"", &name) || name.n < 2)
		return false;
	if (ph.s[0] == 'i')
		return name.s[0] != '[';
	return (c == CAT_OP && name.s[0] != 'P' && name.s[0] != 'e' && !is_host(r)) ||
	       (c == CAT_CALL && is_old_news(r, name));
}

/* -- open, finish ----------------------------------------------------------------------------- */

/* "rank-7", "rank_7", "rank7" in the name of the file: torchtitan and HTA name traces so. */
static int rank_of_file(const char *file)
{
	const char *base = file ? strrchr(file, '/') : NULL, *p;
	int rank = 0, digits = 0;

	base = base ? base + 1 : file;
	p = base ? strstr(base, "rank") : NULL;
	if (!p)
		return -1;
	p += 4;
	p += *p == '-' || *p == '_';
	for (; *p >= '0' && *p <= '9' && digits < 7; p++, digits++)
		rank = rank * 10 + (*p - '0');
	return digits ? rank : -1;
}

static int trace_open(const struct probe_context *c, const struct probe_sink *sink,
		      struct probe_run **out, struct err *e)
{
	static const struct tracejson_calls calls = {on_head, on_begin, on_key, on_value, on_end};
	struct probe_run *r = xcalloc(1, sizeof(*r));

	(void)e;
	emit_open(&r->out, c, sink);
	r->out.rank = rank_of_file(r->out.file);
	r->loader_cpu = r->loader_ready = NAN;
	r->time = timeline_new();
	r->kernels = kernels_new();
	r->json = tracejson_new(&calls, r);
	*out = r;
	return 0;
}

static void emit_memory(struct probe_run *r)
{
	if (r->peak_allocated > 0)
		emit_value(&r->out, "mem_peak_allocated_gib", r->peak_allocated / 0x1p30, NULL);
	if (r->peak_reserved > 0)
		emit_value(&r->out, "mem_peak_reserved_gib", r->peak_reserved / 0x1p30, NULL);
}

static void emit_all(struct probe_run *r)
{
	char world[24];

	if (r->world) {
		snprintf(world, sizeof(world), "%lld", (long long)r->world);
		emit_fact(&r->out, "trace.world_size", span_of(world));
	}
	if (isfinite(r->loader_cpu) && isfinite(r->loader_ready))
		emit_value(&r->out, "loader_blocked_ratio",
			   fmax(0, 1 - r->loader_cpu - r->loader_ready), NULL);
	trace_emit(&r->out, r->time, NULL);
	kernels_emit(r->kernels, &r->out);
	emit_memory(r);
}

/* What was dropped, to detail; true when something was. */
static bool say_dropped(const struct probe_run *r, struct buf *detail)
{
	struct buf b = {0};
	bool any;

	if (r->n_broken)
		buf_printf(&b, "%lld events that are broken or have no possible time",
			   (long long)r->n_broken);
	if (timeline_cut(r->time))
		buf_printf(&b, "%smore events than are kept: some were dropped", b.len ? "; " : "");
	any = b.len > 0;
	if (any && detail)
		buf_printf(detail, "%s%s", detail->len ? "; " : "", b.data);
	buf_free(&b);
	return any;
}

static enum probe_status judge(struct probe_run *r, struct buf *detail)
{
	bool whole = tracejson_finish(r->json, detail);
	size_t steps;

	if (is_host(r))
		timeline_set_host(r->time);
	timeline_finish(r->time);
	(void)timeline_rows(r->time, &steps);
	if (!steps && !timeline_whole(r->time)->wall_ns) {
		if (detail)
			buf_printf(detail, "%sno step, kernel or wait for data in it",
				   detail->len ? "; " : "");
		return PROBE_ABSENT;
	}
	emit_all(r);
	return say_dropped(r, detail) || !whole ? PROBE_PARTIAL : PROBE_OK;
}

static int trace_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	tracejson_feed(r->json, bytes, n);
	return 0;
}

static enum probe_status trace_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s = judge(r, detail);

	tracejson_free(r->json);
	if (r->out.sink.timeline)
		r->out.sink.timeline(r->out.sink.ctx, r->time, r->out.rank);
	else
		timeline_free(r->time);
	kernels_free(r->kernels);
	emit_close(&r->out);
	free(r);
	return s;
}

static int trace_sniff(const char *head, size_t n)
{
	struct span t = {head, n};

	if (t.n >= 3 && memcmp(t.s, "\xef\xbb\xbf", 3) == 0)
		t = (struct span){t.s + 3, t.n - 3};
	while (t.n && isspace((unsigned char)*t.s))
		t = (struct span){t.s + 1, t.n - 1};
	if (!t.n || (t.s[0] != '{' && t.s[0] != '['))
		return 0;
	/* Above every tool whose own keys a trace may hold (nccl_version). */
	if (span_has(t, "\"traceEvents\"") ||
	    (span_has(t, "\"schemaVersion\"") && span_has(t, "\"deviceProperties\"")))
		return 98;
	return span_has(t, "\"ph\"") && span_has(t, "\"ts\"") && span_has(t, "\"dur\"") ? 80 : 0;
}

const struct probe probe_pytorch_trace = {
	.name = "pytorch_trace",
	.summary = "PyTorch profiler trace: where each step's time went, top kernels, copies",
	.example = "torch.profiler.profile(...).export_chrome_trace(\"rank0.json.gz\")",
	.table = trace_columns,
	.sniff = trace_sniff,
	.open = trace_open,
	.feed = trace_feed,
	.finish = trace_finish,
};
