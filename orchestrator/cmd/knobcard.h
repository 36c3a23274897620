/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All that is known of one knob, with what was tried here: for people and as JSON. */
#ifndef FETTLE_CMD_KNOBCARD_H
#define FETTLE_CMD_KNOBCARD_H

#include "orchestrator/base/json.h"
#include "orchestrator/cmd/tried.h"

/* The file that it stands in, without .lua: "nccl"; heap. */
char *knobcard_domain(const struct knob *k);

/* k NULL: a knob that only campaigns of this workspace know. */
void knobcard_text(const struct knob *k, const char *name, const struct tried *t, struct buf *out);
struct json *knobcard_json(const struct knob *k, const char *name, const struct tried *t);

#endif
