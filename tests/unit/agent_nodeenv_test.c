/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a node tells of itself: keys of the recipe, programs that hang, what cannot be read. */
#include "tests/unit/check.h"

#include <signal.h>
#include <unistd.h>

#include "orchestrator/agent/nodeenv.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

static struct block *block_in(const char *dir, const char *fingerprint)
{
	_cleanup_free_ char *text = xasprintf(
		"{\"format\":\"fettle.block/1\",\"token\":\"t:1\",\"block\":1,\"attempt\":1,"
		"\"workdir\":\"%s\",\"env\":{\"PATH\":\"/usr/bin:/bin\",\"A\":\"1\"},\"arms\":[{\"arm\":1,"
		"\"argv\":[\"true\"]}],\"slots\":[{\"slot\":0,\"arm\":1}]%s%s}",
		dir, fingerprint ? ",\"fingerprint\":" : "", fingerprint ? fingerprint : "");
	struct block *b = NULL;
	struct err e = {0};

	if (block_parse("block.json", text, strlen(text), &b, &e))
		fail_msg("%s", e.text);
	return b;
}

static void write_text(const char *dir, const char *name, const char *text)
{
	_cleanup_free_ char *path = fs_join(dir, name);
	struct err e = {0};

	assert_ok(fs_write_atomic(path, text, strlen(text), 0600, &e));
}

static void test_keys_of_the_recipe(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_(block_freep) struct block *b = block_in(
		dir,
		"{\"env\":{\"B\":\"2\"},\"keys\":["
		"{\"name\":\"toolchain\",\"file\":\"VERSION\"},"
		"{\"name\":\"gone\",\"file\":\"/nowhere/VERSION\"},"
		"{\"name\":\"empty\",\"file\":\"EMPTY\"},"
		"{\"name\":\"sees\",\"command\":[\"sh\",\"-c\",\"echo $A $B; pwd; echo more\"]},"
		"{\"name\":\"kernel\",\"command\":[\"echo\",\"mine\"]},"
		"{\"name\":\"os\",\"command\":[\"false\"]},"
		"{\"name\":\"silent\",\"command\":[\"true\"]},"
		"{\"name\":\"shot\",\"command\":[\"sh\",\"-c\",\"kill -9 $$\"]},"
		"{\"name\":\"missing\",\"command\":[\"no-such-program\"]}]}");
	struct kvs keys = {0}, absent = {0};

	(void)state;
	write_text(dir, "VERSION", " 1.2\nsecond\n");
	write_text(dir, "EMPTY", "\n");
	nodeenv_read(b, NODEENV_LIMIT_US, &keys, &absent);
	assert_string_equal(kvs_get(&keys, "toolchain"), "1.2");
	assert_string_equal(kvs_get(&keys, "sees"), "1 2");
	assert_string_equal(kvs_get(&keys, "kernel"), "mine"); /* the recipe's word counts */
	assert_contains(kvs_get(&absent, "gone"), "/nowhere/VERSION: No such file");
	assert_contains(kvs_get(&absent, "empty"), "there is no text in it");
	assert_string_equal(kvs_get(&absent, "os"), "its command exited with 1");
	assert_string_equal(kvs_get(&absent, "silent"), "its command printed nothing");
	assert_string_equal(kvs_get(&absent, "shot"), "its command was ended by signal 9");
	assert_contains(kvs_get(&absent, "missing"), "no-such-program");
	assert_int_equal(absent.n, 6);
	kvs_free(&keys);
	kvs_free(&absent);
}

/* With it goes what it started; what others say is there all the same. */
static void test_a_program_that_hangs_is_killed(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_(block_freep) struct block *b = block_in(
		dir,
		"{\"keys\":[{\"name\":\"hung\",\"command\":[\"sh\",\"-c\",\"sleep 1000 & echo $! >child; wait\"]},"
		"{\"name\":\"flood\",\"command\":[\"sh\",\"-c\",\"yes\"]},"
		"{\"name\":\"leaves\",\"command\":[\"sh\",\"-c\",\"sleep 1000 & echo $! >left; echo x\"]}]}");
	struct kvs keys = {0}, absent = {0};
	static const char *const files[] = {"child", "left"};

	(void)state;
	/* Long enough for a busy machine to have started them all. */
	nodeenv_read(b, 3000000, &keys, &absent);
	assert_string_equal(kvs_get(&absent, "hung"),
			    "its command did not end within 3 s and was killed");
	assert_string_equal(kvs_get(&keys, "leaves"), "x");
	assert_false(kvs_has(&keys, "hung"));
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		_cleanup_free_ char *path = fs_join(dir, files[i]);
		struct buf text = {0};
		struct err e = {0};
		int64_t pid = 0;

		assert_ok(fs_read(path, 100, &text, &e));
		assert_true(str_to_i64(text.data, &pid));
		for (int k = 0; k < 1000 && kill((pid_t)pid, 0) == 0; k++) {
			_cleanup_free_ char *stat = xasprintf("/proc/%lld/stat", (long long)pid);
			struct buf s = {0};
			bool zombie = fs_read(stat, 1000, &s, NULL) == 0 && s.data &&
				      strstr(s.data, ") Z");

			buf_free(&s);
			if (zombie) /* of whoever adopts it */
				break;
			if (k == 999)
				fail_msg("process %lld lives", (long long)pid);
			usleep(10000);
		}
		buf_free(&text);
	}
	kvs_free(&keys);
	kvs_free(&absent);
}

static char *text_of(const char *dir, const char *name)
{
	_cleanup_free_ char *path = fs_join(dir, name);
	struct buf b = {0};

	if (fs_read(path, 1 << 20, &b, NULL) < 0)
		return NULL;
	return buf_take(&b);
}

static void test_the_file(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_(block_freep) struct block
		*asked = block_in(dir, "{\"keys\":[{\"name\":\"os\",\"command\":[\"false\"]}]}"),
		*older = block_in(dir, NULL);
	_cleanup_free_ char *own = NULL, *other = NULL, *none = NULL;

	(void)state;
	nodeenv_write(asked, dir, "n1", true);
	nodeenv_write(asked, dir, "n2", false);
	own = text_of(dir, "environment.json");
	other = text_of(dir, "environment.n2.json");
	assert_contains(own,
			"{\"format\":\"fettle.environment/1\",\"token\":\"t:1\",\"node\":\"n1\"");
	assert_contains(other, "\"node\":\"n2\"");
	assert_contains(own, "\"absent\":{\"os\":\"its command exited with 1\"}");
	assert_null(strstr(own, "Debian")); /* what the recipe asked for is not what we know */
	nodeenv_write(older, dir, "n3", false);
	none = text_of(dir, "environment.n3.json");
	assert_null(none);
}

static void test_bad_keys_are_refused(void **state)
{
	static const char *const bad[] = {
		"{\"keys\":[{\"file\":\"x\"}]}",
		"{\"keys\":[{\"name\":\"a\"}]}",
		"{\"keys\":[{\"name\":\"a\",\"file\":\"x\",\"command\":[\"y\"]}]}",
		"{\"keys\":[7]}",
		"{\"env\":{\"\":\"1\"}}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		_cleanup_free_ char *text = xasprintf(
			"{\"format\":\"fettle.block/1\",\"token\":\"t\",\"block\":1,\"attempt\":1,"
			"\"workdir\":\"/w\",\"arms\":[{\"arm\":1,\"argv\":[\"true\"]}],\"slots\":[{\"slot\":0,"
			"\"arm\":1}],\"fingerprint\":%s}",
			bad[i]);
		struct block *b = NULL;
		struct err e = {0};

		assert_true(block_parse("block.json", text, strlen(text), &b, &e) < 0);
		assert_contains(e.text, "fingerprint");
	}
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_keys_of_the_recipe),
		cmocka_unit_test(test_a_program_that_hangs_is_killed),
		cmocka_unit_test(test_the_file),
		cmocka_unit_test(test_bad_keys_are_refused),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
