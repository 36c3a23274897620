/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A store of nights for tests: two workloads over 60 nights, a driver that made one slower on the
 * 41st (regression 1, confirmed, with causes), a suspect, one that was closed, and names that would
 * script a page or a terminal. And a year of as many series as wanted, for measurements.
 */
#ifndef FETTLE_TESTS_UNIT_NIGHTS_SAMPLE_H
#define FETTLE_TESTS_UNIT_NIGHTS_SAMPLE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/history.h"
#include "experiments/regress.h"
#include "orchestrator/base/str.h"
#include "orchestrator/report/nights.h"

#define NIGHTS_HOSTILE "<script>alert(1)</script>\"'&\033[31m"
#define NIGHTS_NOW_US  1796000000000000

enum { SAMPLE_NIGHTS = 60, SAMPLE_CHANGE = 40 };

static inline char *sample_text(const char *s)
{
	return (char *)(uintptr_t)s;
}

static inline void sample_must(int rc, const struct err *e)
{
	if (rc < 0) {
		fprintf(stderr, "nights_sample: %s\n", e->text);
		abort();
	}
}

/* A number in [-1, 1) that looks random and is the same everywhere. */
static inline double sample_noise(uint64_t a, uint64_t b)
{
	uint64_t x = a * 0x9e3779b97f4a7c15u + b * 0xbf58476d1ce4e5b9u;

	x ^= x >> 31;
	x *= 0x94d049bb133111ebu;
	x ^= x >> 29;
	return (double)(x >> 11) / 4503599627370496.0 - 1;
}

static inline void sample_night(int i, char out[11])
{
	regress_night(regress_day("2026-10-01") + i, out);
}

static inline int64_t sample_series(struct db *db, enum series_source source, const char *workload,
				    enum series_role role, const char *metric, const char *unit,
				    enum better better)
{
	struct series_row s = {
		.source = source,
		.workload = sample_text(workload),
		.config = sample_text(source == SERIES_CANARY ? "00ffe1d2c3b4a596" : ""),
		.place = sample_text(source == SERIES_CANARY ? "gpu" : ""),
		.role = role,
		.metric = sample_text(metric),
		.stat = sample_text("mean"),
		.unit = sample_text(unit),
		.better = better,
		.min_effect = 0.02,
	};
	struct err e = {0};

	sample_must(history_series_put(db, &s, NIGHTS_NOW_US, &e), &e);
	return s.id;
}

static inline int64_t sample_environment(struct db *db, const char *driver, const char *commit)
{
	struct err e = {0};
	char text[256];
	int64_t id = 0;

	snprintf(
		text, sizeof text,
		"{\"git\":\"%s\",\"kernel\":\"6.1.0-31\",\"nccl\":\"2.28.9\",\"nvidia_driver\":\"%s\"}",
		commit, driver);
	sample_must(history_environment_put(db, text, &id, &e), &e);
	return id;
}

static inline void sample_point(struct db *db, int64_t series, int night, double a, double b,
				int64_t environment)
{
	struct replicate v[] = {{a, "n1,n2"}, {b, "n1,n3"}};
	struct err e = {0};
	char text[11];

	sample_night(night, text);
	sample_must(history_point_put(db, series, text, NIGHTS_NOW_US + night * 86400000000LL, v, 2,
				      environment, 0, false, NULL, &e),
		    &e);
}

static inline int64_t sample_regression(struct db *db, struct regression_row r)
{
	struct err e = {0};
	int64_t id = 0;

	r.found_us = r.state_us = NIGHTS_NOW_US;
	sample_must(history_regression_add(db, &r, &id, &e), &e);
	return id;
}

static inline void sample_change(struct db *db, struct change_row c)
{
	struct err e = {0};
	int64_t id = 0;

	c.found_us = NIGHTS_NOW_US;
	sample_must(history_change_add(db, &c, &id, &e), &e);
}

/* Numbers of the series: 1, 2, 3 step time (current, reference, pair), 4 bus bandwidth, 5 of a
 * hostile name, 6 imported with a step nobody tracks. */
static inline void sample_points(struct db *db)
{
	int64_t id[6], environment[3];

	id[0] = sample_series(db, SERIES_CANARY, "gpt-ddp", SERIES_CURRENT, "step_time_ms", "ms",
			      BETTER_DOWN);
	id[1] = sample_series(db, SERIES_CANARY, "gpt-ddp", SERIES_REFERENCE, "step_time_ms", "ms",
			      BETTER_DOWN);
	id[2] = sample_series(db, SERIES_CANARY, "gpt-ddp", SERIES_PAIR, "step_time_ms", "1",
			      BETTER_DOWN);
	id[3] = sample_series(db, SERIES_CANARY, "gpt-ddp", SERIES_CURRENT, "busbw_gb_per_s",
			      "GB/s", BETTER_UP);
	id[4] = sample_series(db, SERIES_IMPORTED, NIGHTS_HOSTILE, SERIES_CURRENT, "loss", "1",
			      BETTER_DOWN);
	id[5] = sample_series(db, SERIES_IMPORTED, "loader", SERIES_CURRENT,
			      "throughput_samples_per_s", "samples/s", BETTER_UP);
	environment[0] = sample_environment(db, "550.90", "1a2b3c4");
	environment[1] = sample_environment(db, "550.90", "<b>5d6e7f8");
	environment[2] = sample_environment(db, "570.12", "<b>5d6e7f8");
	for (int i = 0; i < SAMPLE_NIGHTS; i++) {
		int64_t env = environment[(i >= 25) + (i >= SAMPLE_CHANGE)];
		double slow = i >= SAMPLE_CHANGE ? 1.052 : 1, u = (unsigned)i;

		for (int s = 0; s < 6 && i % 13 != 7; s++) {
			double x = sample_noise((unsigned)s, (unsigned)i * 2u),
			       y = sample_noise((unsigned)s, (unsigned)i * 2u + 1);
			double level = s == 0   ? 400 * slow
				       : s == 1 ? 400
				       : s == 2 ? slow
				       : s == 3 ? 310 / (slow * slow)
				       : s == 4 ? 2.5 - u * 0.001
						: (i >= 30 ? 1840 : 2000);

			sample_point(db, id[s], i, level * (1 + 0.006 * x), level * (1 + 0.006 * y),
				     s < 4 ? env : 0);
		}
	}
}

static inline void sample_confirmed(struct db *db)
{
	static const struct cause_row causes[] = {
		{1, CAUSE_ENVIRONMENT, (char *)(uintptr_t) "nvidia_driver",
		 (char *)(uintptr_t) "550.90", (char *)(uintptr_t) "570.12", 0.93, false,
		 (char *)(uintptr_t) "changed in these nights; 3 of 3 series that have it moved"},
		{2, CAUSE_NODE, (char *)(uintptr_t) "n3", NULL, NULL, 0.2, false,
		 (char *)(uintptr_t) "blocks on it moved by +5.4 %, the others by +5.1 %"},
		{3, CAUSE_METRIC, (char *)(uintptr_t) "busbw_gb_per_s", (char *)(uintptr_t) "310",
		 (char *)(uintptr_t) "280", 0.1, false,
		 (char *)(uintptr_t) "-9.6 % in the same night"},
	};
	struct err e = {0};
	int64_t id = sample_regression(db,
				       (struct regression_row){.kind = REGRESSION_WORSE,
							       .level = CHANGE_CONFIRMED,
							       .night = "2026-11-10",
							       .found_night = "2026-11-11",
							       .confirmed_night = "2026-11-12"});
	struct change_row c = {
		.regression = id,
		.night = "2026-11-10",
		.first_night = "2026-11-10",
		.last_night = "2026-11-11",
		.direction = CHANGE_WORSE,
		.level = CHANGE_CONFIRMED,
		.p = 0.0004,
		.why = sample_text("4 blocks with nvidia_driver as before: current +5.1 % "
				   "[+4.6, +5.6], p 0.0004"),
	};

	c.series = 1, c.est = 0.052, c.lo = 0.047, c.hi = 0.057;
	sample_change(db, c);
	c.series = 3, c.est = 0.051, c.lo = 0.046, c.hi = 0.056;
	sample_change(db, c);
	c.series = 4, c.est = -0.096, c.lo = -0.11, c.hi = -0.08;
	sample_change(db, c);
	sample_must(history_causes_put(db, id, causes, 3, &e), &e);
}

static inline void sample_others(struct db *db)
{
	int64_t id = sample_regression(db, (struct regression_row){.kind = REGRESSION_WORSE,
								   .level = CHANGE_SUSPECT,
								   .night = "2026-11-28",
								   .found_night = "2026-11-29"});
	struct change_row c = {.regression = id,
			       .series = 5,
			       .night = "2026-11-28",
			       .first_night = "2026-11-27",
			       .last_night = "2026-11-28",
			       .direction = CHANGE_WORSE,
			       .level = CHANGE_SUSPECT,
			       .est = 0.023,
			       .lo = NAN,
			       .hi = NAN,
			       .p = NAN};

	sample_change(db, c);
	id = sample_regression(db, (struct regression_row){.kind = REGRESSION_BETTER,
							   .level = CHANGE_CONFIRMED,
							   .state = REGRESSION_ACCEPTED,
							   .night = "2026-10-12",
							   .found_night = "2026-10-12",
							   .confirmed_night = "2026-10-13",
							   .who = sample_text("ana"),
							   .note = sample_text(NIGHTS_HOSTILE)});
	c.regression = id, c.series = 2, c.est = -0.021, c.lo = -0.03, c.hi = -0.012;
	memcpy(c.night, "2026-10-12", 11);
	memcpy(c.first_night, "2026-10-12", 11);
	memcpy(c.last_night, "2026-10-12", 11);
	c.direction = CHANGE_BETTER, c.level = CHANGE_CONFIRMED;
	sample_change(db, c);
}

static inline void sample_put(struct db *db)
{
	struct err e = {0};

	sample_must(db_begin(db, "sample of nights", &e), &e);
	sample_points(db);
	sample_confirmed(db);
	sample_others(db);
	sample_must(db_commit(db, &e), &e);
}

/* So many series over so many nights, with a regression every tenth night. */
static inline void sample_year(struct db *db, int series, int nights)
{
	struct err e = {0};

	sample_must(db_begin(db, "a year of nights", &e), &e);
	for (int s = 0; s < series; s++) {
		char name[32];
		int64_t id, env[2] = {sample_environment(db, "550.90", "1a2b3c4"),
				      sample_environment(db, "570.12", "1a2b3c4")};

		snprintf(name, sizeof name, "workload-%02d", s / 4);
		id = sample_series(db, SERIES_CANARY, name,
				   s % 4 < 3 ? (enum series_role)(s % 4) : SERIES_CURRENT,
				   s % 4 < 3 ? "step_time_ms" : "busbw_gb_per_s",
				   s % 4 == 2 ? "1" : "ms", BETTER_DOWN);
		for (int i = 0; i < nights; i++) {
			double v = 400 * (1 + 0.01 * sample_noise((unsigned)s, (unsigned)i)) *
				   (i >= nights * 2 / 3 && s % 7 == 0 ? 1.05 : 1);

			sample_point(db, id, i, v, v * 1.001, env[i >= nights * 2 / 3]);
		}
	}
	for (int i = 0; i < nights / 10; i++) {
		struct regression_row r = {.kind = REGRESSION_WORSE,
					   .level = i % 3 ? CHANGE_SUSPECT : CHANGE_CONFIRMED,
					   .state = i % 5 ? REGRESSION_DISMISSED : REGRESSION_OPEN};
		struct change_row c = {.direction = CHANGE_WORSE,
				       .level = r.level,
				       .est = 0.05,
				       .lo = 0.04,
				       .hi = 0.06,
				       .p = 0.001};
		char night[11];

		sample_night(i * 10, night);
		memcpy(r.night, night, sizeof night);
		memcpy(r.found_night, night, sizeof night);
		memcpy(c.night, night, sizeof night);
		memcpy(c.first_night, night, sizeof night);
		memcpy(c.last_night, night, sizeof night);
		c.regression = sample_regression(db, r);
		for (c.series = 1 + i % 5; c.series <= series; c.series += 20)
			sample_change(db, c);
	}
	sample_must(db_commit(db, &e), &e);
}

#endif
