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

/* Where a value goes: into `parent` under `key`, or at its end; without a parent it is the root.
 * Values are put there before they are filled, so that whoever holds the root holds them all, also
 * when Lua raises an error on the way. */
struct slot {
	struct json *parent;
	const char *key;
};

static bool value(struct luajson *t, int index, struct slot at);

static void put(struct luajson *t, struct slot at, struct json *v)
{
	if (!at.parent)
		t->root = v;
	else if (at.key)
		json_set(at.parent, at.key, v);
	else
		json_add(at.parent, v);
}

static bool refuse(struct luajson *t, const char *why)
{
	t->why = why;
	return false;
}

static bool number(struct luajson *t, int index, struct slot at)
{
	double v = lua_tonumber(t->l, index);

	if (!isfinite(v))
		return refuse(t, isnan(v) ? "is not a number (0/0)" : "is infinite");
	if (lua_isinteger(t->l, index) && fabs(v) > INTEGER_MAX)
		return refuse(t, "is a whole number beyond 2^53, which cannot be stored exactly");
	put(t, at, json_new_number(v));
	return true;
}

static bool text(struct luajson *t, int index, struct slot at)
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
	put(t, at, json_new_text(s));
	return true;
}

static bool function(struct luajson *t, struct slot at)
{
	struct json *o = json_object();

	json_set_text(o, LUAJSON_FUNCTION, t->where.data ? t->where.data : "");
	put(t, at, o);
	return true;
}

static void cut(struct buf *b, size_t n)
{
	b->len = n;
	if (b->data)
		b->data[n] = '\0';
}

static bool array(struct luajson *t, int table, lua_Integer n, struct slot at)
{
	struct json *a = json_array();
	size_t here = t->where.len;
	bool ok = true;

	put(t, at, a);
	for (lua_Integer i = 1; i <= n && ok; i++) {
		fieldpath_index(&t->where, (size_t)i);
		lua_rawgeti(t->l, table, i);
		ok = value(t, lua_gettop(t->l), (struct slot){a, NULL});
		lua_pop(t->l, 1);
		if (ok)
			cut(&t->where, here);
	}
	return ok;
}

/* The key at `index` as a text, which lives as long as the key or `digits`, and as a part of the
 * path. NULL for other kinds. */
static const char *key_text(struct luajson *t, int index, char digits[24])
{
	if (lua_type(t->l, index) == LUA_TSTRING) {
		const char *name = lua_tostring(t->l, index);

		if (!*name || strlen(name) != lua_rawlen(t->l, index))
			return NULL;
		fieldpath_key(&t->where, name);
		return name;
	}
	if (!lua_isinteger(t->l, index) || lua_tointeger(t->l, index) < 1)
		return NULL;
	snprintf(digits, 24, "%lld", (long long)lua_tointeger(t->l, index));
	fieldpath_index(&t->where, (size_t)lua_tointeger(t->l, index));
	return digits;
}

static bool member(struct luajson *t, struct json *o, int table, int key_index)
{
	char digits[24];
	const char *key = key_text(t, key_index, digits);

	if (!key)
		return refuse(t, "has a key that is neither a position nor a name");
	if (json_get(o, key))
		return refuse(t, "stands there twice: once by position, once by name");
	lua_pushvalue(t->l, key_index);
	lua_rawget(t->l, table);
	return value(t, lua_gettop(t->l), (struct slot){o, key});
}

static bool object(struct luajson *t, int table, int keys, lua_Integer n, struct slot at)
{
	struct json *o = json_object();
	size_t here = t->where.len;
	int top = lua_gettop(t->l);
	bool ok = true;

	put(t, at, o);
	for (lua_Integer i = 1; i <= n && ok; i++) {
		lua_rawgeti(t->l, keys, i);
		ok = member(t, o, table, top + 1);
		lua_settop(t->l, top);
		if (ok)
			cut(&t->where, here);
	}
	return ok;
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

static bool table(struct luajson *t, int index, struct slot at)
{
	int top = lua_gettop(t->l);
	lua_Integer n;
	bool ok;

	if (t->depth >= LUAJSON_DEPTH_MAX)
		return refuse(t, "is nested too deeply, or holds itself");
	t->depth++;
	n = luastate_keys(t->l, index);
	ok = is_sequence(t->l, top + 1, n) ? array(t, index, n, at)
					   : object(t, index, top + 1, n, at);
	lua_settop(t->l, top);
	t->depth--;
	return ok;
}

static bool value(struct luajson *t, int index, struct slot at)
{
	if (++t->nodes > LUAJSON_NODES_MAX)
		return refuse(t, "has more than 100000 values in it");
	switch (lua_type(t->l, index)) {
	case LUA_TNIL:
		put(t, at, json_new_null());
		return true;
	case LUA_TBOOLEAN:
		put(t, at, json_new_bool(lua_toboolean(t->l, index)));
		return true;
	case LUA_TNUMBER:
		return number(t, index, at);
	case LUA_TSTRING:
		return text(t, index, at);
	case LUA_TTABLE:
		return table(t, index, at);
	case LUA_TFUNCTION:
		return function(t, at);
	default:
		return refuse(t, "is of a kind that a recipe cannot hold");
	}
}

bool luajson_take(lua_State *l, int index, struct luajson *out)
{
	out->l = l;
	return value(out, lua_absindex(l, index), (struct slot){NULL, NULL});
}

void luajson_done(struct luajson *t)
{
	json_free(t->root);
	buf_free(&t->where);
	*t = (struct luajson){0};
}

void luajson_push(lua_State *l, const struct json *v)
{
	lua_Integer n = 0;

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
		for (const struct json *m = json_first(v); m; m = json_next(m)) {
			luajson_push(l, m);
			lua_rawseti(l, -2, ++n);
		}
		return;
	case JSON_OBJECT:
		lua_newtable(l);
		for (const struct json *m = json_first(v); m; m = json_next(m)) {
			lua_pushstring(l, json_key(m));
			luajson_push(l, m);
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
