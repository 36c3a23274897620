/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bounds around fettle-slurm, against helpers of shell that misbehave on purpose. The clock
 * runs a hundred times as fast, so that no test waits for a real deadline. */
#include "tests/unit/check.h"

#include "orchestrator/sched/slurm_pipe.h"

enum { HASTE = 100 };

static int64_t fast_mono_us(void *ctx)
{
	(void)ctx;
	return clock_mono_us(&clock_system) * HASTE;
}

static const struct clock fast_clock = {.mono_us = fast_mono_us, .utc_us = fast_mono_us};

#define HELLO           \
	"read l; echo " \
	"'{\"id\":1,\"ok\":true,\"format\":\"fettle.slurm/1\",\"message_timeout_s\":10}'\n"
#define COUNT "echo x >> \"$0.starts\"\n"

struct fake {
	char dir[64], path[96];
};

static struct fake make_fake(const char *body)
{
	struct fake f = {.dir = "/tmp/fettle-pipe-XXXXXX"};
	struct buf b = {0};

	assert_non_null(mkdtemp(f.dir));
	snprintf(f.path, sizeof(f.path), "%s/helper", f.dir);
	buf_printf(&b, "#!/bin/sh\n%s", body);
	assert_int_equal(fs_write_atomic(f.path, b.data, b.len, 0755, NULL), 0);
	buf_free(&b);
	return f;
}

static int starts(const struct fake *f)
{
	_cleanup_free_ char *path = xasprintf("%s.starts", f->path);

	return (int)(fs_size(path) / 2);
}

static int call(struct slurm_pipe *p, bool repeatable, struct err *e)
{
	struct json *req = json_object(), *reply = NULL;
	int rc;

	json_set_text(req, "op", "poll");
	rc = slurm_pipe_call(p, req, repeatable, &reply, e);
	assert_int_equal(rc == 0, reply != NULL);
	json_free(reply);
	json_free(req);
	return rc;
}

static void test_answers(void **state)
{
	struct fake f = make_fake(
		HELLO
		"read l; echo '{\"id\":2,\"ok\":true}'\n"
		"read l; printf '%s\\n' "
		"'{\"id\":3,\"ok\":false,\"code\":\"notfound\",\"text\":\"no such\","
		"\"stderr\":\"fettle-slurm: error: one\\ntwo\"}'\n"
		"read l; echo '{\"id\":4,\"ok\":false,\"code\":\"perm\",\"text\":\"never\"}'\n"
		"read l; echo '{\"id\":5,\"ok\":false,\"code\":\"temp\",\"text\":\"later\"}'\nread "
		"l\n");
	struct slurm_pipe *p;
	struct err e;

	(void)state;
	assert_int_equal(slurm_pipe_open(f.path, &fast_clock, &p, &e), 0);
	assert_int_equal(call(p, true, &e), 0);
	assert_int_equal(call(p, true, &e), -ERR_NOT_FOUND);
	assert_string_equal(e.text, "no such; Slurm: one; Slurm: two");
	assert_int_equal(call(p, true, &e), -ERR_RECIPE);
	assert_int_equal(call(p, true, &e), -ERR_TEMP);
	assert_string_equal(e.text, "later");
	slurm_pipe_close(p);
	fs_remove_tree(f.dir, NULL);
}

/* A helper that answers each request with its own id, unless it shall die. */
#define ECHO                                                                 \
	"while read l; do id=${l##*\\\"id\\\":}; id=${id%%[!0-9]*}\n"        \
	"echo "                                                              \
	"\"{\\\"id\\\":$id,\\\"ok\\\":true,\\\"format\\\":\\\"fettle.slurm/" \
	"1\\\",\\\"message_timeout_s\\\":10}\"\n"                            \
	"%s\ndone\n"

static struct fake make_echo(const char *then)
{
	_cleanup_free_ char *body = NULL;

	body = xasprintf(COUNT ECHO, then);
	return make_fake(body);
}

/* The first start hangs after its hello: that call is lost, the next one gets a new helper. */
static void test_hung_helper_is_replaced(void **state)
{
	struct fake f = make_echo("[ $(wc -l < \"$0.starts\") != 1 ] || exec sleep 1000");
	struct slurm_pipe *p;
	struct err e;

	(void)state;
	assert_ok(slurm_pipe_open(f.path, &fast_clock, &p, &e));
	assert_int_equal(call(p, true, &e), -ERR_TEMP);
	assert_contains(e.text, "did not answer within 25 s");
	assert_int_equal(starts(&f), 1);
	assert_ok(call(p, true, &e));
	assert_int_equal(starts(&f), 2);
	slurm_pipe_close(p);
	fs_remove_tree(f.dir, NULL);
}

static void test_dead_helper_is_replaced(void **state)
{
	/* The first start dies after its hello; later ones live. */
	struct fake f = make_echo("[ $(wc -l < \"$0.starts\") != 1 ] || exit 9");
	struct slurm_pipe *p;
	struct err e;

	(void)state;
	assert_int_equal(slurm_pipe_open(f.path, &fast_clock, &p, &e), 0);
	assert_int_equal(call(p, true, &e), 0);
	assert_int_equal(call(p, true, &e), 0);
	assert_int_equal(starts(&f), 2);
	slurm_pipe_close(p);
	fs_remove_tree(f.dir, NULL);
}

static void test_unrepeatable_call_is_not_repeated(void **state)
{
	struct fake f = make_echo("[ $(wc -l < \"$0.starts\") != 1 ] || exit 9");
	struct slurm_pipe *p;
	struct err e;

	(void)state;
	assert_int_equal(slurm_pipe_open(f.path, &fast_clock, &p, &e), 0);
	assert_int_equal(call(p, false, &e), -ERR_TEMP);
	assert_non_null(strstr(e.text, "ended with status 9"));
	assert_int_equal(starts(&f), 1);
	assert_int_equal(call(p, false, &e), 0);
	slurm_pipe_close(p);
	fs_remove_tree(f.dir, NULL);
}

/* Three failures, then a rest of 30 s (0.3 s of this clock) without a single start. */
static void test_failures_are_bounded(void **state)
{
	struct fake f = make_echo("echo 'munge is away' >&2; exit 3");
	struct slurm_pipe *p;
	int before, rc;
	struct err e;

	(void)state;
	assert_int_equal(slurm_pipe_open(f.path, &fast_clock, &p, &e), 0);
	assert_int_equal(call(p, true, &e), -ERR_TEMP);
	assert_int_equal(call(p, true, &e), -ERR_TEMP);
	before = starts(&f);
	for (int i = 0; i < 5; i++) {
		rc = call(p, true, &e);
		assert_int_equal(rc, -ERR_TEMP);
	}
	assert_non_null(strstr(e.text, "times in a row"));
	assert_non_null(strstr(e.text, "munge is away"));
	assert_int_equal(starts(&f), before);
	slurm_pipe_close(p);
	fs_remove_tree(f.dir, NULL);
}

#define NOT_HERE "Slurm cannot be used on this machine: "

static void test_open_fails_with_the_reason(void **state)
{
	static const struct {
		const char *body, *text;
		int rc;
	} rows[] = {
		{"echo 'libslurm.so.99: cannot open' >&2; exit 127", "libslurm.so.99",
		 -ERR_NOT_FOUND},
		{"echo 'fatal: no source' >&2; exit 1",
		 NOT_HERE
		 "fettle-slurm ended with status 1; fatal: no source (run fettle where `sinfo` answers",
		 -ERR_NOT_FOUND},
		{"read l; echo '{\"id\":1,\"ok\":false,\"code\":\"notfound\",\"text\":\"ended\",\"stderr\":\"fatal: no source\"}'; exit 1",
		 NOT_HERE "ended; Slurm: fatal: no source (run fettle where `sinfo` answers",
		 -ERR_NOT_FOUND},
		{"kill -9 $$", "killed by signal 9", -ERR_TEMP},
		{"read l; echo nonsense", "reply of fettle-slurm", -ERR_PARSE},
		{"read l; echo '{\"id\":7,\"ok\":true}'", "another request", -ERR_PARSE},
		{"read l; echo '{\"id\":1,\"ok\":true,\"format\":\"fettle.slurm/9\"}'",
		 "expected fettle.slurm/1", -ERR_STATE},
		{"read l; echo '{\"id\":1,\"ok\":false,\"code\":\"perm\",\"text\":\"no conf\"}'",
		 "no conf", -ERR_RECIPE},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct fake f = make_fake(rows[i].body);
		struct slurm_pipe *p;
		struct err e = {0};

		assert_int_equal(slurm_pipe_open(f.path, &fast_clock, &p, &e), rows[i].rc);
		assert_non_null(strstr(e.text, rows[i].text));
		fs_remove_tree(f.dir, NULL);
	}
}

static void test_absent_program(void **state)
{
	struct slurm_pipe *p;
	struct err e;

	(void)state;
	assert_int_equal(slurm_pipe_open("/nonexistent/fettle-slurm", &fast_clock, &p, &e),
			 -ERR_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_hung_helper_is_replaced),
		cmocka_unit_test(test_dead_helper_is_replaced),
		cmocka_unit_test(test_unrepeatable_call_is_not_repeated),
		cmocka_unit_test(test_failures_are_bounded),
		cmocka_unit_test(test_open_fails_with_the_reason),
		cmocka_unit_test(test_absent_program),
	};

	return cmocka_run_group_tests_name("slurm_pipe", tests, NULL, NULL);
}
