/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/stats.h"
#include "orchestrator/base/mem.h"

/* Added to the diagonal of the nodes: what no data tell apart then has an se of sd / sqrt(RIDGE)
 * instead of none, and what they tell changes in the eighth digit. */
#define RIDGE    1e-8
#define SE_KNOWN 1.0 /* log: an effect that may be a factor of e either way is not known */

/* Normal equations over the stages, then the nodes. */
struct model {
	size_t stages, nodes, p;
	double *a;      /* p x p: X'X, then its inverse */
	double *xy, *b; /* right side, solution */
};

static void model_free(struct model *m)
{
	free(m->a);
	free(m->xy);
	free(m->b);
}

static void add_pair(struct model *m, size_t i, size_t j)
{
	m->a[i * m->p + j] += 1;
}

static void add_unit(struct model *m, const struct node_unit *u)
{
	add_pair(m, u->stage, u->stage);
	m->xy[u->stage] += u->y;
	for (size_t i = 0; i < u->n_nodes; i++) {
		size_t row = m->stages + u->nodes[i];

		add_pair(m, u->stage, row);
		add_pair(m, row, u->stage);
		m->xy[row] += u->y;
		for (size_t k = 0; k < u->n_nodes; k++)
			add_pair(m, row, m->stages + u->nodes[k]);
	}
}

/* The effects of all nodes sum to nothing: else a stage and its nodes could not be told apart. */
static void constrain(struct model *m)
{
	for (size_t i = m->stages; i < m->p; i++) {
		for (size_t k = m->stages; k < m->p; k++)
			m->a[i * m->p + k] += 1;
		m->a[i * m->p + i] += RIDGE;
	}
	for (size_t i = 0; i < m->stages; i++)
		m->a[i * m->p + i] += RIDGE;
}

/* In place, by Gauss and Jordan; the matrix is positive definite, so no pivots are exchanged. */
static bool invert(double *a, size_t p)
{
	for (size_t k = 0; k < p; k++) {
		double pivot = a[k * p + k];

		if (!(pivot > 0))
			return false;
		a[k * p + k] = 1;
		for (size_t j = 0; j < p; j++)
			a[k * p + j] /= pivot;
		for (size_t i = 0; i < p; i++) {
			double f = a[i * p + k];

			if (i == k || f == 0)
				continue;
			a[i * p + k] = 0;
			for (size_t j = 0; j < p; j++)
				a[i * p + j] -= f * a[k * p + j];
		}
	}
	return true;
}

static double fitted(const struct model *m, const struct node_unit *u)
{
	double v = m->b[u->stage];

	for (size_t i = 0; i < u->n_nodes; i++)
		v += m->b[m->stages + u->nodes[i]];
	return v;
}

/* x' A^-1 x of a unit: its share of the parameters. */
static double leverage(const struct model *m, const struct node_unit *u)
{
	const double *a = m->a;
	size_t p = m->p, s = u->stage;
	double h = a[s * p + s];

	for (size_t i = 0; i < u->n_nodes; i++) {
		size_t r = m->stages + u->nodes[i];

		h += 2 * a[s * p + r];
		for (size_t k = 0; k < u->n_nodes; k++)
			h += a[r * p + m->stages + u->nodes[k]];
	}
	return h;
}

static bool solve(struct model *m, const struct node_unit *u, size_t n, struct node_fit *fit)
{
	double rss = 0, used = 0;

	for (size_t i = 0; i < n; i++)
		add_unit(m, &u[i]);
	constrain(m);
	if (!invert(m->a, m->p))
		return false;
	for (size_t i = 0; i < m->p; i++)
		for (size_t k = 0; k < m->p; k++)
			m->b[i] += m->a[i * m->p + k] * m->xy[k];
	for (size_t i = 0; i < n; i++) {
		double r = u[i].y - fitted(m, &u[i]);

		rss += r * r;
		used += leverage(m, &u[i]);
	}
	fit->df = floor((double)n - used + 0.5);
	fit->sd = fit->df >= 1 ? sqrt(rss / fit->df) : NAN;
	return fit->df >= 1;
}

/* Effect of node i less the mean of the others that are not slow, and its variance over sd^2. */
static double contrast(const struct model *m, const struct node_effect *v, size_t i, double *var)
{
	double est = m->b[m->stages + i], share, q = 0;
	size_t others = 0;

	for (size_t k = 0; k < m->nodes; k++)
		others += k != i && !v[k].slow && v[k].units > 0;
	if (others == 0) {
		*var = INFINITY;
		return NAN;
	}
	share = 1.0 / (double)others;
	for (size_t k = 0; k < m->nodes; k++) {
		double ck = k == i ? 1 : !v[k].slow && v[k].units > 0 ? -share : 0;

		est -= k != i && ck != 0 ? share * m->b[m->stages + k] : 0;
		for (size_t l = 0; ck != 0 && l < m->nodes; l++) {
			double cl = l == i ? 1 : !v[l].slow && v[l].units > 0 ? -share : 0;

			q += ck * cl * m->a[(m->stages + k) * m->p + m->stages + l];
		}
	}
	*var = q;
	return est;
}

static void judge(const struct model *m, const struct node_fit *fit, double t,
		  struct node_effect *v, size_t i)
{
	double var, est = contrast(m, v, i, &var), se = fit->sd * sqrt(var);

	v[i].known = v[i].units > 0 && isfinite(est) && sqrt(var) * fmax(fit->sd, 1e-4) < SE_KNOWN;
	v[i].est = v[i].known ? est : NAN;
	v[i].lo = v[i].known ? est - t * se : NAN;
	v[i].hi = v[i].known ? est + t * se : NAN;
}

/* Take the slowest out of the mean that the others are held against, until none is slow. */
static void step_down(const struct model *m, const struct node_fit *fit, double alpha,
		      double min_slow, struct node_effect *v)
{
	double t = stats_t_quantile(1 - alpha / (double)m->nodes, fit->df),
	       bound = log1p(-min_slow);

	for (size_t round = 0; round < m->nodes; round++) {
		size_t worst = m->nodes;

		for (size_t i = 0; i < m->nodes; i++) {
			judge(m, fit, t, v, i);
			if (v[i].known && !v[i].slow && v[i].hi < bound &&
			    (worst == m->nodes || v[i].hi < v[worst].hi))
				worst = i;
		}
		if (worst == m->nodes)
			return;
		v[worst].slow = true;
	}
}

bool nodes_estimate(const struct node_unit *units, size_t n, size_t n_nodes, size_t n_stages,
		    double alpha, double min_slow, struct node_effect *out, struct node_fit *fit)
{
	struct model m = {.stages = n_stages, .nodes = n_nodes, .p = n_stages + n_nodes};
	bool ok;

	*fit = (struct node_fit){.sd = NAN};
	for (size_t i = 0; i < n_nodes; i++)
		out[i] = (struct node_effect){.est = NAN, .lo = NAN, .hi = NAN};
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < units[i].n_nodes; k++)
			out[units[i].nodes[k]].units++;
	if (n == 0 || n_nodes < 2 || n_nodes > NODES_MAX || n_stages > NODES_MAX_STAGES)
		return false;
	m.a = xcalloc(m.p * m.p, sizeof *m.a);
	m.xy = xcalloc(m.p, sizeof *m.xy);
	m.b = xcalloc(m.p, sizeof *m.b);
	ok = solve(&m, units, n, fit);
	if (ok)
		step_down(&m, fit, alpha, min_slow, out);
	model_free(&m);
	return ok;
}
