/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A Lua state that can do nothing but compute: an allow-list of functions, memory from a budget, an
 * instruction hook that stays once it has fired, and one order of iteration for everyone. Used in
 * the sandbox's child process, which adds RLIMIT_CPU: a C function such as string.find can run for
 * ever between two instructions, and no hook sees that.
 *
 * Three functions are added: path(), and nearest() and distance() for words that were probably
 * meant.
 * What differs from plain Lua, for the same plan in every process: pairs() and next() go by key
 * (numbers, then texts); tostring() and string.format() print no addresses; table.sort() takes at
 * most 100 elements (beyond that Lua picks pivots by the clock); math.random, os, io, debug, load,
 * require, coroutine, print and collectgarbage are absent, and so is what Lua runs with hooks off:
 * xpcall's handlers and __gc.
 */
#ifndef FETTLE_SCRIPT_LUASTATE_H
#define FETTLE_SCRIPT_LUASTATE_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#include "orchestrator/script/script.h"

enum {
	/* A campaign takes about 0.2 MiB; a list of a million numbers 16 MiB. */
	LUASTATE_MEMORY_MAX = 64 * 1024 * 1024,
	/* All knobs together take about 20,000 instructions; this many take 0.05 s. */
	LUASTATE_INSTRUCTIONS_MAX = 5 * 1000 * 1000,
};

enum { LUASTATE_PLACE_MAX = 64 }; /* bytes of "chunk:LINE: " */

/* What states of one process share. Zero-initialise. */
struct luastate_budget {
	size_t memory_used;
	long instructions_used;
	bool out_of_memory, out_of_instructions;
	lua_State *state;               /* the one that is open */
	char place[LUASTATE_PLACE_MAX]; /* where memory was out last */
};

/* A state with the allowed globals. `dir`, the directory of the file that runs, is what path() is
 * relative to (borrowed by the caller until close). NULL only when memory is out. */
lua_State *luastate_open(struct luastate_budget *b, const char *dir);

/* "chunk:LINE: " of the function of the recipe that runs, "" when none does. Takes no memory: also
 * for where there is none, or no time. */
void luastate_place(lua_State *l, char place[LUASTATE_PLACE_MAX]);

/* lua_pcall() with `args` arguments for `results` values; an error's text begins with a position,
 * also where a library function that raised it, or the recipe (error(text, 0)), gave none. */
int luastate_call(lua_State *l, int args, int results);

/* Compile and run a source with `results` values left on the stack; 0 or Lua's status with the
 * error's text on the stack. Positions in errors read "chunk:LINE: ". Text only, never bytecode. */
int luastate_run(lua_State *l, const struct script_source *src, const char *chunk, int results);

/* Compare two keys in the order of pairs(): -1, 0, 1. Only numbers, texts and booleans are ordered;
 * raises a Lua error for others. */
int luastate_compare(lua_State *l, int a, int b);

/* Push an array of the table's keys in that order, and return how many. */
lua_Integer luastate_keys(lua_State *l, int table);

#endif
