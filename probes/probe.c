/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/probe.h"

#include <errno.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "probes/input.h"

enum {
	SNIFF_SURE = 50, /* a lower score is a guess, and a guess would give wrong numbers */
	PROBES_MAX = 64,
	SNIFF_PART = 64 * 1024, /* what is looked at once: banners come after warnings */
	/* NCCL_DEBUG=INFO and DeepSpeed's start take some 100 kB a rank before the first step. */
	SNIFF_MAX = 256 * 1024 * 1024,
	READ_CHUNK = 128 * 1024, /* what zlib hands over at once; larger was not faster */
};

const char *probe_status_name(enum probe_status s)
{
	switch (s) {
	case PROBE_OK:
		return "ok";
	case PROBE_PARTIAL:
		return "partial";
	case PROBE_FAILED:
		return "failed";
	case PROBE_ABSENT:
		return "absent";
	}
	return "unknown";
}

const struct probe *probe_find(const char *name)
{
	for (size_t i = 0; probe_table[i]; i++)
		if (str_eq(probe_table[i]->name, name))
			return probe_table[i];
	return NULL;
}

/* The score of each probe is the best that it gave to any part of the text. */
static void score_part(const char *part, size_t n, bool later, int *scores)
{
	for (size_t i = 0; i < PROBES_MAX && probe_table[i]; i++) {
		const struct probe *p = probe_table[i];
		int score = p->sniff && (!later || p->in_logs) ? p->sniff(part, n) : 0;

		scores[i] = score > scores[i] ? score : scores[i];
	}
}

static size_t rank_scores(const int *scores, const struct probe **out, size_t max)
{
	int of[PROBES_MAX];
	size_t found = 0;

	max = max < PROBES_MAX ? max : PROBES_MAX;
	for (size_t i = 0; i < PROBES_MAX && probe_table[i]; i++) {
		size_t at = found;

		while (at > 0 && of[at - 1] < scores[i])
			at--;
		if (scores[i] < SNIFF_SURE || at == max)
			continue;
		found += found < max;
		for (size_t k = found - 1; k > at; k--) {
			out[k] = out[k - 1];
			of[k] = of[k - 1];
		}
		out[at] = probe_table[i];
		of[at] = scores[i];
	}
	return found;
}

static void score_head(const char *head, size_t n, int *scores)
{
	size_t bom = n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	score_part(head + bom, n - bom, false, scores);
}

size_t probe_sniff_all(const char *head, size_t n, const struct probe **out, size_t max)
{
	int scores[PROBES_MAX] = {0};

	score_head(head, n, scores);
	return rank_scores(scores, out, max);
}

/* May what comes later make it another text? */
static bool may_change(const int *scores)
{
	const struct probe *best;

	return !rank_scores(scores, &best, 1) || (best->in_logs && !best->has_steps);
}

int probe_sniff_file(gzFile f, const struct probe **out, size_t max, size_t *found)
{
	_cleanup_free_ char *part = xmalloc(SNIFF_PART);
	int scores[PROBES_MAX] = {0};
	int n = gzread(f, part, SNIFF_PART);

	*found = 0;
	if (n <= 0)
		return n;
	score_head(part, (size_t)n, scores);
	/* A NUL in so few bytes is no log's. */
	if (!memchr(part, 0, (size_t)n))
		for (int64_t all = n; all < SNIFF_MAX && may_change(scores); all += n) {
			n = gzread(f, part, SNIFF_PART);
			if (n <= 0) /* what can be read counts */
				break;
			score_part(part, (size_t)n, true, scores);
		}
	*found = rank_scores(scores, out, max);
	return 1;
}

const struct probe *probe_sniff(const char *head, size_t n)
{
	const struct probe *best;

	return probe_sniff_all(head, n, &best, 1) ? best : NULL;
}

/* Lines that begin in n bytes; `last` is the byte before them, and the last of them then. */
static int64_t count_lines(const char *s, size_t n, char *last)
{
	int64_t lines = *last == '\n';
	const char *end = s + n;

	for (*last = end[-1]; (s = memchr(s, '\n', (size_t)(end - s))) && ++s < end;)
		lines++;
	return lines;
}

/* Feed all of f. 0, 1 when a gzip file is cut, or a negative error. */
static int feed_all(const struct probe *p, struct probe_run *r, gzFile f, const char *path,
		    int64_t *lines, struct err *e)
{
	_cleanup_free_ char *chunk = xmalloc(READ_CHUNK);
	char last = '\n';
	int n, rc, z;

	while ((n = gzread(f, chunk, READ_CHUNK)) > 0) {
		if (lines)
			*lines += count_lines(chunk, (size_t)n, &last);
		rc = p->feed(r, chunk, (size_t)n, e);
		if (rc)
			return rc;
	}
	const char *why = gzerror(f, &z);

	if (z == Z_ERRNO)
		return err_sys(e, fs_code(errno), "cannot read %s", path);
	if (n < 0 && z != Z_BUF_ERROR && z != Z_DATA_ERROR)
		return err_set(e, ERR_IO, "%s: %s", path, why);
	return z == Z_BUF_ERROR || z == Z_DATA_ERROR;
}

enum probe_status probe_file(const struct probe *p, const struct probe_context *c, const char *path,
			     const struct probe_sink *sink, struct buf *detail, struct err *e)
{
	struct probe_context named = c ? *c : (struct probe_context){0};
	struct err local;
	struct err *err = e ? e : &local;
	struct probe_run *r = NULL;
	enum probe_status s;
	gzFile f;
	int rc;

	*err = (struct err){.code = ERR_OK};
	if (!named.file)
		named.file = path;
	f = input_open(path);
	if (!f) {
		if (errno != ENOENT)
			err_sys(err, fs_code(errno), "%s", path);
		else if (detail)
			buf_printf(detail, "%s: %s", path, strerror(errno));
		return PROBE_ABSENT;
	}
	if (p->read && gzdirect(f)) {
		gzclose(f);
		return p->read(&named, path, sink, detail);
	}
	if (p->open(&named, sink, &r, err)) {
		gzclose(f);
		return PROBE_ABSENT;
	}
	/* What is not packed is read straight into our buffer where twice zlib's own still fits
	 * behind what it looked at first. */
	gzbuffer(f, READ_CHUNK / 4);
	if (named.lines)
		*named.lines = 0;
	rc = feed_all(p, r, f, path, named.lines, err);
	gzclose(f);
	s = p->finish(r, detail);
	if (rc > 0 && detail)
		buf_printf(detail, "%sthe gzip file is cut or damaged", detail->len ? "; " : "");
	return rc && s == PROBE_OK ? PROBE_PARTIAL : s;
}
