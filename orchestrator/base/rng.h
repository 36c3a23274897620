/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counter-based random numbers: a value is a pure function of a seed and a few named counters, so
 * that a resumed campaign draws what the first run would have drawn. XXH3-64 over these
 * five numbers. */
#ifndef FETTLE_BASE_RNG_H
#define FETTLE_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t seed, a, b, c, i; /* i counts the draws */
};
struct rng rng_at(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);
uint64_t rng_u64(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n);        /* unbiased; n >= 1 */
double rng_uniform(struct rng *r);                    /* [0, 1) */
double rng_normal(struct rng *r);                     /* mean 0, sd 1 */
void rng_shuffle(struct rng *r, size_t *v, size_t n); /* Fisher-Yates */

#endif
