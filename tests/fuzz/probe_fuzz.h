/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One fuzzer for every probe: `PROBE_FUZZ(name)` in tests/fuzz/fuzz_<name>.c. It checks that no
 * bytes crash the probe, that what it emits is finite, named and bounded, and that any chunking
 * gives the same findings.
 */
#ifndef FETTLE_TESTS_PROBE_FUZZ_H
#define FETTLE_TESTS_PROBE_FUZZ_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/probe.h"

/* A text of n bytes gives at most so many findings: the densest are bare timers and JSON members.
 */
enum { FINDINGS_PER_BYTE = 2, FINDINGS_MORE = 64 };

struct fuzz_tally {
	uint64_t hash;
	size_t n;
};

static inline void fuzz_need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "fuzz: broken: %s\n", what);
	abort();
}

static inline void fuzz_mix(struct fuzz_tally *t, const void *data, size_t n)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < n; i++)
		t->hash = (t->hash ^ p[i]) * 1099511628211u;
}

static inline void fuzz_value(void *ctx, const struct probe_value *v)
{
	struct fuzz_tally *t = ctx;

	fuzz_need(v->metric && *v->metric && strlen(v->metric) < 64, "name of a metric");
	fuzz_need(v->missing || isfinite(v->value), "a value that is not finite");
	fuzz_need(!v->missing || *v->missing, "missing without a reason");
	fuzz_need(v->raw && strlen(v->raw) <= PROBE_RAW_MAX, "raw text");
	fuzz_need(v->n_labels <= 8, "labels");
	fuzz_need(v->step >= -1 && v->t_us >= -1 && v->line >= 0, "step, time or line");
	for (size_t i = 0; i < v->n_labels; i++)
		fuzz_mix(t, v->labels[i].value, strlen(v->labels[i].value));
	fuzz_mix(t, v->metric, strlen(v->metric));
	if (!v->missing)
		fuzz_mix(t, &v->value, sizeof(v->value));
	fuzz_mix(t, &v->step, sizeof(v->step));
	fuzz_mix(t, &v->rank, sizeof(v->rank));
	fuzz_mix(t, &v->line, sizeof(v->line));
	t->n++;
}

static inline void fuzz_fact(void *ctx, const struct probe_fact *f)
{
	struct fuzz_tally *t = ctx;

	fuzz_need(f->key && *f->key, "key of a fact");
	fuzz_need(f->text && strlen(f->text) <= 1024, "text of a fact");
	fuzz_mix(t, f->key, strlen(f->key));
	fuzz_mix(t, f->text, strlen(f->text));
	t->n++;
}

static inline void fuzz_ignored(void *ctx, const struct probe_ignored *i)
{
	struct fuzz_tally *t = ctx;

	fuzz_need(i->why && *i->why && i->line >= 0, "why something is ignored");
	fuzz_need(strlen(i->raw) <= PROBE_RAW_MAX, "raw text of what is ignored");
	fuzz_mix(t, i->raw, strlen(i->raw));
}

static inline bool fuzz_once(const struct probe *p, const struct probe_context *c, const char *text,
			     size_t n, size_t chunk, struct fuzz_tally *t)
{
	struct probe_sink sink = {
		.value = fuzz_value, .fact = fuzz_fact, .ctx = t, .ignored = fuzz_ignored};
	struct probe_run *r = NULL;
	struct buf detail = {0};
	struct err e;

	*t = (struct fuzz_tally){.hash = 14695981039346656037u};
	if (p->open(c, &sink, &r, &e))
		return false;
	for (size_t i = 0; i < n; i += chunk) {
		size_t k = n - i < chunk ? n - i : chunk;
		char *copy = xmalloc(k); /* its own block, so that an overrun is seen */

		memcpy(copy, text + i, k);
		fuzz_need(p->feed(r, copy, k, &e) == 0, "feed");
		free(copy);
	}
	enum probe_status s = p->finish(r, &detail);

	fuzz_need(s <= PROBE_ABSENT, "status");
	fuzz_need(s == PROBE_OK || detail.len > 0, "a status that is not ok, without a word on it");
	fuzz_need(t->n <= n * FINDINGS_PER_BYTE + FINDINGS_MORE,
		  "more findings than the text can hold");
	t->hash ^= (uint64_t)s;
	buf_free(&detail);
	if (p->sniff) {
		int score = p->sniff(text, n);

		fuzz_need(score >= 0 && score <= 100, "score");
	}
	return true;
}

static inline int fuzz_probe(const struct probe *p, const struct probe_context *c,
			     const uint8_t *data, size_t n)
{
	struct fuzz_tally whole, parts;

	if (n && fuzz_once(p, c, (const char *)data, n, n, &whole)) {
		fuzz_once(p, c, (const char *)data, n, 1 + data[0] % 13u, &parts);
		fuzz_need(whole.hash == parts.hash && whole.n == parts.n,
			  "chunking changes the findings");
	}
	return 0;
}

#define PROBE_FUZZ(name)                                              \
	extern const struct probe probe_##name;                       \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)  \
	{                                                             \
		return fuzz_probe(&probe_##name, NULL, data, size);   \
	}

#endif
