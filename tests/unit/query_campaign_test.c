/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/store.h"

static void uuid_is_made_once(void **state)
{
	struct clock_virtual v = {.utc_us = 42};
	struct clock c = clock_virtual_of(&v);
	struct err e = {0};
	struct db *db = NULL, *other = NULL;
	char a[37], b[37];

	(void)state;
	assert_ok(db_open(":memory:", DB_CREATE, &c, &db, &e));
	assert_ok(db_open(":memory:", DB_CREATE, &c, &other, &e));
	assert_ok(query_workspace_uuid(db, &c, a, &e));
	assert_ok(query_workspace_uuid(db, &c, b, &e));
	assert_string_equal(a, b);
	assert_int_equal(strlen(a), 36);
	assert_int_equal(strspn(a, "0123456789abcdef-"), 36);
	assert_true(a[14] == '4' && strchr("89ab", a[19])); /* version and variant of RFC 9562 */
	assert_int_equal(store_count(db, "SELECT created_us FROM workspace"), 42);
	assert_ok(query_workspace_uuid(other, &c, b, &e));
	assert_string_not_equal(a, b);
	db_close(db);
	db_close(other);
}

static void a_campaign_comes_back_as_it_was(void **state)
{
	struct store st = store_new(":memory:");
	struct campaign_row c = {0};
	struct err e = {0};

	(void)state;
	assert_ok(query_campaign_get(st.db, st.campaign, &c, &e));
	assert_int_equal(c.id, st.campaign);
	assert_string_equal(c.name, "demo");
	assert_string_equal(c.recipe_path, "/r/c.lua");
	assert_string_equal(c.recipe_hash, "00ff");
	assert_string_equal(c.scheduler, "fake");
	assert_int_equal(c.state, CAMPAIGN_RUNNING);
	assert_null(c.reason);
	assert_int_equal(c.mode, MODE_QUICK);
	assert_true(c.seed == UINT64_MAX - 3); /* all 64 bits */
	assert_true(c.alpha == 0.05);
	assert_int_equal(c.confirm_max, 3);
	assert_string_equal(c.env_json, "{\"PATH\":\"/bin\"}");
	assert_int_equal(c.created_us, STORE_NOW_US);
	assert_int_equal(c.ended_us, 0);
	assert_int_equal(c.deadline_us, 0);
	campaign_row_done(&c);
	campaign_row_done(&c);
	campaign_row_done(NULL);
	db_close(st.db);
}

static void absent_campaigns_are_told(void **state)
{
	struct store st = store_new(":memory:");
	struct campaign_row c = {.id = 7};
	struct err e = {0};

	(void)state;
	assert_int_equal(query_campaign_get(st.db, 99, &c, &e), -ERR_NOT_FOUND);
	assert_contains(e.text, "there is no campaign 99");
	assert_int_equal(c.id, 7);
	assert_int_equal(query_campaign_state(st.db, 99, CAMPAIGN_DONE, NULL, 1, &e),
			 -ERR_NOT_FOUND);
	db_close(st.db);
}

static void states_are_stored(void **state)
{
	struct store st = store_new(":memory:");
	struct campaign_row c;
	struct err e = {0};

	(void)state;
	assert_ok(query_campaign_state(st.db, st.campaign, CAMPAIGN_STOPPED, "window over", 9, &e));
	assert_ok(query_campaign_get(st.db, st.campaign, &c, &e));
	assert_int_equal(c.state, CAMPAIGN_STOPPED);
	assert_string_equal(c.reason, "window over");
	assert_int_equal(c.ended_us, 9);
	campaign_row_done(&c);
	assert_ok(query_campaign_state(st.db, st.campaign, CAMPAIGN_RUNNING, NULL, 0, &e));
	assert_ok(query_campaign_get(st.db, st.campaign, &c, &e));
	assert_int_equal(c.state, CAMPAIGN_RUNNING);
	assert_null(c.reason);
	assert_int_equal(c.ended_us, 0);
	campaign_row_done(&c);
	db_close(st.db);
}

static void lists_are_newest_first(void **state)
{
	struct store st = store_new(":memory:");
	int64_t second = store_campaign(st.db, "other"), third = store_campaign(st.db, "demo");
	struct campaign_row *v = NULL;
	struct err e = {0};
	size_t n = 0;

	(void)state;
	assert_ok(query_campaign_list(st.db, NULL, &v, &n, &e));
	assert_int_equal(n, 3);
	assert_int_equal(v[0].id, third);
	assert_int_equal(v[1].id, second);
	assert_int_equal(v[2].id, st.campaign);
	campaign_rows_free(v, n);
	assert_ok(query_campaign_list(st.db, "demo", &v, &n, &e));
	assert_int_equal(n, 2);
	assert_int_equal(v[0].id, third);
	campaign_rows_free(v, n);
	assert_ok(query_campaign_list(st.db, "de", &v, &n, &e));
	assert_int_equal(n, 0);
	campaign_rows_free(v, n);
	db_close(st.db);
}

static void sources_keep_their_order_and_text(void **state)
{
	static const char
		text[] = "return {\n\t-- \"quoted\", 'quoted', \xe4\xb8\xad\xe6\x96\x87; DROP\n}";
	struct source_row in[] = {
		{TEXT("campaign"), TEXT("/c.lua"), TEXT(text), TEXT("01")},
		{TEXT("a_site"), TEXT("/s.lua"), TEXT(""), TEXT("02")},
		{TEXT("knobs/x"), TEXT("/k.lua"), TEXT("return 1"), TEXT("03")},
	};
	struct campaign_row c = {.name = TEXT("n"),
				 .recipe_path = TEXT("p"),
				 .recipe_hash = TEXT("h"),
				 .scheduler = TEXT("local"),
				 .alpha = 0.01};
	struct store st = store_new(":memory:");
	struct source_row *v = NULL;
	struct err e = {0};
	int64_t id;
	size_t n = 0;

	(void)state;
	assert_ok(query_campaign_create(st.db, &c, in, ARRAY_LEN(in), &id, &e));
	assert_ok(query_campaign_sources(st.db, id, &v, &n, &e));
	assert_int_equal(n, ARRAY_LEN(in));
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(v[i].name, in[i].name);
		assert_string_equal(v[i].path, in[i].path);
		assert_string_equal(v[i].text, in[i].text);
		assert_string_equal(v[i].hash, in[i].hash);
	}
	source_rows_free(v, n);
	assert_ok(query_campaign_sources(st.db, st.campaign, &v, &n, &e));
	assert_int_equal(n, 0);
	source_rows_free(v, n);
	db_close(st.db);
}

static void a_bad_campaign_leaves_no_row(void **state)
{
	struct source_row bad = {.name = TEXT("campaign")};
	struct campaign_row c = {.name = TEXT("n"),
				 .recipe_path = TEXT("p"),
				 .recipe_hash = TEXT("h"),
				 .scheduler = TEXT("local"),
				 .alpha = 0.05};
	struct store st = store_new(":memory:");
	struct err e = {0};
	int64_t id = -5;

	(void)state;
	assert_int_equal(query_campaign_create(st.db, &c, &bad, 1, &id, &e), -ERR_STATE);
	assert_contains(e.text, "store the recipe: NOT NULL constraint failed: recipe_source.path");
	assert_int_equal(id, -5);
	c.alpha = 2;
	assert_int_equal(query_campaign_create(st.db, &c, NULL, 0, &id, &e), -ERR_STATE);
	assert_contains(e.text, "CHECK");
	c.alpha = NAN;
	assert_int_equal(query_campaign_create(st.db, &c, NULL, 0, &id, &e), -ERR_STATE);
	assert_int_equal(store_count(st.db, "SELECT count(*) FROM campaign"), 1);
	assert_false(db_in_transaction(st.db));
	db_close(st.db);
}

/* What a directory or a job name of an old campaign is called is never used again. */
static void ids_are_not_used_again(void **state)
{
	struct store st = store_new(":memory:");
	int64_t id = store_campaign(st.db, "short");
	_cleanup_free_ char *sql = xasprintf("DELETE FROM campaign WHERE id = %lld", (long long)id);

	(void)state;
	assert_int_equal(store_exec(st.db, sql), SQLITE_OK);
	assert_int_equal(store_campaign(st.db, "next"), id + 1);
	db_close(st.db);
}

static void words_of_a_newer_program_are_told(void **state)
{
	struct store st = store_new(":memory:");
	struct campaign_row c;
	struct err e = {0};

	(void)state;
	assert_int_equal(store_exec(st.db, "PRAGMA ignore_check_constraints=ON;"
					   "UPDATE campaign SET mode = 'turbo'"),
			 SQLITE_OK);
	assert_int_equal(query_campaign_get(st.db, st.campaign, &c, &e), -ERR_STATE);
	assert_contains(e.text, "mode \"turbo\" is no word that this program knows");
	db_close(st.db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uuid_is_made_once),
		cmocka_unit_test(a_campaign_comes_back_as_it_was),
		cmocka_unit_test(absent_campaigns_are_told),
		cmocka_unit_test(states_are_stored),
		cmocka_unit_test(lists_are_newest_first),
		cmocka_unit_test(sources_keep_their_order_and_text),
		cmocka_unit_test(a_bad_campaign_leaves_no_row),
		cmocka_unit_test(ids_are_not_used_again),
		cmocka_unit_test(words_of_a_newer_program_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
