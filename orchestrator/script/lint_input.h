/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What lint rules get, on its way to them: the table x of recipes/lint/. */
#ifndef FETTLE_SCRIPT_LINT_INPUT_H
#define FETTLE_SCRIPT_LINT_INPUT_H

#include "orchestrator/base/json.h"
#include "orchestrator/script/lint.h"

/* A copy of it; the caller's. */
struct json *lint_input_json(const struct lint_input *in);

#endif
