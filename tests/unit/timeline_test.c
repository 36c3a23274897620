/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/rng.h"

enum { MAIN = 1, LOADER = 2 };

static void kernel(struct timeline *t, int64_t a, int64_t b)
{
	timeline_add_gpu(t, TIMELINE_COMPUTE, a, b, 0);
}

/* Each part of a step by hand, the events added in no order. */
static void test_parts(void **state)
{
	struct timeline *t = timeline_new();
	const struct timeline_row *r;
	size_t n;

	(void)state;
	kernel(t, 70000, 75000);
	timeline_add_gpu(t, TIMELINE_COMM, 40000, 60000, 1);
	kernel(t, 30000, 50000);
	timeline_add_gpu(t, TIMELINE_PAGEABLE, 22000, 26000, 0);
	timeline_add_gpu(t, TIMELINE_COPY, 75000, 76000, 0);
	timeline_add_step(t, 8, 100000, 200000, MAIN, 90);
	timeline_add_step(t, 7, 0, 100000, MAIN, 20);
	timeline_add_host(t, TIMELINE_SYNC, 74000, 77000, MAIN);
	timeline_add_host(t, TIMELINE_ALLOC, 60000, 68000, MAIN);
	timeline_add_host(t, TIMELINE_LAUNCH, 27000, 29000, MAIN);
	timeline_add_host(t, TIMELINE_DATA, 100000, 110000, MAIN);
	timeline_add_host(t, TIMELINE_DATA, 0, 20000, MAIN);
	timeline_add_host(t, TIMELINE_DATA, 60000, 99000, LOADER); /* prefetching is not waiting */
	kernel(t, 120000, 190000);
	timeline_add_gpu(t, TIMELINE_PINNED, 180000, 195000, 0);
	timeline_finish(t);
	r = timeline_rows(t, &n);
	assert_int_equal(n, 2);
	assert_int_equal(r[0].number, 7);
	assert_int_equal(r[0].line, 20);
	assert_int_equal(r[0].wall_ns, 100000);
	assert_int_equal(r[0].compute_ns, 25000);
	assert_int_equal(r[0].comm_ns, 20000);
	assert_int_equal(r[0].comm_exposed_ns, 10000);
	assert_int_equal(r[0].copy_exposed_ns, 5000);
	assert_int_equal(r[0].pageable_ns, 4000);
	assert_int_equal(r[0].idle_ns, 60000);
	assert_int_equal(r[0].data_gap_ns, 20000);
	assert_int_equal(r[0].alloc_gap_ns, 8000);
	assert_int_equal(r[0].sync_gap_ns, 24000);
	assert_int_equal(r[0].launch_gap_ns, 8000);
	assert_int_equal(r[0].data_ns, 20000);
	assert_int_equal(r[0].kernels, 3);
	assert_int_equal(r[0].short_kernels, 1);
	assert_int_equal(r[0].alloc_calls, 1);
	assert_int_equal(r[0].alloc_ns, 8000);
	assert_int_equal(r[1].idle_ns, 25000);
	assert_int_equal(r[1].data_gap_ns, 10000);
	assert_int_equal(r[1].sync_gap_ns, 10000); /* the same gap goes on into the next step */
	assert_int_equal(r[1].launch_gap_ns, 5000);
	assert_int_equal(r[1].pinned_ns, 15000);
	assert_int_equal(r[1].copy_exposed_ns, 5000);
	assert_int_equal(timeline_sum(t)->idle_ns, 85000);
	assert_int_equal(timeline_whole(t)->wall_ns, 195000 - 22000);
	assert_int_equal(timeline_whole(t)->idle_ns, 4000 + 10000 + 44000);
	assert_true(timeline_saw_calls(t) && timeline_has_steps(t) && !timeline_cut(t));
	timeline_free(t);
}

/* The parts of each step add up to it, whatever the intervals are. */
static void test_adds_up(void **state)
{
	struct rng rng = rng_at(7, 1, 0, 0);

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct timeline *t = timeline_new();
		const struct timeline_row *r;
		int64_t busy = 0;
		size_t n;

		for (int i = 0; i < 40; i++) {
			int64_t at = (int64_t)(rng_u64(&rng) % 1000),
				len = (int64_t)(rng_u64(&rng) % 60);

			timeline_add_gpu(t, (enum timeline_gpu)(rng_u64(&rng) % TIMELINE_GPU_N), at,
					 at + len, 0);
			at = (int64_t)(rng_u64(&rng) % 1000);
			timeline_add_host(t, (enum timeline_host)(rng_u64(&rng) % TIMELINE_HOST_N),
					  at, at + len, MAIN);
		}
		for (int64_t k = 0; k < (int64_t)(rng_u64(&rng) % 5); k++)
			timeline_add_step(t, k, 100 + 200 * k, 280 + 210 * k, MAIN, 0);
		timeline_finish(t);
		r = timeline_rows(t, &n);
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(r[i].compute_ns + r[i].comm_exposed_ns +
						 r[i].copy_exposed_ns + r[i].idle_ns,
					 r[i].wall_ns);
			assert_int_equal(r[i].data_gap_ns + r[i].alloc_gap_ns + r[i].sync_gap_ns +
						 r[i].launch_gap_ns,
					 r[i].idle_ns);
			assert_true(r[i].launch_gap_ns >= 0 && r[i].sync_gap_ns >= 0);
			assert_true(r[i].data_gap_ns <= r[i].data_ns);
			if (i)
				assert_true(r[i].start_ns >= r[i - 1].end_ns);
		}
		r = timeline_whole(t);
		busy = r->compute_ns + r->comm_exposed_ns + r->copy_exposed_ns;
		assert_int_equal(busy + r->idle_ns, r->wall_ns);
		timeline_free(t);
	}
}

static void test_steps(void **state)
{
	struct timeline *t = timeline_new();
	const struct timeline_row *r;
	size_t n;

	(void)state;
	timeline_add_step(t, 3, 0, 100, MAIN, 1);
	timeline_add_step(t, 3, 2, 99, LOADER, 2);  /* told twice */
	timeline_add_step(t, 4, 90, 200, MAIN, 3);  /* overlaps */
	timeline_add_step(t, 9, 120, 130, MAIN, 4); /* inside */
	timeline_add_step(t, 4, 300, 310, MAIN, 5); /* a new epoch counts anew */
	timeline_add_step(t, 5, 400, 400, MAIN, 6); /* empty */
	timeline_finish(t);
	r = timeline_rows(t, &n);
	assert_int_equal(n, 3);
	assert_int_equal(r[0].end_ns, 90);
	assert_int_equal(r[1].number, 4);
	assert_int_equal(r[1].end_ns, 200);
	assert_int_equal(r[2].start_ns, 300);
	assert_int_equal(timeline_whole(t)->wall_ns, 0);
	timeline_free(t);
	t = timeline_new();
	timeline_add_step(t, -1, 50, 60, MAIN, 0);
	timeline_add_step(t, -1, 10, 20, MAIN, 0);
	timeline_finish(t);
	r = timeline_rows(t, &n);
	assert_int_equal(r[0].number, 0);
	assert_int_equal(r[1].number, 1);
	assert_int_equal(r[1].start_ns, 50);
	timeline_free(t);
}

/* Nothing at all, only a device, only waiting for data. */
static void test_little(void **state)
{
	struct timeline *t = timeline_new();
	const struct timeline_row *r;
	size_t n;

	(void)state;
	timeline_finish(t);
	(void)timeline_rows(t, &n);
	assert_int_equal(n, 0);
	timeline_free(t);
	t = timeline_new();
	kernel(t, 10, 20);
	kernel(t, 9, 4); /* ends before it starts */
	kernel(t, 30, 40);
	timeline_finish(t);
	r = timeline_rows(t, &n);
	assert_int_equal(n, 1);
	assert_int_equal(r[0].number, -1);
	assert_int_equal(r[0].wall_ns, 30);
	assert_int_equal(r[0].idle_ns, 10);
	assert_false(timeline_has_steps(t) || timeline_saw_calls(t));
	timeline_free(t);
	t = timeline_new();
	timeline_add_host(t, TIMELINE_DATA, 10, 20, MAIN);
	timeline_add_host(t, TIMELINE_DATA, 40, 50, LOADER);
	timeline_finish(t);
	r = timeline_rows(t, &n);
	assert_int_equal(n, 1);
	assert_int_equal(r[0].wall_ns, 40);
	assert_int_equal(r[0].data_ns, 20);
	assert_true(timeline_saw(t, TIMELINE_DATA));
	timeline_free(t);
}

/* More host calls than are kept: said, not silent. */
static void test_bounded(void **state)
{
	struct timeline *t = timeline_new();

	(void)state;
	timeline_add_step(t, 1, 0, 4 * (int64_t)TIMELINE_HOST_MAX, MAIN, 0);
	for (int64_t i = 0; i < TIMELINE_HOST_MAX; i++)
		timeline_add_host(t, TIMELINE_ALLOC, 2 * i, 2 * i + 1, MAIN);
	assert_false(timeline_cut(t));
	timeline_add_host(t, TIMELINE_LAUNCH, 0, 1, MAIN); /* not kept at all */
	assert_false(timeline_cut(t));
	timeline_add_host(t, TIMELINE_SYNC, 0, 1, MAIN);
	assert_true(timeline_cut(t));
	timeline_finish(t);
	assert_int_equal(timeline_sum(t)->alloc_calls, TIMELINE_HOST_MAX);
	timeline_free(t);
}

/* Rank 1 is late to the first collective of step 5: rank 0 and 2 wait inside theirs. Rank 2 lacks
 * one of key 8, so that those are not compared. */
static void test_straggler(void **state)
{
	struct timeline *r[3];
	struct timeline_wait w[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		r[i] = timeline_new();
		timeline_add_step(r[i], 5, 0, 1000, MAIN, 0);
		timeline_add_step(r[i], 6, 1000, 2000, MAIN, 0);
		timeline_add_gpu(r[i], TIMELINE_COMM, i == 1 ? 400 : 100, 450, 7);
		timeline_add_gpu(r[i], TIMELINE_COMM, 500, 520, 7);
		timeline_add_gpu(r[i], TIMELINE_COMM, 1500, i == 2 ? 1530 : 1520, 7);
		if (i != 2)
			timeline_add_gpu(r[i], TIMELINE_COMM, 1600, 1600 + i, 8);
		timeline_finish(r[i]);
	}
	timeline_compare(r, 3, w);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(w[i].matched, 3);
		assert_int_equal(w[i].wall_ns, 2000);
		timeline_free(r[i]);
	}
	assert_int_equal(w[0].wait_ns, 300);
	assert_int_equal(w[1].wait_ns, 0);
	assert_int_equal(w[2].wait_ns, 310);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),   cmocka_unit_test(test_adds_up),
		cmocka_unit_test(test_steps),   cmocka_unit_test(test_little),
		cmocka_unit_test(test_bounded), cmocka_unit_test(test_straggler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
