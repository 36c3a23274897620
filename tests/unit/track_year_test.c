/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A year of nights through the real database (year.h): what is true is found and told of once, and
 * little else is. Here a quarter of the cluster for a part of the year; LONG=1 plays whole years.
 * FETTLE_YEARS="11-20" prints the table of tests/bench/year.sh instead and checks nothing but its
 * bounds.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/unit/year.h"

static struct year_setup setup_of(uint64_t seed)
{
	return (struct year_setup){.seed = seed,
				   .nights = 365,
				   .places = YEAR_PLACES,
				   .noise_night = 0.008,
				   .noise_block = 0.006,
				   .noise_arm = 0.006};
}

static void print_row(const struct year *y)
{
	int worst = 0;

	for (int i = 0; i < y->n_planted; i++)
		if (y->planted[i].delay > worst)
			worst = y->planted[i].delay;
	printf("| %llu | %d of %d | %d | %d | %d of %d | %d of %d | %d | %d | %d | %d | %.0f | %.0f | %.0f | %.0f "
	       "| %.1f | %.1f | %.1f |\n",
	       (unsigned long long)y->setup.seed, y->found - y->late, y->n_planted, worst,
	       y->false_confirmed, y->blamed, y->n_planted, y->apart_blamed, y->apart, y->suspects,
	       y->transient, y->dismissed, y->reruns, y->gpu_hours, y->night_gpu_hours,
	       1000 * y->track_s / y->setup.nights, 1000 * y->worst_track_s, y->judge_s, y->db_mib,
	       1000 * y->list_s);
}

static void print_wrong(const struct year *y)
{
	for (int i = 0; i < y->n_planted; i++) {
		const struct year_planted *p = &y->planted[i];
		char night[11];

		if (p->regression && p->delay <= YEAR_WITHIN && p->blamed)
			continue;
		regress_night(y->start + p->night, night);
		fprintf(stderr,
			"seed %llu: change of %s on %s (place %d, workload %d, %+.0f %%): %s, "
			"delay %d, %s, regression %lld, causes: %s\n",
			(unsigned long long)y->setup.seed, year_keys[p->key].name, night, p->place,
			p->subject, 100 * p->effect, p->regression ? "found" : "not found",
			p->delay, p->apart ? "can be told apart" : "another key changed with it",
			(long long)p->regression, p->causes ? p->causes : "none");
	}
	if (y->told)
		fprintf(stderr, "seed %llu:\n%s", (unsigned long long)y->setup.seed, y->told);
}

static void play_file(struct year *y, const struct year_setup *c)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = xasprintf("%s/fettle.db", dir);
	const char *keep = getenv("FETTLE_YEAR_KEEP");
	struct stat st;

	year_play(y, c, keep ? keep : path);
	if (stat(keep ? keep : path, &st) == 0)
		y->db_mib = (double)st.st_size / 1048576;
}

static void years(const char *range)
{
	unsigned long first = strtoul(range, NULL, 10), last = first;
	const char *dash = strchr(range, '-');

	if (dash)
		last = strtoul(dash + 1, NULL, 10);
	for (unsigned long seed = first; seed <= last; seed++) {
		struct year_setup c = setup_of(seed);
		struct year *y = xcalloc(1, sizeof *y);

		play_file(y, &c);
		print_row(y);
		print_wrong(y);
		fflush(stdout);
		year_done(y);
		free(y);
	}
}

/* A tenth of a year of one partition. */
static void test_part_of_a_year(void **state)
{
	struct year_setup c = setup_of(1);
	struct year *y = xcalloc(1, sizeof *y);

	(void)state;
	c.nights = 100;
	c.places = 1;
	year_play(y, &c, ":memory:");
	print_wrong(y);
	assert_int_equal(y->n_planted, 2);
	assert_int_equal(y->found, y->n_planted);
	assert_int_equal(y->late, 0);
	assert_int_equal(y->false_confirmed, 0);
	assert_int_equal(y->blamed, y->n_planted);
	year_done(y);
	free(y);
}

static void test_years(void **state)
{
	(void)state;
	for (uint64_t seed = 19; long_run() && seed <= 20; seed++) {
		struct year_setup c = setup_of(seed);
		struct year *y = xcalloc(1, sizeof *y);

		play_file(y, &c);
		print_wrong(y);
		assert_int_equal(y->n_planted, YEAR_PLANTED);
		assert_int_equal(y->found, YEAR_PLANTED);
		assert_int_equal(y->late, 0);
		assert_true(y->false_confirmed <= 2);
		assert_true(y->blamed >= 10);
		assert_true(y->db_mib < 100);
		year_done(y);
		free(y);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_part_of_a_year),
		cmocka_unit_test(test_years),
	};
	const char *range = getenv("FETTLE_YEARS");

	if (range && *range) {
		years(range);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
