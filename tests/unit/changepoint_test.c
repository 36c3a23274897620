/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Change points: against Apache Otava on the reference series of $FETTLE_CHANGEPOINTS (default
 * ../shared/changepoints, read in place; without it that test has nothing to read), on constructed
 * series whose results are derived by hand, and properties on drawn series.
 */
#include "experiments/changepoint.h"

#include <float.h>
#include <math.h>
#include <unistd.h>

#include "experiments/stats.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/rng.h"
#include "tests/unit/check.h"
#include "tests/unit/near.h"

enum { MOST = 10000 };

static double values[MOST];
static struct cp_point points[MOST];

static size_t detect(size_t n, const struct cp_params *p)
{
	return cp_detect(values, n, p, points);
}

/* -- the reference series ------------------------------------------------------------------ */

static const char *reference(void)
{
	const char *dir = getenv("FETTLE_CHANGEPOINTS");

	return dir ? dir : "../shared/changepoints";
}

/* "index,value" lines after a head line. */
static size_t read_csv(const char *path)
{
	struct buf text = {0};
	struct err e;
	size_t n = 0;
	char *rest, *line;

	assert_ok(fs_read(path, 1 << 20, &text, &e));
	rest = strchr(text.data, '\n') + 1;
	while ((line = strsep(&rest, "\n")) && *line) {
		assert_true(n < MOST && strchr(line, ','));
		assert_true(str_to_double(strchr(line, ',') + 1, &values[n++]));
	}
	buf_free(&text);
	return n;
}

struct otava {
	double index, p, before, after; /* means: NAN when not stated */
};

static struct otava stated(const struct json *w)
{
	if (json_type(w) == JSON_ARRAY)
		return (struct otava){json_number(json_at(w, 0), -1),
				      json_number(json_at(w, 1), -1), NAN, NAN};
	return (struct otava){json_number(json_get(w, "index"), -1),
			      json_number(json_get(w, "p"), -1),
			      json_number(json_get(w, "mean_before"), NAN),
			      json_number(json_get(w, "mean_after"), NAN)};
}

static bool close_to(double got, double want)
{
	return isnan(want) || fabs(got - want) <= 1e-9 * fabs(want);
}

struct tally {
	size_t sets, changes, stale;
};

/* The same indexes and the same p, be it stale. Where Otava's means are not ours its p is stale
 * (statistics.md 1.6 a): ours are always those between the neighbours. */
static void same_points(struct tally *t, const char *name, const char *key, const struct json *want,
			size_t got)
{
	t->sets++;
	if (got != json_len(want))
		fail_msg("%s, %s: %zu change points, Otava has %zu", name, key, got,
			 json_len(want));
	for (size_t i = 0; i < got; i++) {
		struct otava o = stated(json_at(want, i));

		if (o.index != (double)points[i].index || !close_to(points[i].p, o.p))
			fail_msg("%s, %s: %zu with p %g, Otava has %g with p %g", name, key,
				 points[i].index, points[i].p, o.index, o.p);
		t->changes++;
		t->stale += !close_to(points[i].mean_before, o.before) ||
			    !close_to(points[i].mean_after, o.after);
	}
}

static void one_series(struct tally *t, const char *folder, const struct json *series)
{
	static const struct {
		const char *key;
		size_t window;
		double p_max, min_magnitude;
	} sets[] = {{"otava_default_w50_p0.001_M0", 50, 0.001, 0},
		    {"otava_w30_p0.01_M0.05", 30, 0.01, 0.05},
		    {"otava_w50_p0.0001_M0.02", 50, 0.0001, 0.02}};
	const char *name = json_key(series);
	_cleanup_free_ char *path = xasprintf("%s/%s%s.csv", reference(), folder, name);
	size_t n = read_csv(path);

	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		const struct json *want = json_get(series, sets[i].key);
		struct cp_params p = cp_otava;

		p.window = sets[i].window;
		p.p_max = sets[i].p_max;
		p.min_magnitude = sets[i].min_magnitude;
		if (want)
			same_points(t, name, sets[i].key, want, detect(n, &p));
	}
}

static void one_list(struct tally *t, const char *folder, const char *file)
{
	_cleanup_free_ char *path = xasprintf("%s/%s%s", reference(), folder, file);
	_cleanup_(json_freep) struct json *all = NULL;
	struct err e;

	assert_ok(json_read_file(path, 1 << 20, &all, &e));
	for (const struct json *s = json_first(all); s; s = json_next(s))
		one_series(t, folder, s);
}

/* No series differs, not even where values are rounded: the ties among them go the same way. */
static void the_reference_series_have_otavas_change_points(void **state)
{
	struct tally t = {0};

	(void)state;
	if (access(reference(), R_OK) == 0) {
		one_list(&t, "", "expected.json");
		one_list(&t, "synthetic/", "expected_synthetic.json");
		assert_int_equal(t.sets, 78);
		print_message("%zu sets, %zu change points, %zu stale in Otava\n", t.sets,
			      t.changes, t.stale);
	}
}

/* -- derived by hand ----------------------------------------------------------------------- */

/* Means 2 and 12, sums of squares 2 and 2. Otava: sp^2 = (2 * 2/3 + 2 * 2/3) / 4 = 2/3, t = 10 /
 * sqrt(2/3 * 2/3) = 15 with 4 df. Sample variances: sp^2 = 1, t = 10 / sqrt(2/3). With 4 df p = 1 -
 * sin a (1 + cos^2 a / 2), tan a = t / 2. */
static double p_with_4_df(double t)
{
	double a = atan(t / 2);

	return 1 - sin(a) * (1 + cos(a) * cos(a) / 2);
}

static void a_step_of_six_points(void **state)
{
	static const double v[] = {1, 2, 3, 11, 12, 13};
	struct cp_params p = cp_otava;

	(void)state;
	memcpy(values, v, sizeof(v));
	assert_int_equal(detect(6, &p), 1);
	assert_int_equal(points[0].index, 3);
	assert_near(points[0].p, p_with_4_df(15), 1e-14);
	assert_near(points[0].mean_before, 2, 1e-15);
	assert_near(points[0].mean_after, 12, 1e-14);
	assert_near(points[0].shift, 5, 1e-14);
	/* Welch: variances 1 / 3 and 1 / 3, 4 df; t.975 = 2.776445 */
	assert_near(points[0].hi, (10 + 2.776445 * sqrt(2.0 / 3)) / 2, 1e-6);
	assert_near(points[0].lo, (10 - 2.776445 * sqrt(2.0 / 3)) / 2, 1e-6);
	/* residual sum of squares 4 at 3; at 2 and 4: 0.5 + 38.7; bound 4 exp(7.352 / 6) = 13.6 */
	assert_int_equal(points[0].first, 3);
	assert_int_equal(points[0].last, 3);
	p.sample_variance = true;
	assert_int_equal(detect(6, &p), 1);
	assert_near(points[0].p, p_with_4_df(10 / sqrt(2.0 / 3)), 1e-14);
	p.min_segment = 4;
	assert_int_equal(detect(6, &p), 0);
}

/* No scatter on either side: certain where the level moves, nothing where it does not. */
static void levels_without_scatter(void **state)
{
	const struct cp_params *const sets[] = {&cp_otava, &cp_strict};

	(void)state;
	for (size_t i = 0; i < 30; i++)
		values[i] = i < 10 ? 0.7 : i < 20 ? 1.4 : 0.7;
	for (size_t k = 0; k < 2; k++) {
		assert_int_equal(detect(30, sets[k]), 2);
		for (size_t i = 0; i < 2; i++) {
			assert_int_equal(points[i].index, 10 * (i + 1));
			assert_int_equal(points[i].first, points[i].index);
			assert_int_equal(points[i].last, points[i].index);
			assert_true(points[i].p < 1e-100); /* but for rounding it is 0 */
			assert_near(points[i].shift, i ? -0.5 : 1, 1e-12);
			assert_near(points[i].lo, points[i].shift, 1e-12);
			assert_near(points[i].hi, points[i].shift, 1e-12);
		}
	}
	for (size_t i = 0; i < 30; i++)
		values[i] = 0.1; /* sums of 7 and of 13 of it have other means in the last bit */
	assert_int_equal(detect(30, &cp_otava), 0);
	assert_int_equal(detect(30, &cp_strict), 0);
}

/* 1.5 % is significant and too small; so is what raises its own minimum. */
static void a_small_change_is_no_change(void **state)
{
	struct cp_params p = cp_strict;

	(void)state;
	for (size_t i = 0; i < 40; i++)
		values[i] = (i < 20 ? 100 : 101.5) + (double)(i % 2) * 0.1;
	assert_int_equal(detect(40, &cp_otava), 1);
	assert_int_equal(detect(40, &cp_strict), 0);
	p.min_magnitude = 0.01;
	assert_int_equal(detect(40, &p), 1);
	assert_near(points[0].shift, 101.55 / 100.05 - 1, 1e-6);
}

/* -- missing and odd values ---------------------------------------------------------------- */

/* Nights 8 to 11 are missing: the change came after night 7, by night 12. */
static void missing_nights_are_left_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < 24; i++)
		values[i] = (i < 10 ? 100 : 90) + (double)(i % 3) * 0.2;
	values[0] = values[23] = NAN;
	values[8] = NAN;
	values[9] = INFINITY;
	values[10] = -INFINITY;
	values[11] = NAN;
	for (size_t k = 0; k < 2; k++) {
		assert_int_equal(detect(24, k ? &cp_strict : &cp_otava), 1);
		assert_int_equal(points[0].index, 12);
		assert_int_equal(points[0].first, 8);
		assert_int_equal(points[0].last, 12);
	}
	assert_int_equal(cp_suspects(values, 24, 10, points), 0); /* nights 13 to 22 */
	assert_int_equal(cp_suspects(values, 24, 11, points), 1);
	assert_int_equal(points[0].index, 12);
}

static void short_series_have_none(void **state)
{
	static const double two[] = {1, 1000};

	(void)state;
	for (size_t n = 0; n <= 2; n++) {
		assert_int_equal(cp_detect(two, n, &cp_otava, points), 0);
		assert_int_equal(cp_detect(two, n, &cp_strict, points), 0);
		assert_int_equal(cp_suspects(two, n, 2, points), 0);
	}
	for (size_t i = 0; i < 50; i++)
		values[i] = NAN;
	assert_int_equal(detect(50, &cp_otava), 0);
	assert_int_equal(detect(50, &cp_strict), 0);
	values[20] = 1;
	values[30] = 2;
	assert_int_equal(detect(50, &cp_otava), 0);
	assert_int_equal(detect(50, &cp_strict), 0);
}

/* Logarithms are out of reach: differences, as a share of the size of the mean before. */
static void zero_and_negative_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < 40; i++)
		values[i] = (i < 20 ? -100 : -90) + (double)(i % 2);
	assert_int_equal(detect(40, &cp_strict), 1);
	assert_int_equal(points[0].index, 20);
	assert_near(points[0].mean_before, -99.5, 1e-12);
	assert_near(points[0].shift, 10 / 99.5, 1e-12);
	assert_true(points[0].lo < points[0].shift && points[0].shift < points[0].hi);
	for (size_t i = 0; i < 40; i++)
		values[i] = i < 20 ? 0 : -3;
	for (size_t k = 0; k < 2; k++) {
		assert_int_equal(detect(40, k ? &cp_strict : &cp_otava), 1);
		assert_true(isinf(points[0].shift) && points[0].shift < 0);
		assert_true(points[0].lo == points[0].shift && points[0].hi == points[0].shift);
		assert_near(points[0].mean_after, -3, 1e-12);
	}
}

static void sums_never_overflow(void **state)
{
	const double scales[] = {DBL_MAX / 2, DBL_MIN, 1e-320};

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(scales); k++) {
		for (size_t i = 0; i < 40; i++)
			values[i] = (i < 20 ? 1 : 0.5) * scales[k];
		for (size_t j = 0; j < 2; j++) {
			assert_int_equal(detect(40, j ? &cp_strict : &cp_otava), 1);
			assert_int_equal(points[0].index, 20);
			assert_near(points[0].shift, -0.5, 1e-3);
			assert_true(isfinite(points[0].mean_before) && points[0].mean_before > 0);
		}
	}
}

/* -- properties on drawn series ------------------------------------------------------------ */

enum noise { FLAT, STEPS, ROUNDED, JUMPY, NOISES };

/* Series number i of a kind, its length too. */
static size_t draw(enum noise kind, uint64_t i)
{
	struct rng r = rng_at(20261129, kind, i, 0);
	size_t n = 5 + rng_below(&r, 216);
	double level = 100;

	for (size_t j = 0; j < n; j++) {
		if (kind != FLAT && rng_below(&r, kind == JUMPY ? 4 : 25) == 0)
			level *= exp(0.08 * rng_normal(&r));
		values[j] = level * exp(0.02 * rng_normal(&r));
		if (kind == ROUNDED)
			values[j] = round(values[j]);
	}
	return n;
}

static void every_point_is_well_formed(void **state)
{
	struct cp_params sets[] = {cp_otava, cp_strict, cp_strict};

	(void)state;
	sets[2].p_max = 0.2; /* so much is weak that windows find neighbours */
	sets[2].window = 10;
	sets[2].min_magnitude = 0;
	for (uint64_t i = 0; i < 600; i++) {
		size_t n = draw((enum noise)(i % NOISES), i), least = sets[i % 3].min_segment;
		size_t found = detect(n, &sets[i % 3]), before = 0;

		for (size_t k = 0; k < found; k++) {
			const struct cp_point *c = &points[k];

			assert_true(c->index >= before + least && c->index + least <= n);
			assert_true(before < c->first && c->first <= c->index);
			assert_true(c->index <= c->last && c->last < n);
			assert_true(k + 1 == found || c->last < points[k + 1].index);
			assert_true(c->p >= 0 && c->p < sets[i % 3].p_max);
			assert_true(c->lo <= c->shift && c->shift <= c->hi);
			assert_near(c->shift, c->mean_after / c->mean_before - 1, 1e-12);
			assert_true(fabs(c->shift) > sets[i % 3].min_magnitude / 1.02 ||
				    i % 3 == 0);
			before = c->index;
		}
	}
}

/* Another unit gives the same change points; rounded values tie, and ties must not hang on the last
 * bit of a sum. */
static void the_unit_does_not_matter(void **state)
{
	static struct cp_point other[MOST];
	const double units[] = {0.1, 1.0 / 3, 1e9 / 7};
	size_t compared = 0;

	(void)state;
	for (uint64_t i = 0; i < 400; i++) {
		const struct cp_params *p = i % 8 < 4 ? &cp_otava : &cp_strict;
		size_t n = draw((enum noise)(i % NOISES), i), found = detect(n, p);

		for (size_t j = 0; j < n; j++)
			values[j] *= units[i % 3];
		assert_int_equal(cp_detect(values, n, p, other), found);
		for (size_t k = 0; k < found; k++, compared++) {
			assert_int_equal(other[k].index, points[k].index);
			assert_int_equal(other[k].first, points[k].first);
			assert_int_equal(other[k].last, points[k].last);
			assert_near(other[k].p, points[k].p, 1e-9);
			assert_near(other[k].shift, points[k].shift, 1e-9);
		}
	}
	assert_true(compared > 200);
}

/* On logs a power of the values stretches everything alike. */
static void on_logs_the_spread_does_not_matter(void **state)
{
	struct cp_params p = cp_strict;
	static struct cp_point other[MOST];

	(void)state;
	p.min_magnitude = 0;
	for (uint64_t i = 0; i < 100; i++) {
		size_t n = draw(STEPS, i), found = detect(n, &p);

		for (size_t j = 0; j < n; j++)
			values[j] = pow(values[j], 3);
		assert_int_equal(cp_detect(values, n, &p, other), found);
		for (size_t k = 0; k < found; k++) {
			assert_int_equal(other[k].index, points[k].index);
			assert_near(other[k].p, points[k].p, 1e-9);
			assert_near(log1p(other[k].shift), 3 * log1p(points[k].shift), 1e-9);
		}
	}
}

/* The search is not symmetric (its left end is fixed, its right end free), a clear step is. */
static void a_clear_step_is_found_from_both_sides(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 50; i++) {
		struct rng r = rng_at(3, i, 0, 0);
		size_t at = 10 + rng_below(&r, 20);

		for (size_t j = 0; j < 40; j++)
			values[j] = (j < at ? 100 : 150) * exp(0.002 * rng_normal(&r));
		assert_int_equal(detect(40, &cp_strict), 1);
		assert_int_equal(points[0].index, at);
		for (size_t j = 0; j < 20; j++) {
			double swap = values[j];

			values[j] = values[39 - j];
			values[39 - j] = swap;
		}
		assert_int_equal(detect(40, &cp_strict), 1);
		assert_int_equal(points[0].index, 40 - at);
	}
}

/* 400 analyses of 100 flat points each: of cp_otava .064 fire, of cp_strict .003 to .005
 * (statistics.md 5.2), so 26 and 1 to 2. */
static void a_flat_series_rarely_fires(void **state)
{
	size_t otava = 0, strict = 0;

	(void)state;
	for (uint64_t i = 0; i < 400; i++) {
		struct rng r = rng_at(4, i, 0, 0);

		for (size_t j = 0; j < 100; j++)
			values[j] = 100 * exp(0.02 * rng_normal(&r));
		otava += detect(100, &cp_otava) > 0;
		strict += detect(100, &cp_strict) > 0;
	}
	assert_in_range(otava, 10, 46);
	assert_in_range(strict, 0, 7);
}

static void suspicions_are_the_end_of_the_full_analysis(void **state)
{
	static struct cp_point got[MOST];
	size_t fired = 0;

	(void)state;
	for (uint64_t i = 0; i < 300; i++) {
		size_t n = draw(STEPS, i), newest = i % 60, found = detect(n, &cp_otava), old = 0;

		while (old < found && points[old].index + newest < n)
			old++;
		assert_int_equal(cp_suspects(values, n, newest, got), found - old);
		assert_memory_equal(got, points + old, (found - old) * sizeof(*got));
		fired += found > old;
	}
	assert_in_range(fired, 20, 280);
}

/* A step of 5 % at night 50 of 70, noise 2 %: found in nearly all; the interval of the shift and
 * the range of the night hold the truth in 95 % of them, less three standard errors. */
static void intervals_hold_the_truth(void **state)
{
	size_t found = 0, shift = 0, night = 0, nights = 0;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		struct rng r = rng_at(5, i, 0, 0);

		for (size_t j = 0; j < 70; j++)
			values[j] = (j < 50 ? 100 : 95) * exp(0.02 * rng_normal(&r));
		if (detect(70, &cp_strict) != 1)
			continue;
		found++;
		shift += points[0].lo <= -0.05 && -0.05 <= points[0].hi;
		night += points[0].first <= 50 && 50 <= points[0].last;
		nights += points[0].last - points[0].first + 1;
	}
	assert_true(found > 900);
	assert_true((double)shift > 0.929 * (double)found);
	assert_true((double)night > 0.929 * (double)found);
	assert_true(nights < 6 * found); /* 3.6 on average: it says something */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_reference_series_have_otavas_change_points),
		cmocka_unit_test(a_step_of_six_points),
		cmocka_unit_test(levels_without_scatter),
		cmocka_unit_test(a_small_change_is_no_change),
		cmocka_unit_test(missing_nights_are_left_out),
		cmocka_unit_test(short_series_have_none),
		cmocka_unit_test(zero_and_negative_values),
		cmocka_unit_test(sums_never_overflow),
		cmocka_unit_test(every_point_is_well_formed),
		cmocka_unit_test(the_unit_does_not_matter),
		cmocka_unit_test(on_logs_the_spread_does_not_matter),
		cmocka_unit_test(a_clear_step_is_found_from_both_sides),
		cmocka_unit_test(a_flat_series_rarely_fires),
		cmocka_unit_test(suspicions_are_the_end_of_the_full_analysis),
		cmocka_unit_test(intervals_hold_the_truth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
