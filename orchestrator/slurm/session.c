/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hello and ping: is libslurm usable, and whom does it talk to? */
#include "orchestrator/slurm/helper.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/version.h"
#include "orchestrator/sched/slurm_wire.h"
#include "orchestrator/slurm/compat.h"
#include "orchestrator/sched/slurm_errors.h"

enum {
	MESSAGE_TIMEOUT_GUESS_S = 100
}; /* the longest that sites use: only where libslurm hides its own */

int helper_slurm_verdict(struct helper *h, int number, struct err *e, const char *what)
{
	const char *advice = slurm_errors_advice(number);

	h->slurm_errno = number;
	return err_set(e, slurm_errors_class(number), "%s: %s%s%s%s", what, slurm_strerror(number),
		       advice ? " (" : "", advice ? advice : "", advice ? ")" : "");
}

int helper_slurm_failed(struct helper *h, struct err *e, const char *what)
{
	return helper_slurm_verdict(h, errno, e, what);
}

/* slurm_init() ends the process over a configuration that it cannot read, after up to a minute of
 * retries, so look first. No file at all may be right: nodes without configuration ("configless").
 */
static int check_conf(struct err *e)
{
	const char *conf = getenv("SLURM_CONF");

	if (conf && access(conf, R_OK))
		return err_sys(e, ERR_NOT_FOUND, "SLURM_CONF=%s", conf);
	return 0;
}

static int check_library(struct err *e)
{
	int built_for = compat_api_major();
	long found = slurm_api_version();

	if (built_for && SLURM_VERSION_MAJOR(found) != built_for)
		return err_set(
			e, ERR_STATE,
			"fettle-slurm was built with the slurm.h of libslurm.so.%d and runs with "
			"libslurm.so.%ld: rebuild it (`make`) against this Slurm's own header",
			built_for, SLURM_VERSION_MAJOR(found));
	return 0;
}

/* libslurm exports its configuration but does not declare it; slurm.h declares the type. */
static const slurm_conf_t *own_conf(void)
{
	return dlsym(RTLD_DEFAULT, "slurm_conf");
}

static int message_timeout_s(void)
{
	const slurm_conf_t *conf = own_conf();

	return conf && conf->msg_timeout > 0 ? conf->msg_timeout : MESSAGE_TIMEOUT_GUESS_S;
}

/* slurm_ping() asks one controller by its index: with a backup, the first says nothing about the
 * cluster. */
int helper_check_controller(struct helper *h, struct err *e)
{
	const slurm_conf_t *conf = own_conf();
	int rc;

	if (!h->away || !conf || conf->control_cnt != 1)
		return 0;
	errno = 0;
	rc = slurm_ping(0);
	if (rc) /* -1 with errno, or the number itself */
		return helper_slurm_verdict(h, rc > 0 ? rc : errno, e, "slurmctld does not answer");
	return 0;
}

int helper_hello(struct helper *h, const struct json *req, struct json *reply, struct err *e)
{
	char header[32];
	int rc;

	(void)req;
	if ((rc = check_library(e)) || (!h->ready && (rc = check_conf(e))))
		return rc;
	if (!h->ready)
		slurm_init(NULL);
	h->ready = true;
	snprintf(header, sizeof(header), "%d.%02d.%d", SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
		 SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER),
		 SLURM_VERSION_MICRO(SLURM_VERSION_NUMBER));
	json_set_text(reply, "format", WIRE_FORMAT);
	json_set_text(reply, "version", version_text());
	json_set_text(reply, "slurm_header", header);
	json_set_i64(reply, "libslurm", SLURM_VERSION_MAJOR(slurm_api_version()));
	json_set_text(reply, "conf", getenv("SLURM_CONF"));
	json_set_i64(reply, "uid", getuid());
	json_set_i64(reply, "message_timeout_s", message_timeout_s());
	return 0;
}

static void add_controller(struct json *reply, const slurm_conf_t *c)
{
	struct json *o = json_object();

	json_set_text(o, "version", c->version);
	json_set_text(o, "cluster", c->cluster_name);
	json_set_text(o, "accounting", c->accounting_storage_type);
	json_set_i64(o, "min_job_age_s", c->min_job_age);
	json_set_i64(o, "kill_wait_s", c->kill_wait);
	json_set_i64(o, "max_jobs", c->max_job_cnt);
	json_set_i64(o, "message_timeout_s", c->msg_timeout);
	json_set_bool(o, "requeues_by_default", c->job_requeue);
	json_set(reply, "controller", o);
}

int helper_ping(struct helper *h, const struct json *req, struct json *reply, struct err *e)
{
	slurm_conf_t *conf = NULL;

	(void)req;
	if (slurm_load_ctl_conf(0, &conf))
		return helper_slurm_failed(h, e, "slurmctld does not answer");
	add_controller(reply, conf);
	COMPAT_FREE_CTL_CONF(conf);
	return 0;
}
