/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a probe found in a text, kept so that a test can ask for it; for tests of probes only. */
#ifndef FETTLE_TESTS_PROBE_CHECK_H
#define FETTLE_TESTS_PROBE_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "probes/probe.h"

struct found {
	char *name, *text, *labels; /* text: of a fact, or why the value is missing */
	double value;
	int64_t step, t_us, line;
	int rank;
	bool is_fact;
};

struct findings {
	struct found *v;
	size_t n, cap;
	enum probe_status status;
	struct buf detail;
};

static inline struct found *found_add(struct findings *f)
{
	f->v = xgrow(f->v, f->n, &f->cap, sizeof(*f->v));
	return &f->v[f->n++];
}

static inline void found_value(void *ctx, const struct probe_value *v)
{
	struct found *n = found_add(ctx);
	struct buf b = {0};

	assert_true(v->missing || isfinite(v->value));
	assert_true(v->host && v->line >= 0);
	assert_true(strlen(v->raw) <= PROBE_RAW_MAX);
	for (size_t i = 0; i < v->n_labels; i++)
		buf_printf(&b, "%s%s=%s", i ? "," : "", v->labels[i].key, v->labels[i].value);
	*n = (struct found){.name = xstrdup(v->metric),
			    .text = xstrdup(v->missing),
			    .labels = buf_take(&b),
			    .value = v->missing ? 0 : v->value,
			    .step = v->step,
			    .t_us = v->t_us,
			    .line = v->line,
			    .rank = v->rank};
}

static inline void found_fact(void *ctx, const struct probe_fact *v)
{
	struct found *n = found_add(ctx);

	*n = (struct found){.name = xstrdup(v->key),
			    .text = xstrdup(v->text),
			    .labels = xstrdup(""),
			    .step = -1,
			    .t_us = -1,
			    .line = v->line,
			    .rank = v->rank,
			    .is_fact = true};
}

/* What is ignored must be told in a sentence, with bytes that are still there. */
static inline void found_ignored(void *ctx, const struct probe_ignored *i)
{
	(void)ctx;
	assert_true(i->why && *i->why && i->line >= 0);
	assert_true(strlen(i->raw) <= PROBE_RAW_MAX);
}

static inline void findings_free(struct findings *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->v[i].name);
		free(f->v[i].text);
		free(f->v[i].labels);
	}
	free(f->v);
	buf_free(&f->detail);
	*f = (struct findings){0};
}

/* Read n bytes in chunks of `chunk` (0: at once). */
static inline struct findings findings_of(const struct probe *p, const struct probe_context *c,
					  const char *text, size_t n, size_t chunk)
{
	struct findings f = {0};
	struct probe_sink sink = {
		.value = found_value, .fact = found_fact, .ctx = &f, .ignored = found_ignored};
	struct probe_context none = {.file = "test"};
	struct probe_run *r = NULL;
	struct err e = {0};

	if (p->open(c ? c : &none, &sink, &r, &e))
		fail_msg("open: %s", e.text);
	for (size_t i = 0; i < n; i += chunk ? chunk : n) {
		size_t k = chunk && n - i > chunk ? chunk : n - i;
		char *copy = xmalloc(k); /* its own block, so that a sanitiser sees an overrun */

		memcpy(copy, text + i, k);
		if (p->feed(r, copy, k, &e))
			fail_msg("feed: %s", e.text);
		free(copy);
	}
	f.status = p->finish(r, &f.detail);
	assert_true(f.status == PROBE_OK || f.detail.len > 0);
	return f;
}

static inline struct findings findings_text(const struct probe *p, const char *text)
{
	return findings_of(p, NULL, text, strlen(text), 0);
}

/* What a whole text is taken for; lengths are never counted by hand. */
static inline const struct probe *sniff_text(const char *text)
{
	return probe_sniff(text, strlen(text));
}

static inline int score_text(const struct probe *p, const char *text)
{
	return p->sniff(text, strlen(text));
}

static inline void findings_dump(const struct findings *f, struct buf *out)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct found *v = &f->v[i];

		buf_printf(out, "%s %s %.17g %s step=%lld t=%lld line=%lld rank=%d [%s]\n",
			   v->is_fact ? "fact" : "value", v->name, v->value,
			   v->text ? v->text : "-", (long long)v->step, (long long)v->t_us,
			   (long long)v->line, v->rank, v->labels);
	}
	buf_printf(out, "%s %s\n", probe_status_name(f->status),
		   f->detail.data ? f->detail.data : "");
}

/* Any chunking gives the same findings: byte by byte, and in two primes, against all at once. */
static inline void check_chunking(const struct probe *p, const struct probe_context *c,
				  const char *text, size_t n)
{
	static const size_t chunks[] = {1, 7, 61};
	struct findings whole = findings_of(p, c, text, n, 0);
	struct buf want = {0};

	findings_dump(&whole, &want);
	for (size_t i = 0; i < ARRAY_LEN(chunks); i++) {
		struct findings part = findings_of(p, c, text, n, chunks[i]);
		struct buf got = {0};

		findings_dump(&part, &got);
		assert_string_equal(got.data, want.data);
		buf_free(&got);
		findings_free(&part);
	}
	buf_free(&want);
	findings_free(&whole);
}

/* A file through a probe, with the chunking property checked as well. */
static inline struct findings findings_file(const struct probe *p, const struct probe_context *c,
					    const char *path)
{
	struct buf text = {0};
	struct err e = {0};
	struct findings f;

	if (fs_read(path, 64u << 20, &text, &e))
		fail_msg("%s", e.text);
	if (text.len <= 256 * 1024)
		check_chunking(p, c, text.data ? text.data : "", text.len);
	f = findings_of(p, c, text.data ? text.data : "", text.len, 0);
	buf_free(&text);
	return f;
}

static inline struct findings findings_fixture(const struct probe *p, const char *name)
{
	struct buf path = {0};
	struct findings f;

	buf_printf(&path, "tests/fixtures/probes/%s", name);
	f = findings_file(p, NULL, path.data);
	buf_free(&path);
	return f;
}

/* Where a third party's sample lies: in $FETTLE_SAMPLES, by default ../shared/samples. */
static inline char *sample_path(const char *name)
{
	const char *samples = getenv("FETTLE_SAMPLES");

	return fs_join(samples ? samples : "../shared/samples", name);
}

/* A third party's sample is read where it lies; false when it is not on this machine: the fixtures
 * alone cover the probe then. */
static inline bool findings_sample(const struct probe *p, const char *name, struct findings *out)
{
	_cleanup_free_ char *path = sample_path(name);

	if (access(path, R_OK) != 0)
		return false;
	*out = findings_file(p, NULL, path);
	return true;
}

/* The k-th (from 0) finding of that name; any step, labels or kind. */
static inline const struct found *found_nth(const struct findings *f, const char *name, size_t k)
{
	for (size_t i = 0; i < f->n; i++)
		if (str_eq(f->v[i].name, name) && !k--)
			return &f->v[i];
	return NULL;
}

static inline size_t found_count(const struct findings *f, const char *name)
{
	size_t n = 0;

	while (found_nth(f, name, n))
		n++;
	return n;
}

/* The first value of that metric at that step (-2: any) whose labels hold that text (NULL: any). */
static inline const struct found *found_at(const struct findings *f, const char *name, int64_t step,
					   const char *label)
{
	for (size_t i = 0; i < f->n; i++)
		if (str_eq(f->v[i].name, name) && (step == -2 || f->v[i].step == step) &&
		    (!label || strstr(f->v[i].labels, label)))
			return &f->v[i];
	return NULL;
}

static inline void check_at(const struct findings *f, const char *name, int64_t step,
			    const char *label, double want)
{
	const struct found *v = found_at(f, name, step, label);

	if (!v || v->is_fact || v->text)
		fail_msg("%s at step %lld [%s]: %s", name, (long long)step, label ? label : "",
			 v ? v->text : "not found");
	if (fabs(v->value - want) > 1e-9 * fabs(want))
		fail_msg("%s at step %lld [%s]: %.12g, not %.12g", name, (long long)step,
			 label ? label : "", v->value, want);
}

static inline void check_missing(const struct findings *f, const char *name, int64_t step,
				 const char *label, const char *why)
{
	const struct found *v = found_at(f, name, step, label);

	if (!v || v->is_fact || !v->text)
		fail_msg("%s at step %lld: %s", name, (long long)step,
			 v ? "has a value" : "not found");
	assert_string_equal(v->text, why);
}

static inline void check_fact(const struct findings *f, const char *key, const char *want)
{
	const struct found *v = found_nth(f, key, 0);

	if (!v)
		fail_msg("no fact %s", key);
	assert_string_equal(v->text, want);
}

static inline void check_status(const struct findings *f, enum probe_status want)
{
	if (f->status != want)
		fail_msg("status %s (%s), not %s", probe_status_name(f->status),
			 f->detail.data ? f->detail.data : "", probe_status_name(want));
}

#endif
