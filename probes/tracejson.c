/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/tracejson.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "orchestrator/base/mem.h"

enum {
	DEPTH_MAX = 32,         /* of nesting; Kineto has 6 */
	SILENT_MAX = 8 << 20,   /* bytes without a token: a string that no tool writes */
	PIECE_BYTES = 64 << 10, /* what is worked on at once: it stays in the cache */
	CARRY_MAX = TRACEJSON_HEAD_MAX + 8, /* the head of an event, or an escape that is cut */
	REPAIRS_MAX = 1 << 20, /* bare words; a trace has one for each copy without a duration */
};

/* Where the text is. */
enum mode {
	OUTSIDE, /* not in the list: all goes to yajl */
	BETWEEN, /* in the list, not in an event */
	SKIPPED, /* in an event that nobody wants, or whose rest nobody can read */
	WANTED,  /* in an event that yajl gets */
};

struct tracejson {
	struct tracejson_calls calls;
	void *ctx;
	yajl_handle yajl;
	enum mode mode;
	bool array[DEPTH_MAX]; /* an array or a map at each level */
	size_t depth, list;    /* list: level of the list of events, 0 when outside of it */
	size_t inside;         /* level of the wanted map in an event, or of a wanted member */
	bool wanted;           /* the value of the last key */
	bool list_next;        /* the last key was traceEvents */
	bool muted;            /* yajl is being primed */
	/* Stepping over an event. */
	size_t braces;
	bool in_string;
	/* Bytes: as they came, and mended. What was not used of the last piece stands first. */
	char raw[CARRY_MAX + PIECE_BYTES], text[CARRY_MAX + PIECE_BYTES];
	size_t carry;
	int64_t line;           /* line ends before raw */
	size_t event_at;        /* where in raw the event began, unless event_line has it */
	int64_t event_line;     /* -1: event_at */
	size_t silent, n_bom;   /* bytes of a BOM taken; 3 when none can come any more */
	bool any, bad, in_word; /* in_word: the rest of a bare word is still to be stepped over */
	int64_t repairs, cut_line;
	const char *why;
};

/* -- yajl's calls ----------------------------------------------------------------------------- */

static bool span_is(struct span t, const char *word)
{
	return span_eq(t, word);
}

static int on_key(void *ctx, const unsigned char *t, size_t n)
{
	struct tracejson *s = ctx;
	struct span key = {(const char *)t, n};

	s->silent = 0;
	if (s->muted)
		return 1;
	s->wanted = false;
	if (s->list && s->depth == s->list + 1) {
		s->inside = 0;
		s->wanted = s->calls.key(s->ctx, TRACEJSON_EVENT, key);
	} else if (s->list) {
		if (s->inside == s->depth)
			s->wanted = s->calls.key(s->ctx, TRACEJSON_ARGS, key);
	} else if (s->depth == 1) {
		s->list_next = span_is(key, "traceEvents");
		s->wanted = !s->list_next && s->calls.key(s->ctx, TRACEJSON_TOP, key);
		s->inside = s->wanted ? 2 : 0;
	} else if (s->inside) {
		s->wanted = s->calls.key(s->ctx, TRACEJSON_SIDE, key);
	}
	return 1;
}

static int leaf(struct tracejson *s, const char *t, size_t n)
{
	s->any = true;
	s->silent = 0;
	s->list_next = false;
	if (s->wanted && !s->muted)
		s->calls.value(s->ctx, (struct span){t, n});
	s->wanted = false;
	return 1;
}

/* 0 stops yajl: the list of events has begun, or the nesting is too deep. */
static int enter(struct tracejson *s, bool array)
{
	bool is_list = array && !s->list && (s->depth == 0 || s->list_next);

	s->any = true;
	s->silent = 0;
	if (s->muted)
		return 1;
	if (s->depth == DEPTH_MAX) {
		s->why = "nested deeper than 32 levels";
		return 0;
	}
	s->array[s->depth++] = array;
	if (s->list && s->wanted && !array && s->depth == s->list + 2)
		s->inside = s->depth;
	s->wanted = s->list_next = false;
	if (is_list)
		s->list = s->depth;
	return !is_list;
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
	struct tracejson *s = ctx;

	s->silent = 0;
	s->wanted = s->list_next = false;
	if (s->list && s->inside == s->depth)
		s->inside = 0;
	s->depth--;
	return 1;
}

static int on_null(void *ctx)
{
	struct tracejson *s = ctx;

	s->wanted = false;
	return leaf(s, "", 0);
}

static int on_bool(void *ctx, int v)
{
	(void)v;
	return on_null(ctx);
}

static int on_number(void *ctx, const char *t, size_t n)
{
	return leaf(ctx, t, n);
}

static int on_string(void *ctx, const unsigned char *t, size_t n)
{
	return leaf(ctx, (const char *)t, n);
}

static yajl_handle new_yajl(struct tracejson *s)
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
	yajl_handle h = yajl_alloc(&f, NULL, s);

	yajl_config(h, yajl_allow_multiple_values, 1);
	yajl_config(h, yajl_dont_validate_strings, 1);
	return h;
}

/* A new yajl as if it had just read a value at the present depth. In the list each event is a
 * document of its own: nothing around it is told. */
static void begin_anew(struct tracejson *s)
{
	yajl_free(s->yajl);
	s->yajl = new_yajl(s);
	s->muted = true;
	for (size_t i = s->list; i < s->depth; i++)
		yajl_parse(s->yajl, (const unsigned char *)(s->array[i] ? "[" : "{\"x\":"),
			   s->array[i] ? 1 : 5);
	if (s->depth > s->list)
		yajl_parse(s->yajl, (const unsigned char *)"null", 4);
	s->muted = false;
	s->wanted = s->list_next = false;
}

/* -- mending ---------------------------------------------------------------------------------- */

/* In blocks of a fixed size, so that compilers make vector code of it. */
static void map_controls(unsigned char *restrict to, const unsigned char *restrict from, size_t n)
{
	enum { BLOCK = 64 };
	size_t i = 0;

	for (; i + BLOCK <= n; i += BLOCK)
		for (size_t k = 0; k < BLOCK; k++)
			to[i + k] = from[i + k] < ' ' ? ' ' : from[i + k];
	for (; i < n; i++)
		to[i] = from[i] < ' ' ? ' ' : from[i];
}

static int64_t count_lines(const char *s, size_t n)
{
	enum { BLOCK = 64 };
	int64_t lines = 0;
	size_t i = 0;

	for (; i + BLOCK <= n; i += BLOCK) {
		unsigned char ends = 0;

		for (size_t k = 0; k < BLOCK; k++)
			ends = (unsigned char)(ends + (s[i + k] == '\n'));
		lines += ends;
	}
	for (; i < n; i++)
		lines += s[i] == '\n';
	return lines;
}

/* What is wrong with the escape at s: 0 nothing (*len is its length), 1 it is none, 2 it is cut. */
static int escape_fault(const char *s, size_t n, size_t *len)
{
	*len = 2;
	if (n < 2)
		return 2;
	if (s[1] != 'u')
		return s[1] == '\0' || !strchr("\"\\/bfnrt", s[1]);
	for (; *len < 6; ++*len) {
		if (*len == n)
			return 2;
		if (!isxdigit((unsigned char)s[*len]))
			return 1;
	}
	return 0;
}

/* Make slashes of backslashes that begin no escape. Returns how many bytes are whole: an escape
 * that the end cuts has to wait. */
static size_t mend_escapes(char *s, size_t n)
{
	char *p = s, *end = s + n;
	size_t len;

	while (p < end && (p = memchr(p, '\\', (size_t)(end - p)))) {
		switch (escape_fault(p, (size_t)(end - p), &len)) {
		case 0:
			p += len;
			break;
		case 1:
			*p++ = '/';
			break;
		default:
			return (size_t)(p - s);
		}
	}
	return n;
}

static bool ends_word(char c)
{
	return strchr(",:[]{}\" ", c) != NULL; /* NUL was mapped */
}

/* yajl stopped in n bytes at p because of a word that is no JSON: *at gets where that begins, and a
 * null stands for it from now on. */
static bool mend_word(struct tracejson *s, const char *p, size_t n, size_t *at)
{
	unsigned char *text = yajl_get_error(s->yajl, 0, NULL, 0);
	bool lexical = text && strncmp((const char *)text, "lexical", 7) == 0;

	yajl_free_error(s->yajl, text);
	if (!lexical || s->depth <= s->list || s->repairs == REPAIRS_MAX)
		return false;
	*at = yajl_get_bytes_consumed(s->yajl);
	*at = *at < n ? *at : n;
	while (*at && !ends_word(p[*at - 1]))
		--*at;
	begin_anew(s);
	s->in_word = true;
	s->repairs++;
	return true;
}

/* n mended bytes to yajl. Returns how many it took: fewer when the list of events begins, or when
 * what follows is no JSON (*failed). */
static size_t give(struct tracejson *s, const char *p, size_t n, bool *failed)
{
	size_t i = 0, at;

	*failed = false;
	for (;;) {
		yajl_status rc;

		while (s->in_word && i < n && !ends_word(p[i]))
			i++;
		s->in_word = s->in_word && i == n;
		if (i == n)
			return n;
		rc = yajl_parse(s->yajl, (const unsigned char *)p + i, n - i);
		if (rc == yajl_status_ok)
			return n;
		if (rc == yajl_status_client_canceled && !s->why)
			return i + yajl_get_bytes_consumed(s->yajl);
		if (rc != yajl_status_error || !mend_word(s, p + i, n - i, &at)) {
			at = yajl_get_bytes_consumed(s->yajl);
			*failed = true;
			return at < n - i ? i + at : n;
		}
		i += at;
	}
}

/* -- the list --------------------------------------------------------------------------------- */

#define EACH(byte) (UINT64_C(0x0101010101010101) * (unsigned char)(byte))

/* The highest bit of each byte of w that is c. */
static inline uint64_t bytes_equal(uint64_t w, char c)
{
	uint64_t x = w ^ EACH(c);

	return ~(((x & EACH(0x7f)) + EACH(0x7f)) | x | EACH(0x7f));
}

/* Bit i of the result: the highest bit of byte i. */
static inline unsigned gather(uint64_t high)
{
	return (unsigned)((high >> 7) * UINT64_C(0x0102040810204080) >> 56);
}

static inline uint64_t load8(const char *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	w = __builtin_bswap64(w);
#endif
	return w;
}

/* Bits of x; there are few. */
static inline size_t bits(unsigned x)
{
	size_t n = 0;

	for (; x; x &= x - 1)
		n++;
	return n;
}

/* Byte by byte from *i to `to`, or one further when an escape ends there (it is whole:
 * mend_escapes). True when the event was closed at *i - 1. */
static bool step_bytes(struct tracejson *s, const char *p, size_t *i, size_t to)
{
	while (*i < to) {
		char c = p[(*i)++];

		if (s->in_string) {
			s->in_string = c != '"';
			*i += c == '\\';
			continue;
		}
		s->in_string = c == '"';
		s->braces += c == '{';
		if (c == '}' && --s->braces == 0)
			return true;
	}
	return false;
}

/* Eight bytes at once, for what has neither escapes nor the last brace in it: strings are where the
 * number of quotes so far is odd. False when it must be looked at byte by byte. */
static inline bool step_word(struct tracejson *s, uint64_t w)
{
	unsigned quotes, inside, open, closed;

	if (bytes_equal(w, '\\'))
		return false;
	quotes = gather(bytes_equal(w, '"'));
	inside = quotes ^ quotes << 1;
	inside ^= inside << 2;
	inside ^= inside << 4;
	inside ^= s->in_string ? 0xff : 0;
	/* '{' and '}' differ in these bits alone; so does 'y', which does no harm. */
	if (bytes_equal(w | EACH(0x06), 0x7f)) {
		open = gather(bytes_equal(w, '{')) & ~inside;
		closed = gather(bytes_equal(w, '}')) & ~inside;
		if (bits(closed) >= s->braces)
			return false;
		s->braces += bits(open);
		s->braces -= bits(closed);
	}
	s->in_string = inside & 0x80;
	return true;
}

/* Bytes up to and with the brace that closes the event, or n. */
static size_t step_over(struct tracejson *s, const char *p, size_t n)
{
	size_t i = 0;

	while (i + sizeof(uint64_t) <= n) {
		if (step_word(s, load8(p + i)))
			i += sizeof(uint64_t);
		else if (step_bytes(s, p, &i, i + sizeof(uint64_t)))
			return i;
	}
	step_bytes(s, p, &i, n);
	return i < n ? i : n;
}

static void end_event(struct tracejson *s, bool whole)
{
	s->calls.end(s->ctx, whole && s->depth == s->list);
	if (s->depth != s->list || !whole) {
		s->depth = s->list;
		s->in_word = false;
		begin_anew(s);
	}
	s->inside = 0;
}

/* Part of an event that is wanted. */
static size_t run_wanted(struct tracejson *s, const char *p, size_t n)
{
	size_t k = step_over(s, p, n);
	bool failed;

	give(s, p, k, &failed);
	if (failed) {
		end_event(s, false);
		s->why = NULL;
		s->mode = s->braces ? SKIPPED : BETWEEN;
	} else if (!s->braces) {
		end_event(s, true);
		s->mode = BETWEEN;
	}
	return k;
}

static void begin_event(struct tracejson *s, const char *p, size_t n)
{
	struct span head = {p, n < TRACEJSON_HEAD_MAX ? n : TRACEJSON_HEAD_MAX};

	s->braces = 0;
	s->in_string = false;
	s->silent = 0;
	s->mode = s->calls.skip(s->ctx, head) ? SKIPPED : WANTED;
	if (s->mode == SKIPPED)
		return;
	s->event_at = (size_t)(p - s->text);
	s->event_line = -1;
	s->calls.begin(s->ctx);
}

static void fail(struct tracejson *s, const char *why)
{
	s->bad = true;
	s->why = s->why ? s->why : why;
}

/* The list is over: back to the document. */
static void end_list(struct tracejson *s)
{
	s->depth = s->list - 1;
	s->list = 0;
	s->mode = OUTSIDE;
	begin_anew(s);
}

/* Between events. Returns what was used; 0 when the head of the next event is not whole yet. */
static size_t run_between(struct tracejson *s, const char *p, size_t n, bool last)
{
	size_t i = 0;

	while (i < n && (p[i] == ' ' || p[i] == ','))
		i++;
	if (i == n || i > 0)
		return i;
	if (*p == '{') {
		if (n < TRACEJSON_HEAD_MAX && !last)
			return 0;
		begin_event(s, p, n);
		return s->mode == SKIPPED ? step_over(s, p, n) : run_wanted(s, p, n);
	}
	if (*p == ']')
		end_list(s);
	else
		fail(s, "something other than an event in the list of events");
	return 1;
}

static size_t run_outside(struct tracejson *s, const char *p, size_t n)
{
	bool failed;
	size_t k = give(s, p, n, &failed);

	if (failed)
		fail(s, "not JSON");
	else if (s->list) {
		s->mode = BETWEEN;
		begin_anew(s);
	}
	return k;
}

/* n mended bytes; returns how many were used. `last`: no more will come. */
static size_t run(struct tracejson *s, const char *p, size_t n, bool last)
{
	size_t i = 0, k = 1;

	while (i < n && k && !s->bad) {
		switch (s->mode) {
		case OUTSIDE:
			k = run_outside(s, p + i, n - i);
			break;
		case BETWEEN:
			k = run_between(s, p + i, n - i, last);
			break;
		case SKIPPED:
			k = step_over(s, p + i, n - i);
			break;
		case WANTED:
			k = run_wanted(s, p + i, n - i);
			break;
		}
		if (s->mode == SKIPPED && !s->braces)
			s->mode = BETWEEN;
		i += k;
	}
	return i;
}

/* -- bytes ------------------------------------------------------------------------------------ */

struct tracejson *tracejson_new(const struct tracejson_calls *calls, void *ctx)
{
	struct tracejson *s = xcalloc(1, sizeof(*s));

	s->calls = *calls;
	s->ctx = ctx;
	s->yajl = new_yajl(s);
	return s;
}

void tracejson_free(struct tracejson *s)
{
	if (!s)
		return;
	yajl_free(s->yajl);
	free(s);
}

int64_t tracejson_line(const struct tracejson *s)
{
	return s->event_line >= 0 ? s->event_line : s->line + 1 + count_lines(s->raw, s->event_at);
}

/* `used` bytes of the piece are done with. */
static void drop(struct tracejson *s, size_t used, size_t n)
{
	if (s->mode == WANTED && s->event_line < 0)
		s->event_line = tracejson_line(s);
	s->line += count_lines(s->raw, used);
	s->carry = n - used;
	memmove(s->raw, s->raw + used, s->carry);
	memmove(s->text, s->text + used, s->carry);
}

static void feed_piece(struct tracejson *s, const char *bytes, size_t n, bool last)
{
	size_t all = s->carry + n, whole;

	memcpy(s->raw + s->carry, bytes, n);
	map_controls((unsigned char *)s->text + s->carry, (const unsigned char *)bytes, n);
	whole = mend_escapes(s->text, all);
	s->silent += n;
	drop(s, run(s, s->text, last ? all : whole, last), all);
	if (s->silent > SILENT_MAX)
		fail(s, "a string of more than 8 MiB");
}

void tracejson_feed(struct tracejson *s, const char *bytes, size_t n)
{
	static const char bom[] = "\xef\xbb\xbf";

	while (n && s->n_bom < 3) {
		if (*bytes != bom[s->n_bom]) {
			s->n_bom = 3;
			break;
		}
		s->n_bom++;
		bytes++;
		n--;
	}
	while (n && !s->bad) {
		size_t k = n < PIECE_BYTES ? n : PIECE_BYTES;

		feed_piece(s, bytes, k, false);
		bytes += k;
		n -= k;
	}
}

bool tracejson_finish(struct tracejson *s, struct buf *why)
{
	if (!s->bad)
		feed_piece(s, "", 0, true);
	if (s->mode == WANTED)
		end_event(s, false);
	if (s->bad && why)
		buf_printf(why, "%s at line %lld", s->why, (long long)s->line + 1);
	else if (s->depth && why)
		buf_printf(why, "the JSON is cut at line %lld", (long long)s->line + 1);
	return !s->bad && !s->depth;
}
