/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lua runs in a child process of its own, never in this one. The child gets the sources as text,
 * does its jobs one by one, those on one file that follow each other in one state, each other file
 * in a fresh one (luastate.h), writes the values as lines of JSON to a pipe and ends. A timer of
 * its CPU time ends it where no hook can, and says in which line, RLIMIT_CPU where even that fails;
 * a wall clock ends it if the machine is so loaded that even that does not come.
 */
#ifndef FETTLE_SCRIPT_SANDBOX_H
#define FETTLE_SCRIPT_SANDBOX_H

#include "orchestrator/base/err.h"
#include "orchestrator/base/json.h"
#include "orchestrator/script/script.h"

enum {
	/* Of all jobs of one call. A campaign with all knobs takes 0.01 s, under valgrind 1 s. */
	SANDBOX_CPU_S = 2,
	SANDBOX_WALL_S = 120, /* a child that gets one part in sixty of a CPU still ends by
				 RLIMIT_CPU */
	SANDBOX_OUTPUT_MAX = 16 * 1024 *
			     1024, /* four times what LUAJSON_BYTES_MAX allows, for escapes */
};

struct sandbox_job {
	const struct script_source *src;
	const char *call; /* NULL: the value that the file returns; else path of a function in that
			     value */
	const struct json *args; /* array of arguments of the call; NULL: none */
	bool signals; /* tables among them hold signals: reading a name that none has is an error */
};

/* Run the jobs; values[i] is the value of jobs[i], owned by the caller. `prelude` is run before
 * each source in its state. ERR_RECIPE names file and line; on failure all values are NULL. */
int sandbox_run(const struct script_source *prelude, const struct sandbox_job *jobs, size_t n,
		struct json **values, struct err *e);

#endif
