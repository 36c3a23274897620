/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Byte 0: parameters, byte 1: how the rest is read: as doubles, or a byte a value. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/changepoint.h"
#include "orchestrator/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static struct cp_params params_of(uint8_t flags)
{
	static const size_t windows[] = {0, 2, 7, 50};
	struct cp_params p = flags & 1 ? cp_strict : cp_otava;

	p.window = windows[flags >> 1 & 3];
	p.min_segment = flags >> 3 & 3;
	p.logs ^= flags >> 5 & 1;
	p.p_max = flags & 64 ? 0.4 : p.p_max;
	p.merge_fix ^= flags >> 7;
	return p;
}

static size_t values_of(const uint8_t *data, size_t size, bool doubles, double *v)
{
	if (doubles) {
		memcpy(v, data, size / sizeof(*v) * sizeof(*v));
		return size / sizeof(*v);
	}
	for (size_t i = 0; i < size; i++)
		v[i] = data[i] == 255 ? NAN : (double)data[i] - 3;
	return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { MOST = 2000 };
	static double v[MOST];
	static struct cp_point points[MOST];
	struct cp_params p;
	size_t n, found, before = 0;

	if (size < 2 || size > MOST)
		return 0;
	p = params_of(data[0]);
	n = values_of(data + 2, size - 2, data[1] & 1, v);
	found = cp_detect(v, n, &p, points);
	for (size_t k = 0; k < found; k++) {
		const struct cp_point *c = &points[k];

		check(c->index > before && c->index < n && isfinite(v[c->index]));
		check(before < c->first && c->first <= c->index);
		check(c->index <= c->last && c->last < n);
		check(c->p >= 0 && c->p < p.p_max);
		check(isfinite(c->mean_before) && isfinite(c->mean_after));
		check(c->lo <= c->shift && c->shift <= c->hi);
		before = c->index;
	}
	found = cp_detect(v, n, &cp_otava, points);
	check(cp_suspects(v, n, n, points) == found);
	return 0;
}
