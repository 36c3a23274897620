/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The recipes of a directory, what is known of their past nights, and what is due. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/nightly.h"
#include "orchestrator/cmd/outline.h"
#include "orchestrator/method/fingerprint.h"

enum {
	RECIPES_MAX = 1000, /* a directory with more is not one of recipes */
	NIGHTS_OF_COST = 5, /* what a look costs is the mean of so many */
	WEEK = 7,
};

/* -- recipes ---------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_files(const char *dir, struct strv *out, struct err *e)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	if (!d)
		return err_sys(e, ERR_USAGE, "%s", dir);
	while ((entry = readdir(d)) && out->n < RECIPES_MAX) {
		_cleanup_free_ char *path = fs_join(dir, entry->d_name);

		if (entry->d_name[0] != '.' && str_ends(entry->d_name, ".lua"))
			strv_add(out, path);
	}
	closedir(d);
	if (out->n == 0)
		return err_set(e, ERR_USAGE,
			       "%s holds no recipe (*.lua); recipes/campaigns has examples", dir);
	qsort(out->v, out->n, sizeof *out->v, by_name);
	return 0;
}

static bool scheduled(const struct recipe *r)
{
	return r->schedule.every != CADENCE_NONE || r->schedule.after_change;
}

/* What `fettle run` would refuse is not run at night either. */
static int check(const struct nightly *n, const struct nightly_recipe *x, struct err *e)
{
	const struct outline_given given = {.workspace = n->o->drive.workspace};
	_cleanup_free_ char *why = NULL;
	struct outline o;
	int rc = drive_lint(x->r, &x->sources, e);

	if (rc < 0 || !scheduled(x->r) || x->r->canary.blocks)
		return rc;
	outline_make(x->r, &given, &o);
	why = outline_refusal(x->r, &o);
	return why ? err_set(e, ERR_USAGE, "%s", why) : 0;
}

/* Past nights are found by the name of the campaign: two files may not have one. */
static int check_name(const struct nightly *n, const struct nightly_recipe *x, struct err *e)
{
	for (const struct nightly_recipe *y = n->recipes; y < x; y++)
		if (y->r && str_eq(y->r->name, x->r->name))
			return err_set(e, ERR_RECIPE, "%s: its name, %s, is that of %s, too",
				       x->path, x->r->name, fs_basename(y->path));
	return 0;
}

static void read_one(struct nightly *n, struct nightly_recipe *x)
{
	const char *scheduler = n->o->drive.scheduler;
	struct err e = {0};
	int rc = drive_load_nightly(x->path, scheduler, &x->r, &x->sources, &e);

	if (rc == 0 && (rc = check_name(n, x, &e)) == 0)
		rc = check(n, x, &e);
	if (rc < 0) {
		x->fault = xstrdup(e.text);
		recipe_free(x->r);
		x->r = NULL;
		return;
	}
	x->scheduler = scheduler ? scheduler : x->r->scheduler ? x->r->scheduler : "local";
}

int nightly_read(struct nightly *n, struct err *e)
{
	struct strv files = {0};
	int rc = list_files(n->o->dir, &files, e);

	n->recipes = xcalloc(files.n + 1, sizeof *n->recipes);
	for (size_t i = 0; rc == 0 && i < files.n; i++) {
		struct nightly_recipe *x = &n->recipes[n->n_recipes++];

		x->path = fs_absolute(files.v[i], NULL);
		if (!x->path)
			x->path = xstrdup(files.v[i]);
		read_one(n, x);
	}
	strv_free(&files);
	return rc;
}

/* -- the past --------------------------------------------------------------------------------- */

/* Keys of the environment that differ between the event and now. */
static int count_changed_keys(struct nightly *n, const struct nightly_item *it,
			      const struct campaign_row *row, const char *event, int *out,
			      struct err *e)
{
	_cleanup_free_ char *now = NULL;
	const char *then = strchr(event, ' ');
	struct strv keys = {0};
	int rc = fingerprint_now(n->w, row, it->recipe->r, &now, e);

	if (rc == 0 && then)
		rc = fingerprint_changes(then + 1, now, &keys, e);
	*out = (int)keys.n;
	strv_free(&keys);
	return rc;
}

/* Nights of the events of this kind, and what changed since the newest of them. */
static int read_events(struct nightly *n, struct nightly_item *it, const struct campaign_row *row,
		       const char *kind, bool *known, struct err *e)
{
	struct event_row *v = NULL;
	size_t count = 0;
	int rc = query_events(n->w->db, row->id, &v, &count, e);

	for (size_t i = count; rc == 0 && i-- > 0;) {
		_cleanup_free_ char *night = NULL;

		if (!str_eq(v[i].kind, kind))
			continue;
		night = xstrndup(v[i].text, strcspn(v[i].text, " "));
		if (!it->due.canary)
			strv_add(&it->nights, night);
		if (!*known)
			rc = count_changed_keys(n, it, row, v[i].text, &it->due.environment_now, e);
		*known = true;
	}
	event_rows_free(v, count);
	return rc;
}

/* Nights on which a canary of this campaign looked, whether one is open, and what they cost. */
struct looks {
	bool open;
	int priced;
	double node_s, wall_s;
};

static int read_looks(struct nightly *n, struct nightly_item *it, int64_t campaign, struct looks *l,
		      struct err *e)
{
	struct canary_row *v = NULL;
	size_t count = 0;
	int rc = history_canaries(n->w->db, campaign, &v, &count, e);

	for (size_t i = 0; rc == 0 && i < count; i++) {
		double node_s, wall_s;

		l->open = l->open || (v[i].open && campaign == it->campaign);
		if (v[i].purpose != CANARY_NIGHT)
			continue;
		strv_add(&it->nights, v[i].night);
		if (v[i].open || l->priced == NIGHTS_OF_COST)
			continue;
		rc = history_stage_cost(n->w->db, v[i].stage, &node_s, &wall_s, e);
		l->node_s += node_s;
		l->wall_s += wall_s;
		l->priced++;
	}
	free(v);
	return rc;
}

/* How often the environment of the series was another one than the night before, and how often that
 * came with a change. */
static int read_environments(struct nightly *n, struct nightly_item *it, int64_t series,
			     const struct change_row *changes, size_t n_changes, struct err *e)
{
	struct point_row *p = NULL;
	size_t count = 0;
	int rc = history_points(n->w->db, series, NULL, &p, &count, e);

	for (size_t i = 1; rc == 0 && i < count; i++) {
		bool felt = false;

		if (!p[i].environment || !p[i - 1].environment ||
		    p[i].environment == p[i - 1].environment)
			continue;
		for (size_t j = 0; j < n_changes; j++)
			felt = felt || (strcmp(changes[j].first_night, p[i].night) <= 0 &&
					strcmp(p[i].night, changes[j].last_night) <= 0);
		it->due.environments++;
		it->due.environment_changes += felt;
	}
	free(p);
	return rc;
}

static bool open_suspicion(struct db *db, const struct change_row *c)
{
	struct regression_row r = {0};
	bool open;

	if (c->level != CHANGE_SUSPECT || history_regression_get(db, c->regression, &r, NULL) < 0)
		return false;
	open = r.state == REGRESSION_OPEN && r.level == CHANGE_SUSPECT;
	free(r.who);
	free(r.note);
	return open;
}

/* What the objective's series of the campaign went through. */
static int read_series(struct nightly *n, struct nightly_item *it, struct err *e)
{
	struct series_row *s = NULL;
	size_t count = 0;
	int rc = it->campaign ? history_series_list(n->w->db, it->campaign, &s, &count, e) : 0;

	for (size_t i = 0; rc == 0 && i < count; i++) {
		struct change_row *c = NULL;
		size_t n_changes = 0;
		bool main = s[i].role == SERIES_CURRENT &&
			    str_eq(s[i].metric, it->recipe->r->objective);

		rc = history_changes(n->w->db, 0, s[i].id, &c, &n_changes, e);
		for (size_t j = 0; rc == 0 && j < n_changes; j++) {
			it->due.changes += main && c[j].level == CHANGE_CONFIRMED;
			it->due.suspects += open_suspicion(n->w->db, &c[j]);
		}
		if (rc == 0 && main)
			rc = read_environments(n, it, s[i].id, c, n_changes, e);
		change_rows_free(c, n_changes);
	}
	series_rows_free(s, count);
	return rc;
}

/* -- costs ------------------------------------------------------------------------------------ */

static void set_cost(struct due_item *d, const struct recipe *r, double node_s, double wall_s)
{
	d->node_hours = node_s / 3600;
	d->gpu_hours = d->node_hours * r->resources.gpus_per_node;
	d->minutes = wall_s / 60;
}

/* Of what never ran, as the plan says. */
static void plan_cost(const struct nightly *n, struct nightly_item *it)
{
	const struct outline_given given = {.workspace = n->o->drive.workspace};
	struct outline o;

	outline_make(it->recipe->r, &given, &o);
	it->due.node_hours = o.node_hours;
	it->due.gpu_hours = it->recipe->r->resources.gpus_per_node > 0 ? o.gpu_hours : 0;
	it->due.minutes = o.trial_s > 0 && it->due.canary ? (double)o.runs * o.trial_s / 60 : NAN;
}

/* -- items ------------------------------------------------------------------------------------ */

static struct nightly_item *add_item(struct nightly *n, struct nightly_recipe *x, bool canary)
{
	struct nightly_item *it;

	n->items = xgrow(n->items, n->n_items, &n->cap_items, sizeof *n->items);
	it = &n->items[n->n_items++];
	*it = (struct nightly_item){.recipe = x};
	it->due = (struct due_item){.name = x->r->name, .canary = canary, .node_hours = NAN};
	it->due.gpu_hours = it->due.minutes = NAN;
	switch (x->r->schedule.every) {
	case CADENCE_NIGHT:
		it->due.period = 1;
		break;
	case CADENCE_WEEK:
		it->due.period = WEEK;
		break;
	case CADENCE_NONE:
		break;
	}
	it->due.after_change = x->r->schedule.after_change;
	return it;
}

/* Past campaigns of a recipe, newest first; none without a workspace. */
struct past {
	struct campaign_row *rows;
	size_t n;
};

static int read_past(struct nightly *n, const struct nightly_recipe *x, struct past *p,
		     struct err *e)
{
	*p = (struct past){0};
	return n->w ? query_campaign_list(n->w->db, x->r->name, &p->rows, &p->n, e) : 0;
}

/* A canary goes on with the campaign of this very text; with another one its series go on, if the
 * configuration is the same. */
static int gather_canary(struct nightly *n, struct nightly_recipe *x, const struct past *p,
			 struct err *e)
{
	struct nightly_item *it = add_item(n, x, true);
	struct looks l = {0};
	bool known = false;
	int rc = 0;

	for (size_t i = 0; i < p->n && !it->campaign; i++)
		if (str_eq(p->rows[i].recipe_hash, x->sources.hash) &&
		    p->rows[i].state != CAMPAIGN_FAILED)
			it->campaign = p->rows[i].id;
	for (size_t i = 0; rc == 0 && i < p->n; i++) {
		rc = read_events(n, it, &p->rows[i], NIGHTLY_CANARY, &known, e);
		if (rc == 0)
			rc = read_looks(n, it, p->rows[i].id, &l, e);
	}
	it->due.left = l.open;
	if (rc == 0)
		rc = read_series(n, it, e);
	if (l.priced)
		set_cost(&it->due, x->r, l.node_s / l.priced, l.wall_s / l.priced);
	else
		plan_cost(n, it);
	return rc;
}

static bool holds(const struct fix_row *f)
{
	return str_eq(f->state, "validated") || str_eq(f->state, "accepted, pending convergence");
}

/* The newest campaign whose fix holds is watched every night. */
static int gather_fix(struct nightly *n, struct nightly_recipe *x, const struct past *p,
		      struct err *e)
{
	struct nightly_item *it = NULL;
	struct looks l = {0};
	bool known = false;
	size_t at = 0;
	int rc = 0;

	for (; rc == 0 && at < p->n; at++) {
		struct fix_row fix = {0};
		bool found = false, fit;

		rc = query_fix_get(n->w->db, p->rows[at].id, &fix, &found, e);
		fit = rc == 0 && found && holds(&fix);
		fix_row_done(&fix);
		if (fit)
			break;
	}
	if (rc < 0 || at == p->n)
		return rc;
	it = add_item(n, x, true);
	it->campaign = p->rows[at].id;
	it->watches_fix = true;
	it->due.period = 1;
	rc = read_events(n, it, &p->rows[at], NIGHTLY_CANARY, &known, e);
	if (rc == 0 && (rc = read_looks(n, it, it->campaign, &l, e)) == 0)
		rc = read_series(n, it, e);
	it->due.left = l.open;
	if (l.priced)
		set_cost(&it->due, x->r, l.node_s / l.priced, l.wall_s / l.priced);
	return rc;
}

/* Ours and stopped by a signal, or whoever's and cut off: that is gone on with. */
static bool is_left(const struct campaign_row *c, const char *hash, bool ours)
{
	switch (c->state) {
	case CAMPAIGN_RUNNING:
		return ours || str_eq(c->recipe_hash, hash);
	case CAMPAIGN_STOPPED:
		return ours && str_eq(c->reason, DRIVE_STOPPED);
	case CAMPAIGN_DONE:
	case CAMPAIGN_FAILED:
		break;
	}
	return false;
}

/* A campaign that runs again for its fix's canary is no sweep that was left. */
static bool runs_canary(const struct nightly *n, int64_t campaign)
{
	for (size_t i = 0; i < n->n_items; i++)
		if (n->items[i].watches_fix && n->items[i].campaign == campaign)
			return n->items[i].due.left;
	return false;
}

static int sweep_cost(struct nightly *n, struct nightly_item *it, int64_t last, struct err *e)
{
	struct cost_row cost = {0};
	int rc = last ? query_cost(n->w->db, last, &cost, e) : 0;

	if (rc == 0 && cost.node_s > 0) {
		set_cost(&it->due, it->recipe->r, cost.node_s, 0);
		it->due.minutes = NAN;
	} else {
		plan_cost(n, it);
	}
	return rc;
}

static bool has_night(const struct nightly_item *it, size_t from, const char *night)
{
	for (size_t i = from; i < it->nights.n; i++)
		if (str_eq(it->nights.v[i], night))
			return true;
	return false;
}

static int gather_sweep(struct nightly *n, struct nightly_recipe *x, const struct past *p,
			struct err *e)
{
	struct nightly_item *it = add_item(n, x, false);
	int64_t last = 0;
	bool known = false;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < p->n; i++) {
		size_t before = it->nights.n;

		rc = read_events(n, it, &p->rows[i], NIGHTLY_SWEEP, &known, e);
		if (!it->campaign && has_night(it, before, n->night))
			it->campaign = p->rows[i].id;
		if (i == 0 && !runs_canary(n, p->rows[i].id) &&
		    is_left(&p->rows[i], x->sources.hash, it->nights.n > before)) {
			it->campaign = p->rows[i].id;
			it->due.left = true;
		}
		if (!last && p->rows[i].state == CAMPAIGN_DONE)
			last = p->rows[i].id;
	}
	return rc < 0 ? rc : sweep_cost(n, it, last, e);
}

/* What this night has cost before this call of the program: one that was killed counts. */
static int count_spent(struct nightly *n, const struct nightly_recipe *x, const struct past *p,
		       struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < p->n; i++) {
		double node_s = 0;

		rc = history_spent(n->w->db, p->rows[i].id, n->since_us, &node_s, e);
		n->spent_node_s += node_s;
		n->spent_gpu_s += node_s * x->r->resources.gpus_per_node;
	}
	return rc;
}

static int gather_one(struct nightly *n, struct nightly_recipe *x, struct err *e)
{
	struct past p;
	int rc = read_past(n, x, &p, e);

	if (rc == 0)
		rc = count_spent(n, x, &p, e);
	if (rc == 0 && x->r->canary.blocks) {
		rc = gather_canary(n, x, &p, e);
	} else if (rc == 0) {
		rc = gather_fix(n, x, &p, e);
		if (rc == 0)
			rc = gather_sweep(n, x, &p, e);
	}
	campaign_rows_free(p.rows, p.n);
	return rc;
}

/* -- the night -------------------------------------------------------------------------------- */

static double left_of(double budget, double spent_s)
{
	return budget > 0 ? fmax(budget - spent_s / 3600, 0) : INFINITY;
}

static void set_left(struct nightly *n)
{
	int64_t now = clock_utc_us(n->w ? n->w->clock : &clock_system);

	n->left = (struct due_budget){left_of(n->o->gpu_hours, n->spent_gpu_s),
				      left_of(n->o->node_hours, n->spent_node_s),
				      n->bounds.until_us ? (double)(n->bounds.until_us - now) / 60e6
							 : INFINITY};
}

/* All of them, or only the sweeps, which then come after what was decided before. */
static void decide(struct nightly *n, bool sweeps_only)
{
	_cleanup_free_ struct due_item *v = xcalloc(n->n_items + 1, sizeof *v);
	_cleanup_free_ struct due_choice *c = xcalloc(n->n_items + 1, sizeof *c);
	size_t count = 0, at = 0;

	for (size_t i = 0; i < n->n_items; i++) {
		struct nightly_item *it = &n->items[i];

		it->due.nights = (const char *const *)it->nights.v;
		it->due.n_nights = it->nights.n;
		if (!sweeps_only || !it->due.canary)
			v[count++] = it->due;
	}
	set_left(n);
	due_choose(v, count, n->night, &n->left, c);
	for (size_t i = 0; i < n->n_items; i++) {
		if (sweeps_only && n->items[i].due.canary)
			continue;
		n->items[i].choice = c[at++];
		n->items[i].choice.place += sweeps_only ? n->n_items : 0;
	}
}

/* Keys that differ between the newest point of a series and the last one up to that night. */
static int changed_since(struct nightly *n, int64_t series, const char *night, struct strv *keys,
			 struct err *e)
{
	_cleanup_free_ char *then = NULL, *now = NULL;
	struct point_row *p = NULL;
	int64_t was = 0, is = 0;
	size_t count = 0;
	int rc = history_points(n->w->db, series, NULL, &p, &count, e);

	for (size_t i = 0; rc == 0 && i < count; i++) {
		is = p[i].environment ? p[i].environment : is;
		if (strcmp(p[i].night, night) <= 0)
			was = is;
	}
	free(p);
	if (rc < 0 || !was || was == is)
		return rc;
	if ((rc = history_environment_get(n->w->db, was, &then, e)) < 0 ||
	    (rc = history_environment_get(n->w->db, is, &now, e)) < 0)
		return rc;
	return fingerprint_changes(then, now, keys, e);
}

/* What canaries have seen change since the last sweep, each key once. */
static int seen_by_canaries(struct nightly *n, struct nightly_item *it, struct err *e)
{
	const char *last = NULL;
	struct strv keys = {0};
	struct series_row *s = NULL;
	size_t count = 0, distinct = 0;
	int rc;

	for (size_t i = 0; i < it->nights.n; i++)
		if (!last || strcmp(it->nights.v[i], last) > 0)
			last = it->nights.v[i];
	if (!last)
		return 0;
	rc = history_series_list(n->w->db, 0, &s, &count, e);
	for (size_t i = 0; rc == 0 && i < count; i++)
		if (s[i].source == SERIES_CANARY && s[i].role == SERIES_CURRENT)
			rc = changed_since(n, s[i].id, last, &keys, e);
	for (size_t i = 0; i < keys.n; i++) {
		size_t first = 0;

		while (!str_eq(keys.v[first], keys.v[i]))
			first++;
		distinct += first == i;
	}
	if ((int)distinct > it->due.environment_now)
		it->due.environment_now = (int)distinct;
	series_rows_free(s, count);
	strv_free(&keys);
	return rc;
}

int nightly_reconsider(struct nightly *n, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n->n_items; i++)
		if (!n->items[i].due.canary && n->items[i].result.outcome == NIGHTLY_IDLE)
			rc = seen_by_canaries(n, &n->items[i], e);
	if (rc == 0)
		decide(n, true);
	return rc;
}

/* Each campaign has a false win with its alpha at most. */
static double false_wins(const struct recipe *r)
{
	if (r->canary.blocks || r->n_knobs == 0)
		return 0;
	switch (r->schedule.every) {
	case CADENCE_NIGHT:
		return 365 * r->alpha;
	case CADENCE_WEEK:
		return 52 * r->alpha;
	case CADENCE_NONE:
		break;
	}
	return 0;
}

int nightly_gather(struct nightly *n, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n->n_recipes; i++) {
		struct nightly_recipe *x = &n->recipes[i];

		if (!x->r || !scheduled(x->r))
			continue;
		rc = gather_one(n, x, e);
		n->false_wins_year += false_wins(x->r);
	}
	for (size_t i = 0; n->w && rc == 0 && i < n->n_items; i++)
		if (!n->items[i].due.canary)
			rc = seen_by_canaries(n, &n->items[i], e);
	if (rc == 0)
		decide(n, false);
	return rc;
}

void nightly_done(struct nightly *n)
{
	for (size_t i = 0; i < n->n_recipes; i++) {
		free(n->recipes[i].path);
		free(n->recipes[i].fault);
		recipe_free(n->recipes[i].r);
		script_sources_free(&n->recipes[i].sources);
	}
	for (size_t i = 0; i < n->n_items; i++) {
		strv_free(&n->items[i].nights);
		free(n->items[i].result.said);
	}
	for (size_t i = 0; i < n->n_checks; i++) {
		free(n->checks[i].about);
		free(n->checks[i].result.said);
	}
	free(n->recipes);
	free(n->items);
	free(n->checks);
}
