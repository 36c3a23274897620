/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/coll.h"

#include <math.h>
#include <stdio.h>

bool coll_emit(struct emit *o, const struct coll *c, bool in_place, const char *metric,
	       struct span cell)
{
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = {.step = -1, .t_us = c->t_us};
	char number[24];

	snprintf(number, sizeof(number), "%lld", (long long)c->size_bytes);
	emit_label(&ls, "size_bytes", span_of(number));
	emit_label(&ls, "in_place", span_of(in_place ? "1" : "0"));
	if (c->test[0])
		emit_label(&ls, "test", span_of(c->test));
	if (c->type[0])
		emit_label(&ls, "type", span_of(c->type));
	if (c->redop[0])
		emit_label(&ls, "redop", span_of(c->redop));
	if (c->root[0])
		emit_label(&ls, "root", span_of(c->root));
	snprintf(number, sizeof(number), "%d", c->run);
	emit_label(&ls, "run", span_of(number));
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	return emit_token(o, metric, cell, c->ms && str_eq(metric, "coll_time_us") ? 1000 : 1,
			  &tag);
}

bool coll_nccl_version(int64_t code, char out[24])
{
	/* NCCL_VERSION() of nccl.h: two digits a part since 2.9, one before. */
	int64_t major = code >= 10000 ? code / 10000 : code / 1000;
	int64_t minor = code >= 10000 ? code % 10000 / 100 : code % 1000 / 100;

	if (code < 1000 || code > 999999)
		return false;
	snprintf(out, 24, "%d.%d.%d", (int)major, (int)minor, (int)(code % 100));
	return true;
}

void coll_mean_add(struct coll_mean *m, struct span busbw)
{
	double v;

	if (!num_whole(busbw, &v))
		return;
	m->sum += v;
	m->n++;
}

bool coll_mean_check(struct coll_mean *m, double footer)
{
	double mean = m->n ? m->sum / (double)m->n : 0;
	bool fits = m->n && fabs(mean - footer) <= 0.006 + 0.002 * fabs(footer);

	*m = (struct coll_mean){0, 0};
	return fits;
}

bool coll_factor_fits(struct span algbw, struct span busbw, int64_t nranks)
{
	double a, b, n = (double)nranks;

	if (nranks < 2 || !algbw.s || !busbw.s || !num_whole(algbw, &a) || !num_whole(busbw, &b) ||
	    a < 2 || b < 1)
		return true;
	/* Each has two decimals, or one when it is large. */
	for (int i = 0; i < 3; i++) {
		double factor = i == 0 ? 1 : i * (n - 1) / n;

		if (fabs(b - a * factor) <= 0.06 + 0.003 * b)
			return true;
	}
	return false;
}
