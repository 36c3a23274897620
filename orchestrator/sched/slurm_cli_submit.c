/* SPDX-License-Identifier: GPL-2.0-or-later */
/* submit and willrun: from the `job` of a request to the arguments of sbatch. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "experiments/model.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/sched/slurm_cli_priv.h"
#include "orchestrator/sched/slurm_errors.h"
#include "orchestrator/sched/slurm_limits.h"
#include "orchestrator/sched/slurm_script.h"
#include "orchestrator/sched/slurm_state.h"
#include "orchestrator/sched/slurm_text.h"

enum { SECONDS_A_MINUTE = 60, PART_CONFIG_UNAVAILABLE = 2015 };

static const char *text_of(const struct json *job, const char *key)
{
	const char *s = json_text(json_get(job, key), NULL);

	return s && *s ? s : NULL;
}

static int64_t number_of(const struct json *job, const char *key)
{
	return json_i64(json_get(job, key), 0);
}

static int64_t minutes_of(const struct json *job)
{
	return (number_of(job, "time_limit_s") + SECONDS_A_MINUTE - 1) / SECONDS_A_MINUTE;
}

static int64_t nodes_of(const struct json *job)
{
	return number_of(job, "nodes") > 0 ? number_of(job, "nodes") : 1;
}

/* --- arguments -------------------------------------------------------------------------- */

static void put_number(struct strv *argv, const char *option, int64_t v, const char *unit)
{
	if (v > 0)
		strv_addf(argv, "--%s=%lld%s", option, (long long)v, unit);
}

static void put_text(struct strv *argv, const char *option, const char *v)
{
	if (v)
		strv_addf(argv, "--%s=%s", option, v);
}

static void put_resources(struct strv *argv, const struct json *job)
{
	static const char *const texts[] = {"partition",  "account",  "qos",    "reservation",
					    "constraint", "nodelist", "exclude"};
	int64_t nodes = nodes_of(job), tasks = number_of(job, "tasks_per_node");

	strv_addf(argv, "--nodes=%lld", (long long)nodes);
	put_number(argv, "ntasks-per-node", tasks, "");
	put_number(argv, "ntasks", tasks * nodes, "");
	put_number(argv, "cpus-per-task", number_of(job, "cpus_per_task"), "");
	put_number(argv, "mem", number_of(job, "mem_mib_per_node"), "M");
	put_number(argv, "time", minutes_of(job), "");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		put_text(argv, texts[i], text_of(job, texts[i]));
	if (json_bool(json_get(job, "exclusive"), true))
		strv_add(argv, "--exclusive");
}

/* --gres holds what gpus_per_node and gres ask for. */
static void put_gres(struct strv *argv, const struct json *job)
{
	const char *gres = text_of(job, "gres");
	int64_t gpus = number_of(job, "gpus_per_node");

	if (gpus > 0 && gres)
		strv_addf(argv, "--gres=gpu:%lld,%s", (long long)gpus, gres);
	else if (gpus > 0)
		strv_addf(argv, "--gres=gpu:%lld", (long long)gpus);
	else
		put_text(argv, "gres", gres);
}

static void put_options(struct strv *argv, const struct json *job)
{
	put_gres(argv, job);
	for (const struct job_option *k = job_option_table; k->key; k++) {
		int64_t v = number_of(job, k->key);

		switch (k->kind) {
		case JOB_OPTION_TEXT:
			if (!str_eq(k->key, "gres"))
				put_text(argv, k->sbatch, text_of(job, k->key));
			break;
		case JOB_OPTION_COUNT:
			if (v)
				strv_addf(argv, "--%s=%lld", k->sbatch, (long long)v);
			break;
		case JOB_OPTION_MIB:
			put_number(argv, k->sbatch, v, "M");
			break;
		}
	}
}

static int put_output(struct strv *argv, const char *path, struct err *e)
{
	_cleanup_free_ char *escaped = NULL;
	int rc;

	if (!path || path[0] != '/')
		return err_set(e, ERR_RECIPE, "output '%s' is not an absolute path",
			       path ? path : "");
	if ((rc = slurm_script_output_path(path, &escaped, e)))
		return rc;
	strv_addf(argv, "--output=%s", escaped);
	return 0;
}

static int arguments(const struct json *job, bool dry, struct strv *argv, struct err *e)
{
	const char *token = text_of(job, "token"), *workdir = text_of(job, "workdir");
	int rc;

	if ((rc = slurm_script_check_token(token, e)) ||
	    (rc = slurm_script_check_workdir(workdir, e)))
		return rc;
	strv_add(argv, "sbatch");
	strv_add(argv, dry ? "--test-only" : "--parsable");
	put_text(argv, "job-name", token);
	put_text(argv, "chdir", workdir);
	if ((rc = put_output(argv, text_of(job, "output"), e)))
		return rc;
	strv_add(argv, "--no-requeue");
	strv_add(argv, "--export=ALL");
	strv_add(argv, "--propagate=NONE"); /* limits of the nodes, not of this shell */
	put_resources(argv, job);
	put_options(argv, job);
	return 0;
}

/* --- environment and script ------------------------------------------------------------- */

/* sbatch passes its own environment on, and reads options from it: it gets that of the job. */
static void environment(const struct json *job, bool dry, struct strv *env)
{
	const struct json *given = json_get(job, "env");
	const char *conf = getenv("SLURM_CONF");

	for (size_t i = 0; i < json_len(given); i++) {
		const char *kv = json_text(json_at(given, i), "");

		if (strchr(kv, '=') && !str_starts(kv, "SBATCH_") && !str_starts(kv, "SLURM_"))
			strv_add(env, kv);
	}
	if (conf)
		strv_addf(env, "SLURM_CONF=%s", conf);
	if (dry) /* what is printed must be readable; a job must not inherit it */
		strv_add(env, "SLURM_TIME_FORMAT=%s");
}

/* The script as a file that sbatch reads from its stdin. */
static int script_fd(const struct json *job, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	int fd, rc = slurm_script_text(job, &text, e);
	size_t n;

	if (rc)
		return rc;
	n = strlen(text);
	fd = memfd_create("fettle-job", MFD_CLOEXEC);
	if (fd >= 0 && (write(fd, text, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET) != 0)) {
		close(fd);
		fd = -1;
	}
	return fd < 0 ? err_sys(e, ERR_IO, "cannot hand the batch script to sbatch") : fd;
}

/* --- limits ----------------------------------------------------------------------------- */

/* As fettle-slurm: Slurm may keep such a job waiting for ever. */
static int check_limits(struct slurm_cli *c, const struct json *job, struct err *e)
{
	const char *name = text_of(job, "partition");
	_cleanup_free_ char *line = NULL, *label = NULL, *total = NULL, *most = NULL, *time = NULL;
	struct slurm_limits l = {0};
	int64_t n;

	if (text_of(job, "qos") || (name && strchr(name, ',')) ||
	    slurm_cli_partition(c, name, &line, NULL))
		return 0; /* sbatch will say why */
	label = slurm_text_value(line, "PartitionName");
	total = slurm_text_value(line, "TotalNodes");
	most = slurm_text_value(line, "MaxNodes");
	time = slurm_text_value(line, "MaxTime");
	l.partition = label ? label : "";
	l.nodes_total = total && str_to_i64(total, &n) ? n : 0;
	l.nodes_most = most && str_to_i64(most, &n) ? n : 0;
	l.minutes_most = time && (n = slurm_limits_duration_s(time)) > 0 ? n / SECONDS_A_MINUTE : 0;
	return slurm_limits_check(&l, nodes_of(job), minutes_of(job), e);
}

/* --- the two requests ------------------------------------------------------------------- */

static int take_forecast(struct slurm_cli *c, const struct slurm_cli_output *o, struct json *reply,
			 struct err *e)
{
	_cleanup_free_ char *list = NULL, *partition = NULL, *nodes = NULL;
	int64_t start_s = 0;

	if (!slurm_text_forecast(o->err.data ? o->err.data : "", &start_s, &list, &partition))
		return err_set(e, ERR_PARSE, "dry run: sbatch said '%.200s', and not when",
			       o->err.data ? o->err.data : "");
	nodes = slurm_cli_expand(c, list ? list : "");
	json_set_i64(reply, "start_s", start_s);
	json_set_text(reply, "nodes", nodes);
	json_set_text(reply, "partition", partition);
	return 0;
}

/* "7", or "7;cluster". */
static int take_number(const struct slurm_cli_output *o, struct json *reply, struct err *e)
{
	const char *said = o->out.data ? o->out.data : "";
	_cleanup_free_ char *id = xstrndup(said, strspn(said, "0123456789"));

	if (!*id) /* it may have been accepted */
		return err_set(e, ERR_TEMP, "submit: sbatch gave no job number: '%.200s'", said);
	json_set_text(reply, "job", id);
	return 0;
}

static int run_sbatch(struct slurm_cli *c, const char *what, const struct json *job, bool dry,
		      struct json *reply, struct err *e)
{
	_cleanup_(strv_free) struct strv argv = {0}, env = {0};
	struct slurm_cli_output o = {0};
	int rc, fd;

	if ((rc = arguments(job, dry, &argv, e)) || (fd = script_fd(job, e)) < 0)
		return rc ? rc : fd;
	environment(job, dry, &env);
	rc = slurm_cli_run(c, what, &argv, strv_end(&env), fd, &o, e);
	if (rc == 0)
		rc = dry ? take_forecast(c, &o, reply, e) : take_number(&o, reply, e);
	close(fd);
	slurm_cli_output_done(&o);
	return rc;
}

/* sbatch queues what can never start, and leaves its reason in the queue. Such a job is withdrawn,
 * and refused in the words of a dry run. No answer to the question is no reason to. */
static int judge_acceptance(struct slurm_cli *c, const struct json *job, const char *id,
			    struct err *e)
{
	_cleanup_(json_freep) struct json *ignored = json_object();
	_cleanup_free_ char *reason = slurm_cli_pending_reason(c, id);
	int rc;

	if (!reason || slurm_state_pending_for(reason) != PENDING_NEVER)
		return 0;
	if ((rc = slurm_cli_cancel(c, id, NULL, e)))
		return err_wrap(e, "cannot withdraw job %s, which can never start (%s)", id,
				reason);
	if (check_limits(c, job, e))
		return err_wrap(e, "submit");
	if (run_sbatch(c, "submit", job, true, ignored, e))
		return -(int)e->code;
	return err_set(e, ERR_RECIPE,
		       "submit: Requested partition configuration not available now (%s); Slurm: "
		       "the job would wait for ever: %s",
		       slurm_errors_advice(PART_CONFIG_UNAVAILABLE), reason);
}

int slurm_cli_willrun(struct slurm_cli *c, const struct json *job, struct json *reply,
		      struct err *e)
{
	if (check_limits(c, job, e))
		return err_wrap(e, "dry run");
	return run_sbatch(c, "dry run", job, true, reply, e);
}

int slurm_cli_submit(struct slurm_cli *c, const struct json *job, struct json *reply, struct err *e)
{
	struct err beyond = {0};
	int rc = run_sbatch(c, "submit", job, false, reply, e);

	if (rc == -ERR_RECIPE && check_limits(c, job, &beyond) == -ERR_RECIPE)
		return err_set(e, ERR_RECIPE, "submit: %s", beyond.text);
	return rc ? rc : judge_acceptance(c, job, json_text(json_get(reply, "job"), ""), e);
}
