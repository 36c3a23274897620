/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum {
	TAIL_MAX = 8 << 20, /* memory of the ring; errors stand in the last few KiB */
	IDX_BYTES = 64 << 10,
	IDX_US = 1000000,
	IDX_COMPACT = 4096, /* entries before those of cut bytes are dropped */
};

struct mark {
	int64_t offset, utc_us; /* of the whole stream */
};

struct capture {
	int fd, idx_fd;
	bool broken; /* a write failed and was reported */
	int64_t head_max, tail_max;
	int64_t total, head; /* bytes seen, bytes in the head */
	char *ring;          /* allocated when the head is full */
	struct mark *marks;  /* of bytes in the ring */
	size_t n_marks, cap_marks;
	struct mark last_mark;
	XXH3_state_t *hash;
	capture_line_f f;
	void *ctx;
	char *line; /* CAPTURE_LINE_MAX; the unfinished line */
	size_t line_len;
	char last[2 * CAPTURE_LAST_MAX]; /* the newest bytes of all */
	size_t last_len;
};

int capture_open(const char *dir, int64_t log_bytes, capture_line_f f, void *ctx,
		 struct capture **out, struct err *e)
{
	_cleanup_free_ char *path = fs_join(dir, "out"), *idx = fs_join(dir, "out.idx");
	struct capture *c = xcalloc(1, sizeof *c);

	c->fd = fs_create(path, O_WRONLY | O_TRUNC, 0600);
	c->idx_fd = fs_create(idx, O_WRONLY | O_TRUNC | O_APPEND, 0600);
	if (c->fd < 0 || c->idx_fd < 0) {
		err_sys(e, ERR_IO, "cannot write %s", c->fd < 0 ? path : idx);
		capture_free(c);
		return -ERR_IO;
	}
	c->tail_max = log_bytes / 4 < TAIL_MAX ? log_bytes / 4 : TAIL_MAX;
	c->head_max = log_bytes - c->tail_max;
	c->last_mark.offset = -1;
	c->hash = xchecked(XXH3_createState());
	XXH3_128bits_reset(c->hash);
	c->f = f;
	c->ctx = ctx;
	if (f)
		c->line = xmalloc(CAPTURE_LINE_MAX);
	*out = c;
	return 0;
}

/* --- the files -------------------------------------------------------------------------- */

static int put_file(struct capture *c, int fd, const char *data, size_t n, struct err *e)
{
	while (n > 0 && !c->broken) {
		ssize_t done = write(fd, data, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0) {
			c->broken = true;
			return err_sys(e, ERR_IO, "cannot write the output of the trial");
		}
		data += done;
		n -= (size_t)done;
	}
	return 0;
}

static int put_out(struct capture *c, const char *data, size_t n, struct err *e)
{
	int rc = put_file(c, c->fd, data, n, e);

	if (!c->broken)
		XXH3_128bits_update(c->hash, data, n);
	return rc;
}

static int put_mark(struct capture *c, int64_t offset, int64_t utc_us, struct err *e)
{
	char text[64];
	int n = snprintf(text, sizeof text, "%lld %lld\n", (long long)offset, (long long)utc_us);

	return put_file(c, c->idx_fd, text, (size_t)n, e);
}

/* Where the ring's oldest byte stands in the stream. */
static int64_t tail_start(const struct capture *c)
{
	int64_t s = c->total - c->tail_max;

	return s > c->head ? s : c->head;
}

static void drop_old_marks(struct capture *c)
{
	int64_t start = tail_start(c);
	size_t keep = 0;

	while (keep < c->n_marks && c->marks[keep].offset < start)
		keep++;
	if (keep == 0)
		return;
	memmove(c->marks, c->marks + keep, (c->n_marks - keep) * sizeof *c->marks);
	c->n_marks -= keep;
}

/* offset: where in the stream the bytes begin that came now. */
static int note_time(struct capture *c, int64_t offset, int64_t utc_us, struct err *e)
{
	struct mark m = {.offset = offset, .utc_us = utc_us};

	if (c->last_mark.offset >= 0 && offset - c->last_mark.offset < IDX_BYTES &&
	    utc_us - c->last_mark.utc_us < IDX_US)
		return 0;
	c->last_mark = m;
	if (offset < c->head_max)
		return put_mark(c, offset, utc_us, e);
	if (c->n_marks >= IDX_COMPACT)
		drop_old_marks(c);
	c->marks = xgrow(c->marks, c->n_marks, &c->cap_marks, sizeof *c->marks);
	c->marks[c->n_marks++] = m;
	return 0;
}

static void put_ring(struct capture *c, const char *data, size_t n)
{
	size_t size = (size_t)c->tail_max, at;

	if (!c->ring)
		c->ring = xmalloc(size);
	if (n > size) {
		c->total += (int64_t)(n - size);
		data += n - size;
		n = size;
	}
	at = (size_t)((c->total - c->head) % c->tail_max);
	if (n <= size - at) {
		memcpy(c->ring + at, data, n);
	} else {
		memcpy(c->ring + at, data, size - at);
		memcpy(c->ring, data + (size - at), n - (size - at));
	}
	c->total += (int64_t)n;
}

/* --- lines ------------------------------------------------------------------------------ */

static void line_end(struct capture *c, int64_t utc_us)
{
	if (c->line_len > 0)
		c->f(c->ctx, c->line, c->line_len, utc_us);
	c->line_len = 0;
}

static void line_add(struct capture *c, const char *data, size_t n)
{
	size_t room = CAPTURE_LINE_MAX - c->line_len;

	if (n > room)
		n = room;
	memcpy(c->line + c->line_len, data, n);
	c->line_len += n;
}

static const char *find_end(const char *p, const char *end)
{
	const char *nl = memchr(p, '\n', (size_t)(end - p));
	const char *cr = memchr(p, '\r', (size_t)((nl ? nl : end) - p));

	return cr ? cr : nl;
}

static void split_lines(struct capture *c, const char *data, size_t n, int64_t utc_us)
{
	const char *end = data + n, *stop;

	for (; data < end && (stop = find_end(data, end)); data = stop + 1) {
		if (c->line_len == 0 &&
		    stop - data <= CAPTURE_LINE_MAX) { /* no copy in the usual case */
			if (stop > data)
				c->f(c->ctx, data, (size_t)(stop - data), utc_us);
			continue;
		}
		line_add(c, data, (size_t)(stop - data));
		line_end(c, utc_us);
	}
	line_add(c, data, (size_t)(end - data));
}

static void keep_last(struct capture *c, const char *data, size_t n)
{
	size_t room = sizeof c->last, keep;

	if (n >= room) {
		memcpy(c->last, data + n - room, room);
		c->last_len = room;
		return;
	}
	keep = c->last_len + n > room ? room - n : c->last_len;
	memmove(c->last, c->last + c->last_len - keep, keep);
	memcpy(c->last + keep, data, n);
	c->last_len = keep + n;
}

/* The last line that holds anything; its end if it is long. */
static void take_last_line(const struct capture *c, char out[CAPTURE_LAST_MAX + 1])
{
	size_t end = c->last_len, start, n;

	while (end > 0 && (unsigned char)c->last[end - 1] <= ' ')
		end--;
	start = end;
	while (start > 0 && c->last[start - 1] != '\n' && c->last[start - 1] != '\r')
		start--;
	n = end - start;
	if (n > CAPTURE_LAST_MAX) {
		start += n - CAPTURE_LAST_MAX;
		n = CAPTURE_LAST_MAX;
	}
	for (size_t i = 0; i < n; i++)
		out[i] = (unsigned char)c->last[start + i] < ' ' ? ' ' : c->last[start + i];
	out[n] = '\0';
}

/* --- public ----------------------------------------------------------------------------- */

int capture_put(struct capture *c, const char *data, size_t n, int64_t utc_us, struct err *e)
{
	size_t head = 0;
	int rc;

	if (n == 0)
		return 0;
	rc = note_time(c, c->total, utc_us, e);
	if (c->head < c->head_max) {
		int64_t room = c->head_max - c->head;

		head = (int64_t)n < room ? n : (size_t)room;
		if (put_out(c, data, head, rc ? NULL : e))
			rc = -ERR_IO;
		c->head += (int64_t)head;
		c->total += (int64_t)head;
	}
	if (head < n)
		put_ring(c, data + head, n - head);
	if (c->f)
		split_lines(c, data, n, utc_us);
	keep_last(c, data, n);
	return rc;
}

/* Marker, ring, and the times of the ring's bytes at their place in the file. */
static int put_tail(struct capture *c, int64_t *written, bool *cut, struct err *e)
{
	int64_t start = tail_start(c), lost = start - c->head, len = c->total - start, shift;
	size_t at = (size_t)((start - c->head) % c->tail_max);
	size_t first = (size_t)len < (size_t)c->tail_max - at ? (size_t)len
							      : (size_t)c->tail_max - at;
	char marker[96] = "";
	int rc = 0;

	if (lost > 0)
		snprintf(marker, sizeof marker, "\n[fettle: %lld bytes cut here]\n",
			 (long long)lost);
	*cut = lost > 0;
	shift = c->head + (int64_t)strlen(marker) - start;
	if (put_out(c, marker, strlen(marker), e) || put_out(c, c->ring + at, first, e) ||
	    put_out(c, c->ring, (size_t)len - first, e))
		rc = -ERR_IO;
	drop_old_marks(c);
	for (size_t i = 0; i < c->n_marks && rc == 0; i++)
		rc = put_mark(c, c->marks[i].offset + shift, c->marks[i].utc_us, e);
	*written = c->head + (int64_t)strlen(marker) + len;
	return rc;
}

int capture_finish(struct capture *c, int64_t utc_us, struct capture_result *r, struct err *e)
{
	XXH128_hash_t h;
	int rc = 0;

	if (c->f)
		line_end(c, utc_us);
	r->cut = false;
	r->bytes = c->head;
	if (c->ring)
		rc = put_tail(c, &r->bytes, &r->cut, e);
	r->total_bytes = c->total;
	h = XXH3_128bits_digest(c->hash);
	snprintf(r->xxh, sizeof r->xxh, "%016llx%016llx", (unsigned long long)h.high64,
		 (unsigned long long)h.low64);
	take_last_line(c, r->last_line);
	return rc;
}

void capture_free(struct capture *c)
{
	if (!c)
		return;
	if (c->fd >= 0)
		close(c->fd);
	if (c->idx_fd >= 0)
		close(c->idx_fd);
	if (c->hash)
		XXH3_freeState(c->hash);
	free(c->ring);
	free(c->marks);
	free(c->line);
	free(c);
}

void capture_freep(struct capture **c)
{
	capture_free(*c);
	*c = NULL;
}
