/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `run` shows, of a campaign that another process drives. The database is only read, and only
 * after somebody changed it; the campaign does not know that it is watched. */
#include <argp.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/query.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/ab.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/report/report.h"

extern const struct cmd cmd_watch;

enum {
	LOOK_MS = 1000,      /* between two looks whether the database changed */
	STALE_US = 5000000,  /* then it is read all the same: a driver that dies writes nothing */
	EXIT_LATER = 3,      /* the campaign goes on without us */
	FAULTS_AT_MOST = 30, /* looks in a row that find the database locked */
};

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

/* What was told so far, so that only what is new is told. */
struct watch {
	struct drive_run d;
	struct workspace *w;
	int64_t id;
	const struct recipe *recipe;
	int64_t version, event; /* of the database; the newest event */
	char *stage;            /* "5 open", "5 closed": newest stage; NULL: none */
	int blocks;
	int faults;
	int64_t looked_us; /* monotonic */
	bool alone;        /* it runs, and no process drives it */
	bool over;
};

static void tell(struct watch *x, const struct view *v, enum progress_kind kind, const char *text)
{
	const struct view_interval *i = v->n_effect ? &v->effect[v->n_effect - 1] : NULL;
	const struct progress p = {.kind = kind,
				   .step = v->step <= 5 ? v->step : 0,
				   .text = text,
				   .at_us = v->ended_us ? v->ended_us : clock_utc_us(x->w->clock),
				   .stage = v->stage,
				   .blocks_done = v->blocks_done,
				   .blocks_planned = v->blocks_planned,
				   .est = i ? i->est : NAN,
				   .lo = i ? i->lo : NAN,
				   .hi = i ? i->hi : NAN,
				   .node_s = v->node_s};

	progress_tell(&x->d.view, &p);
}

static int tell_events(struct watch *x, const struct view *v, bool first, struct err *e)
{
	struct event_row *rows = NULL;
	size_t n = 0;
	int rc = query_events(x->w->db, x->id, &rows, &n, e);

	for (size_t i = 0; i < n; i++) {
		if (rows[i].id <= x->event)
			continue;
		x->event = rows[i].id;
		if (!first)
			tell(x, v, PROGRESS_NOTE, rows[i].text);
	}
	event_rows_free(rows, n);
	return rc;
}

/* A stage that opened or closed, and blocks that ended. */
static void tell_stage(struct watch *x, const struct view *v, bool first)
{
	_cleanup_free_ char *text = view_stage_text(v), *blocks = view_blocks_text(v),
			    *stage = xasprintf("%s %d %s", v->stage ? v->stage : "", v->round,
					       v->stage ? v->about ? v->about : v->to : text);

	if (!x->stage || !str_eq(stage, x->stage))
		tell(x, v, v->stage ? PROGRESS_STEP : PROGRESS_STAGE, text);
	else if (v->blocks_done != x->blocks && !first)
		tell(x, v, PROGRESS_BLOCK, blocks); /* the line begins with the stage */
	free(x->stage);
	x->stage = stage;
	stage = NULL;
	x->blocks = v->blocks_done;
}

/* Once, when the process that ran it is gone. */
static void tell_driver(struct watch *x, const struct view *v)
{
	_cleanup_free_ char *resume = drive_command("resume", x->w, x->id);
	_cleanup_free_ char *text = xasprintf("nobody drives it: %s", resume);

	if (v->running && !v->driver && !x->alone)
		tell(x, v, PROGRESS_NOTE, text);
	x->alone = v->running && !v->driver;
}

static int look(struct watch *x, struct err *e)
{
	int64_t now_us = clock_mono_us(x->w->clock);
	bool first = x->version == 0;
	struct view v;
	int64_t version;
	int rc = db_data_version(x->w->db, &version, e);

	if (rc < 0 || (version == x->version && now_us - x->looked_us < STALE_US))
		return rc;
	x->looked_us = now_us;
	if ((rc = view_load(x->w, x->id, x->recipe, &v, e)) < 0)
		return rc;
	if (first)
		x->d.view.start_us = v.created_us;
	progress_touch(&x->d.view);
	if ((rc = tell_events(x, &v, first, e)) == 0) {
		tell_stage(x, &v, first);
		tell_driver(x, &v);
		x->version = version;
		x->over = !v.running;
	}
	view_done(&v);
	return rc;
}

/* Until the campaign is over (0), a signal ends us (1), or the database cannot be read. A writer on
 * a network file system may hold it for a while. */
static int follow(struct watch *x, struct err *e)
{
	struct pollfd signals = {.fd = x->d.signal_fd, .events = POLLIN};

	for (;;) {
		int rc;

		if (drive_asked_to_stop(&x->d))
			return 1;
		rc = look(x, e);
		x->faults = rc < 0 ? x->faults + 1 : 0;
		if (rc < 0 && (rc != -ERR_TEMP || x->faults > FAULTS_AT_MOST))
			return rc;
		if (x->over)
			return 0;
		progress_tick(&x->d.view, clock_utc_us(x->w->clock));
		poll(&signals, 1, LOOK_MS);
	}
}

/* The end as `run` tells it, but nothing is written. */
static int conclude(struct watch *x, bool json, struct err *e)
{
	struct recipe *r = NULL;
	struct report *rep = NULL;
	struct buf text = {0};
	int status;

	if (drive_report(x->w, x->id, &r, &rep, e) < 0)
		return cmd_fail(&cmd_watch, e);
	report_summary(rep, &text);
	if (!json)
		printf("\n%s", text.data ? text.data : "");
	status = ab_answer(rep, json, drive_status(rep));
	buf_free(&text);
	report_free(rep);
	recipe_free(r);
	return status;
}

static int watch(const struct args *a, struct watch *x, struct err *e)
{
	struct recipe *r;
	int rc = workspace_open(workspace_default(a->look.workspace), DB_READ, &clock_system, &x->w,
				e);

	if (rc < 0 || (rc = drive_find(x->w, a->campaign, &x->id, e)) < 0)
		return rc;
	r = drive_recipe(x->w, x->id);
	x->recipe = r;
	rc = drive_begin(&x->d, x->w, &a->look, stdout, e);
	progress_follow(&x->d.view, x->w, x->id, r);
	if (rc == 0)
		rc = follow(x, e);
	drive_end(&x->d);
	recipe_free(r);
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_child children[] = {
		{&look_argp, 0, NULL, 0}, {&terminal_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "[CAMPAIGN]",
		.doc = "Show a campaign that another process drives (number or name; default: the "
		       "newest), as `fettle run` does.\vCtrl-C ends the watching and leaves the "
		       "campaign alone. When the campaign ends its summary is printed, and its exit "
		       "status is that of this command.",
		.children = children};
	struct args a = {0};
	struct watch x = {0};
	struct err e = {0};
	int status, rc;

	cmd_parse(&argp, argc, argv, &a);
	rc = watch(&a, &x, &e);
	if (rc < 0)
		status = cmd_fail(&cmd_watch, &e);
	else if (rc > 0)
		status = EXIT_LATER;
	else
		status = conclude(&x, a.look.json, &e);
	free(x.stage);
	workspace_close(x.w);
	return status;
}

const struct cmd cmd_watch = {
	.name = "watch", .summary = "look on while another process runs a campaign", .run = run};
