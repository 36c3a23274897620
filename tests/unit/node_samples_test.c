/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of several nodes, each by its own clock, become metrics of one window. */
#include "tests/unit/check.h"

#include <math.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/method/samples.h"

static const int64_t T0 = 1795958504000000, SECOND = 1000000;

/* A node whose CPUs are idle, but for seconds 2 to 4 by the first node's clock. */
static void write_samples(const char *dir, const char *name, int64_t offset_us)
{
	_cleanup_free_ char *path = fs_join(dir, name);
	struct buf b = {0};
	struct err e = {0};
	long long user = 0, idle = 0;

	buf_printf(&b, "%lld hz 100\n", (long long)(T0 + offset_us));
	for (int i = 0; i <= 8; i++) {
		buf_printf(&b, "%lld stat %lld 0 0 %lld 0 0 0 0\n",
			   (long long)(T0 + offset_us + i * SECOND), user, idle);
		user += i >= 2 && i < 4 ? 100 : 0;
		idle += i >= 2 && i < 4 ? 0 : 100;
	}
	assert_ok(fs_write_atomic(path, b.data, b.len, 0600, &e));
	buf_free(&b);
}

static void write_text(const char *dir, const char *name, const char *text)
{
	_cleanup_free_ char *path = fs_join(dir, name);
	struct err e = {0};

	assert_ok(fs_write_atomic(path, text, strlen(text), 0600, &e));
}

static struct json *record(const char *samplers, const char *more)
{
	_cleanup_free_ char *text = xasprintf(
		"{\"window_start_us\": %lld, \"window_end_us\": %lld, "
		"\"nodes\": [\"n1\", \"n2\"], \"samplers\": [%s]%s}",
		(long long)(T0 + 2 * SECOND + 1), (long long)(T0 + 4 * SECOND), samplers, more);
	struct json *j = NULL;
	struct err e = {0};

	assert_ok(json_parse("t01.json", text, strlen(text), &j, &e));
	return j;
}

static double metric(const struct trial_result *t, const char *name, const char *stat,
		     const char *labels)
{
	for (size_t i = 0; i < t->n_metrics; i++)
		if (str_eq(t->metrics[i].metric, name) && str_eq(t->metrics[i].stat, stat) &&
		    str_eq(t->metrics[i].labels, labels))
			return t->metrics[i].value;
	return NAN;
}

static void windows_follow_the_clocks(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	/* n2's clock is 5 s ahead: by its own the window is over before the busy seconds begin */
	_cleanup_(json_freep) struct json *rec = record(
		"{\"node\": \"n2\", \"state\": \"ok\", \"clock_offset_us\": 5000000, \"clock_error_us\": 900}",
		"");
	struct trial_result t = {0};
	struct strv notes = {0};
	struct err e = {0};
	struct window *w;

	(void)state;
	write_samples(dir, "samples", 0);
	write_samples(dir, "samples.n2", 5 * SECOND);
	write_text(dir, "gpu.n2.csv", "NVIDIA-SMI has failed because it could not communicate\n");
	w = samples_read(dir, rec, &t, &e);
	assert_non_null(w);
	window_free(w);
	samples_other_nodes(dir, rec, &t, &notes, &e);
	assert_true(metric(&t, "cpu_user_pct", "mean", "") == 100);
	assert_true(metric(&t, "cpu_user_pct", "mean", "node=n2") == 100);
	assert_true(isnan(metric(&t, "cpu_user_pct", "median", "node=n2"))); /* in short */
	assert_true(metric(&t, "node_clock_offset_ms", "mean", "node=n2") == 5000);
	assert_true(metric(&t, "node_clock_error_ms", "mean", "node=n2") == 0.9);
	assert_int_equal(notes.n, 2);
	assert_non_null(strstr(notes.v[0], "the clock of n2 is about 5 s ahead of"));
	assert_string_equal(
		notes.v[1],
		"n2: nvidia-smi: NVIDIA-SMI has failed because it could not communicate");
	strv_free(&notes);
	trial_result_done(&t);
}

static void an_absent_node_is_named(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_(json_freep) struct json *rec = record(
		"{\"node\": \"n2\", \"state\": \"absent\", \"reason\": \"no srun\"}, {\"node\": \"../n3\", \"state\": \"ok\"}",
		", \"ranks_seen\": 2, \"ranks_expected\": 4");
	struct trial_result t = {0};
	struct strv notes = {0};
	struct err e = {0};

	(void)state;
	assert_null(samples_read(dir, rec, &t, &e));
	samples_other_nodes(dir, rec, &t, &notes, &e);
	assert_int_equal(t.n_metrics, 0);
	assert_int_equal(notes.n, 1);
	assert_string_equal(notes.v[0], "samples and evidence of node n2 are absent: no srun");
	samples_missing_ranks(rec, &t);
	assert_int_equal(t.n_effective, 1);
	assert_int_equal(t.effective[0].rank, -1);
	assert_string_equal(t.effective[0].key, EFFECTIVE_MISSING);
	assert_string_equal(t.effective[0].value,
			    "2 of 4 ranks were seen: nothing came from node n2: no srun");
	strv_free(&notes);
	trial_result_done(&t);
}

static void nothing_is_missing_when_all_were_seen(void **state)
{
	_cleanup_(json_freep) struct json *rec = record(
		"", ", \"ranks_seen\": 4, \"ranks_expected\": 4");
	struct trial_result t = {0};

	(void)state;
	samples_missing_ranks(rec, &t);
	assert_int_equal(t.n_effective, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_follow_the_clocks),
		cmocka_unit_test(an_absent_node_is_named),
		cmocka_unit_test(nothing_is_missing_when_all_were_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
