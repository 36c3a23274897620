/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/sched/slurm_cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"
#include "orchestrator/sched/slurm_cli_priv.h"
#include "orchestrator/sched/slurm_errors.h"
#include "orchestrator/sched/slurm_limits.h"
#include "orchestrator/sched/slurm_text.h"

extern char **environ;

enum {
	/* They give up by themselves after MessageTimeout, twice where they ask twice; sites use up
	 * to 100 s. */
	COMMAND_US = 205 * 1000000,
	OUTPUT_MAX = 16 << 20, /* 100 bytes a job: slurmctld keeps 10,000 by default */
	EXPANDED_MAX = 1000,   /* node lists that are remembered */
	NO_CONTROLLER = 1800,
};

/* --- commands --------------------------------------------------------------------------- */

void slurm_cli_output_done(struct slurm_cli_output *o)
{
	buf_free(&o->out);
	buf_free(&o->err);
}

int slurm_cli_refused(const char *what, const char *text, struct err *e)
{
	_cleanup_(buf_free) struct buf said = {0}, others = {0};
	_cleanup_free_ char *refusal = slurm_text_refusal(text, &said);
	int number = slurm_errors_number(refusal ? refusal : text);
	const char *advice;

	if (number == SLURM_ERRORS_UNKNOWN)
		number = slurm_errors_number(text);
	advice = slurm_errors_advice(number);
	slurm_errors_put_lines(&others, said.data, "; Slurm: ");
	return err_set(e, slurm_errors_class(number), "%s: %.300s%s%s%s%s",
		       number == NO_CONTROLLER          ? "slurmctld does not answer"
		       : number == SLURM_ERRORS_NO_CONF ? SLURM_ERRORS_NOT_HERE
							: what,
		       refusal ? refusal : "it gave no reason", advice ? " (" : "",
		       advice ? advice : "", advice ? ")" : "", others.data ? others.data : "");
}

int slurm_cli_run(struct slurm_cli *c, const char *what, struct strv *argv, char *const *env,
		  int fd_in, struct slurm_cli_output *o, struct err *e)
{
	const struct proc_spawn s = {.file = argv->v[0],
				     .argv = strv_end(argv),
				     .env = env ? env : strv_end(&c->env),
				     .fd_in = fd_in,
				     .fd_out = -1,
				     .fd_err = -1,
				     .new_session = true};
	_cleanup_free_ char *path = proc_which(argv->v[0], NULL);
	struct proc_spawn found = s;
	int status = 0, rc;

	found.file = path ? path : argv->v[0]; /* PATH of ours, not of the job's environment */
	*o = (struct slurm_cli_output){0};
	rc = proc_capture(&found, COMMAND_US, OUTPUT_MAX, &o->out, &o->err, &status, e);
	if (rc == 0 && status)
		rc = slurm_cli_refused(what, o->err.data ? o->err.data : "", e);
	else if (rc)
		rc = err_wrap(e, "%s", what);
	return rc;
}

static void argv_of(struct strv *argv, const char *const *words)
{
	for (; *words; words++)
		strv_add(argv, *words);
}

/* Run a command of constant words and give its output; heap, "" for none. */
static int ask(struct slurm_cli *c, const char *what, const char *const *words, char **out,
	       struct err *e)
{
	_cleanup_(strv_free) struct strv argv = {0};
	struct slurm_cli_output o;
	int rc;

	argv_of(&argv, words);
	rc = slurm_cli_run(c, what, &argv, NULL, -1, &o, e);
	if (rc == 0)
		*out = buf_take(&o.out);
	slurm_cli_output_done(&o);
	return rc;
}

char *slurm_cli_expand(struct slurm_cli *c, const char *list)
{
	const char *words[] = {"scontrol", "show", "hostnames", list, NULL};
	const char *known = kvs_get(&c->expanded, list);
	char *names = NULL;

	if (!strchr(list, '['))
		return xstrdup(list);
	if (known)
		return xstrdup(known);
	if (ask(c, "scontrol", words, &names, NULL))
		return xstrdup(list); /* as it is: the agent's record has the names too */
	for (char *p = names; *p; p++)
		if (*p == '\n')
			*p = p[1] ? ',' : '\0';
	if (c->expanded.n >= EXPANDED_MAX)
		kvs_free(&c->expanded);
	kvs_set(&c->expanded, list, names);
	return names;
}

/* --- jobs ------------------------------------------------------------------------------- */

static bool in_ids(const struct json *ids, const char *id)
{
	for (size_t i = 0; i < json_len(ids); i++)
		if (str_eq(json_text(json_at(ids, i), NULL), id))
			return true;
	return false;
}

static struct json *expanded_copy(struct slurm_cli *c, const struct json *job)
{
	struct json *o = json_copy(job);
	_cleanup_free_ char *nodes = slurm_cli_expand(c, json_text(json_get(o, "nodes"), ""));

	json_set_text(o, "nodes", nodes);
	return o;
}

/* Those of `all` that are asked for: by number, by name, or by how the name starts. */
static struct json *choose(struct slurm_cli *c, const struct json *all, const struct json *req)
{
	const struct json *ids = json_get(req, "jobs");
	const char *token = json_text(json_get(req, "token"), NULL);
	bool prefix = json_bool(json_get(req, "prefix"), false);
	struct json *jobs = json_array();

	for (size_t i = 0; i < json_len(all); i++) {
		const struct json *job = json_at(all, i);
		const char *name = json_text(json_get(job, "name"), "");

		if (!token   ? in_ids(ids, json_text(json_get(job, "job"), ""))
		    : prefix ? str_starts(name, token)
			     : str_eq(name, token))
			json_add(jobs, expanded_copy(c, job));
	}
	return jobs;
}

/* One question for all our jobs, whatever is asked for. In the order of their submits. */
static int op_poll(struct slurm_cli *c, const struct json *req, struct json *reply, struct err *e)
{
	char uid[16];
	const char *words[] = {
		"squeue",          "-h", "-a", "-t", "all", "-u", uid, "-S", "i", "-O",
		SLURM_TEXT_SQUEUE, NULL};
	_cleanup_(json_freep) struct json *all = NULL;
	_cleanup_free_ char *text = NULL;
	int rc;

	snprintf(uid, sizeof(uid), "%u", getuid());
	rc = ask(c, "cannot ask for our jobs", words, &text, e);
	if (rc)
		return rc;
	all = slurm_text_squeue(text);
	json_set(reply, "jobs", choose(c, all, req));
	return 0;
}

static int op_find(struct slurm_cli *c, const struct json *req, struct json *reply, struct err *e)
{
	if (!json_text(json_get(req, "token"), NULL))
		return err_set(e, ERR_USAGE, "find: a token is needed");
	return op_poll(c, req, reply, e);
}

/* scancel ends with 0 whatever became of it: its words tell. */
int slurm_cli_cancel(struct slurm_cli *c, const char *id, bool *was_gone, struct err *e)
{
	_cleanup_(strv_free) struct strv argv = {0};
	struct slurm_cli_output o;
	int rc;

	strv_add(&argv, "scancel");
	strv_add(&argv, id);
	rc = slurm_cli_run(c, "cancel", &argv, NULL, -1, &o, e);
	if (o.err.len && slurm_errors_already_gone(slurm_errors_number(o.err.data))) {
		if (was_gone)
			*was_gone = true;
		rc = 0;
	} else if (rc == 0 && o.err.len) {
		rc = slurm_cli_refused("cancel", o.err.data, e);
	}
	slurm_cli_output_done(&o);
	return rc;
}

static int op_cancel(struct slurm_cli *c, const struct json *req, struct json *reply, struct err *e)
{
	const char *id = json_text(json_get(req, "job"), "");
	bool was_gone = false;
	int64_t n;
	int rc;

	if (!str_to_i64(id, &n) || n <= 0)
		return err_set(e, ERR_USAGE, "cancel: '%s' is no job number", id);
	rc = slurm_cli_cancel(c, id, &was_gone, e);
	if (rc == 0 && was_gone)
		json_set_bool(reply, "was_gone", true);
	return rc;
}

char *slurm_cli_pending_reason(struct slurm_cli *c, const char *id)
{
	const char *words[] = {"squeue", "-h", "-a", "-t", "pending", "-j", id, "-o", "%r", NULL};
	char *reason = NULL;

	if (ask(c, "squeue", words, &reason, NULL))
		return NULL;
	reason[strcspn(reason, "\n")] = '\0';
	return reason;
}

/* The state's word of a site without slurmdbd is an error of sacct's. */
static int op_acct(struct slurm_cli *c, const struct json *req, struct json *reply, struct err *e)
{
	const struct json *ids = json_get(req, "jobs");
	const char *words[] = {"sacct", "-n", "-P", "-D", "-j", NULL, "-o", SLURM_TEXT_SACCT, NULL};
	_cleanup_(json_freep) struct json *all = NULL;
	_cleanup_(buf_free) struct buf list = {0};
	_cleanup_free_ char *text = NULL;
	int rc;

	for (size_t i = 0; i < json_len(ids); i++)
		buf_printf(&list, "%s%s", i ? "," : "", json_text(json_at(ids, i), ""));
	words[5] = list.data ? list.data : "0";
	rc = ask(c, "slurmdbd does not answer", words, &text, e);
	if (rc)
		return rc;
	all = slurm_text_sacct(text);
	json_set(reply, "jobs", choose(c, all, req));
	return 0;
}

/* --- the cluster ------------------------------------------------------------------------ */

int slurm_cli_partition(struct slurm_cli *c, const char *name, char **line, struct err *e)
{
	const char *words[] = {"scontrol", "-a", "-o", "show", "partition", name, NULL};
	_cleanup_free_ char *text = NULL;
	int rc = ask(c, name ? name : "default partition", words, &text, e);

	if (rc)
		return rc;
	for (char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		_cleanup_free_ char *one = xstrndup(p, strcspn(p, "\n"));
		_cleanup_free_ char *is_default = slurm_text_value(one, "Default");

		if (name || str_eq(is_default, "YES")) {
			*line = xstrdup(one);
			return 0;
		}
	}
	return err_set(e, ERR_RECIPE,
		       "default partition: No partition specified or system default partition "
		       "(the cluster has no default partition: name one)");
}

struct count {
	int64_t total, idle, out;
};

/* A line for each node: its state. */
static void count_nodes(const char *text, struct count *n)
{
	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		_cleanup_free_ char *word = xstrndup(p, strcspn(p, "\n"));

		n->total++;
		n->idle += slurm_text_node_idle(word);
		n->out += slurm_text_node_out(word);
	}
}

/* "UNLIMITED" becomes null. */
static void set_limit(struct json *reply, const char *key, const char *value, bool is_time)
{
	int64_t n = -1;

	if (value && is_time)
		n = slurm_limits_duration_s(value) / 60;
	else if (value && !str_to_i64(value, &n))
		n = -1;
	if (n > 0)
		json_set_i64(reply, key, n);
	else
		json_set_text(reply, key, NULL);
}

static int op_capacity(struct slurm_cli *c, const struct json *req, struct json *reply,
		       struct err *e)
{
	_cleanup_free_ char *line = NULL, *name = NULL, *state = NULL, *time = NULL, *most = NULL,
			    *nodes = NULL;
	struct count n = {0};
	int rc = slurm_cli_partition(c, json_text(json_get(req, "partition"), NULL), &line, e);

	if (rc)
		return rc;
	name = slurm_text_value(line, "PartitionName");
	state = slurm_text_value(line, "State");
	time = slurm_text_value(line, "MaxTime");
	most = slurm_text_value(line, "MaxNodes");
	rc = ask(c, "cannot ask for the nodes",
		 (const char *[]){"sinfo", "-h", "-N", "-p", name ? name : "", "-o", "%T", NULL},
		 &nodes, e);
	if (rc)
		return rc;
	count_nodes(nodes, &n);
	json_set_text(reply, "partition", name);
	json_set_bool(reply, "up", str_eq(state, "UP"));
	json_set_i64(reply, "nodes_total", n.total);
	json_set_i64(reply, "nodes_idle", n.idle);
	json_set_i64(reply, "nodes_out", n.out);
	set_limit(reply, "max_time_min", time, true);
	set_limit(reply, "max_nodes", most, false);
	return 0;
}

static int op_ping(struct slurm_cli *c, const struct json *req, struct json *reply, struct err *e)
{
	const char *words[] = {"scontrol", "show", "config", NULL};
	_cleanup_free_ char *text = NULL, *version = NULL, *cluster = NULL, *storage = NULL;
	struct json *o;
	int rc = ask(c, "slurmctld does not answer", words, &text, e);

	(void)req;
	if (rc)
		return rc;
	version = slurm_text_value(text, "SLURM_VERSION");
	cluster = slurm_text_value(text, "ClusterName");
	storage = slurm_text_value(text, "AccountingStorageType");
	o = json_object();
	json_set_text(o, "version", version);
	json_set_text(o, "cluster", cluster);
	json_set_text(o, "accounting", storage);
	json_set(reply, "controller", o);
	return 0;
}

static int op_submit(struct slurm_cli *c, const struct json *req, struct json *reply, struct err *e)
{
	return slurm_cli_submit(c, json_get(req, "job"), reply, e);
}

static int op_willrun(struct slurm_cli *c, const struct json *req, struct json *reply,
		      struct err *e)
{
	return slurm_cli_willrun(c, json_get(req, "job"), reply, e);
}

/* --- requests --------------------------------------------------------------------------- */

static const struct operation {
	const char *name;
	int (*run)(struct slurm_cli *c, const struct json *req, struct json *reply, struct err *e);
} operations[] = {
	{"submit", op_submit},     {"willrun", op_willrun}, {"poll", op_poll},
	{"find", op_find},         {"cancel", op_cancel},   {"acct", op_acct},
	{"capacity", op_capacity}, {"ping", op_ping},
};

int slurm_cli_call(struct slurm_cli *c, const struct json *req, struct json **reply, struct err *e)
{
	const char *op = json_text(json_get(req, "op"), "");
	struct err local = {0};
	int rc;

	e = e ? e : &local;
	*reply = NULL;
	for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
		if (!str_eq(operations[i].name, op))
			continue;
		*reply = json_object();
		rc = operations[i].run(c, req, *reply, e);
		if (rc)
			json_freep(reply);
		return rc;
	}
	return err_set(e, ERR_USAGE, "unknown op '%s'", op);
}

/* --- open ------------------------------------------------------------------------------- */

static int check_commands(struct err *e)
{
	static const char *const needed[] = {"sbatch", "squeue", "scancel", "sinfo", "scontrol"};

	for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
		_cleanup_free_ char *path = proc_which(needed[i], NULL);

		if (!path)
			return err_set(e, ERR_NOT_FOUND,
				       "%s is not in PATH: install Slurm's commands (Debian: "
				       "slurm-client, RHEL: slurm), or load the site's module",
				       needed[i]);
	}
	return 0;
}

static int check_conf(struct err *e)
{
	const char *conf = getenv("SLURM_CONF");

	if (conf && access(conf, R_OK))
		return err_set(e, ERR_NOT_FOUND, SLURM_ERRORS_NOT_HERE ": SLURM_CONF=%s: %s (%s)",
			       conf, strerror(errno), slurm_errors_advice(SLURM_ERRORS_NO_CONF));
	return 0;
}

/* A user's defaults for the commands change what they print. */
static void commands_env(struct strv *env)
{
	static const char *const left_out[] = {"SQUEUE_",         "SBATCH_",  "SACCT_",
					       "SINFO_",          "SCANCEL_", "SLURM_TIME_FORMAT=",
					       "SLURM_CLUSTERS=", "LC_ALL=",  "LANG="};

	for (char **v = environ; *v; v++) {
		bool keep = true;

		for (size_t i = 0; i < ARRAY_LEN(left_out); i++)
			keep = keep && !str_starts(*v, left_out[i]);
		if (keep)
			strv_add(env, *v);
	}
	strv_add(env, "SLURM_TIME_FORMAT=%s");
	strv_add(env, "LC_ALL=C");
}

int slurm_cli_open(struct slurm_cli **out, struct err *e)
{
	struct slurm_cli *c;
	int rc;

	if ((rc = check_commands(e)) || (rc = check_conf(e)))
		return rc;
	c = xcalloc(1, sizeof(*c));
	commands_env(&c->env);
	*out = c;
	return 0;
}

void slurm_cli_close(struct slurm_cli *c)
{
	if (!c)
		return;
	strv_free(&c->env);
	kvs_free(&c->expanded);
	free(c);
}
