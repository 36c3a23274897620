/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/blame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/stats.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"

/* Of a series that is no member: it moved, or it did not; between them nothing is known. */
static const double MOVED_P = 0.001;
static const double STILL_P = 0.1;
/* A metric that moved is a symptom: below any key that changed with it. */
static const double METRIC_SCORE = 0.1;
static const double PROVED_SCORE = 1;
static const double SCORE_MOST = 0.999999; /* of what none proved */
/* Log likelihood by which another night is nearly as likely. */
static const double NEARLY = 2;
enum {
	LOOK_BACK = 365, /* nights in which the habits of a key are looked at */
	LOOK_AHEAD = 5,  /* points after the change that say whether a series moved */
	CAUSES_MAX = 10, /* more help nobody */
	METRICS_MAX = 3,
	BEFORE_LEAST = 3,  /* points that a level needs, for a hint */
	ABOUT_NIGHTS = 30, /* after the first sign of an event, in which it began */
	NEAR_NIGHTS = 1,   /* a known change so near to a turn belongs to it */
};

/* Environments by number, read once; names of keys by number. */
struct blame {
	struct past *w;
	struct kvs *env;
	bool *have;
	size_t n_env, cap_env, cap_have;
	struct strv keys;
	struct regress_turn *turns;
	size_t n_turns, cap_turns;
	int *moved;
	struct regress_window *windows;
	struct regress_span event, about; /* when it was; what its members say of that */
	struct cause_row *causes;
	size_t n_causes, cap_causes;
};

static void blame_done(struct blame *b)
{
	for (size_t i = 0; i < b->n_env; i++)
		kvs_free(&b->env[i]);
	free(b->env);
	free(b->have);
	strv_free(&b->keys);
	free(b->turns);
	free(b->moved);
	free(b->windows);
	cause_rows_free(b->causes, b->n_causes);
}

/* -- environments ---------------------------------------------------------------------------- */

static int parse_environment(struct db *db, int64_t id, struct kvs *out, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_(json_freep) struct json *j = NULL;
	int rc = history_environment_get(db, id, &text, e);

	if (rc < 0 || (rc = json_parse("environment", text, strlen(text), &j, e)) < 0)
		return rc;
	/* appended, not set: keys of an object are unique and sorted, and kvs_set looks for them */
	for (const struct json *m = json_first(j); m; m = json_next(m)) {
		out->v = xgrow(out->v, out->n, &out->cap, sizeof *out->v);
		out->v[out->n++] = (struct kv){xstrdup(json_key(m)), xstrdup(json_text(m, ""))};
	}
	return 0;
}

/* *out is borrowed. Numbers of environments are dense: they count rows. */
static int environment(struct blame *b, int64_t id, const struct kvs **out, struct err *e)
{
	size_t i = (size_t)id;
	int rc = 0;

	if (i >= b->n_env) {
		b->env = xgrow(b->env, i, &b->cap_env, sizeof *b->env);
		b->have = xgrow(b->have, i, &b->cap_have, sizeof *b->have);
		b->n_env = i + 1;
	}
	if (!b->have[i])
		rc = parse_environment(b->w->db, id, &b->env[i], e);
	b->have[i] = rc == 0;
	*out = &b->env[i];
	return rc;
}

/* The next key in which two sorted lists differ; false: none any more. */
static bool next_difference(const struct kvs *a, const struct kvs *b, size_t at[2],
			    const char **key, const char **was, const char **is)
{
	while (at[0] < a->n || at[1] < b->n) {
		int order = at[0] == a->n   ? 1
			    : at[1] == b->n ? -1
					    : strcmp(a->v[at[0]].key, b->v[at[1]].key);

		*key = order <= 0 ? a->v[at[0]].key : b->v[at[1]].key;
		*was = order <= 0 ? a->v[at[0]++].value : NULL;
		*is = order >= 0 ? b->v[at[1]++].value : NULL;
		if (!str_eq(*was, *is))
			return true;
	}
	return false;
}

static int key_number(struct blame *b, const char *key)
{
	for (size_t i = 0; i < b->keys.n; i++)
		if (strcmp(b->keys.v[i], key) == 0)
			return (int)i;
	strv_add(&b->keys, key);
	return (int)b->keys.n - 1;
}

/* Environments of the last point before a change and of the first one at the end of its range; 0:
 * not known. */
static void around(const struct past_series *s, const struct regress_span *r, int64_t *a,
		   int64_t *b)
{
	size_t i = past_at(s, r->first), k = past_at(s, r->last);

	*a = *b = 0;
	while (i > 0 && !*a)
		*a = s->points[--i].environment;
	for (; k < s->n && !*b; k++)
		*b = s->points[k].environment;
}

/* Both environments around a change, borrowed; *x NULL: one of them is not known, or they are one.
 */
static int both(struct blame *b, const struct past_series *s, const struct regress_span *r,
		const struct kvs **x, const struct kvs **y, struct err *e)
{
	int64_t ids[2];
	int rc;

	*x = NULL;
	around(s, r, &ids[0], &ids[1]);
	if (!ids[0] || !ids[1] || ids[0] == ids[1])
		return 0;
	/* The second may move the first: both are asked for again. */
	if ((rc = environment(b, ids[0], x, e)) == 0 && (rc = environment(b, ids[1], y, e)) == 0)
		rc = environment(b, ids[0], x, e);
	if (rc < 0)
		*x = NULL;
	return rc;
}

int blame_changed(struct past *w, const struct change_row *c, char **json, struct err *e)
{
	_cleanup_(blame_done) struct blame b = {.w = w};
	_cleanup_(json_freep) struct json *out = json_object();
	const struct past_series *s = past_series(w, c->series);
	const struct regress_span r = past_span(c);
	const struct kvs *x = NULL, *y;
	const char *key, *was, *is;
	size_t at[2] = {0, 0};
	int rc = s ? both(&b, s, &r, &x, &y, e) : 0;

	*json = NULL;
	while (x && next_difference(x, y, at, &key, &was, &is)) {
		struct json *pair = json_object();

		json_set_text(pair, "was", was);
		json_set_text(pair, "is", is);
		json_set(out, key, pair);
	}
	if (json_len(out) > 0)
		*json = json_print(out, false);
	return rc;
}

int blame_shared(struct past *w, const struct past_series *a, const struct regress_span *at_a,
		 const struct past_series *b, const struct regress_span *at_b, bool *out,
		 struct err *e)
{
	_cleanup_(blame_done) struct blame one = {.w = w}, two = {.w = w};
	const struct kvs *x, *y, *v = NULL, *z;
	const char *key, *was, *is, *key_b, *was_b, *is_b;
	size_t at[2] = {0, 0};
	int rc = both(&one, a, at_a, &x, &y, e);

	*out = false;
	if (rc == 0 && x)
		rc = both(&two, b, at_b, &v, &z, e);
	while (v && !*out && next_difference(x, y, at, &key, &was, &is)) {
		size_t at_two[2] = {0, 0};

		while (!*out && next_difference(v, z, at_two, &key_b, &was_b, &is_b))
			*out = strcmp(key, key_b) == 0 && str_eq(is, is_b);
	}
	return rc;
}

/* -- what moved ------------------------------------------------------------------------------ */

/* How the points since the event stand against those before it. */
struct step {
	double est, p; /* relative; two-sided */
};

static bool step_of(struct past *w, const struct past_series *s, const struct regress_span *event,
		    int64_t first, struct step *out)
{
	struct regress_noise before = past_before(w, s, first);
	size_t from = past_at(s, event->day), n;
	double after;

	if (from == s->n || before.n < BEFORE_LEAST)
		return false;
	n = s->n - from < LOOK_AHEAD ? s->n - from : LOOK_AHEAD;
	after = stats_median(s->y + from, n); /* one of them may be far off */
	out->est = regress_relative(after - before.mean, before.mean, s->logs);
	out->p = 2 * regress_fresh_p(&before, after, (n + 1) / 2, after < before.mean ? -1 : 1);
	return true;
}

/* A change as a gain; of a metric without direction as it is. */
static double gain(enum better better, double est)
{
	return better == BETTER_DOWN ? -est : est;
}

static int moved(struct past *w, const struct past_series *s, const struct regress_span *event,
		 int64_t first, double lead)
{
	struct step t;

	if (past_context(s) || s->row.role != SERIES_CURRENT || !step_of(w, s, event, first, &t))
		return -1;
	if (t.p <= MOVED_P && fabs(t.est) >= s->min_effect)
		return gain(s->row.better, t.est) * lead > 0 ? 1 : -1;
	return t.p > STILL_P || fabs(t.est) < s->min_effect / 2 ? 0 : -1;
}

/* The nights about the event of a series that can show it. `gained`: by the clearest member. */
static void find_window(struct past *w, const struct past_series *s,
			const struct regress_span *event, double gained, struct regress_window *out)
{
	size_t from = past_at(s, event->first - REGRESS_SLACK - 1),
	       to = past_at(s, event->last) + LOOK_AHEAD;
	double step = gain(s->row.better, gained);

	if (past_context(s) || s->row.role != SERIES_CURRENT)
		return;
	out->before = past_before(w, s, event->first);
	out->step = s->logs ? copysign(log1p(fabs(step)), step) : step * fabs(out->before.mean);
	out->day = s->day + from;
	out->y = s->y + from;
	to = to < s->n ? to : s->n;
	if (out->before.n >= BEFORE_LEAST && out->step != 0 && to > from)
		out->n = to - from;
	while (strcmp(w->s[out->workload].row.workload, s->row.workload) != 0)
		out->workload++;
	while (strcmp(w->s[out->place].row.place, s->row.place) != 0)
		out->place++;
}

/* By the points themselves: who was suspected that night may have had a bad night of its own. */
static void find_moved(struct blame *b, int64_t regression, const struct change_row *lead)
{
	struct past *w = b->w;
	struct past_series *s;

	s = past_series(w, lead->series);
	b->moved = xcalloc(w->n + 1, sizeof *b->moved);
	b->windows = xcalloc(w->n + 1, sizeof *b->windows);
	for (size_t i = 0; i < w->n; i++) {
		b->moved[i] = moved(w, &w->s[i], &b->event, b->about.first,
				    gain(s->row.better, lead->est));
		find_window(w, &w->s[i], &b->about, gain(s->row.better, lead->est), &b->windows[i]);
	}
	for (size_t i = 0; i < w->n_changes; i++) {
		const struct change_row *c = &w->changes[i];
		struct past_series *o;

		s = past_series(w, c->series);
		if (c->regression != regression || c->level != CHANGE_CONFIRMED || !s)
			continue;
		o = s->row.role == SERIES_CURRENT ? s : past_beside(w, s, SERIES_CURRENT);
		if (o && !past_context(o))
			b->moved[o - w->s] = 1;
	}
	s = past_series(w, lead->series);
	if (s->row.role != SERIES_CURRENT)
		s = past_beside(w, s, SERIES_CURRENT);
	if (s)
		b->moved[s - w->s] = 1;
}

/* -- keys ------------------------------------------------------------------------------------ */

static bool known_change(const struct past *w, int64_t series, int64_t after, int64_t by)
{
	for (size_t i = 0; i < w->n_changes; i++) {
		const struct change_row *c = &w->changes[i];
		int64_t day = c->series == series ? regress_day(c->night) : INT64_MIN;

		if (c->level == CHANGE_CONFIRMED && day > after - NEAR_NIGHTS &&
		    day <= by + NEAR_NIGHTS)
			return true;
	}
	return false;
}

static int add_turns(struct blame *b, size_t series, size_t from, size_t to, struct err *e)
{
	const struct past_series *s = &b->w->s[series];
	const struct kvs *x, *y;
	struct regress_turn t = {.series = series, .after = s->day[from], .by = s->day[to]};
	size_t at[2] = {0, 0};
	const char *key;
	int rc;

	if ((rc = environment(b, s->points[to].environment, &y, e)) < 0 ||
	    (rc = environment(b, s->points[from].environment, &x, e)) < 0 ||
	    (rc = environment(b, s->points[to].environment, &y, e)) < 0)
		return rc;
	t.moved = known_change(b->w, s->row.id, t.after, t.by);
	while (next_difference(x, y, at, &key, &t.was, &t.is)) {
		t.key = key_number(b, key);
		b->turns = xgrow(b->turns, b->n_turns, &b->cap_turns, sizeof *b->turns);
		b->turns[b->n_turns++] = t;
	}
	return 0;
}

static int find_turns(struct blame *b, struct err *e)
{
	int rc = 0;

	for (size_t k = 0; k < b->w->n && rc == 0; k++) {
		const struct past_series *s = &b->w->s[k];
		size_t last = SIZE_MAX;

		for (size_t i = past_at(s, b->event.day - LOOK_BACK);
		     (b->moved[k] >= 0 || b->windows[k].n) && i < s->n && rc == 0; i++) {
			if (!s->points[i].environment)
				continue;
			if (last != SIZE_MAX &&
			    s->points[i].environment != s->points[last].environment)
				rc = add_turns(b, k, last, i, e);
			last = i;
		}
	}
	return rc;
}

/* -- causes ---------------------------------------------------------------------------------- */

static struct cause_row *add_cause(struct blame *b, enum cause_kind kind, const char *key,
				   const char *was, const char *is, double score, char *why)
{
	struct cause_row *c;

	b->causes = xgrow(b->causes, b->n_causes, &b->cap_causes, sizeof *b->causes);
	c = &b->causes[b->n_causes++];
	*c = (struct cause_row){.kind = kind,
				.key = xstrdup(key),
				.was = xstrdup(was),
				.is = xstrdup(is),
				.score = score,
				.why = why};
	return c;
}

static char *suspect_text(const struct regress_suspect *s)
{
	struct buf b = {0};

	buf_printf(&b, "changed for %zu of %zu series that moved and %zu that did not", s->moved,
		   s->moved + s->elsewhere, s->still);
	if (s->away > 0)
		buf_printf(&b, ", %lld night%s outside the range", (long long)s->away,
			   s->away == 1 ? "" : "s");
	if (s->idle > 0)
		buf_printf(&b, "; on %zu other night%s nothing moved with it", s->idle,
			   s->idle == 1 ? "" : "s");
	return buf_take(&b);
}

static int add_keys(struct blame *b, struct err *e)
{
	struct regress_suspect *v = NULL;
	int rc = find_turns(b, e);
	size_t n;

	if (rc < 0)
		return rc;
	n = regress_rank(b->turns, b->n_turns, b->moved, b->windows, b->w->n, &b->event, &v);
	for (size_t i = 0; i < n; i++)
		add_cause(b, CAUSE_ENVIRONMENT, b->keys.v[v[i].key], v[i].was, v[i].is, v[i].score,
			  suspect_text(&v[i]));
	free(v);
	return 0;
}

/* Replicates of the points since the change. */
struct since {
	struct replicate_row *rows[LOOK_AHEAD];
	size_t n[LOOK_AHEAD];
	struct regress_replicate *v;
	size_t used, cap;
};

static void since_done(struct since *t)
{
	for (size_t i = 0; i < LOOK_AHEAD; i++)
		replicate_rows_free(t->rows[i], t->n[i]);
	free(t->v);
}

/* The node that alone carries what begins with points[at]; heap, NULL: none. */
static int find_node(struct past *w, const struct past_series *s, size_t at, int64_t first,
		     char **node, double *score, struct err *e)
{
	struct regress_noise before = past_before(w, s, first);
	_cleanup_(since_done) struct since t = {0};
	size_t n = s->n - at < LOOK_AHEAD ? s->n - at : LOOK_AHEAD;
	int rc = 0;

	*node = NULL;
	if (before.n < BEFORE_LEAST || n == 0)
		return 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = history_replicates(w->db, s->points[at + i].id, &t.rows[i], &t.n[i], e);
		for (size_t k = 0; rc == 0 && k < t.n[i]; k++) {
			double y = t.rows[i][k].value;

			t.v = xgrow(t.v, t.used, &t.cap, sizeof *t.v);
			t.v[t.used++] = (struct regress_replicate){
				(s->logs && y > 0 ? log(y) : y) - before.mean, t.rows[i][k].nodes};
		}
	}
	if (rc == 0)
		regress_node(t.v, t.used, stats_mean(s->y + at, n) - before.mean, node, score);
	return rc;
}

int blame_on_one_node(struct past *w, const struct past_series *s, size_t at, bool *out,
		      struct err *e)
{
	_cleanup_free_ char *node = NULL;
	double score;
	int rc = find_node(w, s, at, s->day[at], &node, &score, e);

	*out = node != NULL;
	return rc;
}

static int add_node(struct blame *b, const struct change_row *c, struct err *e)
{
	const struct past_series *s = past_series(b->w, c->series);
	_cleanup_free_ char *node = NULL;
	double score;
	int rc = find_node(b->w, s, past_at(s, regress_day(c->night)), past_span(c).first, &node,
			   &score, e);

	for (size_t i = 0; node && i < b->n_causes; i++) /* a key is on all that have it */
		b->causes[i].score *= 1 - score;
	if (node)
		add_cause(b, CAUSE_NODE, node, NULL, NULL, score,
			  xasprintf("the change in %s of %s is on this node alone", s->row.metric,
				    s->row.workload));
	return rc;
}

static void add_metrics(struct blame *b, int64_t campaign)
{
	size_t added = 0;

	for (size_t i = 0; i < b->w->n && added < METRICS_MAX; i++) {
		const struct past_series *s = &b->w->s[i];
		struct step t;

		if (s->row.campaign != campaign || !past_context(s) ||
		    !step_of(b->w, s, &b->event, b->about.first, &t) || t.p > MOVED_P ||
		    fabs(t.est) < s->min_effect)
			continue;
		add_cause(b, CAUSE_METRIC, s->row.metric, NULL, NULL,
			  METRIC_SCORE * fmin(1, fabs(t.est)),
			  xasprintf("%s %+.1f %% at the same time", s->row.stat, 100 * t.est));
		added++;
	}
}

/* Does member a say more than b? A confirmed one before others, a series before its pairs, which
 * need not show what both arms have, then the largest. */
static bool says_more(struct past *w, const struct change_row *a, const struct change_row *b)
{
	bool pair_a = past_series(w, a->series)->row.role == SERIES_PAIR;
	bool pair_b = past_series(w, b->series)->row.role == SERIES_PAIR;

	if ((a->level == CHANGE_CONFIRMED) != (b->level == CHANGE_CONFIRMED))
		return a->level == CHANGE_CONFIRMED;
	return pair_a != pair_b ? pair_b : fabs(a->est) > fabs(b->est);
}

/* The member that says most. */
static const struct change_row *leading(struct past *w, int64_t regression)
{
	const struct change_row *best = NULL;

	for (size_t i = 0; i < w->n_changes; i++) {
		const struct change_row *c = &w->changes[i];
		struct past_series *s = past_series(w, c->series);

		if (c->regression == regression && c->level != CHANGE_DISMISSED && s &&
		    !past_context(s) && (!best || says_more(w, c, best)))
			best = c;
	}
	return best;
}

static bool in_list(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == n && strncmp(at, name, n) == 0)
			return true;
	return false;
}

static bool tried(const struct cause_row *c, const struct blame_trial *t)
{
	return c->kind == CAUSE_ENVIRONMENT &&
	       (in_list(t->keys, c->key) || str_eq(t->keys, c->key));
}

/* The difference went away without the others that were set back with these before. */
static void clear_others(struct blame *b, const struct blame_trial *t)
{
	for (size_t i = 0; !t->together && t->proved && i < b->n_causes; i++)
		if (b->causes[i].kind == CAUSE_ENVIRONMENT && b->causes[i].score >= PROVED_SCORE &&
		    !tried(&b->causes[i], t))
			b->causes[i].score = 0;
}

/* What was believed of keys that are ruled out goes to the others. */
static void share_out(struct blame *b, double lost)
{
	for (size_t i = 0; i < b->n_causes; i++)
		if (b->causes[i].kind == CAUSE_ENVIRONMENT && b->causes[i].score < PROVED_SCORE)
			b->causes[i].score = fmin(b->causes[i].score / (1 - lost), SCORE_MOST);
}

/* What re-runs said outweighs all counting. Of several keys that were set back together none is
 * proved alone; they keep their order. */
static void apply_trial(struct blame *b, const struct blame_trial *t)
{
	bool alone = t->keys && !strchr(t->keys, ',') && !t->together, there = false;
	double lost = 0;

	for (size_t i = 0; i < b->n_causes; i++)
		there = there || in_list(t->keys, b->causes[i].key);
	if (!there && t->proved)
		add_cause(b, CAUSE_ENVIRONMENT, t->keys, NULL, NULL, 0,
			  xstrdup("when it changed is not known"));
	for (size_t i = 0; i < b->n_causes; i++) {
		struct cause_row *c = &b->causes[i];
		char *why;

		if (!tried(c, t))
			continue;
		why = xasprintf("%s in a re-run: the difference %s; %s",
				alone ? "it was set back" : "it was set back with others",
				t->proved ? "went away" : "stayed", c->why);
		free(c->why);
		c->why = why;
		c->proved = t->proved && alone;
		lost += !t->proved && c->score < PROVED_SCORE ? c->score : 0;
		c->score = !t->proved                ? 0
			   : c->score < PROVED_SCORE ? PROVED_SCORE + c->score
						     : c->score;
	}
	clear_others(b, t);
	if (!t->proved)
		share_out(b, lost);
}

static int keep_trials(struct blame *b, int64_t regression, struct err *e)
{
	struct cause_row *v = NULL;
	size_t n = 0;
	int rc = history_causes(b->w->db, regression, &v, &n, e);

	for (size_t i = 0; rc == 0 && i < n; i++)
		if (v[i].kind == CAUSE_ENVIRONMENT &&
		    (v[i].score == 0 || v[i].score >= PROVED_SCORE))
			apply_trial(b, &(struct blame_trial){.keys = v[i].key,
							     .proved = v[i].score > 0,
							     .together = !v[i].proved,
							     .ruled_out = v[i].score == 0});
	cause_rows_free(v, n);
	return rc;
}

int blame_half(struct past *w, int64_t regression, char **json, struct err *e)
{
	_cleanup_(json_freep) struct json *out = json_object();
	struct cause_row *v = NULL;
	size_t n = 0, together = 0;
	int rc = history_causes(w->db, regression, &v, &n, e);

	*json = NULL;
	for (size_t i = 0; i < n; i++)
		together += v[i].score >= PROVED_SCORE && !v[i].proved;
	for (size_t i = 0; i < n && (size_t)json_len(out) < together / 2; i++) {
		struct json *pair;

		if (v[i].score < PROVED_SCORE || v[i].proved)
			continue;
		pair = json_object();
		json_set_text(pair, "was", v[i].was);
		json_set_text(pair, "is", v[i].is);
		json_set(out, v[i].key, pair);
	}
	if (rc == 0 && together > 1)
		*json = json_print(out, false);
	cause_rows_free(v, n);
	return rc;
}

static int by_score(const void *a, const void *b)
{
	const struct cause_row *x = a, *y = b;

	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	return strcmp(x->key, y->key);
}

static int store(struct blame *b, int64_t regression, struct err *e)
{
	size_t n = b->n_causes < CAUSES_MAX ? b->n_causes : CAUSES_MAX;

	if (b->n_causes > 1)
		qsort(b->causes, b->n_causes, sizeof *b->causes, by_score);
	for (size_t i = 0; i < n; i++)
		b->causes[i].rank = (int)i + 1;
	return history_causes_put(b->w->db, regression, b->causes, n, e);
}

static bool is_member(const struct change_row *c, int64_t regression)
{
	return c->regression == regression && c->level != CHANGE_DISMISSED;
}

/* Nights in which the event may lie: from what its members say of it until it was found, and when
 * it is confirmed until then: nights of a suspicion that it began with may have been bad ones only.
 */
static struct regress_span about(struct past *w, int64_t regression, const struct change_row *lead)
{
	const struct regression_row *r = past_regression(w, regression);
	const char *known = r && *r->confirmed_night ? r->confirmed_night : lead->found_night;
	struct regress_span out = past_span(lead);
	int64_t until = *known ? regress_day(known) : out.last;

	for (size_t i = 0; i < w->n_changes; i++) {
		struct regress_span s = past_span(&w->changes[i]);

		if (!is_member(&w->changes[i], regression) || s.day < out.day - REGRESS_SLACK ||
		    s.day > out.day + REGRESS_SLACK)
			continue;
		out.first = s.first < out.first ? s.first : out.first;
		out.last = s.last > out.last ? s.last : out.last;
	}
	out.last = until > out.last ? until : out.last;
	if (out.last > out.day + ABOUT_NIGHTS)
		out.last = out.day + ABOUT_NIGHTS;
	return out;
}

/* The series that shows a member: pairs and context do not count. */
static const struct past_series *shown_by(struct past *w, const struct change_row *c)
{
	const struct past_series *s = past_series(w, c->series);

	if (s && s->row.role != SERIES_CURRENT)
		s = past_beside(w, s, SERIES_CURRENT);
	return s && !past_context(s) ? s : NULL;
}

/* How likely the event began on each of `n` days from `first`, by the nights of all members; a
 * member may have had a bad night of its own. */
static void likely(struct past *w, int64_t regression, const struct change_row *lead,
		   const struct regress_span *event, double *ll, size_t n)
{
	double gained = gain(past_series(w, lead->series)->row.better, lead->est);
	_cleanup_free_ bool *seen = xcalloc(w->n + 1, sizeof *seen);

	for (size_t i = 0; i < w->n_changes; i++) {
		const struct past_series *s = is_member(&w->changes[i], regression)
						      ? shown_by(w, &w->changes[i])
						      : NULL;
		struct regress_window t = {0};

		if (!s || seen[s - w->s])
			continue;
		seen[s - w->s] = true;
		find_window(w, s, event, gained, &t);
		for (size_t k = 0; k < n; k++)
			ll[k] += log1p(exp(regress_since(&t, event->first + (int64_t)k)));
	}
}

/* When it was: the night on which a step explains the nights of all members best, and those on
 * which it does nearly as well. */
static struct regress_span when(struct past *w, int64_t regression, const struct change_row *lead)
{
	struct regress_span event = about(w, regression, lead), out = event;
	size_t n = (size_t)(event.last - event.first + 1), best = 0;
	_cleanup_free_ double *ll = xcalloc(n + 1, sizeof *ll);

	likely(w, regression, lead, &event, ll, n);
	for (size_t k = 0; k < n; k++)
		if (ll[k] >= ll[best])
			best = k; /* of nights on which nothing was measured the one after */
	if (ll[best] <= 0 || ll[best] - ll[0] < 0)
		return past_span(lead);
	out.day = event.first + (int64_t)best;
	for (out.first = out.day;
	     out.first > event.first && ll[out.first - 1 - event.first] >= ll[best] - NEARLY;
	     out.first--)
		;
	for (out.last = out.day;
	     out.last < event.last && ll[out.last + 1 - event.first] >= ll[best] - NEARLY;
	     out.last++)
		;
	return out;
}

bool blame_when(struct past *w, int64_t regression, struct regress_span *out)
{
	const struct change_row *lead = leading(w, regression);

	if (lead)
		*out = when(w, regression, lead);
	return lead != NULL;
}

/* Once it is confirmed its night is that of all members. */
static int date(struct past *w, int64_t regression, const struct regress_span *event, struct err *e)
{
	struct regression_row *r = past_regression(w, regression);
	char night[11];

	regress_night(event->day, night);
	if (!r || r->level != CHANGE_CONFIRMED || strcmp(r->night, night) == 0)
		return 0;
	str_copy(r->night, sizeof r->night, night);
	return history_regression_update(w->db, r, e);
}

int blame_rank(struct past *w, int64_t regression, const struct blame_trial *t, struct err *e)
{
	_cleanup_(blame_done) struct blame b = {.w = w};
	const struct change_row *lead = leading(w, regression);
	int rc;

	if (!lead)
		return 0;
	b.about = about(w, regression, lead);
	b.event = when(w, regression, lead);
	if ((rc = date(w, regression, &b.event, e)) < 0)
		return rc;
	find_moved(&b, regression, lead);
	if ((rc = add_keys(&b, e)) < 0 || (rc = add_node(&b, lead, e)) < 0)
		return rc;
	if (past_series(w, lead->series)->row.campaign)
		add_metrics(&b, past_series(w, lead->series)->row.campaign);
	if ((rc = keep_trials(&b, regression, e)) < 0)
		return rc;
	if (t && (t->proved || t->ruled_out))
		apply_trial(&b, t);
	return store(&b, regression, e);
}
