/* SPDX-License-Identifier: GPL-2.0-or-later */
/* capacity and nodes: what a partition has, and what of it is free. */
#include "orchestrator/slurm/helper.h"

#include <errno.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/sched/slurm_limits.h"
#include "orchestrator/slurm/compat.h"

enum { SECONDS_A_MINUTE = 60 };

/* An idle node with one of these takes no job now. */
#define NOT_USABLE                                                                                 \
	(NODE_STATE_DRAIN | NODE_STATE_COMPLETING | NODE_STATE_NO_RESPOND |                        \
	 NODE_STATE_POWERED_DOWN | NODE_STATE_FAIL | NODE_STATE_POWERING_DOWN | NODE_STATE_MAINT | \
	 NODE_STATE_REBOOT_ISSUED | NODE_STATE_RES)

struct site {
	partition_info_msg_t *partitions;
	node_info_msg_t *nodes;
};

static void site_free(struct site *s)
{
	if (s->partitions)
		slurm_free_partition_info_msg(s->partitions);
	if (s->nodes)
		slurm_free_node_info_msg(s->nodes);
}

static int site_load(struct helper *h, struct site *s, struct err *e)
{
	*s = (struct site){0};
	errno = 0;
	if (slurm_load_partitions(0, &s->partitions, SHOW_ALL))
		return helper_slurm_failed(h, e, "cannot ask for the partitions");
	if (slurm_load_node(0, &s->nodes, SHOW_ALL))
		return helper_slurm_failed(h, e, "cannot ask for the nodes");
	return 0;
}

static const partition_info_t *find_partition(struct helper *h, const struct site *s,
					      const char *name, struct err *e)
{
	for (uint32_t i = 0; i < s->partitions->record_count; i++) {
		const partition_info_t *p = &s->partitions->partition_array[i];

		if (name ? str_eq(p->name, name) : (p->flags & PART_FLAG_DEFAULT) != 0)
			return p;
	}
	helper_slurm_verdict(
		h, name ? ESLURM_INVALID_PARTITION_NAME : ESLURM_DEFAULT_PARTITION_NOT_SET, e,
		name ? name : "default partition");
	return NULL;
}

/* 0 for NO_VAL and INFINITE. */
static int64_t limit_of(uint32_t value)
{
	return value == NO_VAL || value == INFINITE ? 0 : value;
}

static int check_against(struct helper *h, const partition_info_t *p, const struct json *job,
			 struct err *e)
{
	const struct slurm_limits l = {.partition = p->name,
				       .nodes_total = p->total_nodes,
				       .nodes_most = limit_of(p->max_nodes),
				       .minutes_most = limit_of(p->max_time)};
	int rc = slurm_limits_check(&l, json_i64(json_get(job, "nodes"), 0),
				    (json_i64(json_get(job, "time_limit_s"), 0) + SECONDS_A_MINUTE -
				     1) / SECONDS_A_MINUTE,
				    e);

	if (rc)
		h->slurm_errno = ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE;
	return rc;
}

int helper_check_limits(struct helper *h, const struct json *job, struct err *e)
{
	const char *name = json_text(json_get(job, "partition"), NULL);
	const char *qos = json_text(json_get(job, "qos"), "");
	struct site s = {0};
	const partition_info_t *p;
	int rc = 0;

	if (*qos || (name && strchr(name, ',')))
		return 0;
	errno = 0;
	if (slurm_load_partitions(0, &s.partitions, SHOW_ALL))
		return helper_slurm_failed(h, e, "cannot ask for the partitions");
	p = find_partition(h, &s, name && *name ? name : NULL, NULL);
	if (p) /* else Slurm says so in its own words */
		rc = check_against(h, p, job, e);
	site_free(&s);
	return rc;
}

static bool is_idle(uint32_t state)
{
	return (state & NODE_STATE_BASE) == NODE_STATE_IDLE && !(state & NOT_USABLE);
}

/* Down, drained or not there yet: no job will get it before somebody acts. */
static bool is_out(uint32_t state)
{
	uint32_t base = state & NODE_STATE_BASE;

	return base == NODE_STATE_DOWN || base == NODE_STATE_UNKNOWN || base == NODE_STATE_FUTURE ||
	       base == NODE_STATE_ERROR || (state & (NODE_STATE_DRAIN | NODE_STATE_FAIL));
}

/* Calls `visit` for each node of the partition: node_inx holds pairs first, last and ends with -1.
 */
static void each_node(const struct site *s, const partition_info_t *p,
		      void (*visit)(const node_info_t *n, void *ctx), void *ctx)
{
	for (const int32_t *pair = p->node_inx; pair && pair[0] >= 0; pair += 2)
		for (int32_t i = pair[0]; i <= pair[1]; i++)
			if ((uint32_t)i < s->nodes->record_count && s->nodes->node_array[i].name)
				visit(&s->nodes->node_array[i], ctx);
}

struct count {
	int total, idle, out;
};

static void count_node(const node_info_t *n, void *ctx)
{
	struct count *c = ctx;

	c->total++;
	c->idle += is_idle(n->node_state);
	c->out += is_out(n->node_state);
}

/* NO_VAL and INFINITE become null. */
static void set_limit(struct json *o, const char *key, uint32_t value)
{
	if (value == NO_VAL || value == INFINITE)
		json_set_text(o, key, NULL);
	else
		json_set_i64(o, key, value);
}

int helper_capacity(struct helper *h, const struct json *req, struct json *reply, struct err *e)
{
	const partition_info_t *p;
	struct count c = {0};
	struct site s;
	int rc = site_load(h, &s, e);

	if (rc == 0) {
		p = find_partition(h, &s, json_text(json_get(req, "partition"), NULL), e);
		rc = p ? 0 : -(int)e->code;
	}
	if (rc == 0) {
		each_node(&s, p, count_node, &c);
		json_set_text(reply, "partition", p->name);
		json_set_bool(reply, "up", p->state_up == PARTITION_UP);
		json_set_i64(reply, "nodes_total", c.total);
		json_set_i64(reply, "nodes_idle", c.idle);
		json_set_i64(reply, "nodes_out", c.out);
		set_limit(reply, "max_time_min", p->max_time);
		set_limit(reply, "max_nodes", p->max_nodes);
	}
	site_free(&s);
	return rc;
}

static void add_node(const node_info_t *n, void *ctx)
{
	struct json *o = json_object();

	json_set_text(o, "name", n->name);
	json_set_i64(o, "state", n->node_state);
	json_set_bool(o, "idle", is_idle(n->node_state));
	json_set_bool(o, "out", is_out(n->node_state));
	json_set_text(o, "reason", n->reason);
	json_set_i64(o, "cpus", n->cpus);
	json_set_i64(o, "mem_mib", (int64_t)n->real_memory);
	json_set_text(o, "gres", n->gres);
	json_set_text(o, "features", n->features);
	json_set_i64(o, "boot_s", n->boot_time);
	json_set_text(o, "slurm", n->version);
	json_add(ctx, o);
}

int helper_nodes(struct helper *h, const struct json *req, struct json *reply, struct err *e)
{
	const partition_info_t *p;
	struct json *nodes;
	struct site s;
	int rc = site_load(h, &s, e);

	if (rc == 0) {
		p = find_partition(h, &s, json_text(json_get(req, "partition"), NULL), e);
		rc = p ? 0 : -(int)e->code;
	}
	if (rc == 0) {
		nodes = json_array();
		each_node(&s, p, add_node, nodes);
		json_set(reply, "nodes", nodes);
	}
	site_free(&s);
	return rc;
}
