/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `fettle check --effective`: a campaign with what lies under it, each value with who says it. */
#ifndef FETTLE_CMD_EFFECTIVE_H
#define FETTLE_CMD_EFFECTIVE_H

#include "orchestrator/base/err.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/str.h"

/* A line a value, as it is written in Lua, and FILE:LINE; or with `json`, which is a root:
 * {"file", "values": [{"path", "value", "from", "file", "line"}]}. */
int effective_text(const char *file, struct buf *out, struct err *e);
int effective_json(const char *file, struct json **out, struct err *e);

#endif
