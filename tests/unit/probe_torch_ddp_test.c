/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_torch_ddp;

static void check_fact_of(const struct findings *f, int rank, const char *key, const char *text)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].rank == rank && strcmp(f->v[i].name, key) == 0) {
			assert_true(f->v[i].is_fact);
			assert_string_equal(f->v[i].text, text);
			return;
		}
	fail_msg("rank %d says nothing of %s", rank, key);
}

/* PyTorch 1.13 of Debian, two ranks over gloo, their steps in between. */
static void test_two_ranks(void **state)
{
	struct findings f = findings_fixture(&probe_torch_ddp, "torch-ddp-1.13.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	for (int rank = 0; rank < 2; rank++) {
		check_fact_of(&f, rank, "ddp.gradient_as_bucket_view", "true");
		check_fact_of(&f, rank, "ddp.find_unused_parameters", "false");
		check_fact_of(&f, rank, "ddp.bucket_cap_bytes", "5242880");
		check_fact_of(&f, rank, "ddp.bucket_cap_mb", "5");
		check_fact_of(&f, rank, "ddp.backend_name", "gloo");
		check_fact_of(&f, rank, "ddp.world_size", "2");
	}
	findings_free(&f);
}

/* The form of PyTorch 2, behind torchrun's own prefix; what follows the list is not of it. */
static void test_prefixed(void **state)
{
	static const char text[] =
		"[rank1]:[I1129 16:37:24.947 logger.cpp:213] [Rank 1]: DDP Initialized with: \n"
		"bucket_cap_bytes: 104857600\n"
		"static_graph: 0\n"
		"step 1 loss 5.7: done\n"
		"world_size: 9\n";
	struct findings f = findings_text(&probe_torch_ddp, text);

	(void)state;
	check_fact_of(&f, 1, "ddp.bucket_cap_mb", "100");
	check_fact_of(&f, 1, "ddp.static_graph", "false");
	assert_int_equal(f.n, 3);
	findings_free(&f);
	f = findings_text(&probe_torch_ddp, "bucket_cap_bytes: 104857600\n");
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
}

/* A list in one line, as builds before 1.9 had it: nothing is told rather than half of it. */
static void test_one_line(void **state)
{
	struct findings f = findings_text(
		&probe_torch_ddp,
		"I0226 19:12:47.109243 28184 logger.cpp:140] [Rank 1]: DDP Initialized with:\n"
		"world_size: 2 module_name: Linear device_ids: 1 backend_name: nccl\n"
		"bucket_cap_mb: 25\n");

	(void)state;
	check_status(&f, PROBE_ABSENT);
	assert_int_equal(f.n, 0);
	findings_free(&f);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_two_ranks),
		cmocka_unit_test(test_one_line),
		cmocka_unit_test(test_prefixed),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
