/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recipes/meta/fettle.lua tells editors (the language server LuaLS) what tables a recipe holds. It
 * has every field of every schema, with its type and its text; UPDATE_GOLDEN=1 writes it.
 */
#include <string.h>

#include "orchestrator/script/schema.h"
#include "tests/unit/check.h"

#define FILE_NAME "recipes/meta/fettle.lua"
enum { WIDTH = 100, BYTES_MAX = 1 << 20 };

/* Text as lines of a remark. */
static void remark(struct buf *out, const char *text)
{
	size_t at = 0;

	for (const char *p = text; p && *p; p += strspn(p, " \n")) {
		size_t n = strcspn(p, " \n");

		if (at == 0 || at + n > WIDTH) {
			buf_str(out, at ? "\n---" : "---");
			at = 3;
		}
		buf_printf(out, " %.*s", (int)n, p);
		at += n + 1;
		p += n;
	}
	if (at)
		buf_char(out, '\n');
}

static void words(struct buf *out, const char *const *v)
{
	for (size_t i = 0; v[i]; i++)
		buf_printf(out, "%s\"%s\"", i ? "|" : "", v[i]);
}

/* Read by a function: where a schema has its name, a table of that kind is one of its forms. */
static void custom(struct buf *out, const char *name)
{
	for (size_t i = 0; schema_all[i]; i++)
		if (str_eq(schema_all[i]->name, name)) {
			buf_printf(out, "fettle.%s|string|table", name);
			return;
		}
	buf_str(out, "any");
}

static void type_of(struct buf *out, const struct field *f)
{
	switch (f->type) {
	case FIELD_TEXT:
		buf_str(out, "string");
		break;
	case FIELD_INT:
	case FIELD_INT64:
		buf_str(out, "integer");
		break;
	case FIELD_SIZE:
	case FIELD_NUMBER:
		buf_str(out, "number");
		break;
	case FIELD_BOOL:
		buf_str(out, "boolean");
		break;
	case FIELD_WORD:
	case FIELD_CHOICE:
		words(out, f->words);
		break;
	case FIELD_TEXTS:
		buf_str(out, "(string|number)[]");
		break;
	case FIELD_FUNCTION:
		buf_str(out, "function");
		break;
	case FIELD_TABLE:
		buf_printf(out, "fettle.%s", f->sub->name);
		break;
	case FIELD_CUSTOM:
		custom(out, f->name);
		break;
	}
}

static void put_class(struct buf *out, const struct schema *s)
{
	buf_printf(out, "\n---@class fettle.%s\n", s->name);
	for (const struct field *f = s->fields; f->name; f++) {
		remark(out, f->doc);
		buf_printf(out, "---@field %s%s ", f->name, f->required ? "" : "?");
		type_of(out, f);
		buf_char(out, '\n');
	}
}

static void the_annotations_have_every_field(void **state)
{
	struct buf is = {0}, want = {0};
	struct err e = {0};

	(void)state;
	buf_str(&want,
		"-- SPDX-License-Identifier: MIT\n"
		"-- For editors with the Lua language server (LuaLS): point workspace.library in your\n"
		"-- .luarc.json at this folder and write `---@type fettle.campaign` before the table of a\n"
		"-- campaign, fettle.knob before that of a knob, fettle.rule before that of a rule. Held\n"
		"-- to what fettle reads by tests/unit/luals_test.c.\n"
		"---@meta fettle\n");
	for (size_t i = 0; schema_all[i]; i++)
		put_class(&want, schema_all[i]);
	if (getenv("UPDATE_GOLDEN"))
		assert_ok(fs_write_atomic(FILE_NAME, want.data, want.len, 0644, &e));
	assert_ok(fs_read(FILE_NAME, BYTES_MAX, &is, &e));
	assert_string_equal(is.data, want.data);
	buf_free(&is);
	buf_free(&want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_annotations_have_every_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
