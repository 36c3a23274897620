/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <unistd.h>

#include "orchestrator/agent/capture.h"
#include "orchestrator/base/str.h"

/* What the callback saw: lines with "|" behind each. */
static void collect(void *ctx, const char *line, size_t n, int64_t utc_us)
{
	struct buf *b = ctx;

	(void)utc_us;
	buf_put(b, line, n);
	buf_char(b, '|');
}

static struct capture *open_in(const char *dir, int64_t log_bytes, struct buf *lines)
{
	struct capture *c = NULL;
	struct err e = {0};

	assert_ok(capture_open(dir, log_bytes, lines ? collect : NULL, lines, &c, &e));
	return c;
}

static void put(struct capture *c, const char *text, int64_t t_us)
{
	struct err e = {0};

	assert_ok(capture_put(c, text, strlen(text), t_us, &e));
}

static char *read_in(const char *dir, const char *name, size_t *n)
{
	_cleanup_free_ char *path = fs_join(dir, name);
	struct buf b = {0};
	struct err e = {0};

	assert_ok(fs_read(path, 1 << 24, &b, &e));
	if (n)
		*n = b.len;
	return buf_take(&b);
}

static struct capture_result finish(struct capture *c)
{
	struct capture_result r;
	struct err e = {0};

	assert_ok(capture_finish(c, 9, &r, &e));
	capture_free(c);
	return r;
}

static void small_output_is_kept_whole(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "out"), *text = NULL, *idx = NULL;
	struct capture *c = open_in(dir, 4096, NULL);
	struct capture_result r;
	char want[33];

	(void)state;
	put(c, "one\n", 100);
	put(c, "two", 200);
	r = finish(c);
	text = read_in(dir, "out", NULL);
	idx = read_in(dir, "out.idx", NULL);
	assert_string_equal(text, "one\ntwo");
	assert_string_equal(idx, "0 100\n");
	assert_int_equal(r.bytes, 7);
	assert_int_equal(r.total_bytes, 7);
	assert_false(r.cut);
	assert_string_equal(r.last_line, "two");
	assert_int_equal(fs_hash_file(path, want, NULL), 0);
	assert_string_equal(r.xxh, want);
}

static void no_output_is_an_empty_file_with_its_hash(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	struct capture_result r = finish(open_in(dir, 4096, NULL));
	char want[33];

	(void)state;
	fs_hash("", 0, want);
	assert_int_equal(r.bytes, 0);
	assert_string_equal(r.xxh, want);
	assert_string_equal(r.last_line, "");
}

/* Whatever the chunks are, the file is: head, marker, and the last quarter of the bound. */
static void big_output_keeps_head_and_tail(void **state)
{
	static const size_t chunks[] = {1, 7, 1000, 1024, 4096, 5000, 100000};

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(chunks); k++) {
		_cleanup_scratch_ char *dir = scratch_new();
		_cleanup_free_ char *path = fs_join(dir, "out"), *text = NULL,
				    *all = xmalloc(50000);
		struct capture *c = open_in(dir, 4096, NULL);
		struct capture_result r;
		char want[33];
		size_t n;

		for (size_t i = 0; i < 50000; i++)
			all[i] = (char)('a' + (i * 7 + i / 26) % 26);
		for (size_t at = 0; at < 50000; at += chunks[k]) {
			size_t len = 50000 - at < chunks[k] ? 50000 - at : chunks[k];

			assert_int_equal(capture_put(c, all + at, len, (int64_t)at, NULL), 0);
		}
		r = finish(c);
		text = read_in(dir, "out", &n);
		assert_true(r.cut);
		assert_int_equal(r.total_bytes, 50000);
		assert_int_equal(r.bytes, n);
		assert_memory_equal(text, all, 3072);
		assert_memory_equal(text + 3072, "\n[fettle: 45904 bytes cut here]\n", 32);
		assert_memory_equal(text + n - 1024, all + 50000 - 1024, 1024);
		assert_int_equal(n, 4096 + 32);
		assert_int_equal(fs_hash_file(path, want, NULL), 0);
		assert_string_equal(r.xxh, want);
	}
}

/* Each offset of the index must be where the bytes of that time begin. */
static void the_index_gives_places_in_the_file(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *text = NULL, *idx = NULL;
	struct capture *c = open_in(dir, 4096, NULL);
	int found = 0;

	(void)state;
	for (int i = 0; i < 3000; i++) { /* 10 bytes a time, 2 s apart: a line of the index each */
		char line[32];

		snprintf(line, sizeof line, "line%05d\n", i);
		put(c, line, INT64_C(2000000) * i);
	}
	finish(c);
	text = read_in(dir, "out", NULL);
	idx = read_in(dir, "out.idx", NULL);
	for (char *p = idx; *p; p = strchr(p, '\n') + 1) {
		long long at, us;
		char want[32];

		assert_int_equal(sscanf(p, "%lld %lld", &at, &us), 2);
		snprintf(want, sizeof want, "line%05lld", us / 2000000);
		if (at + 9 <= (long long)strlen(text) &&
		    us / 2000000 != 307) { /* 307 is cut in two */
			assert_memory_equal(text + at, want, 9);
			found++;
		}
	}
	assert_in_range(found, 300, 420);
}

static void lines_are_handed_out_whole(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	struct buf lines = {0};
	struct capture *c = open_in(dir, 4096, &lines);

	(void)state;
	put(c, "on", 1);
	put(c, "e\ntwo\r\nthr", 2);
	put(c, "ee\r 10%\r 20%\n\nlast", 3);
	assert_string_equal(lines.data, "one|two|three| 10%| 20%|");
	finish(c);
	assert_string_equal(lines.data, "one|two|three| 10%| 20%|last|");
	buf_free(&lines);
}

static void a_long_line_is_cut_and_the_next_one_is_not(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *big = xmalloc(200001);
	struct buf lines = {0};
	struct capture *c = open_in(dir, 4096, &lines);

	(void)state;
	memset(big, 'x', 200000);
	big[200000] = '\0';
	for (int i = 0; i < 2; i++) { /* in one piece, and in two */
		buf_clear(&lines);
		if (i)
			put(c, "x", 1);
		put(c, big, 1);
		put(c, "\nnext\n", 1);
		assert_int_equal(lines.len, CAPTURE_LINE_MAX + strlen("|next|"));
		assert_string_equal(lines.data + CAPTURE_LINE_MAX, "|next|");
	}
	finish(c);
	buf_free(&lines);
}

static void the_last_line_is_one_that_says_something(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"a\nError: b\n\n  \n", "Error: b"},
		{"50%\r100%\r", "100%"},
		{"\n\n", ""},
		{"tab\there\001x\n", "tab here x"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_scratch_ char *dir = scratch_new();
		struct capture *c = open_in(dir, 4096, NULL);

		for (const char *p = cases[i].text; *p; p++)
			assert_int_equal(capture_put(c, p, 1, 1, NULL), 0);
		assert_string_equal(finish(c).last_line, cases[i].want);
	}
}

static void a_long_last_line_keeps_its_end(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	struct capture *c = open_in(dir, 4096, NULL);
	struct capture_result r;

	(void)state;
	for (int i = 0; i < 100; i++)
		put(c, "0123456789", 1);
	put(c, " the end\n", 1);
	r = finish(c);
	assert_int_equal(strlen(r.last_line), CAPTURE_LAST_MAX);
	assert_string_equal(r.last_line + CAPTURE_LAST_MAX - 8, " the end");
}

static void a_place_that_cannot_be_written_is_named(void **state)
{
	struct capture *c = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(capture_open("/nonexistent", 4096, NULL, NULL, &c, &e), -ERR_IO);
	assert_null(c);
	assert_contains(e.text, "/nonexistent/out");
}

/* A full disk is told once; counting goes on. */
static void a_failed_write_is_told_once(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *path = fs_join(dir, "out");
	struct buf lines = {0};
	struct capture *c;
	struct capture_result r;
	struct err e = {0};

	(void)state;
	assert_int_equal(symlink("/dev/full", path), 0);
	c = open_in(dir, 4096, &lines);
	assert_int_equal(capture_put(c, "one\n", 4, 1, &e), -ERR_IO);
	assert_contains(e.text, "No space left");
	assert_int_equal(capture_put(c, "two\n", 4, 1, &e), 0);
	assert_int_equal(capture_finish(c, 1, &r, &e), 0);
	assert_string_equal(lines.data, "one|two|");
	capture_free(c);
	buf_free(&lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_output_is_kept_whole),
		cmocka_unit_test(no_output_is_an_empty_file_with_its_hash),
		cmocka_unit_test(big_output_keeps_head_and_tail),
		cmocka_unit_test(the_index_gives_places_in_the_file),
		cmocka_unit_test(lines_are_handed_out_whole),
		cmocka_unit_test(a_long_line_is_cut_and_the_next_one_is_not),
		cmocka_unit_test(the_last_line_is_one_that_says_something),
		cmocka_unit_test(a_long_last_line_keeps_its_end),
		cmocka_unit_test(a_place_that_cannot_be_written_is_named),
		cmocka_unit_test(a_failed_write_is_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
