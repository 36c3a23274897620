/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/store.h"

static void a_configuration_comes_back_as_it_was(void **state)
{
	struct store st = store_new(":memory:");
	struct config in = {.hash = "ffffffffffffffffffffffffffffffff"}, out = {0};
	struct err e = {0};
	int64_t id = 0;

	(void)state;
	strv_add(&in.argv, "python3");
	strv_add(&in.argv, "");
	strv_add(&in.argv, "a \"b\" 'c'\n\t\\ \xe4\xb8\xad");
	kvs_set(&in.env, "B", "x=y,z");
	kvs_set(&in.env, "A", NULL);
	kvs_set(&in.env, "C", "");
	kvs_set(&in.settings, "workers", "4");
	kvs_set(&in.settings, "alpha", "a b");
	assert_ok(query_config_put(st.db, &in, &id, &e));
	assert_ok(query_config_get(st.db, id, &out, &e));
	assert_string_equal(out.hash, in.hash);
	assert_int_equal(out.argv.n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(out.argv.v[i], in.argv.v[i]);
	assert_int_equal(out.env.n, 3);
	assert_string_equal(kvs_get(&out.env, "B"), "x=y,z");
	assert_string_equal(kvs_get(&out.env, "C"), "");
	assert_true(kvs_has(&out.env, "A"));
	assert_null(kvs_get(&out.env, "A"));
	assert_int_equal(out.settings.n, 2);
	assert_string_equal(out.settings.v[0].key, "alpha"); /* sorted */
	assert_string_equal(kvs_get(&out.settings, "workers"), "4");
	config_done(&in);
	config_done(&out);
	db_close(st.db);
}

static void the_same_hash_is_the_same_row(void **state)
{
	struct store st = store_new(":memory:");

	(void)state;
	assert_int_equal(store_config(st.db, 0), st.config[0]);
	assert_int_equal(store_config(st.db, 1), st.config[1]);
	assert_true(store_config(st.db, 2) > st.config[1]);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM config"), 3);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM setting"), 2);
	db_close(st.db);
}

static void half_a_configuration_is_none(void **state)
{
	struct store st = store_new(":memory:");
	struct config c = {.hash = "ffffffffffffffffffffffffffffffff"};
	struct err e = {0};
	int64_t id = -1;

	(void)state;
	kvs_set(&c.settings, "a", "1");
	kvs_set(&c.settings, "b", NULL); /* a setting has a value */
	assert_int_equal(query_config_put(st.db, &c, &id, &e), -ERR_STATE);
	assert_int_equal(id, -1);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM config"), 2);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM setting WHERE knob = 'a'"), 0);
	config_done(&c);
	assert_int_equal(query_config_get(st.db, 99, &c, &e), -ERR_NOT_FOUND);
	assert_contains(e.text, "there is no configuration 99");
	db_close(st.db);
}

static void damaged_json_is_told(void **state)
{
	struct store st = store_new(":memory:");
	struct config c;
	struct err e = {0};

	(void)state;
	assert_int_equal(store_exec(st.db, "UPDATE config SET env_json = '{'"), SQLITE_OK);
	assert_int_equal(query_config_get(st.db, st.config[0], &c, &e), -ERR_PARSE);
	assert_contains(e.text, "config.env_json");
	db_close(st.db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_configuration_comes_back_as_it_was),
		cmocka_unit_test(the_same_hash_is_the_same_row),
		cmocka_unit_test(half_a_configuration_is_none),
		cmocka_unit_test(damaged_json_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
