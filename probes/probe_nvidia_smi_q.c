/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nvidia-smi -q: the long form, indented keys of one GPU after the other. Sections are told by
 * their indent, names by what drivers since R304 call them. Repeated runs in one file give one set
 * of values each. What stands below a MIG device is not the GPU's and is passed over. A power that
 * has no average is the one of the instant; errors of ECC are the sums of the volatile ones.
 *
 * Labels: gpu, which is the bus address: the text has no index. Facts: gpu.<bus>.name and .driver,
 * gpu.<bus>.performance_state.
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/lines.h"
#include "probes/when.h"

enum { DEPTH_MAX = 8, NAME_BYTES = 48, BUS_BYTES = 32 };

static const struct entry {
	const char *section; /* NULL: at the first level of a GPU */
	const char *name, *unit, *metric;
} entries[] = {
	{"Utilization", "Gpu", "%", "gpu_util_pct"},
	{"Utilization", "GPU", "%", "gpu_util_pct"},
	{"Utilization", "Memory", "%", "gpu_mem_util_pct"},
	{"FB Memory Usage", "Total", "MiB", "gpu_mem_total_mib"},
	{"FB Memory Usage", "Used", "MiB", "gpu_mem_used_mib"},
	{"FB Memory Usage", "Free", "MiB", "gpu_mem_free_mib"},
	/* before R334, and MiB all the same */
	{"Memory Usage", "Total", "MB", "gpu_mem_total_mib"},
	{"Memory Usage", "Used", "MB", "gpu_mem_used_mib"},
	{"Memory Usage", "Free", "MB", "gpu_mem_free_mib"},
	{"Temperature", "GPU Current Temp", "C", "gpu_temp_c"},
	{"Temperature", "Gpu", "C", "gpu_temp_c"},
	{"Temperature", "Memory Current Temp", "C", "gpu_mem_temp_c"},
	{"Power Readings", "Power Draw", "W", "gpu_power_w"},
	{"Power Readings", "Power Limit", "W", "gpu_power_limit_w"},
	{"GPU Power Readings", "Power Draw", "W", "gpu_power_w"},
	{"GPU Power Readings", "Average Power Draw", "W", "gpu_power_w"},
	{"GPU Power Readings", "Instantaneous Power Draw", "W", "gpu_power_w"},
	{"GPU Power Readings", "Current Power Limit", "W", "gpu_power_limit_w"},
	{"GPU Ceiling Power Limit", "Current Power Limit", "W", "gpu_power_limit_w"},
	{"Clocks", "SM", "MHz", "sm_clock_mhz"},
	{"Clocks", "Memory", "MHz", "mem_clock_mhz"},
	{"PCIe Generation", "Current", "", "gpu_pcie_gen"},
	{"Link Width", "Current", "x", "gpu_pcie_width"},
	{NULL, "Fan Speed", "%", "gpu_fan_pct"},
	{"PCI", "Replays Since Reset", "", "gpu_pcie_replays_total"},
};

/* Bits of clocks_event_reasons.active (nvml.h, nvmlClocksEventReasons). */
static const struct {
	const char *name;
	unsigned bit;
} reasons[] = {
	{"Idle", 0x1},
	{"Applications Clocks Setting", 0x2},
	{"SW Power Cap", 0x4},
	{"HW Slowdown", 0x8},
	{"Sync Boost", 0x10},
	{"SW Thermal Slowdown", 0x20},
	{"HW Thermal Slowdown", 0x40},
	{"HW Power Brake Slowdown", 0x80},
	{"Display Clock Setting", 0x100},
};

struct smi_q {
	char bus[BUS_BYTES]; /* "" before the first GPU */
	char driver[NAME_BYTES];
	int64_t t_us;
	size_t depth;
	struct {
		size_t indent;
		char name[NAME_BYTES];
	} path[DEPTH_MAX];
	bool no_average;  /* of the power */
	double ecc[2];    /* volatile errors so far: corrected ones, and others; -1: none told */
	unsigned reasons; /* seen in this section so far */
	bool in_reasons;
	int64_t reasons_n; /* lines of the section that could be read */
	bool reasons_all;  /* the last of them was seen: what follows may be cut */
};

static void copy(char *out, size_t max, struct span t)
{
	size_t n = t.n < max - 1 ? t.n : max - 1;

	memcpy(out, t.s, n);
	out[n] = '\0';
}

static struct emit_tag tag_of(const struct smi_q *st, struct emit_labels *ls)
{
	ls->n = 0;
	emit_label(ls, "gpu", span_of(st->bus));
	return (struct emit_tag){-1, st->t_us, ls->v, ls->n};
}

static void end_reasons(struct smi_q *st, struct emit *o)
{
	struct emit_labels ls;
	struct emit_tag tag = tag_of(st, &ls);

	if (st->in_reasons && st->reasons_n)
		emit_value(o, "clock_event_reasons", st->reasons, &tag);
	else if (st->in_reasons)
		emit_missing(o, "clock_event_reasons", "N/A", &tag);
	st->in_reasons = false;
}

static void gpu_fact(const struct smi_q *st, struct emit *o, const char *what, struct span text)
{
	_cleanup_free_ char *key = xasprintf("gpu.%s.%s", st->bus, what);

	emit_fact(o, key, text);
}

static void end_ecc(struct smi_q *st, struct emit *o)
{
	static const char *const metrics[] = {"gpu_ecc_corrected_total",
					      "gpu_ecc_uncorrected_total"};
	struct emit_labels ls;
	struct emit_tag tag = tag_of(st, &ls);

	for (size_t i = 0; i < ARRAY_LEN(metrics); i++)
		if (st->ecc[i] >= 0)
			emit_value(o, metrics[i], st->ecc[i], &tag);
}

/* True when the innermost sections are `outer` and in it `inner`. */
static bool is_in(const struct smi_q *st, const char *outer, const char *inner)
{
	return st->depth >= 2 && str_eq(st->path[st->depth - 1].name, inner) &&
	       str_eq(st->path[st->depth - 2].name, outer);
}

/* "SRAM Uncorrectable Parity : 0" below Volatile, or the totals that drivers before R418 give. */
static void take_ecc(struct smi_q *st, struct span name, struct span value)
{
	bool newer = is_in(st, "ECC Errors", "Volatile"), total = span_eq(name, "Total");
	int kind = newer && span_has(name, "Uncorrectable")       ? 1
		   : newer && span_has(name, "Correctable")       ? 0
		   : total && is_in(st, "Volatile", "Double Bit") ? 1
		   : total && is_in(st, "Volatile", "Single Bit") ? 0
								  : -1;
	double v;

	if (kind >= 0 && num_whole(value, &v))
		st->ecc[kind] = v + (st->ecc[kind] > 0 ? st->ecc[kind] : 0);
}

/* "GPU 00000000:00:09.0" at the margin. */
static bool take_gpu(struct smi_q *st, struct emit *o, struct span t)
{
	struct span bus;

	if (t.n < 16 || t.n >= BUS_BYTES + 4 || memcmp(t.s, "GPU ", 4) != 0)
		return false;
	bus = (struct span){t.s + 4, t.n - 4};
	if (!memchr(bus.s, ':', bus.n) || !memchr(bus.s, '.', bus.n) || memchr(bus.s, ' ', bus.n))
		return false;
	end_reasons(st, o);
	copy(st->bus, sizeof(st->bus), bus);
	st->depth = 0;
	if (st->driver[0])
		gpu_fact(st, o, "driver", span_of(st->driver));
	return true;
}

/* Leave the sections that this indent ends. */
static void climb(struct smi_q *st, struct emit *o, size_t indent)
{
	while (st->depth && st->path[st->depth - 1].indent >= indent) {
		const char *name = st->path[--st->depth].name;

		if (str_ends(name, " Reasons"))
			end_reasons(st, o);
		else if (str_eq(name, "Volatile") && !str_eq(st->path[0].name, "MIG Device"))
			end_ecc(st, o);
	}
}

static void enter(struct smi_q *st, size_t indent, struct span name)
{
	if (st->depth == DEPTH_MAX)
		return;
	st->path[st->depth].indent = indent;
	copy(st->path[st->depth++].name, NAME_BYTES, name);
	if (span_eq(name, "Volatile"))
		st->ecc[0] = st->ecc[1] = -1;
	if (span_eq(name, "Clocks Event Reasons") || span_eq(name, "Clocks Throttle Reasons")) {
		st->in_reasons = true;
		st->reasons = 0;
		st->reasons_n = 0;
		st->reasons_all = false;
	}
}

static bool take_reason(struct smi_q *st, struct span name, struct span value)
{
	if (!st->in_reasons)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		if (!span_eq(name, reasons[i].name))
			continue;
		if (span_eq(value, "Active"))
			st->reasons |= reasons[i].bit;
		st->reasons_all = i + 1 == ARRAY_LEN(reasons);
		st->reasons_n += span_eq(value, "Active") || span_eq(value, "Not Active");
		return true;
	}
	return false;
}

/* The average and the instant are one metric: false for the one that is not to be taken. */
static bool takes_power(struct smi_q *st, struct span name, struct span value)
{
	if (span_eq(name, "Average Power Draw"))
		return !(st->no_average = num_missing(value) != NULL);
	return !span_eq(name, "Instantaneous Power Draw") || st->no_average;
}

static void take_entry(struct smi_q *st, struct emit *o, struct span name, struct span value)
{
	const char *section = st->depth ? st->path[st->depth - 1].name : NULL;
	struct emit_labels ls;
	struct emit_tag tag = tag_of(st, &ls);

	take_ecc(st, name, value);
	for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
		const struct entry *x = &entries[i];
		size_t u = strlen(x->unit);

		if (!span_eq(name, x->name) || !str_eq(section, x->section))
			continue;
		if (str_eq(x->metric, "gpu_power_w") && !takes_power(st, name, value))
			return;
		if (u && value.n > u && memcmp(value.s + value.n - u, x->unit, u) == 0)
			value = span_trim((struct span){value.s, value.n - u});
		if (!emit_token(o, x->metric, value, 1, &tag))
			emit_bad(o, "a value that is no number");
		return;
	}
}

static void take_key(struct smi_q *st, struct emit *o, struct span name, struct span value)
{
	if (!st->bus[0] || (!st->depth && span_eq(name, "Driver Version"))) {
		/* "610.62 [Deprecated; ..]" */
		if ((span_eq(name, "Driver Version") || span_eq(name, "KMD Version")) &&
		    span_word(&value, &name))
			copy(st->driver, sizeof(st->driver), name);
		if (span_eq(name, "Timestamp"))
			st->t_us = when_stamp(value);
	} else if (span_eq(name, "Product Name") && !st->depth) {
		gpu_fact(st, o, "name", value);
	} else if (span_eq(name, "Performance State") && !st->depth) {
		gpu_fact(st, o, "performance_state", value);
	} else if (!take_reason(st, name, value) &&
		   !(st->depth && str_eq(st->path[0].name, "MIG Device"))) {
		take_entry(st, o, name, value);
	}
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct smi_q *st = state;
	struct span t = input_span(l), all = span_trim(t), name, value;
	size_t indent = (size_t)(all.s - t.s);

	if (span_has(all, "=NVSMI LOG=")) {
		end_reasons(st, o);
		st->bus[0] = '\0';
		st->depth = 0;
		st->t_us = -1;
		return;
	}
	/* Below a GPU nothing stands at the margin but the next one: the rest is not ours. */
	if (!indent && (take_gpu(st, o, all) || st->bus[0]))
		return;
	climb(st, o, indent);
	value = span_after(all, " : ");
	if (!value.s) {
		if (st->bus[0] && !memchr(all.s, '|', all.n))
			enter(st, indent, all);
		return;
	}
	name = span_trim((struct span){all.s, (size_t)(value.s - all.s) - 3});
	if (!l->complete) {
		emit_bad(o, "cut in the middle of a line");
		return;
	}
	take_key(st, o, name, span_trim(value));
}

static enum probe_status end(void *state, struct emit *o, struct buf *detail)
{
	struct smi_q *st = state;

	if (st->in_reasons && !st->reasons_all) {
		st->in_reasons = false;
		emit_bad(o, "cut in the middle of the clocks' reasons");
	}
	end_reasons(st, o);
	return emit_status(o, detail);
}

static int smi_q_sniff(const char *head, size_t n)
{
	return span_has((struct span){head, n}, "=NVSMI LOG=") ? 95 : 0;
}

static int smi_q_open(const struct probe_context *c, const struct probe_sink *sink,
		      struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct smi_q), on_line, end, NULL};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_nvidia_smi_q = {
	.name = "nvidia_smi_q",
	.summary =
		"nvidia-smi -q: use, memory, power, clocks, link and held-back clocks of each GPU",
	.example = "nvidia-smi -q",
	.sniff = smi_q_sniff,
	.open = smi_q_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
