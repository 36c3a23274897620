/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For tests of recipes: campaigns written on the spot, loaded with the shipped recipes. */
#ifndef FETTLE_TESTS_UNIT_RECIPE_H
#define FETTLE_TESTS_UNIT_RECIPE_H

#include "tests/unit/check.h"

#include "orchestrator/script/script.h"

static const char *const recipe_dirs[] = {"recipes", NULL};
static const char *const recipe_probes[] = {"train_log", "nccl_log", "nccl_tests", NULL};

/* What a load gives; on failure only e. */
struct loaded {
	struct recipe *recipe;
	struct script_sources sources;
	struct err e;
	int rc;
};

static inline struct loaded load_file(const char *file, const char *site)
{
	const struct script_path path = {
		.dirs = recipe_dirs, .site = site, .probes = recipe_probes};
	struct loaded l = {0};

	l.rc = script_load(file, &path, &l.recipe, &l.sources, &l.e);
	return l;
}

static inline void loaded_done(struct loaded *l)
{
	recipe_free(l->recipe);
	script_sources_free(&l->sources);
}
#define _cleanup_loaded_ __attribute__((cleanup(loaded_done)))

/* DIR/name with this text; heap path. */
static inline char *write_file(const char *dir, const char *name, const char *text)
{
	char *path = fs_join(dir, name);
	struct err e = {0};

	assert_ok(fs_write_atomic(path, text, strlen(text), 0600, &e));
	return path;
}

static inline struct loaded load_text(const char *dir, const char *text)
{
	_cleanup_free_ char *path = write_file(dir, "c.lua", text);

	return load_file(path, NULL);
}

static inline char *dump_text(const struct recipe *r)
{
	struct buf b = {0};

	script_plan_dump(r, &b);
	return buf_take(&b);
}

/* A campaign around some fields; heap. */
static inline char *campaign_with(const char *fields)
{
	return xasprintf("return { name = \"c\", objective = \"trial_wall_s\", workload = { "
			 "command = { \"true\" } }, "
			 "%s }\n",
			 fields);
}

#endif
