/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cluster over the nights of a year, drawn from a seed: 200 series that 40 canaries, imported
 * histories and ordinary jobs feed, what is wrong with such figures (noise, drift, outliers, gaps,
 * slow nodes), twelve changes that are true, and changes of the environment beside them that mean
 * nothing. It plays the nights through the real database as `fettle nightly` does, answers the
 * re-runs that track_wanted() asks for, and counts what was found.
 */
#ifndef FETTLE_TESTS_UNIT_YEAR_H
#define FETTLE_TESTS_UNIT_YEAR_H

#include "tests/unit/store.h"

#include <time.h>

#include "experiments/regress.h"
#include "orchestrator/base/rng.h"
#include "orchestrator/method/track.h"

enum {
	YEAR_PLACES = 4,
	YEAR_PER_PLACE = 10, /* canaries of a partition: each feeds four series */
	YEAR_CANARIES = YEAR_PLACES * YEAR_PER_PLACE,
	YEAR_IMPORTED = 24,
	YEAR_OBSERVED = 16,
	YEAR_SUBJECTS = YEAR_CANARIES + YEAR_IMPORTED + YEAR_OBSERVED,
	YEAR_NODES = 8, /* of a partition */
	YEAR_PLANTED = 12,
	YEAR_NIGHTS = 365,
	YEAR_KEYS = 12,
	YEAR_SLOW_NODES = 3,
	YEAR_MAINTENANCE = 2,
	YEAR_WITHIN = 4, /* nights in which a change is to be confirmed */
};

/* Keys of the environment: whose they are, how often they change for no reason in a year, and
 * whether a recipe can set them. */
enum year_scope { YEAR_CLUSTER, YEAR_PLACE, YEAR_WORKLOAD };
static const struct year_key {
	const char *name;
	enum year_scope scope;
	double idle;
	bool settable;
} year_keys[YEAR_KEYS] = {
	{"slurm", YEAR_CLUSTER, 3, false},       {"modules", YEAR_CLUSTER, 8, false},
	{"lustre", YEAR_CLUSTER, 2, false},      {"kernel", YEAR_PLACE, 4, false},
	{"nvidia_driver", YEAR_PLACE, 3, false}, {"ib.mlx5_0.fw", YEAR_PLACE, 2, false},
	{"bios", YEAR_PLACE, 1, false},          {"git", YEAR_WORKLOAD, 20, false},
	{"container", YEAR_WORKLOAD, 6, false},  {"torch", YEAR_WORKLOAD, 3, false},
	{"nccl", YEAR_WORKLOAD, 2, true},        {"OMP_NUM_THREADS", YEAR_WORKLOAD, 1, true},
};

struct year_setup {
	uint64_t seed;
	int nights;
	int places;                                 /* of YEAR_PLACES that take part */
	double noise_night, noise_block, noise_arm; /* sd of logs; a point of two blocks: 1 % */
};

struct year_planted {
	int night;
	int key;
	int place, subject; /* by the key's scope; -1: all */
	double effect;      /* log, in the way that more is better */
	int version;        /* that brought it */
	int64_t regression; /* that tells of it; 0: none */
	int delay;          /* nights until it was confirmed; -1: never */
	bool blamed;        /* its key is the first cause */
	bool apart;         /* the data can tell its key from the others (year_apart) */
	char *causes;       /* the likeliest with their scores; heap */
};

/* What is measured night by night. */
struct year_subject {
	enum series_source source;
	int place;
	bool down; /* a smaller value is better */
	double base, slope, walk;
	int64_t campaign;
	int64_t series[4];   /* current, reference, pair, clock */
	int kept[YEAR_KEYS]; /* values that the reference holds on to */
};

struct year {
	struct year_setup setup;
	struct db *db;
	struct year_subject s[YEAR_SUBJECTS];
	struct year_planted planted[YEAR_PLANTED];
	int n_planted;
	/* versions: [key][who] of tonight; who: 0, place or subject by scope */
	int version[YEAR_KEYS][YEAR_SUBJECTS];
	bool turned[YEAR_NIGHTS][YEAR_KEYS][YEAR_SUBJECTS]; /* got another version that night */
	int slow_night[YEAR_SLOW_NODES], slow_place[YEAR_SLOW_NODES], slow_node[YEAR_SLOW_NODES];
	int stop[YEAR_MAINTENANCE]; /* first of three nights on which nothing runs */
	int64_t start;              /* day number of night 0 */
	int stages;
	/* what was found */
	int found, late, blamed, apart, apart_blamed, false_confirmed, suspects, transient,
		dismissed;
	int reruns, rerun_blocks;
	double gpu_hours, night_gpu_hours;
	double track_s, worst_track_s, judge_s, list_s;
	double db_mib;
	char *told; /* of what went wrong; heap */
};

static inline double year_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int year_who(const struct year *y, int key, int subject)
{
	switch (year_keys[key].scope) {
	case YEAR_CLUSTER:
		return 0;
	case YEAR_PLACE:
		return y->s[subject].place;
	case YEAR_WORKLOAD:
		return subject;
	}
	return 0;
}

static inline bool year_stopped(const struct year *y, int night)
{
	for (int i = 0; i < YEAR_MAINTENANCE; i++)
		if (night >= y->stop[i] && night < y->stop[i] + 3)
			return true;
	return false;
}

/* -- what happens in that year ----------------------------------------------------------------- */

/* Twelve nights with room between them: one after each maintenance, the others anywhere. */
static inline void year_plant(struct year *y)
{
	struct rng r = rng_at(y->setup.seed, 1, 0, 0);
	static const int keys[YEAR_PLANTED] = {4, 10, 8, 3, 11, 0, 5, 7, 10, 4, 9, 6};
	int first = 30, room = y->setup.nights - first - 8, n = room / 26;
	int canaries = y->setup.places * YEAR_PER_PLACE;

	y->n_planted = n < YEAR_PLANTED ? n : YEAR_PLANTED;
	for (int i = 0; i < y->n_planted; i++) {
		struct year_planted *p = &y->planted[i];
		int key = keys[i];

		*p = (struct year_planted){.key = key, .place = -1, .subject = -1, .delay = -1};
		p->night = first + i * room / y->n_planted +
			   (int)rng_below(&r, (uint64_t)(room / y->n_planted - 12));
		if (i % 6 == 3 && i / 6 < YEAR_MAINTENANCE) /* it came with the maintenance */
			y->stop[i / 6] = p->night - 3;
		p->effect = i % 6 == 5 ? 0.05 : -0.05;
		if (year_keys[key].scope == YEAR_PLACE)
			p->place = (int)rng_below(&r, (uint64_t)y->setup.places);
		else if (year_keys[key].scope == YEAR_WORKLOAD)
			p->subject = i == 10 && y->setup.places == YEAR_PLACES
					     ? YEAR_CANARIES + (int)rng_below(&r, YEAR_IMPORTED)
					     : (int)rng_below(&r, (uint64_t)canaries);
	}
	for (int i = 0; i < YEAR_MAINTENANCE; i++)
		if (!y->stop[i])
			y->stop[i] = -10;
	for (int i = 0; i < YEAR_SLOW_NODES; i++) {
		y->slow_night[i] = 40 + (int)rng_below(&r, (uint64_t)y->setup.nights);
		y->slow_place[i] = (int)rng_below(&r, (uint64_t)y->setup.places);
		y->slow_node[i] = (int)rng_below(&r, YEAR_NODES);
	}
}

/* Does the change concern this subject? Of those that share a key two thirds feel it. */
static inline bool year_feels(const struct year *y, const struct year_planted *p, int subject)
{
	struct rng r = rng_at(y->setup.seed, 2, (uint64_t)(p - y->planted), (uint64_t)subject);

	if (p->subject >= 0)
		return p->subject == subject;
	return (p->place < 0 || p->place == y->s[subject].place) && rng_uniform(&r) < 2.0 / 3;
}

/* Who gets another version of a key tonight, for no reason or because it is planted. */
static inline void year_environment(struct year *y, int night)
{
	struct rng r = rng_at(y->setup.seed, 3, (uint64_t)night, 0);
	int was[YEAR_KEYS][YEAR_SUBJECTS];

	memcpy(was, y->version, sizeof was);
	for (int k = 0; k < YEAR_KEYS; k++) {
		int n = year_keys[k].scope == YEAR_CLUSTER ? 1
			: year_keys[k].scope == YEAR_PLACE ? YEAR_PLACES
							   : YEAR_SUBJECTS;

		for (int who = 0; who < n; who++)
			if (rng_uniform(&r) < year_keys[k].idle / 365)
				y->version[k][who]++;
	}
	for (int i = 0; i < y->n_planted; i++) {
		struct year_planted *p = &y->planted[i];
		struct rng d = rng_at(y->setup.seed, 4, (uint64_t)i, 0);
		int who = p->subject >= 0 ? p->subject : p->place >= 0 ? p->place : 0;
		int near = (int)rng_below(&d, 5) - 2; /* decoys: a night or two before or after */
		int subject = p->subject >= 0 ? p->subject
					      : (p->place < 0 ? 0 : p->place) * YEAR_PER_PLACE;

		if (night == p->night) {
			p->version = ++y->version[p->key][who];
			/* for all at once, and what is ever changing where it is felt */
			if (rng_uniform(&d) < 0.6)
				y->version[p->key == 0 ? 1 : rng_below(&d, 3)][0]++;
			if (rng_uniform(&d) < 0.6 && p->key != 7)
				y->version[7][subject]++;
			if (rng_uniform(&d) < 0.3 && p->key != 11)
				y->version[11][subject]++; /* a recipe could set this one */
		}
		if (night == p->night + (near < 0 ? near : near + 1)) {
			int key = 3 + (int)rng_below(&d, 4);

			if (key != p->key)
				y->version[key][y->s[subject].place]++;
		}
	}
	for (int k = 0; k < YEAR_KEYS; k++)
		for (int who = 0; who < YEAR_SUBJECTS; who++)
			y->turned[night][k][who] = y->version[k][who] != was[k][who];
}

/* Did it run that night? The walk of its level comes from the same numbers. */
static inline bool year_measured(const struct year *y, int subject, int night, double *walk)
{
	struct rng r = rng_at(y->setup.seed, 9, (uint64_t)subject, (uint64_t)night);

	*walk = 0.0005 * rng_normal(&r);
	return y->s[subject].series[0] && rng_uniform(&r) > 0.04;
}

/* Did a key turn between the nights around the change on which the subject ran? */
static inline bool year_near(const struct year *y, const struct year_planted *p, int key,
			     int subject)
{
	int from = p->night - 1, to = p->night;
	double walk;

	while (from > 0 && (year_stopped(y, from) || !year_measured(y, subject, from, &walk)))
		from--;
	while (to + 1 < y->setup.nights &&
	       (year_stopped(y, to) || !year_measured(y, subject, to, &walk)))
		to++;
	for (int night = from + 1; night <= to; night++)
		if (y->turned[night][key][year_who(y, key, subject)])
			return true;
	return false;
}

/* Do the data hold what tells the key that did it from all others? Not if another one changed for
 * the same subjects, between the same two nights on which each of them ran, and a re-run can set
 * neither of them back: then only habits speak. */
static inline bool year_apart(const struct year *y, const struct year_planted *p)
{
	bool settable = p->subject >= 0 && y->s[p->subject].source == SERIES_CANARY;

	if (settable && year_keys[p->key].settable)
		return true;
	for (int k = 0; k < YEAR_KEYS; k++) {
		bool rival = k != p->key && year_keys[k].scope == year_keys[p->key].scope &&
			     !(settable && year_keys[k].settable);

		for (int s = 0; rival && s < YEAR_SUBJECTS; s++)
			rival = !y->s[s].series[0] || !year_feels(y, p, s) || year_near(y, p, k, s);
		if (rival)
			return false;
	}
	return true;
}

static inline double year_level(const struct year *y, int subject, int night, const int *kept)
{
	const struct year_subject *s = &y->s[subject];
	double level = s->slope * night / 365 + s->walk;

	for (int i = 0; i < y->n_planted; i++) {
		const struct year_planted *p = &y->planted[i];

		if (night < p->night || !year_feels(y, p, subject))
			continue;
		/* a reference that sets the key back is as it was */
		if (kept && year_keys[p->key].settable && kept[p->key] < p->version)
			continue;
		level += p->effect;
	}
	return level;
}

static inline bool year_slow(const struct year *y, int night, int place, int node)
{
	for (int i = 0; i < YEAR_SLOW_NODES; i++)
		if (y->slow_place[i] == place && y->slow_node[i] == node &&
		    night >= y->slow_night[i] && night < y->slow_night[i] + 5)
			return true;
	return false;
}

/* Logs of the metric of both arms in block `b`, + is better. `salt` tells stages of a night apart.
 */
static inline void year_block(const struct year *y, int subject, int night, int salt, int b,
			      const int *kept, double arm[2], int *node)
{
	const struct year_setup *c = &y->setup;
	struct rng n = rng_at(c->seed, 5, (uint64_t)subject, (uint64_t)night);
	struct rng r = rng_at(c->seed, 6 + (uint64_t)salt, (uint64_t)subject,
			      (uint64_t)night * 64 + (uint64_t)b);
	double common = c->noise_night * rng_normal(&n);

	if (rng_uniform(&n) < 0.003) /* a night on which everything hangs */
		common -= 0.08 + 0.2 * rng_uniform(&n);
	common += c->noise_block * rng_normal(&r);
	*node = (int)rng_below(&r, YEAR_NODES);
	if (year_slow(y, night, y->s[subject].place, *node))
		common -= 0.1;
	for (int a = 0; a < 2; a++) {
		arm[a] = year_level(y, subject, night, a ? kept : NULL) + common +
			 c->noise_arm * rng_normal(&r);
		if (rng_uniform(&r) < 0.005)
			arm[a] -= 0.08 + 0.2 * rng_uniform(&r);
	}
}

static inline double year_value(const struct year_subject *s, double log_gain)
{
	return s->base * exp(s->down ? -log_gain : log_gain);
}

/* -- the store --------------------------------------------------------------------------------- */

static inline int64_t year_put_series(struct year *y, int subject, enum series_role role,
				      const char *metric, enum better better)
{
	const struct year_subject *s = &y->s[subject];
	char workload[32], place[32];
	struct series_row row = {.source = s->source,
				 .workload = workload,
				 .config = TEXT("c"),
				 .place = place,
				 .role = role,
				 .metric = TEXT(metric),
				 .stat = TEXT("mean"),
				 .better = better,
				 .min_effect = 0.02,
				 .campaign = s->campaign};
	struct err e = {0};

	row.unit = role == SERIES_PAIR ? TEXT("1") : TEXT("u");
	snprintf(workload, sizeof workload, "w%02d", subject);
	snprintf(place, sizeof place, "part%d", s->place);
	assert_ok(history_series_put(y->db, &row, STORE_NOW_US, &e));
	return row.id;
}

static inline void year_subjects(struct year *y)
{
	struct rng r = rng_at(y->setup.seed, 7, 0, 0);

	for (int i = 0; i < YEAR_SUBJECTS; i++) {
		struct year_subject *s = &y->s[i];
		char name[32];
		enum better better;

		s->source = i < YEAR_CANARIES                   ? SERIES_CANARY
			    : i < YEAR_CANARIES + YEAR_IMPORTED ? SERIES_IMPORTED
								: SERIES_OBSERVED;
		s->place = i < YEAR_CANARIES ? i / YEAR_PER_PLACE : i % YEAR_PLACES;
		s->down = i % 2 == 1;
		s->base = 50 + 500 * rng_uniform(&r);
		s->slope = 0.06 * rng_uniform(&r) - 0.03;
		if (s->place >= y->setup.places)
			continue;
		better = s->down ? BETTER_DOWN : BETTER_UP;
		snprintf(name, sizeof name, "canary-%02d", i);
		if (s->source == SERIES_CANARY)
			s->campaign = store_campaign(y->db, name);
		s->series[0] = year_put_series(y, i, SERIES_CURRENT,
					       s->down ? "step_time_ms" : "tokens_per_s", better);
		if (s->source != SERIES_CANARY)
			continue;
		s->series[1] = year_put_series(y, i, SERIES_REFERENCE,
					       s->down ? "step_time_ms" : "tokens_per_s", better);
		s->series[2] = year_put_series(y, i, SERIES_PAIR,
					       s->down ? "step_time_ms" : "tokens_per_s", better);
		s->series[3] = year_put_series(y, i, SERIES_CURRENT, "sm_clock_mhz", BETTER_UP);
	}
}

static inline int64_t year_put_environment(struct year *y, int subject)
{
	struct buf b = {0};
	struct err e = {0};
	int64_t id;

	buf_str(&b, "{\"cpu\":\"EPYC 9654\",\"gpu.model\":\"H200\"");
	for (int k = 0; k < YEAR_KEYS; k++)
		buf_printf(&b, ",\"%s\":\"%d\"", year_keys[k].name,
			   y->version[k][year_who(y, k, subject)]);
	buf_char(&b, '}');
	assert_ok(history_environment_put(y->db, b.data, &id, &e));
	buf_free(&b);
	return id;
}

static inline void year_put_point(struct year *y, int64_t series, const char *night,
				  const double *v, const char (*nodes)[16], size_t n,
				  int64_t environment)
{
	struct replicate reps[8];
	struct err e = {0};

	for (size_t i = 0; i < n; i++)
		reps[i] = (struct replicate){v[i], nodes[i]};
	assert_ok(history_point_put(y->db, series, night, STORE_NOW_US, reps, n, environment, 0,
				    false, NULL, &e));
}

/* What a subject's night gives: two blocks of two arms, or one value of an ordinary job. */
static inline void year_measure(struct year *y, int subject, int night, const char *date)
{
	const struct year_subject *s = &y->s[subject];
	int64_t environment = year_put_environment(y, subject);
	struct rng r = rng_at(y->setup.seed, 8, (uint64_t)subject, (uint64_t)night);
	size_t blocks = s->source == SERIES_CANARY ? 2 : 1;
	double current[2], reference[2], pair[2], clock[2];
	char nodes[2][16];

	for (size_t b = 0; b < blocks; b++) {
		double arm[2];
		int node;

		year_block(y, subject, night, 0, (int)b, s->kept, arm, &node);
		snprintf(nodes[b], sizeof nodes[b], "p%dn%d", s->place, node);
		current[b] = year_value(s, arm[0]);
		reference[b] = year_value(s, arm[1]);
		pair[b] = current[b] / reference[b];
		clock[b] = 1980 * exp(0.003 * rng_normal(&r));
	}
	year_put_point(y, s->series[0], date, current, nodes, blocks, environment);
	if (s->source != SERIES_CANARY)
		return;
	year_put_point(y, s->series[1], date, reference, nodes, blocks, environment);
	year_put_point(y, s->series[2], date, pair, nodes, blocks, environment);
	year_put_point(y, s->series[3], date, clock, nodes, blocks, environment);
	/* eight GPUs, two arms of five minutes a block */
	y->night_gpu_hours += (double)blocks * 2 * 8 * 5 / 60;
}

/* -- re-runs -------------------------------------------------------------------------------------
 */

static inline int64_t year_stage(struct year *y, const struct wanted_row *w, const char *date)
{
	struct stage_row s = {.campaign = w->campaign,
			      .seq = ++y->stages,
			      .round = 1,
			      .kind = STAGE_CANARY,
			      .planned_blocks = 6};
	struct canary_row c = {
		.campaign = w->campaign, .purpose = CANARY_RERUN, .regression = w->regression};
	struct err e = {0};

	assert_ok(query_stage_add(y->db, &s, &e));
	c.stage = s.id;
	str_copy(c.night, sizeof c.night, date);
	assert_ok(history_canary_put(y->db, &c, &e));
	return s.id;
}

/* Settable keys in which the reference, as it was before the change, would differ; heap or NULL. */
static inline char *year_set_back(const struct year *y, int subject, const struct wanted_row *w,
				  int *kept)
{
	struct buf b = {0};

	for (int k = 0; k < YEAR_KEYS; k++) {
		kept[k] = y->version[k][year_who(y, k, subject)];
		if (!year_keys[k].settable || !w->changed || !strstr(w->changed, year_keys[k].name))
			continue;
		kept[k]--;
		buf_printf(&b, "%s%s", b.len ? "," : "", year_keys[k].name);
	}
	return b.len ? buf_take(&b) : NULL;
}

static inline void year_rerun(struct year *y, int night, const char *date,
			      const struct wanted_row *w)
{
	struct rerun_result r = {.regression = w->regression};
	enum rerun_answer answer = RERUN_MORE;
	double current[6], reference[6];
	int kept[YEAR_KEYS], subject = 0, node;
	_cleanup_free_ char *set_back = NULL, *why = NULL;
	struct err e = {0};

	while (y->s[subject].campaign != w->campaign)
		subject++;
	set_back = year_set_back(y, subject, w, kept);
	if (!set_back && strcmp(w->not_before, date) > 0)
		return;
	r.series = y->s[subject].series[0];
	str_copy(r.night, sizeof r.night, date);
	assert_ok(db_begin(y->db, "stage", &e));
	r.stage = year_stage(y, w, date);
	assert_ok(db_commit(y->db, &e));
	r.current = current;
	r.reference = set_back ? reference : NULL;
	r.set_back = set_back;
	y->reruns++;
	while (r.n < 6 && answer == RERUN_MORE) {
		double arm[2], t;

		year_block(y, subject, night, 1 + y->stages, (int)r.n, kept, arm, &node);
		current[r.n] = log(year_value(&y->s[subject], arm[0]));
		reference[r.n++] = log(year_value(&y->s[subject], arm[1]));
		y->rerun_blocks++;
		y->gpu_hours += (set_back ? 2 : 1) * 8 * 5 / 60.0;
		if (r.n < 3)
			continue;
		free(why);
		why = NULL;
		t = year_now();
		assert_ok(track_judge(y->db, &r, STORE_NOW_US, &answer, &why, &e));
		y->judge_s += year_now() - t;
	}
}

/* -- the year ------------------------------------------------------------------------------------
 */

/* People look at what was confirmed ten nights ago: every other one is the new normal. */
static inline void year_people(struct year *y, int night)
{
	struct regression_row *v = NULL;
	size_t n = 0;
	struct err e = {0};

	assert_ok(db_begin(y->db, "people", &e));
	assert_ok(history_regressions(y->db, false, &v, &n, &e));
	for (size_t i = 0; i < n; i++) {
		int64_t at = regress_day(v[i].confirmed_night);

		if (v[i].level != CHANGE_CONFIRMED || v[i].state != REGRESSION_OPEN ||
		    at + 10 > y->start + night)
			continue;
		v[i].state = v[i].id % 2 ? REGRESSION_ACCEPTED : REGRESSION_ACKNOWLEDGED;
		assert_ok(history_regression_update(y->db, &v[i], &e));
		for (int s = 0; v[i].state == REGRESSION_ACCEPTED && s < YEAR_CANARIES; s++)
			for (int k = 0; k < YEAR_KEYS; k++)
				y->s[s].kept[k] = y->version[k][year_who(y, k, s)];
	}
	regression_rows_free(v, n);
	assert_ok(db_commit(y->db, &e));
}

static inline void year_night(struct year *y, int night)
{
	struct track_result result;
	struct wanted_row *wanted = NULL;
	struct err e = {0};
	size_t n = 0;
	char date[11];
	double t;

	regress_night(y->start + night, date);
	year_environment(y, night);
	if (year_stopped(y, night))
		return;
	assert_ok(db_begin(y->db, "points", &e));
	for (int i = 0; i < YEAR_SUBJECTS; i++) {
		double walk;
		bool runs = year_measured(y, i, night, &walk);

		y->s[i].walk += walk;
		if (runs)
			year_measure(y, i, night, date);
	}
	assert_ok(db_commit(y->db, &e));
	t = year_now();
	assert_ok(track_night(y->db, date, STORE_NOW_US, &result, &e));
	t = year_now() - t;
	y->track_s += t;
	y->worst_track_s = fmax(y->worst_track_s, t);
	y->suspects += result.suspects;
	y->transient += result.transient;
	t = year_now();
	assert_ok(track_wanted(y->db, &wanted, &n, &e));
	y->track_s += year_now() - t;
	for (size_t i = 0; i < n; i++)
		year_rerun(y, night, date, &wanted[i]);
	wanted_rows_free(wanted, n);
	year_people(y, night);
}

/* Nights on which anything ran between two. */
static inline int year_nights_between(const struct year *y, int a, int b)
{
	int n = 0;

	for (int night = a < b ? a : b; night < (a < b ? b : a); night++)
		n += !year_stopped(y, night);
	return n;
}

/* The planted change that a regression tells of; NULL: none. */
static inline struct year_planted *year_match(struct year *y, const struct regression_row *r)
{
	struct change_row *v = NULL;
	struct year_planted *out = NULL;
	size_t n = 0;
	struct err e = {0};

	assert_ok(history_changes(y->db, r->id, 0, &v, &n, &e));
	for (int i = 0; i < y->n_planted; i++) {
		struct year_planted *p = &y->planted[i];
		bool there = false;

		if (year_nights_between(y, (int)(regress_day(r->night) - y->start), p->night) > 3 ||
		    r->kind != (p->effect < 0 ? REGRESSION_WORSE : REGRESSION_BETTER))
			continue;
		for (size_t k = 0; k < n; k++)
			for (int s = 0; s < YEAR_SUBJECTS; s++)
				there = there || (v[k].level == CHANGE_CONFIRMED &&
						  (v[k].series == y->s[s].series[0] ||
						   v[k].series == y->s[s].series[2]) &&
						  year_feels(y, p, s));
		if (there)
			out = p;
	}
	change_rows_free(v, n);
	return out;
}

static inline void year_tell(struct year *y, const struct regression_row *r, const char *what)
{
	struct buf b = {0};

	buf_printf(&b, "%s    regression %lld of %s (%s, %s, found %s, confirmed %s): %s\n",
		   y->told ? y->told : "", (long long)r->id, r->night,
		   regression_kind_name(r->kind), regression_state_name(r->state), r->found_night,
		   r->confirmed_night, what);
	free(y->told);
	y->told = buf_take(&b);
}

static inline void year_blame(struct year *y, struct year_planted *p)
{
	struct cause_row *v = NULL;
	struct buf b = {0};
	size_t n = 0;
	struct err e = {0};

	assert_ok(history_causes(y->db, p->regression, &v, &n, &e));
	p->blamed = n > 0 && strcmp(v[0].key, year_keys[p->key].name) == 0;
	for (size_t i = 0; i < n && i < 4; i++)
		buf_printf(&b, "%s%s %.3f (%s)", i ? "; " : "", v[i].key, v[i].score, v[i].why);
	p->causes = buf_take(&b);
	cause_rows_free(v, n);
}

static inline void year_count(struct year *y)
{
	struct regression_row *v = NULL;
	size_t n = 0;
	struct err e = {0};
	double t = year_now();

	assert_ok(history_regressions(y->db, true, &v, &n, &e));
	y->list_s = year_now() - t;
	for (size_t i = n; i-- > 0;) {
		struct year_planted *p;

		y->dismissed += v[i].state == REGRESSION_DISMISSED;
		if (v[i].level != CHANGE_CONFIRMED || v[i].state == REGRESSION_DISMISSED)
			continue;
		p = year_match(y, &v[i]);
		if (!p || p->regression) {
			y->false_confirmed++;
			year_tell(y, &v[i], p ? "told twice" : "false");
			continue;
		}
		p->regression = v[i].id;
		p->delay = (int)(regress_day(v[i].confirmed_night) - y->start) - p->night;
		year_blame(y, p);
	}
	regression_rows_free(v, n);
	for (int i = 0; i < y->n_planted; i++) {
		struct year_planted *p = &y->planted[i];

		p->apart = year_apart(y, p);
		y->apart += p->apart;
		y->apart_blamed += p->apart && p->blamed;
		y->found += p->regression != 0;
		y->late += p->regression && p->delay > YEAR_WITHIN;
		y->blamed += p->blamed;
	}
}

static inline void year_play(struct year *y, const struct year_setup *c, const char *path)
{
	struct err e = {0};

	*y = (struct year){.setup = *c, .start = regress_day("2026-01-01")};
	assert_ok(db_open(path, DB_CREATE, NULL, &y->db, &e));
	year_subjects(y);
	year_plant(y);
	for (int night = 0; night < c->nights; night++)
		year_night(y, night);
	year_count(y);
}

static inline void year_done(struct year *y)
{
	for (int i = 0; i < y->n_planted; i++)
		free(y->planted[i].causes);
	db_close(y->db);
	free(y->told);
}

#endif
