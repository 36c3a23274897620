/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <time.h>

#include "orchestrator/base/clock.h"

/* Not time(): it reads the second of the last tick, which may be the one before. */
static int64_t real_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void the_system_clock_counts_microseconds(void **state)
{
	int64_t before = real_us(), now = clock_utc_us(&clock_system), after = real_us();
	int64_t m0 = clock_mono_us(&clock_system), m1 = clock_mono_us(&clock_system);

	(void)state;
	assert_true(now >= before);
	assert_true(now <= after);
	assert_true(m1 >= m0);
}

static void a_virtual_clock_stands_still(void **state)
{
	struct clock_virtual v = {.utc_us = 1000, .mono_us = 5};
	struct clock c = clock_virtual_of(&v);

	(void)state;
	assert_int_equal(clock_utc_us(&c), 1000);
	assert_int_equal(clock_utc_us(&c), 1000);
	clock_advance(&v, 250);
	assert_int_equal(clock_utc_us(&c), 1250);
	assert_int_equal(clock_mono_us(&c), 255);
}

static void iso_dates(void **state)
{
	char out[21], small[20];

	(void)state;
	clock_iso(0, out, sizeof out);
	assert_string_equal(out, "1970-01-01T00:00:00Z");
	clock_iso(INT64_C(1795958504999999), out, sizeof out);
	assert_string_equal(out, "2026-11-29T13:21:44Z");
	clock_iso(INT64_C(1709164800000000), out, sizeof out);
	assert_string_equal(out, "2024-02-29T00:00:00Z");
	clock_iso(-1, out, sizeof out); /* rounds down, as dates do */
	assert_string_equal(out, "1969-12-31T23:59:59Z");
	clock_iso(0, small, sizeof small);
	assert_string_equal(small, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_system_clock_counts_microseconds),
		cmocka_unit_test(a_virtual_clock_stands_still),
		cmocka_unit_test(iso_dates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
