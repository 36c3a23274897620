/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Proof that a setting took effect, and that nothing undeclared changed with it. Evidence comes
 * from /proc of the ranks or from the component's own line, as the agent captured it, never from a
 * line of the script. A missing proof makes an arm invalid, never a loser.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"
#include "orchestrator/method/samples.h"

/* Keys that differ between any two trials. Prefixes. */
static const char *const volatile_keys[] = {
	"FETTLE_",        "SLURM_",        "SLURMD_",  "SRUN_",       "PMI",         "PMIX_",
	"OMPI_",          "PRTE_",         "HYDRA_",   "MASTER_PORT", "MASTER_ADDR", "TMPDIR",
	"XDG_CACHE_HOME", "PWD",           "OLDPWD",   "SHLVL",       "RANK",        "LOCAL_RANK",
	"GROUP_RANK",     "TORCHELASTIC_", "HOSTNAME", "_",           NULL,
};

/* What one trial showed: rows [from, from + n), sorted by rank and key. */
struct shown {
	int64_t trial, block, arm;
	size_t from, n;
};

struct evidence {
	struct campaign *c;
	const struct stage_row *stage;
	struct effective_row *rows;
	size_t n_rows;
	struct shown *trials; /* by trial */
	size_t n_trials;
	struct config base_config;
	/* of the arm that is being checked */
	const struct arm_row *arm;
	const struct knob *knob;
	const char *value;
	struct config config;
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

/* What a rank of a trial showed under a key; NULL when nothing. */
static const char *value_of(const struct evidence *v, const struct shown *t, int rank,
			    const char *key)
{
	struct effective_row want = {.trial = t->trial, .rank = rank, .key = (char *)key};
	const struct effective_row *r = bsearch(&want, v->rows + t->from, t->n, sizeof *v->rows,
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

/* Does an argument end with this file? Its name is the hash of what stands in it. */
static bool names_file(const char *argv_json, const char *file)
{
	_cleanup_(json_freep) struct json *argv = NULL;

	if (!file || !argv_json || json_parse("argv", argv_json, strlen(argv_json), &argv, NULL))
		return false;
	for (const struct json *j = json_first(argv); j; j = json_next(j))
		if (str_ends(json_text(j, ""), file))
			return true;
	return false;
}

/* Every variable of the bundle, set or taken out, in this rank. A command of its own was exec'ed as
 * it stands; what it starts is its own affair. */
static void bundle_delivered(struct evidence *v, const struct bundle *b, const struct shown *t,
			     int rank)
{
	for (size_t i = 0; i < b->env.n && !v->reason; i++) {
		_cleanup_free_ char *key = xasprintf("env.%s", b->env.v[i].key);
		const char *have = value_of(v, t, rank, key), *want = b->env.v[i].value;

		if (!str_eq(have, want))
			v->reason = xasprintf("not delivered: %s should be %s in rank %d (trial "
					      "%lld) and is %s",
					      b->env.v[i].key, want ? want : "absent", rank,
					      (long long)t->trial, have ? have : "not set");
	}
}

static void delivered(struct evidence *v, const struct shown *t, int rank)
{
	const struct knob *k = v->knob;
	_cleanup_free_ char *key = xasprintf("env.%s", k->target);
	const char *have;

	if (k->how == HOW_BUNDLE) {
		bundle_delivered(v, knob_bundle(k, v->value), t, rank);
		return;
	}
	if (k->how == HOW_KEY) {
		if (!names_file(value_of(v, t, rank, "argv"), configfile_name(&v->config)))
			v->reason = xasprintf("not delivered: the file with %s = %s is not in the "
					      "arguments of rank %d (trial %lld)",
					      k->target, v->value, rank, (long long)t->trial);
		return;
	}
	if (k->how == HOW_ARG) {
		if (!argv_has(value_of(v, t, rank, "argv"), k, v->value))
			v->reason = xasprintf("not delivered: %s %s is not in the arguments of "
					      "rank %d (trial %lld)",
					      k->target, v->value, rank, (long long)t->trial);
		return;
	}
	have = value_of(v, t, rank, key);
	if (k->subkey ? have && list_has(have, k->subkey, v->value)
		      : have && strcmp(have, kvs_get(&v->config.env, k->target)
						     ? kvs_get(&v->config.env, k->target)
						     : v->value) == 0)
		return;
	v->reason = xasprintf("not delivered: %s should be %s in rank %d (trial %lld) and is %s",
			      k->target, v->value, rank, (long long)t->trial,
			      have ? have : "not set");
}

static void mapped(struct evidence *v, const struct shown *t, int rank)
{
	for (size_t i = t->from; i < t->from + t->n; i++)
		if (v->rows[i].rank == rank && str_starts(v->rows[i].key, "maps.") &&
		    strstr(v->rows[i].key + strlen("maps."), v->knob->proof.maps))
			return;
	v->reason = xasprintf("no effect: no file named *%s* is mapped into rank %d (trial %lld)",
			      v->knob->proof.maps, rank, (long long)t->trial);
}

/* A component says it once a rank; a line of the log is found at most once, whoever wrote it. */
static void acknowledged(struct evidence *v, const struct shown *t)
{
	_cleanup_free_ char *key = xasprintf("ack.%s", v->knob->name);
	size_t acks = 0;
	int last = -1;

	for (size_t i = t->from; i < t->from + t->n; i++)
		acks += str_eq(v->rows[i].key, key);
	if (acks == 0)
		v->reason = xasprintf("not acknowledged: nothing in the output of trial %lld says "
				      "that %s = %s was read",
				      (long long)t->trial, v->knob->name, v->value);
	for (size_t i = t->from; v->knob->proof.fact && i < t->from + t->n && !v->reason; i++) {
		int rank = v->rows[i].rank;

		if (rank > last && !value_of(v, t, rank, key))
			v->reason = xasprintf("not acknowledged by rank %d: nothing in the output "
					      "of trial %lld says that it read %s = %s",
					      rank, (long long)t->trial, v->knob->name, v->value);
		last = rank > last ? rank : last;
	}
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
			    rows[j].arm != v->stage->arms[0].id || !isfinite(rows[i].value) ||
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

static void compare_env(struct evidence *v, const struct shown *other,
			const struct effective_row *row)
{
	const char *name = str_starts(row->key, "env.") ? row->key + 4 : row->key + 8;
	_cleanup_free_ char *env = xasprintf("env.%s", name);
	const char *have = value_of(v, other, row->rank, row->key);
	bool text = str_starts(row->key, "env.");

	if (str_eq(row->value, have) || is_volatile(name) || declared_env(v, name) ||
	    implied(v, env))
		return;
	v->reason = xasprintf("undeclared difference: %s is %s in the one arm and %s in the other "
			      "(trials %lld, %lld)",
			      name, text ? row->value : "other text",
			      !have  ? "not set"
			      : text ? have
				     : "other text",
			      (long long)row->trial, (long long)other->trial);
}

static size_t count_token(const struct json *argv, const char *token)
{
	const struct json *j;
	size_t n = 0;

	for (j = json_first(argv); j; j = json_next(j))
		n += strcmp(json_text(j, ""), token) == 0;
	return n;
}

static size_t count_config(const struct strv *argv, const char *token)
{
	size_t n = 0;

	for (size_t i = 0; i < argv->n; i++)
		n += strcmp(argv->v[i], token) == 0;
	return n;
}

/* "--name", "--name=value", or the value that follows "--name". */
static bool implied_argument(const struct evidence *v, const char *before, const char *token)
{
	for (size_t i = 0; i < v->knob->implies.n; i++) {
		const char *name = v->knob->implies.v[i];
		size_t n;

		if (!str_starts(name, "arg."))
			continue;
		name += strlen("arg.");
		n = strlen(name);
		if (strcmp(token, name) == 0 || (before && strcmp(before, name) == 0) ||
		    (strncmp(token, name, n) == 0 && token[n] == '='))
			return true;
	}
	return false;
}

/* A token may be more frequent in one arm only by as much as in its configuration. Tokens that hold
 * the trial's own directory are volatile. */
static void compare_tokens(struct evidence *v, const struct json *a, const struct json *b,
			   const struct strv *ca, const struct strv *cb)
{
	const char *before = NULL;

	for (const struct json *j = json_first(a); j && !v->reason; j = json_next(j)) {
		const char *t = json_text(j, "");
		long have = (long)count_token(a, t) - (long)count_token(b, t);
		long want = (long)count_config(ca, t) - (long)count_config(cb, t);

		if (have > 0 && have > want && !strstr(t, "/blocks/") &&
		    !implied_argument(v, before, t))
			v->reason = xasprintf(
				"undeclared difference: the argument %s stands in one arm only", t);
		before = t;
	}
}

/* Programs that start another one and wait for it. */
static bool waits(const char *name)
{
	static const char *const names[] = {"srun",
					    "mpirun",
					    "mpiexec",
					    "mpiexec.hydra",
					    "orterun",
					    "prterun",
					    "ibrun",
					    "sh",
					    "bash",
					    "dash",
					    "zsh",
					    "ksh",
					    "env",
					    "timeout",
					    "time",
					    "nice",
					    "nohup",
					    "taskset",
					    "numactl",
					    "apptainer",
					    "singularity",
					    "Apptainer runtime parent",
					    "Singularity runtime parent",
					    "bwrap"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(name, names[i]))
			return true;
	return false;
}

/* Heap; "" when it cannot be told. */
static char *program(const char *argv_json)
{
	_cleanup_(json_freep) struct json *argv = NULL;

	if (json_parse("argv", argv_json, strlen(argv_json), &argv, NULL) < 0)
		return xstrdup("");
	return xstrdup(fs_basename(json_text(json_first(argv), "")));
}

/* Does the one show what the launcher of the other was still to start, or had seen end? Then they
 * are not the same process, and a launcher's environment is not that of its ranks. */
static bool other_depth(const char *a, const char *b)
{
	_cleanup_free_ char *pa = NULL, *pb = NULL;

	if (!a || !b || strcmp(a, b) == 0)
		return false;
	pa = program(a);
	pb = program(b);
	return !str_eq(pa, pb) && (waits(pa) || waits(pb));
}

static void compare_argv(struct evidence *v, const struct shown *base, const struct shown *t,
			 int rank)
{
	const char *a = value_of(v, base, rank, "argv"), *b = value_of(v, t, rank, "argv");
	_cleanup_(json_freep) struct json *ja = NULL;
	_cleanup_(json_freep) struct json *jb = NULL;

	if (!a || !b || strcmp(a, b) == 0 || json_parse("argv", a, strlen(a), &ja, NULL) < 0 ||
	    json_parse("argv", b, strlen(b), &jb, NULL) < 0)
		return;
	compare_tokens(v, ja, jb, &v->base_config.argv, &v->config.argv);
	compare_tokens(v, jb, ja, &v->config.argv, &v->base_config.argv);
}

/* The arguments of a launcher that enters a container are ours: they name what the arm declares. */
static bool enters_container(const struct evidence *v, int rank)
{
	return rank < 0 && v->c->recipe->workload.container.runtime;
}

/* The rows of one trial against those of another of the same block. A rank that only one of them
 * shows says nothing about differences. */
static void compare(struct evidence *v, const struct shown *t, const struct shown *other)
{
	const struct bundle *bundle = knob_bundle(v->knob, v->value);
	bool skip = false;

	/* Another command is another world: all that differs is the declared difference. */
	if (bundle && bundle->command.n)
		return;
	for (size_t i = t->from; i < t->from + t->n && !v->reason; i++) {
		const struct effective_row *row = &v->rows[i];

		if (i == t->from || row->rank != row[-1].rank) {
			const char *argv = value_of(v, other, row->rank, "argv");

			skip = !argv || other_depth(value_of(v, t, row->rank, "argv"), argv);
		}
		if (skip)
			continue;
		if (str_starts(row->key, "env.") || str_starts(row->key, "envhash."))
			compare_env(v, other, row);
		else if (strcmp(row->key, "argv") == 0 && t->arm == v->arm->id &&
			 !enters_container(v, row->rank))
			compare_argv(v, other, t, row->rank);
	}
}

/* Every rank that /proc showed; a launcher beside its ranks has rank -1 and proves nothing. */
static void check_trial(struct evidence *v, const struct shown *t)
{
	const struct proof *p = &v->knob->proof;
	const char *missing = value_of(v, t, -1, EFFECTIVE_MISSING);
	int last = -1;

	if (missing && p->level >= PROOF_DELIVERED)
		v->reason = xasprintf("not delivered to every rank, as far as was seen: in trial "
				      "%lld %s",
				      (long long)t->trial, missing);
	for (size_t i = t->from; i < t->from + t->n && !v->reason; i++) {
		const struct effective_row *row = &v->rows[i];

		if (row->rank <= last || str_starts(row->key, "ack."))
			continue;
		last = row->rank;
		if (p->level >= PROOF_DELIVERED)
			delivered(v, t, row->rank);
		if (!v->reason && p->level >= PROOF_EFFECTIVE && p->maps)
			mapped(v, t, row->rank);
	}
	if (!v->reason && last < 0 && p->level >= PROOF_DELIVERED)
		v->reason = xasprintf("not delivered: no rank of trial %lld could be read in /proc",
				      (long long)t->trial);
	if (!v->reason && p->level >= PROOF_ACKNOWLEDGED && (p->fact || p->log_pattern))
		acknowledged(v, t);
}

static const struct shown *baseline_in(const struct evidence *v, int64_t block)
{
	for (size_t i = 0; i < v->n_trials; i++)
		if (v->trials[i].block == block && v->trials[i].arm == v->stage->arms[0].id)
			return &v->trials[i];
	return NULL;
}

static void check_trials(struct evidence *v)
{
	bool any = false;

	for (size_t i = 0; i < v->n_trials && !v->reason; i++) {
		const struct shown *t = &v->trials[i], *base;

		if (t->arm != v->arm->id)
			continue;
		any = true;
		check_trial(v, t);
		base = v->reason ? NULL : baseline_in(v, t->block);
		if (base) {
			compare(v, t, base);
			compare(v, base, t);
		}
	}
	if (!any && v->knob->proof.level >= PROOF_DELIVERED)
		v->reason = xstrdup(
			"not delivered: no process of the treatment could be read in /proc");
}

/* Rows of one trial stand together from here on. */
static void group_rows(struct evidence *v)
{
	size_t cap = 0;

	if (v->n_rows)
		qsort(v->rows, v->n_rows, sizeof *v->rows, compare_rows);
	for (size_t i = 0; i < v->n_rows; i++) {
		const struct effective_row *r = &v->rows[i];

		if (i == 0 || r->trial != v->rows[i - 1].trial) {
			v->trials = xgrow(v->trials, v->n_trials, &cap, sizeof *v->trials);
			v->trials[v->n_trials++] = (struct shown){
				.trial = r->trial, .block = r->block, .arm = r->arm, .from = i};
		}
		v->trials[v->n_trials - 1].n++;
	}
}

int evidence_load(struct campaign *c, const struct stage_row *s, struct evidence **out,
		  struct err *e)
{
	struct evidence *v = xcalloc(1, sizeof *v);
	int rc = query_config_get(c->ws->db, s->arms[0].config, &v->base_config, e);

	v->c = c;
	v->stage = s;
	if (rc == 0)
		rc = query_stage_effective(c->ws->db, s->id, &v->rows, &v->n_rows, e);
	if (rc < 0) {
		evidence_free(v);
		return rc;
	}
	group_rows(v);
	*out = v;
	return 0;
}

void evidence_free(struct evidence *v)
{
	if (!v)
		return;
	effective_rows_free(v->rows, v->n_rows);
	free(v->trials);
	config_done(&v->base_config);
	free(v);
}

int evidence_check(struct evidence *v, size_t arm, char **reason, struct err *e)
{
	const struct hypothesis_row *h;
	int rc;

	*reason = NULL;
	v->arm = &v->stage->arms[arm];
	h = facts_hypothesis(&v->c->facts, v->arm->hypothesis);
	if (!h || !(v->knob = recipe_knob(v->c->recipe, h->knob)))
		return err_set(e, ERR_STATE, "arm %s: its hypothesis or knob is gone",
			       v->arm->label);
	v->value = h->value;
	if (v->knob->how == HOW_BUNDLE && !knob_bundle(v->knob, v->value))
		return err_set(e, ERR_STATE, "arm %s: its bundle is gone", v->arm->label);
	if ((rc = query_config_get(v->c->ws->db, v->arm->config, &v->config, e)) < 0)
		return rc;
	check_trials(v);
	if (!v->reason && v->knob->proof.level >= PROOF_EFFECTIVE && v->knob->proof.metric)
		rc = moved(v, e);
	config_done(&v->config);
	if (rc == 0)
		*reason = TAKE(v->reason);
	free(TAKE(v->reason));
	return rc;
}
