/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"
#include "orchestrator/cmd/nightly.h"
#include "orchestrator/report/outlet.h"

extern const struct cmd cmd_nightly;

enum { OPT_WINDOW = 512, OPT_NODE_HOURS, OPT_GPU_HOURS, OPT_NIGHT, OPT_PLAN, LOCK_TEXT_MAX = 512 };

/* How long a night lasts whose end nobody gave: the timer of the next day finds it over. */
static const int64_t NIGHT_US = INT64_C(23) * 3600 * 1000000;
/* What ends with the night ends within this: agents by its clock, Slurm looks once a minute. */
static const int64_t LAST_WORD_US = INT64_C(300) * 1000000;

static double amount(const char *option, const char *arg, struct argp_state *state)
{
	double v;

	if (!str_to_double(arg, &v) || v <= 0)
		argp_error(state, "--%s wants a number above 0, got %s", option, arg);
	return v;
}

static void take_window(struct nightly_options *o, const char *arg, struct argp_state *state)
{
	struct hours h;
	struct err e = {0};

	if (hours_parse(arg, &h, &e) < 0)
		argp_error(state, "--window %s", e.text);
	strv_add(&o->window, arg);
}

static void take_night(struct nightly_options *o, const char *arg, struct argp_state *state)
{
	int64_t nights;

	if (!due_nights_between(arg, arg, &nights))
		argp_error(state, "--night wants a date like 2026-11-29, got %s", arg);
	o->night = arg;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct nightly_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->drive;
		state->child_inputs[1] = &o->outlets;
		return 0;
	case OPT_WINDOW:
		take_window(o, arg, state);
		return 0;
	case 'm':
		o->minutes = amount("minutes", arg, state);
		return 0;
	case OPT_NODE_HOURS:
		o->node_hours = amount("node-hours", arg, state);
		return 0;
	case OPT_GPU_HOURS:
		o->gpu_hours = amount("gpu-hours", arg, state);
		return 0;
	case OPT_NIGHT:
		take_night(o, arg, state);
		return 0;
	case OPT_PLAN:
		o->plan = true;
		return 0;
	case ARGP_KEY_ARG:
		if (o->dir)
			argp_error(state, "one directory at a time, got %s too", arg);
		o->dir = arg;
		return 0;
	case ARGP_KEY_END:
		if (!o->dir)
			argp_error(state, "which directory? (it holds the recipes of the nights)");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* -- one at a time ---------------------------------------------------------------------------- */

/* A night that was named, and not of today, has no opening: what it may cost counts from the first
 * of the calls that named it one after another, which is the second line of what the last one left.
 */
static void go_on_counting(struct nightly *n, const char *held)
{
	_cleanup_free_ char *same = xasprintf("night %s of ", n->night);
	const char *second = strchr(held, '\n');
	int64_t since;

	if (n->since_us == n->now_us && str_starts(held, same) && second &&
	    str_to_i64(second + 1, &since) && since < n->now_us)
		n->since_us = since;
}

/* What the lock holds; "" nothing. */
static bool lock_text(int fd, char held[LOCK_TEXT_MAX + 1])
{
	ssize_t got = pread(fd, held, LOCK_TEXT_MAX, 0);

	held[got > 0 ? got : 0] = '\0';
	return got >= 0;
}

/* The lock is the kernel's and ends with its holder; the text says who that is. */
static int take_lock(struct nightly *n, int *fd, struct err *e)
{
	_cleanup_free_ char *path = fs_join(n->w->root, "nightly.lock"), *text = NULL;
	char held[LOCK_TEXT_MAX + 1], host[65], boot[37], since[32];
	bool locked;

	*fd = fs_create(path, O_RDWR, 0600);
	if (*fd < 0)
		return err_sys(e, ERR_IO, "%s", path);
	locked = flock(*fd, LOCK_EX | LOCK_NB) == 0;
	if (!locked && errno != EWOULDBLOCK)
		return err_sys(e, ERR_IO, "%s: lock", path);
	if (!lock_text(*fd, held))
		return err_sys(e, ERR_IO, "%s", path);
	if (!locked) {
		held[strcspn(held, "\n")] = '\0';
		return err_set(e, ERR_TEMP, "another night is under way in this workspace: %s",
			       *held ? held : "it has just begun");
	}
	go_on_counting(n, held);
	proc_host(host, boot);
	clock_iso(n->now_us, since, sizeof since);
	text = xasprintf("night %s of %s, process %ld on %s since %s\n%lld", n->night, n->o->dir,
			 (long)getpid(), host, since, (long long)n->since_us);
	if (ftruncate(*fd, 0) < 0 || pwrite(*fd, text, strlen(text), 0) < 0)
		return err_sys(e, ERR_IO, "%s", path);
	return 0;
}

/* -- the night -------------------------------------------------------------------------------- */

/* The site's hours bound every campaign anyway: they also say which night it is. */
static const struct strv *window_of(const struct nightly *n)
{
	static const struct strv none = {0};

	if (n->o->window.n)
		return &n->o->window;
	for (size_t i = 0; i < n->n_recipes; i++)
		if (n->recipes[i].r && n->recipes[i].r->budget.site_window.n)
			return &n->recipes[i].r->budget.site_window;
	return &none;
}

/* Which night it is, when it ends, and from when on its cost counts. */
static int set_night(struct nightly *n, struct err *e)
{
	struct hours_state s;
	struct hours_night h;
	char opens[96] = "never";

	n->window = window_of(n);
	hours_at(n->window, n->now_us, &s);
	if (!hours_night_at(n->window, n->now_us, &h))
		return err_set(e, ERR_USAGE, "the window %s never opens", n->window->v[0]);
	str_copy(n->night, sizeof n->night, n->o->night ? n->o->night : h.night);
	n->since_us = n->o->night && !str_eq(n->o->night, h.night) ? n->now_us : h.opens_us;
	if (!s.open && !n->o->plan) {
		hours_text(n->window, s.opens_us, opens, sizeof opens);
		return err_set(e, ERR_TEMP, "the window %s is closed and opens at %s",
			       n->window->v[0], opens);
	}
	if (s.open && s.closes_us < INT64_MAX)
		n->bounds.until_us = s.closes_us;
	if (n->o->minutes > 0) {
		int64_t end = n->now_us + (int64_t)(n->o->minutes * 60e6);

		if (!n->bounds.until_us || end < n->bounds.until_us)
			n->bounds.until_us = end;
	}
	n->bounds.wait_until_us = n->bounds.until_us ? n->bounds.until_us + LAST_WORD_US
						     : n->now_us + NIGHT_US;
	return 0;
}

static int open_workspace(struct nightly *n, struct err *e)
{
	const char *dir = workspace_default(n->o->drive.workspace);
	_cleanup_free_ char *db = fs_join(dir, "fettle.db");

	if (n->o->plan && !fs_exists(db))
		return 0;
	return workspace_open(dir, n->o->plan ? DB_READ : DB_CREATE, &clock_system, &n->w, e);
}

static int print(struct nightly *n, struct err *e)
{
	struct buf b = {0};
	int rc;

	if (!n->o->drive.json)
		lang_begin(n->o->drive.lang);
	rc = n->o->drive.json ? nightly_json(n, &b, e) : nightly_page(n, &b, e);
	lang_end();
	if (rc == 0)
		fputs(b.data ? b.data : "", stdout);
	buf_free(&b);
	return rc;
}

/* What cannot be told is said, and changes neither the night nor its status. */
static void tell_others(const struct nightly *n)
{
	int64_t end_us = clock_utc_us(&clock_system);
	struct outlet_night night = {
		.completed_us = end_us,
		.status = nightly_status(n),
		.node_s = n->spent_node_s,
		.wall_s = (double)(end_us - n->now_us) / 1e6,
	};
	struct err e = {0};

	if (outlets_deliver(n->w, &n->o->outlets, &night, &e) < 0)
		fprintf(stderr, "fettle nightly: warning: %s\n", e.text);
}

/* With the lock held. Progress is for whoever looks on: the page alone is what a mail holds. */
static int hold_night(struct nightly *n, struct err *e)
{
	int rc;

	n->bounds.quiet = n->bounds.quiet || n->bounds.json || !isatty(STDERR_FILENO);
	n->bounds.json = false;
	rc = drive_begin(&n->drive, n->w, &n->bounds, stderr, e);
	if (rc == 0 && (rc = nightly_gather(n, e)) == 0)
		rc = nightly_run(n, e);
	drive_end(&n->drive);
	return rc;
}

/* Nothing is locked, and nothing written. */
static int plan_night(struct nightly *n, struct err *e)
{
	_cleanup_free_ char *path = n->w ? fs_join(n->w->root, "nightly.lock") : NULL;
	char held[LOCK_TEXT_MAX + 1];
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd >= 0 && lock_text(fd, held))
		go_on_counting(n, held);
	if (fd >= 0)
		close(fd);
	return nightly_gather(n, e);
}

static int whole_night(struct nightly *n, struct err *e)
{
	int fd = -1;
	int rc = open_workspace(n, e);

	if (rc == 0 && (rc = nightly_read(n, e)) == 0 && (rc = set_night(n, e)) == 0) {
		if (n->o->plan)
			rc = plan_night(n, e);
		else if ((rc = take_lock(n, &fd, e)) == 0)
			rc = hold_night(n, e);
	}
	if (rc == 0)
		rc = print(n, e);
	if (rc == 0 && !n->o->plan)
		tell_others(n);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_child children[] = {
		{&drive_argp, 0, NULL, 0}, {&outlets_argp, 0, NULL, 0}, {0}};
	static const struct argp_option opts[] = {
		{"plan", OPT_PLAN, NULL, 0,
		 "say what would run tonight, in which order, what it costs and why; run nothing",
		 0},
		{"window", OPT_WINDOW, "HOURS", 0,
		 "nothing runs outside of these hours, \"22:00-06:00 Europe/Berlin\"; may be given "
		 "again (default: the site's)",
		 0},
		{"minutes", 'm', "N", 0,
		 "nothing is started that cannot end in this time (default, without a window: it "
		 "begins nothing after 23 hours, nor waits any longer)",
		 0},
		{"node-hours", OPT_NODE_HOURS, "N", 0, "most that this night may cost", 0},
		{"gpu-hours", OPT_GPU_HOURS, "N", 0, "most that this night may cost", 0},
		{"night", OPT_NIGHT, "DATE", 0,
		 "the night that the results belong to (default: the date on which the window "
		 "opened)",
		 0},
		{0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "DIR",
		.doc = "Do what is due tonight: of all recipes (*.lua) in a directory that have a "
		       "`schedule`, canaries first, then the re-runs of what looks changed, fixes "
		       "whose environment changed, and sweeps.\v"
		       "For a timer or cron: one page at the end. Exit status 0 when all is as it "
		       "was, 1 for a confirmed regression that is open, 3 when something is left "
		       "for another night, 4 for what needs somebody. The same command again goes "
		       "on with a night that was stopped or killed.",
		.children = children};
	struct nightly_options o = {0};
	struct nightly n = {.o = &o, .now_us = clock_utc_us(&clock_system)};
	struct err e = {0};
	int status;

	cmd_parse(&argp, argc, argv, &o);
	n.bounds = o.drive;
	status = whole_night(&n, &e) < 0 ? cmd_fail(&cmd_nightly, &e)
		 : o.plan                ? 0
					 : nightly_status(&n);
	nightly_done(&n);
	workspace_close(n.w);
	strv_free(&o.window);
	free((char *)o.drive.fake_spec);
	return status;
}

const struct cmd cmd_nightly = {.name = "nightly",
				.summary = "everything that is due tonight, and what it found",
				.run = run};
