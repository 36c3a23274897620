/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of what a probe found: their bounds and their sums; the look is tested by the command. */
#include "tests/unit/probe_check.h"

#include "orchestrator/cmd/listing.h"

/* What the listing prints, heap. */
static char *printed(const struct listing *l)
{
	char *text = NULL;
	size_t n = 0;
	FILE *was = stdout, *f = open_memstream(&text, &n);

	assert_non_null(f);
	stdout = f;
	listing_print(l);
	stdout = was;
	fclose(f);
	return text;
}

static struct probe_value value_of(const char *metric, double v, int64_t step)
{
	return (struct probe_value){.metric = metric,
				    .value = v,
				    .step = step,
				    .t_us = -1,
				    .rank = -1,
				    .local_rank = -1,
				    .host = "",
				    .raw = ""};
}

static void test_series(void **state)
{
	struct listing *l = listing_new();
	struct probe_value v = value_of("loss", 3, 1);
	struct kv label = {(char *)(uintptr_t) "phase", (char *)(uintptr_t) "fwd"};

	(void)state;
	listing_value(l, &v);
	v.value = 1;
	listing_value(l, &v);
	v.value = 2;
	listing_value(l, &v);
	v.missing = "nan";
	listing_value(l, &v);
	v = value_of("phase_time_ms", 7.5, -1);
	v.labels = &label;
	v.n_labels = 1;
	listing_value(l, &v);
	_cleanup_free_ char *text = printed(l);

	char want[200];

	snprintf(want, sizeof(want), "%-24s %7d %12s %12s %12s %12s    (1 without a value: nan)\n",
		 "loss", 3, "2", "1", "3", "2");
	assert_non_null(strstr(text, want));
	snprintf(want, sizeof(want), "%-24s %7d %12s %12s %12s %12s  ms\n",
		 "phase_time_ms{phase=fwd}", 1, "7.5", "-", "-", "-");
	assert_non_null(strstr(text, want));
	listing_free(l);
}

static void test_bounds(void **state)
{
	struct listing *l = listing_new();
	char name[64];

	(void)state;
	for (int i = 0; i < 3000; i++) {
		struct probe_fact f = {.key = "k", .text = name, .rank = -1, .host = ""};

		snprintf(name, sizeof(name), "text %d", i % 2500);
		listing_fact(l, &f);
	}
	for (int i = 0; i < 3; i++)
		listing_ignored(l, &(struct probe_ignored){"cut", 4, "raw\x1b[31m"});
	_cleanup_free_ char *text = printed(l);

	/* 2,000 are kept, 500 came again, 500 and their repetition did not fit. */
	assert_non_null(strstr(text, "not listed: 500 more than this table holds"));
	assert_non_null(strstr(text, "ignored: 3 times: cut; line 4: raw\\x1b[31m\n"));
	assert_null(strchr(text, 0x1b));
	listing_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_series),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
