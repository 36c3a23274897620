/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/luajson.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "orchestrator/script/fieldpath.h"
#include "orchestrator/script/luastate.h"

/* Beyond this an integer does not survive JSON. */
#define INTEGER_MAX 9007199254740992.0

struct take {
	lua_State *l;
	struct buf *where, *why;
	int depth, nodes;
	size_t bytes;
};

static struct json *value(struct take *t, int index);

static struct json *refuse(struct take *t, const char *why)
{
	buf_clear(t->why);
	buf_str(t->why, why);
	return NULL;
}

static struct json *number(struct take *t, int index)
{
	double v = lua_tonumber(t->l, index);

	if (!isfinite(v))
		return refuse(t, isnan(v) ? "is not a number (0/0)" : "is infinite");
	if (lua_isinteger(t->l, index) && fabs(v) > INTEGER_MAX)
		return refuse(t, "is a whole number beyond 2^53, which cannot be stored exactly");
	return json_new_number(v);
}

static struct json *text(struct take *t, int index)
{
	size_t n;
	const char *s = lua_tolstring(t->l, index, &n);

	if (n > LUAJSON_TEXT_MAX)
		return refuse(t, "is a text of more than 64 KiB");
	if (strlen(s) != n)
		return refuse(t, "is a text with a NUL byte in it");
	t->bytes += n;
	if (t->bytes > LUAJSON_BYTES_MAX)
		return refuse(t, "holds more than 4 MiB of text in all");
	return json_new_text(s);
}

static struct json *function(struct take *t)
{
	struct json *o = json_object();

	json_set_text(o, LUAJSON_FUNCTION, t->where->data ? t->where->data : "");
	return o;
}

/* The key at the top of the stack, as a part of the path and as a text. */
static bool key_text(struct take *t, struct buf *key)
{
	buf_clear(key);
	switch (lua_type(t->l, -1)) {
	case LUA_TNUMBER:
		if (!lua_isinteger(t->l, -1) || lua_tointeger(t->l, -1) < 1)
			break;
		buf_printf(key, "%lld", (long long)lua_tointeger(t->l, -1));
		fieldpath_index(t->where, (size_t)lua_tointeger(t->l, -1));
		return true;
	case LUA_TSTRING:
		if (strlen(lua_tostring(t->l, -1)) != lua_rawlen(t->l, -1) || !lua_rawlen(t->l, -1))
			break;
		buf_str(key, lua_tostring(t->l, -1));
		fieldpath_key(t->where, key->data);
		return true;
	default:
		break;
	}
	refuse(t, "has a key that is neither a position nor a name");
	return false;
}

static void cut(struct buf *b, size_t n)
{
	b->len = n;
	if (b->data)
		b->data[n] = '\0';
}

static struct json *array(struct take *t, int table, lua_Integer n)
{
	struct json *a = json_array(), *v;
	size_t here = t->where->len;

	for (lua_Integer i = 1; i <= n; i++) {
		fieldpath_index(t->where, (size_t)i);
		lua_rawgeti(t->l, table, i);
		v = value(t, lua_gettop(t->l));
		lua_pop(t->l, 1);
		if (!v) {
			json_free(a);
			return NULL;
		}
		json_add(a, v);
		cut(t->where, here);
	}
	return a;
}

static struct json *object_members(struct take *t, struct json *o, int table, int keys,
				   lua_Integer n, struct buf *key)
{
	size_t here = t->where->len;

	for (lua_Integer i = 1; i <= n; i++) {
		struct json *v;

		lua_rawgeti(t->l, keys, i);
		if (!key_text(t, key))
			return NULL;
		if (json_get(o, key->data))
			return refuse(t, "stands there twice: once by position, once by name");
		lua_rawget(t->l, table);
		v = value(t, lua_gettop(t->l));
		lua_pop(t->l, 1);
		if (!v)
			return NULL;
		json_set(o, key->data, v);
		cut(t->where, here);
	}
	return o;
}

static struct json *object(struct take *t, int table, int keys, lua_Integer n)
{
	struct json *o = json_object(), *done;
	struct buf key = {0};

	done = object_members(t, o, table, keys, n, &key);
	buf_free(&key);
	if (!done)
		json_free(o);
	return done;
}

/* Sorted and distinct keys are the positions 1..n when all are whole and the last one is n. */
static bool is_sequence(lua_State *l, int keys, lua_Integer n)
{
	for (lua_Integer i = 1; i <= n; i++) {
		bool fits;

		lua_rawgeti(l, keys, i);
		fits = lua_isinteger(l, -1) && lua_tointeger(l, -1) == i;
		lua_pop(l, 1);
		if (!fits)
			return false;
	}
	return true;
}

static struct json *table(struct take *t, int index)
{
	int top = lua_gettop(t->l);
	lua_Integer n;
	struct json *v;

	if (t->depth >= LUAJSON_DEPTH_MAX)
		return refuse(t, "is nested too deeply, or holds itself");
	t->depth++;
	n = luastate_keys(t->l, index);
	v = is_sequence(t->l, top + 1, n) ? array(t, index, n) : object(t, index, top + 1, n);
	lua_settop(t->l, top);
	t->depth--;
	return v;
}

static struct json *value(struct take *t, int index)
{
	if (++t->nodes > LUAJSON_NODES_MAX)
		return refuse(t, "has more than 100000 values in it");
	switch (lua_type(t->l, index)) {
	case LUA_TNIL:
		return json_new_null();
	case LUA_TBOOLEAN:
		return json_new_bool(lua_toboolean(t->l, index));
	case LUA_TNUMBER:
		return number(t, index);
	case LUA_TSTRING:
		return text(t, index);
	case LUA_TTABLE:
		return table(t, index);
	case LUA_TFUNCTION:
		return function(t);
	default:
		return refuse(t, "is of a kind that a recipe cannot hold");
	}
}

struct json *luajson_take(lua_State *l, int index, struct buf *where, struct buf *why)
{
	struct take t = {.l = l, .where = where, .why = why};

	buf_clear(where);
	return value(&t, lua_absindex(l, index));
}

void luajson_push(lua_State *l, const struct json *v)
{
	luaL_checkstack(l, 4, "value nested too deeply");
	switch (json_type(v)) {
	case JSON_NULL:
		lua_pushnil(l);
		return;
	case JSON_BOOL:
		lua_pushboolean(l, json_bool(v, false));
		return;
	case JSON_NUMBER: {
		double d = json_number(v, 0);

		if (fabs(d) <= INTEGER_MAX && d == floor(d))
			lua_pushinteger(l, (lua_Integer)d);
		else
			lua_pushnumber(l, d);
		return;
	}
	case JSON_STRING:
		lua_pushstring(l, json_text(v, ""));
		return;
	case JSON_ARRAY:
		lua_newtable(l);
		for (size_t i = 0; i < json_len(v); i++) {
			luajson_push(l, json_at(v, i));
			lua_rawseti(l, -2, (lua_Integer)i + 1);
		}
		return;
	case JSON_OBJECT:
		lua_newtable(l);
		for (size_t i = 0; i < json_len(v); i++) {
			lua_pushstring(l, json_key(json_at(v, i)));
			luajson_push(l, json_at(v, i));
			lua_rawset(l, -3);
		}
		return;
	}
}

bool luajson_push_function(lua_State *l, int index, const char *path)
{
	struct fieldpath_part part;
	int top = lua_gettop(l);

	lua_pushvalue(l, index);
	while (*path && lua_istable(l, -1) && fieldpath_next(&path, &part)) {
		if (part.index)
			lua_rawgeti(l, -1, (lua_Integer)part.index);
		else
			lua_pushstring(l, part.name), lua_rawget(l, -2);
		lua_replace(l, top + 1);
	}
	if (*path || !lua_isfunction(l, -1)) {
		lua_settop(l, top);
		return false;
	}
	return true;
}
