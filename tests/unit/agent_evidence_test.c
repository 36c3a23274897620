/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranks of another node beside those that were seen here. */
#include "tests/unit/check.h"

#include <stdlib.h>

#include "orchestrator/agent/evidence.h"
#include "orchestrator/base/mem.h"

enum { LAUNCHER = 77 };

static void have(struct evidence *ev, int rank, pid_t pid)
{
	ev->v = xgrow(ev->v, ev->n, &ev->cap, sizeof *ev->v);
	ev->v[ev->n++] = (struct evidence_rank){.rank = rank, .pid = pid, .node = xstrdup("n1")};
	ev->seen += rank >= 0;
	ev->expected = 1;
}

static const char OTHER[] =
	"{\"ranks\": [{\"rank\": 3, \"node\": \"n2\", \"pid\": 5, \"argv\": [\"a\", \"b\"], \"env\": "
	"{\"X\": \"1\"}, \"env_other\": {}, \"maps\": [\"/l.so\"], \"threads\": 2, \"children\": 1},"
	"{\"rank\": 0, \"node\": \"n2\", \"pid\": 4, \"argv\": [], \"env\": {}, \"env_other\": {}, "
	"\"maps\": []}], \"ranks_seen\": 2, \"ranks_expected\": 4}";

static void ranks_are_put_in_order(void **state)
{
	struct evidence ev = {0};
	struct err e = {0};

	(void)state;
	have(&ev, -1, LAUNCHER);
	have(&ev, 1, 8);
	assert_ok(evidence_add(&ev, OTHER, strlen(OTHER), LAUNCHER, &e));
	assert_int_equal(ev.n, 4);
	assert_int_equal(ev.seen, 3);
	assert_int_equal(ev.expected, 4);
	assert_int_equal(ev.v[0].rank, -1);
	assert_string_equal(ev.v[1].node, "n2");
	assert_string_equal(ev.v[2].node, "n1");
	assert_int_equal(ev.v[3].rank, 3);
	assert_string_equal(ev.v[3].argv.v[1], "b");
	assert_string_equal(kvs_get(&ev.v[3].env, "X"), "1");
	assert_string_equal(ev.v[3].maps.v[0], "/l.so");
	evidence_free(&ev);
}

/* Where no rank was seen the launcher stands for rank 0, until another node shows the real one. */
static void a_launcher_gives_way(void **state)
{
	struct evidence ev = {0};
	struct err e = {0};
	static const char none[] = "{\"ranks\": [], \"ranks_expected\": 0}";

	(void)state;
	have(&ev, 0, LAUNCHER);
	assert_ok(evidence_add(&ev, none, strlen(none), LAUNCHER, &e));
	assert_int_equal(ev.v[0].rank, 0);
	assert_ok(evidence_add(&ev, OTHER, strlen(OTHER), LAUNCHER, &e));
	assert_int_equal(ev.v[0].rank, -1);
	assert_int_equal(ev.v[1].rank, 0);
	assert_int_equal(ev.seen, 2);
	evidence_free(&ev);
}

static void what_is_not_whole_changes_nothing(void **state)
{
	static const char *const bad[] = {
		"", "[]", "{\"ranks\": [{\"rank\": 0}]}", "{\"ranks\": [1]}",
		"{\"ranks\": [{\"rank\": 0, \"node\": \"n2\", \"env\": {\"A\": 1}}]}"};
	struct evidence ev = {0};
	struct err e = {0};

	(void)state;
	have(&ev, 0, 8);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_true(evidence_add(&ev, bad[i], strlen(bad[i]), LAUNCHER, &e) < 0);
	assert_true(evidence_add(&ev, OTHER, strlen(OTHER) - 9, LAUNCHER, &e) < 0);
	assert_int_equal(ev.n, 1);
	assert_int_equal(ev.seen, 1);
	evidence_free(&ev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_are_put_in_order),
		cmocka_unit_test(a_launcher_gives_way),
		cmocka_unit_test(what_is_not_whole_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
