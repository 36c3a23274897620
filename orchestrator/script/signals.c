/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/signals.h"

#include <math.h>
#include <string.h>

#include "experiments/model.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/script/reader.h"

enum { MADE_UP_MAX = 1000000 };

/* What a trial runs on; the others are metrics. */
static const char *const facts[] = {"nodes", "ranks_per_node", "gpus_per_node", "ncpu", NULL};

/* Statistics that are handed over beside the mean; min and max of a trace are over its ranks. */
static const char *const stats[] = {"p95", "min", "max", NULL};

static bool is_in(const char *const *words, const char *word)
{
	for (; *words; words++)
		if (str_eq(*words, word))
			return true;
	return false;
}

bool signal_is_known(const char *name)
{
	const char *dot = strrchr(name, '.');
	_cleanup_free_ char *metric = NULL;

	if (is_in(facts, name) || metric_def_find(name))
		return true;
	metric = dot ? xstrndup(name, (size_t)(dot - name)) : NULL;
	return metric && is_in(stats, dot + 1) && metric_def_find(metric);
}

char *signal_did_you_mean(const char *name)
{
	struct strv names = {0};
	char *text;

	for (size_t i = 0; metric_defs[i].name; i++)
		strv_add(&names, metric_defs[i].name);
	for (size_t i = 0; facts[i]; i++)
		strv_add(&names, facts[i]);
	text = reader_did_you_mean(name, (const char *const *)strv_end(&names));
	strv_free(&names);
	return text;
}

struct json *signals_made_up(bool high)
{
	struct json *o = json_object();

	for (size_t i = 0; metric_defs[i].name; i++)
		json_set_number(o, metric_defs[i].name,
				high ? 0.97 * fmin(metric_defs[i].max, MADE_UP_MAX) : 0);
	for (size_t i = 0; facts[i]; i++)
		json_set_number(o, facts[i], high ? 8 : 1);
	return o;
}
