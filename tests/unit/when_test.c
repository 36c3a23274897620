/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/when.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "orchestrator/base/mem.h"

static void test_dates(void **state)
{
	/* Right values from date -u -d. */
	static const struct {
		const char *text;
		int64_t us;
	} t[] = {
		{"2026/11/28 02:14:07.112", 1795832047112000},
		{"2026-11-28 02:14:07,5", 1795832047500000},
		{"2026-11-28 02:14:07", 1795832047000000},
		{"2026-11-28T02:14:07Z", 1795832047000000},
		{"2026-11-28T02:14:07+0000", 1795832047000000},
		{"2026-11-28T03:14:07.000001+01:00", 1795832047000001},
		{"2026-11-27T20:44:07-0530", 1795832047000000},
		{"11/28/26 02:14:07", 1795832047000000},
		{"11/28/2026 02:14:07", 1795832047000000},
		{"28.11.2026 02:14:07", 1795832047000000},
		{"11/28/2026 02:14:07 AM", 1795832047000000},
		{"11/28/26 02:14:07 pm", 1795875247000000},
		{"11/28/2026 12:14:07 AM", 1795824847000000},
		{"11/28/2026 12:14:07 PM", 1795868047000000},
		{"11/28/2026 13:14:07 PM", -1},
		{"11/28/2026 02:14:07 XM", -1},
		{"2024-02-29 00:00:00", 1709164800000000},
		{"1970-01-01 00:00:00", 0},
		{"2026-02-29 00:00:00", -1},
		{"2026-13-01 00:00:00", -1},
		{"2026-11-28", -1},
		{"2026-11-28 02:14", -1},
		{"2026-11-28 24:14:00", -1},
		{"2026-11-28 02:14:07 x", -1},
		{"02:14:07", -1},
		{"", -1},
		{"1", -1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		if (when_parse(span_of(t[i].text)) != t[i].us)
			fail_msg("%s: %lld", t[i].text, (long long)when_parse(span_of(t[i].text)));
}

static void test_stamps(void **state)
{
	static const struct {
		const char *text;
		int64_t us;
	} t[] = {
		{"# 2026-11-28 02:14:07", 1795832047000000},
		{"=== 2026-11-28T02:14:07Z ===", 1795832047000000},
		{"1795832047", 1795832047000000},
		{"1795832047.25", 1795832047250000},
		{"Sat Nov 28 02:14:07 UTC 2026", 1795832047000000},
		{"Sat Nov  8 02:14:07 2026", 1794104047000000},
		{"Sat 28 Nov 2026 02:14:07 PM UTC", 1795875247000000},
		{"Sat 28 Nov 02:14:07 UTC 2026", 1795832047000000},
		{"Sat Nov 28 02:14:07 AM UTC 2026", 1795832047000000},
		{"Sat Nov 28 02:14:07 to be 2026", -1},
		{"1970-01-01 00:00:00+01:00", -1},
		{"179583204", -1},
		{"17958320471", -1},
		{"1795832047 x", -1},
		{"Sat Foo 28 02:14:07 UTC 2026", -1},
		{"Sat Nov 28 02:14:07 UTC 2026 x", -1},
		{"Sat Nov 31 02:14:07 UTC 2026", -1},
		{"eth0: 5", -1},
		{"", -1},
		{"---", -1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		if (when_stamp(span_of(t[i].text)) != t[i].us)
			fail_msg("%s: %lld", t[i].text, (long long)when_stamp(span_of(t[i].text)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dates),
		cmocka_unit_test(test_stamps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
