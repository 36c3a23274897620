/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/jsonstream.h"

#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "orchestrator/base/mem.h"

enum {
	DEPTH_MAX = 32,        /* the deepest format has 6 */
	PATH_MAX_BYTES = 512,  /* longer keys are cut: no key of a format is */
	TEXT_MAX_BYTES = 4096, /* of one scalar; what is longer is cut */
	SILENT_MAX = 8 << 20,  /* bytes without a token: a string that no tool writes */
};

struct jsonstream {
	struct jsonstream_calls calls;
	void *ctx;
	yajl_handle yajl;
	char path[PATH_MAX_BYTES];
	size_t depth, len[DEPTH_MAX]; /* length of the path of level i itself */
	bool array[DEPTH_MAX];
	char text[PATH_MAX_BYTES + TEXT_MAX_BYTES + 3];
	struct input_line last; /* the last scalar; it lives until the next one */
	const char *chunk;
	size_t counted; /* bytes of the chunk whose line ends are in `line` */
	size_t silent;  /* bytes since the last token */
	int64_t line;
	bool bom_done, any, bad;
	char bom[3];
	size_t n_bom;
	char why[160];
};

static void path_push(struct jsonstream *s, const char *sep, const char *name, size_t n)
{
	size_t len = strlen(s->path), k = strlen(sep);

	if (len + k + n >= sizeof(s->path))
		return;
	memcpy(s->path + len, sep, k);
	memcpy(s->path + len + k, name, n);
	s->path[len + k + n] = '\0';
}

/* The path becomes that of the value which begins: an element of an array adds "[]", a key was
 * added when it was read. */
static void begin_value(struct jsonstream *s)
{
	s->any = true;
	s->silent = 0;
	if (s->depth && s->array[s->depth - 1])
		path_push(s, "[]", "", 0);
}

/* Back to the path of what holds the value. */
static void end_value(struct jsonstream *s)
{
	s->path[s->depth ? s->len[s->depth - 1] : 0] = '\0';
}

static void count_lines(struct jsonstream *s)
{
	size_t done = yajl_get_bytes_consumed(s->yajl);
	const char *p = s->chunk + s->counted, *end = s->chunk + done;

	while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
		s->line++;
		p++;
	}
	if (done > s->counted)
		s->counted = done;
}

static int scalar(struct jsonstream *s, enum jsonstream_kind kind, const char *text, size_t n)
{
	size_t head;
	struct input_line *l = &s->last;

	begin_value(s);
	count_lines(s);
	head = strlen(s->path);
	memcpy(s->text, s->path, head);
	memcpy(s->text + head, ": ", 2);
	head += 2;
	*l = (struct input_line){.complete = true, .rank = -1, .local_rank = -1, .host = ""};
	l->cut = n > TEXT_MAX_BYTES;
	n = l->cut ? TEXT_MAX_BYTES : n;
	memcpy(s->text + head, text, n);
	n = input_clean(s->text + head, n);
	s->text[head + n] = '\0';
	l->text = l->whole = s->text;
	l->len = l->whole_len = head + n;
	l->line = s->line;
	if (s->calls.leaf)
		s->calls.leaf(s->ctx, s->path, kind, (struct span){s->text + head, n}, l);
	end_value(s);
	return 1;
}

static int on_null(void *ctx)
{
	return scalar(ctx, JSONSTREAM_NULL, "null", 4);
}

static int on_bool(void *ctx, int v)
{
	return scalar(ctx, JSONSTREAM_BOOL, v ? "true" : "false", v ? 4 : 5);
}

static int on_number(void *ctx, const char *t, size_t n)
{
	return scalar(ctx, JSONSTREAM_NUMBER, t, n);
}

static int on_string(void *ctx, const unsigned char *t, size_t n)
{
	return scalar(ctx, JSONSTREAM_STRING, (const char *)t, n);
}

static int enter(struct jsonstream *s, bool array)
{
	begin_value(s);
	if (s->depth == DEPTH_MAX) {
		str_copy(s->why, sizeof(s->why), "nested deeper than 32 levels");
		return 0;
	}
	s->array[s->depth] = array;
	s->len[s->depth] = strlen(s->path);
	s->depth++;
	if (s->calls.open)
		s->calls.open(s->ctx, s->path);
	return 1;
}

static int leave(struct jsonstream *s)
{
	s->silent = 0;
	s->path[s->len[--s->depth]] = '\0';
	if (s->calls.close)
		s->calls.close(s->ctx, s->path);
	end_value(s);
	return 1;
}

static int on_map(void *ctx)
{
	return enter(ctx, false);
}

static int on_array(void *ctx)
{
	return enter(ctx, true);
}

static int on_end(void *ctx)
{
	return leave(ctx);
}

static int on_key(void *ctx, const unsigned char *t, size_t n)
{
	struct jsonstream *s = ctx;
	char key[PATH_MAX_BYTES];

	s->silent = 0;
	s->path[s->len[s->depth - 1]] = '\0';
	n = n < sizeof(key) ? n : sizeof(key);
	memcpy(key, t, n);
	n = input_clean(key, n);
	path_push(s, s->path[0] ? "." : "", key, n);
	return 1;
}

struct jsonstream *jsonstream_new(const struct jsonstream_calls *calls, void *ctx)
{
	static const yajl_callbacks f = {
		.yajl_null = on_null,
		.yajl_boolean = on_bool,
		.yajl_number = on_number,
		.yajl_string = on_string,
		.yajl_start_map = on_map,
		.yajl_map_key = on_key,
		.yajl_end_map = on_end,
		.yajl_start_array = on_array,
		.yajl_end_array = on_end,
	};
	struct jsonstream *s = xcalloc(1, sizeof(*s));

	s->calls = *calls;
	s->ctx = ctx;
	s->line = 1;
	s->yajl = yajl_alloc(&f, NULL, s);
	yajl_config(s->yajl, yajl_allow_multiple_values, 1);
	yajl_config(s->yajl, yajl_dont_validate_strings, 1);
	return s;
}

static void give(struct jsonstream *s, const char *bytes, size_t n)
{
	yajl_status rc;

	if (s->bad || !n)
		return;
	s->chunk = bytes;
	s->counted = 0;
	s->silent += n;
	rc = yajl_parse(s->yajl, (const unsigned char *)bytes, n);
	if (rc == yajl_status_ok && s->silent <= SILENT_MAX) {
		count_lines(s);
		return;
	}
	count_lines(s);
	s->bad = true;
	if (!s->why[0])
		str_copy(s->why, sizeof(s->why),
			 rc == yajl_status_ok ? "a string of more than 8 MiB" : "not JSON");
}

void jsonstream_feed(struct jsonstream *s, const char *bytes, size_t n)
{
	/* A BOM can come in pieces. */
	while (!s->bom_done && n) {
		s->bom[s->n_bom++] = *bytes++;
		n--;
		if (memcmp(s->bom, "\xef\xbb\xbf", s->n_bom) != 0) {
			s->bom_done = true;
			give(s, s->bom, s->n_bom);
		} else if (s->n_bom == 3) {
			s->bom_done = true;
		}
	}
	give(s, bytes, n);
}

enum jsonstream_end jsonstream_finish(struct jsonstream *s, struct buf *why)
{
	if (!s->bad && s->depth == 0 && s->any && yajl_complete_parse(s->yajl) != yajl_status_ok)
		s->bad = true;
	if (s->bad) {
		if (why)
			buf_printf(why, "%s at line %lld", s->why[0] ? s->why : "not JSON",
				   (long long)s->line);
		return JSONSTREAM_BAD;
	}
	if (!s->any)
		return JSONSTREAM_EMPTY;
	if (s->depth) {
		if (why)
			buf_printf(why, "the JSON is cut at line %lld", (long long)s->line);
		return JSONSTREAM_CUT;
	}
	return JSONSTREAM_WHOLE;
}

void jsonstream_free(struct jsonstream *s)
{
	if (!s)
		return;
	yajl_free(s->yajl);
	free(s);
}
