/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nvidia-smi dmon, with any letters behind -s and with or without -o D, T, DT. The two header lines
 * come again every page (also as --format csv); columns stand in the order of the letters and
 * drivers add some, so they are found by name. "-" is a missing value. Other tables of the tool
 * (pmon) are passed over.
 *
 * Units: fb in MiB (the header says MB), rxpci and txpci in MB/s, from the host and to the host.
 * Times are local and have no zone: the agent runs tools with TZ=UTC. -o T alone gives no date and
 * so no time. Labels: gpu (index).
 */
#include <stdio.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/cols.h"
#include "probes/lines.h"
#include "probes/when.h"

static const struct col columns[] = {
	{"pwr", "gpu_power_w", 1},
	{"gtemp", "gpu_temp_c", 1},
	{"temp", "gpu_temp_c", 1}, /* before R430 */
	{"mtemp", "gpu_mem_temp_c", 1},
	{"sm", "gpu_util_pct", 1},
	{"mem", "gpu_mem_util_pct", 1},
	{"mclk", "mem_clock_mhz", 1},
	{"pclk", "sm_clock_mhz", 1},
	{"pviol", "gpu_power_violation_pct", 1},
	{"tviol", "gpu_thermal_violation", 1},
	{"fb", "gpu_mem_used_mib", 1},
	{"sbecc", "gpu_ecc_corrected_total", 1},
	{"dbecc", "gpu_ecc_uncorrected_total", 1},
	{"pci", "gpu_pcie_replays_total", 1},
	{"rxpci", "pcie_rx_bytes_per_s", 1e6},
	{"txpci", "pcie_tx_bytes_per_s", 1e6},
	{NULL, NULL, 0},
};

struct dmon {
	struct cols cols;    /* n is 0 outside of a table */
	int gpu, date, time; /* their columns, -1: none */
};

/* Words, without the commas of --format csv. */
static void row_words(struct span t, struct words *w)
{
	words_split(w, t);
	for (size_t i = 0; i < w->n && i < COLS_MAX; i++)
		if (w->v[i].s[w->v[i].n - 1] == ',')
			w->v[i].n--;
}

/* The words of a header; its '#' is a word of its own or not. */
static bool header_words(struct span t, struct words *w)
{
	if (!t.n || t.s[0] != '#')
		return false;
	row_words((struct span){t.s + 1, t.n - 1}, w);
	return w->n <= COLS_MAX;
}

static bool is_header(const struct words *w)
{
	return words_find(w, "gpu") >= 0 && words_find(w, "gpu") <= 2 && words_find(w, "pid") < 0 &&
	       w->n >= 2;
}

static bool is_units(const struct words *w)
{
	return words_find(w, "Idx") >= 0 && words_find(w, "Idx") <= 2;
}

static void take_header(struct dmon *st, const struct words *w)
{
	if (is_header(w)) {
		cols_header(&st->cols, columns, w);
		st->gpu = words_find(w, "gpu");
		st->date = words_find(w, "Date");
		st->time = words_find(w, "Time");
	} else if (!is_units(w)) {
		st->cols.n = 0;
	}
}

/* 20261128 and 02:14:07. */
static int64_t row_time(const struct dmon *st, const struct words *w)
{
	char text[32];
	struct span date, time;

	if (st->date < 0 || st->time < 0)
		return -1;
	date = w->v[st->date];
	time = w->v[st->time];
	if (date.n != 8 || time.n > 12)
		return -1;
	snprintf(text, sizeof(text), "%.4s-%.2s-%.2s %.*s", date.s, date.s + 4, date.s + 6,
		 (int)time.n, time.s);
	return when_parse(span_of(text));
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct dmon *st = state;
	struct words w;
	struct emit_tag tag = EMIT_NONE;
	struct emit_labels ls = {.n = 0};
	int64_t gpu;

	if (header_words(span_trim(input_span(l)), &w)) {
		take_header(st, &w);
		return;
	}
	row_words(input_span(l), &w);
	if (!st->cols.n || (int)w.n <= st->gpu || w.n > COLS_MAX ||
	    !num_whole_i64(w.v[st->gpu], &gpu) || gpu < 0)
		return;
	if (w.n != st->cols.n) {
		if (!l->complete)
			emit_bad(o, "a row that is cut");
		return;
	}
	emit_label(&ls, "gpu", w.v[st->gpu]);
	tag = (struct emit_tag){-1, row_time(st, &w), ls.v, ls.n};
	cols_emit(&st->cols, o, &w, l->complete, &tag);
}

static int score(struct span line)
{
	struct words w;

	if (!header_words(span_trim(line), &w) || !is_header(&w))
		return 0;
	return words_find(&w, "pwr") >= 0 || words_find(&w, "sm") >= 0 ||
			       words_find(&w, "pclk") >= 0 || words_find(&w, "fb") >= 0
		       ? 95
		       : 60;
}

static int dmon_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

static int dmon_open(const struct probe_context *c, const struct probe_sink *sink,
		     struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct dmon), on_line, NULL, NULL};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_nvidia_smi_dmon = {
	.name = "nvidia_smi_dmon",
	.summary = "nvidia-smi dmon: use, power, clocks, memory and PCIe traffic of each GPU",
	.example = "TZ=UTC nvidia-smi dmon -s pucvmet -o DT -d 1",
	.sniff = dmon_sniff,
	.open = dmon_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
