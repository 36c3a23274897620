/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `workload.container`: what the launcher settles, and what cannot be meant. */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/check.h"
#include "orchestrator/script/fieldpath.h"

/* An option that fettle gives itself, from a field or for each trial. */
static const char *own_option(const char *arg)
{
	static const char *const own[][2] = {
		{"--container-image", "image"},
		{"--container-mounts", "mounts"},
		{"--container-env", "knobs and workload.env: their variables are named by fettle"},
		{"--container-workdir", "workload.workdir"},
		{"--bind", "mounts"},
		{"-B", "mounts"},
		{"--mount", "mounts"},
		{"--env", "knobs and workload.env"},
		{"--env-file", "knobs and workload.env"},
		{"--pwd", "workload.workdir"},
		{"--cwd", "workload.workdir"},
	};

	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		size_t n = strlen(own[i][0]);

		if (strncmp(arg, own[i][0], n) == 0 && (arg[n] == '\0' || arg[n] == '='))
			return own[i][1];
	}
	return NULL;
}

static int check_args(const struct reader *r, const struct container *c, struct err *e)
{
	for (size_t i = 0; i < c->args.n; i++) {
		_cleanup_free_ char *at = fieldpath_item("workload.container.args", i + 1);
		const char *instead = own_option(c->args.v[i]);

		if (instead)
			return reader_fault(r, at, e, "\"%.60s\" is set by fettle: use %s",
					    c->args.v[i], instead);
		if (i == 0 && c->args.v[i][0] != '-')
			return reader_fault(r, at, e,
					    "\"%.60s\" is no option, it would be taken for the "
					    "%s: the command stands in workload.command",
					    c->args.v[i],
					    container_is_pyxis(c) ? "command" : "image");
	}
	return 0;
}

/* pyxis is a plugin of srun; without a word the launcher decides. */
void container_settle(struct recipe *recipe)
{
	struct container *c = &recipe->workload.container;
	char **launcher = &recipe->resources.launcher;

	if (!c->image)
		return;
	if (!c->runtime)
		c->runtime = xstrdup(str_eq(*launcher, "srun") ? "pyxis" : "apptainer");
	if (container_is_pyxis(c) && !*launcher)
		*launcher = xstrdup("srun");
}

int container_check(const struct reader *r, const struct recipe *recipe, struct err *e)
{
	const struct container *c = &recipe->workload.container;

	if (!c->image)
		return 0;
	if (*c->image == '-')
		return reader_fault(r, "workload.container.image", e,
				    "\"%.60s\" is no image: a path, or a name as %s takes it",
				    c->image, c->runtime);
	if (container_is_pyxis(c) && !str_eq(recipe->resources.launcher, "srun"))
		return reader_fault(r, "workload.container.runtime", e,
				    "pyxis is a plugin of srun: it needs resources.launcher = "
				    "\"srun\", not \"%s\"",
				    recipe->resources.launcher);
	for (size_t i = 0; i < c->mounts.n; i++) {
		_cleanup_free_ char *at = fieldpath_item("workload.container.mounts", i + 1);

		if (!container_mount_valid(c->mounts.v[i]))
			return reader_fault(
				r, at, e,
				"\"%.80s\" is no mount: expected \"SRC\", \"SRC:DST\" or "
				"\"SRC:DST:ro\" with absolute paths that hold no comma",
				c->mounts.v[i]);
	}
	return check_args(r, c, e);
}

void container_warn(const struct recipe *r, struct strv *out)
{
	const struct container *c = &r->workload.container;
	const struct resources *s = &r->resources;
	bool gpus = s->gpus_per_node || s->options.gpus || s->options.gpus_per_task;

	if (!c->runtime || container_is_pyxis(c) || !gpus)
		return;
	for (size_t i = 0; i < c->args.n; i++)
		if (str_starts(c->args.v[i], "--nv") || str_eq(c->args.v[i], "--rocm"))
			return;
	strv_addf(out,
		  "%s shows no GPU to the workload without an option: "
		  "workload.container.args = { \"--nv\" }",
		  c->runtime);
}
