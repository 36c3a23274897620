/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pictures of the tuning log: each value stands where the axis says. */
#include "orchestrator/report/html_pictures.h"

#include <math.h>

#include "tests/unit/check.h"
#include "tests/unit/report_sample.h"

#define NEAR 0.11 /* coordinates are written to a tenth */

static char *drawn(html_picture *picture, const struct report *r)
{
	struct buf b = {0};

	picture(r, &b);
	return buf_take(&b);
}

/* The number of an attribute of the element that begins at p. */
static double attribute(const char *p, const char *name)
{
	_cleanup_free_ char *what = xasprintf(" %s=\"", name);
	_cleanup_free_ char *number = NULL;
	const char *at = strstr(p, what);
	double v;

	assert_non_null(at);
	assert_true(at < strchr(p, '>'));
	at += strlen(what);
	number = xstrndup(at, strcspn(at, "\""));
	assert_true(str_to_double(number, &v));
	return v;
}

/* Element number n, from 0 on, that begins so. */
static const char *element(const char *svg, const char *begins, size_t n)
{
	const char *p = strstr(svg, begins);

	for (; p && n; n--)
		p = strstr(p + 1, begins);
	assert_non_null(p);
	return p;
}

/* The element whose text or title holds this. */
static const char *with_text(const char *svg, const char *text)
{
	const char *p = strstr(svg, text);

	assert_non_null(p);
	for (int tags = 0; tags < 1 || strncmp(p, "<title", 6) == 0; tags++)
		do
			p--;
		while (*p != '<');
	return p;
}

/* Where a relative effect stands by the labels of the axis. */
static double axis_at(const char *svg, double v, const char *label, double label_v)
{
	double zero = attribute(with_text(svg, ">0</text>"), "x");

	return zero + (attribute(with_text(svg, label), "x") - zero) * v / label_v;
}

static struct verdict_row verdict(int64_t id, const char *outcome, double est, double half)
{
	return (struct verdict_row){.id = id,
				    .outcome = (char *)outcome,
				    .est = est,
				    .lo = est - half,
				    .hi = est + half,
				    .n = 4,
				    .final_look = true};
}

/* Two accepted, the later one first in the list, one worse, one that was only screened. */
static struct report report_of(struct report_hypothesis h[4])
{
	struct report r = sample_report();

	h[0] = (struct report_hypothesis){.row = {.knob = "b", .from_value = "0", .value = "1"},
					  .has_verdict = true,
					  .verdict = verdict(9, "accepted", 0.05, 0.02),
					  .screen_mean = NAN};
	h[1] = (struct report_hypothesis){.row = {.knob = "a<i>", .value = "2"},
					  .has_verdict = true,
					  .verdict = verdict(3, "accepted", 0.10, 0.03),
					  .screen_mean = 0.12};
	h[2] = (struct report_hypothesis){.row = {.knob = "c", .from_value = "x", .value = "y"},
					  .has_verdict = true,
					  .verdict = verdict(5, "rejected: worse", -0.04, 0.02),
					  .screen_mean = NAN};
	h[3] = (struct report_hypothesis){.row = {.knob = "d", .from_value = "x", .value = "y"},
					  .screen_mean = -0.8};
	r.hyps = h;
	r.n_hyps = 4;
	r.fix.est = 0.15;
	r.fix.lo = 0.14;
	r.fix.hi = 0.17;
	return r;
}

static void what_a_screen_found_invalid_is_called_so(void **state)
{
	struct report_hypothesis h[4];
	struct report r = report_of(h);
	_cleanup_free_ char *svg = NULL;

	(void)state;
	h[3].has_verdict = true;
	h[3].verdict = verdict(6, "invalid", NAN, NAN);
	svg = drawn(html_forest, &r);
	assert_contains(svg, "-80.0 %, screened: invalid");
}

/* What is too long for its place takes two lines; no word of it is lost. */
static void long_words_are_whole(void **state)
{
	char state_text[] = "accepted, pending convergence",
	     knob[] = "TORCH_NCCL_ASYNC_ERROR_HANDLING", value[] = "expandable_segments";
	struct report_hypothesis h[4];
	struct report r = report_of(h);
	_cleanup_free_ char *svg = NULL;

	(void)state;
	r.fix.state = state_text;
	h[0].row.knob = knob;
	h[0].row.value = value;
	svg = drawn(html_forest, &r);
	assert_contains(svg, ">+15.0 % [+14.0, +17.0], accepted,</text>");
	assert_contains(svg, ">pending convergence</text>");
	assert_contains(svg, ">TORCH_NCCL_ASYNC_ERROR_HANDLING</text>");
	assert_contains(svg, "→ expandable_segments</text>");
	assert_null(strstr(svg, "…"));
}

static void effects_stand_at_their_values(void **state)
{
	struct report_hypothesis h[4];
	struct report r = report_of(h);
	_cleanup_free_ char *svg = drawn(html_forest, &r);
	const char *band = element(svg, "<rect class=\"equal\"", 0);
	const char *ci = element(svg, "<line class=\"ci\"", 0);

	(void)state;
	assert_float_equal(attribute(with_text(svg, "a&lt;i&gt; (not set) → 2: +10.0 %"), "cx"),
			   axis_at(svg, 0.10, ">+10 %<", 0.10), NEAR);
	assert_float_equal(attribute(with_text(svg, "c x → y: -4.0 %"), "cx"),
			   axis_at(svg, -0.04, ">+10 %<", 0.10), NEAR);
	assert_float_equal(attribute(ci, "x1"), axis_at(svg, 0.07, ">+10 %<", 0.10), NEAR);
	assert_float_equal(attribute(ci, "x2"), axis_at(svg, 0.13, ">+10 %<", 0.10), NEAR);
	assert_float_equal(attribute(band, "x"), axis_at(svg, -0.01, ">+10 %<", 0.10), NEAR);
	assert_float_equal(
		attribute(band, "width"),
		2 * (axis_at(svg, 0.01, ">+10 %<", 0.10) - axis_at(svg, 0, ">+10 %<", 0.10)),
		2 * NEAR);
	/* The screen's -80 % lies beyond the axis: a triangle, no dot. */
	assert_contains(svg, "-80.0 %, screened");
	assert_null(strstr(svg, "<circle class=\"hollow\""));
	assert_non_null(strstr(svg, "<g class=\"worse\">"));
	assert_null(strstr(svg, "<i>"));
}

static void the_weakest_of_many_are_left_out(void **state)
{
	struct report_hypothesis *h = xcalloc(50, sizeof *h);
	struct report r = sample_report();
	_cleanup_free_ char *svg = NULL;
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 50; i++)
		h[i] = (struct report_hypothesis){.row = {.knob = "k", .value = "1"},
						  .screen_mean = (i % 2 ? 1 : -1) * 0.001 * i};
	r.hyps = h;
	r.n_hyps = 50;
	svg = drawn(html_forest, &r);
	for (const char *p = svg; (p = strstr(p, "\"hollow\"")) != NULL; p++)
		n++;
	assert_int_equal(n, 40);
	assert_contains(svg, "10 weaker ones are in the tables");
	assert_contains(svg, "-1.0 %, screened");
	assert_null(strstr(svg, "+0.9 %, screened"));
	free(h);
}

static void gains_add_up_in_the_order_of_acceptance(void **state)
{
	struct report_hypothesis h[4];
	struct report r = report_of(h);
	_cleanup_free_ char *svg = drawn(html_waterfall, &r);
	const char *first = element(svg, "<rect class=\"bar better\"", 0);
	const char *second = element(svg, "<rect class=\"bar better\"", 1);
	const char *fix = element(svg, "<rect class=\"bar fix\"", 0);
	double zero = axis_at(svg, 0, ">+10 %<", 0.10);

	(void)state;
	assert_float_equal(attribute(first, "x"), zero, NEAR);
	assert_float_equal(attribute(first, "width"), axis_at(svg, 0.10, ">+10 %<", 0.10) - zero,
			   NEAR);
	assert_float_equal(attribute(second, "x"), axis_at(svg, 0.10, ">+10 %<", 0.10), NEAR);
	assert_float_equal(attribute(second, "width"),
			   axis_at(svg, 1.1 * 1.05 - 1.1, ">+10 %<", 0.10) - zero, 2 * NEAR);
	assert_float_equal(attribute(fix, "width"), axis_at(svg, 0.15, ">+10 %<", 0.10) - zero,
			   NEAR);
	assert_contains(svg, "+15.0 % [+14.0, +17.0], 1275 samples/s");
}

static void nothing_accepted_is_no_waterfall(void **state)
{
	struct report_hypothesis h[4];
	struct report r = report_of(h);
	_cleanup_free_ char *why = NULL;
	struct buf b = {0};

	(void)state;
	h[0].has_verdict = h[1].has_verdict = false;
	why = drawn(html_waterfall, &r);
	assert_contains(why, "No change was accepted");
	assert_null(strstr(why, "<svg"));
	r.n_hyps = 0; /* nor a word while nothing is proposed */
	html_waterfall(&r, &b);
	assert_int_equal(b.len, 0);
	buf_free(&b);
}

static void arms_are_joined_by_block(void **state)
{
	struct report r = sample_report();
	_cleanup_free_ char *svg = drawn(html_pairs, &r);
	const char *low = with_text(svg, ">1000</text>"), *high = with_text(svg, ">1200</text>");
	double per_unit = (attribute(high, "y") - attribute(low, "y")) / 200;
	const char *join = element(svg, "<line class=\"join\"", 2); /* block 3: 1010 to 1290 */
	const char *dot = with_text(svg, "block 1: 990");

	(void)state;
	assert_float_equal(attribute(join, "y1"), attribute(low, "y") - 4 + 10 * per_unit,
			   2 * NEAR);
	assert_float_equal(attribute(join, "y2"), attribute(low, "y") - 4 + 290 * per_unit,
			   2 * NEAR);
	assert_float_equal(attribute(dot, "cy"), attribute(low, "y") - 4 - 10 * per_unit, 2 * NEAR);
	assert_null(strstr(svg, "join worse"));
	assert_contains(svg, "<td class=\"n\">3</td><td class=\"n\">1010</td><td class=\"n\">1290"
			     "</td><td class=\"n\">+27.7 %</td>");
}

static void a_step_is_split_into_shares(void **state)
{
	struct report r = sample_report();
	_cleanup_free_ char *svg = drawn(html_split, &r);
	/* The first of each class is in the legend. */
	double before = attribute(element(svg, "<rect class=\"part0\"", 1), "width");
	double after = attribute(element(svg, "<rect class=\"part0\"", 2), "width");
	const char *wait = element(svg, "<rect class=\"part3\"", 1);
	const char *copies = element(svg, "<rect class=\"part2\"", 1);

	(void)state;
	assert_float_equal(after / before, 0.8 / 0.6, 0.001);
	assert_float_equal(attribute(wait, "width") / before, 0.2 / 0.6, 0.001);
	assert_float_equal(attribute(wait, "x"),
			   attribute(copies, "x") + attribute(copies, "width"), 2 * NEAR);
	assert_null(strstr(wait + 1, "<rect class=\"part3\"")); /* none after the fix */
	assert_contains(svg, ">80.0 %</text>");
}

static void attempts_stand_on_the_time_line(void **state)
{
	struct report r = sample_report();
	_cleanup_free_ char *svg = drawn(html_timeline, &r);
	const char *first = element(svg, "<rect class=\"ran\"", 0);
	const char *last = element(svg, "<rect class=\"ran\"", 2);
	const char *vain = element(svg, "<rect class=\"vain\"", 0);
	double per_s = (attribute(last, "x") - attribute(first, "x")) / 200;

	(void)state;
	assert_float_equal(attribute(vain, "x"), attribute(first, "x") + 60 * per_s, 2 * NEAR);
	assert_float_equal(attribute(last, "width") + 1, 100 * per_s, 2 * NEAR);
	assert_true(attribute(last, "y") > attribute(first, "y"));
	assert_contains(svg, "block 2, attempt 1: void: &lt;node&gt; failed, 30 s");
	assert_null(strstr(svg, "class=\"open\"")); /* what never began is not drawn */
	assert_contains(svg, "Crossed out: the 1 of 5 that were void or lost");
	assert_contains(svg, "<path class=\"cross\"");
	assert_true(attribute(first, "y") == attribute(vain, "y")); /* both on n1 */
	assert_contains(svg, "<td>&lt;node&gt; failed</td>");
}

/* Of an attempt that died early no node may be known; it is drawn all the same. */
static void an_attempt_without_a_node_has_a_lane(void **state)
{
	struct report r = sample_report();
	_cleanup_free_ char *svg = NULL;

	(void)state;
	r.n_places = 3; /* the last one's is gone */
	svg = drawn(html_timeline, &r);
	assert_contains(svg, "node not told");
	assert_true(attribute(element(svg, "<rect class=\"ran\"", 2), "y") >
		    attribute(element(svg, "<rect class=\"ran\"", 1), "y"));
}

/* A failed trial in a block that counts is marked there, and only there. */
static void a_failed_trial_is_marked_on_its_node(void **state)
{
	struct report r = sample_report();
	struct fault_row fault = {.stage = "aa",
				  .arm = "default",
				  .state = "failed",
				  .reason = "exit 1",
				  .stage_seq = 1,
				  .slot = 1,
				  .attempt = 1};
	_cleanup_free_ char *svg = NULL;
	const char *mark;

	(void)state;
	r.faults = &fault;
	r.n_faults = 1;
	svg = drawn(html_timeline, &r);
	mark = strstr(svg, "<path class=\"bar worse\"");
	assert_non_null(mark);
	assert_null(strstr(mark + 1, "<path class=\"bar worse\""));
	assert_contains(mark, "<title>exit 1</title>");
}

static void steps_stand_between_their_quantiles(void **state)
{
	struct report r = sample_report();
	_cleanup_free_ char *svg = drawn(html_steps, &r);
	const char *low = with_text(svg, ">10</text>"), *high = with_text(svg, ">14</text>");
	double per_ms = (attribute(high, "y") - attribute(low, "y")) / 4;
	const char *stroke = element(svg, "<line class=\"ci\"", 1); /* block 1, treatment */
	const char *thick = element(svg, "<rect class=\"est\"", 1);

	(void)state;
	assert_float_equal(attribute(stroke, "y1"), attribute(low, "y") - 4 - 3 * per_ms, 2 * NEAR);
	assert_float_equal(attribute(stroke, "y2"), attribute(low, "y") - 4, 2 * NEAR);
	assert_float_equal(attribute(thick, "height"), -per_ms, 2 * NEAR);
	assert_contains(svg, "block 2: median 8 ms, 95 % below 9 ms, 99 % below 11 ms");
}

static void a_rung_keeps_and_loses(void **state)
{
	struct rung_row rungs[] = {
		{1, 2, 2, 8, 4, 0.9, 0.88, 0.92, 0.9, 0.88, 0.92, true, 0.05, 0.02, 0.01, 0.02},
		{2, 3, 4, 8, 0, NAN, NAN, NAN, NAN, NAN, NAN, false, NAN, NAN, NAN, NAN},
	};
	struct report r = sample_report();
	_cleanup_free_ char *svg = NULL;
	const char *kept, *lost;

	(void)state;
	r.rungs = rungs;
	r.n_rungs = 2;
	svg = drawn(html_ladder, &r);
	kept = element(svg, "<rect class=\"part0\"", 1); /* the first is in the legend */
	lost = element(svg, "<rect class=\"part1\"", 1);
	assert_float_equal(attribute(lost, "x"), attribute(kept, "x") + attribute(kept, "width"),
			   2 * NEAR);
	assert_float_equal(attribute(lost, "width") / attribute(kept, "width"), 0.05 / 0.9, 0.001);
	assert_contains(svg, "90.0 % [88.0, 92.0]");
	assert_contains(svg, "not measured");
}

static void a_series_has_its_changes(void **state)
{
	struct point_row points[] = {{.night = "2026-11-01", .value = 100},
				     {.night = "2026-11-02", .value = 101},
				     {.night = "2026-11-03", .value = 80}};
	struct nights_mark mark = {.night = "2026-11-03",
				   .first = "2026-11-03",
				   .last = "2026-11-03",
				   .direction = CHANGE_WORSE,
				   .level = CHANGE_CONFIRMED,
				   .est = -0.2,
				   .lo = -0.22,
				   .hi = -0.18,
				   .regression = 4};
	struct series_row row = {.workload = "w",
				 .place = "n1",
				 .metric = "step_time_ms",
				 .stat = "mean",
				 .unit = "ms"};
	struct report_series series = {
		.row = row,
		.whole = {.row = row, .points = points, .n = 3, .marks = &mark, .n_marks = 1},
		.nights = 3,
		.last_night = "2026-11-03",
		.last = 80,
		.usual = 100.5};
	struct report r = sample_report();
	_cleanup_free_ char *svg = NULL;

	(void)state;
	r.series = &series;
	r.n_series = 1;
	svg = drawn(html_series, &r);
	assert_contains(svg, "#4 -20.0 %");
	assert_contains(svg, "<td>2026-11-03</td>");
	assert_contains(svg, "-20.0 % [-22.0, -18.0], worse, confirmed");
	r.n_series = 0;
	free(svg);
	svg = drawn(html_series, &r);
	assert_string_equal(svg, "");
}

static void long_names_keep_both_ends(void **state)
{
	_cleanup_free_ char *cut = html_figure_label("äbcdefghijklmnopqrstuvwxyö", 9);
	_cleanup_free_ char *whole = html_figure_label("äbö\n", 4);

	(void)state;
	assert_string_equal(cut, "äbcd…wxyö");
	assert_string_equal(whole, "äbö ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_screen_found_invalid_is_called_so),
		cmocka_unit_test(long_words_are_whole),
		cmocka_unit_test(effects_stand_at_their_values),
		cmocka_unit_test(the_weakest_of_many_are_left_out),
		cmocka_unit_test(gains_add_up_in_the_order_of_acceptance),
		cmocka_unit_test(nothing_accepted_is_no_waterfall),
		cmocka_unit_test(arms_are_joined_by_block),
		cmocka_unit_test(a_step_is_split_into_shares),
		cmocka_unit_test(attempts_stand_on_the_time_line),
		cmocka_unit_test(an_attempt_without_a_node_has_a_lane),
		cmocka_unit_test(a_failed_trial_is_marked_on_its_node),
		cmocka_unit_test(steps_stand_between_their_quantiles),
		cmocka_unit_test(a_rung_keeps_and_loses),
		cmocka_unit_test(a_series_has_its_changes),
		cmocka_unit_test(long_names_keep_both_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
