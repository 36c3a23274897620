/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file of nccl-tests -J (2.17.3 and later, version 3). Booleans are the strings "true" and
 * "false", root is a padded string, nwrong may be null, NaN is "nan"; a killed test leaves the
 * document open, and what is in it is read. Same metrics and labels as probe_nccl_tests.c.
 *
 * rccl-tests -x has a form of its own: an object a row and placement, in an array or, until 2025, a
 * line each, with algBw, busBw, inPlace and no footer.
 */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/coll.h"
#include "probes/jsonstream.h"
#include "probes/probe.h"

enum { CELL_MAX = 32 };

static const struct {
	const char *key, *metric;
} cell_of[] = {
	{"time", "coll_time_us"},          {"cpu_time", "coll_time_us"},
	{"alg_bw", "coll_algbw_gb_per_s"}, {"bus_bw", "coll_busbw_gb_per_s"},
	{"nwrong", "coll_wrong"},          {"min_us", "coll_time_min_us"},
	{"max_us", "coll_time_max_us"},    {"p99_us", "coll_time_p99_us"},
	{"cv_pct", "coll_time_cv_pct"},
};

struct probe_run {
	struct jsonstream *json;
	struct emit out;
	struct coll coll;
	/* Cells of the row that is being read, [placement][cell]; "" is not given. They wait
	 * because members of an object have no order: the size may come last. */
	char cell[2][ARRAY_LEN(cell_of)][CELL_MAX];
	struct coll_mean mean;
	int64_t ranks, rows;
	bool has_average;
	bool is_flat, in_place; /* the present object is a row of rccl-tests */
	char failure[200];
};

static void keep(char *out, size_t max, struct span t)
{
	size_t n = t.n < max - 1 ? t.n : max - 1;

	memcpy(out, t.s, n);
	out[n] = '\0';
}

static const char *behind(const char *path, const char *prefix)
{
	return str_starts(path, prefix) ? path + strlen(prefix) : NULL;
}

static void take_cell(struct probe_run *r, const char *key, struct span text)
{
	static const char *const places[2][2] = {{"out_of_place.", "out_of_place_per_iter."},
						 {"in_place.", "in_place_per_iter."}};

	for (int p = 0; p < 2; p++) {
		const char *name = behind(key, places[p][0]);

		if (!name)
			name = behind(key, places[p][1]);
		for (size_t i = 0; name && i < ARRAY_LEN(cell_of); i++)
			if (str_eq(name, cell_of[i].key))
				keep(r->cell[p][i], CELL_MAX, text);
	}
}

static void take_row_leaf(struct probe_run *r, const char *key, struct span text)
{
	text = span_trim(text);
	if (str_eq(key, "size"))
		num_whole_i64(text, &r->coll.size_bytes);
	else if (str_eq(key, "type"))
		keep(r->coll.type, COLL_WORD_MAX, text);
	else if (str_eq(key, "redop") && !span_eq(text, "none"))
		keep(r->coll.redop, COLL_WORD_MAX, text);
	else if (str_eq(key, "root") && !span_eq(text, "-1"))
		keep(r->coll.root, COLL_WORD_MAX, text);
	else if (str_eq(key, "experiment_name"))
		keep(r->coll.test, COLL_WORD_MAX, text);
	else
		take_cell(r, key, text);
}

/* "[].size" of an array of rows, "size" of a row alone. */
static const char *flat_key(const char *path)
{
	const char *key = behind(path, "[].");

	return key ? key : strpbrk(path, ".[") ? NULL : path;
}

static void take_flat_leaf(struct probe_run *r, const char *key, struct span text)
{
	static const struct {
		const char *key, *as;
	} cells[] = {{"time", "out_of_place.time"},
		     {"algBw", "out_of_place.alg_bw"},
		     {"busBw", "out_of_place.bus_bw"},
		     {"wrong", "out_of_place.nwrong"},
		     {"#wrong", "out_of_place.nwrong"}};

	for (size_t i = 0; i < ARRAY_LEN(cells); i++)
		if (str_eq(key, cells[i].key))
			take_cell(r, cells[i].as, text);
	if (str_eq(key, "busBw"))
		r->is_flat = true;
	else if (str_eq(key, "inPlace"))
		r->in_place = span_eq(text, "1") || span_eq(text, "true");
	else if (str_eq(key, "ranks") || str_eq(key, "gpus"))
		num_whole_i64(text, &r->ranks);
	else if (str_eq(key, "name"))
		take_row_leaf(r, "experiment_name", text);
	else
		take_row_leaf(r, key, text);
}

static void take_average(struct probe_run *r, struct span text)
{
	double avg;

	r->has_average = true;
	if (!emit_token(&r->out, "busbw_avg_gb_per_s", text, 1, NULL))
		emit_bad(&r->out, "the average is no number");
	else if (num_whole(text, &avg) && !coll_mean_check(&r->mean, avg))
		emit_bad(&r->out, "the average is not that of the rows: some are missing");
}

static void on_leaf(void *ctx, const char *path, enum jsonstream_kind kind, struct span text,
		    const struct input_line *line)
{
	struct probe_run *r = ctx;
	const char *key = behind(path, "results[].");
	char version[24];
	int64_t code;

	(void)kind;
	emit_begin(&r->out, line);
	if (key)
		take_row_leaf(r, key, text);
	else if (str_eq(path, "config.devices[].rank"))
		r->ranks++;
	else if (str_eq(path, "config.devices[].hostname"))
		emit_fact(&r->out, "nccl_tests.host", text);
	else if (str_eq(path, "config.devices[].device_info") && r->ranks <= 1)
		emit_fact(&r->out, "nccl_tests.gpu", text);
	else if (str_eq(path, "nccl_version") && num_whole_i64(text, &code) &&
		 coll_nccl_version(code, version))
		emit_fact(&r->out, "nccl.version", span_of(version));
	else if (str_eq(path, "average_bus_bandwidth.bandwidth"))
		take_average(r, text);
	else if ((str_eq(path, "out_of_bounds.okay") ||
		  str_eq(path, "average_bus_bandwidth.okay")) &&
		 span_eq(text, "false"))
		str_copy(r->failure, sizeof(r->failure), line->text);
	else if (str_eq(path, "errors[]") && span_trim(text).n)
		str_copy(r->failure, sizeof(r->failure), line->text);
	else if (flat_key(path))
		take_flat_leaf(r, flat_key(path), text);
}

enum { ALGBW = 2, BUSBW = 3 }; /* in cell_of */

static void emit_row(struct probe_run *r)
{
	for (int p = 0; p < 2; p++) {
		if (!coll_factor_fits(span_of(r->cell[p][ALGBW]), span_of(r->cell[p][BUSBW]),
				      r->ranks))
			emit_bad(&r->out, "bus_bw is not alg_bw times a factor of so many ranks");
		for (size_t i = 0; i < ARRAY_LEN(cell_of); i++) {
			struct span c = span_of(r->cell[p][i]);

			if (!c.n)
				continue;
			if (!coll_emit(&r->out, &r->coll, p == 1, cell_of[i].metric, c))
				emit_bad(&r->out, "a cell holds no number");
			else if (str_eq(cell_of[i].key, "bus_bw"))
				coll_mean_add(&r->mean, c);
		}
	}
	r->rows++;
}

static void on_open(void *ctx, const char *path)
{
	struct probe_run *r = ctx;

	if (!str_eq(path, "results[]") && !str_eq(path, "[]") && path[0])
		return;
	r->is_flat = r->in_place = false;
	r->coll = (struct coll){.t_us = -1};
	memset(r->cell, 0, sizeof(r->cell));
}

static void on_close(void *ctx, const char *path)
{
	struct probe_run *r = ctx;

	if (str_eq(path, "results[]")) {
		emit_row(r);
	} else if (r->is_flat) {
		if (r->in_place) {
			memcpy(r->cell[1], r->cell[0], sizeof(r->cell[0]));
			memset(r->cell[0], 0, sizeof(r->cell[0]));
		}
		emit_row(r);
		r->is_flat = false;
	}
	if (str_eq(path, "config.devices") && r->ranks)
		emit_value(&r->out, "coll_nranks", (double)r->ranks, NULL);
}

static int json_open(const struct probe_context *c, const struct probe_sink *sink,
		     struct probe_run **out, struct err *e)
{
	static const struct jsonstream_calls calls = {on_leaf, on_open, on_close};
	struct probe_run *r = xcalloc(1, sizeof(*r));

	(void)e;
	emit_open(&r->out, c, sink);
	r->json = jsonstream_new(&calls, r);
	*out = r;
	return 0;
}

static int json_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	jsonstream_feed(r->json, bytes, n);
	return 0;
}

static enum probe_status judge(const struct probe_run *r, struct buf *detail)
{
	enum jsonstream_end end;
	enum probe_status s;

	if (r->failure[0]) {
		if (detail)
			buf_str(detail, r->failure);
		return PROBE_FAILED;
	}
	if (!r->rows && !r->has_average) {
		if (detail)
			buf_str(detail, "no result of nccl-tests");
		return PROBE_ABSENT;
	}
	s = emit_status(&r->out, detail);
	end = jsonstream_finish(r->json, s == PROBE_OK ? detail : NULL);
	if (s != PROBE_OK || end == JSONSTREAM_WHOLE)
		return s;
	return PROBE_PARTIAL;
}

static enum probe_status json_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s = judge(r, detail);

	jsonstream_free(r->json);
	emit_close(&r->out);
	free(r);
	return s;
}

static int json_sniff(const char *head, size_t n)
{
	struct span t = span_trim((struct span){head, n});

	if (!t.n || (t.s[0] != '{' && t.s[0] != '['))
		return 0;
	return span_has(t, "\"nccl_version\"") ||
			       (span_has(t, "\"algBw\"") && span_has(t, "\"inPlace\""))
		       ? 95
		       : 0;
}

const struct probe probe_nccl_tests_json = {
	.name = "nccl_tests_json",
	.summary = "nccl-tests -J, rccl-tests -x: the same as nccl_tests, from its JSON file",
	.example = "all_reduce_perf -b 8 -e 8G -f 2 -J out.json",
	.sniff = json_sniff,
	.open = json_open,
	.feed = json_feed,
	.finish = json_finish,
};
