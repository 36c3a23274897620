/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scheduler `fake` beyond the common contract: the declared truth, planted faults, and its memory.
 */
#include "tests/unit/check.h"

#include <math.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/str.h"
#include "orchestrator/sched/fake_truth.h"
#include "orchestrator/sched/sched.h"

enum { SLOTS = 4 };

struct world {
	struct sched_run *run;
	struct clock_virtual virtual;
	struct clock clock;
	char *root;
};

static const struct sched *fake(void)
{
	return sched_find("fake");
}

static void open_world(struct world *w, const char *spec)
{
	struct sched_config c = {
		.blocks_root = w->root, .clock = &w->clock, .seed = 3, .spec = spec};
	struct err e = {0};

	w->clock = clock_virtual_of(&w->virtual);
	assert_ok(fake()->open(&c, &w->run, &e));
}

static struct world world_new(const char *spec, struct world *w)
{
	*w = (struct world){.virtual = {.utc_us = INT64_C(1700000000000000)},
			    .root = scratch_new()};
	open_world(w, spec);
	return *w;
}

static void world_free(struct world *w)
{
	fake()->close(w->run);
	scratch_free(&w->root);
}

static void token_of(int i, char token[64])
{
	snprintf(token, 64, "fettle:00000001:a%d", i);
}

static char *make_block(struct world *w, int i)
{
	char *dir = xasprintf("%s/%d.1", w->root, i), token[64];
	_cleanup_free_ char *path = fs_join(dir, "block.json"), *text = NULL;

	token_of(i, token);
	text = xasprintf(
		"{\"format\":\"fettle.block/1\",\"token\":\"%s\",\"block\":%d,\"attempt\":1,"
		"\"window\":{\"warmup\":2,\"steps\":5},\"workdir\":\"/\",\"env\":{\"HOME\":\"/h\"},"
		"\"evidence\":{\"env_prefixes\":[\"OMP_\"]},"
		"\"arms\":[{\"arm\":7,\"argv\":[\"train\",\"--workers\",\"4\"],\"env\":{\"K\":"
		"\"1\"}},"
		"{\"arm\":8,\"argv\":[\"train\",\"--workers\",\"40\"],\"env\":{\"K\":\"2\"}}],"
		"\"slots\":[{\"slot\":0,\"arm\":7},{\"slot\":1,\"arm\":8},{\"slot\":2,\"arm\":7},"
		"{\"slot\":3,\"arm\":8}]}",
		token, i);
	assert_int_equal(fs_mkdirs(dir, 0700, NULL), 0);
	assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, NULL), 0);
	return dir;
}

static int submit(struct world *w, int i, char id[64], struct err *e)
{
	_cleanup_free_ char *dir = make_block(w, i);
	const char *dirs[] = {dir};
	char token[64];
	struct sched_job job = {
		.token = token, .block_dirs = dirs, .n_block_dirs = 1, .workdir = "/", .nodes = 1};

	token_of(i, token);
	return fake()->submit(w->run, &job, id, e);
}

static struct sched_status run_to_end(struct world *w, const char *id)
{
	struct sched_status st;
	struct err e = {0};

	for (int i = 0; i < 10; i++) {
		assert_ok(fake()->poll(w->run, &id, 1, &st, &e));
		if (st.state == JOB_ENDED)
			break;
		assert_ok(fake()->wait(w->run, INT64_C(1000000000), -1, &e));
	}
	assert_int_equal(st.state, JOB_ENDED);
	return st;
}

static struct json *record(struct world *w, int i, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/%d.1/%s", w->root, i, name);
	struct json *j = NULL;

	json_read_file(path, 1 << 20, &j, NULL);
	return j;
}

/* Throughput of the last step of a slot. */
static double throughput(struct world *w, int i, int slot)
{
	_cleanup_free_ char *path = xasprintf("%s/%d.1/t%02d/metrics.jsonl", w->root, i, slot);
	_cleanup_(json_freep) struct json *j = NULL;
	struct buf b = {0};
	const char *last;

	assert_int_equal(fs_read(path, 1 << 20, &b, NULL), 0);
	b.data[b.len - 1] = '\0';
	last = strrchr(b.data, '\n') + 1;
	assert_int_equal(json_parse("metrics", last, strlen(last), &j, NULL), 0);
	buf_free(&b);
	return json_number(json_get(j, "throughput_samples_per_s"), NAN);
}

static void effects_and_noise_are_as_declared(void **state)
{
	struct world w;
	double log_ratio = 0, log_square = 0;
	struct err e = {0};
	enum { N = 60 };

	(void)state;
	world_new("{\"base\":200,\"sd_run\":0.02,\"sd_alloc\":0.1,\"effects\":{\"--workers "
		  "4\":0.25}}",
		  &w);
	for (int i = 1; i <= N; i++) {
		char id[64];
		double d;

		assert_ok(submit(&w, i, id, &e));
		assert_int_equal(run_to_end(&w, id).end, END_OK);
		d = log(throughput(&w, i, 0) / throughput(&w, i, 1));
		log_ratio += d / N;
		log_square += d * d / N;
	}
	/* sd of the mean: 0.02 * sqrt(2 / 60) = 0.0037; five of them */
	assert_true(fabs(log_ratio - log(1.25)) < 0.018);
	assert_true(sqrt(log_square - log_ratio * log_ratio) <
		    0.05); /* the allocation's noise is shared */
	world_free(&w);
}

static void records_look_like_the_agents(void **state)
{
	struct world w;
	char id[64], hash[33];
	struct err e = {0};
	struct json *t, *done;
	_cleanup_free_ char *path = NULL;

	(void)state;
	world_new("{\"undelivered\":[\"K\",\"--workers\"],\"maps\":{\"K=2\":\"/lib/"
		  "libjemalloc.so.2\"},"
		  "\"out_lines\":{\"K=2\":\"NCCL INFO read K\"}}",
		  &w);
	assert_ok(submit(&w, 1, id, &e));
	run_to_end(&w, id);
	t = record(&w, 1, "t01.json");
	done = record(&w, 1, "done.json");
	path = xasprintf("%s/1.1/t01.json", w.root);
	assert_int_equal(fs_hash_file(path, hash, NULL), 0);
	assert_string_equal(json_text(json_get(json_at(json_get(done, "slots"), 1), "xxh"), ""),
			    hash);
	assert_string_equal(json_text(json_get(done, "state"), ""), "complete");
	assert_int_equal(json_len(json_get(done, "slots")), SLOTS);
	assert_string_equal(json_text(json_get(t, "state"), ""), "ok");
	assert_int_equal(json_i64(json_get(t, "steps_seen"), 0), 7);
	t = TAKE(t);
	{
		const struct json *rank = json_at(json_get(t, "ranks"), 0);

		assert_null(json_get(json_get(rank, "env"), "K"));
		assert_int_equal(json_len(json_get(rank, "argv")), 1);
		assert_non_null(json_get(json_get(rank, "env_other"), "HOME"));
		assert_string_equal(json_text(json_at(json_get(rank, "maps"), 0), ""),
				    "/lib/libjemalloc.so.2");
	}
	json_free(t);
	json_free(done);
	world_free(&w);
}

static void faults_come_as_often_as_declared(void **state)
{
	struct world w;
	int n[END_LAUNCH_FAILED + 1] = {0}, with_done = 0, partial = 0;
	struct err e = {0};
	enum { N = 200 };

	(void)state;
	world_new("{\"persist\":false,\"faults\":{\"lost\":0.2,\"void\":0.2,\"node_fail\":0.2,"
		  "\"timeout\":0.2}}",
		  &w);
	for (int i = 1; i <= N; i++) {
		struct json *done;
		char id[64];

		assert_ok(submit(&w, i, id, &e));
		n[run_to_end(&w, id).end]++;
		done = record(&w, i, "done.json");
		with_done += done != NULL;
		partial += done && str_eq(json_text(json_get(done, "state"), ""), "partial");
		json_free(done);
	}
	/* binomial, p = 0.2 or 0.4, n = 200: mean 40 or 80, 4 sd = 23 or 28 */
	assert_in_range(n[END_OK], 17, 63);
	assert_in_range(n[END_NODE_FAIL], 17, 63);
	assert_in_range(n[END_TIMEOUT], 17, 63);
	assert_in_range(n[END_FAILED], 52, 108);
	assert_in_range(partial, 17, 63);
	assert_int_equal(with_done, n[END_OK] + partial);
	world_free(&w);
}

static void an_unanswered_submit_is_found_or_proved_absent(void **state)
{
	struct world w;
	int found = 0, absent = 0;
	enum { N = 100 };

	(void)state;
	world_new("{\"faults\":{\"submit_lost\":0.3,\"accepted_but_timed_out\":0.3}}", &w);
	for (int i = 1; i <= N; i++) {
		struct sched_status st;
		struct err e = {0};
		char id[64], token[64];
		int rc = submit(&w, i, id, &e), tries = 0;

		token_of(i, token);
		while (rc == -ERR_TEMP && tries++ < 50) {
			if (fake()->find(w.run, token, &st, &e) == 1) {
				found++;
				str_copy(id, sizeof id, st.id);
				rc = 0;
			} else {
				absent++;
				rc = submit(&w, i, id, &e);
			}
		}
		assert_int_equal(rc, 0);
		assert_int_equal(run_to_end(&w, id).end, END_OK);
	}
	assert_in_range(found, 15, 80);
	assert_in_range(absent, 15, 80);
	world_free(&w);
}

static void a_restart_remembers_jobs_and_time(void **state)
{
	struct world w;
	char first[64], second[64], token[64];
	struct sched_status st;
	struct err e = {0};
	int64_t then;

	(void)state;
	world_new("{}", &w);
	assert_ok(submit(&w, 1, first, &e));
	run_to_end(&w, first);
	assert_ok(submit(&w, 2, second, &e));
	then = w.virtual.utc_us;
	fake()->close(w.run);
	w.virtual.utc_us = INT64_C(1700000000000000);
	open_world(&w, "{}");
	assert_true(w.virtual.utc_us >= then);
	token_of(2, token);
	assert_int_equal(fake()->find(w.run, token, &st, &e), 1);
	assert_string_equal(st.id, second);
	assert_int_equal(st.state, JOB_RUNNING);
	assert_int_equal(run_to_end(&w, first).end, END_OK);
	assert_int_equal(run_to_end(&w, second).end, END_OK);
	world_free(&w);
}

static void equal_seeds_give_equal_bytes(void **state)
{
	struct world w[2];
	struct err e = {0};
	char id[64], hash[2][33];

	(void)state;
	for (int k = 0; k < 2; k++) {
		_cleanup_free_ char *path = NULL;

		world_new("{}", &w[k]);
		assert_ok(submit(&w[k], 1, id, &e));
		run_to_end(&w[k], id);
		path = xasprintf("%s/1.1/done.json", w[k].root);
		assert_int_equal(fs_hash_file(path, hash[k], NULL), 0);
		world_free(&w[k]);
	}
	assert_string_equal(hash[0], hash[1]);
}

static void a_bad_truth_is_named(void **state)
{
	static const struct {
		const char *spec, *want;
	} cases[] = {
		{"{\"bse\":1}", "\"bse\" is no member (did you mean \"base\"?)"},
		{"{\"sd_run\":\"x\"}", "sd_run: expected a number"},
		{"{\"faults\":{\"lost\":2}}", "lost: 2 is not within 0..1"},
		{"{\"faults\":{\"lots\":1}}", "faults: \"lots\" is no member"},
		{"[]", "expected an object"},
		{"{", "fake truth"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct fake_truth t;
		struct err e = {0};

		assert_int_equal(fake_truth_read(cases[i].spec, &t, &e), -ERR_PARSE);
		assert_contains(e.text, cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(effects_and_noise_are_as_declared),
		cmocka_unit_test(records_look_like_the_agents),
		cmocka_unit_test(faults_come_as_often_as_declared),
		cmocka_unit_test(an_unanswered_submit_is_found_or_proved_absent),
		cmocka_unit_test(a_restart_remembers_jobs_and_time),
		cmocka_unit_test(equal_seeds_give_equal_bytes),
		cmocka_unit_test(a_bad_truth_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
