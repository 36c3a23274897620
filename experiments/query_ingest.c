/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/query.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"

/* Values refused in one attempt that get an event of their own. A probe gone wrong refuses
 * thousands for one reason, and the first few name it; the rest is one event with their number. */
enum { REFUSED_EVENTS_MAX = 20 };

enum {
	ATTEMPT_GET,
	SLOTS,
	TRIAL_PUT,
	EFFECTIVE_PUT,
	DEF_GET,
	DEF_PUT,
	DEF_SET,
	LABEL_GET,
	LABEL_PUT,
	METRIC_PUT,
	VALID,
	TRIAL_GET,
	TRIAL_SET,
	METRICS_GET,
	METRICS_DROP,
	EFFECTIVE_DROP,
	REV_SET,
	NODES_DROP,
	NODE_PUT,
	EVENT_ONCE,
};
const char *const query_sql_ingest[] = {
	[ATTEMPT_GET] =
		"SELECT a.block, a.number, a.allocation, a.state, a.manifest_hash, s.campaign "
		"FROM attempt a JOIN block b ON b.id = a.block JOIN stage s ON s.id = b.stage "
		"WHERE a.id = :id",
	/* The first block of an allocation runs the warm-up. */
	[SLOTS] = "SELECT idx, arm, repeat, kind FROM slot WHERE block = :block AND "
		  "(kind <> 'warmup' OR NOT EXISTS (SELECT 1 FROM attempt p "
		  "WHERE p.allocation = :allocation AND p.id < :attempt)) ORDER BY idx",
	[TRIAL_PUT] =
		"INSERT INTO trial(attempt, slot, arm, repeat, kind, state, reason, exit_status, "
		"term_signal, start_us, wall_us, user_us, sys_us, maxrss_kib, node, log_path) "
		"VALUES (:attempt, :slot, :arm, :repeat, :kind, :state, :reason, :exit, :signal, "
		":start, :wall, :user, :sys, :maxrss, :node, :log)",
	[EFFECTIVE_PUT] = "INSERT OR IGNORE INTO effective(trial, rank, key, value, level) "
			  "VALUES (:trial, :rank, :key, :value, :level)",
	[DEF_GET] = "SELECT id, unit, better, min, max FROM metric_def WHERE name = :name",
	[DEF_PUT] = "INSERT INTO metric_def(name, unit, better, min, max, summary) "
		    "VALUES (:name, :unit, :better, :min, :max, :summary)",
	[DEF_SET] = "UPDATE metric_def SET unit = :unit, better = :better, min = :min, max = :max, "
		    "summary = :summary WHERE name = :name",
	[LABEL_GET] = "SELECT id FROM labelset WHERE labels = :labels",
	[LABEL_PUT] = "INSERT INTO labelset(labels) VALUES (:labels)",
	[METRIC_PUT] = "INSERT OR REPLACE INTO metric(trial, def, label, stat, value) "
		       "VALUES (:trial, :def, :label, :stat, :value)",
	[VALID] = "UPDATE attempt SET state = 'valid', reason = NULL, manifest_hash = :hash, "
		  "ended_us = :now, parser_rev = :rev WHERE id = :id",
	[TRIAL_GET] = "SELECT id, state, reason FROM trial WHERE attempt = :attempt AND "
		      "slot = :slot",
	[TRIAL_SET] = "UPDATE trial SET state = :state, reason = :reason WHERE id = :id",
	[METRICS_GET] = "SELECT d.name, m.stat, l.labels, m.value FROM metric m "
			"JOIN metric_def d ON d.id = m.def JOIN labelset l ON l.id = m.label "
			"WHERE m.trial = :id ORDER BY d.name, m.stat, l.labels",
	[METRICS_DROP] = "DELETE FROM metric WHERE trial = :id",
	[EFFECTIVE_DROP] = "DELETE FROM effective WHERE trial = :id",
	[REV_SET] = "UPDATE attempt SET parser_rev = :rev WHERE id = :id",
	[NODES_DROP] = "DELETE FROM allocation_node WHERE allocation = :id AND by_agent = 0",
	[NODE_PUT] = "INSERT OR IGNORE INTO allocation_node(allocation, node, by_agent) "
		     "VALUES (:id, :node, 1)",
	/* Whoever resumes ten times finds the same fault ten times. */
	[EVENT_ONCE] = "INSERT INTO event(campaign, at_us, kind, text) "
		       "SELECT :campaign, :at, :kind, :text WHERE NOT EXISTS (SELECT 1 FROM event "
		       "WHERE campaign = :campaign AND kind = :kind AND text = :text)",
	NULL,
};
#define SQL(which) query_sql_ingest[which]

struct target {
	int64_t id, block, allocation, campaign;
	int number;
	enum attempt_state state;
	char *hash; /* of what was ingested; NULL: nothing yet */
};

struct known_row {
	char *name;
	int64_t id;
};
/* Rows that this attempt's values were found to need: a trial has the same ones as the last, in the
 * same order, so the next is nearly always behind the one before. */
struct known {
	struct known_row *v;
	size_t n, cap, at;
};
/* Above this, asking the database is cheaper than looking for what is not there. */
enum { KNOWN_MAX = 2048 };

struct ingest {
	struct db *db;
	const struct target *t;
	struct known defs, labels;
	int64_t now_us;
	size_t refused;
	struct err *e;
};

static int read_target(struct db *db, int64_t id, struct target *t, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(ATTEMPT_GET), "ingest the attempt", e);

	t->id = id;
	bind_i64(&s, ":id", id);
	if (stmt_row(&s)) {
		t->block = col_i64(&s, "block");
		t->number = col_int(&s, "number");
		t->allocation = col_i64(&s, "allocation");
		COL_WORD(&s, "state", attempt_state, &t->state);
		t->hash = col_text(&s, "manifest_hash");
		t->campaign = col_i64(&s, "campaign");
	} else {
		stmt_fail(&s, ERR_NOT_FOUND, "there is no attempt %lld", (long long)id);
	}
	return stmt_close(&s);
}

static int note(const struct ingest *in, const char *kind, const char *text)
{
	struct stmt s = stmt_open(in->db, SQL(EVENT_ONCE), "note the event", in->e);

	bind_i64(&s, ":campaign", in->t->campaign);
	bind_i64(&s, ":at", in->now_us);
	bind_text(&s, ":kind", kind);
	bind_text(&s, ":text", text);
	return stmt_run(&s);
}

/* -- what is known already ------------------------------------------------------------------- */

static int64_t known_find(struct known *k, const char *name)
{
	for (size_t i = 0; i < k->n; i++) {
		size_t at = (k->at + i) % k->n;

		if (strcmp(k->v[at].name, name) == 0) {
			k->at = at;
			return k->v[at].id;
		}
	}
	return 0;
}

static void known_add(struct known *k, const char *name, int64_t id)
{
	if (k->n >= KNOWN_MAX)
		return;
	k->v = xgrow(k->v, k->n, &k->cap, sizeof *k->v);
	k->v[k->n].name = xstrdup(name);
	k->v[k->n++].id = id;
}

static void known_done(struct known *k)
{
	for (size_t i = 0; i < k->n; i++)
		free(k->v[i].name);
	free(k->v);
}

/* -- metrics --------------------------------------------------------------------------------- */

/* Sort "k=v,k=v" by key so that one set of labels is one row. Heap. */
static char *canonical_labels(const char *labels)
{
	struct kvs k = {0};
	struct buf b = {0};

	while (*labels) {
		size_t n = strcspn(labels, ",");
		_cleanup_free_ char *part = xstrndup(labels, n);
		char *eq = strchr(part, '=');

		if (eq)
			*eq = '\0';
		if (n > 0)
			kvs_set(&k, part, eq ? eq + 1 : "");
		labels += n + (labels[n] == ',');
	}
	kvs_sort(&k);
	for (size_t i = 0; i < k.n; i++)
		buf_printf(&b, "%s%s=%s", i > 0 ? "," : "", k.v[i].key, k.v[i].value);
	kvs_free(&k);
	return buf_take(&b);
}

static int find_labels(const struct ingest *in, const char *labels, int64_t *id)
{
	_cleanup_free_ char *text = canonical_labels(labels);
	struct stmt s = stmt_open(in->db, SQL(LABEL_GET), "store the labels", in->e);
	int rc;

	*id = 0;
	bind_text(&s, ":labels", text);
	if (stmt_row(&s))
		*id = col_i64(&s, "id");
	rc = stmt_close(&s);
	if (rc < 0 || *id > 0)
		return rc;
	s = stmt_open(in->db, SQL(LABEL_PUT), "store the labels", in->e);
	bind_text(&s, ":labels", text);
	rc = stmt_run(&s);
	*id = db_last_id(in->db);
	return rc;
}

static int label_id(struct ingest *in, const char *labels, int64_t *id)
{
	int rc = 0;

	*id = known_find(&in->labels, labels);
	if (*id == 0 && (rc = find_labels(in, labels, id)) == 0)
		known_add(&in->labels, labels, *id);
	return rc;
}

static bool same_bound(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static int write_def(const struct ingest *in, const char *name, const struct metric_def *d,
		     bool exists)
{
	struct stmt s = stmt_open(in->db, SQL(exists ? DEF_SET : DEF_PUT), "store the metric",
				  in->e);

	bind_text(&s, ":name", name);
	bind_text(&s, ":unit", d->unit);
	bind_text(&s, ":better", better_name(d->better));
	bind_real(&s, ":min", d->min);
	bind_real(&s, ":max", d->max);
	bind_text(&s, ":summary", d->summary);
	return stmt_run(&s);
}

/* The metric's row, made at its first value and set right when the catalogue of a newer program
 * says something else. One that only the recipe knows has no unit and no bounds. */
static int find_def(const struct ingest *in, const char *name, const struct metric_def *d,
		    int64_t *id)
{
	struct stmt s = stmt_open(in->db, SQL(DEF_GET), "store the metric", in->e);
	bool same = false;
	int rc;

	*id = 0;
	bind_text(&s, ":name", name);
	if (stmt_row(&s)) {
		*id = col_i64(&s, "id");
		same = str_eq(col_peek(&s, "unit"), d->unit) &&
		       str_eq(col_peek(&s, "better"), better_name(d->better)) &&
		       same_bound(col_real(&s, "min"), d->min) &&
		       same_bound(col_real(&s, "max"), d->max);
	}
	rc = stmt_close(&s);
	if (rc < 0 || same)
		return rc;
	rc = write_def(in, name, d, *id > 0);
	if (*id == 0)
		*id = db_last_id(in->db);
	return rc;
}

static int def_id(struct ingest *in, const char *name, const struct metric_def *d, int64_t *id)
{
	int rc = 0;

	*id = known_find(&in->defs, name);
	if (*id == 0 && (rc = find_def(in, name, d, id)) == 0)
		known_add(&in->defs, name, *id);
	return rc;
}

static int refuse(struct ingest *in, const struct trial_result *t, const struct metric_value *m,
		  const char *why)
{
	_cleanup_free_ char *text = NULL;

	if (++in->refused > REFUSED_EVENTS_MAX)
		return 0;
	text = xasprintf(
		"block %lld, attempt %d, slot %d: %s%s%s%s (%s) = %g is left out: %s; log %s",
		(long long)in->t->block, in->t->number, t->slot, m->metric, *m->labels ? "{" : "",
		m->labels, *m->labels ? "}" : "", m->stat, m->value, why,
		t->log_path ? t->log_path : "unknown");
	return note(in, "out_of_range", text);
}

static int put_metric(struct ingest *in, const struct trial_result *t, int64_t trial,
		      const struct metric_value *m)
{
	static const struct metric_def declared = {
		.unit = "",
		.better = BETTER_NONE,
		.min = NAN,
		.max = NAN,
		.summary = "",
	};
	const struct metric_def *d = metric_def_find(m->metric);
	bool unitless = d && strcmp(d->unit, "1") == 0;
	_cleanup_free_ char *why = NULL;
	int64_t def, label;
	struct stmt s;
	int rc;

	if (!d)
		d = &declared;
	if (!metric_name_valid(m->metric))
		return refuse(in, t, m,
			      "a metric is named with a-z, 0-9, _ and ., 64 bytes at most");
	if (!isfinite(m->value))
		return refuse(in, t, m, "it is no number");
	if (strcmp(m->stat, "n") != 0 && (m->value < d->min || m->value > d->max)) {
		why = xasprintf("it must lie between %g and %g%s%s", d->min, d->max,
				unitless ? "" : " ", unitless ? "" : d->unit);
		return refuse(in, t, m, why);
	}
	if ((rc = def_id(in, m->metric, d, &def)) < 0 || (rc = label_id(in, m->labels, &label)) < 0)
		return rc;
	s = stmt_open(in->db, SQL(METRIC_PUT), "store the value", in->e);
	bind_i64(&s, ":trial", trial);
	bind_i64(&s, ":def", def);
	bind_i64(&s, ":label", label);
	bind_text(&s, ":stat", m->stat);
	bind_real(&s, ":value", m->value);
	return stmt_run(&s);
}

/* -- trials ---------------------------------------------------------------------------------- */

static int put_effective(const struct ingest *in, int64_t trial, const struct effective_value *v)
{
	struct stmt s = stmt_open(in->db, SQL(EFFECTIVE_PUT), "store an effective value", in->e);

	bind_i64(&s, ":trial", trial);
	bind_i64(&s, ":rank", v->rank);
	bind_text(&s, ":key", v->key);
	bind_text(&s, ":value", v->value);
	bind_text(&s, ":level", proof_level_name(v->level));
	return stmt_run(&s);
}

static int put_trial_row(const struct ingest *in, const struct trial_result *t, int64_t *id)
{
	struct stmt s = stmt_open(in->db, SQL(TRIAL_PUT), "store the trial", in->e);
	int rc;

	bind_i64(&s, ":attempt", in->t->id);
	bind_i64(&s, ":slot", t->slot);
	bind_i64(&s, ":arm", t->arm);
	bind_i64(&s, ":repeat", t->repeat);
	bind_text(&s, ":kind", slot_kind_name(t->kind));
	bind_text(&s, ":state", trial_state_name(t->state));
	bind_text(&s, ":reason", t->reason);
	bind_i64(&s, ":exit", t->exit_status);
	bind_i64(&s, ":signal", t->term_signal);
	bind_i64(&s, ":start", t->start_us);
	bind_i64(&s, ":wall", t->wall_us);
	bind_i64(&s, ":user", t->user_us);
	bind_i64(&s, ":sys", t->sys_us);
	bind_i64(&s, ":maxrss", t->maxrss_kib);
	bind_text(&s, ":node", t->node);
	bind_text(&s, ":log", t->log_path);
	rc = stmt_run(&s);
	*id = db_last_id(in->db);
	return rc;
}

static int put_values(struct ingest *in, const struct trial_result *t, int64_t id)
{
	int rc = 0;

	for (size_t i = 0; i < t->n_metrics && rc == 0; i++)
		rc = put_metric(in, t, id, &t->metrics[i]);
	for (size_t i = 0; i < t->n_effective && rc == 0; i++)
		rc = put_effective(in, id, &t->effective[i]);
	return rc;
}

static int put_trial(struct ingest *in, const struct trial_result *t)
{
	int64_t id;
	int rc = put_trial_row(in, t, &id);

	return rc < 0 ? rc : put_values(in, t, id);
}

static const struct trial_result *trial_of(const struct trial_result *v, size_t n, int64_t slot)
{
	if (slot >= 0 && (size_t)slot < n && v[slot].slot == slot)
		return &v[slot]; /* they mostly come in order */
	for (size_t i = 0; i < n; i++) {
		if (v[i].slot == slot)
			return &v[i];
	}
	return NULL;
}

/* Each planned slot must have its trial and no other trial may be there: a block counts whole or
 * not at all. */
static int check_slots(const struct ingest *in, const struct trial_result *v, size_t n)
{
	struct stmt s = stmt_open(in->db, SQL(SLOTS), "ingest the attempt", in->e);
	size_t planned = 0;

	bind_i64(&s, ":block", in->t->block);
	bind_i64(&s, ":allocation", in->t->allocation);
	bind_i64(&s, ":attempt", in->t->id);
	while (stmt_row(&s)) {
		int64_t slot = col_i64(&s, "idx");
		const struct trial_result *t = trial_of(v, n, slot);
		enum slot_kind kind = SLOT_TIMED;

		planned++;
		COL_WORD(&s, "kind", slot_kind, &kind);
		if (!t)
			stmt_fail(&s, ERR_STATE,
				  "attempt %d of block %lld has no trial of slot %lld",
				  in->t->number, (long long)in->t->block, (long long)slot);
		else if (t->arm != col_i64(&s, "arm") || t->repeat != col_int(&s, "repeat") ||
			 t->kind != kind)
			stmt_fail(&s, ERR_STATE,
				  "attempt %d of block %lld, slot %lld: the trial is of another "
				  "arm, repeat "
				  "or kind than the block's plan",
				  in->t->number, (long long)in->t->block, (long long)slot);
	}
	if (s.rc == 0 && planned != n)
		stmt_fail(&s, ERR_STATE,
			  "attempt %d of block %lld has %zu trials, %zu were planned",
			  in->t->number, (long long)in->t->block, n, planned);
	return stmt_close(&s);
}

static int put_nodes(const struct ingest *in, const char *const *nodes, size_t n)
{
	struct stmt s;
	int rc;

	if (n == 0)
		return 0;
	s = stmt_open(in->db, SQL(NODES_DROP), "store the nodes", in->e);
	bind_i64(&s, ":id", in->t->allocation);
	rc = stmt_run(&s);
	for (size_t i = 0; i < n && rc == 0; i++) {
		s = stmt_open(in->db, SQL(NODE_PUT), "store the nodes", in->e);
		bind_i64(&s, ":id", in->t->allocation);
		bind_text(&s, ":node", nodes[i]);
		rc = stmt_run(&s);
	}
	return rc;
}

static int set_valid(const struct ingest *in, const char *hash)
{
	struct stmt s = stmt_open(in->db, SQL(VALID), "make the attempt valid", in->e);

	bind_i64(&s, ":id", in->t->id);
	bind_text(&s, ":hash", hash);
	bind_i64(&s, ":now", in->now_us);
	bind_i64(&s, ":rev", PARSER_REV);
	return stmt_run(&s);
}

/* -- the attempt ----------------------------------------------------------------------------- */

static int note_conflict(const struct ingest *in, const char *hash)
{
	_cleanup_free_ char *text = xasprintf(
		"block %lld, attempt %d: other results (%s) than those stored (%s) came for it; "
		"the first are kept",
		(long long)in->t->block, in->t->number, hash, in->t->hash);

	return note(in, "conflict", text);
}

static int note_late(const struct ingest *in)
{
	_cleanup_free_ char *text = xasprintf(
		"block %lld, attempt %d: its results came after it had been given up as %s; "
		"they are not used",
		(long long)in->t->block, in->t->number, attempt_state_name(in->t->state));

	return note(in, "late", text);
}

static int note_refused(const struct ingest *in)
{
	_cleanup_free_ char *rest = NULL;

	if (in->refused <= REFUSED_EVENTS_MAX)
		return 0;
	rest = xasprintf("block %lld, attempt %d: %zu further values are left out",
			 (long long)in->t->block, in->t->number, in->refused - REFUSED_EVENTS_MAX);
	return note(in, "out_of_range", rest);
}

static int store(struct ingest *in, const char *hash, const struct trial_result *trials, size_t n,
		 const char *const *nodes, size_t n_nodes)
{
	int rc = check_slots(in, trials, n);

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = put_trial(in, &trials[i]);
	if (rc == 0)
		rc = note_refused(in);
	if (rc == 0)
		rc = put_nodes(in, nodes, n_nodes);
	if (rc == 0)
		rc = set_valid(in, hash);
	return rc;
}

int query_attempt_ingest(struct db *db, int64_t attempt_id, const char *manifest_hash,
			 const struct trial_result *trials, size_t n, const char *const *nodes,
			 size_t n_nodes, int64_t now_us, bool *again, struct err *e)
{
	struct target t = {0};
	struct ingest in = {.db = db, .t = &t, .now_us = now_us, .e = e};
	bool seen = true;
	bool own;
	int rc = db_enter(db, "ingest an attempt", &own, e);

	if (rc < 0)
		return rc;
	rc = read_target(db, attempt_id, &t, e);
	if (rc == 0) {
		switch (t.state) {
		case ATTEMPT_PLANNED: /* killed between the submit and its note */
		case ATTEMPT_SUBMITTED:
			seen = false;
			rc = store(&in, manifest_hash, trials, n, nodes, n_nodes);
			break;
		case ATTEMPT_VALID:
			if (!str_eq(t.hash, manifest_hash))
				rc = note_conflict(&in, manifest_hash);
			break;
		case ATTEMPT_VOID:
		case ATTEMPT_LOST:
			rc = note_late(&in);
			break;
		}
	}
	rc = db_leave(db, own, rc, e);
	known_done(&in.defs);
	known_done(&in.labels);
	free(t.hash);
	if (rc == 0)
		*again = seen;
	return rc;
}

/* -- read again ------------------------------------------------------------------------------ */

/* The values of a trial as they are stored, by name, stat and labels; heap. */
static int load_values(struct db *db, int64_t trial, int slot, bool is_old, struct reread *out,
		       struct err *e)
{
	struct stmt s = stmt_open(db, SQL(METRICS_GET), "read the values", e);

	bind_i64(&s, ":id", trial);
	while (stmt_row(&s)) {
		double v = col_real(&s, "value");

		out->v = xgrow(out->v, out->n, &out->cap, sizeof *out->v);
		out->v[out->n++] = (struct revalue){.slot = slot,
						    .metric = col_text(&s, "name"),
						    .stat = col_text(&s, "stat"),
						    .labels = col_text(&s, "labels"),
						    .was = is_old ? v : NAN,
						    .is = is_old ? NAN : v};
	}
	return stmt_close(&s);
}

static void revalue_done(struct revalue *v)
{
	free(v->metric);
	free(v->stat);
	free(v->labels);
}

void reread_done(struct reread *r)
{
	for (size_t i = 0; i < r->n; i++)
		revalue_done(&r->v[i]);
	for (size_t i = 0; i < r->n_states; i++) {
		free(r->states[i].reason);
	}
	free(r->v);
	free(r->states);
	*r = (struct reread){0};
}

static int compare_values(const struct revalue *a, const struct revalue *b)
{
	int c = strcmp(a->metric, b->metric);

	if (c == 0)
		c = strcmp(a->stat, b->stat);
	return c ? c : strcmp(a->labels, b->labels);
}

/* out->v from `first` on holds the old values, then from `middle` on the new ones, both in order:
 * what remains is what differs. */
static void keep_differences(struct reread *out, size_t first, size_t middle)
{
	size_t a = first, b = middle, to = 0;
	_cleanup_free_ struct revalue *kept = xcalloc(out->n - first + 1, sizeof *kept);

	while (a < middle || b < out->n) {
		int c = a == middle ? 1 : b == out->n ? -1 : compare_values(&out->v[a], &out->v[b]);
		struct revalue v = c <= 0 ? out->v[a++] : out->v[b++];

		if (c == 0) {
			v.is = out->v[b].is;
			revalue_done(&out->v[b++]);
		}
		if (v.was == v.is)
			revalue_done(&v);
		else
			kept[to++] = v;
	}
	memcpy(out->v + first, kept, to * sizeof *kept);
	out->n = first + to;
}

static int run_for(struct db *db, int which, const char *what, int64_t id, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(which), what, e);

	bind_i64(&s, ":id", id);
	return stmt_run(&s);
}

static int set_trial(const struct ingest *in, const struct trial_result *t, int64_t id)
{
	struct stmt s = stmt_open(in->db, SQL(TRIAL_SET), "store the trial", in->e);

	bind_i64(&s, ":id", id);
	bind_text(&s, ":state", trial_state_name(t->state));
	bind_text(&s, ":reason", t->reason);
	return stmt_run(&s);
}

/* The row of a trial; its state goes to out when the files now say another. */
static int find_trial(const struct ingest *in, const struct trial_result *t, int64_t *id,
		      struct reread *out)
{
	struct stmt s = stmt_open(in->db, SQL(TRIAL_GET), "read the trial", in->e);
	enum trial_state was = TRIAL_OK;

	bind_i64(&s, ":attempt", in->t->id);
	bind_i64(&s, ":slot", t->slot);
	if (stmt_row(&s)) {
		*id = col_i64(&s, "id");
		COL_WORD(&s, "state", trial_state, &was);
		if (was != t->state) {
			out->states = xgrow(out->states, out->n_states, &out->cap_states,
					    sizeof *out->states);
			out->states[out->n_states++] = (struct restate){
				.slot = t->slot,
				.was = was,
				.is = t->state,
				.reason = xstrdup(t->reason)};
		}
	} else {
		stmt_fail(&s, ERR_STATE, "attempt %d of block %lld has no trial of slot %d",
			  in->t->number, (long long)in->t->block, t->slot);
	}
	return stmt_close(&s);
}

static int replace_trial(struct ingest *in, const struct trial_result *t, struct reread *out)
{
	size_t first = out->n, middle;
	int64_t id = 0;
	int rc = find_trial(in, t, &id, out);

	if (rc == 0)
		rc = load_values(in->db, id, t->slot, true, out, in->e);
	middle = out->n;
	if (rc == 0)
		rc = run_for(in->db, METRICS_DROP, "replace the values", id, in->e);
	if (rc == 0)
		rc = run_for(in->db, EFFECTIVE_DROP, "replace the values", id, in->e);
	if (rc == 0)
		rc = set_trial(in, t, id);
	if (rc == 0)
		rc = put_values(in, t, id);
	if (rc == 0)
		rc = load_values(in->db, id, t->slot, false, out, in->e);
	if (rc == 0)
		keep_differences(out, first, middle);
	return rc;
}

static int replace_all(struct ingest *in, const char *hash, const struct trial_result *trials,
		       size_t n, struct reread *out)
{
	struct stmt s;
	int rc = 0;

	if (in->t->state != ATTEMPT_VALID || (hash && !str_eq(in->t->hash, hash)))
		return err_set(in->e, ERR_STATE,
			       in->t->state == ATTEMPT_VALID
				       ? "its files are not those that were stored"
				       : "it does not count");
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = replace_trial(in, &trials[i], out);
	if (rc == 0)
		rc = note_refused(in);
	if (rc < 0)
		return rc;
	s = stmt_open(in->db, SQL(REV_SET), "note the parsers' revision", in->e);
	bind_i64(&s, ":id", in->t->id);
	bind_i64(&s, ":rev", PARSER_REV);
	return stmt_run(&s);
}

int query_attempt_reread(struct db *db, int64_t attempt_id, const char *manifest_hash,
			 const struct trial_result *trials, size_t n, int64_t now_us,
			 struct reread *out, struct err *e)
{
	struct target t = {0};
	struct ingest in = {.db = db, .t = &t, .now_us = now_us, .e = e};
	bool own;
	int rc = db_enter(db, "replace the values of an attempt", &own, e);

	*out = (struct reread){0};
	if (rc < 0)
		return rc;
	rc = read_target(db, attempt_id, &t, e);
	if (rc == 0)
		rc = replace_all(&in, manifest_hash, trials, n, out);
	rc = db_leave(db, own, rc, e);
	known_done(&in.defs);
	known_done(&in.labels);
	free(t.hash);
	if (rc < 0)
		reread_done(out);
	return rc;
}
