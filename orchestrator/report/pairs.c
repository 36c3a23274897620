/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/pairs.h"

#include <math.h>
#include <stdlib.h>

#include "experiments/stats.h"
#include "orchestrator/base/mem.h"

#define LEVEL 0.95

size_t pairs_of_values(const struct value_row *v, size_t n, struct pairs_value *out)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (v[i].state == TRIAL_OK && isfinite(v[i].value))
			out[k++] = (struct pairs_value){v[i].arm, v[i].block_index, v[i].value};
	return k;
}

size_t pairs_of_curve(const struct curve_row *v, size_t n, struct pairs_value *out)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (isfinite(v[i].value))
			out[k++] = (struct pairs_value){v[i].arm, v[i].block_index, v[i].value};
	return k;
}

static bool counts(const struct pairs_value *v, bool logs)
{
	return !logs || v->value > 0;
}

/* Mean of an arm in the block that v begins with, or of the logarithms; NaN: it has none. */
static double block_mean(const struct pairs_value *v, size_t n, int64_t arm, bool logs)
{
	double sum = 0;
	size_t k = 0;

	for (size_t i = 0; i < n && v[i].block == v[0].block; i++)
		if (v[i].arm == arm && counts(&v[i], logs)) {
			sum += logs ? log(v[i].value) : v[i].value;
			k++;
		}
	return k ? sum / (double)k : NAN;
}

static size_t blocks(const struct pairs_value *v, size_t n, int64_t base, int64_t arm, bool logs,
		     double *a, double *b)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (i && v[i].block == v[i - 1].block)
			continue;
		a[k] = block_mean(v + i, n - i, base, logs);
		b[k] = block_mean(v + i, n - i, arm, logs);
		k += isfinite(a[k]) && isfinite(b[k]);
	}
	return k;
}

static int direction(const struct stats_mean_ci *ci)
{
	return ci->lo > 0 ? 1 : ci->hi < 0 ? -1 : 0;
}

struct report_pairs pairs_logs(const struct pairs_value *v, size_t n, int64_t base, int64_t arm,
			       enum better better, struct stats_mean_ci *logs)
{
	_cleanup_free_ double *a = xcalloc(n + 1, sizeof *a), *b = xcalloc(n + 1, sizeof *b);
	size_t k = blocks(v, n, base, arm, true, a, b);
	struct stats_mean_ci ci = better == BETTER_DOWN ? stats_paired(b, a, k, LEVEL)
							: stats_paired(a, b, k, LEVEL);

	if (logs)
		*logs = ci;
	return (struct report_pairs){.before = exp(stats_mean(a, k)),
				     .after = exp(stats_mean(b, k)),
				     .effect = {.est = stats_relative(ci.mean),
						.lo = stats_relative(ci.lo),
						.hi = stats_relative(ci.hi),
						.n = k},
				     .moved = direction(&ci)};
}

/* x / scale; 0 stays 0 whatever the scale. */
static double relative(double x, double scale)
{
	return x == 0 ? 0 : scale != 0 ? x / fabs(scale) : NAN;
}

static struct report_pairs differences(const struct pairs_value *v, size_t n, int64_t base,
				       int64_t arm)
{
	_cleanup_free_ double *a = xcalloc(n + 1, sizeof *a), *b = xcalloc(n + 1, sizeof *b);
	size_t k = blocks(v, n, base, arm, false, a, b);
	struct stats_mean_ci ci = stats_paired(a, b, k, LEVEL);
	double before = stats_mean(a, k);

	return (struct report_pairs){.before = before,
				     .after = stats_mean(b, k),
				     .effect = {.est = relative(ci.mean, before),
						.lo = relative(ci.lo, before),
						.hi = relative(ci.hi, before),
						.n = k},
				     .moved = direction(&ci)};
}

struct report_pairs pairs_any(const struct pairs_value *v, size_t n, int64_t base, int64_t arm)
{
	for (size_t i = 0; i < n; i++)
		if ((v[i].arm == base || v[i].arm == arm) && !(v[i].value > 0))
			return differences(v, n, base, arm);
	return pairs_logs(v, n, base, arm, BETTER_UP, NULL);
}
