/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a sample costs at the throughput that was reached, and the table of two objectives. */
#include "orchestrator/report/objectives.h"

#include <math.h>
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/pairs.h"

/* -- cost of a unit ----------------------------------------------------------------------------
 */

/* Throughputs, the most telling first, and what they count. */
static const struct {
	const char *metric, *unit;
} throughputs[] = {
	{"throughput_samples_per_s", "sample"},
	{"throughput_tokens_per_s", "token"},
	{"throughput_steps_per_s", "step"},
};

/* Steps a second from the time of a step, when nothing else says how fast it is. */
static double throughput(const struct signal_row *v, size_t n, const char **unit)
{
	double ms;

	for (size_t i = 0; i < ARRAY_LEN(throughputs); i++) {
		double x = signal_rows_mean(v, n, throughputs[i].metric);

		*unit = throughputs[i].unit;
		if (x > 0)
			return x;
	}
	ms = signal_rows_mean(v, n, "step_time_ms");
	*unit = "step";
	return ms > 0 ? 1000 / ms : NAN;
}

/* Rates are those of the node that was sampled: all nodes of a trial are taken to do as much. */
static int rate(struct db *db, int64_t arm, const char *a, const char *b, double nodes, double *out,
		struct err *e)
{
	double x = NAN, y = NAN;
	int rc = query_arm_rate(db, arm, a, &x, e);

	if (rc == 0)
		rc = query_arm_rate(db, arm, b, &y, e);
	if (rc == 0)
		*out = (x + y) * nodes;
	return rc;
}

static int unit_cost(struct db *db, struct report *r, const struct arm_row *a, struct err *e)
{
	const struct resources *res = &r->recipe->resources;
	double nodes = res->nodes > 0 ? res->nodes : 1, net = NAN, ops = NAN;
	struct report_unit_cost *c = &r->costs[r->n_costs];
	struct signal_row *v = NULL;
	const char *unit;
	size_t n = 0;
	int rc = query_arm_signals(db, a->id, &v, &n, e);

	if (rc < 0)
		return rc;
	c->per_s = throughput(v, n, &unit);
	signal_rows_free(v, n);
	if (!(c->per_s > 0))
		return 0;
	if ((rc = rate(db, a->id, "net_rx_bytes_per_s", "net_tx_bytes_per_s", nodes, &net, e)) <
		    0 ||
	    (rc = rate(db, a->id, "disk_r_iops", "disk_w_iops", nodes, &ops, e)) < 0)
		return rc;
	c->label = xstrdup(a->label);
	c->unit = unit;
	c->node_hours = nodes / (3600 * c->per_s);
	c->gpu_hours = res->gpus_per_node > 0 ? c->node_hours * res->gpus_per_node : NAN;
	c->net_bytes = net / c->per_s;
	c->storage_ops = ops / c->per_s;
	r->n_costs++;
	return 0;
}

/* Both arms of the stage that speaks last: the final one, else the last test. */
static int load_costs(struct db *db, struct report *r, const struct stage_row *s, size_t n,
		      struct err *e)
{
	const struct stage_row *last = NULL;
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		if ((s[i].kind == STAGE_FINAL || s[i].kind == STAGE_CONFIRM) && s[i].n_arms == 2)
			last = &s[i];
	r->costs = xcalloc(2, sizeof *r->costs);
	for (size_t a = 0; rc == 0 && last && a < 2; a++)
		rc = unit_cost(db, r, &last->arms[a], e);
	return rc;
}

/* -- two objectives ----------------------------------------------------------------------------
 */

/* Paired effect of an arm on one metric, relative, + is better. */
static int effect(struct db *db, const struct stage_row *s, size_t arm, const char *metric,
		  const char *stat, enum better better, struct report_estimate *out, struct err *e)
{
	_cleanup_free_ struct pairs_value *x = NULL;
	struct value_row *v = NULL;
	size_t n = 0;
	int rc = query_stage_values(db, s->id, metric, stat, &v, &n, e);

	if (rc < 0)
		return rc;
	x = xcalloc(n + 1, sizeof *x);
	*out = pairs_logs(x, pairs_of_values(v, n, x), s->arms[0].id, s->arms[arm].id, better, NULL)
		       .effect;
	value_rows_free(v, n);
	return 0;
}

/* A configuration stands once, with the stage that measured it last. */
static void keep(struct report *r, struct report_tradeoff *t, size_t *cap)
{
	for (size_t i = 0; i < r->n_tradeoffs; i++)
		if (str_eq(r->tradeoffs[i].label, t->label)) {
			free(r->tradeoffs[i].label);
			r->tradeoffs[i] = *t;
			return;
		}
	r->tradeoffs = xgrow(r->tradeoffs, r->n_tradeoffs, cap, sizeof *r->tradeoffs);
	r->tradeoffs[r->n_tradeoffs++] = *t;
}

static int load_stage(struct db *db, struct report *r, const struct stage_row *s, size_t *cap,
		      struct err *e)
{
	const struct recipe *p = r->recipe;
	int rc = 0;

	for (size_t a = 1; rc == 0 && a < s->n_arms; a++) {
		struct report_tradeoff t = {.stage = s->kind};

		rc = effect(db, s, a, p->objective, p->objective_stat, p->better, &t.first, e);
		if (rc == 0)
			rc = effect(db, s, a, p->second, p->second_stat, p->second_better,
				    &t.second, e);
		if (rc < 0 || !isfinite(t.first.est) || !isfinite(t.second.est))
			continue;
		t.label = xstrdup(s->arms[a].label);
		keep(r, &t, cap);
	}
	return rc;
}

/* Beaten: another, or the baseline itself (0, 0), is at least as good in both and better in one. */
static bool beaten_by(const struct report_tradeoff *t, double first, double second)
{
	return first >= t->first.est && second >= t->second.est &&
	       (first > t->first.est || second > t->second.est);
}

static void mark_front(struct report *r)
{
	for (size_t i = 0; i < r->n_tradeoffs; i++) {
		struct report_tradeoff *t = &r->tradeoffs[i];

		t->beaten = beaten_by(t, 0, 0);
		for (size_t j = 0; j < r->n_tradeoffs; j++)
			t->beaten = t->beaten || beaten_by(t, r->tradeoffs[j].first.est,
							   r->tradeoffs[j].second.est);
	}
}

int report_objectives_load(struct db *db, struct report *r, const struct stage_row *s, size_t n,
			   struct err *e)
{
	size_t cap = 0;
	int rc = load_costs(db, r, s, n, e);

	for (size_t i = 0; rc == 0 && r->recipe->second && i < n; i++)
		if (s[i].kind == STAGE_SCREEN || s[i].kind == STAGE_CONFIRM ||
		    s[i].kind == STAGE_FINAL)
			rc = load_stage(db, r, &s[i], &cap, e);
	mark_front(r);
	return rc;
}

void report_objectives_done(struct report *r)
{
	for (size_t i = 0; i < r->n_costs; i++)
		free(r->costs[i].label);
	for (size_t i = 0; i < r->n_tradeoffs; i++)
		free(r->tradeoffs[i].label);
	free(r->costs);
	free(r->tradeoffs);
}

/* -- JSON ---------------------------------------------------------------------------------------
 */

struct json *report_costs_json(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_costs; i++) {
		const struct report_unit_cost *c = &r->costs[i];
		struct json *o = json_object();

		json_set_text(o, "arm", c->label);
		json_set_text(o, "unit", c->unit);
		json_set_number(o, "per_s", c->per_s);
		json_set_number(o, "node_hours", c->node_hours);
		json_set_number(o, "gpu_hours", c->gpu_hours);
		json_set_number(o, "network_bytes", c->net_bytes);
		json_set_number(o, "storage_operations", c->storage_ops);
		json_add(a, o);
	}
	return a;
}

static struct json *estimate_json(const struct report_estimate *x)
{
	struct json *o = json_object();

	json_set_number(o, "est", x->est);
	json_set_number(o, "lo", x->lo);
	json_set_number(o, "hi", x->hi);
	json_set_i64(o, "n", (int64_t)x->n);
	return o;
}

struct json *report_tradeoffs_json(const struct report *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_tradeoffs; i++) {
		const struct report_tradeoff *t = &r->tradeoffs[i];
		struct json *o = json_object();

		json_set_text(o, "arm", t->label);
		json_set_text(o, "stage", stage_kind_name(t->stage));
		json_set(o, "objective", estimate_json(&t->first));
		json_set(o, "second_objective", estimate_json(&t->second));
		json_set_bool(o, "beaten", t->beaten);
		json_add(a, o);
	}
	return a;
}
