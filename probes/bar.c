/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/bar.h"

#include <math.h>
#include <string.h>

#include "orchestrator/base/mem.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "n/total [" just behind the bar's second stroke; t moves behind the bracket. */
static bool take_counts(struct span *t, struct bar *b)
{
	struct span f;

	*t = span_trim(*t);
	if (!span_next(t, "/", &f) || !num_whole_i64(f, &b->n))
		return false;
	if (!span_next(t, "[", &f) || !num_whole_i64(f, &b->total))
		return false;
	return t->s && b->n >= 0 && b->total > 0;
}

double bar_clock_s(struct span t)
{
	struct span f, days = t, clock = span_after(t, ", ");
	double s = 0, v, more = 0;
	int parts = 0;

	if (clock.s && span_has(t, " day") && span_word(&days, &f) && num_whole(f, &more)) {
		more *= 86400;
		t = clock;
	}

	while (span_next(&t, ":", &f)) {
		if (!num_whole(f, &v) || v < 0 || ++parts > 3)
			return -1;
		s = s * 60 + v;
	}
	return parts >= 2 ? more + s : -1;
}

double bar_rate_s(struct span t, struct bar *b)
{
	double v;
	size_t used;

	t = span_trim(t);
	b->other_unit = !span_has(t, "it/s") && !span_has(t, "s/it");
	if (num_scan(t, &v, &used) != NUM_FINITE || v <= 0)
		return -1;
	t = (struct span){t.s + used, t.n - used};
	if (span_eq(t, "s/it"))
		return v;
	b->per_second = span_eq(t, "it/s");
	return b->per_second ? 1 / v : -1;
}

/* "NN%|" at p: where its digits begin, or NULL. */
static const char *percent_start(const char *text, const char *p)
{
	const char *d = p;

	while (d > text && is_digit(d[-1]) && p - d < 3)
		d--;
	return d < p ? d : NULL;
}

/* What stands in the brackets, at the start of rest. False when they are not closed. */
static bool take_tail(struct span rest, struct bar *b)
{
	const char *close = memchr(rest.s, ']', rest.n);
	struct span f;

	if (!close)
		return false;
	rest.n = (size_t)(close - rest.s);
	b->elapsed_s = b->step_s = -1;
	b->postfix = (struct span){"", 0};
	/* Without a total there is no time that remains: "[00:04, 4.36s/it]". */
	if (!span_next(&rest, b->total ? "<" : "<,", &f))
		return true;
	b->elapsed_s = bar_clock_s(span_trim(f));
	if (rest.s && rest.s[-1] == '<')
		do {
			if (!span_next(&rest, ",", &f))
				return true;
		} while (span_has(f, " day"));
	b->postfix = rest.s ? rest : b->postfix;
	/* NeMo writes no rate. */
	if (span_next(&rest, ",", &f) && !memchr(f.s, '=', f.n)) {
		b->step_s = bar_rate_s(f, b);
		b->postfix = rest.s ? rest : (struct span){"", 0};
	}
	b->postfix = span_trim(b->postfix);
	return true;
}

static void take_desc(struct bar *b, const char *text, const char *end)
{
	b->desc = span_trim((struct span){text, (size_t)(end - text)});
	if (b->desc.n && b->desc.s[b->desc.n - 1] == ':')
		b->desc.n--;
}

static bool parse_at(struct span t, const char *p, struct bar *b)
{
	const char *d = percent_start(t.s, p);
	struct span rest = {p + 2, t.n - (size_t)(p + 2 - t.s)}, f;

	if (!d || !span_next(&rest, "|", &f) || !rest.s || !take_counts(&rest, b))
		return false;
	take_desc(b, t.s, d);
	return take_tail(rest, b);
}

/* The total of an endless data set: "Epoch 0: : 12it [00:04, ..]", "Epoch 0: |    | 12/? [..]". */
static bool parse_endless(struct span t, const char *mark, struct bar *b)
{
	struct span rest = span_after(t, mark);
	const char *end = rest.s ? rest.s - strlen(mark) : NULL, *d = end, *desc;

	while (d && d > t.s && is_digit(d[-1]))
		d--;
	if (d == end || !num_whole_i64((struct span){d, (size_t)(end - d)}, &b->n))
		return false;
	for (desc = d; desc > t.s && (desc[-1] == ' ' || desc[-1] == '|'); desc--)
		;
	take_desc(b, t.s, desc);
	/* Of "Epoch 0: :" too. */
	take_desc(b, t.s, b->desc.s + b->desc.n);
	return take_tail(rest, b);
}

bool bar_find(struct span t, struct bar *b)
{
	struct span rest = t;
	bool found = false;

	while ((rest = span_after(rest, "%|")).s) {
		struct bar one = {0};

		if (parse_at(t, rest.s - 2, &one)) {
			*b = one;
			found = true;
		}
	}
	if (!found) {
		*b = (struct bar){0};
		found = parse_endless(t, "it [", b) || parse_endless(t, "/? [", b);
	}
	return found;
}

double bar_step_s(const struct bar *b)
{
	double off_rate = 1, off_elapsed = 1;

	if (b->step_s > 0) /* two decimals, of it/s or of s/it */
		off_rate = 0.005 / (b->per_second ? 1 / b->step_s : b->step_s);
	if (b->elapsed_s > 0 && b->n > 0) /* whole seconds */
		off_elapsed = 0.5 / b->elapsed_s;
	if (off_rate >= 1 && off_elapsed >= 1)
		return b->step_s;
	return off_elapsed < off_rate ? b->elapsed_s / (double)b->n : b->step_s;
}

void bar_postfix(const struct bar *b, const char *const *keys, size_t n, struct span *v)
{
	struct span rest = b->postfix, f, k;

	for (size_t i = 0; i < n; i++)
		v[i] = (struct span){NULL, 0};
	while (span_next(&rest, ",", &f)) {
		if (!span_next(&f, "=", &k) || !f.s)
			continue;
		k = span_trim(k);
		/* Lightning gives each number a point: "nan.0". */
		if (f.n >= 5 && memcmp(f.s + f.n - 2, ".0", 2) == 0 && f.s[f.n - 3] > '9')
			f.n -= 2;
		for (size_t i = 0; i < n; i++)
			if (!v[i].s && span_eq(k, keys[i]))
				v[i] = span_trim(f);
	}
}
