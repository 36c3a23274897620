/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory of nights: series of fixed configurations, their points, the environment that each
 * held for, what changed in them, and the regressions that people are told of. One function a need,
 * plain structs out, as in query.h. Functions that write run in the caller's transaction unless
 * marked [tx]. Arrays returned are heap, owned by the caller; text members by their struct.
 *
 * A night is "YYYY-MM-DD": the local date on which its window opens; as text it sorts by time.
 */
#ifndef FETTLE_EXPERIMENTS_HISTORY_H
#define FETTLE_EXPERIMENTS_HISTORY_H

#include "experiments/db.h"
#include "experiments/model.h"

enum series_source { SERIES_CANARY, SERIES_IMPORTED, SERIES_OBSERVED };
enum series_role { SERIES_CURRENT, SERIES_REFERENCE, SERIES_PAIR };
enum change_direction { CHANGE_WORSE, CHANGE_BETTER, CHANGE_NEITHER };
enum change_level { CHANGE_SUSPECT, CHANGE_CONFIRMED, CHANGE_DISMISSED };
enum regression_kind { REGRESSION_WORSE, REGRESSION_BETTER, REGRESSION_SHIFT };
enum regression_state {
	REGRESSION_OPEN,
	REGRESSION_ACKNOWLEDGED,
	REGRESSION_FIXED,
	REGRESSION_ACCEPTED, /* the new normal: later nights are held against it */
	REGRESSION_TRANSIENT,
	REGRESSION_DISMISSED,
};
enum observation_state { OBSERVATION_COUNTED, OBSERVATION_WITHOUT, OBSERVATION_COPY };
enum cause_kind { CAUSE_ENVIRONMENT, CAUSE_NODE, CAUSE_METRIC };
MODEL_ENUM(series_source)
MODEL_ENUM(series_role)
MODEL_ENUM(change_direction)
MODEL_ENUM(change_level)
MODEL_ENUM(regression_kind)
MODEL_ENUM(regression_state)
MODEL_ENUM(observation_state)
MODEL_ENUM(cause_kind)

/* A date of the calendar as above; NULL is none. */
bool history_night_valid(const char *night);

/* -- environments ------------------------------------------------------------------------------ */

/* A JSON object of texts (else ERR_PARSE); kept with its keys sorted. The same keys and values, the
 * same id. */
int history_environment_put(struct db *db, const char *json, int64_t *id, struct err *e);
int history_environment_get(struct db *db, int64_t id, char **json, struct err *e);

/* What a node was when it ran an attempt. The same again is replaced. */
int history_node_environment_put(struct db *db, int64_t attempt, const char *node,
				 int64_t environment, struct err *e);
struct node_environment_row {
	char *node, *text; /* text: JSON */
	int64_t environment;
};
/* Of the valid attempts of a stage: each environment of each node once, by node, then in the order
 * in which they were met. */
int history_node_environments(struct db *db, int64_t stage, struct node_environment_row **out,
			      size_t *n, struct err *e);
void node_environment_rows_free(struct node_environment_row *v, size_t n);
/* The newest stage, of all campaigns of this name on this scheduler, of which they are known; 0:
 * there is none. */
int history_environment_newest(struct db *db, const char *campaign, const char *scheduler,
			       int64_t *stage, struct err *e);

/* -- series and points --------------------------------------------------------------------------
 */

struct series_row {
	int64_t id;
	enum series_source source;
	char *workload, *config, *place; /* config, place: "" when there is none */
	enum series_role role;
	char *metric, *stat, *unit;
	enum better better;
	double min_effect; /* relative change that matters */
	int64_t campaign;  /* that measures it; 0: none */
	int64_t created_us, ended_us;
};
void series_row_done(struct series_row *s);
void series_rows_free(struct series_row *v, size_t n);
/* The series of this key (source to stat; NULL is ""), made at its first use. ERR_STATE naming both
 * when it is there with another unit or direction ("" and none are not known yet: they become those
 * of s); its min_effect and campaign (unless 0) become those of s. s->id is filled in. */
int history_series_put(struct db *db, struct series_row *s, int64_t now_us, struct err *e);
/* It is what its canary measures now: those that the canary fed with another configuration ended,
 * and it has not (any more). */
int history_series_follow(struct db *db, int64_t id, int64_t now_us, struct err *e);
int history_series_get(struct db *db, int64_t id, struct series_row *out, struct err *e);
/* All, or those of a campaign (0: all); by workload, place, metric, role. */
int history_series_list(struct db *db, int64_t campaign, struct series_row **out, size_t *n,
			struct err *e);

struct replicate {
	double value;
	const char *nodes; /* comma separated; NULL: not known */
};
struct point_row {
	int64_t id, series;
	char night[11];
	int64_t at_us;
	int n;
	double value, sd;           /* mean and sd of the replicates; sd NaN for one */
	int64_t environment, stage; /* 0: not known */
};
/* A night's point with its replicates: the mean of finite values. What is there already for that
 * night: the same replicates change nothing (*again is set); others replace it only with `replace`,
 * else ERR_STATE naming series, night and both values. The same: in whatever order. ERR_PARSE for
 * no value, one that is no finite number up to 1e150, or a night that is no date. again may be
 * NULL. */
int history_point_put(struct db *db, int64_t series, const char *night, int64_t at_us,
		      const struct replicate *v, size_t n, int64_t environment, int64_t stage,
		      bool replace, bool *again, struct err *e);
/* By night; from_night NULL: from the first. */
int history_points(struct db *db, int64_t series, const char *from_night, struct point_row **out,
		   size_t *n, struct err *e);
/* How many nights a series has, its first and its last one; "" without any. */
struct series_extent {
	int64_t nights;
	char first[11], last[11];
};
int history_extent(struct db *db, int64_t series, struct series_extent *out, struct err *e);
struct replicate_row {
	double value;
	char *nodes;
};
int history_replicates(struct db *db, int64_t point, struct replicate_row **out, size_t *n,
		       struct err *e);
void replicate_rows_free(struct replicate_row *v, size_t n);

/* -- observed series ---------------------------------------------------------------------------
 */

/* A log of an ordinary job that was read for a series. */
struct observation_row {
	int64_t series;
	char *path; /* absolute */
	int64_t size, mtime_us;
	char hash[33];                /* of its bytes */
	enum observation_state state; /* counted; without the metric; a copy of one that was read */
	char night[11];
	double value; /* NaN unless counted */
};
void observation_row_done(struct observation_row *o);
int history_observation_get(struct db *db, int64_t series, const char *path,
			    struct observation_row *out, bool *found, struct err *e);
/* Another path with these bytes. */
int history_observation_same(struct db *db, int64_t series, const char *path, const char *hash,
			     struct observation_row *out, bool *found, struct err *e);
/* In place of what is known of that path. The point of its night, and of the night that it was in
 * before, become what their counted observations say: each is a replicate. */
int history_observation_put(struct db *db, const struct observation_row *o, int64_t now_us,
			    struct err *e);

/* -- canary stages ------------------------------------------------------------------------------
 */

enum canary_purpose { CANARY_NIGHT, CANARY_RERUN, CANARY_REVALIDATE };
MODEL_ENUM(canary_purpose)
struct canary_row {
	int64_t stage, campaign;
	char night[11];
	enum canary_purpose purpose;
	int64_t regression; /* that a rerun is about; 0 */
	bool open;
};
/* ERR_STATE twice */
int history_canary_put(struct db *db, const struct canary_row *c, struct err *e);
int history_canary_get(struct db *db, int64_t stage, struct canary_row *out, bool *found,
		       struct err *e);
/* Of a campaign (0: all), newest night first. */
int history_canaries(struct db *db, int64_t campaign, struct canary_row **out, size_t *n,
		     struct err *e);

/* -- what nights cost ---------------------------------------------------------------------------
 */

/* What the jobs of a stage took: node-seconds, and time from the first trial's start to the last
 * one's end; 0: nothing ran. */
int history_stage_cost(struct db *db, int64_t stage, double *node_s, double *wall_s, struct err *e);
/* Node-seconds of a campaign's allocations that began since then. */
int history_spent(struct db *db, int64_t campaign, int64_t since_us, double *node_s, struct err *e);
/* The newest night of which a canary's valid block ran on each node, of a campaign; how many. */
struct node_look {
	char *node;
	char night[11];
	int looks;
};
int history_node_looks(struct db *db, int64_t campaign, struct node_look **out, size_t *n,
		       struct err *e); /* by node */
void node_looks_free(struct node_look *v, size_t n);

/* -- regressions --------------------------------------------------------------------------------
 */

struct regression_row {
	int64_t id;
	enum regression_kind kind;
	enum change_level level; /* suspect or confirmed */
	enum regression_state state;
	char night[11], found_night[11], confirmed_night[11]; /* confirmed_night "": not yet */
	int64_t found_us, state_us;
	char *who, *note; /* of the last change of state; NULL */
	int64_t told_us;  /* when a message told people of it; 0: not yet */
};
void regression_row_done(struct regression_row *r);
void regression_rows_free(struct regression_row *v, size_t n);
int history_regression_add(struct db *db, const struct regression_row *r, int64_t *id,
			   struct err *e);
/* ERR_NOT_FOUND without that number. */
int history_regression_update(struct db *db, const struct regression_row *r, struct err *e);
/* By number; ERR_NOT_FOUND. */
int history_regression_get(struct db *db, int64_t id, struct regression_row *out, struct err *e);
/* Newest night first: open and acknowledged ones; all: closed ones too. */
int history_regressions(struct db *db, bool all, struct regression_row **out, size_t *n,
			struct err *e);

struct change_row {
	int64_t id, series, regression;
	char night[11], first_night[11], last_night[11];
	enum change_direction direction;
	enum change_level level;
	double est, lo, hi, p; /* relative change of the metric itself; lo, hi, p NaN: not known */
	int64_t rerun;         /* stage; 0: none */
	char *why;
	char found_night[11]; /* points up to it took part in the suspicion; "": not known */
	int64_t found_us;
};
void change_rows_free(struct change_row *v, size_t n);
int history_change_add(struct db *db, const struct change_row *c, int64_t *id, struct err *e);
int history_change_update(struct db *db, const struct change_row *c, struct err *e);
/* Of a regression (0: any) and a series (0: any), by night. */
int history_changes(struct db *db, int64_t regression, int64_t series, struct change_row **out,
		    size_t *n, struct err *e);

struct cause_row {
	int rank; /* 1: likeliest */
	enum cause_kind kind;
	char *key, *was, *is; /* was, is: NULL where there is none */
	double score;
	bool proved;
	char *why;
};
void cause_rows_free(struct cause_row *v, size_t n);
/* In place of those that are there. */
int history_causes_put(struct db *db, int64_t regression, const struct cause_row *v, size_t n,
		       struct err *e);
int history_causes(struct db *db, int64_t regression, struct cause_row **out, size_t *n,
		   struct err *e);

#endif
