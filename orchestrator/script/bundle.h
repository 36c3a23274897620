/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The field `bundle` of a knob: named sets of settings that change together. A value of such a knob
 * is the name of a set: variables to set, variables to take out, a command in place of the
 * workload's. What it gains is credited to the bundle, never to one of its settings.
 */
#ifndef FETTLE_SCRIPT_BUNDLE_H
#define FETTLE_SCRIPT_BUNDLE_H

#include "orchestrator/script/reader.h"

extern const struct schema schema_bundle;

/* Settings that change together, into *out (zeroed; the caller frees it, also after an error). */
int bundle_read_settings(const struct reader *r, const struct json *v, const char *path,
			 struct bundle *out, struct err *e);
/* v, a table of sets by name, into values and bundles of the knob (struct knob, values empty). */
int bundle_read(const struct reader *r, const struct json *v, const char *path, struct knob *k,
		struct err *e);

#endif
