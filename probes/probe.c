/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/probe.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "orchestrator/base/mem.h"
#include "probes/input.h"

enum {
	SNIFF_SURE = 50,     /* a lower score is a guess, and a guess would give wrong numbers */
	PROBE_FITS_MAX = 16, /* a text is of so many formats at once */
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

size_t probe_sniff_all(const char *head, size_t n, const struct probe **out, size_t max)
{
	int scores[PROBE_FITS_MAX];
	size_t found = 0;

	if (n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0) {
		head += 3;
		n -= 3;
	}
	max = max < PROBE_FITS_MAX ? max : PROBE_FITS_MAX;
	for (size_t i = 0; probe_table[i]; i++) {
		int score = probe_table[i]->sniff ? probe_table[i]->sniff(head, n) : 0;
		size_t at = found;

		while (at > 0 && scores[at - 1] < score)
			at--;
		if (score < SNIFF_SURE || at == max)
			continue;
		found += found < max;
		for (size_t k = found - 1; k > at; k--) {
			out[k] = out[k - 1];
			scores[k] = scores[k - 1];
		}
		out[at] = probe_table[i];
		scores[at] = score;
	}
	return found;
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
		return err_sys(e, ERR_IO, "%s", path);
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
			err_sys(err, ERR_IO, "%s", path);
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
	/* Twice zlib's own buffer or more is read straight into ours when there is nothing to
	 * unpack. */
	gzbuffer(f, READ_CHUNK / 2);
	if (named.lines)
		*named.lines = 0;
	rc = feed_all(p, r, f, path, named.lines, err);
	gzclose(f);
	s = p->finish(r, detail);
	if (rc > 0 && detail)
		buf_printf(detail, "%sthe gzip file is cut or damaged", detail->len ? "; " : "");
	return rc && s == PROBE_OK ? PROBE_PARTIAL : s;
}
