/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/samples.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "probes/probe.h"

enum {
	/* nodes of a trial whose metrics are stored; files are all kept */
	NODES_KEPT = 64,
	CLOCK_NOTED_US = 1000000, /* logs of two nodes are then hard to read side by side */
};

/* The window of a trial on the first node's clock; its whole run when the steps did not give one.
 */
static struct window *node_window(const struct json *rec, const struct trial_result *t)
{
	struct window *w = window_new(0, 0);
	int64_t from = json_i64(json_get(rec, "window_start_us"), 0),
		to = json_i64(json_get(rec, "window_end_us"), 0);

	if (from <= 0 || to <= from) {
		from = t->start_us;
		to = t->start_us + t->wall_us;
	}
	window_bounds(w, from, to);
	return w;
}

/* False when the file is not there. */
static bool run_probe(const char *name, const char *dir, const char *file,
		      const struct probe_sink *sink, struct err *e)
{
	_cleanup_free_ char *path = fs_join(dir, file);
	const struct probe *p = probe_find(name);
	struct probe_context pc = {.file = path};
	struct err why = {0};

	if (!p || !fs_exists(path))
		return false;
	(void)probe_file(p, &pc, path, sink, NULL, &why);
	if (why.code == ERR_READ && !e->code)
		*e = why;
	return true;
}

struct window *samples_read(const char *dir, const struct json *rec, struct trial_result *t,
			    struct err *e)
{
	struct window *w = node_window(rec, t);
	struct probe_sink sink = window_sink(w);

	if (!run_probe("procfs", dir, "samples", &sink, e)) {
		window_free(w);
		return NULL;
	}
	window_emit(w, t);
	return w;
}

/* --- devices ---------------------------------------------------------------------------- */

/* All devices of the node as one: guards and rules ask for the power of "the" device. */
struct all_devices {
	struct probe_sink each;
	uint64_t reasons; /* every clock event reason that was ever set */
	bool known;
	int64_t from_us, to_us;
};

static void take_device(void *ctx, const struct probe_value *v)
{
	struct all_devices *a = ctx;
	struct probe_value all = *v;

	a->each.value(a->each.ctx, v);
	all.n_labels = 0;
	a->each.value(a->each.ctx, &all);
	if (v->missing || !str_eq(v->metric, "clock_event_reasons") || v->t_us < a->from_us ||
	    v->t_us > a->to_us)
		return;
	a->known = true;
	a->reasons |= (uint64_t)v->value;
}

static void take_device_fact(void *ctx, const struct probe_fact *f)
{
	struct all_devices *a = ctx;

	a->each.fact(a->each.ctx, f);
}

/* The devices of a node: the name of the first, heap; NULL unknown. */
static char *name_devices(const struct window *w, int *n_devices)
{
	size_t n;
	const struct window_fact *f = window_facts(w, &n);
	char *name = NULL;

	for (size_t i = 0; i < n; i++)
		if (str_starts(f[i].key, "gpu.") && str_ends(f[i].key, ".name")) {
			name = name ? name : xstrdup(f[i].text);
			++*n_devices;
		}
	return name;
}

/* A metric that both tools give is nvidia-smi's: it is read last. */
static void read_tools(const char *dir, const char *prom, const char *csv, struct window *w,
		       struct all_devices *all, struct err *e)
{
	struct probe_sink sink = {.value = take_device, .fact = take_device_fact, .ctx = all};

	window_span(w, &all->from_us, &all->to_us);
	all->each = window_sink(w);
	run_probe("dcgm_exporter", dir, prom, &sink, e);
	run_probe("nvidia_smi_csv", dir, csv, &sink, e);
}

/* Its own words in place of samples: devices of which there are none then, or fewer, are absent and
 * not idle. `node` NULL: the agent's own. */
static void note_errors(const struct window *w, const char *node, struct strv *notes)
{
	size_t n;
	const struct window_fact *f = window_facts(w, &n);

	for (size_t i = 0; i < n; i++)
		if (str_eq(f[i].key, "nvidia_smi.error")) {
			strv_addf(notes, "%s%snvidia-smi: %s", node ? node : "", node ? ": " : "",
				  f[i].text);
			return;
		}
}

char *samples_devices(const char *dir, const struct json *rec, struct trial_result *t,
		      int *n_devices, struct strv *notes, struct err *e)
{
	struct window *w = node_window(rec, t);
	struct all_devices all = {0};
	char *name;

	read_tools(dir, "dcgm.prom", "gpu.csv", w, &all, e);
	window_emit(w, t);
	if (all.known)
		trial_result_metric(t, "clock_event_reasons", "any", "", (double)all.reasons);
	name = name_devices(w, n_devices);
	note_errors(w, NULL, notes);
	window_free(w);
	return name;
}

/* --- other nodes ------------------------------------------------------------------------ */

static void read_node(const char *dir, const struct json *rec, const char *node, int64_t offset_us,
		      struct trial_result *t, struct strv *notes, struct err *e)
{
	struct window *host = node_window(rec, t), *devices = node_window(rec, t);
	_cleanup_free_ char *samples = xasprintf("samples.%s", node),
			    *prom = xasprintf("dcgm.%s.prom", node),
			    *csv = xasprintf("gpu.%s.csv", node),
			    *label = xasprintf("node=%s", node);
	struct all_devices all = {0};
	struct probe_sink sink = window_sink(host);
	int64_t from, to;

	window_span(host, &from, &to);
	window_bounds(host, from + offset_us, to + offset_us);
	window_bounds(devices, from + offset_us, to + offset_us);
	run_probe("procfs", dir, samples, &sink, e);
	read_tools(dir, prom, csv, devices, &all, e);
	window_emit_brief(host, label, t);
	window_emit_brief(devices, label, t);
	if (all.known)
		trial_result_metric(t, "clock_event_reasons", "any", label, (double)all.reasons);
	note_errors(devices, node, notes);
	window_free(host);
	window_free(devices);
}

static void read_clock(const struct json *s, const char *node, int64_t offset_us,
		       struct trial_result *t, struct strv *notes)
{
	_cleanup_free_ char *label = xasprintf("node=%s", node);

	if (!json_get(s, "clock_offset_us"))
		return;
	trial_result_metric(t, "node_clock_offset_ms", "mean", label, (double)offset_us / 1e3);
	trial_result_metric(t, "node_clock_error_ms", "mean", label,
			    (double)json_i64(json_get(s, "clock_error_us"), 0) / 1e3);
	if (offset_us >= CLOCK_NOTED_US || offset_us <= -CLOCK_NOTED_US)
		strv_addf(
			notes,
			"the clock of %s is about %.0f s %s that of the first node: its samples are "
			"aligned, times in its logs are not",
			node, (double)(offset_us < 0 ? -offset_us : offset_us) / 1e6,
			offset_us > 0 ? "ahead of" : "behind");
}

void samples_other_nodes(const char *dir, const struct json *rec, struct trial_result *t,
			 struct strv *notes, struct err *e)
{
	const struct json *list = json_get(rec, "samplers");
	int n = 0;

	for (const struct json *s = json_first(list); s; s = json_next(s)) {
		const char *node = json_text(json_get(s, "node"), "");
		int64_t offset_us = json_i64(json_get(s, "clock_offset_us"), 0);

		/* It becomes a part of a file's name. */
		if (!*node || strchr(node, '/'))
			continue;
		if (!str_eq(json_text(json_get(s, "state"), ""), "ok")) {
			strv_addf(notes, "samples and evidence of node %s are absent: %s", node,
				  json_text(json_get(s, "reason"), "no reason given"));
			continue;
		}
		read_clock(s, node, offset_us, t, notes);
		if (n++ < NODES_KEPT)
			read_node(dir, rec, node, offset_us, t, notes, e);
	}
}

void samples_missing_ranks(const struct json *rec, struct trial_result *t)
{
	const struct json *list = json_get(rec, "samplers");
	int64_t seen = json_i64(json_get(rec, "ranks_seen"), 0),
		expected = json_i64(json_get(rec, "ranks_expected"), 0);
	_cleanup_free_ char *text = NULL;
	const char *why = NULL, *node = NULL;

	if (json_len(json_get(rec, "nodes")) < 2 || seen >= expected)
		return;
	for (const struct json *s = json_first(list); s && !why; s = json_next(s))
		if (!str_eq(json_text(json_get(s, "state"), ""), "ok")) {
			node = json_text(json_get(s, "node"), "");
			why = json_text(json_get(s, "reason"), "no reason given");
		}
	text = xasprintf("%lld of %lld ranks were seen%s%s%s%s", (long long)seen,
			 (long long)expected, why ? ": nothing came from node " : "",
			 why ? node : "", why ? ": " : "", why ? why : "");
	trial_result_effective(t, -1, EFFECTIVE_MISSING, text, PROOF_DELIVERED);
}
