/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/counters.h"

#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "probes/when.h"

/* ethtool -S of a 400 Gb NIC has some 3,000 lines, of which about 60 mean something to us; a node
 * has up to 18 NICs with 9 virtual functions each. */
enum { COUNTERS_MAX = 16384 };

/* 2^64 - 1 is what drivers hand out for a counter that the device does not have. */
#define ALL_ONES 18446744073709551615.0

bool counters_stamp(struct counters *c, struct span line)
{
	int64_t us = when_stamp(line);

	if (us >= 0)
		c->now_us = us;
	return us >= 0;
}

struct emit_tag counters_tag(const struct counters *c, const struct emit_labels *ls)
{
	return (struct emit_tag){.step = -1,
				 .t_us = c->now_us > 0 ? c->now_us : -1,
				 .labels = ls->v,
				 .n_labels = ls->n};
}

static char *key_of(const struct counter_metric *m, const struct emit_tag *tag)
{
	struct buf b = {0};

	buf_printf(&b, "%s %s", m->total ? m->total : "", m->per_s ? m->per_s : "");
	for (size_t i = 0; i < tag->n_labels; i++)
		buf_printf(&b, " %s=%s", tag->labels[i].key, tag->labels[i].value);
	return buf_take(&b);
}

/* The counter of that key; the key is taken over when it is new. NULL when there are too many. */
static struct counter *find(struct counters *c, char *key)
{
	for (size_t i = 0; i < c->n; i++) {
		size_t at = (c->next + i) % c->n;

		if (str_eq(c->v[at].key, key)) {
			c->next = (at + 1) % c->n;
			free(key);
			return &c->v[at];
		}
	}
	if (c->n == COUNTERS_MAX) {
		free(key);
		return NULL;
	}
	c->v = xgrow(c->v, c->n, &c->cap, sizeof(*c->v));
	c->v[c->n] = (struct counter){.key = key, .t_us = -1};
	c->next = 0;
	return &c->v[c->n++];
}

void counters_emit(struct counters *c, struct emit *o, const struct counter_metric *m, double value,
		   const struct emit_tag *tag)
{
	struct counter *k;

	if (value >= ALL_ONES) {
		emit_missing(o, m->total ? m->total : m->per_s, "not supported", tag);
		return;
	}
	if (m->total)
		emit_value(o, m->total, value * m->scale, tag);
	if (!m->per_s || tag->t_us < 0)
		return;
	k = find(c, key_of(m, tag));
	if (!k) {
		emit_bad(o, "more counters than this probe follows");
		return;
	}
	if (k->t_us >= 0 && tag->t_us > k->t_us) {
		if (value < k->value)
			emit_missing(o, m->per_s, "reset", tag);
		else
			emit_value(o, m->per_s,
				   (value - k->value) * m->scale * 1e6 /
					   (double)(tag->t_us - k->t_us),
				   tag);
	}
	k->value = value;
	k->t_us = tag->t_us;
}

void counters_free(struct counters *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->v[i].key);
	free(c->v);
	*c = (struct counters){0};
}
