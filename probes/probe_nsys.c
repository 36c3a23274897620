/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `nsys export --type sqlite`: the same table as from PyTorch's trace. Tables exist only when they
 * have rows or were traced, and columns come and go with versions, so that both are looked up first
 * and all but start and end are optional. A rank is a process on a device (globalPid / 2^24 %
 * 2^24). Steps are NVTX ranges: torch's ProfilerStep#N, else what a person named a step. With CUDA
 * graphs that were not traced by node a whole graph counts as one kernel.
 *
 * The file is opened where it lies, read-only; bytes that come through feed() (gzip, a pipe) are
 * spooled to a file that has no name. What is untrusted in a database (views, triggers, virtual
 * tables) is not looked at.
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "orchestrator/base/mem.h"
#include "probes/emit.h"
#include "probes/probe.h"
#include "probes/trace.h"

enum {
	RANKS_MAX = 64,        /* processes times devices of one node, with room */
	NAMES_MAX = 1 << 14,   /* kernels and calls; distinct, so some hundreds */
	NAME_BYTES_MAX = 4096, /* of a name that is looked at */
	MAGIC_BYTES = 16,      /* "SQLite format 3" and its NUL */
	NVTX_PUSH_POP = 59,
	NVTX_START_END = 60,
	COPY_HTOD = 1,
};
#define SPOOL_MAX  (INT64_C(16) << 30) /* what is fed has no other bound; exports are a few GiB */
#define DUR_MAX_NS (INT64_C(86400000000000) * 11)

struct rank {
	int64_t pid, device;
	struct timeline *time;
};

/* A name of StringIds, looked up once. */
struct name {
	int64_t id;
	char *text; /* NULL: slot is free */
	size_t len;
};

struct nsys {
	sqlite3 *db;
	sqlite3_stmt *string; /* id -> text */
	struct emit *o;
	struct rank rank[RANKS_MAX];
	size_t n_rank;
	struct name *names; /* hash table of NAMES_MAX */
	size_t n_names;
	struct kernels *kernels;
	int64_t pageable, pinned; /* as srcKind codes them */
	int64_t broken;
	bool has_end_missing, ranks_cut, corrupt;
	char why[160];
};

static void note_error(struct nsys *s)
{
	if (!s->corrupt)
		str_copy(s->why, sizeof(s->why), sqlite3_errmsg(s->db));
	s->corrupt = true;
}

static sqlite3_stmt *prepare(struct nsys *s, const char *sql)
{
	sqlite3_stmt *q = NULL;

	if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK) {
		note_error(s);
		return NULL;
	}
	return q;
}

/* The next row; false at the end, and when the file is damaged. */
static bool step(struct nsys *s, sqlite3_stmt *q)
{
	int rc = sqlite3_step(q);

	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		note_error(s);
	return rc == SQLITE_ROW;
}

/* A real table of that name: no view, no virtual table. */
static bool has_table(struct nsys *s, const char *table)
{
	sqlite3_stmt *q = prepare(s, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND "
				     "name = ?1 AND rootpage > 0");
	bool found = false;

	if (!q)
		return false;
	sqlite3_bind_text(q, 1, table, -1, SQLITE_STATIC);
	found = step(s, q);
	sqlite3_finalize(q);
	return found;
}

static bool has_column(struct nsys *s, const char *table, const char *column)
{
	sqlite3_stmt *q = prepare(s, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2");
	bool found = false;

	if (!q)
		return false;
	sqlite3_bind_text(q, 1, table, -1, SQLITE_STATIC);
	sqlite3_bind_text(q, 2, column, -1, SQLITE_STATIC);
	found = step(s, q);
	sqlite3_finalize(q);
	return found;
}

/* SELECT of the columns (NULL-terminated) that the table has, NULL for the others; NULL if there is
 * no such table. All names are constants of this file. */
static sqlite3_stmt *select_from(struct nsys *s, const char *table, const char *const *columns)
{
	struct buf sql = {0};
	sqlite3_stmt *q;

	if (!has_table(s, table))
		return NULL;
	for (size_t i = 0; columns[i]; i++)
		buf_printf(&sql, "%s%s%s%s", i ? ", " : "SELECT ",
			   has_column(s, table, columns[i]) ? "\"" : "NULL AS \"", columns[i],
			   "\"");
	buf_printf(&sql, " FROM \"%s\"", table);
	q = prepare(s, sql.data);
	buf_free(&sql);
	return q;
}

/* -- names ------------------------------------------------------------------------------------ */

static struct span lookup(struct nsys *s, int64_t id)
{
	const char *text;
	int n;

	if (!s->string)
		return (struct span){"", 0};
	sqlite3_reset(s->string);
	sqlite3_bind_int64(s->string, 1, id);
	if (!step(s, s->string))
		return (struct span){"", 0};
	text = (const char *)sqlite3_column_text(s->string, 0);
	n = sqlite3_column_bytes(s->string, 0);
	if (!text || n <= 0)
		return (struct span){"", 0};
	return (struct span){text, n < NAME_BYTES_MAX ? (size_t)n : NAME_BYTES_MAX};
}

/* An old schema has no NULL, and writes "" or 0 for it. */
static bool is_given(sqlite3_stmt *q, int column)
{
	switch (sqlite3_column_type(q, column)) {
	case SQLITE_NULL:
		return false;
	case SQLITE_TEXT:
		return sqlite3_column_bytes(q, column) > 0;
	default:
		return sqlite3_column_int64(q, column) != 0;
	}
}

/* The text of a name, which a column holds itself or by its number in StringIds. */
static struct span name_of(struct nsys *s, sqlite3_stmt *q, int column)
{
	int64_t id = sqlite3_column_int64(q, column);
	size_t i = XXH3_64bits(&id, sizeof(id)) & (NAMES_MAX - 1);
	struct span text;

	if (sqlite3_column_type(q, column) == SQLITE_TEXT) {
		int n = sqlite3_column_bytes(q, column);

		text.s = (const char *)sqlite3_column_text(q, column);
		text.n = n < NAME_BYTES_MAX ? (size_t)n : NAME_BYTES_MAX;
		return text.s ? text : (struct span){"", 0};
	}
	if (sqlite3_column_type(q, column) != SQLITE_INTEGER)
		return (struct span){"", 0};
	while (s->names[i].text && s->names[i].id != id)
		i = (i + 1) & (NAMES_MAX - 1);
	if (s->names[i].text)
		return (struct span){s->names[i].text, s->names[i].len};
	text = lookup(s, id);
	if (s->n_names == NAMES_MAX / 2)
		return text;
	s->n_names++;
	text.s = xstrndup(text.s, text.n);
	text.n = strlen(text.s); /* it ends at a NUL, wherever the file has one */
	s->names[i] = (struct name){id, (char *)(uintptr_t)text.s, text.n};
	return text;
}

/* -- events ----------------------------------------------------------------------------------- */

/* start and end are the first two columns of every event. */
static bool times(struct nsys *s, sqlite3_stmt *q, int64_t *start, int64_t *end)
{
	*start = sqlite3_column_int64(q, 0);
	*end = sqlite3_column_int64(q, 1);
	if (sqlite3_column_type(q, 1) != SQLITE_INTEGER ||
	    sqlite3_column_type(q, 0) != SQLITE_INTEGER || *start < -TIMELINE_NS_LIMIT ||
	    *end > TIMELINE_NS_LIMIT || *end < *start || *end - *start > DUR_MAX_NS) {
		s->broken++;
		return false;
	}
	return true;
}

static int64_t pid_of(int64_t global)
{
	return global / 0x1000000 % 0x1000000;
}

static struct timeline *rank_of(struct nsys *s, int64_t pid, int64_t device)
{
	for (size_t i = 0; i < s->n_rank; i++)
		if (s->rank[i].pid == pid && s->rank[i].device == device)
			return s->rank[i].time;
	if (s->n_rank == RANKS_MAX) {
		s->ranks_cut = true;
		return NULL;
	}
	s->rank[s->n_rank] = (struct rank){pid, device, timeline_new()};
	return s->rank[s->n_rank++].time;
}

/* Columns 2 and 3 of what the device did. */
static struct timeline *row_rank(struct nsys *s, sqlite3_stmt *q)
{
	return rank_of(s, pid_of(sqlite3_column_int64(q, 3)), sqlite3_column_int64(q, 2));
}

static void read_kernels(struct nsys *s)
{
	static const char *const columns[] = {"start",         "end",       "deviceId", "globalPid",
					      "demangledName", "shortName", NULL};
	sqlite3_stmt *q = select_from(s, "CUPTI_ACTIVITY_KIND_KERNEL", columns);
	int64_t start, end;

	while (q && step(s, q)) {
		struct timeline *t;
		struct span name;
		enum timeline_gpu kind;
		uint32_t key = 0;

		if (!times(s, q, &start, &end) || !(t = row_rank(s, q)))
			continue;
		name = name_of(s, q, is_given(q, 4) ? 4 : 5);
		kind = kernels_add(s->kernels, name, end - start);
		if (kind == TIMELINE_COMM)
			key = (uint32_t)XXH3_64bits(name.s, name.n);
		timeline_add_gpu(t, kind, start, end, key);
	}
	sqlite3_finalize(q);
}

static void read_graphs(struct nsys *s)
{
	static const char *const columns[] = {"start", "end", "deviceId", "globalPid", NULL};
	sqlite3_stmt *q = select_from(s, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", columns);
	int64_t start, end;

	while (q && step(s, q)) {
		struct timeline *t;

		if (!times(s, q, &start, &end) || !(t = row_rank(s, q)))
			continue;
		kernels_add(s->kernels, span_of("CUDA graph"), end - start);
		timeline_add_gpu(t, TIMELINE_COMPUTE, start, end, 0);
	}
	sqlite3_finalize(q);
}

static void read_copies(struct nsys *s)
{
	static const char *const columns[] = {"start",    "end",     "deviceId", "globalPid",
					      "copyKind", "srcKind", "bytes",    NULL};
	sqlite3_stmt *q = select_from(s, "CUPTI_ACTIVITY_KIND_MEMCPY", columns);
	int64_t start, end;

	while (q && step(s, q)) {
		enum timeline_gpu kind = TIMELINE_COPY;
		struct timeline *t;

		if (!times(s, q, &start, &end) || !(t = row_rank(s, q)))
			continue;
		if (sqlite3_column_int64(q, 4) == COPY_HTOD &&
		    sqlite3_column_type(q, 5) == SQLITE_INTEGER) {
			if (sqlite3_column_int64(q, 5) == s->pageable)
				kind = TIMELINE_PAGEABLE;
			else if (sqlite3_column_int64(q, 5) == s->pinned)
				kind = TIMELINE_PINNED;
		}
		timeline_add_gpu(t, kind, start, end, 0);
		timeline_add_bytes(t, kind, sqlite3_column_int64(q, 6));
	}
	sqlite3_finalize(q);
}

static void read_sets(struct nsys *s)
{
	static const char *const columns[] = {"start", "end", "deviceId", "globalPid", NULL};
	sqlite3_stmt *q = select_from(s, "CUPTI_ACTIVITY_KIND_MEMSET", columns);
	int64_t start, end;

	while (q && step(s, q)) {
		struct timeline *t;

		if (times(s, q, &start, &end) && (t = row_rank(s, q)))
			timeline_add_gpu(t, TIMELINE_COPY, start, end, 0);
	}
	sqlite3_finalize(q);
}

/* A process whose device rows do not name it (old schemas) takes what any process did. */
static bool is_of(const struct rank *r, int64_t pid)
{
	return r->pid == pid || r->pid == 0;
}

static void read_calls(struct nsys *s)
{
	static const char *const columns[] = {"start", "end", "globalTid", "nameId", NULL};
	sqlite3_stmt *q = select_from(s, "CUPTI_ACTIVITY_KIND_RUNTIME", columns);
	int64_t start, end;

	while (q && step(s, q)) {
		int64_t thread = sqlite3_column_int64(q, 2);
		enum timeline_host kind;

		if (!times(s, q, &start, &end))
			continue;
		kind = trace_call(name_of(s, q, 3));
		for (size_t i = 0; i < s->n_rank; i++)
			if (is_of(&s->rank[i], pid_of(thread)))
				timeline_add_host(s->rank[i].time, kind, start, end,
						  (uint32_t)thread);
	}
	sqlite3_finalize(q);
}

/* One range of a person or of torch. */
static void add_range(struct nsys *s, struct span name, bool by_profiler, int64_t start,
		      int64_t end, int64_t thread)
{
	int64_t number = -1;
	bool is_step = by_profiler ? trace_profiler_step(name, &number)
				   : trace_named_step(name, &number);

	if (!is_step && !trace_is_data(name))
		return;
	for (size_t i = 0; i < s->n_rank; i++) {
		if (!is_of(&s->rank[i], pid_of(thread)))
			continue;
		if (is_step)
			timeline_add_step(s->rank[i].time, number, start, end, (uint32_t)thread, 0);
		else
			timeline_add_host(s->rank[i].time, TIMELINE_DATA, start, end,
					  (uint32_t)thread);
	}
}

static bool has_profiler_steps(struct nsys *s)
{
	bool by_id = has_table(s, "StringIds") && has_column(s, "NVTX_EVENTS", "textId");
	sqlite3_stmt *q;
	bool found;

	if (!has_table(s, "NVTX_EVENTS") || !has_column(s, "NVTX_EVENTS", "text"))
		return false;
	q = prepare(
		s,
		by_id ? "SELECT 1 FROM NVTX_EVENTS WHERE text GLOB 'ProfilerStep#*' OR textId IN "
			"(SELECT id FROM StringIds WHERE value GLOB 'ProfilerStep#*') LIMIT 1"
		      : "SELECT 1 FROM NVTX_EVENTS WHERE text GLOB 'ProfilerStep#*' LIMIT 1");
	found = q && step(s, q);
	sqlite3_finalize(q);
	return found;
}

static void read_ranges(struct nsys *s)
{
	static const char *const columns[] = {"start",     "end",       "text", "textId",
					      "globalTid", "eventType", NULL};
	bool by_profiler = has_profiler_steps(s);
	sqlite3_stmt *q = select_from(s, "NVTX_EVENTS", columns);
	int64_t start, end;

	while (q && step(s, q)) {
		int64_t type = sqlite3_column_int64(q, 5);

		if (sqlite3_column_type(q, 5) == SQLITE_INTEGER && type != NVTX_PUSH_POP &&
		    type != NVTX_START_END)
			continue;
		/* A range that was open when the trace ended has no end (NULL, -1, 0): it is no
		 * whole step. */
		if (sqlite3_column_type(q, 1) == SQLITE_NULL ||
		    sqlite3_column_int64(q, 1) < sqlite3_column_int64(q, 0) ||
		    !times(s, q, &start, &end))
			continue;
		add_range(s, name_of(s, q, is_given(q, 2) ? 2 : 3), by_profiler, start, end,
			  sqlite3_column_int64(q, 4));
	}
	sqlite3_finalize(q);
}

/* -- facts and counters ----------------------------------------------------------------------- */

static void read_fact(struct nsys *s, const char *table, const char *sql, const char *key)
{
	sqlite3_stmt *q = has_table(s, table) ? prepare(s, sql) : NULL;
	const char *text;

	if (q && step(s, q) && (text = (const char *)sqlite3_column_text(q, 0))) {
		char clean[PROBE_RAW_MAX];
		size_t n = strlen(text);

		n = n < sizeof(clean) ? n : sizeof(clean);
		memcpy(clean, text, n);
		emit_fact(s->o, key, (struct span){clean, input_clean(clean, n)});
	}
	sqlite3_finalize(q);
}

/* How srcKind says pageable and pinned: 0 and 1, unless the file has the table that tells. */
static void read_memory_kinds(struct nsys *s)
{
	sqlite3_stmt *q = NULL;

	s->pageable = 0;
	s->pinned = 1;
	if (has_table(s, "ENUM_CUDA_MEM_KIND") && has_column(s, "ENUM_CUDA_MEM_KIND", "label"))
		q = prepare(s, "SELECT id, label FROM ENUM_CUDA_MEM_KIND");
	while (q && step(s, q)) {
		const char *label = (const char *)sqlite3_column_text(q, 1);

		if (str_eq(label, "Pageable"))
			s->pageable = sqlite3_column_int64(q, 0);
		else if (str_eq(label, "Pinned"))
			s->pinned = sqlite3_column_int64(q, 0);
	}
	sqlite3_finalize(q);
}

/* Sampled counters (nsys --gpu-metrics-devices): the mean over the trace, of each device. */
static void read_counters(struct nsys *s)
{
	static const struct {
		const char *prefix, *metric;
	} known[] = {
		{"Tensor Active", "tensor_active"},
		{"SMs Active", "sm_active"},
		{"SM Active", "sm_active"},
		{"GR Active", "gr_engine_active"},
	};
	sqlite3_stmt *q = NULL;

	if (has_table(s, "GPU_METRICS") && has_table(s, "TARGET_INFO_GPU_METRICS"))
		q = prepare(s,
			    "SELECT m.metricName, g.typeId & 255, avg(g.value) FROM GPU_METRICS g "
			    "JOIN TARGET_INFO_GPU_METRICS m USING (typeId, metricId) "
			    "WHERE m.metricName LIKE '%Active%' GROUP BY 1, 2 ORDER BY 2, 1");
	while (q && step(s, q)) {
		struct span name = span_of((const char *)sqlite3_column_text(q, 0));
		struct emit_labels ls = {.n = 0};
		struct emit_tag tag = EMIT_NONE;
		char device[24];

		snprintf(device, sizeof(device), "%lld", (long long)sqlite3_column_int64(q, 1));
		emit_label(&ls, "device", span_of(device));
		tag.labels = ls.v;
		tag.n_labels = ls.n;
		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			if (span_after(name, known[i].prefix).s &&
			    str_starts(name.s, known[i].prefix))
				emit_value(s->o, known[i].metric, sqlite3_column_double(q, 2) / 100,
					   &tag);
	}
	sqlite3_finalize(q);
}

/* -- all of it -------------------------------------------------------------------------------- */

static int by_device(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* A process that only touches a device (a context for peer copies) is no rank. */
static void drop_idle_ranks(struct nsys *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_rank; i++)
		n += timeline_gpu_count(s->rank[i].time, TIMELINE_COMPUTE) > 0;
	if (!n)
		return;
	n = 0;
	for (size_t i = 0; i < s->n_rank; i++) {
		if (timeline_gpu_count(s->rank[i].time, TIMELINE_COMPUTE))
			s->rank[n++] = s->rank[i];
		else
			timeline_free(s->rank[i].time);
	}
	s->n_rank = n;
}

static void read_all(struct nsys *s)
{
	read_fact(s, "META_DATA_EXPORT",
		  "SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_PRODUCT_VERSION'",
		  "nsys.version");
	read_fact(s, "META_DATA_EXPORT",
		  "SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_SCHEMA_VERSION'",
		  "nsys.schema");
	read_fact(s, "TARGET_INFO_GPU", "SELECT name FROM TARGET_INFO_GPU", "trace.gpu");
	if (has_table(s, "StringIds"))
		s->string = prepare(s, "SELECT value FROM StringIds WHERE id = ?1");
	read_memory_kinds(s);
	read_kernels(s);
	read_graphs(s);
	read_copies(s);
	read_sets(s);
	drop_idle_ranks(s);
	if (!s->n_rank && has_table(s, "NVTX_EVENTS"))
		(void)rank_of(s, 0, 0); /* no device in it: steps and waits for data still count */
	qsort(s->rank, s->n_rank, sizeof(s->rank[0]), by_device);
	read_calls(s);
	read_ranges(s);
}

static void emit_ranks(struct nsys *s)
{
	struct timeline *time[RANKS_MAX];
	int rank[RANKS_MAX];

	for (size_t i = 0; i < s->n_rank; i++) {
		char device[24];

		snprintf(device, sizeof(device), "%lld", (long long)s->rank[i].device);
		time[i] = s->rank[i].time;
		rank[i] = (int)i;
		timeline_finish(time[i]);
		s->o->rank = s->n_rank > 1 ? (int)i : -1;
		trace_emit(s->o, time[i], s->n_rank > 1 ? device : NULL);
	}
	s->o->rank = -1;
	if (s->n_rank > 1)
		trace_emit_waits(s->o, time, rank, s->n_rank);
	kernels_emit(s->kernels, s->o);
	read_counters(s);
}

static bool is_cut(const struct nsys *s)
{
	bool cut = s->ranks_cut;

	for (size_t i = 0; i < s->n_rank; i++)
		cut |= timeline_cut(s->rank[i].time);
	return cut;
}

static enum probe_status judge(const struct nsys *s, struct buf *detail)
{
	struct buf b = {0};
	bool faults = s->corrupt || s->broken || is_cut(s), found = s->o->values > 0;

	if (s->corrupt)
		buf_printf(&b, "the database is damaged or of another kind: %s; ", s->why);
	if (s->broken)
		buf_printf(&b, "%lld events with an impossible time; ", (long long)s->broken);
	if (is_cut(s))
		buf_str(&b, "more events than are kept: some were dropped; ");
	if (!found)
		buf_str(&b, "no kernel, step or wait for data in it; ");
	if (b.len && detail)
		buf_put(detail, b.data, b.len - 2);
	buf_free(&b);
	return !found ? PROBE_ABSENT : faults ? PROBE_PARTIAL : PROBE_OK;
}

static void close_all(struct nsys *s, bool hand_over)
{
	for (size_t i = 0; i < s->n_rank; i++) {
		if (hand_over && s->o->sink.timeline)
			s->o->sink.timeline(s->o->sink.ctx, s->rank[i].time, (int)i);
		else
			timeline_free(s->rank[i].time);
	}
	for (size_t i = 0; i < NAMES_MAX; i++)
		free(s->names[i].text);
	free(s->names);
	kernels_free(s->kernels);
	sqlite3_finalize(s->string);
	sqlite3_close(s->db);
}

/* A path as part of a URI: only what a URI gives a meaning needs care. */
static void put_uri(struct buf *b, const char *path)
{
	buf_str(b, "file:");
	for (; *path; path++) {
		if (strchr("%?#", *path))
			buf_printf(b, "%%%02x", (unsigned char)*path);
		else
			buf_char(b, *path);
	}
	buf_str(b, "?mode=ro&immutable=1");
}

static enum probe_status read_db(struct emit *o, const char *path, struct buf *detail)
{
	static const char safe[] = "PRAGMA trusted_schema = OFF; PRAGMA query_only = ON; "
				   "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0";
	struct nsys s = {.o = o};
	struct buf uri = {0};
	enum probe_status status;

	put_uri(&uri, path);
	s.names = xcalloc(NAMES_MAX, sizeof(*s.names));
	s.kernels = kernels_new();
	if (sqlite3_open_v2(uri.data, &s.db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) !=
		    SQLITE_OK ||
	    sqlite3_exec(s.db, safe, NULL, NULL, NULL) != SQLITE_OK)
		note_error(&s);
	else
		read_all(&s);
	emit_ranks(&s);
	status = judge(&s, detail);
	close_all(&s, true);
	buf_free(&uri);
	return status;
}

/* -- the probe -------------------------------------------------------------------------------- */

static const char magic[MAGIC_BYTES] = "SQLite format 3";

struct probe_run {
	struct emit out;
	char path[128];
	int fd; /* -1: nothing that is worth keeping has come */
	char head[MAGIC_BYTES];
	size_t n_head;
	int64_t bytes;
	bool failed, other;
};

static enum probe_status nsys_read(const struct probe_context *c, const char *path,
				   const struct probe_sink *sink, struct buf *detail)
{
	struct emit o;
	enum probe_status status;

	emit_open(&o, c, sink);
	status = read_db(&o, path, detail);
	emit_close(&o);
	return status;
}

static int nsys_open(const struct probe_context *c, const struct probe_sink *sink,
		     struct probe_run **out, struct err *e)
{
	struct probe_run *r = xcalloc(1, sizeof(*r));

	(void)e;
	emit_open(&r->out, c, sink);
	r->fd = -1;
	*out = r;
	return 0;
}

static int spool_open(struct probe_run *r, struct err *e)
{
	const char *dir = getenv("TMPDIR");
	int n = snprintf(r->path, sizeof(r->path), "%s/fettle-nsys.XXXXXX",
			 dir && *dir && strlen(dir) < 90 ? dir : "/tmp");

	if (n < 0 || (size_t)n >= sizeof(r->path))
		return err_set(e, ERR_IO, "the name of a temporary file is too long");
	r->fd = mkostemp(r->path, O_CLOEXEC);
	if (r->fd < 0)
		return err_sys(e, ERR_IO, "%s", r->path);
	return 0;
}

static int spool(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	if (r->fd < 0 && spool_open(r, e))
		return e->code;
	r->bytes += (int64_t)n;
	if (r->bytes > SPOOL_MAX)
		return err_set(e, ERR_IO, "more than 16 GiB came through a pipe: give the file");
	while (n) {
		ssize_t k = write(r->fd, bytes, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return err_sys(e, ERR_IO, "%s", r->path);
		bytes += k;
		n -= (size_t)k;
	}
	return 0;
}

static int nsys_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	while (n && r->n_head < MAGIC_BYTES) {
		r->head[r->n_head++] = *bytes++;
		n--;
		if (r->n_head < MAGIC_BYTES)
			continue;
		r->other = memcmp(r->head, magic, MAGIC_BYTES) != 0;
		if (!r->other && spool(r, r->head, MAGIC_BYTES, e)) {
			r->failed = true;
			return e->code;
		}
	}
	if (!n || r->other || r->failed)
		return 0;
	r->failed = spool(r, bytes, n, e) != 0;
	return r->failed ? e->code : 0;
}

static enum probe_status nsys_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status status = PROBE_ABSENT;

	if (r->fd >= 0 && !r->failed)
		status = read_db(&r->out, r->path, detail);
	else if (detail)
		buf_str(detail, r->failed ? "not read to its end" : "no SQLite database");
	if (r->fd >= 0) {
		close(r->fd);
		unlink(r->path);
	}
	emit_close(&r->out);
	free(r);
	return status;
}

static int nsys_sniff(const char *head, size_t n)
{
	struct span t = {head, n};

	if (n < MAGIC_BYTES || memcmp(head, magic, MAGIC_BYTES) != 0)
		return 0;
	/* Its schema stands in the first pages. */
	return span_has(t, "CUPTI_ACTIVITY_KIND") || span_has(t, "NVTX_EVENTS") ||
			       span_has(t, "META_DATA_EXPORT") || span_has(t, "StringIds")
		       ? 95
		       : 0;
}

const struct probe probe_nsys = {
	.name = "nsys",
	.summary = "Nsight Systems export: where each step's time went, of each rank",
	.example = "nsys export --type sqlite report.nsys-rep",
	.table = trace_columns,
	.sniff = nsys_sniff,
	.read = nsys_read,
	.open = nsys_open,
	.feed = nsys_feed,
	.finish = nsys_finish,
};
