/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <math.h>

#include "orchestrator/base/rng.h"

/* A stored campaign is replayed from its seed: these values may never change. */
static void values_are_pinned(void **state)
{
	struct rng r = rng_at(1, 2, 3, 4);

	(void)state;
	assert_true(rng_u64(&r) == UINT64_C(0xa7257989d0fabed4));
	assert_true(rng_u64(&r) == UINT64_C(0xb9487738fcbd159c));
	assert_true(rng_u64(&r) == UINT64_C(0xfd091b4cb33e0f62));
	assert_int_equal(r.i, 3);
	r = rng_at(0, 0, 0, 0);
	assert_true(rng_u64(&r) == UINT64_C(0x114ddfda264d5aa9));
}

static void derived_values_are_pinned(void **state)
{
	static const size_t expected[] = {0, 5, 6, 2, 1, 4, 3, 7};
	size_t v[] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct rng r = rng_at(42, 0, 0, 7);

	(void)state;
	assert_true(rng_uniform(&r) == 0.65519394871107783);
	/* libm may differ in the last bit */
	assert_true(fabs(rng_normal(&r) + 0.88231362013815839) < 1e-12);
	r = rng_at(7, 1, 1, 1);
	rng_shuffle(&r, v, ARRAY_LEN(v));
	assert_memory_equal(v, expected, sizeof v);
}

static void a_draw_depends_on_its_counters_only(void **state)
{
	struct rng a = rng_at(9, 1, 2, 3), b = rng_at(9, 1, 2, 3);

	(void)state;
	rng_u64(&a);
	rng_u64(&a);
	b.i = 2; /* resumed */
	assert_true(rng_u64(&a) == rng_u64(&b));
	a = rng_at(9, 1, 2, 3);
	b = rng_at(9, 2, 1, 3);
	assert_true(rng_u64(&a) != rng_u64(&b));
}

/* Chi-square over 6 cells, 5 degrees of freedom; fixed seed, so it cannot fail by chance. */
static void below_is_even(void **state)
{
	struct rng r = rng_at(5, 0, 0, 0);
	double chi2 = 0;
	int count[6] = {0};

	(void)state;
	for (int i = 0; i < 60000; i++) {
		uint64_t v = rng_below(&r, 6);

		assert_true(v < 6);
		count[v]++;
	}
	for (int i = 0; i < 6; i++)
		chi2 += (count[i] - 10000.0) * (count[i] - 10000.0) / 10000.0;
	assert_true(chi2 < 15.09); /* 99 % */
	assert_int_equal(rng_below(&r, 1), 0);
	assert_true(rng_below(&r, UINT64_MAX) < UINT64_MAX);
}

static void normal_has_mean_0_and_sd_1(void **state)
{
	struct rng r = rng_at(6, 0, 0, 0);
	double sum = 0, squares = 0;
	enum { N = 50000 };

	(void)state;
	for (int i = 0; i < N; i++) {
		double u = rng_uniform(&r), v = rng_normal(&r);

		assert_true(u >= 0 && u < 1);
		assert_true(isfinite(v));
		sum += v;
		squares += v * v;
	}
	assert_true(fabs(sum / N) < 0.015);
	assert_true(fabs(squares / N - 1) < 0.02);
}

static void shuffle_keeps_every_element(void **state)
{
	size_t v[100];
	struct rng r = rng_at(8, 0, 0, 0);
	size_t sum = 0, moved = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		v[i] = i;
	rng_shuffle(&r, v, ARRAY_LEN(v));
	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		sum += v[i];
		moved += v[i] != i;
	}
	assert_int_equal(sum, 4950);
	assert_true(moved > 80);
	rng_shuffle(&r, v, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_pinned),
		cmocka_unit_test(derived_values_are_pinned),
		cmocka_unit_test(a_draw_depends_on_its_counters_only),
		cmocka_unit_test(below_is_even),
		cmocka_unit_test(normal_has_mean_0_and_sd_1),
		cmocka_unit_test(shuffle_keeps_every_element),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
