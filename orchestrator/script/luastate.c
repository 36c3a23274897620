/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/luastate.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum {
	HOOK_EVERY = 10000, /* instructions between two looks at the budget */
	NEAREST_MAX = 1000, /* NCCL has 270 names */
	SORT_MAX = 100,     /* RANLIMIT of ltablib.c: above it the pivot depends on the clock */
};

/* --- where it is -------------------------------------------------------------------------- */

void luastate_place(lua_State *l, char place[LUASTATE_PLACE_MAX])
{
	lua_Debug ar;

	*place = '\0';
	for (int level = 0; !*place && lua_getstack(l, level, &ar); level++)
		if (lua_getinfo(l, "Sl", &ar) && ar.currentline > 0)
			snprintf(place, LUASTATE_PLACE_MAX, "%.40s:%d: ", ar.short_src,
				 ar.currentline);
}

static bool has_place(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz");

	return n && text[n] == ':' && text[n + 1] >= '0' && text[n + 1] <= '9';
}

/* Runs where the error was raised, before anything is unwound. */
static int add_place(lua_State *l)
{
	char place[LUASTATE_PLACE_MAX];

	if (lua_type(l, 1) == LUA_TSTRING && has_place(lua_tostring(l, 1)))
		return 1;
	luastate_place(l, place);
	lua_pushstring(l, place);
	if (lua_type(l, 1) == LUA_TSTRING)
		lua_pushvalue(l, 1);
	else
		lua_pushliteral(l, "an error that is not a text was raised");
	lua_concat(l, 2);
	return 1;
}

int luastate_call(lua_State *l, int args, int results)
{
	int handler = lua_gettop(l) - args, status;

	lua_pushcfunction(l, add_place);
	lua_insert(l, handler);
	status = lua_pcall(l, args, results, handler);
	lua_remove(l, handler);
	return status;
}

/* --- memory and instructions -------------------------------------------------------------- */

static void *allocate(void *ud, void *p, size_t old, size_t size)
{
	struct luastate_budget *b = ud;

	if (!p)
		old = 0; /* Lua passes the kind of object here */
	if (!size) {
		free(p);
		b->memory_used -= old;
		return NULL;
	}
	if (size > old && size - old > LUASTATE_MEMORY_MAX - b->memory_used) {
		b->out_of_memory = true;
		if (b->state)
			luastate_place(b->state, b->place);
		return NULL;
	}
	b->memory_used += size - old;
	return xrealloc(p, size, 1);
}

static struct luastate_budget *budget_of(lua_State *l)
{
	void *ud;

	lua_getallocf(l, &ud);
	return ud;
}

/* An error raised here can be caught by pcall(). From the first one on the hook fires at every
 * instruction, so that whoever caught it is stopped at his next step. */
static void on_count(lua_State *l, lua_Debug *ar)
{
	struct luastate_budget *b = budget_of(l);

	(void)ar;
	b->instructions_used += HOOK_EVERY;
	if (b->instructions_used < LUASTATE_INSTRUCTIONS_MAX)
		return;
	b->out_of_instructions = true;
	lua_sethook(l, on_count, LUA_MASKCOUNT, 1);
	luaL_where(l, 0); /* in a hook level 0 is the function that runs */
	lua_pushliteral(l, "too many instructions");
	lua_concat(l, 2);
	lua_error(l);
}

/* --- one order ---------------------------------------------------------------------------- */

static int key_rank(int type)
{
	switch (type) {
	case LUA_TNUMBER:
		return 0;
	case LUA_TSTRING:
		return 1;
	case LUA_TBOOLEAN:
		return 2;
	default:
		return -1;
	}
}

static int compare_texts(lua_State *l, int a, int b)
{
	size_t na, nb;
	const char *ta = lua_tolstring(l, a, &na), *tb = lua_tolstring(l, b, &nb);
	int c = memcmp(ta, tb, na < nb ? na : nb);

	return c ? c : (na > nb) - (na < nb);
}

int luastate_compare(lua_State *l, int a, int b)
{
	int ra = key_rank(lua_type(l, a)), rb = key_rank(lua_type(l, b));

	if (ra < 0 || rb < 0)
		return luaL_error(l, "a table with a %s as key has no order to be walked in",
				  luaL_typename(l, ra < 0 ? a : b));
	if (ra != rb)
		return ra < rb ? -1 : 1;
	if (ra == 1)
		return compare_texts(l, a, b);
	if (ra == 2)
		return lua_toboolean(l, a) - lua_toboolean(l, b);
	return lua_compare(l, a, b, LUA_OPLT) ? -1 : lua_compare(l, b, a, LUA_OPLT);
}

/* Is keys[i] < keys[j]? */
static bool key_less(lua_State *l, int keys, lua_Integer i, lua_Integer j)
{
	int c;

	lua_rawgeti(l, keys, i);
	lua_rawgeti(l, keys, j);
	c = luastate_compare(l, -2, -1);
	lua_pop(l, 2);
	return c < 0;
}

static void key_swap(lua_State *l, int keys, lua_Integer i, lua_Integer j)
{
	lua_rawgeti(l, keys, i);
	lua_rawgeti(l, keys, j);
	lua_rawseti(l, keys, i);
	lua_rawseti(l, keys, j);
}

static void sift_down(lua_State *l, int keys, lua_Integer i, lua_Integer n)
{
	for (;;) {
		lua_Integer child = 2 * i;

		if (child > n)
			return;
		if (child < n && key_less(l, keys, child, child + 1))
			child++;
		if (!key_less(l, keys, i, child))
			return;
		key_swap(l, keys, i, child);
		i = child;
	}
}

static void heap_sort(lua_State *l, int keys, lua_Integer n)
{
	for (lua_Integer i = n / 2; i >= 1; i--)
		sift_down(l, keys, i, n);
	for (lua_Integer i = n; i > 1; i--) {
		key_swap(l, keys, 1, i);
		sift_down(l, keys, 1, i - 1);
	}
}

lua_Integer luastate_keys(lua_State *l, int table)
{
	lua_Integer n = 0;
	bool sorted = true;
	int keys;

	table = lua_absindex(l, table);
	luaL_checkstack(l, 8, "table nested too deeply");
	lua_newtable(l);
	keys = lua_gettop(l);
	for (lua_pushnil(l); lua_next(l, table);) {
		lua_pop(l, 1);
		lua_pushvalue(l, -1);
		lua_rawseti(l, keys, ++n);
		if (n > 1 && sorted)
			sorted = key_less(l, keys, n - 1, n);
		else if (n == 1)
			luastate_compare(l, -1,
					 -1); /* one key of a wrong kind is refused as well */
	}
	if (!sorted)
		heap_sort(l, keys, n);
	return n;
}

/* --- the functions that differ ------------------------------------------------------------ */

/* Upvalues: table, its sorted keys, position. */
static int pairs_step(lua_State *l)
{
	lua_Integer i = lua_tointeger(l, lua_upvalueindex(3));

	for (;;) {
		lua_settop(l, 0);
		if (lua_rawgeti(l, lua_upvalueindex(2), ++i) == LUA_TNIL)
			return 1;
		lua_pushvalue(l, 1);
		if (lua_rawget(l, lua_upvalueindex(1)) == LUA_TNIL)
			continue; /* taken out on the way */
		lua_pushinteger(l, i);
		lua_replace(l, lua_upvalueindex(3));
		return 2;
	}
}

static int safe_pairs(lua_State *l)
{
	luaL_checktype(l, 1, LUA_TTABLE);
	lua_pushvalue(l, 1);
	luastate_keys(l, 1);
	lua_pushinteger(l, 0);
	lua_pushcclosure(l, pairs_step, 3);
	return 1;
}

static int safe_next(lua_State *l)
{
	bool first = lua_isnoneornil(l, 2);
	lua_Integer n, i = 1;

	luaL_checktype(l, 1, LUA_TTABLE);
	lua_settop(l, 2);
	n = luastate_keys(l, 1);
	for (; !first && i <= n; i++) {
		lua_rawgeti(l, 3, i);
		if (luastate_compare(l, 2, -1) < 0)
			break;
		lua_pop(l, 1);
	}
	if (lua_rawgeti(l, 3, i) == LUA_TNIL)
		return 1;
	lua_pushvalue(l, -1);
	lua_rawget(l, 1);
	return 2;
}

/* As tostring(), with the name of the type in place of an address. */
static void push_text(lua_State *l, int i)
{
	bool own = luaL_getmetafield(l, i, "__tostring") != LUA_TNIL;

	if (own)
		lua_pop(l, 1);
	if (!own && lua_type(l, i) >= LUA_TTABLE)
		lua_pushstring(l, luaL_typename(l, i));
	else
		luaL_tolstring(l, i, NULL);
}

static int safe_tostring(lua_State *l)
{
	luaL_checkany(l, 1);
	push_text(l, 1);
	return 1;
}

static int safe_format(lua_State *l)
{
	const char *format = luaL_checkstring(l, 1);
	int n = lua_gettop(l);

	for (const char *p = strchr(format, '%'); p; p = strchr(p, '%')) {
		p += 1 + strspn(p + 1, "-+ #0123456789.");
		if (*p == 'p')
			return luaL_error(l, "string.format: %%p is not available in a recipe");
		if (*p)
			p++;
	}
	for (int i = 2; i <= n; i++) {
		if (lua_type(l, i) < LUA_TTABLE)
			continue;
		push_text(l, i);
		lua_replace(l, i);
	}
	lua_pushvalue(l, lua_upvalueindex(1));
	lua_insert(l, 1);
	lua_call(l, n, 1);
	return 1;
}

static int safe_sort(lua_State *l)
{
	luaL_checktype(l, 1, LUA_TTABLE);
	if (luaL_len(l, 1) > SORT_MAX)
		return luaL_error(l, "table.sort: at most %d elements in a recipe", SORT_MAX);
	lua_settop(l, 2);
	lua_pushvalue(l, lua_upvalueindex(1));
	lua_insert(l, 1);
	lua_call(l, 2, 0);
	return 0;
}

/* A finaliser runs with hooks off, so it could loop unseen. */
static int safe_setmetatable(lua_State *l)
{
	luaL_checktype(l, 1, LUA_TTABLE);
	if (lua_istable(l, 2)) {
		lua_pushliteral(l, "__gc");
		if (lua_rawget(l, 2) != LUA_TNIL)
			return luaL_error(l, "__gc is not available in a recipe");
	}
	lua_settop(l, 2);
	lua_pushvalue(l, lua_upvalueindex(1));
	lua_insert(l, 1);
	lua_call(l, 2, 1);
	return 1;
}

static int path_of(lua_State *l)
{
	const char *name = luaL_checkstring(l, 1);

	while (name[0] == '.' && name[1] == '/')
		name += 2;
	if (*name == '/' || !strcmp(lua_tostring(l, lua_upvalueindex(1)), "."))
		lua_pushstring(l, name);
	else
		lua_pushfstring(l, "%s/%s", lua_tostring(l, lua_upvalueindex(1)), name);
	return 1;
}

/* nearest(word, list): the word of the list that is nearest by edit distance, nil if none is near.
 */
static int nearest(lua_State *l)
{
	const char *word = luaL_checkstring(l, 1), *near;
	const char **words;
	lua_Integer n;

	luaL_checktype(l, 2, LUA_TTABLE);
	n = luaL_len(l, 2);
	if (n < 0 || n > NEAREST_MAX)
		return luaL_error(l, "nearest: at most %d words in a recipe", NEAREST_MAX);
	words = lua_newuserdatauv(l, sizeof(*words) * ((size_t)n + 1), 0);
	for (lua_Integer i = 0; i < n; i++) {
		if (lua_rawgeti(l, 2, i + 1) != LUA_TSTRING)
			return luaL_error(l, "nearest: expected a list of texts");
		words[i] = lua_tostring(l, -1); /* the list keeps it */
		lua_pop(l, 1);
	}
	words[n] = NULL;
	near = str_nearest(word, words);
	lua_pushstring(l, near); /* nil for NULL */
	return 1;
}

/* distance(a, b): how many letters are put in, taken out, replaced or swapped. */
static int distance(lua_State *l)
{
	lua_pushinteger(l,
			(lua_Integer)str_distance(luaL_checkstring(l, 1), luaL_checkstring(l, 2)));
	return 1;
}

/* A name that does not exist is nearly always a slip, or a function that recipes do not have. */
static int no_such_global(lua_State *l)
{
	static const char *const withheld[] = {
		"io",      "os",      "debug",     "load",  "loadstring",     "loadfile", "dofile",
		"require", "package", "coroutine", "print", "collectgarbage", NULL};
	const char *name = lua_type(l, 2) == LUA_TSTRING ? lua_tostring(l, 2) : "?";

	for (size_t i = 0; withheld[i]; i++)
		if (!strcmp(name, withheld[i]))
			return luaL_error(
				l,
				"'%s' is not available in a recipe: a recipe is a plan, it "
				"has no files, no clock, no commands and no output",
				name);
	return luaL_error(l, "'%s' is not defined", name);
}

/* --- opening ------------------------------------------------------------------------------ */

static const char *const base_names[] = {"assert", "error",    "getmetatable", "ipairs",
					 "pcall",  "rawequal", "rawget",       "rawlen",
					 "rawset", "select",   "tonumber",     "type",
					 NULL};

/* Move what is on the allow-list from the base library into the table of globals to be. */
static void copy_base(lua_State *l, int from, int to)
{
	for (size_t i = 0; base_names[i]; i++) {
		lua_getfield(l, from, base_names[i]);
		lua_setfield(l, to, base_names[i]);
	}
	lua_pushcfunction(l, safe_pairs);
	lua_setfield(l, to, "pairs");
	lua_pushcfunction(l, safe_next);
	lua_setfield(l, to, "next");
	lua_pushcfunction(l, safe_tostring);
	lua_setfield(l, to, "tostring");
	lua_getfield(l, from, "setmetatable");
	lua_pushcclosure(l, safe_setmetatable, 1);
	lua_setfield(l, to, "setmetatable");
}

static void copy_library(lua_State *l, int to, const char *name, lua_CFunction open,
			 const char *const *without)
{
	luaL_requiref(l, name, open, 0);
	for (; *without; without++) {
		lua_pushnil(l);
		lua_setfield(l, -2, *without);
	}
	lua_setfield(l, to, name);
}

/* Put `with` in place of a function of a library, giving it the original as its upvalue. */
static void wrap(lua_State *l, int globals, const char *library, const char *name,
		 lua_CFunction with)
{
	lua_getfield(l, globals, library);
	lua_getfield(l, -1, name);
	lua_pushcclosure(l, with, 1);
	lua_setfield(l, -2, name);
	lua_pop(l, 1);
}

/* ("x").y comes from the metatable of strings: nobody may see or replace it. */
static void lock_strings(lua_State *l)
{
	lua_pushliteral(l, "");
	lua_getmetatable(l, -1);
	lua_pushboolean(l, 0);
	lua_setfield(l, -2, "__metatable");
	lua_pop(l, 2);
}

static int build(lua_State *l)
{
	static const char *const no_string[] = {"dump", NULL};
	static const char *const no_math[] = {"random", "randomseed", NULL};
	static const char *const none[] = {NULL};
	int globals;

	luaL_requiref(l, "_G", luaopen_base, 0);
	lua_newtable(l);
	globals = lua_gettop(l);
	copy_base(l, globals - 1, globals);
	copy_library(l, globals, LUA_STRLIBNAME, luaopen_string, no_string);
	copy_library(l, globals, LUA_TABLIBNAME, luaopen_table, none);
	copy_library(l, globals, LUA_MATHLIBNAME, luaopen_math, no_math);
	copy_library(l, globals, LUA_UTF8LIBNAME, luaopen_utf8, none);
	wrap(l, globals, LUA_STRLIBNAME, "format", safe_format);
	wrap(l, globals, LUA_TABLIBNAME, "sort", safe_sort);
	lock_strings(l);
	lua_pushvalue(l, 1);
	lua_pushcclosure(l, path_of, 1);
	lua_setfield(l, globals, "path");
	lua_pushcfunction(l, nearest);
	lua_setfield(l, globals, "nearest");
	lua_pushcfunction(l, distance);
	lua_setfield(l, globals, "distance");
	lua_pushvalue(l, globals);
	lua_setfield(l, globals, "_G");
	lua_createtable(l, 0, 2);
	lua_pushcfunction(l, no_such_global);
	lua_setfield(l, -2, "__index");
	lua_pushboolean(l, 0);
	lua_setfield(l, -2, "__metatable");
	lua_setmetatable(l, globals);
	lua_pushvalue(l, globals);
	lua_rawseti(l, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
	return 0;
}

lua_State *luastate_open(struct luastate_budget *b, const char *dir)
{
	lua_State *l = lua_newstate(allocate, b);

	if (!l)
		return NULL;
	lua_pushcfunction(l, build);
	lua_pushstring(l, dir);
	if (lua_pcall(l, 1, 0, 0)) {
		lua_close(l);
		return NULL;
	}
	lua_sethook(l, on_count, LUA_MASKCOUNT, HOOK_EVERY);
	b->state = l;
	return l;
}

int luastate_run(lua_State *l, const struct script_source *src, const char *chunk, int results)
{
	static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8; Lua takes it for a symbol */
	const char *text = src->text + (str_starts(src->text, mark) ? strlen(mark) : 0);
	int status = luaL_loadbufferx(l, text, strlen(text), chunk, "t");

	return status ? status : luastate_call(l, 0, results);
}
