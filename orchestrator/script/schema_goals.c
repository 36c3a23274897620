/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is to become better, what may not become worse, and what a long run must hold. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/fieldpath.h"
#include "orchestrator/script/schema.h"

static const char *const better_words[] = {"up", "down", NULL};
static const char *const stat_words[] = {"mean", "median", "p95",   "p99", "min",
					 "max",  "last",   "value", NULL};
static const char *const equal_words[] = {"step", "samples", "tokens", NULL};

#define AT(member)       offsetof(struct recipe, member)
#define IN(type, member) offsetof(struct type, member)
#define END                  \
	{                    \
		.name = NULL \
	}

/* --- objective ---------------------------------------------------------------------------- */

struct objective_draft {
	char *metric, *stat;
	int better;
};

static const struct field objective_fields[] = {
	{.name = "metric",
	 .type = FIELD_TEXT,
	 .required = true,
	 .offset = IN(objective_draft, metric),
	 .doc = "name of the metric",
	 .example = "\"step_time_ms\""},
	{.name = "stat",
	 .type = FIELD_CHOICE,
	 .words = stat_words,
	 .offset = IN(objective_draft, stat),
	 .dflt = "by metric",
	 .doc = "which statistic of the measured window counts"},
	{.name = "better",
	 .type = FIELD_WORD,
	 .words = better_words,
	 .offset = IN(objective_draft, better),
	 .dflt = "from the catalogue of metrics",
	 .doc = "which way is better; needed for a metric of your own"},
	END,
};
const struct schema schema_objective = {"objective", objective_fields};

/* What both objectives are made of. */
struct objective_out {
	char **metric, **stat;
	enum better *better;
};

static int read_goal(const struct reader *r, const struct json *v, const char *path,
		     const struct objective_out *out, struct err *e)
{
	struct objective_draft d = {.better = -1};
	int rc;

	if (json_type(v) == JSON_STRING)
		rc = reader_text(r, v, path, &d.metric, e);
	else
		rc = reader_table(r, &schema_objective, v, path, &d, e);
	if (rc) {
		free(d.metric);
		free(d.stat);
		return rc;
	}
	*out->metric = d.metric;
	*out->stat = d.stat ? d.stat : xstrdup(schema_default_stat(d.metric));
	*out->better = BETTER_NONE;
	if (d.better >= 0)
		*out->better = d.better ? BETTER_DOWN : BETTER_UP;
	else if (metric_def_find(d.metric))
		*out->better = metric_def_find(d.metric)->better;
	return 0;
}

int schema_read_objective(const struct reader *r, const struct json *v, const char *path, void *out,
			  struct err *e)
{
	struct recipe *x = out;
	const struct objective_out o = {&x->objective, &x->objective_stat, &x->better};

	return read_goal(r, v, path, &o, e);
}

int schema_read_second(const struct reader *r, const struct json *v, const char *path, void *out,
		       struct err *e)
{
	struct recipe *x = out;
	const struct objective_out o = {&x->second, &x->second_stat, &x->second_better};

	return read_goal(r, v, path, &o, e);
}

const char *schema_default_stat(const char *metric)
{
	if (str_starts(metric, "trial_"))
		return "value";
	if (strstr(metric, "_peak_") || str_eq(metric, "nan_iters"))
		return "max";
	return str_eq(metric, "loss") || str_eq(metric, "val_loss") ? "last" : "mean";
}

/* --- guards ------------------------------------------------------------------------------- */

static const struct field guard_fields[] = {
	{.name = "margin",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 1,
	 .offset = IN(guard, margin),
	 .unit = "share",
	 .dflt = "none",
	 .doc = "how much worse than the baseline of the same blocks it may get",
	 .example = "0.01"},
	{.name = "at_most",
	 .type = FIELD_NUMBER,
	 .offset = IN(guard, at_most),
	 .unit = "the metric's",
	 .dflt = "none",
	 .doc = "a limit of the candidate itself, whatever the baseline has",
	 .example = "70"},
	{.name = "at_least",
	 .type = FIELD_NUMBER,
	 .offset = IN(guard, at_least),
	 .unit = "the metric's",
	 .dflt = "none",
	 .doc = "the same from below",
	 .example = "0.4"},
	{.name = "stat",
	 .type = FIELD_CHOICE,
	 .words = stat_words,
	 .offset = IN(guard, stat),
	 .dflt = "by metric",
	 .doc = "which statistic of the measured window counts"},
	{.name = "better",
	 .type = FIELD_WORD,
	 .words = better_words,
	 .offset = IN(guard, better),
	 .dflt = "from the catalogue; none there: neither way is allowed",
	 .doc = "which way is better",
	 .example = "\"down\""},
	{.name = "equal",
	 .type = FIELD_CHOICE,
	 .words = equal_words,
	 .offset = IN(guard, equal),
	 .dflt = "for a loss: samples or tokens when these differ a step; else the step",
	 .doc = "what both arms have done when they are compared",
	 .example = "\"samples\""},
	END,
};
const struct schema schema_guard = {"guard", guard_fields};

static struct guard guard_default(const char *metric)
{
	const struct metric_def *d = metric_def_find(metric);

	return (struct guard){.metric = xstrdup(metric),
			      .margin = NAN,
			      .at_most = NAN,
			      .at_least = NAN,
			      .better = d ? d->better : BETTER_NONE};
}

static int read_guard(const struct reader *r, const struct json *v, const char *path,
		      struct guard *g, struct err *e)
{
	const struct field *margin = &guard_fields[0];
	double x = json_number(v, NAN);

	if (json_type(v) != JSON_NUMBER)
		return reader_table(r, &schema_guard, v, path, g, e);
	if (!(x >= margin->min && x <= margin->max))
		return reader_expected(r, v, path, "a margin from 0 to 1", e);
	g->margin = x;
	return 0;
}

/* How the entries of one of the two tables are read. */
struct guard_kind {
	int (*read)(const struct reader *r, const struct json *v, const char *path, struct guard *g,
		    struct err *e);
	bool constraint;
};
static const struct guard_kind guard_kind = {read_guard, false};

/* Guards and constraints go to one list: the one table may be read before or after the other. */
static int read_entries(const struct reader *r, const struct json *v, const char *path,
			const struct guard_kind *kind, struct recipe *recipe, struct err *e)
{
	int rc = 0;

	recipe->guards = xrealloc(recipe->guards, recipe->n_guards + json_len(v),
				  sizeof(*recipe->guards));
	for (const struct json *m = json_first(v); m && !rc; m = json_next(m)) {
		struct guard *g = &recipe->guards[recipe->n_guards++];
		_cleanup_free_ char *at = fieldpath_child(path, json_key(m));

		*g = guard_default(json_key(m));
		g->constraint = kind->constraint;
		g->at = reader_place(r, at);
		rc = kind->read(r, m, at, g, e);
		if (!g->stat)
			g->stat = xstrdup(schema_default_stat(g->metric));
	}
	return rc;
}

int schema_read_guards(const struct reader *r, const struct json *v, const char *path, void *out,
		       struct err *e)
{
	struct recipe *recipe = out;

	if (json_type(v) == JSON_ARRAY && !json_len(v))
		return 0;
	if (json_type(v) != JSON_OBJECT)
		return reader_expected(r, v, path,
				       "a table of guards by metric, e.g. { loss = 0.01 }", e);
	return read_entries(r, v, path, &guard_kind, recipe, e);
}

/* --- constraints --------------------------------------------------------------------------- */

static const struct field constraint_fields[] = {
	{.name = "at_least",
	 .type = FIELD_NUMBER,
	 .offset = IN(guard, at_least),
	 .unit = "the metric's",
	 .doc = "it must not be below this",
	 .example = "40"},
	{.name = "at_most",
	 .type = FIELD_NUMBER,
	 .offset = IN(guard, at_most),
	 .unit = "the metric's",
	 .doc = "it must not be above this",
	 .example = "70"},
	{.name = "stat",
	 .type = FIELD_CHOICE,
	 .words = stat_words,
	 .offset = IN(guard, stat),
	 .dflt = "by metric",
	 .doc = "which statistic of the measured window counts"},
	END,
};
const struct schema schema_constraint = {"constraint", constraint_fields};

static int read_constraint(const struct reader *r, const struct json *v, const char *path,
			   struct guard *g, struct err *e)
{
	return reader_table(r, &schema_constraint, v, path, g, e);
}
static const struct guard_kind constraint_kind = {read_constraint, true};

int schema_read_constraints(const struct reader *r, const struct json *v, const char *path,
			    void *out, struct err *e)
{
	if (json_type(v) == JSON_ARRAY && !json_len(v))
		return 0;
	if (json_type(v) != JSON_OBJECT)
		return reader_expected(
			r, v, path,
			"a table of limits by metric, e.g. { mfu_pct = { at_least = 40 } }", e);
	return read_entries(r, v, path, &constraint_kind, out, e);
}

static const struct field converge_fields[] = {
	{.name = "steps",
	 .type = FIELD_INT64,
	 .min = 1,
	 .max = 1e12,
	 .offset = AT(converge.steps),
	 .unit = "steps",
	 .dflt = "ten measured windows",
	 .doc = "length of each run",
	 .example = "2000"},
	{.name = "seeds",
	 .type = FIELD_INT,
	 .min = 2,
	 .max = 100,
	 .offset = AT(converge.seeds),
	 .dflt = "3",
	 .doc = "paired runs of default and fix; `seed_env` carries 1, 2, ..."},
	{.name = "metric",
	 .type = FIELD_TEXT,
	 .offset = AT(converge.metric),
	 .dflt = "`\"loss\"`",
	 .doc = "what must hold",
	 .example = "\"val_loss\""},
	{.name = "stat",
	 .type = FIELD_CHOICE,
	 .words = stat_words,
	 .offset = AT(converge.stat),
	 .dflt = "by metric",
	 .doc = "which statistic of the whole run counts, where runs are compared at equal steps"},
	{.name = "margin",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 1,
	 .offset = AT(converge.margin),
	 .unit = "share",
	 .dflt = "0.01",
	 .doc = "how much worse it may get"},
	{.name = "seed_env",
	 .type = FIELD_TEXT,
	 .offset = AT(converge.seed_env),
	 .dflt = "`\"FETTLE_SEED\"`",
	 .doc = "environment variable that carries the seed to both runs of a pair",
	 .example = "\"SEED\""},
	{.name = "trial_s",
	 .type = FIELD_SIZE,
	 .min = 1,
	 .max = 31536000,
	 .offset = AT(converge.trial_limit_s),
	 .unit = "s",
	 .dflt = "`limits.trial_s`, as many times as the run is longer",
	 .doc = "a run that takes longer is ended and counts as failed"},
	END,
};
const struct schema schema_converge = {"converge", converge_fields};
