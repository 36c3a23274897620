/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/query.h"

#include <math.h>
#include <stdlib.h>

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

/* Only what counts: timed trials of a block's valid attempt. */
#define COUNTED_TRIALS                                                         \
	"FROM block b JOIN attempt a ON a.block = b.id AND a.state = 'valid' " \
	"JOIN trial t ON t.attempt = a.id AND t.kind = 'timed' "

enum { VALUES, CURVE, SIZES, SIGNALS, TIMED, MEANS, EFFECTIVE, RATE, SHOWN, RANKS };
const char *const query_sql_values[] = {
	[VALUES] = "SELECT b.id AS block, b.idx, t.arm, t.id AS trial, t.repeat, t.slot, t.state, "
		   "t.reason, t.log_path, t.node, a.allocation, m.value " COUNTED_TRIALS
		   "LEFT JOIN metric m ON m.trial = t.id "
		   "AND m.def = (SELECT id FROM metric_def WHERE name = :metric) "
		   "AND m.label = (SELECT id FROM labelset WHERE labels = '') AND m.stat = :stat "
		   "WHERE b.stage = :stage ORDER BY b.idx, t.slot",
	[CURVE] = "SELECT b.idx, t.arm, t.node, a.allocation, m.value, "
		  "CAST(substr(l.labels, length(:axis) + 2) AS REAL) "
		  "AS x " COUNTED_TRIALS "JOIN metric m ON m.trial = t.id AND m.stat = 'at' "
		  "AND m.def = (SELECT id FROM metric_def WHERE name = :metric) "
		  "JOIN labelset l ON l.id = m.label AND l.labels LIKE :axis || '=%' "
		  "WHERE b.stage = :stage AND t.state = 'ok' ORDER BY b.idx, x DESC",
	[SIZES] = "SELECT b.idx, t.arm, t.node, a.allocation, m.value, "
		  "CAST(substr(l.labels, instr(l.labels, 'size_bytes=') + 11) AS REAL) "
		  "AS x " COUNTED_TRIALS "JOIN metric m ON m.trial = t.id AND m.stat = :stat "
		  "AND m.def = (SELECT id FROM metric_def WHERE name = :metric) "
		  "JOIN labelset l ON l.id = m.label AND instr(l.labels, 'size_bytes=') > 0 "
		  "WHERE b.stage = :stage AND t.state = 'ok' ORDER BY x, b.idx, t.slot",
	[SIGNALS] = "SELECT d.name, m.stat, m.value FROM trial t "
		    "JOIN attempt a ON a.id = t.attempt AND a.state = 'valid' "
		    "JOIN metric m ON m.trial = t.id JOIN metric_def d ON d.id = m.def "
		    "WHERE t.arm = :arm AND t.state = 'ok' AND (t.kind = 'timed' OR "
		    "(SELECT s.kind FROM arm r JOIN stage s ON s.id = r.stage WHERE r.id = :arm) "
		    "= 'profile') "
		    "AND m.label = (SELECT id FROM labelset WHERE labels = '') "
		    "ORDER BY d.name, m.stat, t.id",
	/* The last stage before the arm's own that timed the same configuration. */
	[TIMED] =
		"SELECT r.id FROM arm own JOIN stage p ON p.id = own.stage "
		"JOIN stage s ON s.campaign = p.campaign AND s.seq < p.seq AND s.kind <> 'profile' "
		"JOIN arm r ON r.stage = s.id AND r.config = own.config "
		"WHERE own.id = :arm ORDER BY s.seq DESC, r.idx DESC LIMIT 1",
	[MEANS] = "SELECT d.name, b.idx, t.arm, m.value " COUNTED_TRIALS
		  "JOIN metric m ON m.trial = t.id AND m.stat = 'mean' "
		  "AND m.label = (SELECT id FROM labelset WHERE labels = '') "
		  "JOIN metric_def d ON d.id = m.def "
		  "WHERE b.stage = :stage AND t.state = 'ok' ORDER BY d.name, b.idx",
	[EFFECTIVE] =
		"SELECT b.id AS block, t.arm, t.id AS trial, e.rank, e.key, e.value, "
		"e.level " COUNTED_TRIALS
		"JOIN effective e ON e.trial = t.id WHERE b.stage = :stage AND t.state = 'ok' "
		"ORDER BY b.idx, t.slot, e.rank, e.key",
	[RATE] = "SELECT sum(x) AS rate FROM (SELECT avg(m.value) AS x FROM trial t "
		 "JOIN attempt a ON a.id = t.attempt AND a.state = 'valid' "
		 "JOIN metric m ON m.trial = t.id JOIN metric_def d ON d.id = m.def "
		 "JOIN labelset l ON l.id = m.label "
		 "WHERE t.arm = :arm AND t.kind = 'timed' AND t.state = 'ok' AND d.name = :metric "
		 "AND m.stat = 'mean' AND ',' || l.labels || ',' NOT LIKE '%,iface=lo,%' "
		 "GROUP BY m.label)",
	[SHOWN] = "SELECT e.key, e.value, e.level, count(*) AS n FROM trial t "
		  "JOIN attempt a ON a.id = t.attempt AND a.state = 'valid' "
		  "JOIN effective e ON e.trial = t.id "
		  "WHERE t.arm = :arm AND t.kind = 'timed' AND t.state = 'ok' "
		  "AND e.key NOT LIKE 'envhash.%' "
		  "GROUP BY e.key, e.value, e.level ORDER BY e.key, e.value, e.level",
	[RANKS] = "SELECT coalesce(max(e.rank) + 1, 0) AS ranks FROM trial t "
		  "JOIN attempt a ON a.id = t.attempt AND a.state = 'valid' "
		  "JOIN effective e ON e.trial = t.id "
		  "WHERE t.arm = :arm AND t.kind = 'timed' AND t.state = 'ok'",
	NULL,
};
#define SQL(which) query_sql_values[which]

int query_stage_values(struct db *db, int64_t stage, const char *metric, const char *stat,
		       struct value_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(VALUES), "read the stage's values", e);
	struct value_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":stage", stage);
	bind_text(&s, ":metric", metric);
	bind_text(&s, ":stat", stat);
	while (stmt_row(&s)) {
		struct value_row *r;

		v = xgrow(v, used, &cap, sizeof *v);
		r = &v[used++];
		r->block = col_i64(&s, "block");
		r->block_index = col_int(&s, "idx");
		r->arm = col_i64(&s, "arm");
		r->trial = col_i64(&s, "trial");
		r->repeat = col_int(&s, "repeat");
		r->slot = col_int(&s, "slot");
		COL_WORD(&s, "state", trial_state, &r->state);
		r->reason = col_text(&s, "reason");
		r->log_path = col_text(&s, "log_path");
		r->node = col_text(&s, "node");
		r->allocation = col_i64(&s, "allocation");
		r->value = col_real(&s, "value");
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		value_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

static int take_curve(struct stmt *s, struct curve_row **out, size_t *n)
{
	struct curve_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	while (stmt_row(s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used++] = (struct curve_row){.block_index = col_int(s, "idx"),
					       .arm = col_i64(s, "arm"),
					       .allocation = col_i64(s, "allocation"),
					       .node = col_text(s, "node"),
					       .x = col_real(s, "x"),
					       .value = col_real(s, "value")};
	}
	rc = stmt_close(s);
	if (rc < 0) {
		curve_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

int query_stage_curve(struct db *db, int64_t stage, const char *metric, const char *axis,
		      struct curve_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(CURVE), "read the stage's curves", e);

	bind_i64(&s, ":stage", stage);
	bind_text(&s, ":metric", metric);
	bind_text(&s, ":axis", axis);
	return take_curve(&s, out, n);
}

int query_stage_sizes(struct db *db, int64_t stage, const char *metric, const char *stat,
		      struct curve_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(SIZES), "read the stage's values by size", e);

	bind_i64(&s, ":stage", stage);
	bind_text(&s, ":metric", metric);
	bind_text(&s, ":stat", stat);
	return take_curve(&s, out, n);
}

void curve_rows_free(struct curve_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].node);
	free(v);
}

void value_rows_free(struct value_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].reason);
		free(v[i].log_path);
		free(v[i].node);
	}
	free(v);
}

/* Welford's update; `sd` holds the sum of squares until settle(). SQLite has no square root before
 * 3.35, and a one-pass sum of squares would cancel. */
static void add_value(struct signal_row *r, double value)
{
	double d = value - r->mean;

	r->n++;
	r->mean += d / (double)r->n;
	r->sd += d * (value - r->mean);
}

static void settle(struct signal_row *r)
{
	r->sd = r->n > 1 ? sqrt(r->sd / (double)(r->n - 1)) : NAN;
}

int query_arm_signals(struct db *db, int64_t arm, struct signal_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(SIGNALS), "read the arm's signals", e);
	struct signal_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":arm", arm);
	while (stmt_row(&s)) {
		const char *metric = col_peek(&s, "name");
		const char *stat = col_peek(&s, "stat");

		if (used == 0 || !str_eq(v[used - 1].metric, metric) ||
		    !str_eq(v[used - 1].stat, stat)) {
			v = xgrow(v, used, &cap, sizeof *v);
			v[used++] = (struct signal_row){.metric = xstrdup(metric),
							.stat = xstrdup(stat)};
		}
		add_value(&v[used - 1], col_real(&s, "value"));
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		signal_rows_free(v, used);
		return rc;
	}
	for (size_t i = 0; i < used; i++)
		settle(&v[i]);
	*out = v;
	*n = used;
	return 0;
}

/* Means over the timed trials of what the arm runs, of the last stage before its own. */
static int timed_signals(struct db *db, int64_t arm, struct signal_row **out, size_t *n,
			 struct err *e)
{
	struct stmt s = stmt_open(db, SQL(TIMED), "read what was timed before", e);
	int64_t timed = 0;
	int rc;

	bind_i64(&s, ":arm", arm);
	while (stmt_row(&s))
		timed = col_i64(&s, "id");
	rc = stmt_close(&s);
	return rc < 0 || !timed ? rc : query_arm_signals(db, timed, out, n, e);
}

static struct signal_row *mean_of(struct signal_row *v, size_t n, const char *metric)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(v[i].metric, metric) && str_eq(v[i].stat, "mean"))
			return &v[i];
	return NULL;
}

/* Keeps its time in a step that is shorter: its share grows, up to what is left of the step. */
static double keep_time(struct signal_row *v, size_t n, const char *metric, double slower,
			double left)
{
	struct signal_row *r = mean_of(v, n, metric);

	if (!r)
		return left;
	r->mean = fmin(r->mean * slower, left);
	return left - r->mean;
}

void signal_rows_without_profiler(struct signal_row *v, size_t n, double slower)
{
	static const char *const gaps[] = {"launch_gap_ratio", "sync_gap_ratio", "alloc_gap_ratio"};
	struct signal_row *idle = mean_of(v, n, "gpu_idle_ratio");
	double comm = signal_rows_mean(v, n, "comm_exposed_ratio"),
	       data = signal_rows_mean(v, n, "data_gap_ratio"), left, had;

	if (!idle || !(slower > 1))
		return;
	data = fmin(fmax(data, 0), idle->mean); /* fmax(): 0 for NaN */
	left = fmax(0, 1 - fmax(comm, 0) - data);
	left = keep_time(v, n, "compute_ratio", slower, left);
	left = keep_time(v, n, "copy_exposed_ratio", slower, left);
	had = idle->mean - data;
	if (!(left < had))
		return;
	idle->mean = data + left;
	for (size_t i = 0; i < ARRAY_LEN(gaps); i++) {
		struct signal_row *gap = mean_of(v, n, gaps[i]);

		if (gap)
			gap->mean *= left / had;
	}
}

int query_profile_signals(struct db *db, int64_t arm, struct signal_row **out, size_t *n,
			  struct profile_price *price, struct err *e)
{
	struct signal_row *v = NULL, *timed = NULL;
	size_t used = 0, n_timed = 0;
	int rc = query_arm_signals(db, arm, &v, &used, e);

	if (rc == 0)
		rc = timed_signals(db, arm, &timed, &n_timed, e);
	if (rc < 0) {
		signal_rows_free(v, used);
		return rc;
	}
	*price = (struct profile_price){
		.traced_ms = signal_rows_mean(v, used, "trace_step_ms"),
		.timed_ms = signal_rows_mean(timed, n_timed, "step_time_ms"),
	};
	signal_rows_free(timed, n_timed);
	signal_rows_without_profiler(v, used, price->traced_ms / price->timed_ms);
	*out = v;
	*n = used;
	return 0;
}

int query_stage_means(struct db *db, int64_t stage, struct mean_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(MEANS), "read the means of a stage", e);
	struct mean_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":stage", stage);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		v[used++] = (struct mean_row){.metric = col_text(&s, "name"),
					      .arm = col_i64(&s, "arm"),
					      .block_index = col_int(&s, "idx"),
					      .value = col_real(&s, "value")};
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		mean_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void mean_rows_free(struct mean_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].metric);
	free(v);
}

int query_arm_rate(struct db *db, int64_t arm, const char *metric, double *out, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(RATE), "read the arm's rates", e);

	*out = NAN;
	bind_i64(&s, ":arm", arm);
	bind_text(&s, ":metric", metric);
	while (stmt_row(&s))
		*out = col_real(&s, "rate");
	return stmt_close(&s);
}

void signal_rows_free(struct signal_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].metric);
		free(v[i].stat);
	}
	free(v);
}

const struct signal_row *signal_rows_find(const struct signal_row *v, size_t n, const char *metric)
{
	return mean_of((struct signal_row *)v, n, metric);
}

double signal_rows_mean(const struct signal_row *v, size_t n, const char *metric)
{
	const struct signal_row *row = signal_rows_find(v, n, metric);

	return row ? row->mean : NAN;
}

int query_stage_effective(struct db *db, int64_t stage, struct effective_row **out, size_t *n,
			  struct err *e)
{
	struct stmt s = stmt_open(db, SQL(EFFECTIVE), "read effective values", e);
	struct effective_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":stage", stage);
	while (stmt_row(&s)) {
		struct effective_row *r;

		v = xgrow(v, used, &cap, sizeof *v);
		r = &v[used++];
		r->block = col_i64(&s, "block");
		r->arm = col_i64(&s, "arm");
		r->trial = col_i64(&s, "trial");
		r->rank = col_int(&s, "rank");
		r->key = col_text(&s, "key");
		r->value = col_text(&s, "value");
		COL_WORD(&s, "level", proof_level, &r->level);
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		effective_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

int query_arm_ranks(struct db *db, int64_t arm, int *out, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(RANKS), "read the arm's ranks", e);

	*out = 0;
	bind_i64(&s, ":arm", arm);
	while (stmt_row(&s))
		*out = col_int(&s, "ranks");
	return stmt_close(&s);
}

void effective_rows_free(struct effective_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].key);
		free(v[i].value);
	}
	free(v);
}

int query_arm_shown(struct db *db, int64_t arm, struct shown_row **out, size_t *n, struct err *e)
{
	struct stmt s = stmt_open(db, SQL(SHOWN), "read what the arm's processes showed", e);
	struct shown_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	bind_i64(&s, ":arm", arm);
	while (stmt_row(&s)) {
		struct shown_row *r;

		v = xgrow(v, used, &cap, sizeof *v);
		r = &v[used++];
		r->key = col_text(&s, "key");
		r->value = col_text(&s, "value");
		COL_WORD(&s, "level", proof_level, &r->level);
		r->n = col_i64(&s, "n");
	}
	rc = stmt_close(&s);
	if (rc < 0) {
		shown_rows_free(v, used);
		return rc;
	}
	*out = v;
	*n = used;
	return 0;
}

void shown_rows_free(struct shown_row *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].key);
		free(v[i].value);
	}
	free(v);
}
