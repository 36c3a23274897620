/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/drive.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "experiments/archive.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/paths.h"
#include "orchestrator/cmd/ab.h"
#include "orchestrator/cmd/progress.h"
#include "orchestrator/method/fingerprint.h"
#include "orchestrator/report/recommend.h"
#include "orchestrator/report/report.h"
#include "orchestrator/report/text.h"
#include "orchestrator/script/lint.h"
#include "probes/probe.h"

enum {
	WAIT_US = 500000, /* longest sleep between two looks at the jobs: a second is soon enough,
			     half is livelier */
	FAKE_SPEC_MAX = 1 << 20,
	RECIPE_DIRS_MAX = 32,
	EXIT_NEGATIVE = 1, /* measured, and the target is missed */
};

/* -- options ---------------------------------------------------------------------------------- */

enum { OPT_TAKE_OVER = 256, OPT_FAKE, OPT_LANG };

#define LANG_OPTION                                                                                                         \
	{                                                                                                                   \
		"lang", OPT_LANG, "LANGUAGE", 0,                                                                            \
			"language of reports (progress and errors are English): en, zh (default: that of the environment)", \
			0                                                                                                   \
	}

static const struct argp_option drive_opts[] = {
	{"workspace", 'w', "DIR", 0,
	 "workspace (default: $FETTLE_WORKSPACE, else ./fettle-workspace)", 0},
	{"scheduler", 's', "SCHEDULER", 0,
	 "local, slurm, slurm_cli or fake (default: the recipe's, else local)", 0},
	{"json", 'j', NULL, 0, "JSON instead of text", 0},
	{"quiet", 'q', NULL, 0, "no progress, only the summary", 0},
	{"take-over", OPT_TAKE_OVER, NULL, 0, "take the campaign from another host that holds it",
	 0},
	LANG_OPTION,
	{"fake", OPT_FAKE, "FILE", OPTION_HIDDEN, "declared truth for scheduler fake", 0},
	{0},
};

static error_t parse_fake(struct drive_options *o, const char *file, struct argp_state *state)
{
	struct buf b = {0};
	struct err e = {0};

	if (fs_read(file, FAKE_SPEC_MAX, &b, &e) < 0)
		argp_error(state, "%s", e.text);
	o->fake_spec = buf_take(&b);
	return 0;
}

static void take_lang(struct drive_options *o, const char *name, struct argp_state *state)
{
	struct err e = {0};

	if (lang_check(name, &e) < 0)
		argp_error(state, "--lang: %s", e.text);
	o->lang = name;
}

static error_t parse_drive(int key, char *arg, struct argp_state *state)
{
	struct drive_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		if (state->child_inputs) /* only drive_argp has a child */
			state->child_inputs[0] = &o->colours;
		return 0;
	case 'w':
		o->workspace = arg;
		return 0;
	case 's':
		o->scheduler = arg;
		if (!sched_find(arg))
			argp_error(state, "no scheduler is called %s: " SCHED_NAMES, arg);
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case OPT_TAKE_OVER:
		o->take_over = true;
		return 0;
	case OPT_LANG:
		take_lang(o, arg, state);
		return 0;
	case OPT_FAKE:
		return parse_fake(o, arg, state);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}
static const struct argp_child drive_children[] = {{&terminal_argp, 0, NULL, 0}, {0}};
const struct argp drive_argp = {
	.options = drive_opts, .parser = parse_drive, .children = drive_children};

static const struct argp_option look_opts[] = {
	{"workspace", 'w', "DIR", 0,
	 "workspace (default: $FETTLE_WORKSPACE, else ./fettle-workspace)", 0},
	{"json", 'j', NULL, 0, "JSON instead of text", 0},
	{0},
};
const struct argp look_argp = {.options = look_opts, .parser = parse_drive};

error_t drive_one_campaign(struct argp_state *state, char *arg, const char **campaign)
{
	if (*campaign)
		argp_error(state, "one campaign at a time, got %s too", arg);
	*campaign = arg;
	return 0;
}

static const struct argp_option lang_opts[] = {LANG_OPTION, {0}};
const struct argp lang_argp = {.options = lang_opts, .parser = parse_drive};

int drive_worse(int a, int b)
{
	static const int rank[] = {0, 2, 4, 1, 3}; /* of 0 1 2 3 4 */

	return rank[b] > rank[a] ? b : a;
}

/* -- recipes ------------------------------------------------------------------------------------
 */

void drive_path_init(struct drive_path *p)
{
	const char *env = getenv("FETTLE_RECIPE_PATH");
	size_t n = 0;

	memset(p, 0, sizeof *p);
	p->dirs = xcalloc(RECIPE_DIRS_MAX + 2, sizeof *p->dirs);
	while (env && *env && n < RECIPE_DIRS_MAX) {
		size_t len = strcspn(env, ":");

		if (len)
			p->dirs[n++] = xstrndup(env, len);
		env += len + (env[len] == ':');
	}
	p->dirs[n] = paths_recipes();
	p->path.dirs = (const char *const *)p->dirs;
	p->path.site = p->site = paths_site();
	p->path.user = p->user = paths_user();
	for (n = 0; probe_table[n]; n++)
		;
	p->probes = xcalloc(n + 1, sizeof *p->probes);
	for (n = 0; probe_table[n]; n++)
		p->probes[n] = probe_table[n]->name;
	p->path.probes = p->probes;
}

void drive_path_done(struct drive_path *p)
{
	for (size_t i = 0; p->dirs && p->dirs[i]; i++)
		free(p->dirs[i]);
	free(p->dirs);
	free(p->site);
	free(p->user);
	free(p->probes);
}

/* `text` NULL: the file is read. */
static int load(const char *file, const char *text, const char *mode, const char *scheduler,
		struct recipe **r, struct script_sources *s, struct err *e)
{
	struct drive_path path;
	int rc;

	drive_path_init(&path);
	path.path.mode = mode;
	rc = text ? script_load_text(file, text, &path.path, r, s, e)
		  : script_load(file, &path.path, r, s, e);
	drive_path_done(&path);
	if (rc < 0)
		return rc;
	if (!scheduler)
		scheduler = (*r)->scheduler ? (*r)->scheduler : "local";
	if (str_eq(scheduler, "local") && (rc = script_check_command(*r, getenv("PATH"), e)) < 0) {
		recipe_free(*r);
		script_sources_free(s);
		*r = NULL;
	}
	return rc;
}

int drive_load(const char *file, const char *scheduler, struct recipe **r, struct script_sources *s,
	       struct err *e)
{
	return load(file, NULL, NULL, scheduler, r, s, e);
}

int drive_load_nightly(const char *file, const char *scheduler, struct recipe **r,
		       struct script_sources *s, struct err *e)
{
	return load(file, NULL, run_mode_name(MODE_STRICT), scheduler, r, s, e);
}

int drive_load_text(const char *name, const char *text, const char *scheduler, struct recipe **r,
		    struct script_sources *s, struct err *e)
{
	return load(name, text, NULL, scheduler, r, s, e);
}

int drive_lint(const struct recipe *r, const struct script_sources *s, struct err *e)
{
	struct lint_input *in = lint_input_new();
	struct lint_finding *f = NULL;
	size_t n = 0, at = 0;
	int rc = lint_campaign(in, r, s, &f, &n, &at, e);

	lint_input_free(in);
	if (rc == 0 && at < n) {
		_cleanup_free_ char *text = lint_text(&f[at]),
				    *line = f[at].line > 0 ? xasprintf("%d:", f[at].line)
							   : xstrdup("");

		rc = err_set(e, ERR_USAGE, "%s:%s %s; --anyway insists",
			     f[at].file ? f[at].file : r->name, line, text);
	}
	lint_findings_free(f, n);
	return rc;
}

/* -- campaigns ----------------------------------------------------------------------------------
 */

int drive_not_there(const char *file, struct err *e)
{
	int saved = errno;
	_cleanup_free_ char *packed = archive_advice(file);

	errno = saved;
	return packed ? err_set(e, ERR_NOT_FOUND, "%s: %s", file, packed)
		      : err_sys(e, ERR_NOT_FOUND, "%s", file);
}

int drive_find(struct workspace *w, const char *which, int64_t *id, struct err *e)
{
	struct campaign_row *rows = NULL;
	size_t n = 0;
	int64_t number;
	int rc;

	if (which && str_to_i64(which, &number)) {
		struct campaign_row row;

		rc = query_campaign_get(w->db, number, &row, e);
		if (rc == -ERR_NOT_FOUND)
			return err_set(e, ERR_NOT_FOUND,
				       "%s holds no campaign %lld; `fettle status` lists those "
				       "that it holds",
				       w->root, (long long)number);
		if (rc < 0)
			return rc;
		campaign_row_done(&row);
		*id = number;
		return 0;
	}
	if ((rc = query_campaign_list(w->db, which, &rows, &n, e)) < 0)
		return rc;
	if (n == 0)
		rc = err_set(e, ERR_NOT_FOUND,
			     "%s holds no campaign%s%s; `fettle run RECIPE` starts one%s", w->root,
			     which ? " called " : "", which ? which : "",
			     which ? ", `fettle status` lists those that it holds" : "");
	else
		*id = rows[0].id;
	campaign_rows_free(rows, n);
	return rc;
}

char *drive_command(const char *verb, const struct workspace *w, int64_t id)
{
	struct buf b = {0};

	text_sh(&b, strchr(program_invocation_name, '/') ? program_invocation_name : "fettle");
	buf_printf(&b, " %s %lld -w ", verb, (long long)id);
	text_sh(&b, w->root);
	return buf_take(&b);
}

struct recipe *drive_recipe(struct workspace *w, int64_t campaign)
{
	struct script_sources s = {0};
	struct recipe *r = NULL;

	if (campaign_sources(w, campaign, &s, NULL) == 0 && script_reload(&s, &r, NULL) < 0)
		r = NULL;
	script_sources_free(&s);
	return r;
}

int drive_expired(struct workspace *w, const struct campaign_row *row, const struct recipe *r,
		  struct strv *changes, struct err *e)
{
	_cleanup_free_ char *now = NULL;
	struct recipe *own = NULL;
	struct fix_row fix = {0};
	bool found = false;
	int rc = query_fix_get(w->db, row->id, &fix, &found, e);

	if (rc == 0 && found && fix.fingerprint) {
		if (fingerprint_is_old(fix.fingerprint)) {
			now = fingerprint_this_machine();
		} else {
			own = r ? NULL : drive_recipe(w, row->id);
			rc = fingerprint_now(w, row, r ? r : own, &now, e);
		}
		if (rc == 0)
			rc = fingerprint_changes(fix.fingerprint, now, changes, e);
	}
	recipe_free(own);
	fix_row_done(&fix);
	return rc;
}

static int exit_of_state(const struct campaign_row *row)
{
	switch (row->state) {
	case CAMPAIGN_DONE:
		return 0;
	case CAMPAIGN_RUNNING: /* with a reason: nothing may start now */
		return row->reason ? 3 : 0;
	case CAMPAIGN_STOPPED:
		return 3;
	case CAMPAIGN_FAILED:
		return 4;
	}
	return 4;
}

/* -- the loop -----------------------------------------------------------------------------------
 */

/* What `nohup` made harmless stays so. */
static bool ignored(int signo)
{
	struct sigaction old;

	return sigaction(signo, NULL, &old) == 0 && old.sa_handler == SIG_IGN;
}

static int open_signals(struct drive_run *d, struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (!ignored(SIGHUP))
		sigaddset(&set, SIGHUP);
	if (d->view.style == STYLE_LIVE) {
		sigaddset(&set, SIGWINCH);
		sigaddset(&set, SIGTSTP);
		sigaddset(&set, SIGCONT);
	}
	sigprocmask(SIG_BLOCK, &set, &d->old_mask);
	d->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return d->signal_fd < 0 ? err_sys(e, ERR_IO, "signalfd") : 0;
}

/* Ctrl-Z: the view is taken away and we stop as everybody does, which the kernel refuses where no
 * shell could continue us. The campaign's jobs go on. */
static void suspend(struct drive_run *d)
{
	sigset_t set;

	progress_hide(&d->view);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL); /* here we stand until SIGCONT */
	sigprocmask(SIG_BLOCK, &set, NULL);
}

bool drive_asked_to_stop(struct drive_run *d)
{
	struct signalfd_siginfo si;

	while (read(d->signal_fd, &si, sizeof si) == sizeof si) {
		if (si.ssi_signo == SIGTSTP)
			suspend(d);
		if (si.ssi_signo == SIGTSTP || si.ssi_signo == SIGWINCH || si.ssi_signo == SIGCONT)
			progress_touch(&d->view);
		else
			d->signals++;
	}
	return d->signals > 0;
}

/* From here on Ctrl-C ends us at once, as kill -9 would: a cluster that does not answer must not
 * hold the terminal. Not so SIGHUP, which a closed terminal may send twice. */
static int stop_by_signal(struct drive_run *d, struct campaign *c, struct err *e)
{
	sigset_t set;

	progress_hide(&d->view);
	fputs("fettle: stopping: cancelling the jobs in flight (again to leave them running)\n",
	      stderr);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return campaign_cancel(c, DRIVE_STOPPED, e);
}

static int drive_loop(struct drive_run *d, struct campaign *c, struct err *e)
{
	const struct clock *clock = d->w->clock;
	enum campaign_step step = CAMPAIGN_AGAIN;
	int rc = 0;

	while (rc == 0) {
		if (drive_asked_to_stop(d))
			return d->options->leave_jobs ? 0 : stop_by_signal(d, c, e);
		if ((rc = campaign_step(c, &step, e)) < 0 || step == CAMPAIGN_OVER ||
		    step == CAMPAIGN_LATER)
			break;
		if (step == CAMPAIGN_WAIT && d->options->once)
			break;
		if (step == CAMPAIGN_WAIT)
			rc = campaign_wait(c, WAIT_US, d->signal_fd, e);
		progress_tick(&d->view, clock_utc_us(clock));
	}
	return rc;
}

struct campaign_options drive_campaign_options(struct drive_run *d)
{
	const struct drive_options *o = d->options;

	return (struct campaign_options){.sched = o->scheduler ? sched_find(o->scheduler) : NULL,
					 .agent = d->agent,
					 .helper = d->helper,
					 .spec = o->fake_spec,
					 .take_over = o->take_over,
					 .until_us = o->until_us,
					 .wait_until_us = o->wait_until_us,
					 .spend_node_s = o->spend_node_s,
					 .tell = progress_tell,
					 .tell_ctx = &d->view};
}

int drive_begin(struct drive_run *d, struct workspace *w, const struct drive_options *o, FILE *out,
		struct err *e)
{
	*d = (struct drive_run){.options = o,
				.w = w,
				.signal_fd = -1,
				.agent = paths_agent(),
				.helper = paths_slurm_helper()};
	progress_init(&d->view, out, o->json, o->quiet, o->colours);
	d->view.start_us = clock_utc_us(w->clock);
	return open_signals(d, e);
}

void drive_end(struct drive_run *d)
{
	progress_end(&d->view);
	free(d->agent);
	free(d->helper);
	if (d->signal_fd >= 0)
		close(d->signal_fd);
	sigprocmask(SIG_SETMASK, &d->old_mask, NULL);
}

int drive_go(struct drive_run *d, int64_t id, struct err *e)
{
	struct campaign_options o = drive_campaign_options(d);
	struct recipe *r = d->view.style == STYLE_LIVE ? drive_recipe(d->w, id) : NULL;
	struct campaign *c = NULL;
	int rc;

	o.recipe = r;
	rc = campaign_open(d->w, id, &o, &c, e);
	progress_follow(&d->view, d->w, id, r);
	if (rc == 0)
		rc = drive_loop(d, c, e);
	progress_end(&d->view);
	campaign_close(c);
	recipe_free(r);
	return rc;
}

/* After an error: what another process drives is to be watched or stopped, not resumed. */
static void say_next(struct workspace *w, int64_t id)
{
	_cleanup_free_ char *stop = drive_command("stop", w, id);
	_cleanup_free_ char *look = drive_command("status", w, id);
	_cleanup_free_ char *resume = drive_command("resume", w, id);
	struct lease l;
	bool held = false;

	if (query_lease_get(w->db, id, &l, &held, NULL) == 0 && held)
		fprintf(stderr, "fettle: `%s` shows how far it is, `%s` stops it\n", look, stop);
	else
		fprintf(stderr, "fettle: nothing is lost: `%s` goes on\n", resume);
}

int drive_campaign(const struct cmd *c, struct workspace *w, int64_t id,
		   const struct drive_options *o)
{
	struct drive_run d;
	struct err e = {0};
	int rc = drive_begin(&d, w, o, stdout, &e);

	if (rc == 0)
		rc = drive_go(&d, id, &e);
	drive_end(&d);
	if (rc < 0) {
		int status = cmd_fail(c, &e);

		say_next(w, id);
		return status;
	}
	return drive_summary(c, w, id, o);
}

/* -- the summary --------------------------------------------------------------------------------
 */

static int reload(struct workspace *w, int64_t id, struct recipe **r, struct err *e)
{
	struct script_sources s;
	int rc = campaign_sources(w, id, &s, e);

	if (rc < 0)
		return rc;
	rc = script_reload(&s, r, e);
	script_sources_free(&s);
	return rc;
}

int drive_report(struct workspace *w, int64_t id, struct recipe **r, struct report **out,
		 struct err *e)
{
	int rc = reload(w, id, r, e);

	if (rc < 0)
		return rc;
	rc = report_load(w->db, id, *r, w->root, out, e);
	if (rc < 0) {
		recipe_free(*r);
		*r = NULL;
	}
	return rc;
}

int drive_format(const struct report_format *f, const struct report *rep, const char *lang,
		 struct buf *out, struct err *e)
{
	int rc;

	if (f->for_people)
		lang_begin(lang);
	rc = f->write(rep, out, e);
	lang_end();
	return rc;
}

int drive_write_reports(struct workspace *w, struct report *rep, int64_t id, const char *lang,
			struct err *e)
{
	_cleanup_free_ char *dir = fs_join(w->root, "reports"), *place = NULL;
	int rc = fs_mkdirs(dir, 0700, e);

	if (rc == 0 && (place = fs_absolute(dir, NULL)))
		report_lies_in(rep, place);
	for (const struct report_format *const *f = report_format_table; rc == 0 && *f; f++) {
		_cleanup_free_ char *name = xasprintf("campaign-%lld.%s", (long long)id,
						      (*f)->extension);
		_cleanup_free_ char *path = fs_join(dir, name);
		struct buf b = {0};

		if ((rc = drive_format(*f, rep, lang, &b, e)) == 0)
			rc = fs_write_atomic(path, b.data ? b.data : "", b.len, 0600, e);
		buf_free(&b);
	}
	return rc;
}

static void print_next(const struct report *rep, const struct workspace *w, int64_t id)
{
	bool fixed = rep->has_fix && recommend_confirmed(rep);
	const char *verb = rep->campaign.state == CAMPAIGN_STOPPED   ? "resume"
			   : rep->campaign.state == CAMPAIGN_RUNNING ? "resume"
			   : fixed                                   ? "recommend"
								     : "report";
	_cleanup_free_ char *command = drive_command(verb, w, id);

	printf("\nreport: %s/reports/campaign-%lld.md   (with pictures: campaign-%lld.html)\n",
	       w->root, (long long)id, (long long)id);
	if (rep->campaign.state == CAMPAIGN_FAILED)
		printf("next: look into the log (paths are relative to the workspace), mend it, "
		       "run the recipe again\n");
	else
		printf("next: %s%s\n", command, fixed ? "   (--as sbatch, --as json)" : "");
}

int drive_status(const struct report *rep)
{
	return rep->campaign.state == CAMPAIGN_DONE && rep->target == TARGET_MISSED
		       ? EXIT_NEGATIVE
		       : exit_of_state(&rep->campaign);
}

int drive_summary(const struct cmd *c, struct workspace *w, int64_t id,
		  const struct drive_options *o)
{
	struct recipe *r = NULL;
	struct report *rep = NULL;
	struct buf text = {0};
	struct err e = {0};
	int status;

	if (drive_report(w, id, &r, &rep, &e) < 0)
		return cmd_fail(c, &e);
	status = drive_status(rep);
	if (!o->once || rep->campaign.state != CAMPAIGN_RUNNING) {
		report_summary(rep, &text);
		if (!o->json)
			printf("\n%s", text.data ? text.data : "");
		if (drive_write_reports(w, rep, id, o->lang, &e) < 0)
			status = cmd_fail(c, &e);
		else if (!o->json)
			print_next(rep, w, id);
		status = ab_answer(rep, o->json, status);
	}
	buf_free(&text);
	report_free(rep);
	recipe_free(r);
	return status;
}
