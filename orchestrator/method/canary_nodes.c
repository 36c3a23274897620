/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which nodes a re-run stays away from; those of a night: place_night(). */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/method/canary.h"
#include "orchestrator/method/method.h"

/* The names of a list that are not there yet. */
static void add_names(struct strv *out, const char *list)
{
	while (*list) {
		size_t n = strcspn(list, ",");
		_cleanup_free_ char *name = xstrndup(list, n);
		bool there = n == 0;

		for (size_t i = 0; !there && i < out->n; i++)
			there = str_eq(out->v[i], name);
		if (!there)
			strv_add(out, name);
		list += n + (list[n] == ',');
	}
}

/* Those of the points of a series from a night on. */
static int nodes_since(struct campaign *c, int64_t series, const char *night, struct strv *out,
		       struct err *e)
{
	struct point_row *v = NULL;
	size_t n = 0;
	int rc = history_points(c->ws->db, series, night, &v, &n, e);

	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct replicate_row *r = NULL;
		size_t n_rep = 0;

		rc = history_replicates(c->ws->db, v[i].id, &r, &n_rep, e);
		for (size_t k = 0; rc == 0 && k < n_rep; k++)
			add_names(out, r[k].nodes ? r[k].nodes : "");
		replicate_rows_free(r, n_rep);
	}
	free(v);
	return rc;
}

int canary_avoid_suspects(struct campaign *c, const struct wanted_row *r, char **avoid,
			  struct err *e)
{
	struct change_row *v = NULL;
	struct strv nodes = {0};
	_cleanup_free_ char *list = NULL;
	size_t n = 0;
	int rc = history_changes(c->ws->db, r->regression, 0, &v, &n, e);

	*avoid = NULL;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = nodes_since(c, v[i].series, r->since, &nodes, e);
	if (rc == 0) {
		list = place_join(&nodes);
		rc = place_away(c, "re-run", "those of the nights in doubt", list, (int)nodes.n,
				avoid, e);
	}
	strv_free(&nodes);
	change_rows_free(v, n);
	return rc;
}
