/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules of experiments/regress.h one by one, and what they err by where nothing happened. */
#include <math.h>

#include "experiments/regress.h"
#include "orchestrator/base/rng.h"
#include "tests/unit/check.h"
#include "tests/unit/near.h"

static void test_nights(void **state)
{
	char night[11];

	(void)state;
	assert_int_equal(regress_day("1970-01-01"), 0);
	assert_int_equal(regress_day("2026-11-29"), 20786);
	assert_int_equal(regress_day("2024-02-29") + 1, regress_day("2024-03-01"));
	for (int64_t day = -400; day < 40000; day += 17) {
		regress_night(day, night);
		assert_int_equal(regress_day(night), day);
	}
	assert_true(regress_day(NULL) == INT64_MIN);
	assert_true(regress_day("") == INT64_MIN);
	assert_true(regress_day("2026-02-29") == INT64_MIN);
	assert_true(regress_day("2026-13-01") == INT64_MIN);
	assert_true(regress_day("2026-1-01x") == INT64_MIN);
	assert_true(regress_day("2026-11-29 ") == INT64_MIN);
}

static void test_scale(void **state)
{
	const double up[] = {1, M_E, 1}, zero[] = {1, 0, 2};
	double y[3];

	(void)state;
	assert_true(regress_scale(up, 3, y));
	assert_near(y[1], 1, 1e-12);
	assert_false(regress_scale(zero, 3, y));
	assert_near(y[2], 2, 0);
	assert_near(regress_relative(log(1.1), 5, true), 0.1, 1e-12);
	assert_near(regress_relative(-1, -4, false), -0.25, 1e-12);
	assert_true(isinf(regress_relative(1, 0, false)));
	assert_near(regress_relative(0, 0, false), 0, 0);
}

static void test_level_before(void **state)
{
	const double y[] = {1, 2, 3, 2, 1, 2, 3, 2, 40};
	const double same[] = {5, 5, 5, 7};
	struct regress_noise b = regress_noise(y, 9);
	const double back[] = {2.5, 1.5}, half[] = {2.5, 6};

	(void)state;
	assert_int_equal(b.n, 8);
	assert_near(b.mean, 2, 1e-12);
	/* equal values have no scale by which another one would be far off */
	assert_int_equal(regress_noise(same, 4).n, 4);
	assert_true(isnan(regress_noise(y, 1).sd));
	assert_true(regress_fresh_p(&b, 8, 1, 1) < 0.001);
	assert_true(regress_fresh_p(&b, 8, 1, -1) > 0.999);
	assert_near(regress_fresh_p(&b, 2, 3, 1), 0.5, 1e-9);
	assert_true(regress_back(&b, 8, back, 2));
	assert_false(regress_back(&b, 8, half, 2));
	assert_false(regress_back(&b, 8, back, 0));
	assert_true(regress_gone(&b, 8, 20, back, 2));
	/* so near to the noise that two nights prove nothing */
	assert_false(regress_gone(&b, 3, 20, back, 2));
}

/* A step is seen by medians, one value that is far off is not. */
static void test_step(void **state)
{
	double y[40];
	struct rng r = rng_at(1, 0, 0, 0);

	(void)state;
	for (int i = 0; i < 40; i++)
		y[i] = 0.01 * rng_normal(&r) + (i >= 36 ? 0.05 : 0);
	assert_true(regress_step(y, 40, 36).p < 1e-4);
	assert_near(regress_step(y, 40, 36).diff, 0.05, 0.02);
	for (int i = 36; i < 40; i++)
		y[i] -= i == 37 ? -0.5 : 0.05;
	assert_true(regress_step(y, 40, 36).p > 0.01);
	assert_true(isnan(regress_step(y, 40, 1).diff));
}

static void test_calm(void **state)
{
	double v[30], out[30];
	struct rng r = rng_at(2, 0, 0, 0);

	(void)state;
	for (int i = 0; i < 30; i++)
		v[i] = 100 + rng_normal(&r) + (i >= 20 ? 8 : 0);
	v[0] = v[10] = 60;
	v[29] = 60;
	regress_calm(v, 30, out);
	assert_true(fabs(out[10] - 100) < 3);
	assert_true(fabs(out[0] - 100) < 3); /* there is nothing before that it could end */
	assert_near(out[29], 60, 0);         /* the end says nothing yet */
	for (int i = 18; i < 25; i++)
		assert_near(out[i], v[i], 0); /* a step stays one */
	regress_calm(v, 3, out);
	assert_near(out[2], v[2], 0);
}

static void test_same(void **state)
{
	struct regress_span c = {.day = 100, .first = 99, .last = 101};
	struct regress_span wide = {.day = 100, .first = 20, .last = 160};
	struct regress_span at = {0};

	(void)state;
	for (at.day = 90; at.day <= 110; at.day++) {
		assert_int_equal(regress_same(&c, false, &at), at.day >= 96 && at.day <= 104);
		assert_int_equal(regress_same(&c, true, &at), at.day >= 96 && at.day <= 101);
	}
	at.day = 150; /* bounds of a range on two points say nothing */
	assert_false(regress_same(&wide, false, &at));
	/* settled on night 160: until then nothing had begun */
	assert_true(regress_same(&wide, true, &at));
}

static void test_together(void **state)
{
	struct regress_span a = {.day = 100, .first = 100, .last = 100};
	struct regress_span b = {.day = 101, .first = 101, .last = 102};
	struct regress_span c = {.day = 103, .first = 102, .last = 103};
	struct regress_span wide = {.day = 120, .first = 90, .last = 130};

	(void)state;
	assert_true(regress_together(&a, &b));
	assert_true(regress_together(&b, &c));
	assert_false(regress_together(&a, &c));
	assert_false(regress_together(&a, &wide));
}

static void test_shift(void **state)
{
	struct regress_move wait = {8, 0.5}, compute = {-7.6, 0.6}, less = {-3, 0.5}, more = {8, 1};

	(void)state;
	assert_true(regress_shift(&wait, &compute));
	assert_false(regress_shift(&wait, &less));
	assert_false(regress_shift(&wait, &more));
	assert_false(regress_shift(&wait, &(struct regress_move){0, INFINITY}));
}

static void test_pairs(void **state)
{
	const double slow[] = {-0.050, -0.052, -0.049, -0.051}, none[] = {0.001, -0.002, 0.001};
	const double open[] = {-0.08, -0.01, -0.03, -0.07, 0.00, -0.05};
	struct regress_judged j;

	(void)state;
	regress_judge_pairs(slow, 2, -1, 0.02, 1, &j);
	assert_int_equal(j.answer, REGRESS_MORE);
	regress_judge_pairs(slow, 3, -1, 0.02, 1, &j);
	assert_int_equal(j.answer, REGRESS_SHOWN);
	assert_near(j.est, -0.0503, 0.001);
	assert_true(j.lo < j.est && j.est < j.hi && j.hi < 0);
	/* one-sided: the other way is not what was suspected */
	regress_judge_pairs(slow, 3, 1, 0.02, 1, &j);
	assert_int_equal(j.answer, REGRESS_NOT_SHOWN);
	regress_judge_pairs(none, 3, -1, 0.02, 1, &j);
	assert_int_equal(j.answer, REGRESS_NOT_SHOWN);
	assert_true(j.ruled_out);
	regress_judge_pairs(open, 5, -1, 0.02, 1, &j);
	assert_int_equal(j.answer, REGRESS_MORE);
	regress_judge_pairs(open, 6, -1, 0.02, 1, &j);
	assert_int_equal(j.answer, REGRESS_NOT_SHOWN);
	assert_false(j.ruled_out);
}

static struct regress_case case_of(size_t n, double sd, double suspected)
{
	return (struct regress_case){.before = {.n = n, .mean = 5, .sd = sd},
				     .suspected = 5 + suspected,
				     .sign = suspected < 0 ? -1 : 1,
				     .min_effect = 0.02,
				     .seen = REGRESS_SEEN - 1,
				     .logs = true,
				     .attempt = 1};
}

static void test_lasts(void **state)
{
	const double level[] = {0.9, 0.91, 0.9, 0.99}, hang[] = {0.8, 1.0, 0.85, 1.0};

	(void)state;
	assert_true(regress_lasts(1, -0.1, level, 4));
	assert_true(regress_lasts(1, -0.1, level, 3));
	assert_false(regress_lasts(1, -0.1, level, 2));
	assert_false(regress_lasts(1, -0.15, hang, 3));
	assert_false(regress_lasts(1, -0.15, hang, 4));
}

static void test_history(void **state)
{
	struct regress_case c = case_of(30, 0.01, -0.05);
	const double shown[] = {4.95}, none[] = {5.001}, weak[] = {4.978}, hang[] = {4.8, 4.998};
	const double far[] = {4.8}, twice[] = {4.8, 4.82}, chance[] = {4.966, 4.966};
	struct regress_judged j;

	(void)state;
	regress_judge_history(&c, shown, 1, &j);
	assert_int_equal(j.answer, REGRESS_SHOWN);
	assert_near(j.est, -0.05, 1e-9);
	regress_judge_history(&c, none, 1, &j);
	assert_int_equal(j.answer, REGRESS_NOT_SHOWN);
	regress_judge_history(&c, weak, 1, &j);
	assert_int_equal(j.answer, REGRESS_LATER);
	c.attempt = 3;
	regress_judge_history(&c, weak, 1, &j);
	assert_int_equal(j.answer, REGRESS_NOT_SHOWN);
	c.attempt = 1;
	/* an earlier night on which everything hung is no witness for this one */
	regress_judge_history(&c, hang, 2, &j);
	assert_int_equal(j.answer, REGRESS_NOT_SHOWN);
	/* four times as far off as suspected: another night must say so too */
	regress_judge_history(&c, far, 1, &j);
	assert_int_equal(j.answer, REGRESS_LATER);
	regress_judge_history(&c, twice, 2, &j);
	assert_int_equal(j.answer, REGRESS_SHOWN);
	/* p 0.001: too little for one night, enough for each of two */
	regress_judge_history(&c, chance, 1, &j);
	assert_int_equal(j.answer, REGRESS_LATER);
	regress_judge_history(&c, chance, 2, &j);
	assert_int_equal(j.answer, REGRESS_SHOWN);
	/* two bad nights in a row, the first of which was suspected, are no level */
	c.seen = 1;
	regress_judge_history(&c, shown, 1, &j);
	assert_int_equal(j.answer, REGRESS_LATER);
	regress_judge_history(&c, (const double[]){4.95, 4.95}, 2, &j);
	assert_int_equal(j.answer, REGRESS_SHOWN);
	c.before.n = 7;
	regress_judge_history(&c, shown, 1, &j);
	assert_int_equal(j.answer, REGRESS_LATER);
	assert_true(isnan(j.est));
	/* equal values before: any other value differs */
	c = case_of(10, 0, -0.05);
	regress_judge_history(&c, shown, 1, &j);
	assert_int_equal(j.answer, REGRESS_SHOWN);
	regress_judge_history(&c, (const double[]){5}, 1, &j);
	assert_int_equal(j.answer, REGRESS_NOT_SHOWN);
}

/* Nothing changed: a re-run on up to three nights says that something did in 0.05 % of cases
 * at most, and pairs in 1 %. Bounds are 4.5 standard errors wide. */
static void test_error_rates(void **state)
{
	enum { N = 20000, BEFORE = 12 };
	size_t wrong = 0, wrong_pairs = 0;

	(void)state;
	for (uint64_t i = 0; i < N; i++) {
		struct rng r = rng_at(7, i, 0, 0);
		struct regress_case c = case_of(BEFORE, 0.01, 0.02);
		struct regress_judged j = {.answer = REGRESS_LATER};
		double y[BEFORE], later[REGRESS_RERUNS], d[6];

		for (int k = 0; k < BEFORE; k++)
			y[k] = 0.01 * rng_normal(&r);
		c.before = regress_noise(y, BEFORE);
		c.suspected = c.before.mean + 0.02;
		for (size_t k = 1; k <= REGRESS_RERUNS && j.answer == REGRESS_LATER; k++) {
			later[k - 1] = 0.01 * rng_normal(&r);
			c.attempt = k;
			regress_judge_history(&c, later, k, &j);
		}
		wrong += j.answer == REGRESS_SHOWN;
		for (int k = 0; k < 6; k++)
			d[k] = 0.014 * rng_normal(&r);
		for (size_t k = 3; k <= 6; k++) {
			regress_judge_pairs(d, k, 1, 0, 1, &j);
			if (j.answer != REGRESS_MORE)
				break;
		}
		wrong_pairs += j.answer == REGRESS_SHOWN;
	}
	assert_true((double)wrong < N * 0.0005 + 4.5 * sqrt(N * 0.0005));
	assert_true((double)wrong_pairs < N * 0.005 + 4.5 * sqrt(N * 0.005));
}

enum { DRIVER, KERNEL, GIT, SLURM, SERIES = 8 };

/* Ten nights, 95 to 104, that wander by 1 % about their level, and fall by 5 % where it moved. */
struct nights_of {
	int64_t day[10];
	double y[10];
};

static void window_of(struct nights_of *t, bool moved, int64_t since, size_t place,
		      struct regress_window *w)
{
	for (int i = 0; i < 10; i++) {
		t->day[i] = 95 + i;
		t->y[i] = 2 + (i % 2 ? 0.01 : -0.01) - (moved && t->day[i] >= since ? 0.05 : 0);
	}
	*w = (struct regress_window){.day = t->day,
				     .y = t->y,
				     .n = 10,
				     .before = {30, 2, 0.01},
				     .step = -0.05,
				     .workload = (int)place,
				     .place = (int)place};
}

static void test_since(void **state)
{
	struct nights_of nights;
	struct regress_window w;

	(void)state;
	window_of(&nights, true, 100, 0, &w);
	assert_true(regress_since(&w, 100) > 10);
	assert_true(regress_since(&w, 99) < regress_since(&w, 100) - 2);
	assert_true(regress_since(&w, 102) < regress_since(&w, 100) - 4);
	nights.y[2] -= 0.2; /* one bad night three nights before is no step */
	assert_true(regress_since(&w, 97) < regress_since(&w, 100));
	window_of(&nights, false, 0, 0, &w);
	assert_true(regress_since(&w, 100) < -2);
	w.n = 0;
	assert_true(regress_since(&w, 100) == 0);
}

/* The nights of one series that moved decide between keys of different nights and scope, and a key
 * that goes on changing is what it was when it did it. */
static void test_rank_alone(void **state)
{
	enum { ALONE = 20 };
	const struct regress_span event = {.day = 100, .first = 99, .last = 101};
	int moved[ALONE] = {1};
	struct regress_turn v[ALONE + 8] = {{0, GIT, 79, 80, "a", "b", false},
					    {0, GIT, 89, 90, "b", "c", false},
					    {0, GIT, 99, 100, "c", "d", false},
					    {0, GIT, 100, 101, "d", "e", false},
					    {0, KERNEL, 98, 99, "1", "2", false}};
	struct nights_of nights[ALONE];
	struct regress_window windows[ALONE];
	struct regress_suspect *s;
	size_t n = 5;

	(void)state;
	for (size_t k = 0; k < ALONE; k++)
		window_of(&nights[k], k == 0, 100, 0, &windows[k]);
	for (size_t k = 1; k < ALONE; k++)
		windows[k].workload = (int)k;
	v[n++] = (struct regress_turn){0, SLURM, 99, 100, "1", "2", false};
	for (size_t k = 1; k < ALONE; k++)
		v[n++] = (struct regress_turn){k, SLURM, 99, 100, "1", "2", false};
	n = regress_rank(v, n, moved, windows, ALONE, &event, &s);
	assert_int_equal(n, 3);
	assert_int_equal(s[0].key, GIT);
	assert_string_equal(s[0].is, "d");
	assert_true(s[1].score < s[0].score / 4);
	free(s);
}

static void test_rank(void **state)
{
	const struct regress_span event = {.day = 100, .first = 100, .last = 100};
	/* 0..3 share a partition and moved; 4..7 another one */
	const int moved[SERIES] = {1, 1, 1, 1, 0, 0, 0, -1};
	struct regress_turn v[64];
	struct regress_suspect *s;
	struct nights_of nights[SERIES];
	struct regress_window windows[SERIES];
	size_t n = 0;

	(void)state;
	for (size_t k = 0; k < SERIES; k++) {
		window_of(&nights[k], k < 4, 100, k / 4, &windows[k]);
		struct regress_turn t = {
			.series = k, .after = 99, .by = 100, .was = "1", .is = "2"};

		t.key = SLURM; /* for all */
		v[n++] = t;
		if (k < 4) {
			t.key = DRIVER;
			v[n++] = t;
			t.key = KERNEL; /* near, but outside */
			t.after = 97;
			t.by = 98;
			v[n++] = t;
		}
		t.key = GIT; /* ever changing */
		for (int64_t night = 60; night <= 100; night += 10) {
			t.after = night - 1;
			t.by = night;
			if (k < 4)
				v[n++] = t;
		}
	}
	n = regress_rank(v, n, moved, windows, SERIES, &event, &s);
	assert_int_equal(n, 4);
	assert_int_equal(s[0].key, DRIVER);
	assert_int_equal(s[0].moved, 4);
	assert_int_equal(s[0].still, 0);
	assert_string_equal(s[0].is, "2");
	assert_true(s[0].score > 0.8 && s[0].score < 1);
	for (size_t i = 1; i < n; i++) {
		if (s[i].key == SLURM)
			assert_int_equal(s[i].still, 3);
		if (s[i].key == KERNEL)
			assert_int_equal(s[i].away, 2);
		if (s[i].key == GIT)
			assert_int_equal(s[i].idle, 4);
		assert_true(s[i].score < s[0].score / 4);
	}
	free(s);
	assert_int_equal(regress_rank(v, 0, moved, windows, SERIES, &event, &s), 0);
	free(s);
}

static void test_node(void **state)
{
	const struct regress_replicate one[] = {
		{-0.10, "n1,n2"}, {0.00, "n3"}, {-0.11, "n2"}, {0.01, "n1"}};
	const struct regress_replicate all[] = {{-0.05, "n1"}, {-0.05, "n2"}, {-0.06, "n3"}};
	const struct regress_replicate hung[] = {
		{-0.25, "n1"}, {-0.06, "n2"}, {-0.05, "n3"}, {-0.06, "n4"}};
	_cleanup_free_ char *node = NULL;
	double score;

	(void)state;
	assert_true(regress_node(one, 4, -0.05, &node, &score));
	assert_string_equal(node, "n2");
	assert_near(score, 0.45, 1e-9);
	free(node);
	/* one slow replicate is a hint, less than any key that changed */
	assert_true(regress_node(one, 2, -0.05, &node, &score));
	assert_near(score, 0.05, 1e-9);
	free(node);
	node = NULL;
	/* one that hung while all are slower is none */
	assert_false(regress_node(hung, 4, -0.105, &node, &score));
	assert_false(regress_node(all, 3, -0.05, &node, &score));
	assert_false(regress_node(all, 0, -0.05, &node, &score));
	assert_false(regress_node(all, 3, 0, &node, &score));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nights),       cmocka_unit_test(test_scale),
		cmocka_unit_test(test_level_before), cmocka_unit_test(test_step),
		cmocka_unit_test(test_calm),         cmocka_unit_test(test_same),
		cmocka_unit_test(test_together),     cmocka_unit_test(test_shift),
		cmocka_unit_test(test_pairs),        cmocka_unit_test(test_lasts),
		cmocka_unit_test(test_history),      cmocka_unit_test(test_error_rates),
		cmocka_unit_test(test_rank),         cmocka_unit_test(test_since),
		cmocka_unit_test(test_rank_alone),   cmocka_unit_test(test_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
