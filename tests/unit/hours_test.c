/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/hours.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/str.h"

static int64_t at(const char *text)
{
	int64_t us = 0;
	struct err e = {0};

	assert_ok(hours_moment(text, &us, &e));
	return us;
}

static struct hours_state state_at(const char *hours, const char *when)
{
	struct strv v = {0};
	struct hours_state s;

	strv_add(&v, hours);
	hours_at(&v, at(when), &s);
	strv_free(&v);
	return s;
}

static void assert_time(int64_t us, const char *iso)
{
	char text[32];

	clock_iso(us, text, sizeof text);
	assert_string_equal(text, iso);
}

static void test_a_night_that_passes_midnight(void **state)
{
	static const char night[] = "22:00-06:00 Europe/Berlin";

	(void)state;
	/* Berlin is one hour ahead of UTC in December. */
	assert_time(state_at(night, "2026-12-01 12:00 UTC").opens_us, "2026-12-01T21:00:00Z");
	assert_false(state_at(night, "2026-12-01 20:59 UTC").open);
	assert_true(state_at(night, "2026-12-01 21:00 UTC").open);
	assert_time(state_at(night, "2026-12-01 21:00 UTC").closes_us, "2026-12-02T05:00:00Z");
	assert_time(state_at(night, "2026-12-02 04:59 UTC").closes_us, "2026-12-02T05:00:00Z");
	assert_false(state_at(night, "2026-12-02 05:00 UTC").open);
}

/* In 2026 clocks change on 29 March and 25 October: the nights last 7 and 9 hours. */
static void test_both_nights_of_the_clock_change(void **state)
{
	static const char night[] = "22:00-06:00 Europe/Berlin";
	struct hours_state s;

	(void)state;
	s = state_at(night, "2026-03-28 22:30 Europe/Berlin");
	assert_time(s.closes_us, "2026-03-29T04:00:00Z");
	assert_int_equal((s.closes_us - at("2026-03-28 22:00 Europe/Berlin")) / 3600000000, 7);
	s = state_at(night, "2026-10-24 22:30 Europe/Berlin");
	assert_time(s.closes_us, "2026-10-25T05:00:00Z");
	assert_int_equal((s.closes_us - at("2026-10-24 22:00 Europe/Berlin")) / 3600000000, 9);
}

static void test_days_belong_to_the_evening(void **state)
{
	static const char nights[] = "Mon-Fri 22:00-06:00 UTC";

	(void)state;
	/* 2026-11-27 is a Friday */
	assert_true(state_at(nights, "2026-11-27 23:00 UTC").open);
	assert_true(state_at(nights, "2026-11-28 05:00 UTC").open);
	assert_false(state_at(nights, "2026-11-28 23:00 UTC").open);
	assert_time(state_at(nights, "2026-11-28 23:00 UTC").opens_us, "2026-11-30T22:00:00Z");
	assert_false(state_at(nights, "2026-11-30 05:00 UTC").open);
	/* a range over the end of the week */
	assert_true(state_at("Sat-Mon,Wed 10:00-11:00 UTC", "2026-11-29 10:30 UTC").open);
	assert_true(state_at("Sat-Mon,Wed 10:00-11:00 UTC", "2026-11-25 10:30 UTC").open);
	assert_false(state_at("Sat-Mon,Wed 10:00-11:00 UTC", "2026-11-24 10:30 UTC").open);
}

static void test_hours_that_touch_are_one(void **state)
{
	struct strv v = {0}, none = {0}, site = {0};
	struct hours_state s;

	(void)state;
	strv_add(&v, "Sat 00:00-24:00 UTC");
	strv_add(&v, "Sun 00:00-24:00 UTC");
	strv_add(&v, "Fri 18:00-24:00 UTC");
	hours_at(&v, at("2026-11-27 19:00 UTC"), &s);
	assert_time(s.closes_us, "2026-11-30T00:00:00Z");
	hours_at(&none, at("2026-11-27 19:00 UTC"), &s);
	assert_true(s.open);
	assert_true(s.closes_us == INT64_MAX);
	/* the site's hours and the campaign's */
	strv_add(&site, "20:00-04:00 UTC");
	hours_both_at(&v, &site, at("2026-11-27 21:00 UTC"), &s);
	assert_true(s.open);
	assert_time(s.closes_us, "2026-11-28T04:00:00Z");
	hours_both_at(&v, &site, at("2026-11-29 12:00 UTC"), &s);
	assert_false(s.open);
	assert_time(s.opens_us, "2026-11-29T20:00:00Z");
	hours_both_at(&v, &site, at("2026-11-30 12:00 UTC"), &s);
	assert_time(s.opens_us, "2026-12-04T20:00:00Z");
	strv_free(&site);
	strv_free(&v);
	/* hours that never meet */
	strv_add(&v, "10:00-11:00 UTC");
	strv_add(&site, "12:00-13:00 UTC");
	hours_both_at(&v, &site, at("2026-11-30 12:00 UTC"), &s);
	assert_false(s.open);
	assert_int_equal(s.opens_us, 0);
	strv_free(&site);
	strv_free(&v);
}

static void test_bad_texts(void **state)
{
	static const char *const bad[] = {"",
					  "22:00",
					  "22:00-",
					  "25:00-06:00",
					  "22:00-06:60",
					  "22-6",
					  "22:00-22:00",
					  "Mom 22:00-06:00",
					  "Mon22:00-06:00",
					  "24:00-06:00",
					  "Mon- 22:00-06:00",
					  "22:00-06:00 Europe/Berlim",
					  "22:00-06:00 ../../etc/passwd",
					  "22:00-06:00 /etc/localtime",
					  "22:00-06:00x"};
	struct hours h;
	int64_t us;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err e = {0};

		if (hours_parse(bad[i], &h, &e) != -ERR_RECIPE)
			fail_msg("accepted: %s", bad[i]);
		assert_contains(e.text, bad[i]);
	}
	assert_int_equal(hours_moment("2026-13-01 06:00", &us, NULL), -ERR_RECIPE);
	assert_int_equal(hours_moment("2026-12-01", &us, NULL), -ERR_RECIPE);
	assert_int_equal(hours_moment("2026-12-01 06:00 Mars/Base", &us, NULL), -ERR_RECIPE);
	assert_int_equal(hours_moment("soon", &us, NULL), -ERR_RECIPE);
}

/* The process's own zone is as it was. */
static void test_the_environment_is_left_alone(void **state)
{
	char text[64];
	struct strv v = {0};

	(void)state;
	setenv("TZ", "America/New_York", 1);
	tzset();
	(void)state_at("22:00-06:00 Europe/Berlin", "2026-12-01 12:00 UTC");
	assert_string_equal(getenv("TZ"), "America/New_York");
	assert_string_equal(tzname[0], "EST");
	strv_add(&v, "22:00-06:00");
	hours_text(&v, at("2026-12-01 12:00 UTC"), text, sizeof text);
	assert_string_equal(text, "2026-12-01 07:00");
	strv_add(&v, "22:00-06:00 Europe/Berlin");
	hours_text(&v, at("2026-12-01 12:00 UTC"), text, sizeof text);
	assert_string_equal(text, "2026-12-01 13:00 Europe/Berlin");
	strv_free(&v);
	unsetenv("TZ");
}

static const char *night_at(const char *hours, const char *when, char opens[32])
{
	static struct hours_night n;
	struct strv v = {0};

	if (*hours)
		strv_add(&v, hours);
	assert_true(hours_night_at(&v, at(when), &n));
	clock_iso(n.opens_us, opens, 32);
	strv_free(&v);
	return n.night;
}

static void test_a_night_is_the_date_on_which_its_window_opens(void **state)
{
	static const char hours[] = "22:00-06:00 Europe/Berlin";
	char opens[32];

	(void)state;
	assert_string_equal(night_at(hours, "2026-11-29 23:30 Europe/Berlin", opens), "2026-11-29");
	assert_string_equal(night_at(hours, "2026-11-30 02:00 Europe/Berlin", opens), "2026-11-29");
	assert_string_equal(opens, "2026-11-29T21:00:00Z");
	/* closed: that of the next opening */
	assert_string_equal(night_at(hours, "2026-11-30 06:00 Europe/Berlin", opens), "2026-11-30");
	/* a date is local to the window: 01:00 in Berlin is still the day before in UTC */
	assert_string_equal(night_at("00:30-06:00 Europe/Berlin", "2026-11-29 23:45 UTC", opens),
			    "2026-11-30");
	/* month and year pass */
	assert_string_equal(night_at(hours, "2027-01-01 03:00 Europe/Berlin", opens), "2026-12-31");
	assert_string_equal(night_at("Mon 22:00-06:00 UTC", "2026-12-01 03:00 UTC", opens),
			    "2026-11-30");
	assert_string_equal(night_at("Mon 22:00-06:00 UTC", "2026-12-01 07:00 UTC", opens),
			    "2026-12-07");
	/* whole days are nights of their own */
	assert_string_equal(night_at("Sat,Sun 00:00-24:00 UTC", "2026-12-06 13:00 UTC", opens),
			    "2026-12-06");
}

/* On 29 March 02:30 is skipped, on 25 October it comes twice. */
static void test_nights_of_both_clock_changes(void **state)
{
	static const char *const hours[] = {"22:00-06:00 Europe/Berlin",
					    "02:30-05:00 Europe/Berlin"};
	char opens[32];

	(void)state;
	assert_string_equal(night_at(hours[0], "2026-03-29 01:30 Europe/Berlin", opens),
			    "2026-03-28");
	assert_string_equal(night_at(hours[0], "2026-03-29 03:30 Europe/Berlin", opens),
			    "2026-03-28");
	assert_string_equal(night_at(hours[0], "2026-10-25 00:30 UTC", opens), "2026-10-24");
	assert_string_equal(night_at(hours[0], "2026-10-25 01:30 UTC", opens), "2026-10-24");
	assert_string_equal(opens, "2026-10-24T20:00:00Z");
	assert_string_equal(night_at(hours[1], "2026-03-29 04:30 Europe/Berlin", opens),
			    "2026-03-29");
	assert_string_equal(night_at(hours[1], "2026-10-25 04:30 Europe/Berlin", opens),
			    "2026-10-25");
}

static void test_without_hours_a_night_lasts_from_noon_to_noon(void **state)
{
	char opens[32];

	(void)state;
	setenv("TZ", "Europe/Berlin", 1);
	tzset();
	assert_string_equal(night_at("", "2026-11-29 22:00 Europe/Berlin", opens), "2026-11-29");
	assert_string_equal(night_at("", "2026-11-30 11:59 Europe/Berlin", opens), "2026-11-29");
	assert_string_equal(night_at("", "2026-11-30 12:00 Europe/Berlin", opens), "2026-11-30");
	assert_string_equal(night_at("", "2026-03-29 11:00 Europe/Berlin", opens), "2026-03-28");
	assert_string_equal(opens, "2026-03-28T11:00:00Z");
	unsetenv("TZ");
	tzset();
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_a_night_that_passes_midnight),
		cmocka_unit_test(test_a_night_is_the_date_on_which_its_window_opens),
		cmocka_unit_test(test_nights_of_both_clock_changes),
		cmocka_unit_test(test_without_hours_a_night_lasts_from_noon_to_noon),
		cmocka_unit_test(test_both_nights_of_the_clock_change),
		cmocka_unit_test(test_days_belong_to_the_evening),
		cmocka_unit_test(test_hours_that_touch_are_one),
		cmocka_unit_test(test_bad_texts),
		cmocka_unit_test(test_the_environment_is_left_alone),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
