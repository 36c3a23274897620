/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What follows from the end of a job. orchestrator/slurm/STATES.md shows the table; a test holds
 * the two together. */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

enum {
	ENDS_MAX = 64,      /* newest ends that are looked at: more than any stop_after */
	EXCLUDE_MAX = 1000, /* nodes in an exclude list: what a request of Slurm carries with ease
			     */
};

static const struct end_rule rules[] = {
	{END_OK, false, true, false, 5,
	 "look at the agent's own output: it ended and left nothing"},
	{END_FAILED, false, true, false, 5,
	 "look at the agent's own output; do the nodes see the workspace and the program?"},
	{END_TIMEOUT, false, true, false, 3,
	 "raise resources.time_limit_min, or lower limits.trial_s or the steps"},
	{END_CANCELLED, true, true, false, 5, "ask who cancels the jobs"},
	{END_NODE_FAIL, true, true, true, 6, "`sinfo -R` shows which nodes are down, and why"},
	{END_PREEMPTED, true, false, false, 10,
	 "use a partition or qos that is not preempted, or shorter blocks"},
	{END_OOM, false, true, false, 3, "raise resources.mem_gib_per_node"},
	{END_REQUEUED, true, true, false, 6, "ask who requeues the jobs"},
	{END_LAUNCH_FAILED, true, true, true, 6,
	 "the prolog fails: `sinfo -R` shows on which nodes"},
	{END_DEADLINE, true, true, false, 3,
	 "the queue is longer than the window: widen the window, or ask for less"},
	{END_NEVER_STARTED, true, true, false, 1, "change what the reason names"},
	{END_VANISHED, false, true, false, 6, "ask the administrators whether slurmctld lost jobs"},
};

const struct end_rule *end_rule_of(enum job_end end)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (rules[i].end == end)
			return &rules[i];
	return NULL;
}

/* -- identical failures ----------------------------------------------------------------------- */

/* A job that came to its end and left results is no failure; one that was preempted is, whatever
 * was kept of it. */
static bool failed(const struct end_row *v)
{
	return !v->valid || !str_eq(v->outcome, job_end_name(END_OK));
}

int ends_stop_reason(struct campaign *c, char **out, struct err *e)
{
	struct end_row *v = NULL;
	const struct end_rule *rule;
	const char *why;
	enum job_end end;
	size_t n = 0, same = 0;
	int rc;

	*out = NULL;
	if (!c->ends_changed)
		return 0;
	if ((rc = query_ends(c->ws->db, c->row.id, ENDS_MAX, &v, &n, e)) < 0)
		return rc;
	c->ends_changed = false;
	while (same < n && failed(&v[same]) && str_eq(v[same].outcome, v[0].outcome))
		same++;
	rule = n && job_end_parse(v[0].outcome, &end) ? end_rule_of(end) : NULL;
	why = n && v[0].reason && *v[0].reason ? v[0].reason : NULL;
	if (rule && same >= (size_t)rule->stop_after)
		*out = xasprintf("%zu job%s in a row ended alike: %s%s%s%s; %s", same,
				 same == 1 ? "" : "s", v[0].outcome, why ? " (" : "",
				 why ? why : "", why ? ")" : "", rule->advice);
	end_rows_free(v, n);
	return 0;
}

/* -- nodes ------------------------------------------------------------------------------------ */

struct suspect {
	char *node;
	int faults;
};

static int by_faults(const void *a, const void *b)
{
	const struct suspect *x = a, *y = b;

	return x->faults != y->faults ? y->faults - x->faults : strcmp(x->node, y->node);
}

static bool blames(const char *outcome)
{
	const struct end_rule *rule;
	enum job_end end;

	rule = job_end_parse(outcome, &end) ? end_rule_of(end) : NULL;
	return rule && rule->blames_nodes;
}

/* Faults by node, the worst first; rows come ordered by node. Heap; *n elements. */
static struct suspect *count_faults(struct node_end_row *v, size_t n, size_t *out)
{
	struct suspect *s = xcalloc(n + 1, sizeof *s);
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		if (!blames(v[i].outcome))
			continue;
		if (used == 0 || !str_eq(s[used - 1].node, v[i].node))
			s[used++] = (struct suspect){.node = v[i].node};
		s[used - 1].faults += v[i].n;
	}
	qsort(s, used, sizeof *s, by_faults);
	*out = used;
	return s;
}

/* As many are left out as still leaves the nodes of one job, the worst first. */
static size_t most_excluded(const struct campaign *c)
{
	int need = c->resources.nodes > 0 ? c->resources.nodes : 1;
	int spare = c->capacity.nodes_total - need;

	return spare <= 0 ? 0 : spare < EXCLUDE_MAX ? (size_t)spare : EXCLUDE_MAX;
}

int ends_faulty_nodes(struct campaign *c, struct strv *out, struct err *e)
{
	struct suspect *s;
	size_t n_suspects, most = most_excluded(c);
	int rc = 0;

	if (most && !c->node_ends)
		rc = query_node_ends(c->ws->db, c->row.id, &c->node_ends, &c->n_node_ends, e);
	if (rc < 0 || c->n_node_ends == 0)
		return rc;
	s = count_faults(c->node_ends, c->n_node_ends, &n_suspects);
	for (size_t i = 0; i < n_suspects && out->n < most; i++)
		if (s[i].faults >= METHOD_NODE_FAULTS)
			strv_add(out, s[i].node);
	free(s);
	return 0;
}

void ends_forget_nodes(struct campaign *c)
{
	node_end_rows_free(TAKE(c->node_ends), c->n_node_ends);
	c->n_node_ends = 0;
}

/* A line in the report the moment that a node is left out. */
int ends_note_nodes(struct campaign *c, struct err *e)
{
	struct strv nodes = {0};
	int rc;

	ends_forget_nodes(c);
	rc = ends_faulty_nodes(c, &nodes, e);

	for (size_t i = 0; rc == 0 && i < nodes.n; i++) {
		_cleanup_free_ char *start = xasprintf("node %s ", nodes.v[i]);
		struct event_row last;
		bool known = false;

		rc = query_event_last(c->ws->db, c->row.id, "node", start, &last, &known, e);
		event_row_done(&last);
		if (rc == 0 && !known) {
			campaign_tell(c, PROGRESS_NOTE, 0,
				      "%sis left out from now on: %d jobs failed on it", start,
				      METHOD_NODE_FAULTS);
			rc = campaign_event(c, e, "node",
					    "%sis left out from now on: %d jobs failed on it",
					    start, METHOD_NODE_FAULTS);
		}
	}
	strv_free(&nodes);
	return rc;
}
