/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/trialenv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

enum {
	SECRETS_FILE_MAX = 64 << 10,
	REDACT_MIN = 4, /* shorter values occur by chance: "1", "yes" */
};

/* --- secrets ---------------------------------------------------------------------------- */

/* Lines NAME=value; others are passed over. */
static void pick_secrets(char *text, const struct strv *names, struct kvs *out)
{
	for (char *line = text, *next; line; line = next) {
		char *eq, *end = strchr(line, '\n');

		next = end ? end + 1 : NULL;
		if (end)
			*end = '\0';
		eq = strchr(line, '=');
		if (!eq)
			continue;
		*eq = '\0';
		for (size_t i = 0; i < names->n; i++)
			if (str_eq(names->v[i], line))
				kvs_set(out, line, eq + 1);
	}
}

static int read_secrets_file(const char *path, const struct strv *names, struct kvs *out,
			     struct err *e)
{
	struct buf b = {0};
	struct stat st;
	int rc;

	if (stat(path, &st))
		return err_sys(e, ERR_NOT_FOUND,
			       "cannot read the file of secrets %s ($FETTLE_SECRETS)", path);
	if (st.st_mode & 077)
		return err_set(e, ERR_IO,
			       "%s ($FETTLE_SECRETS) can be read by others: chmod 600 it", path);
	rc = fs_read(path, SECRETS_FILE_MAX, &b, e);
	if (!rc && b.data)
		pick_secrets(b.data, names, out);
	if (b.data)
		explicit_bzero(b.data, b.cap);
	buf_free(&b);
	return rc;
}

int trialenv_secrets(const struct block *b, struct kvs *out, struct err *e)
{
	const char *path = getenv("FETTLE_SECRETS");

	for (size_t i = 0; i < b->secrets.n; i++)
		if (getenv(b->secrets.v[i]))
			kvs_set(out, b->secrets.v[i], getenv(b->secrets.v[i]));
	if (!path || !*path || b->secrets.n == 0)
		return 0;
	return read_secrets_file(path, &b->secrets, out, e);
}

char *trialenv_redact(const struct kvs *secrets, const char *s)
{
	struct buf b = {0};

	while (*s) {
		size_t hit = 0;

		for (size_t i = 0; i < secrets->n; i++) {
			const char *v = secrets->v[i].value;
			size_t n = v ? strlen(v) : 0;

			if (n >= REDACT_MIN && n > hit && strncmp(s, v, n) == 0)
				hit = n;
		}
		if (hit)
			buf_str(&b, "***");
		else
			buf_char(&b, *s);
		s += hit ? hit : 1;
	}
	return buf_take(&b);
}

/* --- environment ------------------------------------------------------------------------ */

/* What a scheduler gives to the jobs of an allocation; a launcher such as srun cannot work without.
 */
static bool from_allocation(const char *name)
{
	static const char *const devices[] = {"CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
					      "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"};

	/* These two change what srun hands on to its tasks (NONE would drop the arm's variables).
	 */
	if (str_eq(name, "SLURM_EXPORT_ENV") || str_eq(name, "SLURM_GET_USER_ENV"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(devices); i++)
		if (str_eq(name, devices[i]))
			return true;
	return str_starts(name, "SLURM_") || str_starts(name, "SLURMD_");
}

static void add_allocation(struct kvs *vars)
{
	if (!getenv("SLURM_JOB_ID"))
		return;
	for (char **p = environ; *p; p++) {
		char *eq = strchr(*p, '=');
		_cleanup_free_ char *name = eq ? xstrndup(*p, (size_t)(eq - *p)) : NULL;

		if (name && from_allocation(name) && !kvs_has(vars, name))
			kvs_set(vars, name, eq + 1);
	}
}

/* A port that was free a moment ago: the best that can be had without telling the workload a
 * descriptor. */
static int free_port(struct err *e)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_ANY)}};
	socklen_t n = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = 0;

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) ||
	    getsockname(fd, (struct sockaddr *)&a, &n))
		rc = err_sys(e, ERR_IO, "cannot find a free port for MASTER_PORT");
	if (fd >= 0)
		close(fd);
	return rc ? rc : ntohs(a.sin_port);
}

static bool is_unset(const struct block_arm *arm, const char *name)
{
	for (size_t i = 0; i < arm->unset.n; i++)
		if (str_eq(arm->unset.v[i], name))
			return true;
	return false;
}

struct adding {
	struct trialenv *env;
	const struct block_arm *arm;
};

static void put(struct adding *a, const char *name, const char *value)
{
	kvs_set(&a->env->vars, name, value);
	kvs_set(&a->env->added, name, value);
}

static void put_weak(struct adding *a, const char *name, const char *value)
{
	if (!kvs_has(&a->env->vars, name) && !is_unset(a->arm, name))
		put(a, name, value);
}

static void put_path(struct adding *a, const char *name, const char *dir, const char *leaf,
		     bool weak)
{
	_cleanup_free_ char *path = fs_join(dir, leaf);

	if (weak)
		put_weak(a, name, path);
	else
		put(a, name, path);
}

static void put_number(struct adding *a, const char *name, int64_t value, bool weak)
{
	char text[32];

	snprintf(text, sizeof text, "%lld", (long long)value);
	if (weak)
		put_weak(a, name, text);
	else
		put(a, name, text);
}

/* Names that some arm sets or takes out, the same in all arms: a script that sets such a variable
 * itself can put back what the campaign says. */
static void put_names(struct adding *a, const struct block *b)
{
	struct kvs names = {0};
	struct buf text = {0};

	for (size_t i = 0; i < b->n_arms; i++) {
		for (size_t k = 0; k < b->arms[i].env.n; k++)
			kvs_set(&names, b->arms[i].env.v[k].key, "");
		for (size_t k = 0; k < b->arms[i].unset.n; k++)
			kvs_set(&names, b->arms[i].unset.v[k], "");
	}
	kvs_sort(&names);
	for (size_t i = 0; i < names.n; i++)
		buf_printf(&text, "%s%s", i ? " " : "", names.v[i].key);
	put(a, "FETTLE_SET", text.data ? text.data : "");
	buf_free(&text);
	kvs_free(&names);
}

static void add_own(struct adding *a, const struct block *b, const struct block_slot *slot,
		    const char *dir, const char *host, int port)
{
	_cleanup_free_ char *marker = trialenv_marker(b, slot->slot);

	put(a, "FETTLE_TRIAL", marker + strlen("FETTLE_TRIAL="));
	put(a, "FETTLE_TRIAL_DIR", dir);
	put_path(a, "FETTLE_METRICS", dir, "metrics.jsonl", false);
	put_path(a, "FETTLE_CKPT_DIR", dir, "ckpt", false);
	put_number(a, "FETTLE_SLOT", slot->slot, false);
	put_number(a, "FETTLE_ARM_INDEX", (int64_t)slot->arm_index, false);
	put_number(a, "FETTLE_BLOCK", b->block, false);
	put_names(a, b);
	if (block_profiles(b, kvs_get(&a->env->vars, "PATH")))
		put(a, "FETTLE_PROFILER", "nsys");
	put_path(a, "TMPDIR", dir, "tmp", true);
	put_path(a, "XDG_CACHE_HOME", dir, "cache", true);
	put_weak(a, "MASTER_ADDR", b->launch.n ? host : "127.0.0.1");
	put_number(a, "MASTER_PORT", port, true);
	put_weak(a, "WANDB_MODE", "disabled");
	put_weak(a, "HF_HUB_OFFLINE", "1");
}

/* apptainer takes NAME from APPTAINERENV_NAME, whatever the image sets. */
static void add_inside(struct adding *a, const struct block *b, const struct kvs *secrets)
{
	const char *prefix = container_env_prefix(&b->container);
	struct kvs own = {0};

	if (!prefix)
		return;
	kvs_copy(&own, &a->env->added);
	for (size_t i = 0; i < secrets->n; i++)
		if (!is_unset(a->arm, secrets->v[i].key))
			kvs_set(&own, secrets->v[i].key, secrets->v[i].value);
	for (size_t i = 0; i < own.n; i++) {
		_cleanup_free_ char *name = xasprintf("%s%s", prefix, own.v[i].key);

		kvs_set(&a->env->vars, name, own.v[i].value);
	}
	kvs_free(&own);
}

static void overlay_arm(struct kvs *vars, const struct block *b, const struct block_arm *arm)
{
	for (size_t i = 0; i < b->env.n; i++)
		if (!is_unset(arm, b->env.v[i].key))
			kvs_set(vars, b->env.v[i].key, b->env.v[i].value);
	for (size_t i = 0; i < arm->env.n; i++)
		kvs_set(vars, arm->env.v[i].key, arm->env.v[i].value);
}

int trialenv_make(const struct block *b, const struct block_slot *slot, const char *dir,
		  const struct kvs *secrets, const char *host, struct trialenv *out, struct err *e)
{
	const struct block_arm *arm = &b->arms[slot->arm_index];
	struct trialenv env = {0};
	struct adding a = {.env = &env, .arm = arm};
	int port = free_port(e);

	if (port < 0)
		return port;
	overlay_arm(&env.vars, b, arm);
	add_allocation(&env.vars);
	add_own(&a, b, slot, dir, host, port);
	for (size_t i = 0; i < secrets->n; i++)
		if (!is_unset(arm, secrets->v[i].key) && !kvs_has(&env.vars, secrets->v[i].key))
			kvs_set(&env.vars, secrets->v[i].key, secrets->v[i].value);
	add_inside(&a, b, secrets);
	for (size_t i = 0; i < env.vars.n; i++)
		strv_addf(&env.envp, "%s=%s", env.vars.v[i].key, env.vars.v[i].value);
	strv_end(&env.envp);
	*out = env;
	return 0;
}

void trialenv_free(struct trialenv *t)
{
	kvs_free(&t->vars);
	kvs_free(&t->added);
	strv_free(&t->envp);
}

char *trialenv_marker(const struct block *b, int slot)
{
	return xasprintf("FETTLE_TRIAL=%s:%d", b->token, slot);
}
