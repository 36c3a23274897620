/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What lint rules get, on its way to them: the table x of recipes/lint/. */
#ifndef FETTLE_SCRIPT_LINT_INPUT_H
#define FETTLE_SCRIPT_LINT_INPUT_H

#include "orchestrator/base/json.h"
#include "orchestrator/script/lint.h"

/* A copy of it; the caller's. */
struct json *lint_input_json(const struct lint_input *in);

/* Does another line than this one (from 1) of a shell's text expand the variable? */
bool lint_expanded(const char *text, const char *name, int line);

/* x.KEY; takes the value over. */
void lint_input_json_set(struct lint_input *in, const char *key, struct json *value);
/* A command whose program is words->v[program]: what stands before it belongs to launchers. */
void lint_input_command_at(struct lint_input *in, const struct strv *words, size_t program,
			   const char *file, int line);

/* Mark the values of knobs that the rules of the sources call an error (struct knob, refused).
 * ERR_RECIPE when none of any is left. */
int lint_settle(struct recipe *r, const struct script_sources *s, struct err *e);

#endif
