/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/user.h"
#include "orchestrator/cmd/bisect.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/outlets.h"
#include "orchestrator/cmd/terminal.h"
#include "orchestrator/report/outlet.h"
#include "orchestrator/report/regressions.h"

extern const struct cmd cmd_regressions;

enum { OPT_NOTE = 512, OPT_BY, OPT_RUN, OPT_AS, OPT_TO };

enum verb { VERB_LIST, VERB_SHOW, VERB_STATE, VERB_BISECT };

/* What a person says of a regression, and what becomes of it. */
static const struct word {
	const char *name;
	enum verb verb;
	enum regression_state state;
} words[] = {
	{"show", VERB_SHOW, REGRESSION_OPEN},    {"ack", VERB_STATE, REGRESSION_ACKNOWLEDGED},
	{"fix", VERB_STATE, REGRESSION_FIXED},   {"accept", VERB_STATE, REGRESSION_ACCEPTED},
	{"reopen", VERB_STATE, REGRESSION_OPEN}, {"bisect", VERB_BISECT, REGRESSION_OPEN},
};

enum { NOTE_MAX = 1000 }; /* lists, pages and messages hold it whole */

struct args {
	struct drive_options drive;
	const struct word *word; /* NULL: the list */
	int64_t id;              /* 0: not given */
	const char *note, *by;
	const struct outlet *as; /* NULL: for a terminal */
	const char *to;
	struct outlets outlets;
	bool all, run;
};

/* -- options ---------------------------------------------------------------------------------- */

static void take_word(struct args *a, const char *arg, struct argp_state *state)
{
	const char *names[ARRAY_LEN(words) + 1] = {NULL};
	const char *near;
	int64_t id;

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		names[i] = words[i].name;
		if (str_eq(arg, words[i].name))
			a->word = &words[i];
	}
	if (a->word)
		return;
	if (str_to_i64(arg, &id)) { /* `fettle regressions 3` is what people type */
		a->word = &words[0];
		a->id = id;
		return;
	}
	near = str_nearest(arg, names);
	argp_error(state, "%s: show, ack, fix, accept, reopen or bisect%s%s%s", arg,
		   near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static void take_argument(struct args *a, const char *arg, struct argp_state *state)
{
	if (!a->word)
		take_word(a, arg, state);
	else if (a->id)
		argp_error(state, "one regression at a time, got %s too", arg);
	else if (!str_to_i64(arg, &a->id) || a->id < 1)
		argp_error(state, "%s wants the number of a regression, got %s", a->word->name,
			   arg);
}

static void take_format(struct args *a, const char *arg, struct argp_state *state)
{
	struct buf names = {0};

	a->as = outlet_find(arg);
	if (a->as)
		return;
	for (size_t i = 0; outlet_table[i]; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", outlet_table[i]->name);
	argp_error(state, "--as %s: there is %s", arg, names.data);
	buf_free(&names);
}

/* It becomes a line of a header. */
static void take_address(struct args *a, const char *arg, struct argp_state *state)
{
	for (const char *p = arg; *p; p++)
		if ((unsigned char)*p < ' ' || (unsigned char)*p >= 0x7f)
			argp_error(state, "--to wants an address of printable ASCII");
	a->to = arg;
}

static void check_outlets(const struct args *a, struct argp_state *state)
{
	if (a->word && (a->as || outlets_any(&a->outlets)))
		argp_error(state, "--as, --metrics and the webhook tell of all regressions: no %s",
			   a->word->name);
	if (a->as && a->drive.json)
		argp_error(state, "one of --as and --json, not both");
	if (a->to && (!a->as || !str_eq(a->as->name, "mail")))
		argp_error(state, "--to goes with --as mail");
}

static void check(const struct args *a, struct argp_state *state)
{
	if (a->word && !a->id)
		argp_error(state, "which regression? `fettle regressions` lists their numbers");
	if (a->word && a->word->verb == VERB_STATE && (!a->note || !*a->note))
		argp_error(state, "%s wants --note TEXT: why, for whoever reads it next year",
			   a->word->name);
	if ((a->note || a->by) && (!a->word || a->word->verb != VERB_STATE))
		argp_error(state, "--note and --by go with ack, fix, accept or reopen");
	if (a->run && (!a->word || a->word->verb != VERB_BISECT))
		argp_error(state, "--run goes with bisect");
	check_outlets(a, state);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->drive;
		state->child_inputs[1] = &a->outlets;
		return 0;
	case 'a':
		a->all = true;
		return 0;
	case OPT_NOTE:
		if (strlen(arg) > NOTE_MAX)
			argp_error(state, "--note wants at most %d bytes", NOTE_MAX);
		a->note = arg;
		return 0;
	case OPT_BY:
		a->by = arg;
		return 0;
	case OPT_RUN:
		a->run = true;
		return 0;
	case OPT_AS:
		take_format(a, arg, state);
		return 0;
	case OPT_TO:
		take_address(a, arg, state);
		return 0;
	case ARGP_KEY_ARG:
		take_argument(a, arg, state);
		return 0;
	case ARGP_KEY_END:
		check(a, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* -- looking ---------------------------------------------------------------------------------- */

static void print_json(struct json *j)
{
	_cleanup_free_ char *text = json_print(j, true);

	printf("%s\n", text);
	json_free(j);
}

static struct regression_style style(const struct args *a, const struct workspace *w)
{
	const char *self = program_invocation_name;

	return (struct regression_style){.colour = terminal_colour(stdout, a->drive.colours),
					 .program = strchr(self, '/') ? self : "fettle",
					 .workspace = w->root};
}

/* Returns the exit status, or a negative code. */
static int list(struct workspace *w, const struct args *a, struct err *e)
{
	struct regression_style st = style(a, w);
	struct regression_view *v = NULL;
	struct buf text = {0};
	size_t n = 0;
	int rc = regressions_load(w->db, a->all, &v, &n, e);

	if (rc < 0)
		return rc;
	if (a->drive.json) {
		print_json(regressions_json(v, n));
	} else if (a->as) {
		rc = outlets_text(w, a->as, a->to, a->drive.lang, &text, e);
	} else {
		lang_begin(a->drive.lang);
		regressions_text(v, n, &st, &text);
		lang_end();
	}
	if (rc == 0 && text.data)
		fputs(text.data, stdout);
	if (rc == 0)
		rc = outlets_deliver(w, &a->outlets, NULL, e);
	if (rc == 0)
		rc = regressions_status(v, n);
	buf_free(&text);
	regression_views_free(v, n);
	return rc;
}

static int show(struct workspace *w, const struct args *a, struct err *e)
{
	struct regression_style st = style(a, w);
	struct regression_view v = {0};
	struct buf text = {0};
	int rc = regression_load(w->db, a->id, &v, e);

	if (rc < 0)
		return rc;
	if (a->drive.json) {
		print_json(regression_json(&v));
	} else {
		lang_begin(a->drive.lang);
		regression_text(&v, &st, &text);
		lang_end();
		fputs(text.data, stdout);
	}
	buf_free(&text);
	regression_view_done(&v);
	return 0;
}

/* -- saying ----------------------------------------------------------------------------------- */

static int may_become(const struct regression_row *r, enum regression_state to, struct err *e)
{
	if (r->state == to)
		return err_set(e, ERR_STATE, "regression %lld is %s already%s%s%s%s",
			       (long long)r->id, regression_state_name(to), r->who ? " by " : "",
			       r->who ? r->who : "", r->note ? ": " : "", r->note ? r->note : "");
	if (!regression_watched(r) && to != REGRESSION_OPEN)
		return err_set(e, ERR_STATE,
			       "regression %lld is %s: `fettle regressions reopen %lld --note WHY` "
			       "comes first",
			       (long long)r->id, regression_state_name(r->state), (long long)r->id);
	return 0;
}

static int change_state(struct workspace *w, const struct args *a, struct err *e)
{
	struct regression_row r = {0};
	int rc = db_begin(w->db, "state of a regression", e);

	if (rc < 0)
		return rc;
	if ((rc = history_regression_get(w->db, a->id, &r, e)) == 0 &&
	    (rc = may_become(&r, a->word->state, e)) == 0) {
		free(r.who);
		free(r.note);
		r.who = a->by ? xstrdup(a->by) : user_name();
		r.note = xstrdup(a->note);
		r.state = a->word->state;
		r.state_us = clock_utc_us(w->clock);
		rc = history_regression_update(w->db, &r, e);
	}
	regression_row_done(&r);
	if (rc == 0)
		return db_commit(w->db, e);
	db_rollback(w->db);
	return rc;
}

static int say(struct workspace *w, const struct args *a, struct err *e)
{
	int rc = change_state(w, a, e);

	if (rc == 0 && a->drive.json)
		return show(w, a, e);
	if (rc == 0)
		printf("regression %lld: %s\n", (long long)a->id,
		       regression_state_name(a->word->state));
	return rc;
}

/* -- bisecting -------------------------------------------------------------------------------- */

static int bisect(struct workspace *w, const struct args *a, struct err *e)
{
	struct bisect b = {0};
	struct buf text = {0};
	int rc = bisect_plan(w, a->id, a->drive.scheduler, &b, e);

	if (rc < 0)
		return rc;
	if (a->run) {
		rc = bisect_run(&cmd_regressions, w, &b, &a->drive);
	} else if (a->drive.json) {
		print_json(bisect_json(&b));
	} else {
		bisect_text(&b, w, style(a, w).program, &text);
		fputs(text.data, stdout);
	}
	buf_free(&text);
	bisect_done(&b);
	return rc;
}

static int act(const struct args *a, struct err *e)
{
	struct workspace *w = NULL;
	enum verb verb = a->word ? a->word->verb : VERB_LIST;
	enum db_mode mode = verb == VERB_STATE || a->run || outlets_write(&a->outlets) ? DB_WRITE
										       : DB_READ;
	int rc = workspace_open(workspace_default(a->drive.workspace), mode, &clock_system, &w, e);

	if (rc == 0)
		switch (verb) {
		case VERB_LIST:
			rc = list(w, a, e);
			break;
		case VERB_SHOW:
			rc = show(w, a, e);
			break;
		case VERB_STATE:
			rc = say(w, a, e);
			break;
		case VERB_BISECT:
			rc = bisect(w, a, e);
			break;
		}
	workspace_close(w);
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"all", 'a', NULL, 0, "closed ones too: fixed, accepted, transient, dismissed", 0},
		{"note", OPT_NOTE, "TEXT", 0, "why; kept with the regression", 0},
		{"by", OPT_BY, "WHO", 0, "who says so (default: your user name)", 0},
		{"run", OPT_RUN, NULL, 0, "run the bisection, and keep its answers", 0},
		{"as", OPT_AS, "OUTLET", 0,
		 "junit (XML for CI), mail (with its header), metrics (OpenMetrics), slack (JSON)",
		 0},
		{"to", OPT_TO, "ADDRESS", 0, "whom the mail is for, for sendmail -t", 0},
		{0}};
	static const struct argp_child children[] = {
		{&drive_argp, 0, NULL, 0}, {&outlets_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "[show REGRESSION]\nack|fix|accept|reopen REGRESSION --note TEXT\n"
			    "bisect REGRESSION [--run]",
		.doc = "Regressions: what became worse (or better) over nights, by how much, and "
		       "what changed then.\v"
		       "ack: seen, being worked on. fix: mended; if it comes back it is a new one. "
		       "accept: the new normal, later nights are held against it. reopen: none of "
		       "these. bisect: which change of the environment did it: each that the "
		       "recipe's `fingerprint` can set, as it was against as it is, in paired "
		       "blocks; the plan with its cost, or with --run its verdicts. Exit status of the list: 1 while a confirmed regression for the "
		       "worse is open, else 0. The fields of --json are in "
		       "orchestrator/report/HISTORY.md.",
		.children = children};
	struct args a = {0};
	struct err e = {0};
	int rc;

	cmd_parse(&argp, argc, argv, &a);
	rc = act(&a, &e);
	free((char *)a.drive.fake_spec);
	return rc < 0 ? cmd_fail(&cmd_regressions, &e) : rc;
}

const struct cmd cmd_regressions = {
	.name = "regressions", .summary = "what became worse over nights, and why", .run = run};
