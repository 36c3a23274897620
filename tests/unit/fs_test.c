/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void put(const char *path, const char *text)
{
	struct err e = {0};

	assert_ok(fs_write_atomic(path, text, strlen(text), 0600, &e));
}

static void read_is_bounded(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "f");
	struct buf b = {0};
	struct err e = {0};

	(void)state;
	put(path, "hello");
	buf_str(&b, "> ");
	assert_ok(fs_read(path, 5, &b, &e));
	assert_string_equal(b.data, "> hello");
	assert_int_equal(fs_read(path, 4, &b, &e), -ERR_LIMIT);
	assert_contains(e.text, "larger than 4 bytes");
	assert_string_equal(b.data, "> hello"); /* no side effect */
	buf_free(&b);
	put(path, "");
	assert_ok(fs_read(path, 0, &b, &e));
	assert_string_equal(b.data, "");
	buf_free(&b);
}

static void read_waits_for_no_writer(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "pipe");
	char hash[33], none[33];
	struct buf b = {0};
	struct err e = {0};
	int writer;

	(void)state;
	assert_return_code(mkfifo(path, 0600), errno);
	alarm(60); /* without a writer open(2) would wait for ever */
	assert_ok(fs_read(path, 9, &b, &e));
	assert_string_equal(b.data, "");
	assert_ok(fs_hash_file(path, hash, &e));
	fs_hash("", 0, none);
	assert_string_equal(hash, none);
	writer = open(path, O_RDWR | O_CLOEXEC);
	assert_return_code(writer, errno);
	assert_int_equal(write(writer, "text", 4), 4);
	assert_int_equal(fs_read(path, 3, &b, &e), -ERR_LIMIT); /* what is in it is read */
	close(writer);
	alarm(0);
	buf_free(&b);
}

static void read_says_what_is_absent(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "none");
	struct buf b = {0};
	struct err e = {0};

	(void)state;
	assert_int_equal(fs_read(path, 5, &b, &e), -ERR_NOT_FOUND);
	assert_contains(e.text, path);
	assert_int_equal(fs_read(dir, 5, &b, &e), -ERR_IO); /* a directory */
	assert_null(b.data);
}

/* What a disk or a file server says is told apart from what is wrong with the file. */
static void a_failed_read_is_no_wrong_file(void **state)
{
	static const int failed[] = {EIO, ESTALE, ETIMEDOUT, EREMOTEIO, ENOTCONN, ESHUTDOWN},
			 wrong[] = {EISDIR, EACCES, ELOOP, ENXIO};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(failed); i++)
		assert_int_equal(fs_code(failed[i]), ERR_READ);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_int_equal(fs_code(wrong[i]), ERR_IO);
	assert_int_equal(fs_code(ENOENT), ERR_NOT_FOUND);
}

static void atomic_write_replaces_with_mode(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "f");
	_cleanup_free_ char *tmp = xasprintf("%s/.f.tmp.%ld", dir, (long)getpid());
	struct buf b = {0};
	struct stat st;
	struct err e = {0};

	(void)state;
	put(path, "first, and longer");
	put(tmp, "left by a crash");
	assert_ok(fs_write_atomic(path, "x\0y", 3, 0640, &e));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_ok(fs_read(path, 99, &b, &e));
	assert_int_equal(b.len, 3);
	assert_memory_equal(b.data, "x\0y", 3);
	assert_false(fs_exists(tmp));
	buf_free(&b);
}

/* What stands in /dev must not become a file because root writes a report there. */
static void a_named_file_may_be_a_pipe_or_a_link(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *pipe = fs_join(dir, "pipe"), *link = fs_join(dir, "link");
	_cleanup_free_ char *file = fs_join(dir, "file");
	char got[8] = "";
	struct err e = {0};
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(mkfifo(pipe, 0600), 0);
	fd = open(pipe, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_ok(fs_write_named(pipe, "hello", 5, 0600, &e));
	assert_int_equal(read(fd, got, sizeof got), 5);
	close(fd);
	assert_int_equal(lstat(pipe, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));

	put(file, "old");
	assert_int_equal(symlink("file", link), 0);
	assert_ok(fs_write_named(link, "newer", 5, 0600, &e));
	assert_int_equal(fs_size(file), 5);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));

	assert_int_equal(fs_write_named("", "x", 1, 0600, &e), -ERR_USAGE);
	assert_int_equal(fs_write_named(dir, "x", 1, 0600, &e), -ERR_IO);
}

static void atomic_write_names_the_file_that_failed(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "no/f");
	struct err e = {0};

	(void)state;
	assert_int_equal(fs_write_atomic(path, "x", 1, 0600, &e), -ERR_IO);
	assert_contains(e.text, "no/f: No such file");
}

/* A file size limit stops the write half-way, as a full disk does, and needs no root. */
static int write_under_limit(const char *path)
{
	static char big[65536];
	const struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
	struct err e = {0};

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	return fs_write_atomic(path, big, sizeof big, 0600, &e) == -ERR_IO && strstr(e.text, path)
		       ? 0
		       : 1;
}

static void expect_old_file_only(const char *dir, const char *path)
{
	struct buf b = {0};
	struct err e = {0};

	assert_ok(fs_read(path, 99, &b, &e));
	assert_string_equal(b.data, "old");
	buf_free(&b);
	assert_int_equal(rmdir(dir), -1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0); /* nothing else was left in it */
	assert_int_equal(mkdir(dir, 0700), 0);
}

static void a_cut_write_leaves_the_old_file(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "f");
	int status = -1;
	pid_t pid;

	(void)state;
	put(path, "old");
	pid = fork();
	if (pid == 0)
		_exit(write_under_limit(path));
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	expect_old_file_only(dir, path);
}

/* As root, a real full file system too. */
static void a_full_disk_leaves_the_old_file(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *sub = fs_join(dir, "small");
	_cleanup_free_ char *path = fs_join(sub, "f");
	static char big[1 << 20];
	struct buf b = {0};
	struct err e = {0};

	(void)state;
	assert_int_equal(mkdir(sub, 0700), 0);
	if (mount("none", sub, "tmpfs", 0, "size=64k")) {
		assert_true(errno == EPERM || errno == EACCES); /* not root, or no right to mount */
		return;
	}
	put(path, "old");
	assert_int_equal(fs_write_atomic(path, big, sizeof big, 0600, &e), -ERR_IO);
	assert_contains(e.text, "No space left");
	assert_ok(fs_read(path, 99, &b, &e));
	assert_string_equal(b.data, "old");
	buf_free(&b);
	assert_int_equal(umount(sub), 0);
}

static void mkdirs_makes_parents(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *deep = fs_join(dir, "a//b/c/");
	_cleanup_free_ char *file = fs_join(dir, "f");
	_cleanup_free_ char *under = fs_join(file, "d");
	struct err e = {0};

	(void)state;
	assert_ok(fs_mkdirs(deep, 0700, &e));
	assert_ok(fs_mkdirs(deep, 0700, &e));
	assert_true(fs_exists(deep));
	put(file, "");
	assert_int_equal(fs_mkdirs(file, 0700, &e), -ERR_IO);
	assert_int_equal(fs_mkdirs(under, 0700, &e), -ERR_IO);
	assert_int_equal(fs_mkdirs("", 0700, &e), -ERR_IO);
}

static void remove_tree_does_not_follow_links(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *tree = fs_join(dir, "tree");
	_cleanup_free_ char *locked = fs_join(tree, "a/locked");
	_cleanup_free_ char *inside = fs_join(locked, "f");
	_cleanup_free_ char *link = fs_join(tree, "link");
	_cleanup_free_ char *keep = fs_join(dir, "keep");
	struct err e = {0};

	(void)state;
	assert_ok(fs_mkdirs(locked, 0700, &e));
	put(inside, "x");
	put(keep, "y");
	assert_int_equal(symlink(dir, link), 0);
	assert_int_equal(chmod(locked, 0), 0);
	assert_ok(fs_remove_tree(tree, &e));
	assert_false(fs_exists(tree));
	assert_true(fs_exists(keep));
	assert_ok(fs_remove_tree(tree, &e)); /* absent is fine */
	assert_ok(fs_remove_tree(keep, &e)); /* a file too */
	assert_false(fs_exists(keep));
}

static void remove_tree_has_a_floor(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	struct err e = {0};
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(chdir(dir), 0);
	for (int i = 0; i < 300; i++) {
		assert_int_equal(mkdir("d", 0700), 0);
		assert_int_equal(chdir("d"), 0);
	}
	assert_int_equal(fs_remove_tree(dir, &e), -ERR_IO);
	assert_contains(e.text, dir);
	for (int i = 0; i < 300; i++) { /* what is too deep for it is removed from below */
		assert_int_equal(chdir(".."), 0);
		assert_int_equal(rmdir("d"), 0);
	}
	assert_int_equal(fchdir(here), 0);
	close(here);
}

static void names(void **state)
{
	static const char *const joins[][3] = {
		{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"a", "/b", "/b"}, {"", "b", "b"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(joins); i++) {
		_cleanup_free_ char *p = fs_join(joins[i][0], joins[i][1]);

		assert_string_equal(p, joins[i][2]);
	}
	assert_string_equal(fs_basename("/a/b.c"), "b.c");
	assert_string_equal(fs_basename("b.c"), "b.c");
	assert_string_equal(fs_basename("a/"), "");
}

static void ways_from_a_directory(void **state)
{
	static const struct {
		const char *dir, *path, *way;
	} cases[] = {
		{"/a/site", "/a/ws", "../ws"},
		{"/a/site/team", "/a/ws/blocks/1.1", "../../ws/blocks/1.1"},
		{"/a/site", "/a/site-2/ws", "../site-2/ws"},
		{"/a/ws", "/a/ws/blocks", "blocks"},
		{"/a/ws/site", "/a/ws", ".."},
		{"/a", "/a", "."},
		{"/a/b", "/c/b", NULL},
		{"/", "/c", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_free_ char *way = fs_relative(cases[i].dir, cases[i].path);

		if (cases[i].way)
			assert_string_equal(way, cases[i].way);
		else
			assert_null(way);
	}
}

static void absolute_resolves_existing_paths(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *dotted = fs_join(dir, "./../");
	_cleanup_free_ char *real = NULL;
	struct err e = {0};

	(void)state;
	real = fs_absolute(dotted, &e);
	assert_non_null(real);
	assert_null(strstr(real, ".."));
	assert_null(fs_absolute("/nowhere/at/all", &e));
	assert_int_equal(e.code, ERR_NOT_FOUND);
}

static void size_and_kind_of_file_system(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "f");

	(void)state;
	put(path, "12345");
	assert_int_equal(fs_size(path), 5);
	assert_int_equal(fs_size("/nowhere"), -1);
	assert_false(fs_is_network("/proc"));
	assert_false(fs_is_network("/proc/no/such/thing")); /* told by its nearest parent */
	assert_false(fs_is_network("no-such-file-here"));
}

/* Published values of XXH3-128 (xxhsum -H2): an identity must not depend on the library's version.
 */
static void hashes_are_pinned(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "f");
	_cleanup_free_ char *big = xcalloc(200000, 1);
	char a[33], b[33];
	struct err e = {0};

	(void)state;
	fs_hash("", 0, a);
	assert_string_equal(a, "99aa06d3014798d86001c324468d497f");
	fs_hash("abc", 3, a);
	assert_string_equal(a, "06b05ab6733a618578af5f94892f3950");
	big[199999] = 'x';
	assert_ok(fs_write_atomic(path, big, 200000, 0600, &e)); /* several chunks */
	fs_hash(big, 200000, a);
	assert_ok(fs_hash_file(path, b, &e));
	assert_string_equal(a, b);
	assert_int_equal(fs_hash_file("/nowhere", b, &e), -ERR_NOT_FOUND);
	assert_int_equal(fs_hash_file(dir, b, &e), -ERR_IO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_is_bounded),
		cmocka_unit_test(read_waits_for_no_writer),
		cmocka_unit_test(read_says_what_is_absent),
		cmocka_unit_test(a_failed_read_is_no_wrong_file),
		cmocka_unit_test(atomic_write_replaces_with_mode),
		cmocka_unit_test(a_named_file_may_be_a_pipe_or_a_link),
		cmocka_unit_test(atomic_write_names_the_file_that_failed),
		cmocka_unit_test(a_cut_write_leaves_the_old_file),
		cmocka_unit_test(a_full_disk_leaves_the_old_file),
		cmocka_unit_test(mkdirs_makes_parents),
		cmocka_unit_test(remove_tree_does_not_follow_links),
		cmocka_unit_test(remove_tree_has_a_floor),
		cmocka_unit_test(names),
		cmocka_unit_test(ways_from_a_directory),
		cmocka_unit_test(absolute_resolves_existing_paths),
		cmocka_unit_test(size_and_kind_of_file_system),
		cmocka_unit_test(hashes_are_pinned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
