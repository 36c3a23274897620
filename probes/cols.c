/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/cols.h"

#include <string.h>

#include "orchestrator/base/mem.h"

void words_split(struct words *w, struct span line)
{
	struct span one;

	w->n = 0;
	while (span_word(&line, &one)) {
		if (w->n < COLS_MAX)
			w->v[w->n] = one;
		w->n++;
	}
}

int words_find(const struct words *w, const char *text)
{
	for (size_t i = 0; i < w->n && i < COLS_MAX; i++)
		if (span_eq(w->v[i], text))
			return (int)i;
	return -1;
}

const struct col *col_find(const struct col *list, struct span name)
{
	for (; list->name; list++)
		if (span_eq(name, list->name))
			return list;
	return NULL;
}

size_t cols_header(struct cols *c, const struct col *list, const struct words *header)
{
	size_t known = 0;

	*c = (struct cols){.n = header->n};
	for (size_t i = 0; i < header->n && i < COLS_MAX; i++) {
		c->of[i] = col_find(list, header->v[i]);
		known += c->of[i] != NULL;
	}
	return known;
}

void cols_emit(const struct cols *c, struct emit *o, const struct words *row, bool complete,
	       const struct emit_tag *tag)
{
	for (size_t i = 0; i < c->n && i < row->n && i < COLS_MAX; i++) {
		if (!c->of[i] || (!complete && i + 1 == row->n))
			continue;
		if (!emit_token(o, c->of[i]->metric, row->v[i], c->of[i]->scale, tag))
			emit_bad(o, "a cell holds no number");
	}
}

bool col_human(struct span t, double base, double *out)
{
	static const char units[] = "BkMGTP";
	size_t used;
	double v;

	t = span_trim(t);
	if (num_scan(t, &v, &used) != NUM_FINITE)
		return false;
	t = span_trim((struct span){t.s + used, t.n - used});
	if (t.n == 1 && t.s[0] != '%') {
		const char *unit = strchr(units, t.s[0] == 'K' ? 'k' : t.s[0]);

		if (!unit)
			return false;
		for (; unit > units; unit--)
			v *= base;
	} else if (t.n > 1) {
		return false;
	}
	*out = v;
	return true;
}
