/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/rng.h"

#include <math.h>
#include <xxhash.h>

struct rng rng_at(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
	return (struct rng){.seed = seed, .a = a, .b = b, .c = c};
}

uint64_t rng_u64(struct rng *r)
{
	const uint64_t words[] = {r->seed, r->a, r->b, r->c, r->i++};
	unsigned char key[sizeof words];

	for (size_t k = 0; k < sizeof key; k++) /* little-endian on every machine */
		key[k] = (unsigned char)(words[k / 8] >> (k % 8 * 8));
	return XXH3_64bits(key, sizeof key);
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
	uint64_t skip = -n % n; /* 2^64 mod n: values under it would make the low ones likelier */
	uint64_t v;

	do
		v = rng_u64(r);
	while (v < skip);
	return v % n;
}

double rng_uniform(struct rng *r)
{
	return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

double rng_normal(struct rng *r)
{
	/* Box and Muller 1958; one of the pair is dropped so that there is no state but the
	 * counter. */
	double radius = sqrt(-2.0 * log(1.0 - rng_uniform(r)));

	return radius * cos(2.0 * M_PI * rng_uniform(r));
}

void rng_shuffle(struct rng *r, size_t *v, size_t n)
{
	for (size_t i = n; i > 1; i--) {
		size_t j = (size_t)rng_below(r, i);
		size_t t = v[i - 1];

		v[i - 1] = v[j];
		v[j] = t;
	}
}
