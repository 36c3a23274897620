/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Proof that a setting took effect, and that nothing undeclared changed with it. Evidence comes
 * from /proc of the ranks or from the component's own line, as the agent captured it, never from a
 * line of the script. A missing proof makes an arm invalid, never a loser.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

/* Keys that differ between any two trials. Prefixes. */
static const char *const volatile_keys[] = {
	"FETTLE_",        "SLURM_",        "SLURMD_",  "SRUN_",       "PMI",         "PMIX_",
	"OMPI_",          "PRTE_",         "HYDRA_",   "MASTER_PORT", "MASTER_ADDR", "TMPDIR",
	"XDG_CACHE_HOME", "PWD",           "OLDPWD",   "SHLVL",       "RANK",        "LOCAL_RANK",
	"GROUP_RANK",     "TORCHELASTIC_", "HOSTNAME", "_",           NULL,
};

struct evidence {
	struct campaign *c;
	const struct stage_row *stage;
	const struct arm_row *base, *arm;
	const struct knob *knob;
	const char *value;
	struct config base_config, config;
	struct effective_row *rows;
	size_t n;
	char *reason;
};

static bool is_volatile(const char *name)
{
	for (const char *const *p = volatile_keys; *p; p++)
		if (strcmp(*p, "_") == 0 ? strcmp(name, "_") == 0 : str_starts(name, *p))
			return true;
	return false;
}

static int compare_rows(const void *a, const void *b)
{
	const struct effective_row *x = a, *y = b;

	if (x->trial != y->trial)
		return x->trial < y->trial ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return strcmp(x->key, y->key);
}

/* What a rank of a trial showed under a key; NULL when nothing. Rows are sorted by open_evidence.
 */
static const char *arm_value(const struct evidence *v, int64_t trial, int rank, const char *key)
{
	struct effective_row want = {.trial = trial, .rank = rank, .key = (char *)key};
	const struct effective_row *r = bsearch(&want, v->rows, v->n, sizeof *v->rows,
						compare_rows);

	return r ? r->value : NULL;
}

static bool implied(const struct evidence *v, const char *key)
{
	for (size_t i = 0; i < v->knob->implies.n; i++)
		if (str_eq(v->knob->implies.v[i], key))
			return true;
	return false;
}

/* "k:v" is one element of the list "a:b,k:v". */
static bool list_has(const char *list, const char *subkey, const char *value)
{
	_cleanup_free_ char *want = xasprintf("%s:%s", subkey, value);
	size_t n = strlen(want);

	for (const char *p = list; (p = strstr(p, want)); p++)
		if ((p == list || p[-1] == ',') && (p[n] == '\0' || p[n] == ','))
			return true;
	return false;
}

static bool argv_has(const char *argv_json, const struct knob *k, const char *value)
{
	_cleanup_(json_freep) struct json *argv = NULL;
	_cleanup_free_ char *joined = xasprintf("%s%s", k->target, value);
	bool want = !k->flag || strcmp(value, "true") == 0, found = false;

	if (!argv_json || json_parse("argv", argv_json, strlen(argv_json), &argv, NULL) < 0)
		return false;
	for (size_t i = 0; i < json_len(argv) && !found; i++) {
		const char *a = json_text(json_at(argv, i), "");

		if (k->flag)
			found = strcmp(a, k->target) == 0;
		else if (str_ends(k->target, "="))
			found = strcmp(a, joined) == 0;
		else
			found = strcmp(a, k->target) == 0 && i + 1 < json_len(argv) &&
				strcmp(json_text(json_at(argv, i + 1), ""), value) == 0;
	}
	return found == want;
}

static void delivered(struct evidence *v, int64_t trial, int rank)
{
	const struct knob *k = v->knob;
	_cleanup_free_ char *key = xasprintf("env.%s", k->target);
	const char *have;

	if (k->how == HOW_ARG) {
		if (!argv_has(arm_value(v, trial, rank, "argv"), k, v->value))
			v->reason = xasprintf("not delivered: %s %s is not in the arguments of "
					      "rank %d (trial %lld)",
					      k->target, v->value, rank, (long long)trial);
		return;
	}
	have = arm_value(v, trial, rank, key);
	if (k->subkey ? have && list_has(have, k->subkey, v->value)
		      : have && strcmp(have, kvs_get(&v->config.env, k->target)
						     ? kvs_get(&v->config.env, k->target)
						     : v->value) == 0)
		return;
	v->reason = xasprintf("not delivered: %s should be %s in rank %d (trial %lld) and is %s",
			      k->target, v->value, rank, (long long)trial, have ? have : "not set");
}

static void mapped(struct evidence *v, int64_t trial, int rank)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->rows[i].trial == trial && v->rows[i].rank == rank &&
		    str_starts(v->rows[i].key, "maps.") &&
		    strstr(v->rows[i].key, v->knob->proof.maps))
			return;
	v->reason = xasprintf("no effect: no file named *%s* is mapped into rank %d (trial %lld)",
			      v->knob->proof.maps, rank, (long long)trial);
}

static void acknowledged(struct evidence *v, int64_t trial)
{
	_cleanup_free_ char *key = xasprintf("ack.%s", v->knob->name);

	for (size_t i = 0; i < v->n; i++)
		if (v->rows[i].trial == trial && strcmp(v->rows[i].key, key) == 0)
			return;
	v->reason = xasprintf(
		"not acknowledged: nothing in the output of trial %lld says that %s = %s was read",
		(long long)trial, v->knob->name, v->value);
}

/* The sampled metric of the treatment lies on the declared side of the baseline's in every block.
 */
static int moved(struct evidence *v, struct err *e)
{
	const struct proof *p = &v->knob->proof;
	struct value_row *rows = NULL;
	size_t n = 0, up = 0, down = 0, pairs = 0;
	int rc = query_stage_values(v->c->ws->db, v->stage->id, p->metric, "mean", &rows, &n, e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			if (rows[i].block != rows[j].block || rows[i].arm != v->arm->id ||
			    rows[j].arm != v->base->id || !isfinite(rows[i].value) ||
			    !isfinite(rows[j].value))
				continue;
			pairs++;
			up += rows[i].value > rows[j].value;
			down += rows[i].value < rows[j].value;
		}
	value_rows_free(rows, n);
	if (pairs == 0)
		v->reason = xasprintf("effect unproved: %s was not measured in both arms",
				      p->metric);
	else if (str_eq(p->metric_expect, "up")     ? up < pairs
		 : str_eq(p->metric_expect, "down") ? down < pairs
						    : up + down < pairs)
		v->reason = xasprintf(
			"no effect: %s did not move (%s was expected) in %zu of %zu pairs",
			p->metric, p->metric_expect ? p->metric_expect : "change",
			str_eq(p->metric_expect, "down") ? pairs - down : pairs - up, pairs);
	return 0;
}

/* Differences that the two configurations themselves declare. */
static bool declared_env(const struct evidence *v, const char *name)
{
	const char *a = kvs_get(&v->base_config.env, name), *b = kvs_get(&v->config.env, name);

	return !str_eq(a, b) || kvs_has(&v->base_config.env, name) != kvs_has(&v->config.env, name);
}

static void compare_env(struct evidence *v, int64_t base_trial, int64_t trial,
			const struct effective_row *row)
{
	const char *name = str_starts(row->key, "env.") ? row->key + 4 : row->key + 8;
	_cleanup_free_ char *env = xasprintf("env.%s", name);
	int64_t other_trial = row->trial == trial ? base_trial : trial;
	const char *other = arm_value(v, other_trial, row->rank, row->key);

	if (str_eq(row->value, other) || is_volatile(name) || declared_env(v, name) ||
	    implied(v, env))
		return;
	v->reason = xasprintf("undeclared difference: %s is %s in the one arm and %s in the other "
			      "(trials %lld, %lld)",
			      name, str_starts(row->key, "env.") ? row->value : "other text",
			      other ? (str_starts(row->key, "env.") ? other : "other text")
				    : "not set",
			      (long long)row->trial, (long long)other_trial);
}

/* How often a token stands in a JSON list of arguments. Digits that name trials are masked. */
static size_t count_token(const struct json *argv, const char *token)
{
	size_t n = 0;

	for (size_t i = 0; i < json_len(argv); i++)
		n += strcmp(json_text(json_at(argv, i), ""), token) == 0;
	return n;
}

static size_t count_config(const struct strv *argv, const char *token)
{
	size_t n = 0;

	for (size_t i = 0; i < argv->n; i++)
		n += strcmp(argv->v[i], token) == 0;
	return n;
}

/* A token may be more frequent in one arm only by as much as in its configuration. Tokens that hold
 * the trial's own directory are volatile. */
static void compare_tokens(struct evidence *v, const struct json *a, const struct json *b,
			   const struct strv *ca, const struct strv *cb)
{
	for (size_t i = 0; i < json_len(a) && !v->reason; i++) {
		const char *t = json_text(json_at(a, i), "");
		long have = (long)count_token(a, t) - (long)count_token(b, t);
		long want = (long)count_config(ca, t) - (long)count_config(cb, t);

		if (have > 0 && have > want && !strstr(t, "/blocks/") && !implied(v, t))
			v->reason = xasprintf(
				"undeclared difference: the argument %s stands in one arm only", t);
	}
}

static void compare_argv(struct evidence *v, int64_t base_trial, int64_t trial)
{
	const char *a = arm_value(v, base_trial, 0, "argv"), *b = arm_value(v, trial, 0, "argv");
	_cleanup_(json_freep) struct json *ja = NULL;
	_cleanup_(json_freep) struct json *jb = NULL;

	if (!a || !b || json_parse("argv", a, strlen(a), &ja, NULL) < 0 ||
	    json_parse("argv", b, strlen(b), &jb, NULL) < 0)
		return;
	compare_tokens(v, ja, jb, &v->base_config.argv, &v->config.argv);
	compare_tokens(v, jb, ja, &v->config.argv, &v->base_config.argv);
}

/* One trial of the treatment against one of the baseline in the same block. */
static void compare(struct evidence *v, int64_t base_trial, int64_t trial)
{
	for (size_t i = 0; i < v->n && !v->reason; i++) {
		const struct effective_row *row = &v->rows[i];

		if ((row->trial == trial || row->trial == base_trial) &&
		    (str_starts(row->key, "env.") || str_starts(row->key, "envhash.")))
			compare_env(v, base_trial, trial, row);
	}
	if (!v->reason)
		compare_argv(v, base_trial, trial);
}

static void check_trial(struct evidence *v, int64_t trial)
{
	int last = -1;

	for (size_t i = 0; i < v->n && !v->reason; i++) {
		const struct effective_row *row = &v->rows[i];

		if (row->trial != trial || row->rank == last || str_starts(row->key, "ack."))
			continue;
		last = row->rank;
		delivered(v, trial, row->rank);
		if (!v->reason && v->knob->proof.maps)
			mapped(v, trial, row->rank);
	}
	if (!v->reason && (v->knob->proof.fact || v->knob->proof.log_pattern))
		acknowledged(v, trial);
}

static int64_t base_trial_of(const struct evidence *v, int64_t block)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->rows[i].block == block && v->rows[i].arm == v->base->id)
			return v->rows[i].trial;
	return 0;
}

static void check_trials(struct evidence *v)
{
	int64_t last = 0;

	for (size_t i = 0; i < v->n && !v->reason; i++) {
		const struct effective_row *row = &v->rows[i];
		int64_t base;

		if (row->arm != v->arm->id || row->trial == last)
			continue;
		last = row->trial;
		check_trial(v, row->trial);
		base = base_trial_of(v, row->block);
		if (!v->reason && base)
			compare(v, base, row->trial);
	}
	if (!last && !v->reason)
		v->reason = xstrdup(
			"not delivered: no process of the treatment could be read in /proc");
}

static int open_evidence(struct evidence *v, struct err *e)
{
	struct db *db = v->c->ws->db;
	const struct hypothesis_row *h = facts_hypothesis(&v->c->facts, v->arm->hypothesis);
	int rc;

	if (!h || !(v->knob = recipe_knob(v->c->recipe, h->knob)))
		return err_set(e, ERR_STATE, "arm %s: its hypothesis or knob is gone",
			       v->arm->label);
	v->value = h->value;
	if ((rc = query_config_get(db, v->base->config, &v->base_config, e)) < 0 ||
	    (rc = query_config_get(db, v->arm->config, &v->config, e)) < 0)
		return rc;
	rc = query_stage_effective(db, v->stage->id, &v->rows, &v->n, e);
	if (rc == 0 && v->n)
		qsort(v->rows, v->n, sizeof *v->rows, compare_rows);
	return rc;
}

int evidence_check(struct campaign *c, const struct stage_row *s, size_t arm, char **reason,
		   struct err *e)
{
	struct evidence v = {.c = c, .stage = s, .base = &s->arms[0], .arm = &s->arms[arm]};
	int rc = open_evidence(&v, e);

	*reason = NULL;
	if (rc == 0 && v.knob->proof.level != PROOF_NONE) {
		check_trials(&v);
		if (!v.reason && v.knob->proof.metric)
			rc = moved(&v, e);
	}
	if (rc == 0)
		*reason = TAKE(v.reason);
	free(v.reason);
	effective_rows_free(v.rows, v.n);
	config_done(&v.base_config);
	config_done(&v.config);
	return rc;
}
