/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a campaign comes to when everything under it is merged, value by value with its origin. */
#ifndef FETTLE_SCRIPT_ORIGIN_H
#define FETTLE_SCRIPT_ORIGIN_H

#include "orchestrator/script/reader.h"

/* Every value of `merged`, found in the reader's layers; then what the site does not allow: its
 * `caps` and `forbidden` (site NULL: there is none). */
void origins_collect(const struct reader *r, const struct json *merged,
		     const struct script_source *site, const struct json *site_value,
		     struct origins *out);

#endif
