/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/query.h"

#include <stdlib.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"

enum {
	PUT,
	ARM_PUT,
	EXPERIMENT_PUT,
	CLOSE,
	LIST,
	ARMS,
	BLOCK_PUT,
	SLOT_PUT,
	BLOCKS,
	STILL_OPEN,
	OPEN_SINCE,
	COUNT,
	SLOTS
};

#define BLOCK_COLUMNS                                                                       \
	"SELECT b.id, b.idx, a.id AS attempt_id, a.number, a.state, a.reason, a.dir, "      \
	"a.allocation, l.token, l.job_id, (SELECT count(*) FROM attempt p "                 \
	"WHERE p.allocation = a.allocation AND p.id < a.id) AS position, "                  \
	"(SELECT count(*) FROM attempt w "                                                  \
	"WHERE w.block = b.id AND w.state IN ('void', 'lost') AND "                         \
	"w.reason IS NOT 'cancelled' AND coalesce(w.reason, '') NOT GLOB "                  \
	"'" QUERY_NOT_BEGUN ":*' AND w.id > c.resume_attempt AND "                          \
	"(SELECT x.outcome FROM allocation x WHERE x.id = w.allocation) IS NOT "            \
	"'preempted') AS voids "                                                            \
	"FROM block b JOIN stage s ON s.id = b.stage JOIN campaign c ON c.id = s.campaign " \
	"LEFT JOIN attempt a ON a.block = b.id AND a.number = "                             \
	"(SELECT max(m.number) FROM attempt m WHERE m.block = b.id) "                       \
	"LEFT JOIN allocation l ON l.id = a.allocation WHERE b.stage = :stage "
#define NOT_VALID "NOT EXISTS (SELECT 1 FROM attempt v WHERE v.block = b.id AND v.state = 'valid')"
const char *const query_sql_stage[] = {
	[PUT] = "INSERT INTO stage(campaign, hypothesis, seq, round, kind, planned_blocks, "
		"alpha_share, "
		"ssr, df0, open, note, avoid_nodes) VALUES (:campaign, :hypothesis, :seq, :round, :kind, "
		":planned, "
		":alpha, :ssr, :df0, :open, :note, :avoid)",
	[ARM_PUT] = "INSERT INTO arm(stage, idx, role, config, hypothesis, label) "
		    "VALUES (:stage, :idx, :role, :config, :hypothesis, :label)",
	[EXPERIMENT_PUT] = "INSERT INTO experiment(stage, hypothesis, baseline, treatment) "
			   "VALUES (:stage, :hypothesis, :baseline, :treatment)",
	[CLOSE] = "UPDATE stage SET open = 0, note = :note WHERE id = :id",
	[LIST] = "SELECT id, campaign, hypothesis, seq, round, kind, planned_blocks, alpha_share, "
		 "ssr, "
		 "df0, open, note, avoid_nodes FROM stage WHERE campaign = :campaign ORDER BY seq",
	[ARMS] = "SELECT id, stage, idx, role, config, hypothesis, label FROM arm "
		 "WHERE stage = :stage ORDER BY idx",
	[BLOCK_PUT] = "INSERT INTO block(stage, idx) VALUES (:stage, :idx)",
	[SLOT_PUT] = "INSERT INTO slot(block, idx, arm, repeat, kind) "
		     "VALUES (:block, :idx, :arm, :repeat, :kind)",
	[BLOCKS] = BLOCK_COLUMNS "ORDER BY b.idx",
	[STILL_OPEN] = BLOCK_COLUMNS "AND b.id = :bound AND " NOT_VALID,
	[OPEN_SINCE] = BLOCK_COLUMNS "AND b.idx >= :bound AND " NOT_VALID " ORDER BY b.idx",
	[COUNT] = "SELECT count(*) AS n FROM block WHERE stage = :stage AND idx >= :bound",
	[SLOTS] = "SELECT idx, arm, repeat, kind FROM slot WHERE block = :block "
		  "AND (:position = 0 OR kind <> 'warmup') ORDER BY idx",
	NULL,
};
#define SQL(which) query_sql_stage[which]

/* -- stages ---------------------------------------------------------------------------------- */

static int put_stage(struct db *db, const struct stage_row *r, int64_t *id, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(PUT), "store the stage", e);
	int rc;

	bind_i64(&s, ":campaign", r->campaign);
	bind_opt(&s, ":hypothesis", r->hypothesis);
	bind_i64(&s, ":seq", r->seq);
	bind_i64(&s, ":round", r->round);
	bind_text(&s, ":kind", stage_kind_name(r->kind));
	bind_i64(&s, ":planned", r->planned_blocks);
	bind_real(&s, ":alpha", r->alpha_share);
	bind_real(&s, ":ssr", r->ssr);
	bind_i64(&s, ":df0", r->df0);
	bind_i64(&s, ":open", r->open);
	bind_text(&s, ":note", r->note);
	bind_text(&s, ":avoid", r->avoid_nodes);
	rc = stmt_run(&s);
	*id = db_last_id(db);
	return rc;
}

static int put_arm(struct db *db, int64_t stage, const struct arm_row *a, int64_t *id,
		   struct err *e)
{
	struct stmt s = stmt_open(db, SQL(ARM_PUT), "store the arm", e);
	int rc;

	bind_i64(&s, ":stage", stage);
	bind_i64(&s, ":idx", a->index);
	bind_text(&s, ":role", arm_role_name(a->role));
	bind_i64(&s, ":config", a->config);
	bind_opt(&s, ":hypothesis", a->hypothesis);
	bind_text(&s, ":label", a->label);
	rc = stmt_run(&s);
	*id = db_last_id(db);
	return rc;
}

/* The one-knob stages compare a hypothesis with the baseline; the others differ by design. */
static bool has_experiments(const struct stage_row *r)
{
	switch (r->kind) {
	case STAGE_VERIFY:
	case STAGE_SCREEN:
	case STAGE_CONFIRM:
		return r->n_arms > 0 && r->arms[0].role == ROLE_BASELINE;
	case STAGE_AA:
	case STAGE_ABLATE:
	case STAGE_FINAL:
	case STAGE_SOAK:
	case STAGE_CANARY:
	case STAGE_CONVERGE:
	case STAGE_PROFILE:
	case STAGE_LADDER:
		return false;
	}
	return false;
}

static int put_experiment(struct db *db, int64_t stage, int64_t hypothesis, int64_t baseline,
			  int64_t treatment, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(EXPERIMENT_PUT), "store the experiment", e);

	bind_i64(&s, ":stage", stage);
	bind_i64(&s, ":hypothesis", hypothesis);
	bind_i64(&s, ":baseline", baseline);
	bind_i64(&s, ":treatment", treatment);
	return stmt_run(&s);
}

static int put_all(struct db *db, const struct stage_row *r, int64_t *stage, int64_t *arms,
		   struct err *e)
{
	bool pairs = has_experiments(r);
	int rc = put_stage(db, r, stage, e);

	for (size_t i = 0; i < r->n_arms && rc == 0; i++) {
		const struct arm_row *a = &r->arms[i];

		rc = put_arm(db, *stage, a, &arms[i], e);
		if (rc == 0 && pairs && i > 0 && a->role == ROLE_TREATMENT && a->hypothesis > 0)
			rc = put_experiment(db, *stage, a->hypothesis, arms[0], arms[i], e);
	}
	return rc;
}

int query_stage_add(struct db *db, struct stage_row *r, struct err *e)
{
	_cleanup_free_ int64_t *arms = xcalloc(r->n_arms + 1, sizeof *arms);
	int64_t stage = 0;
	bool own;
	int rc = db_enter(db, "store a stage", &own, e);

	if (rc < 0)
		return rc;
	rc = db_leave(db, own, put_all(db, r, &stage, arms, e), e);
	if (rc < 0)
		return rc;
	r->id = stage;
	for (size_t i = 0; i < r->n_arms; i++) {
		r->arms[i].id = arms[i];
		r->arms[i].stage = stage;
	}
	return 0;
}

int query_stage_close(struct db *db, int64_t id, const char *note, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(CLOSE), "close the stage", e);

	bind_text(&s, ":note", note);
	bind_i64(&s, ":id", id);
	while (stmt_row(&s))
		;
	if (s.rc == 0 && db_changed(db) == 0)
		stmt_fail(&s, ERR_NOT_FOUND, "there is no stage %lld", (long long)id);
	return stmt_close(&s);
}

static void read_stage(struct stmt *s, struct stage_row *r)
{
	r->id = col_i64(s, "id");
	r->campaign = col_i64(s, "campaign");
	r->hypothesis = col_i64(s, "hypothesis");
	r->seq = col_int(s, "seq");
	r->round = col_int(s, "round");
	COL_WORD(s, "kind", stage_kind, &r->kind);
	r->planned_blocks = col_int(s, "planned_blocks");
	r->alpha_share = col_real(s, "alpha_share");
	r->ssr = col_real(s, "ssr");
	r->df0 = col_int(s, "df0");
	r->open = col_bool(s, "open");
	r->note = col_text(s, "note");
	r->avoid_nodes = col_text(s, "avoid_nodes");
}

static int read_arms(struct db *db, struct stage_row *r, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(ARMS), "list arms", e);
	size_t cap = 0;

	bind_i64(&s, ":stage", r->id);
	while (stmt_row(&s)) {
		struct arm_row *a;

		r->arms = xgrow(r->arms, r->n_arms, &cap, sizeof *r->arms);
		a = &r->arms[r->n_arms++];
		a->id = col_i64(&s, "id");
		a->stage = col_i64(&s, "stage");
		a->index = col_int(&s, "idx");
		COL_WORD(&s, "role", arm_role, &a->role);
		a->config = col_i64(&s, "config");
		a->hypothesis = col_i64(&s, "hypothesis");
		a->label = col_text(&s, "label");
	}
	return stmt_close(&s);
}

int query_stages(struct db *db, int64_t campaign, struct stage_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(LIST), "list stages", e);
	struct stage_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		read_stage(&s, &v[used++]);
	}
	rc = stmt_close(&s);
	for (size_t i = 0; i < used && rc == 0; i++)
		rc = read_arms(db, &v[i], e);
	if (rc < 0) {
		stage_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void stage_rows_free(struct stage_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < v[i].n_arms; k++)
			free(v[i].arms[k].label);
		free(v[i].arms);
		free(v[i].note);
		free(v[i].avoid_nodes);
	}
	free(v);
}

/* -- blocks ---------------------------------------------------------------------------------- */

static int put_slot(struct db *db, int64_t block, size_t idx, const struct slot *slot,
		    struct err *e)
{
	struct stmt s = stmt_open(db, SQL(SLOT_PUT), "store the slots", e);

	bind_i64(&s, ":block", block);
	bind_i64(&s, ":idx", (int64_t)idx);
	bind_i64(&s, ":arm", slot->arm);
	bind_i64(&s, ":repeat", slot->repeat);
	bind_text(&s, ":kind", slot_kind_name(slot->kind));
	return stmt_run(&s);
}

static int put_block(struct db *db, int64_t stage, int index, const struct slot *slots, size_t n,
		     int64_t *id, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(BLOCK_PUT), "store the block", e);
	int rc;

	bind_i64(&s, ":stage", stage);
	bind_i64(&s, ":idx", index);
	rc = stmt_run(&s);
	*id = db_last_id(db);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = put_slot(db, *id, i, &slots[i], e);
	return rc;
}

int query_block_add(struct db *db, int64_t stage, int index, const struct slot *slots, size_t n,
		    int64_t *id, struct err *e)
{
	int64_t new_id = 0;
	bool own;
	int rc = db_enter(db, "store a block", &own, e);

	if (rc < 0)
		return rc;
	rc = db_leave(db, own, put_block(db, stage, index, slots, n, &new_id, e), e);
	if (rc == 0)
		*id = new_id;
	return rc;
}

static void read_block(struct stmt *s, struct block_row *b)
{
	b->id = col_i64(s, "id");
	b->index = col_int(s, "idx");
	b->voids = col_int(s, "voids");
	b->attempt_id = col_i64(s, "attempt_id");
	b->attempt = col_int(s, "number");
	b->position = col_int(s, "position");
	if (b->attempt == 0)
		return;
	COL_WORD(s, "state", attempt_state, &b->state);
	b->reason = col_text(s, "reason");
	b->dir = col_text(s, "dir");
	b->allocation = col_i64(s, "allocation");
	b->token = col_text(s, "token");
	b->job_id = col_text(s, "job_id");
}

static int read_slots(struct db *db, struct block_row *b, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(SLOTS), "list slots", e);
	size_t cap = 0;

	bind_i64(&s, ":block", b->id);
	bind_i64(&s, ":position", b->position);
	while (stmt_row(&s)) {
		struct slot *slot;

		b->slots = xgrow(b->slots, b->n_slots, &cap, sizeof *b->slots);
		slot = &b->slots[b->n_slots++];
		slot->index = col_int(&s, "idx");
		slot->arm = col_i64(&s, "arm");
		slot->repeat = col_int(&s, "repeat");
		COL_WORD(&s, "kind", slot_kind, &slot->kind);
	}
	return stmt_close(&s);
}

struct block_list {
	struct block_row *v;
	size_t n, cap;
};

/* Adds to the list. */
static int list_blocks(struct db *db, const char *sql, int64_t stage, int64_t bound,
		       struct block_list *l, struct err *e)
{
	struct stmt s = stmt_open(db, sql, "list blocks", e);
	size_t before = l->n;
	int rc;

	bind_i64(&s, ":stage", stage);
	if (sql != SQL(BLOCKS))
		bind_i64(&s, ":bound", bound);
	while (stmt_row(&s)) {
		l->v = xgrow(l->v, l->n, &l->cap, sizeof *l->v);
		l->v[l->n].stage = stage;
		read_block(&s, &l->v[l->n++]);
	}
	rc = stmt_close(&s);
	for (size_t i = before; i < l->n && rc == 0; i++)
		rc = read_slots(db, &l->v[i], e);
	return rc;
}

int query_blocks(struct db *db, int64_t stage, struct block_row **out, size_t *n, struct err *e)
{
	struct block_list l = {0};
	int rc = list_blocks(db, SQL(BLOCKS), stage, 0, &l, e);

	if (rc < 0) {
		block_rows_free(l.v, l.n);
		return rc;
	}
	*out = l.v;
	*n = l.n;
	return 0;
}

/* How many there are from this index on. */
static int count_blocks(struct db *db, int64_t stage, size_t from, size_t *out, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(COUNT), "count blocks", e);

	bind_i64(&s, ":stage", stage);
	bind_i64(&s, ":bound", (int64_t)from);
	*out = stmt_row(&s) ? (size_t)col_i64(&s, "n") : 0;
	return stmt_close(&s);
}

int query_open_blocks(struct db *db, int64_t stage, struct block_row **v, size_t *n, size_t *total,
		      struct err *e)
{
	struct block_list l = {0};
	size_t more = 0;
	int rc = count_blocks(db, stage, *total, &more, e);

	for (size_t i = 0; i < *n && rc == 0; i++)
		rc = list_blocks(db, SQL(STILL_OPEN), stage, (*v)[i].id, &l, e);
	if (rc == 0)
		rc = list_blocks(db, SQL(OPEN_SINCE), stage, (int64_t)*total, &l, e);
	if (rc < 0) {
		block_rows_free(l.v, l.n);
		return rc;
	}
	block_rows_free(*v, *n);
	*v = l.v;
	*n = l.n;
	*total += more;
	return 0;
}

void block_rows_free(struct block_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].slots);
		free(v[i].reason);
		free(v[i].dir);
		free(v[i].token);
		free(v[i].job_id);
	}
	free(v);
}
