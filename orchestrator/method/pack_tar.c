/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/pack_tar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zlib.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

enum {
	BLOCK = 512,
	CHUNK = 1 << 20,
	NAME_BYTES_MAX = 1 << 16, /* of a long name; PATH_MAX is 4096 */
};
/* Of an entry's head: where its fields stand, POSIX.1-1988 and GNU. */
enum { AT_NAME = 0, AT_SIZE = 124, AT_SUM = 148, AT_TYPE = 156, AT_LINK = 157 };
enum { NAME_BYTES = 100, SIZE_BYTES = 12, SUM_BYTES = 8 };

struct reading {
	gzFile z;
	const char *path;
	char *name, *link; /* long ones, of the entry that follows; NULL */
};

static int damaged(const struct reading *r, const char *what, struct err *e)
{
	return err_set(e, ERR_STATE, "%s is damaged: %s", r->path, what);
}

/* All of n bytes. */
static int take(struct reading *r, void *to, size_t n, struct err *e)
{
	return gzread(r->z, to, (unsigned)n) == (int)n ? 0 : damaged(r, "it is cut", e);
}

/* Octal digits, or with the highest bit set a number of 256-based digits. */
static int64_t number(const unsigned char *p, size_t n)
{
	int64_t v = 0;

	if (p[0] & 0x80) {
		for (size_t i = n - 8; i < n; i++)
			v = (int64_t)((uint64_t)v << 8 | p[i]);
		return v;
	}
	for (size_t i = 0; i < n && p[i] && p[i] != ' '; i++)
		if (p[i] < '0' || p[i] > '7')
			return -1;
		else
			v = v * 8 + (p[i] - '0');
	return v;
}

static bool sum_fits(const unsigned char *head)
{
	int64_t sum = 0;

	for (size_t i = 0; i < BLOCK; i++)
		sum += i >= AT_SUM && i < AT_SUM + SUM_BYTES ? ' ' : head[i];
	return sum == number(head + AT_SUM, SUM_BYTES);
}

/* The content, up to the next block: hashed, and kept when `text` is asked for. */
static int content(struct reading *r, int64_t bytes, char hash[33], char **text, struct err *e)
{
	_cleanup_free_ char *chunk = xmalloc(CHUNK);
	XXH3_state_t *state = xchecked(XXH3_createState());
	struct buf kept = {0};
	XXH128_hash_t digest;
	int rc = 0;

	XXH3_128bits_reset(state);
	for (int64_t left = bytes; left > 0 && rc == 0;) {
		size_t n = left < CHUNK ? (size_t)left : CHUNK;

		if ((rc = take(r, chunk, (n + BLOCK - 1) / BLOCK * BLOCK, e)) < 0)
			break;
		XXH3_128bits_update(state, chunk, n);
		if (text)
			buf_put(&kept, chunk, n);
		left -= (int64_t)n;
	}
	digest = XXH3_128bits_digest(state);
	snprintf(hash, 33, "%016llx%016llx", (unsigned long long)digest.high64,
		 (unsigned long long)digest.low64);
	XXH3_freeState(state);
	if (text && rc == 0)
		*text = buf_take(&kept);
	buf_free(&kept);
	return rc;
}

static int entry(struct reading *r, const unsigned char *head, struct archive *out, struct err *e)
{
	_cleanup_free_ char *name = r->name ? r->name
					    : xstrndup((const char *)head + AT_NAME, NAME_BYTES);
	_cleanup_free_ char *link = r->link ? r->link
					    : xstrndup((const char *)head + AT_LINK, NAME_BYTES);
	int64_t bytes = number(head + AT_SIZE, SIZE_BYTES);
	char hash[33];
	int rc;

	r->name = r->link = NULL;
	switch (head[AT_TYPE]) {
	case '0':
		if ((rc = content(r, bytes, hash, NULL, e)) == 0)
			archive_add_file(out, name, NULL, bytes, hash);
		return rc;
	case '2':
		archive_add_file(out, name, link, 0, "");
		return 0;
	case '5':
		return 0;
	default:
		return damaged(r, "an entry is neither file, directory nor link", e);
	}
}

static int next(struct reading *r, bool *end, struct archive *out, struct err *e)
{
	static const unsigned char zero[BLOCK];
	unsigned char head[BLOCK];
	int64_t bytes;
	char hash[33];
	int rc = take(r, head, BLOCK, e);

	*end = rc == 0 && memcmp(head, zero, BLOCK) == 0;
	if (rc < 0 || *end)
		return rc;
	bytes = number(head + AT_SIZE, SIZE_BYTES);
	if (!sum_fits(head) || bytes < 0)
		return damaged(r, "the head of an entry does not fit its sum", e);
	if (head[AT_TYPE] != 'L' && head[AT_TYPE] != 'K')
		return entry(r, head, out, e);
	if (bytes > NAME_BYTES_MAX)
		return damaged(r, "a name is too long", e);
	return content(r, bytes, hash, head[AT_TYPE] == 'L' ? &r->name : &r->link, e);
}

/* gzip's own sum is looked at when all was read. */
static int read_rest(struct reading *r, struct err *e)
{
	char rest[BLOCK];
	int n;

	while ((n = gzread(r->z, rest, sizeof rest)) > 0)
		;
	return n == 0 && gzeof(r->z) ? 0 : damaged(r, "gzip's sum does not fit", e);
}

int pack_tar_read(const char *path, int (*beat)(void *ctx, struct err *e), void *ctx,
		  struct archive *out, struct err *e)
{
	struct reading r = {.path = path, .z = gzopen(path, "rbe")};
	bool end = false;
	int rc = 0;

	if (!r.z)
		return err_sys(e, fs_exists(path) ? ERR_IO : ERR_NOT_FOUND, "cannot read %s", path);
	while (rc == 0 && !end)
		if ((rc = next(&r, &end, out, e)) == 0 && beat)
			rc = beat(ctx, e);
	if (rc == 0)
		rc = read_rest(&r, e);
	gzclose(r.z);
	free(r.name);
	free(r.link);
	return rc;
}
