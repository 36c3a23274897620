/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts of recipes: reading them, finding them on the recipe path, and their hashes. */
#ifndef FETTLE_SCRIPT_SOURCE_H
#define FETTLE_SCRIPT_SOURCE_H

#include "orchestrator/script/script.h"

enum {
	SOURCE_BYTES_MAX = 1024 * 1024, /* a campaign has 2 KiB; a machine-written list of values
					   fits too */
	SOURCE_FILES_MAX = 1000,        /* files of one kind on the path */
};

/* Read one file. `name` is what the campaign calls it ("knobs/num_workers"). */
int source_read(const char *name, const char *path, struct script_source *out, struct err *e);
void source_done(struct script_source *s);

/* Append; *s is moved. */
void sources_add(struct script_sources *all, struct script_source *s);
void sources_add_copy(struct script_sources *all, const struct script_source *s);
const struct script_source *sources_find(const struct script_sources *all, const char *name);
/* Set the hash over all of them: names and texts, not paths, so that a moved tree has the same. */
void sources_hash(struct script_sources *all);

/* Every DIR/kind/NAME.lua of the directories, by directory and then by name; of two with one NAME
 * the first directory's is taken. A directory that does not exist is passed over. */
int sources_of_kind(const char *const *dirs, const char *kind, struct script_sources *out,
		    struct err *e);
/* DIR/kind/NAME.lua of the first directory that has it: 0, -ERR_NOT_FOUND, or what reading gives.
 */
int source_on_path(const char *const *dirs, const char *kind, const char *name,
		   struct script_source *out, struct err *e);

#endif
