/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/jwrite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

void jwrite_init(struct jwrite *w)
{
	*w = (struct jwrite){.g = yajl_gen_alloc(NULL)};
	yajl_gen_config(w->g, yajl_gen_beautify, 0);
}

void jwrite_free(struct jwrite *w)
{
	if (w->g)
		yajl_gen_free(w->g);
	buf_free(&w->clean);
	*w = (struct jwrite){0};
}

/* Bytes of the sequence that starts at s, 0 if it is not UTF-8 (RFC 3629: no surrogates, no
 * overlong forms). */
static size_t utf8_len(const unsigned char *s, size_t n)
{
	size_t len = s[0] < 0x80   ? 1
		     : s[0] < 0xC2 ? 0
		     : s[0] < 0xE0 ? 2
		     : s[0] < 0xF0 ? 3
		     : s[0] < 0xF5 ? 4
				   : 0;

	if (len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ||
	    (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
		return 0;
	return len;
}

void jwrite_utf8(struct buf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t len = utf8_len((const unsigned char *)s + i, n - i);

		if (len)
			buf_put(out, s + i, len);
		else
			buf_str(out, "\xEF\xBF\xBD");
		i += len ? len : 1;
	}
}

static void put_text(struct jwrite *w, const char *s)
{
	buf_clear(&w->clean);
	jwrite_utf8(&w->clean, s, strlen(s));
	yajl_gen_string(w->g, (const unsigned char *)(w->clean.data ? w->clean.data : ""),
			w->clean.len);
}

static void put_key(struct jwrite *w, const char *key)
{
	if (key)
		put_text(w, key);
}

void jwrite_object(struct jwrite *w, const char *key)
{
	put_key(w, key);
	yajl_gen_map_open(w->g);
}

void jwrite_object_end(struct jwrite *w)
{
	yajl_gen_map_close(w->g);
}

void jwrite_array(struct jwrite *w, const char *key)
{
	put_key(w, key);
	yajl_gen_array_open(w->g);
}

void jwrite_array_end(struct jwrite *w)
{
	yajl_gen_array_close(w->g);
}

void jwrite_text(struct jwrite *w, const char *key, const char *value)
{
	put_key(w, key);
	put_text(w, value ? value : "");
}

void jwrite_int(struct jwrite *w, const char *key, int64_t value)
{
	put_key(w, key);
	yajl_gen_integer(w->g, value);
}

void jwrite_bool(struct jwrite *w, const char *key, bool value)
{
	put_key(w, key);
	yajl_gen_bool(w->g, value);
}

void jwrite_texts(struct jwrite *w, const char *key, char *const *v, size_t n)
{
	jwrite_array(w, key);
	for (size_t i = 0; i < n; i++)
		jwrite_text(w, NULL, v[i]);
	jwrite_array_end(w);
}

void jwrite_result(struct jwrite *w, const char **text, size_t *n)
{
	const unsigned char *p = NULL;

	*n = 0;
	yajl_gen_get_buf(w->g, &p, n);
	*text = p ? (const char *)p : "";
}

static int write_synced(const char *path, const char *text, size_t n)
{
	int fd = fs_create(path, O_WRONLY | O_TRUNC, 0600);
	int rc = 0, saved;

	if (fd < 0)
		return -1;
	while (n > 0 && rc == 0) {
		ssize_t done = write(fd, text, n);

		if (done < 0 && errno != EINTR)
			rc = -1;
		if (done > 0) {
			text += done;
			n -= (size_t)done;
		}
	}
	if (rc == 0)
		rc = fsync(fd);
	saved = errno;
	if (close(fd) && rc == 0)
		return -1;
	errno = saved;
	return rc;
}

int jwrite_file(struct jwrite *w, const char *path, struct err *e)
{
	_cleanup_free_ char *tmp = xasprintf("%s.tmp", path);
	const char *text;
	size_t n;
	int saved;

	jwrite_result(w, &text, &n);
	if (write_synced(tmp, text, n) || rename(tmp, path)) {
		saved = errno;
		unlink(tmp);
		errno = saved;
		return err_sys(e, ERR_IO, "cannot write %s", path);
	}
	return 0;
}
