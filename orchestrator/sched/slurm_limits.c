/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/sched/slurm_limits.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum { SECONDS_A_DAY = 86400, DURATION_PARTS = 3 };

/* Up to three numbers between colons. How many, or -1. */
static int read_parts(const char *text, int64_t part[DURATION_PARTS])
{
	int n = 0;

	for (;;) {
		size_t len = strcspn(text, ":");
		_cleanup_free_ char *one = xstrndup(text, len);

		if (n == DURATION_PARTS || !str_to_i64(one, &part[n]) || part[n] < 0 ||
		    part[n] > INT32_MAX)
			return -1;
		n++;
		if (!text[len])
			return n;
		text += len + 1;
	}
}

int64_t slurm_limits_duration_s(const char *text)
{
	/* Which unit the first number has: with days it is hours, alone it is minutes. */
	static const int64_t with_days[] = {3600, 60, 1}, without[DURATION_PARTS][3] = {
								  {60, 0, 0},
								  {60, 1, 0},
								  {3600, 60, 1},
							  };
	const char *dash = strchr(text, '-');
	int64_t days[DURATION_PARTS] = {0}, part[DURATION_PARTS] = {0}, s = 0;
	_cleanup_free_ char *before = dash ? xstrndup(text, (size_t)(dash - text)) : NULL;
	int n = read_parts(dash ? dash + 1 : text, part);

	if (n < 0 || (before && read_parts(before, days) != 1))
		return -1;
	for (int i = 0; i < n; i++)
		s += part[i] * (dash ? with_days[i] : without[n - 1][i]);
	return s + days[0] * SECONDS_A_DAY;
}

static int above(struct err *e, const char *partition, int64_t asked, int64_t most,
		 const char *unit, const char *advice)
{
	return err_set(e, ERR_RECIPE,
		       "%lld %s are asked for, partition %s gives a job %lld at most (%s; or name "
		       "the partition or the qos that allows more)",
		       (long long)asked, unit, partition, (long long)most, advice);
}

int slurm_limits_check(const struct slurm_limits *l, int64_t nodes, int64_t minutes, struct err *e)
{
	if (l->nodes_total && nodes > l->nodes_total)
		return err_set(e, ERR_RECIPE,
			       "%lld nodes are asked for, partition %s has %lld: `sinfo -s` lists "
			       "the partitions",
			       (long long)nodes, l->partition, (long long)l->nodes_total);
	if (l->nodes_most && nodes > l->nodes_most)
		return above(e, l->partition, nodes, l->nodes_most, "nodes",
			     "MaxNodes; lower resources.nodes");
	if (l->minutes_most && minutes > l->minutes_most)
		return above(e, l->partition, minutes, l->minutes_most, "minutes",
			     "MaxTime; lower resources.time_limit_min, or the trials' limit");
	return 0;
}
