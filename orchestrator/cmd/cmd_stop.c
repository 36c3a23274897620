/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/paths.h"
#include "orchestrator/base/proc.h"
#include "orchestrator/base/user.h"
#include "orchestrator/cmd/drive.h"

extern const struct cmd cmd_stop;

enum { OPT_DRAIN = 512 };
enum { OWNER_WAIT_MS = 15000 }; /* the owner cancels its jobs first: TERM, grace, KILL */

struct args {
	struct drive_options drive;
	const char *campaign;
	bool drain;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->drive;
		return 0;
	case OPT_DRAIN:
		a->drain = true;
		return 0;
	case ARGP_KEY_ARG:
		return drive_one_campaign(state, arg, &a->campaign);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* An owner elsewhere is taken for alive: who else could say? */
static bool owner_lives(const struct lease *l)
{
	struct proc_id id = {(pid_t)l->pid, l->start_ticks};
	char host[65], boot[37];

	proc_host(host, boot);
	return !str_eq(host, l->host) || proc_alive(&id);
}

static int not_ours(const struct proc_id *id, struct err *e)
{
	_cleanup_free_ char *proc = xasprintf("/proc/%d", (int)id->pid), *owner = NULL;
	struct stat st;

	if (errno != EPERM || stat(proc, &st))
		return err_sys(e, ERR_IO, "cannot signal process %d", (int)id->pid);
	owner = user_name_of(st.st_uid);
	return err_set(e, ERR_STATE,
		       "process %d of %s drives it: %s stops it, or `fettle stop --drain` lets the "
		       "running blocks end and then stops it",
		       (int)id->pid, owner, owner);
}

/* A live owner on this host is asked to stop by itself: it knows what is in flight. 1: it did, 0:
 * there is none. */
static int ask_owner(const struct lease *l, struct err *e)
{
	struct proc_id id = {(pid_t)l->pid, l->start_ticks};
	struct timespec nap = {.tv_nsec = 50 * 1000000};
	char host[65], boot[37];

	proc_host(host, boot);
	if (!str_eq(host, l->host) || !proc_alive(&id))
		return 0;
	if (kill(id.pid, SIGTERM) < 0)
		return errno == ESRCH ? 0 : not_ours(&id, e);
	for (int ms = 0; ms < OWNER_WAIT_MS && proc_alive(&id); ms += 50)
		nanosleep(&nap, NULL);
	return !proc_alive(&id);
}

/* A job that could not be cancelled, above all: it may be another user's. */
static void say_note(void *ctx, const struct progress *p)
{
	(void)ctx;
	if (p->kind == PROGRESS_NOTE)
		fprintf(stderr, "fettle stop: %s\n", p->text);
}

static int stop_here(struct workspace *w, int64_t id, const struct args *a, struct err *e)
{
	_cleanup_free_ char *agent = paths_agent(), *helper = paths_slurm_helper();
	struct campaign_options o = {.agent = agent,
				     .helper = helper,
				     .take_over = a->drive.take_over,
				     .tell = say_note,
				     .sched = a->drive.scheduler ? sched_find(a->drive.scheduler)
								 : NULL,
				     .spec = a->drive.fake_spec};
	struct campaign *c = NULL;
	int rc = campaign_open(w, id, &o, &c, e);

	if (rc == 0)
		rc = campaign_cancel(c, "stopped by `fettle stop`", e);
	campaign_close(c);
	return rc;
}

/* Its owner, here or elsewhere, sees the event before the next submit. Without one the running
 * blocks are waited for here. */
static int drain(struct workspace *w, int64_t id, bool held, const struct args *a, struct err *e)
{
	_cleanup_free_ char *look = drive_command("status", w, id);
	int rc = query_event_add(w->db, id, clock_utc_us(&clock_system), "drain",
				 "asked for by `fettle stop --drain`", e);

	if (rc < 0)
		return rc;
	if (held) {
		printf("campaign %lld starts no further block and stops when the running ones have "
		       "ended; `%s` shows how far it is\n",
		       (long long)id, look);
		return 0;
	}
	(void)drive_campaign(&cmd_stop, w, id, &a->drive);
	return 0;
}

static int stop(struct workspace *w, const struct args *a, struct err *e)
{
	struct campaign_row row;
	struct lease l;
	bool held = false;
	int64_t id;
	int rc = drive_find(w, a->campaign, &id, e);

	if (rc < 0 || (rc = query_campaign_get(w->db, id, &row, e)) < 0)
		return rc;
	if (row.state != CAMPAIGN_RUNNING) {
		printf("campaign %lld is %s\n", (long long)id, campaign_state_name(row.state));
		campaign_row_done(&row);
		return 0;
	}
	campaign_row_done(&row);
	if ((rc = query_lease_get(w->db, id, &l, &held, e)) < 0)
		return rc;
	if (a->drain)
		return drain(w, id, held && owner_lives(&l), a, e);
	if (held && (rc = ask_owner(&l, e)) < 0)
		return rc;
	rc = rc > 0 ? 0 : stop_here(w, id, a, e);
	if (rc == 0) {
		_cleanup_free_ char *command = drive_command("resume", w, id);

		printf("campaign %lld is stopped; `%s` goes on\n", (long long)id, command);
	}
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_child children[] = {{&drive_argp, 0, NULL, 0}, {0}};
	static const struct argp_option opts[] = {
		{"drain", OPT_DRAIN, NULL, 0,
		 "start no further block, but let the running ones end and count them", 0},
		{0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "[CAMPAIGN]",
		.doc = "Stop a campaign and cancel its jobs; it can be resumed.",
		.children = children};
	struct args a = {0};
	struct workspace *w = NULL;
	struct err e = {0};
	int status = 0;

	cmd_parse(&argp, argc, argv, &a);
	if (workspace_open(workspace_default(a.drive.workspace), DB_WRITE, &clock_system, &w, &e) <
		    0 ||
	    stop(w, &a, &e) < 0)
		status = cmd_fail(&cmd_stop, &e);
	workspace_close(w);
	free((char *)a.drive.fake_spec);
	return status;
}

const struct cmd cmd_stop = {
	.name = "stop", .summary = "stop a campaign and cancel its jobs", .run = run};
