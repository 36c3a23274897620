/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commits of repositories as git lays them out. */
#include "tests/unit/check.h"

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/commit.h"

#define ONE "1111111111111111111111111111111111111111"
#define TWO "2222222222222222222222222222222222222222"

/* A file with its directories. */
static void put(const char *dir, const char *name, const char *text)
{
	_cleanup_free_ char *path = fs_join(dir, name), *parent = xstrdup(path);
	struct err e = {0};

	*strrchr(parent, '/') = '\0';
	assert_ok(fs_mkdirs(parent, 0700, &e));
	assert_ok(fs_write_atomic(path, text, strlen(text), 0600, &e));
}

static void assert_commit(const char *dir, const char *below, const char *want)
{
	_cleanup_free_ char *path = fs_join(dir, below), *commit = NULL;
	struct err e = {0};

	assert_ok(fs_mkdirs(path, 0700, &e));
	commit = commit_of(path);
	if (want)
		assert_string_equal(commit, want);
	else
		assert_null(commit);
}

static void test_branches_loose_and_packed(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();

	(void)state;
	put(dir, ".git/HEAD", "ref: refs/heads/main\n");
	assert_commit(dir, "", NULL); /* nothing is committed yet */
	put(dir, ".git/packed-refs",
	    "# pack-refs with: peeled\n" TWO " refs/heads/mai\n" ONE " refs/heads/main\n^" TWO
	    "\n");
	assert_commit(dir, "src/deep", ONE);
	put(dir, ".git/refs/heads/main", TWO "\n");
	assert_commit(dir, "src/deep", TWO);
	put(dir, ".git/HEAD", ONE "\n");
	assert_commit(dir, "", ONE);
}

static void test_a_worktree_has_its_own_head(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();

	(void)state;
	put(dir, "main/.git/HEAD", "ref: refs/heads/main\n");
	put(dir, "main/.git/refs/heads/main", ONE "\n");
	put(dir, "main/.git/refs/heads/topic", TWO "\n");
	put(dir, "main/.git/worktrees/w/HEAD", "ref: refs/heads/topic\n");
	put(dir, "main/.git/worktrees/w/commondir", "../..\n");
	put(dir, "w/.git", "gitdir: ../main/.git/worktrees/w\n");
	assert_commit(dir, "w", TWO);
	assert_commit(dir, "main", ONE);
}

static void test_what_is_no_repository(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();

	(void)state;
	put(dir, "a/.git/HEAD", "ref: ../../../etc/passwd\n");
	put(dir, "b/.git/HEAD", "ref: refs/heads/loop\n");
	put(dir, "b/.git/refs/heads/loop", "ref: refs/heads/loop\n");
	put(dir, "c/.git/HEAD", "not a hash\n");
	put(dir, "d/.git", "gitdir: nowhere\n");
	assert_commit(dir, "a", NULL);
	assert_commit(dir, "b", NULL);
	assert_commit(dir, "c", NULL);
	assert_commit(dir, "d", NULL);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_branches_loose_and_packed),
		cmocka_unit_test(test_a_worktree_has_its_own_head),
		cmocka_unit_test(test_what_is_no_repository),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
