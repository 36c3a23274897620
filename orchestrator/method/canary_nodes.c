/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which nodes a canary stage stays away from. */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/method/canary.h"
#include "orchestrator/method/due.h"
#include "orchestrator/method/method.h"

/* Nights look at the nodes in turn, but at least this share of them stays free to take: a job that
 * wants the very ones that are busy would not start. */
static const double FREE_SHARE = 0.5;

/* -- nodes in doubt --------------------------------------------------------------------------- */

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

/* -- nodes in turn ---------------------------------------------------------------------------- */

static const char *night_of(const struct canary_row *v, size_t n, int64_t stage)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].stage == stage && v[i].purpose == CANARY_NIGHT)
			return v[i].night;
	return NULL;
}

/* Counts a look at a node. */
static void add_look(struct due_node *v, size_t *n, const char *node, const char *night)
{
	size_t i = 0;

	while (i < *n && !str_eq(v[i].name, node))
		i++;
	if (i == *n)
		v[(*n)++] = (struct due_node){.name = node};
	v[i].looks++;
	if (strcmp(night, v[i].night) > 0)
		str_copy(v[i].night, sizeof v[i].night, night);
}

/* Each node that a night of this campaign looked at; names are borrowed from rows. */
static int looks(struct campaign *c, const struct node_row *rows, size_t n_rows,
		 struct due_node *out, size_t *n, struct err *e)
{
	struct canary_row *v = NULL;
	size_t n_nights = 0;
	int rc = history_canaries(c->ws->db, c->row.id, &v, &n_nights, e);

	*n = 0;
	for (size_t i = 0; rc == 0 && i < n_rows; i++) {
		const char *night = night_of(v, n_nights, rows[i].stage);

		if (night)
			add_look(out, n, rows[i].node, night);
	}
	free(v);
	return rc;
}

static char *seen_lately(const struct campaign *c, const struct due_node *v, size_t n, int blocks)
{
	int usable = c->capacity.nodes_total - c->capacity.nodes_out;
	size_t need = c->resources.nodes > 0 ? (size_t)c->resources.nodes : 1;
	size_t wanted = (size_t)((double)(usable > 0 ? usable : 0) * FREE_SHARE / (double)need);
	_cleanup_free_ bool *marked = xcalloc(n + 1, sizeof *marked);
	struct strv names = {0};
	char *out;

	if (wanted < (size_t)blocks)
		wanted = (size_t)blocks;
	(void)due_avoid(v, n, (size_t)(usable > 0 ? usable : 0), need, wanted, marked);
	for (size_t i = 0; i < n; i++)
		if (marked[i])
			strv_add(&names, v[i].name);
	out = place_join(&names);
	strv_free(&names);
	return out;
}

int canary_avoid_seen(struct campaign *c, int blocks, char **avoid, struct err *e)
{
	const struct resources *r = &c->resources;
	struct node_row *rows = NULL;
	_cleanup_free_ struct due_node *v = NULL;
	size_t n_rows = 0, n = 0;
	int rc;

	*avoid = NULL;
	if (r->placement != PLACEMENT_ANY || r->among.n || r->nodelist)
		return 0;
	rc = query_nodes(c->ws->db, c->row.id, &rows, &n_rows, e);
	v = xcalloc(n_rows + 1, sizeof *v);
	if (rc == 0 && (rc = looks(c, rows, n_rows, v, &n, e)) == 0)
		*avoid = seen_lately(c, v, n, blocks);
	node_rows_free(rows, n_rows);
	return rc;
}
