/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/input.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "probes/vec.h"

struct input {
	input_f f;
	input_wanted_f wanted; /* NULL: every line */
	void *ctx;
	char *text; /* the logical line so far; of INPUT_LINE_MAX + 1 bytes */
	size_t len;
	int64_t line; /* physical lines begun */
	bool in_line; /* something of the current physical line was seen */
	bool had_cr;  /* a CR was seen and it is not yet known what follows */
	bool cut;
	bool bom_done;
};

struct input *input_new(input_f f, void *ctx)
{
	struct input *in = xcalloc(1, sizeof(*in));

	in->f = f;
	in->ctx = ctx;
	in->text = xmalloc(INPUT_LINE_MAX + 1);
	return in;
}

void input_filter(struct input *in, input_wanted_f wanted)
{
	in->wanted = wanted;
}

void input_free(struct input *in)
{
	if (!in)
		return;
	free(in->text);
	free(in);
}

int64_t input_lines(const struct input *in)
{
	return in->line;
}

/* Bytes of a valid UTF-8 sequence at s, 0 if it is none (RFC 3629: no overlong form, no surrogate).
 */
static size_t utf8_len(const unsigned char *s, size_t n)
{
	size_t k = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

	if (!k || k > n)
		return 0;
	for (size_t i = 1; i < k; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return k;
}

/* Bytes of the escape sequence at s[0] == ESC: CSI, OSC (to BEL or ESC \), or a two-byte form. */
static size_t escape_len(const char *s, size_t n)
{
	size_t i = 2;

	if (n < 2)
		return 1;
	if (s[1] == '[') {
		while (i < n && !(s[i] >= 0x40 && s[i] <= 0x7e))
			i++;
		return i < n ? i + 1 : n;
	}
	if (s[1] == ']') {
		while (i < n && s[i] != '\a' && s[i] != 0x1b)
			i++;
		if (i < n && s[i] == 0x1b && i + 1 < n && s[i + 1] == '\\')
			i++;
		return i < n ? i + 1 : n;
	}
	return s[1] == '(' || s[1] == ')' ? (n < 3 ? n : 3) : 2;
}

/* Bytes of `[36m` at s: a colour whose ESC was lost in a paste. `[15m]` is data. */
static size_t bare_colour_len(const char *s, size_t n)
{
	size_t i = 1;

	while (i < n && i <= 5 && ((s[i] >= '0' && s[i] <= '9') || s[i] == ';'))
		i++;
	if (i < 2 || i >= n || s[i] != 'm' || (i + 1 < n && s[i + 1] == ']'))
		return 0;
	return i + 1;
}

/* -1 where a byte is not printable ASCII (one above 0x7f is below 0). */
static vec odd_bytes(vec v)
{
	return (v < vec_of(' ')) | (v == vec_of(0x7f));
}

/* Bytes at s up to the first that may need work. */
static size_t plain_len(const char *s, size_t n)
{
	const vec bracket = vec_of('[');
	size_t i = 0;

	for (; i + VEC_BYTES <= n; i += VEC_BYTES) {
		vec v = vec_load(s + i);
		uint32_t stops = vec_bits(odd_bytes(v) | (v == bracket));

		if (stops)
			return i + (unsigned)__builtin_ctz(stops);
	}
	while (i < n && s[i] >= ' ' && s[i] != 0x7f && s[i] != '[')
		i++;
	return i;
}

/* Where in s the first byte is that needs work (a line end does), n if none does. */
static size_t clean_len(const char *s, size_t n)
{
	size_t i = 0;

	while ((i += plain_len(s + i, n - i)) < n && s[i] == '[' && !bare_colour_len(s + i, n - i))
		i++;
	return i;
}

size_t input_clean(char *s, size_t n)
{
	size_t to, i, k;

	i = to = clean_len(s, n);
	while (i < n) {
		unsigned char c = (unsigned char)s[i];

		if ((k = plain_len(s + i, n - i))) {
			memmove(s + to, s + i, k);
			to += k;
			i += k;
			continue;
		}

		if (c == 0x1b) {
			i += escape_len(s + i, n - i);
		} else if (c == '[' && (k = bare_colour_len(s + i, n - i))) {
			i += k;
		} else if (c >= 0x80) {
			k = utf8_len((const unsigned char *)s + i, n - i);
			if (!k)
				s[to++] = '?';
			memmove(s + to, s + i, k);
			to += k;
			i += k ? k : 1;
		} else if (c == '\t' || (c >= 0x20 && c != 0x7f)) {
			s[to++] = s[i++];
		} else {
			i++;
		}
	}
	return to;
}

static void append(struct input *in, const char *s, size_t n)
{
	size_t room = INPUT_LINE_MAX - in->len;

	if (n)
		in->in_line = true;
	if (n > room) {
		in->cut = true;
		n = room;
	}
	memcpy(in->text + in->len, s, n);
	in->len += n;
}

/* A state of a bar that holds nothing but blanks (tqdm's clearing) says nothing. */
static bool is_empty(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] != ' ')
			return false;
	return true;
}

/* Takes the prefixes off a clean line of n bytes in in->text, and the line to its reader. */
static void hand_over(struct input *in, size_t n, bool complete, bool redrawn, bool cut)
{
	struct input_origin o;
	size_t skip;

	o.rank = o.local_rank = -1;
	o.host[0] = '\0';
	in->text[n] = '\0';
	in->len = 0;
	skip = input_prefix((struct span){in->text, n}, &o);
	in->f(in->ctx, &(struct input_line){
			       .text = in->text + skip,
			       .len = n - skip,
			       .whole = in->text,
			       .whole_len = n,
			       .line = in->line,
			       .rank = o.rank,
			       .local_rank = o.local_rank,
			       .host = o.host,
			       .complete = complete,
			       .redrawn = redrawn,
			       .cut = cut,
		       });
}

static bool is_wanted(struct input *in, const char *s, size_t n)
{
	return !in->wanted || in->wanted(in->ctx, (struct span){s, n});
}

static void deliver(struct input *in, bool complete, bool redrawn)
{
	size_t n = input_clean(in->text, in->len);
	bool cut = in->cut;

	in->len = 0;
	in->cut = false;
	if ((redrawn && is_empty(in->text, n)) || !is_wanted(in, in->text, n))
		return;
	hand_over(in, n, complete, redrawn, cut);
}

/* The BOM can come in three chunks: it is part of the first line until that is whole. */
static void drop_bom(struct input *in)
{
	if (in->bom_done)
		return;
	in->bom_done = true;
	if (in->len >= 3 && memcmp(in->text, "\xef\xbb\xbf", 3) == 0) {
		in->len -= 3;
		memmove(in->text, in->text + 3, in->len);
	}
}

static void end_line(struct input *in)
{
	drop_bom(in);
	deliver(in, true, false);
	in->in_line = false;
	in->had_cr = false;
}

/* What follows a CR is known now, and it is no line end. */
static void end_redrawn(struct input *in)
{
	drop_bom(in);
	deliver(in, true, true);
	in->had_cr = false;
}

static void begin_line(struct input *in)
{
	if (!in->in_line)
		in->line++;
	in->in_line = true;
}

/* Text without LF: logical lines end at each CR that is not the last. */
static void feed_within(struct input *in, const char *s, size_t n)
{
	while (n) {
		const char *cr = memchr(s, '\r', n);
		size_t k = cr ? (size_t)(cr - s) : n;

		begin_line(in);
		if (k && in->had_cr)
			end_redrawn(in);
		append(in, s, k);
		if (!cr)
			return;
		in->had_cr = true;
		s += k + 1;
		n -= k + 1;
	}
}

/* Most lines: whole in one chunk, and nothing in them to clean. They are only copied if wanted.
 * Bytes taken with the line end, 0 if it is another line. */
static size_t feed_plain(struct input *in, const char *s, size_t n)
{
	size_t k;

	if (in->in_line || !in->bom_done)
		return 0;
	k = clean_len(s, n);
	if (k == n || s[k] != '\n' || k > INPUT_LINE_MAX)
		return 0;
	in->line++;
	if (is_wanted(in, s, k)) {
		memcpy(in->text, s, k);
		hand_over(in, k, true, false, false);
	}
	return k + 1;
}

/* Any other, or a part of one. */
static size_t feed_line(struct input *in, const char *s, size_t n)
{
	const char *lf = memchr(s, '\n', n);

	if (!lf) {
		feed_within(in, s, n);
		return n;
	}
	feed_within(in, s, (size_t)(lf - s));
	begin_line(in);
	end_line(in);
	return (size_t)(lf - s) + 1;
}

void input_feed(struct input *in, const char *bytes, size_t n)
{
	while (n) {
		size_t k = feed_plain(in, bytes, n);

		if (!k)
			k = feed_line(in, bytes, n);
		bytes += k;
		n -= k;
	}
}

void input_finish(struct input *in)
{
	if (!in->in_line)
		return;
	drop_bom(in);
	deliver(in, in->had_cr, false);
	in->in_line = false;
}

gzFile input_open(const char *path)
{
	int fd = fs_open(path);
	gzFile f = fd < 0 ? NULL : gzdopen(fd, "rb");

	if (fd >= 0 && !f)
		close(fd);
	return f;
}
