/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One draw of a confirm stage in which nothing helps, judged by decide_stat() itself with the
 * pooled variance: what the table experiments/pstar.def is made from, and what its test derives
 * entries from again. */
#ifndef FETTLE_TESTS_BENCH_PSTAR_SIM_H
#define FETTLE_TESTS_BENCH_PSTAR_SIM_H

#include <math.h>

#include "experiments/decide.h"
#include "experiments/stats.h"
#include "orchestrator/base/rng.h"

enum { PSTAR_LOOKS = 10, PSTAR_BLOCKS = 24 };
/* No bound that we ask for is above this, so larger p need not be computed. */
#define PSTAR_KEEP 0.06

/* Runs have variance 1, so differences have 2 and the screen's SSR is chi-square with df0. A draw
 * and its mirror image are two: least[0][l] and least[1][l] get the smallest p of a gain over the
 * looks 0..l, or 1 when it is above PSTAR_KEEP. */
static inline void pstar_draw(struct rng *r, size_t df0, double least[2][PSTAR_LOOKS])
{
	double d[PSTAR_BLOCKS], ssr = 0, so_far[2] = {1, 1};
	const size_t *blocks;
	size_t looks = decide_looks(MODE_LONG, &blocks);

	for (size_t i = 0; i + 1 < df0; i += 2)
		ssr -= 2 * log(1 - rng_uniform(r));
	if (df0 % 2) {
		double z = rng_normal(r);

		ssr += z * z;
	}
	for (size_t j = 0; j < PSTAR_BLOCKS; j++)
		d[j] = sqrt(2) * rng_normal(r);
	for (size_t l = 0; l < looks; l++) {
		struct decide_stat st = decide_stat(ssr, df0, d, blocks[l]);
		size_t mirrored = st.est < 0;

		/* z(0.06) is 1.555, and t needs to be larger still. */
		if (fabs(st.est) > 1.55 * st.se_pooled) {
			double p = stats_t_p_greater(fabs(st.est), st.se_pooled, st.df);

			if (p <= PSTAR_KEEP)
				so_far[mirrored] = fmin(so_far[mirrored], p);
		}
		least[0][l] = so_far[0];
		least[1][l] = so_far[1];
	}
}

#endif
