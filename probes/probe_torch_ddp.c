/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What DistributedDataParallel itself says of how it was built (PyTorch 1.10 and later, with
 * TORCH_CPP_LOG_LEVEL=INFO TORCH_DISTRIBUTED_DEBUG=INFO), once a rank:
 *
 *   [I1129 16:37:24.947 logger.cpp:213] [Rank 1]: DDP Initialized with:
 *   broadcast_buffers: 1
 *   bucket_cap_bytes: 26214400
 *   gradient_as_bucket_view: 1
 *   ...
 *
 * Facts "ddp.<key>" with the rank, switches as true and false, the bucket's size also in MiB, which
 * is how it is given (ddp.bucket_cap_mb). The list is one write, so ranks do not mix in it; it ends
 * at the first line of another form by the same writer, as far as launchers' prefixes tell.
 */
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"
#include "probes/emit.h"
#include "probes/input.h"

static const char *const switches[] = {"broadcast_buffers", "find_unused_parameters",
				       "gradient_as_bucket_view", "has_sync_bn", "static_graph"};

struct probe_run {
	struct input *in;
	struct emit out;
	int rank;   /* whose list is being read; -1: none is */
	int writer; /* the rank that the prefix of the list's first line names */
};

/* "[Rank 1]: DDP Initialized with:" anywhere in a line. */
static bool begins(struct span t, int *rank)
{
	struct span r = span_after(t, "[Rank ");
	double v;

	if (!r.s || !span_has(r, "]: DDP Initialized with:") ||
	    num_scan(r, &v, NULL) != NUM_FINITE || v < 0 || v > 1e7)
		return false;
	*rank = (int)v;
	return true;
}

static bool is_key(struct span k)
{
	for (size_t i = 0; i < k.n; i++)
		if (!(k.s[i] == '_' || (k.s[i] >= 'a' && k.s[i] <= 'z') ||
		      (k.s[i] >= '0' && k.s[i] <= '9')))
			return false;
	return k.n > 0 && k.n <= 60;
}

static bool is_switch(struct span k)
{
	for (size_t i = 0; i < ARRAY_LEN(switches); i++)
		if (span_eq(k, switches[i]))
			return true;
	return false;
}

static void emit_setting(struct emit *o, struct span key, struct span value)
{
	char name[72], mib[32];
	double v;

	snprintf(name, sizeof name, "ddp.%.*s", (int)key.n, key.s);
	if (is_switch(key) && (span_eq(value, "0") || span_eq(value, "1")))
		value = span_of(span_eq(value, "1") ? "true" : "false");
	emit_fact(o, name, value);
	if (span_eq(key, "bucket_cap_bytes") && num_scan(value, &v, NULL) == NUM_FINITE) {
		snprintf(mib, sizeof mib, "%.6g", v / (1 << 20));
		emit_fact(o, "ddp.bucket_cap_mb", span_of(mib));
	}
}

static void on_line(void *ctx, const struct input_line *l)
{
	struct probe_run *r = ctx;
	struct span t = input_span(l), key;

	emit_begin(&r->out, l);
	if (begins(t, &r->rank)) {
		r->writer = l->rank;
		return;
	}
	if (r->rank < 0 || l->redrawn || (l->rank >= 0 && l->rank != r->writer))
		return;
	/* Builds before 1.9 had the whole list in one line: no value of it can be told. */
	if (!span_next(&t, ":", &key) || !t.s || !is_key(key) || span_has(t, ": ")) {
		r->rank = -1;
		return;
	}
	r->out.rank = r->rank;
	emit_setting(&r->out, key, span_trim(t));
}

static int ddp_open(const struct probe_context *c, const struct probe_sink *sink,
		    struct probe_run **out, struct err *e)
{
	struct probe_run *r = xcalloc(1, sizeof *r);

	(void)e;
	emit_open(&r->out, c, sink);
	r->in = input_new(on_line, r);
	r->rank = -1;
	*out = r;
	return 0;
}

static int ddp_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	input_feed(r->in, bytes, n);
	return 0;
}

static enum probe_status ddp_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s;

	input_finish(r->in);
	s = emit_status(&r->out, detail);
	input_free(r->in);
	emit_close(&r->out);
	free(r);
	return s;
}

const struct probe probe_torch_ddp = {
	.name = "torch_ddp",
	.summary = "how DistributedDataParallel was built, in PyTorch's own words",
	.example = "TORCH_CPP_LOG_LEVEL=INFO TORCH_DISTRIBUTED_DEBUG=INFO torchrun train.py",
	.open = ddp_open,
	.feed = ddp_feed,
	.finish = ddp_finish,
};
