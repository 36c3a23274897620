/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/edits.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"

enum { CONTEXT = 3 }; /* lines, as diff -u has them */

void edits_add(struct edits *e, size_t start, size_t end, const char *text)
{
	e->v = xgrow(e->v, e->n, &e->cap, sizeof *e->v);
	e->v[e->n] = (struct edit){start, end, e->n, xstrdup(text)};
	e->n++;
}

static int by_start(const void *a, const void *b)
{
	const struct edit *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

void edits_sort(struct edits *e)
{
	if (e->n)
		qsort(e->v, e->n, sizeof *e->v, by_start);
}

void edits_free(struct edits *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->v[i].text);
	free(e->v);
	*e = (struct edits){0};
}

void edits_apply(const struct edits *e, const char *text, size_t from, size_t to, struct buf *out)
{
	size_t at = from;

	for (size_t i = 0; i < e->n; i++) {
		const struct edit *one = &e->v[i];

		if (one->start < at || one->start > to)
			continue;
		buf_put(out, text + at, one->start - at);
		buf_str(out, one->text);
		at = one->end;
	}
	if (at < to)
		buf_put(out, text + at, to - at);
}

/* -- diff -------------------------------------------------------------------------------------- */

/* A text in lines, each with its newline; the last one may have none. */
struct lines {
	const char *text;
	size_t *start; /* of each line; n + 1 of them */
	size_t n, cap;
};

static void split(const char *text, size_t n, struct lines *out)
{
	*out = (struct lines){.text = text};
	for (size_t at = 0;; at++) {
		out->start = xgrow(out->start, out->n, &out->cap, sizeof *out->start);
		out->start[out->n] = at;
		if (at == n)
			return;
		out->n++;
		while (at + 1 < n && text[at] != '\n')
			at++;
	}
}

static size_t line_bytes(const struct lines *l, size_t i)
{
	return l->start[i + 1] - l->start[i];
}

static bool same_line(const struct lines *a, size_t i, const struct lines *b, size_t k)
{
	return line_bytes(a, i) == line_bytes(b, k) &&
	       memcmp(a->text + a->start[i], b->text + b->start[k], line_bytes(a, i)) == 0;
}

/* The line that a byte stands in; of the end of the text the last one. */
static size_t line_of(const struct lines *l, size_t at)
{
	size_t lo = 0, hi = l->n;

	while (lo + 1 < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (l->start[mid] <= at)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/* Lines [old, old_end) of the one text are lines [new, new_end) of the other. */
struct change {
	size_t old, old_end, new, new_end;
};
struct changes {
	struct change *v;
	size_t n, cap;
};

static void put_line(struct buf *out, char mark, const struct lines *l, size_t i)
{
	size_t n = line_bytes(l, i);

	buf_char(out, mark);
	buf_put(out, l->text + l->start[i], n);
	if (l->text[l->start[i] + n - 1] != '\n')
		buf_str(out, "\n\\ No newline at end of file\n");
}

static void put_range(struct buf *out, char mark, size_t from, size_t to)
{
	size_t n = to - from;

	buf_printf(out, "%c%zu", mark, n ? from + 1 : from);
	if (n != 1)
		buf_printf(out, ",%zu", n);
}

/* Changes [first, last] as one hunk. */
static void put_hunk(const struct changes *c, size_t first, size_t last, const struct lines *old,
		     const struct lines *new, struct buf *out)
{
	size_t before = c->v[first].old < CONTEXT ? c->v[first].old : CONTEXT;
	size_t rest = old->n - c->v[last].old_end, after = rest < CONTEXT ? rest : CONTEXT;
	size_t at = c->v[first].old - before;

	buf_str(out, "@@ ");
	put_range(out, '-', at, c->v[last].old_end + after);
	buf_char(out, ' ');
	put_range(out, '+', c->v[first].new - before, c->v[last].new_end + after);
	buf_str(out, " @@\n");
	for (size_t i = first; i <= last; i++) {
		for (; at < c->v[i].old; at++)
			put_line(out, ' ', old, at);
		for (; at < c->v[i].old_end; at++)
			put_line(out, '-', old, at);
		for (size_t k = c->v[i].new; k < c->v[i].new_end; k++)
			put_line(out, '+', new, k);
	}
	for (size_t i = 0; i < after; i++)
		put_line(out, ' ', old, at + i);
}

/* As GNU diff writes a name: in quotes where a byte of it would end the line or the name. */
static void put_name(struct buf *out, const char *mark, const char *name)
{
	bool odd = name[strcspn(name, "\"\\")] != '\0';

	for (const char *p = name; *p; p++)
		odd = odd || (unsigned char)*p < 0x20 || *p == 0x7f;
	buf_printf(out, "%s ", mark);
	if (!odd) {
		buf_printf(out, "%s%s\n", name, strchr(name, ' ') ? "\t" : "");
		return;
	}
	buf_char(out, '"');
	for (const char *p = name; *p; p++)
		if (*p == '"' || *p == '\\')
			buf_printf(out, "\\%c", *p);
		else if ((unsigned char)*p < 0x20 || *p == 0x7f)
			buf_printf(out, "\\%03o", (unsigned)*p);
		else
			buf_char(out, *p);
	buf_str(out, "\"\n");
}

/* What one or more edits that share lines make of these; lines that stay are left out of it. */
static void add_change(struct changes *c, struct change one, const struct lines *old,
		       const struct lines *new)
{
	while (one.old < one.old_end &&
	       one.new < one.new_end &&same_line(old, one.old, new, one.new)) {
		one.old++;
		one.new ++;
	}
	while (one.old < one.old_end &&
	       one.new < one.new_end &&same_line(old, one.old_end - 1, new, one.new_end - 1)) {
		one.old_end--;
		one.new_end--;
	}
	if (one.old == one.old_end && one.new == one.new_end)
		return;
	c->v = xgrow(c->v, c->n, &c->cap, sizeof *c->v);
	c->v[c->n++] = one;
}

static size_t count_lines(const char *text, size_t n)
{
	size_t lines = 0;

	for (size_t i = 0; i < n; i++)
		lines += text[i] == '\n' || i + 1 == n;
	return lines;
}

/* Whole lines that are put before a line. */
static bool is_insertion(const struct edit *one, const struct lines *old)
{
	return one->start == one->end && one->start == old->start[line_of(old, one->start)] &&
	       str_ends(one->text, "\n");
}

/* Edits [i, returned) share lines. */
static size_t find_change(const struct edits *e, size_t i, const struct lines *old,
			  struct change *out)
{
	out->old = line_of(old, e->v[i].start);
	out->old_end = is_insertion(&e->v[i], old) ? out->old : line_of(old, e->v[i].end) + 1;
	for (i++; i < e->n && line_of(old, e->v[i].start) < out->old_end; i++)
		if (line_of(old, e->v[i].end) >= out->old_end)
			out->old_end = line_of(old, e->v[i].end) + 1;
	return i;
}

static void find_changes(const struct edits *e, const struct lines *old, const struct lines *new,
			 struct changes *out)
{
	size_t shift = 0, shift_old = 0; /* lines of the changes before: new ones and old ones */

	for (size_t i = 0, end; i < e->n; i = end) {
		struct change one;
		struct buf text = {0};

		end = find_change(e, i, old, &one);
		edits_apply(&(struct edits){.v = e->v + i, .n = end - i}, old->text,
			    old->start[one.old], old->start[one.old_end], &text);
		one.new = one.old - shift_old + shift;
		one.new_end = one.new + count_lines(text.data, text.len);
		shift += one.new_end - one.new;
		shift_old += one.old_end - one.old;
		add_change(out, one, old, new);
		buf_free(&text);
	}
}

static void turn(struct changes *c)
{
	for (size_t i = 0; i < c->n; i++)
		c->v[i] = (struct change){c->v[i].new, c->v[i].new_end, c->v[i].old,
					  c->v[i].old_end};
}

void edits_diff(const struct edits *e, const char *text, size_t n, const char *name, bool reverse,
		struct buf *out)
{
	struct buf patched = {0};
	struct lines old, new;
	struct changes c = {0};

	edits_apply(e, text, 0, n, &patched);
	split(text, n, &old);
	split(patched.data ? patched.data : "", patched.len, &new);
	if (n)
		find_changes(e, &old, &new, &c);
	if (reverse)
		turn(&c);
	if (c.n) {
		put_name(out, "---", name);
		put_name(out, "+++", name);
	}
	for (size_t i = 0; i < c.n;) {
		size_t last = i;

		while (last + 1 < c.n && c.v[last + 1].old - c.v[last].old_end <= 2 * CONTEXT)
			last++;
		put_hunk(&c, i, last, reverse ? &new : &old, reverse ? &old : &new, out);
		i = last + 1;
	}
	free(c.v);
	free(old.start);
	free(new.start);
	buf_free(&patched);
}
