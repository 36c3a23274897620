/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For tests of lint: texts and tables on the spot, checked with the shipped rules. */
#ifndef FETTLE_TESTS_UNIT_LINT_H
#define FETTLE_TESTS_UNIT_LINT_H

#include "tests/unit/recipe.h"

#include "orchestrator/cmd/lintfile.h"
#include "orchestrator/script/source.h"

/* The shipped rules, once a process. */
static inline const struct script_sources *lint_rules(void)
{
	static struct script_sources s;
	const struct script_path path = {.dirs = recipe_dirs};
	struct err e = {0};

	if (!s.n)
		assert_ok(lint_sources(&path, &s, &e));
	return &s;
}

struct linted {
	struct lint_finding *f;
	size_t n;
};

static inline void linted_done(struct linted *l)
{
	lint_findings_free(l->f, l->n);
}
#define _cleanup_linted_ __attribute__((cleanup(linted_done)))

static inline struct linted lint_these(struct lint_input *in)
{
	struct linted l = {0};
	struct err e = {0};

	if (lint_run_stored(lint_rules(), in, &l.f, &l.n, &e))
		fail_msg("%s", e.text);
	lint_input_free(in);
	return l;
}

/* "nccl=2.18.3 nodes=2": numbers as numbers, versions as texts. */
static inline void lint_context(struct lint_input *in, const char *context)
{
	_cleanup_free_ char *text = xstrdup(context);
	char *save = NULL;

	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');
		double v = 0;

		assert_non_null(value);
		*value++ = '\0';
		if (str_eq(word, "nccl") || str_eq(word, "torch") || str_eq(word, "slurm") ||
		    str_eq(word, "transport"))
			lint_input_text(in, word, value);
		else if (str_to_double(value, &v))
			lint_input_number(in, word, v);
		else
			fail_msg("%s=%s is no number", word, value);
	}
}

/* A file of this name and text. */
static inline void lint_file(struct lint_input *in, const char *dir, const char *name,
			     const char *text)
{
	_cleanup_free_ char *path = write_file(dir, name, text);
	enum lintfile_kind kind;
	struct err e = {0};

	assert_ok(lintfile_kind(path, &kind, &e));
	assert_ok(lintfile_add(in, kind, path, &e));
}

static inline const struct lint_finding *lint_found(const struct linted *l, const char *rule)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->f[i].rule, rule))
			return &l->f[i];
	return NULL;
}

#endif
