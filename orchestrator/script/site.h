/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * site.lua: what a site gives to every campaign (defaults, more directories with recipes) and what
 * it does not allow (caps, forbidden knobs). It lies under the campaign's values; a cap that a
 * campaign exceeds is an error that names both files. user.lua gives its user's own defaults and
 * directories, over the site's and under the campaign's.
 */
#ifndef FETTLE_SCRIPT_SITE_H
#define FETTLE_SCRIPT_SITE_H

#include "orchestrator/script/reader.h"

struct site {
	const struct script_source *src; /* NULL: there is no site.lua */
	const struct json *defaults;     /* borrowed; NULL: none */
	int nodes;                       /* caps; 0: none */
	int64_t trials, trial_s;
	double wall_s, node_hours, gpu_hours;
	int jobs, nodes_at_once, idle_nodes;
	struct strv window;      /* hours outside of which no block runs */
	struct kvs forbidden;    /* knob or variable -> why */
	struct strv recipe_path; /* absolute directories */
};

/* With schema_site or schema_user. */
int site_read(const struct schema *schema, const struct script_source *src,
	      const struct json *value, struct site *out, struct err *e);
void site_done(struct site *s);

/* Budgets that the campaign leaves open become the caps; everything above a cap is refused. */
int site_apply(const struct site *s, const struct reader *r, struct recipe *recipe, struct err *e);

#endif
