/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On which nodes the next block runs: the campaign's placement as lists of nodes to use and to
 * leave out. */
#include <stdlib.h>
#include <string.h>

#include "experiments/history.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/due.h"
#include "orchestrator/method/method.h"

static bool in_list(const struct strv *v, const char *node)
{
	for (size_t i = 0; i < v->n; i++)
		if (str_eq(v->v[i], node))
			return true;
	return false;
}

static int nodes_of_job(const struct campaign *c)
{
	return c->resources.nodes > 0 ? c->resources.nodes : 1;
}

char *place_join(const struct strv *v)
{
	struct buf b = {0};

	for (size_t i = 0; i < v->n; i++)
		buf_printf(&b, "%s%s", i ? "," : "", v->v[i]);
	return b.len ? buf_take(&b) : NULL;
}

/* -- which nodes were used -------------------------------------------------------------------- */

/* Adds the second list to the first; both are by node. */
static void add_use(struct node_use_row **to, size_t *n, const struct node_use_row *from,
		    size_t n_from)
{
	struct node_use_row *sum = xcalloc(*n + n_from + 1, sizeof *sum), *a = *to;
	size_t used = 0, i = 0;

	for (size_t j = 0; j < n_from; j++) {
		const struct node_use_row *b = &from[j];

		while (i < *n && strcmp(a[i].node, b->node) < 0)
			sum[used++] = a[i++];
		sum[used] = i < *n && str_eq(a[i].node, b->node)
				    ? a[i++]
				    : (struct node_use_row){.node = xstrdup(b->node)};
		sum[used].n += b->n;
		if (b->newest > sum[used].newest)
			sum[used].newest = b->newest;
		used++;
	}
	while (i < *n)
		sum[used++] = a[i++];
	free(a);
	*to = sum;
	*n = used;
}

/* The last allocation before which none is in flight: what is known of those does not change. 0:
 * none is in flight. */
static int64_t last_over(const struct facts *f)
{
	int64_t over = INT64_MAX;

	for (size_t i = 0; i < f->n_blocks; i++) {
		const struct block_row *b = &f->blocks[i];

		if (b->attempt_id && b->allocation <= over &&
		    (b->state == ATTEMPT_PLANNED || b->state == ATTEMPT_SUBMITTED))
			over = b->allocation - 1;
	}
	return over < INT64_MAX ? over : 0;
}

/* Those that are over are counted once and kept: there may be thousands. */
static int use_of_nodes(struct campaign *c, struct node_use_row **v, size_t *n, struct err *e)
{
	struct node_use_row *more = NULL;
	int64_t over = last_over(&c->facts);
	size_t n_more = 0;
	int rc = 0;

	if (over > c->node_use_upto && (rc = query_node_use(c->ws->db, c->row.id, c->node_use_upto,
							    over, &more, &n_more, e)) < 0)
		return rc;
	if (n_more)
		add_use(&c->node_use, &c->n_node_use, more, n_more);
	node_use_rows_free(more, n_more);
	c->node_use_upto = over > c->node_use_upto ? over : c->node_use_upto;
	rc = query_node_use(c->ws->db, c->row.id, c->node_use_upto, INT64_MAX, v, n, e);
	if (rc == 0)
		add_use(v, n, c->node_use, c->n_node_use);
	return rc;
}

static int used(const struct node_use_row *v, size_t n, const char *node)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(v[i].node, node))
			return v[i].n;
	return 0;
}

/* -- same ------------------------------------------------------------------------------------- */

/* The nodes of the newest block that counts, unless one of them is left out by now. */
static int place_same(const struct node_use_row *v, size_t n, const struct strv *exclude,
		      char **nodelist)
{
	struct strv nodes = {0};
	int64_t newest = 0;
	bool usable = true;

	for (size_t i = 0; i < n; i++)
		newest = v[i].newest > newest ? v[i].newest : newest;
	for (size_t i = 0; i < n; i++)
		if (newest && v[i].newest == newest) {
			strv_add(&nodes, v[i].node);
			usable = usable && !in_list(exclude, v[i].node);
		}
	if (usable)
		*nodelist = place_join(&nodes);
	strv_free(&nodes);
	return 0;
}

/* -- spread ----------------------------------------------------------------------------------- */

/* Nodes that had more than the fewest are left out, as long as enough others can be there. */
static void place_spread(const struct campaign *c, const struct node_use_row *v, size_t n,
			 struct strv *exclude)
{
	int free_nodes, need = nodes_of_job(c), level = 0, most = 0;

	for (size_t i = 0; i < n; i++)
		most = v[i].n > most ? v[i].n : most;
	for (; level < most; level++) {
		free_nodes = c->capacity.nodes_total - c->capacity.nodes_out - (int)exclude->n;
		for (size_t i = 0; i < n; i++)
			free_nodes -= v[i].n > level && !in_list(exclude, v[i].node);
		if (free_nodes >= need)
			break;
	}
	for (size_t i = 0; i < n; i++)
		if (v[i].n > level && !in_list(exclude, v[i].node))
			strv_add(exclude, v[i].node);
}

/* -- among ------------------------------------------------------------------------------------ */

/* The least used of the list, in its order; those that jobs in flight were given, whose use is not
 * counted yet, come after the others. */
static void place_among(const struct campaign *c, const struct node_use_row *v, size_t n,
			const struct strv *exclude, char **nodelist)
{
	const struct strv *among = &c->resources.among;
	size_t need = (size_t)nodes_of_job(c), skip = c->facts.allocations;
	struct strv order = {0}, pick = {0};
	int most = 0;

	for (size_t i = 0; i < n; i++)
		most = v[i].n > most ? v[i].n : most;
	for (int level = 0; level <= most; level++)
		for (size_t i = 0; i < among->n; i++)
			if (!in_list(exclude, among->v[i]) && used(v, n, among->v[i]) == level)
				strv_add(&order, among->v[i]);
	skip = skip > 0 ? (skip - 1) * need : 0; /* the one that is placed is in flight, too */
	for (size_t i = 0; order.n >= need && i < need; i++)
		strv_add(&pick, order.v[(skip + i) % order.n]);
	*nodelist = place_join(order.n >= need ? &pick : among);
	strv_free(&order);
	strv_free(&pick);
}

int place_block(struct campaign *c, struct strv *exclude, char **nodelist, struct err *e)
{
	const struct resources *r = &c->resources;
	struct node_use_row *v = NULL;
	size_t n = 0;
	int rc;

	*nodelist = NULL;
	if (r->placement == PLACEMENT_ANY && r->among.n == 0)
		return 0;
	if ((rc = use_of_nodes(c, &v, &n, e)) < 0)
		return rc;
	switch (r->placement) {
	case PLACEMENT_SAME:
		rc = place_same(v, n, exclude, nodelist);
		break;
	case PLACEMENT_SPREAD:
		if (r->among.n == 0)
			place_spread(c, v, n, exclude);
		break;
	case PLACEMENT_ANY:
		break;
	}
	if (!*nodelist && r->among.n)
		place_among(c, v, n, exclude, nodelist);
	node_use_rows_free(v, n);
	return rc;
}

int place_away(struct campaign *c, const char *what, const char *whose, const char *nodes, int n,
	       char **avoid, struct err *e)
{
	const struct resources *r = &c->resources;
	int others, rc = c->sched->capacity(c->run, &c->capacity, e);

	*avoid = NULL;
	if (rc < 0)
		return rc == -ERR_TEMP ? 0 : rc;
	others = (c->capacity.nodes_idle < c->capacity.nodes_total ? c->capacity.nodes_idle
								   : c->capacity.nodes_total) -
		 n;
	if (!nodes || r->nodelist || others < nodes_of_job(c))
		return campaign_event(c, e, "placement",
				      "%s: on any node%s%s%s%s; %d of %d nodes are idle%s", what,
				      nodes ? ", also " : "", nodes ? whose : "", nodes ? ": " : "",
				      nodes ? nodes : "", c->capacity.nodes_idle,
				      c->capacity.nodes_total,
				      r->nodelist ? ", and the recipe names its own" : "");
	*avoid = xstrdup(nodes);
	return campaign_event(c, e, "placement", "%s: on other nodes than %s: not on %s", what,
			      whose, nodes);
}

/* -- nights ----------------------------------------------------------------------------------- */

static int usable_nodes(const struct campaign *c)
{
	return c->capacity.nodes_total > c->capacity.nodes_out
		       ? c->capacity.nodes_total - c->capacity.nodes_out
		       : 0;
}

/* The names of those that are left out. */
static char *avoided(const struct campaign *c, const struct node_look *looks, size_t n, int blocks)
{
	_cleanup_free_ struct due_node *v = xcalloc(n + 1, sizeof *v);
	_cleanup_free_ bool *avoid = xcalloc(n + 1, sizeof *avoid);
	struct strv names = {0};
	char *out;

	for (size_t i = 0; i < n; i++) {
		v[i] = (struct due_node){.name = looks[i].node, .looks = looks[i].looks};
		str_copy(v[i].night, sizeof v[i].night, looks[i].night);
	}
	due_avoid(v, n, (size_t)usable_nodes(c), (size_t)nodes_of_job(c), (size_t)blocks, avoid);
	for (size_t i = 0; i < n; i++)
		if (avoid[i])
			strv_add(&names, looks[i].node);
	out = place_join(&names);
	strv_free(&names);
	return out;
}

int place_night(struct campaign *c, int blocks, char **avoid, struct err *e)
{
	const struct resources *r = &c->resources;
	struct node_look *looks = NULL;
	size_t n = 0;
	int rc;

	*avoid = NULL;
	if (r->nodelist || r->among.n || r->placement != PLACEMENT_ANY || usable_nodes(c) < 2)
		return 0;
	if ((rc = history_node_looks(c->ws->db, c->row.id, &looks, &n, e)) < 0)
		return rc;
	*avoid = avoided(c, looks, n, blocks);
	node_looks_free(looks, n);
	if (!*avoid)
		return 0;
	return campaign_event(c, e, "placement",
			      "canary: on the nodes that wait longest: not on %s", *avoid);
}
