/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/user.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/progress.h"
#include "orchestrator/cmd/view.h"
#include "orchestrator/report/text.h"

extern const struct cmd cmd_status;

struct args {
	struct drive_options look;
	const char *campaign;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->look;
		state->child_inputs[1] = &a->look.colours;
		return 0;
	case ARGP_KEY_ARG:
		return drive_one_campaign(state, arg, &a->campaign);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* What is known of one campaign at a glance. */
struct glance {
	const struct campaign_row *row;
	struct view view;
	struct strv submitters; /* besides row->user */
	struct strv expired;    /* what changed in the environment since the fix */
};

static void glance_done(struct glance *g)
{
	view_done(&g->view);
	strv_free(&g->submitters);
	strv_free(&g->expired);
}

/* Recipes by their hash, each read once: the campaigns of years may all be of a few. */
enum { RECIPES_MAX = 64 };

struct recipes {
	struct {
		const char *hash; /* of a row, borrowed */
		struct recipe *r;
	} v[RECIPES_MAX];
	size_t n; /* that were read: the oldest makes room */
};

static void recipes_free(struct recipes *all)
{
	for (size_t i = 0; i < RECIPES_MAX; i++)
		recipe_free(all->v[i].r);
	free(all);
}

static const struct recipe *recipe_of(struct recipes *all, struct workspace *w,
				      const struct campaign_row *row)
{
	size_t at = all->n % RECIPES_MAX;

	for (size_t i = 0; i < RECIPES_MAX && all->v[i].hash; i++)
		if (str_eq(all->v[i].hash, row->recipe_hash))
			return all->v[i].r;
	recipe_free(all->v[at].r);
	all->v[at].hash = row->recipe_hash;
	all->v[at].r = drive_recipe(w, row->id);
	all->n++;
	return all->v[at].r;
}

static bool has_fix(struct workspace *w, const struct campaign_row *row)
{
	struct fix_row fix = {0};
	bool found = false, has;

	has = query_fix_get(w->db, row->id, &fix, &found, NULL) == 0 && found && fix.fingerprint;
	fix_row_done(&fix);
	return has;
}

/* The recipe is read where something of it is shown: of the campaign that is asked for, of one that
 * runs, and of one whose fix may have expired. */
static int load(struct workspace *w, const struct campaign_row *row, bool asked,
		struct recipes *recipes, struct glance *g, struct err *e)
{
	bool whole = asked || row->state == CAMPAIGN_RUNNING, fixed = has_fix(w, row);
	const struct recipe *r = whole || fixed ? recipe_of(recipes, w, row) : NULL;
	int rc;

	*g = (struct glance){.row = row};
	rc = view_load(w, row->id, whole ? r : NULL, &g->view, e);
	if (rc == 0)
		rc = query_campaign_submitters(w->db, row->id, &g->submitters, e);
	if (rc == 0 && fixed)
		rc = drive_expired(w, row, r, &g->expired, e);
	return rc;
}

static void print_expired(const struct glance *g)
{
	if (g->expired.n)
		printf("      the fix has expired, since its environment changed:\n");
	for (size_t i = 0; i < g->expired.n; i++) {
		_cleanup_free_ char *change = text_clean(g->expired.v[i]);

		printf("        %s\n", change);
	}
}

/* In a workspace of one user it is no news. */
static void print_users(const struct glance *g)
{
	_cleanup_free_ char *me = user_name(), *user = text_clean(g->row->user);

	if (!g->row->user || (str_eq(g->row->user, me) && !g->submitters.n))
		return;
	printf("      begun by %s", user);
	for (size_t i = 0; i < g->submitters.n; i++) {
		_cleanup_free_ char *other = text_clean(g->submitters.v[i]);

		printf("%s%s", i ? ", " : "; jobs also by ", other);
	}
	putchar('\n');
}

static void print_next(const struct workspace *w, const struct glance *g)
{
	_cleanup_free_ char *resume = drive_command("resume", w, g->row->id),
			    *driver = text_clean(g->view.driver);

	if (g->row->state == CAMPAIGN_RUNNING && g->view.driver)
		printf("      driven by %s\n", driver);
	else if (g->row->state == CAMPAIGN_RUNNING)
		printf("      nobody drives it: %s\n", resume);
	else if (g->row->state == CAMPAIGN_STOPPED)
		printf("      to go on: %s\n", resume);
}

/* One campaign among others. Its name and reason come from recipes and logs. */
static void print_short(const struct workspace *w, const struct glance *g)
{
	const struct campaign_row *r = g->row;
	_cleanup_free_ char *name = text_clean(r->name), *reason = text_clean(r->reason),
			    *stage = view_stage_text(&g->view), *shown = text_clean(stage),
			    *left = view_left_text(&g->view, clock_utc_us(w->clock));
	bool running = r->state == CAMPAIGN_RUNNING && left;
	char when[32], cost[32];

	clock_iso(r->created_us, when, sizeof when);
	progress_cost(g->view.node_s, cost, sizeof cost);
	printf("%4lld  %-24s %-8s %-6s %s  %lld trials, %s\n      %s%s%s\n", (long long)r->id, name,
	       campaign_state_name(r->state), r->scheduler, when, (long long)g->view.trials_all,
	       cost, shown, running ? "; left: " : "", running ? left : "");
	print_users(g);
	if (r->reason && !strstr(stage, r->reason))
		printf("      %s\n", reason);
	print_next(w, g);
	print_expired(g);
}

/* The one that was asked for: what `run` and `watch` show. */
static void print_whole(const struct workspace *w, const struct glance *g,
			enum terminal_colours colours)
{
	const struct view_style style = {.width = isatty(STDOUT_FILENO) ? terminal_width(stdout)
									: 0,
					 .ascii = !terminal_utf8(),
					 .colour = terminal_colour(stdout, colours)};
	_cleanup_(strv_free) struct strv lines = {0};

	view_lines(&g->view, clock_utc_us(w->clock), &style, &lines);
	for (size_t i = 0; i < lines.n; i++)
		printf("%s\n", lines.v[i]);
	print_users(g);
	if (!g->view.driver)
		print_next(w, g);
	print_expired(g);
}

static struct json *to_json(const struct workspace *w, const struct glance *g)
{
	struct json *o = json_object(), *expired = json_array(), *also = json_array();

	json_set_i64(o, "campaign", g->row->id);
	json_set_text(o, "name", g->row->name);
	json_set_text(o, "state", campaign_state_name(g->row->state));
	json_set_text(o, "reason", g->row->reason);
	json_set_text(o, "scheduler", g->row->scheduler);
	json_set_text(o, "mode", run_mode_name(g->row->mode));
	json_set_text(o, "user", g->row->user);
	for (size_t i = 0; i < g->submitters.n; i++)
		json_add_text(also, g->submitters.v[i]);
	json_set(o, "also_submitted_by", also);
	json_set_i64(o, "created_us", g->row->created_us);
	view_json(&g->view, clock_utc_us(w->clock), o);
	json_set_bool(o, "driven", g->view.driver != NULL);
	for (size_t i = 0; i < g->expired.n; i++)
		json_add_text(expired, g->expired.v[i]);
	json_set(o, "expired", expired);
	return o;
}

static int print_all(const struct args *a, struct workspace *w, const struct campaign_row *rows,
		     size_t n, struct err *e)
{
	_cleanup_(json_freep) struct json *list = json_array();
	_cleanup_free_ char *text = NULL;
	struct recipes *recipes = xcalloc(1, sizeof *recipes);
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		struct glance g;

		rc = load(w, &rows[i], a->campaign, recipes, &g, e);
		if (rc == 0 && a->look.json)
			json_add(list, to_json(w, &g));
		else if (rc == 0 && a->campaign)
			print_whole(w, &g, a->look.colours);
		else if (rc == 0)
			print_short(w, &g);
		glance_done(&g);
	}
	recipes_free(recipes);
	if (rc < 0)
		return rc;
	if (a->look.json) {
		text = json_print(list, true);
		printf("%s\n", text);
	} else if (n == 0) {
		printf("no campaign yet: `fettle run RECIPE` starts one\n");
	}
	return 0;
}

static int status(const struct args *a, struct err *e)
{
	struct workspace *w = NULL;
	struct campaign_row *rows = NULL, one = {0};
	size_t n = 0;
	int64_t id;
	int rc = workspace_open(workspace_default(a->look.workspace), DB_READ, &clock_system, &w,
				e);

	if (rc < 0)
		return rc;
	if (a->campaign) {
		if ((rc = drive_find(w, a->campaign, &id, e)) == 0 &&
		    (rc = query_campaign_get(w->db, id, &one, e)) == 0)
			rc = print_all(a, w, &one, 1, e);
		campaign_row_done(&one);
	} else if ((rc = query_campaign_list(w->db, NULL, &rows, &n, e)) == 0) {
		rc = print_all(a, w, rows, n, e);
		campaign_rows_free(rows, n);
	}
	workspace_close(w);
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_child children[] = {
		{&look_argp, 0, NULL, 0}, {&terminal_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "[CAMPAIGN]",
		.doc = "Say where the campaigns of the workspace stand (newest first), or all about "
		       "one (number or name).",
		.children = children};
	struct args a = {0};
	struct err e = {0};

	cmd_parse(&argp, argc, argv, &a);
	return status(&a, &e) < 0 ? cmd_fail(&cmd_status, &e) : 0;
}

const struct cmd cmd_status = {
	.name = "status", .summary = "where the campaigns stand", .run = run};
