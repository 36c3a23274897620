/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's counters of what it killed for memory, in each of their places. */
#include "tests/unit/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/agent/oom.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

static char root[] = "/tmp/fettle-oom-XXXXXX";

static void put(const char *path, const char *text)
{
	_cleanup_free_ char *full = xasprintf("%s%s", root, path);
	_cleanup_free_ char *dir = xstrdup(full);
	struct err e = {0};

	*strrchr(dir, '/') = '\0';
	assert_ok(fs_mkdirs(dir, 0700, &e));
	assert_ok(fs_write_atomic(full, text, strlen(text), 0600, &e));
}

static void check(int64_t own, int64_t node)
{
	struct oom_count c;

	oom_read(root, &c);
	assert_int_equal(c.own, own);
	assert_int_equal(c.node, node);
}

static void test_places(void **state)
{
	(void)state;
	check(-1, -1);
	put("/proc/vmstat", "nr_free_pages 1\noom_kill 11\nnuma_hit 2\n");
	check(-1, 11);
	put("/proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0\n");
	check(-1, 11);
	put("/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/memory.events",
	    "low 0\nhigh 0\nmax 40\noom 2\noom_kill 3\noom_group_kill 0\n");
	check(3, 11);
	/* both versions side by side: the memory controller is of the first */
	put("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/jobs/7\n0::/none\n");
	put("/sys/fs/cgroup/memory/jobs/7/memory.oom_control",
	    "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
	check(5, 11);
}

static void says(struct oom_count a, struct oom_count b, const char *want)
{
	char text[128];

	oom_text(&a, &b, text, sizeof text);
	assert_string_equal(text, want);
}

static void test_texts(void **state)
{
	(void)state;
	says((struct oom_count){3, 11}, (struct oom_count){4, 12},
	     ": out of host memory: the kernel killed 1 process of its cgroup");
	says((struct oom_count){3, 11}, (struct oom_count){3, 13},
	     ": out of host memory: the kernel killed 2 processes of this node while it ran");
	says((struct oom_count){-1, 11}, (struct oom_count){-1, 12},
	     ": out of host memory: the kernel killed 1 process of this node while it ran");
	says((struct oom_count){3, 11}, (struct oom_count){3, 11}, "");
	says((struct oom_count){-1, -1}, (struct oom_count){-1, -1}, ": out of memory?");
	/* a counter that comes and goes is no growth */
	says((struct oom_count){-1, 11}, (struct oom_count){4, 11}, "");
}

static int make_root(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static int drop_root(void **state)
{
	struct err e = {0};

	(void)state;
	return fs_remove_tree(root, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, make_root, drop_root);
}
