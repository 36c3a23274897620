/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nvidia-smi --query-gpu=... --format=csv[,nounits]. The header names the columns, by the driver's
 * own names, and keeps its units with nounits too; values have theirs or not. Nothing is quoted, so
 * a row whose number of columns is not the header's is refused. A header may come again (restart).
 *
 * Labels: gpu (index, or else its uuid, or its bus address). N/A and the like are missing values
 * with their reason. Of several power readings the plain one is taken, else the average, else the
 * instant. The time is local and has no zone: the agent runs the tool with TZ=UTC.
 */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/emit.h"
#include "probes/lines.h"
#include "probes/probe.h"
#include "probes/when.h"

enum { COLUMNS_MAX = 512 }; /* --query-gpu with all fields of a driver has some 220 */

enum role {
	ROLE_NONE,
	ROLE_TIME,
	ROLE_INDEX,
	ROLE_UUID,
	ROLE_BUS,
	ROLE_NAME,
	ROLE_DRIVER,
	ROLE_METRIC,
};

static const struct field {
	const char *name;
	enum role role;
	const char *metric, *unit;
	int rank; /* of several columns with one metric the lowest is taken */
} fields[] = {
	{"timestamp", ROLE_TIME, NULL, NULL, 0},
	{"index", ROLE_INDEX, NULL, NULL, 0},
	{"uuid", ROLE_UUID, NULL, NULL, 0},
	{"gpu_uuid", ROLE_UUID, NULL, NULL, 0},
	{"pci.bus_id", ROLE_BUS, NULL, NULL, 0},
	{"gpu_bus_id", ROLE_BUS, NULL, NULL, 0},
	{"name", ROLE_NAME, NULL, NULL, 0},
	{"gpu_name", ROLE_NAME, NULL, NULL, 0},
	{"driver_version", ROLE_DRIVER, NULL, NULL, 0},
	{"kmd_version", ROLE_DRIVER, NULL, NULL, 0},
	{"utilization.gpu", ROLE_METRIC, "gpu_util_pct", "%", 0},
	{"utilization.memory", ROLE_METRIC, "gpu_mem_util_pct", "%", 0},
	{"memory.used", ROLE_METRIC, "gpu_mem_used_mib", "MiB", 0},
	{"memory.total", ROLE_METRIC, "gpu_mem_total_mib", "MiB", 0},
	{"memory.free", ROLE_METRIC, "gpu_mem_free_mib", "MiB", 0},
	{"power.limit", ROLE_METRIC, "gpu_power_limit_w", "W", 1},
	{"enforced.power.limit", ROLE_METRIC, "gpu_power_limit_w", "W", 0},
	{"temperature.memory", ROLE_METRIC, "gpu_mem_temp_c", "", 0},
	{"pcie.link.gen.current", ROLE_METRIC, "gpu_pcie_gen", "", 0},
	{"pcie.link.gen.gpucurrent", ROLE_METRIC, "gpu_pcie_gen", "", 1},
	{"pcie.link.width.current", ROLE_METRIC, "gpu_pcie_width", "", 0},
	{"ecc.errors.corrected.volatile.total", ROLE_METRIC, "gpu_ecc_corrected_total", "", 0},
	{"ecc.errors.uncorrected.volatile.total", ROLE_METRIC, "gpu_ecc_uncorrected_total", "", 0},
	{"power.draw", ROLE_METRIC, "gpu_power_w", "W", 0},
	{"power.draw.average", ROLE_METRIC, "gpu_power_w", "W", 1},
	{"power.draw.instant", ROLE_METRIC, "gpu_power_w", "W", 2},
	{"temperature.gpu", ROLE_METRIC, "gpu_temp_c", "", 0},
	{"fan.speed", ROLE_METRIC, "gpu_fan_pct", "%", 0},
	{"clocks.sm", ROLE_METRIC, "sm_clock_mhz", "MHz", 0},
	{"clocks.current.sm", ROLE_METRIC, "sm_clock_mhz", "MHz", 0},
	{"clocks.mem", ROLE_METRIC, "mem_clock_mhz", "MHz", 0},
	{"clocks.current.memory", ROLE_METRIC, "mem_clock_mhz", "MHz", 0},
	{"clocks_event_reasons.active", ROLE_METRIC, "clock_event_reasons", "", 0},
	{"clocks_throttle_reasons.active", ROLE_METRIC, "clock_event_reasons", "", 0},
};

struct probe_run {
	struct input *in;
	struct emit out;
	const struct field *column[COLUMNS_MAX]; /* NULL: of no use */
	size_t n;                                /* 0: no header yet */
	bool timed;                              /* the first column is the time */
	int64_t rows;
	struct strv named; /* "gpu name" facts that were emitted */
	char error[200];
};

/* A column's name without the unit in brackets. */
static struct span bare_name(struct span t)
{
	const char *open;

	t = span_trim(t);
	open = t.n ? memchr(t.s, '[', t.n) : NULL;
	if (open)
		t.n = (size_t)(open - t.s);
	return span_trim(t);
}

static const struct field *field_of(struct span name)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (span_eq(name, fields[i].name))
			return &fields[i];
	return NULL;
}

/* Names of fields are lower case without blanks: a line of only such names is a header. */
static bool is_field_name(struct span t)
{
	for (size_t i = 0; i < t.n; i++)
		if (!(t.s[i] >= 'a' && t.s[i] <= 'z') && !(t.s[i] >= 'A' && t.s[i] <= 'Z') &&
		    !(t.s[i] >= '0' && t.s[i] <= '9') && t.s[i] != '.' && t.s[i] != '_')
			return false;
	return t.n > 0 && t.s[0] >= 'a' && t.s[0] <= 'z';
}

static bool is_header(struct span t)
{
	struct span f;
	size_t n = 0, known = 0;
	bool unit = t.n && t.s[t.n - 1] == ']';

	while (span_next(&t, ",", &f)) {
		struct span name = bare_name(f);

		if (!is_field_name(name) || ++n > COLUMNS_MAX)
			return false;
		known += field_of(name) != NULL;
	}
	return known >= 1 && (n >= 2 || unit); /* one column alone is one with a unit */
}

/* A second column of the same metric loses against one of a lower rank. */
static void drop_doubles(struct probe_run *r)
{
	for (size_t i = 0; i < r->n; i++)
		for (size_t k = 0; k < r->n; k++) {
			const struct field *a = r->column[i], *b = r->column[k];

			if (a && b && i != k && a->metric && str_eq(a->metric, b->metric) &&
			    (b->rank < a->rank || (b->rank == a->rank && k < i))) {
				r->column[i] = NULL;
				break;
			}
		}
}

static void take_header(struct probe_run *r, struct span t)
{
	struct span f;

	r->n = 0;
	while (span_next(&t, ",", &f))
		r->column[r->n++] = field_of(bare_name(f));
	drop_doubles(r);
	r->timed = r->column[0] && r->column[0]->role == ROLE_TIME;
}

static bool hex_value(struct span t, double *out)
{
	double v = 0;

	if (t.n < 3 || t.s[0] != '0' || (t.s[1] | 0x20) != 'x' || t.n > 18)
		return false;
	for (size_t i = 2; i < t.n; i++) {
		char c = (char)(t.s[i] | 0x20);

		if (c >= '0' && c <= '9')
			v = v * 16 + (c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v * 16 + (c - 'a' + 10);
		else
			return false;
	}
	*out = v;
	return true;
}

static bool emit_cell(struct emit *o, const struct field *f, struct span t,
		      const struct emit_tag *tag)
{
	/* Drivers before R334 print MiB as MB. */
	const char *unit = str_eq(f->unit, "MiB") && span_has(t, " MB") ? "MB" : f->unit;
	size_t u = strlen(unit);
	double v;

	if (hex_value(t, &v)) {
		emit_value(o, f->metric, v, tag);
		return true;
	}
	if (u && t.n > u && memcmp(t.s + t.n - u, unit, u) == 0)
		t = span_trim((struct span){t.s, t.n - u});
	return emit_token(o, f->metric, t, 1, tag);
}

/* The name and driver of each device, once. */
static void name_device(struct probe_run *r, enum role role, struct span gpu, struct span name)
{
	const char *what = role == ROLE_NAME ? "name" : "driver";
	_cleanup_free_ char *key = xasprintf("gpu.%.*s.%s", (int)gpu.n, gpu.s, what);

	for (size_t i = 0; i < r->named.n; i++)
		if (str_eq(r->named.v[i], key))
			return;
	if (r->named.n >= COLUMNS_MAX)
		return;
	strv_add(&r->named, key);
	emit_fact(&r->out, key, name);
}

static void emit_row(struct probe_run *r, const struct input_line *l, const struct span *cell)
{
	struct emit_tag tag = EMIT_NONE;
	struct emit_labels ls = {.n = 0};
	struct span gpu = {"", 0};
	enum role best = ROLE_METRIC; /* the roles stand in the order of their worth */

	for (size_t i = 0; i < r->n; i++) {
		enum role role = r->column[i] ? r->column[i]->role : ROLE_NONE;

		if (role == ROLE_TIME)
			tag.t_us = when_parse(cell[i]);
		else if (role >= ROLE_INDEX && role <= ROLE_BUS && role < best) {
			gpu = cell[i];
			best = role;
		}
	}
	if (gpu.n)
		emit_label(&ls, "gpu", gpu);
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	for (size_t i = 0; i < r->n; i++) {
		const struct field *f = r->column[i];

		if (f && (f->role == ROLE_NAME || f->role == ROLE_DRIVER))
			name_device(r, f->role, gpu, cell[i]);
		/* The last cell of a line without an end may be the head of a longer number. */
		if (!f || f->role != ROLE_METRIC || (i + 1 == r->n && !l->complete))
			continue;
		if (!emit_cell(&r->out, f, cell[i], &tag))
			emit_bad(&r->out, "a cell holds no number");
	}
	r->rows++;
}

static bool error_line(struct probe_run *r, struct span t)
{
	static const char *const words[] = {"Unable to determine the device handle",
					    "GPU is lost",
					    "No devices were found",
					    "NVIDIA-SMI has failed",
					    "Failed to initialize NVML",
					    "is not a valid field to query"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (!span_has(t, words[i]))
			continue;
		emit_fact(&r->out, "nvidia_smi.error", t);
		emit_bad(&r->out, words[i]);
		if (!r->error[0])
			str_copy(r->error, sizeof(r->error), words[i]);
		return true;
	}
	return false;
}

static bool is_value(struct span t)
{
	double v;

	return num_missing(t) || num_scan(t, &v, NULL) == NUM_FINITE;
}

/* The first cell is what the first column asks for: the time, or the number of a device. */
static bool begins_row(const struct probe_run *r, struct span first)
{
	double v;

	if (r->timed)
		return when_parse(first) >= 0;
	return r->column[0] && r->column[0]->role == ROLE_INDEX && num_whole(first, &v);
}

static void row_line(struct probe_run *r, const struct input_line *l)
{
	struct span t = input_span(l), f, *cell = xcalloc(r->n, sizeof(*cell));
	size_t n = 0;

	while (span_next(&t, ",", &f)) {
		if (n < r->n)
			cell[n] = span_trim(f);
		n++;
	}
	/* With one column any line has as many: what is no value is another writer's. */
	if (r->n == 1 && !is_value(cell[0]))
		n = 0;
	if (n == r->n && (!r->timed || when_parse(cell[0]) >= 0))
		emit_row(r, l, cell);
	else if (n > 1 && begins_row(r, cell[0]))
		emit_bad(&r->out, l->complete
					  ? "a row with another number of columns than the header"
					  : "a row that is cut");
	free(cell);
}

static void on_line(void *ctx, const struct input_line *l)
{
	struct probe_run *r = ctx;

	if (!l->len)
		return;
	emit_begin(&r->out, l);
	if (is_header(input_span(l)))
		take_header(r, input_span(l));
	else if (!error_line(r, input_span(l)) && r->n)
		row_line(r, l);
}

static int smi_open(const struct probe_context *c, const struct probe_sink *sink,
		    struct probe_run **out, struct err *e)
{
	struct probe_run *r = xcalloc(1, sizeof(*r));

	(void)e;
	emit_open(&r->out, c, sink);
	r->in = input_new(on_line, r);
	*out = r;
	return 0;
}

static int smi_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	input_feed(r->in, bytes, n);
	return 0;
}

static enum probe_status judge(const struct probe_run *r, struct buf *detail)
{
	if (r->rows)
		return emit_status(&r->out, detail);
	if (detail)
		buf_str(detail, r->error[0] ? r->error
				: r->n      ? "a header and no row"
					    : "no header of nvidia-smi --query-gpu");
	return r->error[0] ? PROBE_FAILED : PROBE_ABSENT;
}

static enum probe_status smi_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s;

	input_finish(r->in);
	s = judge(r, detail);
	input_free(r->in);
	emit_close(&r->out);
	strv_free(&r->named);
	free(r);
	return s;
}

static int score(struct span line)
{
	if (!is_header(line))
		return 0;
	return span_has(line, "utilization.gpu") || span_has(line, "memory.used") ||
			       span_has(line, "power.draw")
		       ? 95
		       : 55;
}

static int smi_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

const struct probe probe_nvidia_smi_csv = {
	.name = "nvidia_smi_csv",
	.summary = "nvidia-smi --query-gpu as CSV: use, memory, power and clocks of each GPU",
	.example = "nvidia-smi "
		   "--query-gpu=timestamp,index,uuid,name,utilization.gpu,utilization.memory,"
		   "memory.used,power.draw,temperature.gpu,clocks.sm,clocks.mem,"
		   "clocks_event_reasons.active --format=csv,nounits -lms 1000",
	.sniff = smi_sniff,
	.open = smi_open,
	.feed = smi_feed,
	.finish = smi_finish,
};
