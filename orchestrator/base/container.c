/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/container.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"

void container_done(struct container *c)
{
	if (!c)
		return;
	free(c->runtime);
	free(c->image);
	strv_free(&c->mounts);
	strv_free(&c->args);
	*c = (struct container){0};
}

const char *container_env_prefix(const struct container *c)
{
	return str_eq(c->runtime, "apptainer")     ? "APPTAINERENV_"
	       : str_eq(c->runtime, "singularity") ? "SINGULARITYENV_"
						   : NULL;
}

bool container_is_pyxis(const struct container *c)
{
	return str_eq(c->runtime, "pyxis");
}

/* -- mounts ------------------------------------------------------------------------------------ */

/* Both runtimes split lists at commas and a mount at colons, and know no escape. */
static bool is_plain(const char *path, size_t n)
{
	if (n == 0 || path[0] != '/')
		return false;
	for (size_t i = 0; i < n; i++)
		if (path[i] == ',' || path[i] == ':' || (unsigned char)path[i] < 0x20 ||
		    path[i] == 0x7f)
			return false;
	return true;
}

bool container_mount_valid(const char *mount)
{
	size_t n = strcspn(mount, ":");
	const char *dst = mount[n] ? mount + n + 1 : NULL, *mode = NULL;

	if (!is_plain(mount, n))
		return false;
	if (!dst)
		return true;
	n = strcspn(dst, ":");
	mode = dst[n] ? dst + n + 1 : NULL;
	return is_plain(dst, n) && (!mode || str_eq(mode, "ro") || str_eq(mode, "rw"));
}

static bool lies_in(const char *path, const char *dir)
{
	size_t n = dir ? strlen(dir) : 0;

	return n && strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* The user's mounts come last, so that they win. Heap. */
static int list_mounts(const struct container *c, const struct container_use *use, struct strv *out,
		       struct err *e)
{
	const char *own[] = {use->workdir, use->own_dir};

	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		if (!own[i] || (i > 0 && lies_in(own[i], own[i - 1])))
			continue;
		if (!is_plain(own[i], strlen(own[i])))
			return err_set(e, ERR_RECIPE,
				       "%s cannot be mounted into a container: its name holds ',' "
				       "or ':', at which %s splits lists",
				       own[i], c->runtime);
		strv_addf(out, "%s:%s", own[i], own[i]);
	}
	for (size_t i = 0; i < c->mounts.n; i++) {
		const char *m = c->mounts.v[i];

		if (strchr(m, ':'))
			strv_add(out, m);
		else
			strv_addf(out, "%s:%s", m, m);
	}
	return 0;
}

static void add_args(const struct container *c, struct strv *argv)
{
	for (size_t i = 0; i < c->args.n; i++)
		strv_add(argv, c->args.v[i]);
}

/* -- pyxis ------------------------------------------------------------------------------------- */

/* NAME=a,b,...; nothing when there is none. */
static void add_list(struct strv *argv, const char *option, const struct strv *v)
{
	struct buf b = {0};

	for (size_t i = 0; i < v->n; i++)
		buf_printf(&b, "%s%s", i ? "," : "", v->v[i]);
	if (v->n)
		strv_addf(argv, "%s=%s", option, b.data);
	buf_free(&b);
}

static void enter_pyxis(const struct container *c, const struct container_use *use,
			const struct strv *mounts, struct strv *argv)
{
	struct strv names = {0};

	for (size_t i = 0; i < use->env->n; i++)
		if (use->env->v[i].value)
			strv_add(&names, use->env->v[i].key);
	for (size_t i = 0; use->by_name && i < use->by_name->n; i++)
		if (!kvs_has(use->env, use->by_name->v[i]))
			strv_add(&names, use->by_name->v[i]);
	strv_addf(argv, "--container-image=%s", c->image);
	if (use->workdir)
		strv_addf(argv, "--container-workdir=%s", use->workdir);
	add_list(argv, "--container-mounts", mounts);
	add_list(argv, "--container-env", &names);
	add_args(c, argv);
	strv_free(&names);
}

/* -- apptainer --------------------------------------------------------------------------------- */

/* The flag takes a map: with one '=' in it the text is taken as it stands, with more it is read as
 * CSV, where a field with a comma or a quote is quoted and its quotes are doubled. */
static void add_env(struct strv *argv, const char *name, const char *value)
{
	struct buf b = {0};

	strv_add(argv, "--env");
	if (!strchr(value, '=') || !value[strcspn(value, ",\"\n")]) {
		strv_addf(argv, "%s=%s", name, value);
		return;
	}
	buf_printf(&b, "\"%s=", name);
	for (const char *p = value; *p; p++) {
		if (*p == '"')
			buf_char(&b, '"');
		buf_char(&b, *p);
	}
	buf_char(&b, '"');
	strv_add(argv, b.data);
	buf_free(&b);
}

static void enter_apptainer(const struct container *c, const struct container_use *use,
			    const struct strv *mounts, struct strv *argv)
{
	strv_add(argv, c->runtime);
	strv_add(argv, "exec");
	if (use->workdir) {
		strv_add(argv, "--pwd");
		strv_add(argv, use->workdir);
	}
	for (size_t i = 0; i < mounts->n; i++) {
		strv_add(argv, "--bind");
		strv_add(argv, mounts->v[i]);
	}
	for (size_t i = 0; i < use->env->n; i++)
		if (use->env->v[i].value)
			add_env(argv, use->env->v[i].key, use->env->v[i].value);
	add_args(c, argv);
	strv_add(argv, c->image);
}

/* -- both -------------------------------------------------------------------------------------- */

/* What the image sets can only be taken out inside. `env` becomes the command: no process more. */
static void add_unset(const struct kvs *env, struct strv *argv)
{
	bool any = false;

	for (size_t i = 0; i < env->n; i++) {
		if (env->v[i].value)
			continue;
		if (!any)
			strv_add(argv, "env");
		any = true;
		strv_add(argv, "-u");
		strv_add(argv, env->v[i].key);
	}
}

int container_enter(const struct container *c, const struct container_use *use, struct strv *argv,
		    struct err *e)
{
	struct strv mounts = {0};
	int rc = list_mounts(c, use, &mounts, e);

	if (rc == 0) {
		if (container_is_pyxis(c))
			enter_pyxis(c, use, &mounts, argv);
		else
			enter_apptainer(c, use, &mounts, argv);
		add_unset(use->env, argv);
	}
	strv_free(&mounts);
	return rc;
}
