/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Equality of floating-point results, for the tests of experiments/. Include check.h before. */
#ifndef FETTLE_TESTS_UNIT_NEAR_H
#define FETTLE_TESTS_UNIT_NEAR_H

#include <math.h>

/* |got - want| <= tolerance; false for NAN. */
#define assert_near(got, want, tolerance)                                       \
	do {                                                                    \
		double got_ = (got), want_ = (want);                            \
		if (!(fabs(got_ - want_) <= (tolerance)))                       \
			fail_msg("%s is %.17g, want %.17g", #got, got_, want_); \
	} while (0)

#endif
