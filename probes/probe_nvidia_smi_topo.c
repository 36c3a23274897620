/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nvidia-smi topo -m, and nvlink -s: how GPUs and NICs are connected. Facts:
 *   topo.GPU0-GPU1   NV18, PIX, PXB, PHB, NODE, SYS (C2C on Grace), as the matrix says
 *   topo.GPU0-NIC3   the same
 *   topo.GPU0.cpus   the CPUs near it; topo.GPU0.numa its NUMA node
 *   topo.GPU0.nic    the NIC that is nearest, with its kind of link: "NIC0 PIX"
 *   topo.NIC0        what the legend calls it: mlx5_0
 *   topo.gpu_worst   the worst link between two GPUs
 * Metrics: gpu_nvlinks of each pair of GPUs (labels gpu, peer), nvlink_link_gb_per_s of each link
 * (labels gpu, link). Tabs of the tool may be blanks, as in pastes: cells never hold blanks.
 */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/cols.h"
#include "probes/lines.h"

/* A node has up to 16 GPUs and some 20 NICs. */
enum { DEVICES_MAX = 64, DEVICE_BYTES = 24 };

/* From near to far; NV# is nearest and not in the list. PSB and SOC are of drivers up to R375. */
static const char *const links[] = {"C2C", "PSB", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};

struct topo {
	char device[DEVICES_MAX][DEVICE_BYTES];
	size_t n;  /* 0 outside of a matrix */
	bool sure; /* it has affinities, which the tables of -p2p have not */
	char worst[DEVICE_BYTES];
	char gpu[DEVICE_BYTES]; /* of `nvlink -s`, "" outside of it */
};

static bool is_device(struct span t, const char *stem)
{
	size_t k = strlen(stem);
	int64_t i;

	return t.n > k && t.n < DEVICE_BYTES && memcmp(t.s, stem, k) == 0 &&
	       num_whole_i64((struct span){t.s + k, t.n - k}, &i) && i >= 0;
}

static bool is_nic(struct span t)
{
	return is_device(t, "NIC") || is_device(t, "mlx5_") || is_device(t, "mlx4_");
}

/* How far a link is, 0 for NVLink; -1 when t is no link ("X" neither). */
static int distance(struct span t)
{
	int64_t n;

	if (t.n > 2 && t.n < 6 && t.s[0] == 'N' && t.s[1] == 'V' &&
	    num_whole_i64((struct span){t.s + 2, t.n - 2}, &n) && n >= 0)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (span_eq(t, links[i]))
			return (int)i + 1;
	return -1;
}

/* The devices, then "CPU Affinity" and more: a matrix begins. */
static bool take_header(struct topo *st, const struct words *w)
{
	size_t n = 0;

	if (!w->n || w->n > COLS_MAX || !is_device(w->v[0], "GPU"))
		return false;
	/* Before "CPU Affinity" any name is a device (mlx5_bond_0), else only a sure one. */
	while (n < w->n && !span_eq(w->v[n], "CPU"))
		n++;
	for (size_t i = 0; i < n; i++)
		if (w->v[i].n >= DEVICE_BYTES ||
		    (n == w->n && !is_device(w->v[i], "GPU") && !is_nic(w->v[i])))
			return false;
	if (n > DEVICES_MAX || (n == w->n && n < 2))
		return false;
	for (size_t i = 0; i < n; i++) {
		memcpy(st->device[i], w->v[i].s, w->v[i].n);
		st->device[i][w->v[i].n] = '\0';
	}
	st->sure = n < w->n;
	st->n = n;
	return true;
}

static void emit_link(struct topo *st, struct emit *o, struct span from, const char *to,
		      struct span link)
{
	_cleanup_free_ char *key = xasprintf("topo.%.*s-%s", (int)from.n, from.s, to);
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = EMIT_NONE;
	double n;

	emit_fact(o, key, link);
	if (!is_device(span_of(to), "GPU"))
		return;
	if (!st->worst[0] || distance(link) > distance(span_of(st->worst))) {
		memcpy(st->worst, link.s, link.n);
		st->worst[link.n] = '\0';
	}
	emit_label(&ls, "gpu", (struct span){from.s + 3, from.n - 3});
	emit_label(&ls, "peer", span_of(to + 3));
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	if (distance(link) == 0 && num_whole((struct span){link.s + 2, link.n - 2}, &n))
		emit_value(o, "gpu_nvlinks", n, &tag);
	else
		emit_value(o, "gpu_nvlinks", 0, &tag);
}

static void emit_affinity(struct emit *o, struct span gpu, const char *what, struct span v)
{
	_cleanup_free_ char *key = xasprintf("topo.%.*s.%s", (int)gpu.n, gpu.s, what);

	if (!num_missing(v))
		emit_fact(o, key, v);
}

/* Every pair once: a GPU's row gives the devices behind it. */
static void emit_gpu(struct topo *st, struct emit *o, const struct words *w)
{
	struct span gpu = w->v[0];
	const char *nearest = NULL;
	int best = 0;
	bool behind = false;

	for (size_t i = 0; i < st->n; i++) {
		int d = distance(w->v[i + 1]);
		bool nic = !is_device(span_of(st->device[i]), "GPU");

		if (d >= 0 && (behind || nic))
			emit_link(st, o, gpu, st->device[i], w->v[i + 1]);
		if (d >= 0 && nic && (!nearest || d < best)) {
			nearest = st->device[i];
			best = d;
		}
		behind |= span_eq(gpu, st->device[i]);
	}
	if (w->n > st->n + 1)
		emit_affinity(o, gpu, "cpus", w->v[st->n + 1]);
	if (w->n > st->n + 2)
		emit_affinity(o, gpu, "numa", w->v[st->n + 2]);
	if (nearest) {
		_cleanup_free_ char *text = xasprintf("%s %s", nearest,
						      best ? links[best - 1] : "NV");

		emit_affinity(o, gpu, "nic", span_of(text));
	}
}

static bool is_known(const struct topo *st, struct span name)
{
	for (size_t i = 0; i < st->n; i++)
		if (span_eq(name, st->device[i]))
			return true;
	return false;
}

static bool take_row(struct topo *st, struct emit *o, const struct input_line *l,
		     const struct words *w)
{
	if (!st->n || !w->n || w->n > COLS_MAX || !is_known(st, w->v[0]))
		return false;
	if (w->n <= st->n || (w->n == st->n + 1 && !l->complete)) {
		emit_bad(o, "a row with fewer cells than the header has devices");
		return true;
	}
	for (size_t i = 1; i <= st->n; i++)
		if (distance(w->v[i]) < 0 && !span_eq(w->v[i], "X")) {
			if (st->sure)
				emit_bad(o, "a cell that is no kind of link");
			else
				st->n = 0;
			return true;
		}
	if (is_device(w->v[0], "GPU"))
		emit_gpu(st, o, w);
	return true;
}

/* "  NIC0: mlx5_0" below "NIC Legend:". */
static bool take_legend(struct emit *o, const struct words *w)
{
	struct span name = w->v[0];

	if (w->n != 2 || name.s[name.n - 1] != ':' ||
	    !is_device((struct span){name.s, name.n - 1}, "NIC"))
		return false;
	_cleanup_free_ char *key = xasprintf("topo.%.*s", (int)name.n - 1, name.s);

	emit_fact(o, key, w->v[1]);
	return true;
}

/* "GPU 0: NVIDIA H100 (UUID: GPU-..)" */
static bool take_nvlink_gpu(struct topo *st, struct span t)
{
	struct span rest = span_after(t, "GPU "), number;
	int64_t i;

	if (!rest.s || rest.s != t.s + 4 || !span_has(rest, "UUID:") ||
	    !span_next(&rest, ":", &number) || !num_whole_i64(number, &i) || i < 0 ||
	    number.n >= DEVICE_BYTES)
		return false;
	memcpy(st->gpu, number.s, number.n);
	st->gpu[number.n] = '\0';
	return true;
}

/* "Link 0: 26.562 GB/s" or "Link 1: <inactive>" of that GPU. */
static bool take_nvlink(struct topo *st, struct emit *o, const struct input_line *l)
{
	struct span t = span_trim(input_span(l)), rest = span_after(t, "Link "), number;
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = EMIT_NONE;
	int64_t i;

	if (!st->gpu[0] || !rest.s || rest.s != t.s + 5 || !span_next(&rest, ":", &number) ||
	    !num_whole_i64(number, &i) || !rest.s)
		return false;
	emit_label(&ls, "gpu", span_of(st->gpu));
	emit_label(&ls, "link", number);
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	rest = span_trim(rest);
	if (span_has(rest, "inactive"))
		emit_missing(o, "nvlink_link_gb_per_s", "inactive", &tag);
	else if (rest.n > 5 && memcmp(rest.s + rest.n - 5, " GB/s", 5) == 0)
		emit_token(o, "nvlink_link_gb_per_s", (struct span){rest.s, rest.n - 5}, 1, &tag);
	else if (!l->complete)
		emit_bad(o, "cut in the middle of a link");
	return true;
}

static void on_line(void *state, struct emit *o, const struct input_line *l)
{
	struct topo *st = state;
	struct words w;

	if (take_nvlink_gpu(st, span_trim(input_span(l))) || take_nvlink(st, o, l))
		return;
	words_split(&w, input_span(l));
	if (take_header(st, &w) || take_row(st, o, l, &w) || take_legend(o, &w))
		return;
	if (span_eq(w.v[0], "Legend:")) {
		st->n = 0;
		st->gpu[0] = '\0';
	}
}

static enum probe_status end(void *state, struct emit *o, struct buf *detail)
{
	struct topo *st = state;

	if (st->worst[0])
		emit_fact(o, "topo.gpu_worst", span_of(st->worst));
	return emit_status(o, detail);
}

static int score(struct span line)
{
	struct words w;
	struct topo st = {.n = 0};

	words_split(&w, line);
	if (take_header(&st, &w) && words_find(&w, "Affinity") > 0)
		return 95;
	return span_has(line, "Link ") && span_has(line, " GB/s") && w.n == 4 &&
			       span_eq(w.v[0], "Link")
		       ? 90
		       : 0;
}

static int topo_sniff(const char *head, size_t n)
{
	return lines_sniff(head, n, score);
}

static int topo_open(const struct probe_context *c, const struct probe_sink *sink,
		     struct probe_run **out, struct err *e)
{
	static const struct lines_kind kind = {sizeof(struct topo), on_line, end, NULL};

	return lines_open(&kind, c, sink, out, e);
}

const struct probe probe_nvidia_smi_topo = {
	.name = "nvidia_smi_topo",
	.summary = "nvidia-smi topo -m and nvlink -s: links between GPUs and to the NICs",
	.example = "nvidia-smi topo -m; nvidia-smi nvlink -s",
	.sniff = topo_sniff,
	.open = topo_open,
	.feed = lines_feed,
	.finish = lines_finish,
};
