/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What run, resume, tick and stop share: options, finding a recipe and a campaign, and the loop
 * that drives a campaign until it is over, the first Ctrl-C (jobs are cancelled, the campaign stays
 * resumable) or the second (leave at once; jobs go on and are adopted by the next start).
 */
#ifndef FETTLE_CMD_DRIVE_H
#define FETTLE_CMD_DRIVE_H

#include <argp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "orchestrator/base/err.h"
#include "orchestrator/cmd/cmd.h"
#include "orchestrator/cmd/progress.h"
#include "orchestrator/method/campaign.h"
#include "orchestrator/script/script.h"

/* The reason of a campaign that a signal stopped. */
#define DRIVE_STOPPED "stopped by a signal"

struct drive_options {
	const char *workspace; /* resolved by workspace_default() */
	const char *scheduler; /* NULL: the recipe's, else local */
	const char *fake_spec; /* text of the file given with --fake */
	const char *lang;      /* of documents, for lang_begin(); NULL: that of the environment */
	bool json, quiet, take_over, once;
	bool leave_jobs; /* a signal ends us and leaves them running, as a second one does */
	enum terminal_colours colours;
	/* Of a night, see struct campaign_options; 0: no bound. */
	int64_t until_us, wait_until_us;
	double spend_node_s;
};

/* argp children with --workspace, --scheduler, --json, --quiet, --take-over, --lang, --color; input
 * is struct drive_options. */
extern const struct argp drive_argp;
/* The same with only --workspace and --json, for commands that look. */
extern const struct argp look_argp;
/* --lang beside these, for those of them that write documents. */
extern const struct argp lang_argp;

/* The argument CAMPAIGN of a parser, of which there is at most one; borrows arg. */
error_t drive_one_campaign(struct argp_state *state, char *arg, const char **campaign);

/* Recipe directories: $FETTLE_RECIPE_PATH entries, then the shipped ones; site.lua and user.lua
 * where paths_site() and paths_user() find them. */
struct drive_path {
	struct script_path path;
	char **dirs, *site, *user;
	const char **probes; /* names, for metrics.probe */
};
void drive_path_init(struct drive_path *p);
void drive_path_done(struct drive_path *p);

/* Load and check a recipe for the scheduler (command in PATH where it runs here). */
int drive_load(const char *file, const char *scheduler, struct recipe **r, struct script_sources *s,
	       struct err *e);
/* The same for an unattended night: mode strict where nobody says one. */
int drive_load_nightly(const char *file, const char *scheduler, struct recipe **r,
		       struct script_sources *s, struct err *e);

/* The same with a text in place of a file; `name` stands for it in messages. */
int drive_load_text(const char *name, const char *text, const char *scheduler, struct recipe **r,
		    struct script_sources *s, struct err *e);

/* ERR_USAGE with the first setting of the campaign itself that does not do what it says, see
 * script/lint.h; `fettle check` lists all of them. */
int drive_lint(const struct recipe *r, const struct script_sources *s, struct err *e);

/* The plan of a campaign, on the sources as they were stored; NULL: they cannot be read any more.
 */
struct recipe *drive_recipe(struct workspace *w, int64_t id);

/* A campaign by number, by name (newest of it), or NULL: the newest of all. */
int drive_find(struct workspace *w, const char *which, int64_t *id, struct err *e);

/* ERR_NOT_FOUND for a file that errno tells of, and where it is if `fettle archive` packed it. */
int drive_not_there(const char *file, struct err *e);

/* "fettle VERB ID -w ROOT" to be typed in a shell, with the path by which we were called; heap. */
char *drive_command(const char *verb, const struct workspace *w, int64_t id);

/* What is open while campaigns are driven, one after the other: signals are ours from begin to end.
 */
struct drive_run {
	const struct drive_options *options;
	struct workspace *w;
	struct progress_view view;
	int signal_fd;
	sigset_t old_mask;
	int signals;          /* how often we were asked to stop */
	char *agent, *helper; /* schedulers borrow them */
};
/* Progress goes to `out`. After an error, too, drive_end() is to be called. */
int drive_begin(struct drive_run *d, struct workspace *w, const struct drive_options *o, FILE *out,
		struct err *e);
void drive_end(struct drive_run *d);
/* Whether we were asked to stop; what else was signalled is done: redraw after a resize, give the
 * terminal back for Ctrl-Z and take it again. */
bool drive_asked_to_stop(struct drive_run *d);
/* For canary_plan() and its like. */
struct campaign_options drive_campaign_options(struct drive_run *d);
/* Open the campaign and drive it until it is over, may not go on now, or a signal stops it. */
int drive_go(struct drive_run *d, int64_t id, struct err *e);

/* Drive it; returns the exit status. Prints progress on stdout and the summary at the end. */
int drive_campaign(const struct cmd *c, struct workspace *w, int64_t id,
		   const struct drive_options *o);

/* What changed in the environment since the campaign's fix was made, one line a field: the fix has
 * expired. Nothing without a fix. `r`: the campaign's plan, NULL: it is read if need be. */
int drive_expired(struct workspace *w, const struct campaign_row *row, const struct recipe *r,
		  struct strv *changes, struct err *e);

/* The stored recipe of a campaign, and its tuning log (free both: recipe_free, report_free). */
struct report;
int drive_report(struct workspace *w, int64_t id, struct recipe **r, struct report **out,
		 struct err *e);

/* The tuning log in that format; in that language (as drive_options.lang) where people read it. */
struct report_format;
int drive_format(const struct report_format *f, const struct report *rep, const char *lang,
		 struct buf *out, struct err *e);
/* reports/campaign-ID.* in the workspace, every format. */
int drive_write_reports(struct workspace *w, struct report *rep, int64_t id, const char *lang,
			struct err *e);

/* The exit status that stands for both: 4, then 1, then 3 (DESIGN 5). */
int drive_worse(int a, int b);

/* The exit status that the state of a campaign, and its target, give. */
int drive_status(const struct report *rep);

/* Print to the end: summary in words, report's path, what to type next; the exit status that the
 * campaign's state gives. */
int drive_summary(const struct cmd *c, struct workspace *w, int64_t id,
		  const struct drive_options *o);

#endif
