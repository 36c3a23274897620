/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/check.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"
#include "orchestrator/script/fieldpath.h"
#include "orchestrator/script/pattern.h"
#include "orchestrator/script/schema.h"

/* --- metrics ------------------------------------------------------------------------------ */

/* What every trial has without a word from the workload: fettle's own samplers and records. */
static bool measured_by_fettle(const char *metric)
{
	static const char *const prefixes[] = {"trial_", "tree_",  "cpu_", "disk_",
					       "net_",   "procs_", "gpu_", NULL};

	for (size_t i = 0; prefixes[i]; i++)
		if (str_starts(metric, prefixes[i]))
			return true;
	return false;
}

static int unknown_metric(const struct reader *r, const char *metric, const char *path,
			  struct err *e)
{
	const char *names[256] = {NULL};
	_cleanup_free_ char *hint = NULL;
	size_t n = 0;

	for (const struct metric_def *d = metric_defs; d->name && n + 1 < ARRAY_LEN(names); d++)
		names[n++] = d->name;
	hint = reader_did_you_mean(metric, names);
	return reader_fault(
		r, path, e,
		"there is no metric \"%.64s\" in the catalogue%s; one of your own comes from a "
		"group of metrics.pattern or from metrics.file",
		metric, hint);
}

/* Groups of the pattern that feed metrics, as text for a message; *found tells if `metric` is one.
 */
static char *pattern_metrics(const struct recipe *recipe, const char *metric, bool *found)
{
	struct strv groups = {0};
	struct buf list = {0}, why = {0};

	pattern_check(recipe->workload.pattern, false, &groups, &why);
	*found = false;
	for (size_t i = 0; i < groups.n; i++) {
		const char *fed = str_eq(groups.v[i], "value") ? recipe->objective : groups.v[i];

		if (str_eq(fed, "step") || str_eq(fed, "rank"))
			continue;
		*found = *found || str_eq(fed, metric);
		buf_printf(&list, "%s%s", list.len ? ", " : "", fed);
	}
	strv_free(&groups);
	buf_free(&why);
	return buf_take(&list);
}

/* Can the source of the metrics give this one? */
static int check_source(const struct reader *r, const struct recipe *recipe, const char *metric,
			const char *path, struct err *e)
{
	_cleanup_free_ char *list = NULL;
	bool found = false;

	if (!metric_name_valid(metric))
		return reader_fault(
			r, path, e,
			"\"%.64s\" is no name of a metric: a-z, 0-9, '_' and '.', beginning with a "
			"letter",
			metric);
	if (metric_def_find(metric) && measured_by_fettle(metric))
		return 0;
	/* The agent counts the steps of a window, and knows the time. */
	if (str_eq(metric, "throughput_steps_per_s") && recipe->workload.steps > 0)
		return 0;
	switch (recipe->workload.source) {
	case SOURCE_METRICS_FILE:
		return 0;
	case SOURCE_PROBE:
		return metric_def_find(metric) ? 0 : unknown_metric(r, metric, path, e);
	case SOURCE_PATTERN:
		list = pattern_metrics(recipe, metric, &found);
		if (found)
			return 0;
		return reader_fault(r, path, e,
				    "workload.metrics.pattern has no group \"%.64s\": it gives %s",
				    metric, *list ? list : "nothing");
	}
	return 0;
}

/* --- objective and guards ------------------------------------------------------------------------
 */

static int check_target(const struct reader *r, const struct recipe *recipe, struct err *e)
{
	const struct metric_def *d = metric_def_find(recipe->objective);

	if (recipe->target <= 0)
		return reader_fault(r, "target", e,
				    "%g cannot be compared with: gains are ratios, the objective "
				    "must be above 0",
				    recipe->target);
	if (isnan(recipe->target) || !d)
		return 0;
	if (str_eq(d->name, "mfu_pct") && recipe->target > 100)
		return reader_fault(
			r, "target", e,
			"%g %% of the peak is more than the hardware can do: MFU is at most 100 %%",
			recipe->target);
	if (recipe->target < d->min || recipe->target > d->max)
		return reader_fault(r, "target", e,
				    "%g is no possible value of %s: it lies from %g to %g (%s)",
				    recipe->target, d->name, d->min, d->max, d->unit);
	return 0;
}

static int check_objective(const struct reader *r, const struct recipe *recipe, struct err *e)
{
	bool table = fieldpath_get(r->layers[0].value, "objective.metric");
	const char *path = table ? "objective.metric" : "objective";
	int rc = check_source(r, recipe, recipe->objective, path, e);

	if (rc)
		return rc;
	if (recipe->better == BETTER_NONE)
		return reader_fault(r, path, e,
				    "which way is better for \"%s\"? objective = { metric = "
				    "\"%s\", better = \"up\" } or \"down\"",
				    recipe->objective, recipe->objective);
	return check_target(r, recipe, e);
}

static int check_bounds(const struct reader *r, const struct guard *g, const char *at,
			struct err *e)
{
	if (isnan(g->margin) && isnan(g->at_most) && isnan(g->at_least))
		return reader_fault(r, at, e,
				    g->constraint ? "a constraint needs at_most or at_least"
						  : "a guard needs a margin, at_most or at_least");
	if (g->at_least > g->at_most)
		return reader_fault(r, at, e, "at_least %g is above at_most %g: nothing passes",
				    g->at_least, g->at_most);
	if (!isnan(g->margin) && g->better == BETTER_NONE && !metric_def_find(g->metric))
		return reader_fault(r, at, e,
				    "which way is better for \"%.64s\"? add better = \"up\" or "
				    "\"down\"",
				    g->metric);
	return 0;
}

/* A limit that no value of the target keeps would reject whatever reaches it. */
static int check_against_target(const struct reader *r, const struct recipe *recipe,
				const struct guard *x, const char *at, struct err *e)
{
	const struct metric_def *d = metric_def_find(x->metric);

	if (d && (x->at_least > d->max || x->at_most < d->min))
		return reader_fault(r, at, e,
				    "no possible value keeps it: %s lies from %g to %g (%s)",
				    d->name, d->min, d->max, d->unit);
	if (!str_eq(x->metric, recipe->objective) || !str_eq(x->stat, recipe->objective_stat) ||
	    isnan(recipe->target))
		return 0;
	if ((recipe->better == BETTER_UP && x->at_most < recipe->target) ||
	    (recipe->better == BETTER_DOWN && x->at_least > recipe->target))
		return reader_fault(r, at, e,
				    "contradicts the target: what reaches %g breaks this limit",
				    recipe->target);
	if ((recipe->better == BETTER_UP && x->at_least > recipe->target) ||
	    (recipe->better == BETTER_DOWN && x->at_most < recipe->target))
		return reader_fault(r, at, e,
				    "contradicts the target: it asks for more than the %g that "
				    "are the goal; one of them is meant",
				    recipe->target);
	return 0;
}

static int check_guards(const struct reader *r, const struct recipe *recipe, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < recipe->n_guards && !rc; i++) {
		const struct guard *g = &recipe->guards[i];
		_cleanup_free_ char *at = fieldpath_child(g->constraint ? "constraints" : "guards",
							  g->metric);

		rc = check_source(r, recipe, g->metric, at, e);
		if (!rc)
			rc = check_bounds(r, g, at, e);
		if (!rc)
			rc = check_against_target(r, recipe, g, at, e);
		if (!rc && isnan(g->at_most) && isnan(g->at_least) &&
		    str_eq(g->metric, recipe->objective) && str_eq(g->stat, recipe->objective_stat))
			rc = reader_fault(r, at, e,
					  "this is the objective itself: it is judged already");
	}
	return rc;
}

static int check_second(const struct reader *r, const struct recipe *recipe, struct err *e)
{
	int rc = check_source(r, recipe, recipe->second, "second_objective", e);

	if (!rc && recipe->second_better == BETTER_NONE)
		rc = reader_fault(r, "second_objective", e,
				  "which way is better for \"%s\"? { metric = \"%s\", better = "
				  "\"up\" } or \"down\"",
				  recipe->second, recipe->second);
	if (!rc && str_eq(recipe->second, recipe->objective) &&
	    str_eq(recipe->second_stat, recipe->objective_stat))
		rc = reader_fault(r, "second_objective", e, "this is the objective itself");
	return rc;
}

/* --- workload ----------------------------------------------------------------------------- */

static bool name_valid(const char *s)
{
	size_t n = strlen(s);

	if (!isalnum((unsigned char)*s) || n > 64)
		return false;
	while (*s && (isalnum((unsigned char)*s) || strchr("._-", *s)))
		s++;
	return !*s;
}

static int check_secrets(const struct reader *r, const struct workload *w, struct err *e)
{
	for (size_t i = 0; i < w->secrets.n; i++) {
		const char *s = w->secrets.v[i];
		_cleanup_free_ char *at = fieldpath_item("workload.secrets", i + 1),
				    *env = fieldpath_child("workload.env", s);

		if (strchr(s, '='))
			return reader_fault(r, at, e,
					    "a secret is passed by its name alone; its value stays "
					    "in your environment");
		if (!*s ||
		    s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")])
			return reader_fault(r, at, e,
					    "\"%.60s\" is no name of an environment variable", s);
		if (kvs_has(&w->env, s))
			return reader_fault(
				r, env, e,
				"%s is listed in secrets and must have no value here: it would be "
				"stored",
				s);
	}
	return 0;
}

/* Shorter values are no secrets ("none", "EMPTY"): no key of a service has less. */
enum { SECRET_MIN = 12 };

bool check_is_secret(const char *name)
{
	static const char *const ends[] = {"TOKEN",  "KEY",      "SECRET",
					   "PASSWD", "PASSWORD", "CREDENTIAL"};

	for (const char *word = name; *word; word += *word == '_') {
		size_t n = strcspn(word, "_");

		for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
			size_t k = strlen(ends[i]);

			if ((n >= k && strncmp(word + n - k, ends[i], k) == 0) ||
			    (n > k && word[n - 1] == 'S' &&
			     strncmp(word + n - k - 1, ends[i], k) == 0))
				return true;
		}
		word += n;
	}
	return false;
}

/* Where a file is (~/credentials.json), or a list, is no secret either. */
static int check_no_secret(const struct reader *r, const struct workload *w, struct err *e)
{
	for (size_t i = 0; i < w->env.n; i++) {
		const char *name = w->env.v[i].key, *value = w->env.v[i].value;
		_cleanup_free_ char *at = fieldpath_child("workload.env", name);

		if (value && strlen(value) >= SECRET_MIN && !strpbrk(value, " ,") &&
		    !strchr("/.~$", *value) && check_is_secret(name))
			return reader_fault(
				r, at, e,
				"%.60s has the name of a secret, and its value would be stored: "
				"export it where fettle runs, and write secrets = { \"%.60s\" } "
				"in the place of the value",
				name, name);
	}
	return 0;
}

static int check_window(const struct reader *r, const struct workload *w, struct err *e)
{
	if (w->steps && !w->step_pattern && w->source != SOURCE_METRICS_FILE)
		return reader_fault(r, "workload.window.pattern", e,
				    "missing: how is a step recognised in the output? e.g. pattern "
				    "= \"^step \"");
	if (w->warmup_steps && !w->steps)
		return reader_fault(
			r, "workload.window.warmup_steps", e,
			"a warm-up needs a number of measured steps after it: steps = ...");
	return 0;
}

static int check_workload(const struct reader *r, const struct workload *w, struct err *e)
{
	int rc;

	if (!w->command.n || !*w->command.v[0])
		return reader_fault(
			r, "workload.command", e,
			"is empty: program and arguments, e.g. { \"python3\", \"train.py\" }");
	rc = check_secrets(r, w, e);
	return rc ? rc : check_window(r, w, e);
}

/* "gpu", "gpu:2" or "gres/gpu:2" in a list of generic resources. */
static bool has_gpu(const char *gres)
{
	for (const char *p = gres; *p; p += strcspn(p, ","), p += *p == ',') {
		if (str_starts(p, "gres/") || str_starts(p, "gres:"))
			p += strlen("gres/");
		if (str_starts(p, "gpu") && strchr(":,", p[3]))
			return true;
	}
	return false;
}

/* What the budget allows must leave room for one block. */
static int check_budget(const struct reader *r, const struct recipe *recipe, struct err *e)
{
	const struct budget *b = &recipe->budget;
	const struct resources *s = &recipe->resources;
	int nodes = s->nodes > 0 ? s->nodes : 1;

	if (b->gpu_hours > 0 && s->gpus_per_node == 0)
		return reader_fault(r, "budget.gpu_hours", e,
				    "needs resources.gpus_per_node, or nothing would be counted");
	if (b->nodes && b->nodes < nodes)
		return reader_fault(r, "budget.nodes", e,
				    "one trial has %d nodes already (resources.nodes)", nodes);
	if (s->among.n && (int)s->among.n < nodes)
		return reader_fault(r, "resources.among", e,
				    "names %zu nodes, and one trial has %d (resources.nodes)",
				    s->among.n, nodes);
	if (s->among.n && s->nodelist)
		return reader_fault(r, "resources.among", e, "excludes nodelist: keep one of them");
	return 0;
}

static int check_resources(const struct reader *r, const struct resources *s, struct err *e)
{
	long tasks = (s->nodes ? s->nodes : 1L) * (s->tasks_per_node ? s->tasks_per_node : 1L);

	if (str_eq(s->launcher, "exec") && tasks > 1)
		return reader_fault(r, "resources.launcher", e,
				    "\"exec\" starts one process, but %ld tasks are asked for: use "
				    "\"srun\", \"mpirun\" or "
				    "\"torchrun\"",
				    tasks);
	if (s->mem_mib_per_node && (s->options.mem_mib_per_cpu || s->options.mem_mib_per_gpu))
		return reader_fault(r, "resources.mem_gib_per_node", e,
				    "excludes mem_gib_per_cpu and mem_gib_per_gpu: keep one of "
				    "them");
	if (s->gpus_per_node && s->options.gres && has_gpu(s->options.gres))
		return reader_fault(r, "resources.gres", e,
				    "names GPUs, and gpus_per_node does too: keep one of them");
	if (s->options.mail_user && !s->options.mail_type)
		return reader_fault(r, "resources.mail_user", e,
				    "gets no mail without mail_type, e.g. \"FAIL\"");
	if (s->nodelist && s->exclude && str_eq(s->nodelist, s->exclude))
		return reader_fault(r, "resources.exclude", e, "the same nodes as in nodelist");
	return 0;
}

/* --- knobs among each other ----------------------------------------------------------------------
 */

/* Do they set one thing? */
static bool same_target(const struct knob *a, const struct knob *b)
{
	const struct knob *bundle = a->how == HOW_BUNDLE ? a : b, *other = bundle == a ? b : a;

	if (bundle->how != HOW_BUNDLE)
		return a->how == b->how && str_eq(a->target, b->target) &&
		       (!a->subkey || !b->subkey || str_eq(a->subkey, b->subkey));
	for (size_t i = 0; i < bundle->values.n; i++)
		if (other->how == HOW_ENV && kvs_has(&bundle->bundles[i].env, other->target))
			return true;
	return false;
}

static bool sets(const struct knob *k, const char *name)
{
	if (k->how == HOW_ENV)
		return str_eq(k->target, name);
	for (size_t i = 0; k->how == HOW_BUNDLE && i < k->values.n; i++)
		if (kvs_has(&k->bundles[i].env, name))
			return true;
	return false;
}

/* Does a say that it must not be set beside what this name or variable is? */
static bool excludes(const struct knob *a, const char *name)
{
	for (size_t i = 0; name && i < a->about.excludes.n; i++)
		if (str_eq(a->about.excludes.v[i], name))
			return true;
	return false;
}

static int check_exclusions(const struct recipe *recipe, struct err *e)
{
	for (size_t i = 0; i < recipe->n_knobs; i++) {
		const struct knob *a = &recipe->knobs[i];

		for (size_t j = 0; j < recipe->n_knobs; j++) {
			const struct knob *b = &recipe->knobs[j];

			if (i != j && (excludes(a, b->name) || excludes(a, b->target)))
				return err_set(e, ERR_RECIPE,
					       "%s:%d: knobs %s and %s exclude each other: keep "
					       "one of them",
					       a->at.file, a->at.line, a->name, b->name);
		}
		for (size_t j = 0; j < recipe->workload.env.n; j++)
			if (excludes(a, recipe->workload.env.v[j].key))
				return err_set(e, ERR_RECIPE,
					       "%s:%d: knob %s and %s, which workload.env sets, "
					       "exclude each other: keep one of them",
					       a->at.file, a->at.line, a->name,
					       recipe->workload.env.v[j].key);
	}
	return 0;
}

static int check_targets(const struct recipe *recipe, struct err *e)
{
	for (size_t i = 0; i < recipe->n_knobs; i++) {
		const struct knob *a = &recipe->knobs[i];

		for (size_t s = 0; s < recipe->workload.secrets.n; s++)
			if (sets(a, recipe->workload.secrets.v[s]))
				return err_set(e, ERR_RECIPE,
					       "%s:%d: knob %s would set %s, which is a secret",
					       a->at.file, a->at.line, a->name,
					       recipe->workload.secrets.v[s]);
		for (size_t j = 0; j < i; j++) {
			const struct knob *b = &recipe->knobs[j];

			if (same_target(a, b))
				return err_set(
					e, ERR_RECIPE,
					"%s:%d: knobs %s and %s both set %s: one setting, one knob",
					a->at.file, a->at.line, b->name, a->name,
					a->target   ? a->target
					: b->target ? b->target
						    : "the same variables");
		}
	}
	return 0;
}

/* --- all ---------------------------------------------------------------------------------- */

#define MIN_EFFECT_DEFAULT 0.01 /* share */

/* 0 in a recipe: no such stage. Nothing said: by mode, which is 0 in a plan. */
static int settled_blocks(int said)
{
	return said == BLOCKS_UNSAID ? 0 : said == 0 ? BLOCKS_NONE : said;
}

/* One pair of values has no spread. */
static int check_blocks(const struct reader *r, const struct recipe *recipe, struct err *e)
{
	static const char text[] = "1 block tells nothing about noise: 2 or more, or 0 for none";

	if (recipe->aa_blocks == 1)
		return reader_fault(r, "blocks.aa", e, "%s", text);
	if (recipe->final_blocks == 1)
		return reader_fault(r, "blocks.final", e, "%s", text);
	return 0;
}

static void settle_defaults(struct recipe *r)
{
	static const struct {
		int rounds, soak, ladder;
	} by_mode[] = {
		[MODE_QUICK] = {1, 3, 3},
		[MODE_STANDARD] = {3, 6, 4},
		[MODE_LONG] = {5, 10, 6},
		[MODE_STRICT] = {3, 10, 8},
	};

	r->gain_stated = !isnan(r->min_effect);
	if (!r->gain_stated)
		r->min_effect = MIN_EFFECT_DEFAULT;
	if (isnan(r->alpha))
		r->alpha = r->mode == MODE_STRICT ? 0.01 : 0.05;
	if (!r->rounds)
		r->rounds = by_mode[r->mode].rounds;
	r->aa_blocks = settled_blocks(r->aa_blocks);
	r->final_blocks = settled_blocks(r->final_blocks);
	if (r->soak_trials < 0)
		r->soak_trials = by_mode[r->mode].soak;
	if (!r->ladder.blocks)
		r->ladder.blocks = by_mode[r->mode].ladder;
	if (r->canary.blocks && r->schedule.every == CADENCE_NONE)
		r->schedule.every = CADENCE_NIGHT;
	if (!r->converge.metric)
		r->converge.metric = xstrdup("loss");
	if (!r->converge.stat)
		r->converge.stat = xstrdup(schema_default_stat(r->converge.metric));
	if (!r->converge.seed_env)
		r->converge.seed_env = xstrdup("FETTLE_SEED");
	if (!r->workload.name)
		r->workload.name = xstrdup(r->name);
	r->workload.whole_run = !r->workload.steps;
}

int check_plan(const struct reader *r, struct recipe *recipe, struct err *e)
{
	int rc;

	if (!name_valid(recipe->name))
		return reader_fault(
			r, "name", e,
			"\"%.80s\" is no name: at most 64 letters, digits, '.', '_' and '-'",
			recipe->name);
	settle_defaults(recipe);
	container_settle(recipe);
	rc = check_workload(r, &recipe->workload, e);
	if (!rc)
		rc = container_check(r, recipe, e);
	if (!rc)
		rc = check_blocks(r, recipe, e);
	if (!rc)
		rc = check_resources(r, &recipe->resources, e);
	if (!rc)
		rc = check_budget(r, recipe, e);
	if (!rc)
		rc = check_objective(r, recipe, e);
	if (!rc)
		rc = check_guards(r, recipe, e);
	if (!rc && recipe->second)
		rc = check_second(r, recipe, e);
	if (!rc)
		rc = schema_check_ladder(r, recipe, e);
	if (!rc)
		rc = schema_check_nightly(r, recipe, e);
	if (!rc)
		rc = check_targets(recipe, e);
	return rc ? rc : check_exclusions(recipe, e);
}

/* --- this machine ------------------------------------------------------------------------- */

int check_machine(const struct reader *r, const struct recipe *recipe, const char *const *probes,
		  struct err *e)
{
	const struct workload *w = &recipe->workload;
	_cleanup_free_ char *hint = NULL;
	struct stat st;

	if (stat(w->workdir, &st) || !S_ISDIR(st.st_mode))
		return reader_fault(r, "workload.workdir", e, "there is no directory %s",
				    w->workdir);
	if (check_no_secret(r, w, e) < 0)
		return -ERR_RECIPE;
	if (!probes || !w->probe)
		return 0;
	for (size_t i = 0; probes[i]; i++)
		if (str_eq(probes[i], w->probe))
			return 0;
	hint = reader_did_you_mean(w->probe, probes);
	return reader_fault(r, "workload.metrics.probe", e,
			    "there is no probe \"%.64s\"%s; `fettle probe --list` shows them",
			    w->probe, hint);
}

static bool runnable(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* One program, of the workload or of a bundle. */
static int check_program(const struct recipe *r, const struct place *at, const char *program,
			 const char *path, struct err *e)
{
	_cleanup_free_ char *found = NULL;

	if (strchr(program, '/')) {
		found = fs_join(r->workload.workdir, program);
		if (runnable(found))
			return 0;
		return err_set(e, ERR_RECIPE,
			       "%s:%d: workload.command: command not found: %s does not exist or "
			       "is not executable",
			       at->file, at->line, found);
	}
	found = proc_which(program, path);
	if (found)
		return 0;
	return err_set(e, ERR_RECIPE,
		       "%s:%d: workload.command: command not found: \"%s\" is in no directory of "
		       "PATH (%s)",
		       at->file, at->line, program, path ? path : "which is not set");
}

/* What is in the image cannot be looked at from here. */
static int check_runtime(const struct recipe *r, const char *path, struct err *e)
{
	const struct container *c = &r->workload.container;
	_cleanup_free_ char *found = NULL;

	if (container_is_pyxis(c))
		return err_set(e, ERR_RECIPE,
			       "%s:%d: workload.container.runtime: pyxis is a plugin of Slurm: "
			       "scheduler local needs \"apptainer\" or \"singularity\"",
			       r->workload.at.file, r->workload.at.line);
	found = proc_which(c->runtime, path);
	return found ? 0
		     : err_set(e, ERR_RECIPE,
			       "%s:%d: workload.container: \"%s\" is in no directory of PATH (%s)",
			       r->workload.at.file, r->workload.at.line, c->runtime,
			       path ? path : "which is not set");
}

int script_check_command(const struct recipe *r, const char *env_path, struct err *e)
{
	const struct workload *w = &r->workload;
	const char *path = kvs_get(&w->env, "PATH");
	int rc;

	if (!path)
		path = env_path ? env_path : getenv("PATH");
	if (w->container.runtime)
		return check_runtime(r, path, e);
	rc = check_program(r, &w->at, w->command.v[0], path, e);
	for (size_t i = 0; i < r->n_knobs; i++)
		for (size_t j = 0; rc == 0 && r->knobs[i].bundles && j < r->knobs[i].values.n; j++)
			if (r->knobs[i].bundles[j].command.n)
				rc = check_program(r, &r->knobs[i].at,
						   r->knobs[i].bundles[j].command.v[0], path, e);
	return rc;
}

static void warn_needs(const struct recipe *r, const struct knob *k, struct strv *out)
{
	if (!k->requires_knob || k->requires_values.n)
		return;
	if (recipe_knob(r, k->requires_knob))
		strv_addf(out,
			  "knob %s only counts with certain values of %s, and none of them is to "
			  "be tried",
			  k->name, k->requires_knob);
	else
		strv_addf(out,
			  "knob %s only counts with certain values of %s, which the workload does "
			  "not have; it will not "
			  "be tried: add %s to knobs or to the command",
			  k->name, k->requires_knob, k->requires_knob);
}

void script_warnings(const struct recipe *r, struct strv *out)
{
	const struct workload *w = &r->workload;
	bool loss_guard = false, optimisation = false;

	for (size_t i = 0; i < r->n_guards; i++)
		loss_guard = loss_guard || str_eq(r->guards[i].metric, "loss") ||
			     str_eq(r->guards[i].metric, "val_loss");
	if (!r->n_knobs && !r->ladder.n && !r->canary.blocks)
		strv_add(out, "there are no knobs: only the baseline will be measured");
	for (size_t i = 0; i < r->n_knobs; i++) {
		warn_needs(r, &r->knobs[i], out);
		optimisation = optimisation || r->knobs[i].cls != CLASS_NEUTRAL;
	}
	if (optimisation && !loss_guard)
		strv_add(out, "a knob changes numerics or training dynamics, but no guard watches "
			      "the loss: guards = { loss = 0.01 }");
	if (w->step_pattern && !w->steps)
		strv_add(out, "window.pattern counts steps, but window.steps does not say how "
			      "many: trials run to their own end");
	container_warn(r, out);
	if (r->budget.wall_s > 0 && (double)w->trial_limit_s > r->budget.wall_s)
		strv_add(out, "one trial may run longer than the whole budget: lower "
			      "workload.limits.trial_s");
}
