/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The arguments that make a command run in a container: options of pyxis for srun, or `apptainer
 * exec` (singularity: the same) in front of the command. Pure: argument lists in and out.
 *
 * An image's own value of a variable wins over the caller's in silence, with both: pyxis needs the
 * name in --container-env, apptainer the value in --env. So whoever wants a variable to hold inside
 * names it here; that it did is seen in /proc of the rank (agent/evidence.h).
 */
#ifndef FETTLE_BASE_CONTAINER_H
#define FETTLE_BASE_CONTAINER_H

#include <stdbool.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

/* Zero: no container. */
struct container {
	char *runtime;      /* "pyxis", "apptainer", "singularity" */
	char *image;        /* as the runtime takes it: a path, or a URI */
	struct strv mounts; /* "SRC[:DST[:ro|rw]]" */
	struct strv args;   /* further options of the runtime ("--nv") */
};

/* What a command inside must find. All borrowed. */
struct container_use {
	const char *workdir;   /* absolute: mounted, and where the command starts; NULL: not said */
	const char *own_dir;   /* absolute: mounted, too; NULL: none */
	const struct kvs *env; /* must hold inside; value NULL: must not be set there */
	const struct strv *by_name; /* the same, of which no value may stand among the arguments;
				       NULL: none. They come from the environment: for
				       apptainer under a name with container_env_prefix(), too */
};

/* "APPTAINERENV_", "SINGULARITYENV_"; NULL: it needs none, or there is no container. */
const char *container_env_prefix(const struct container *c);

bool container_is_pyxis(const struct container *c);
/* Is it SRC, SRC:DST or SRC:DST:ro (rw), absolute paths without a comma or a control character? */
bool container_mount_valid(const char *mount);
/* Append to `argv` (the launcher and its options; for pyxis that is srun) what makes the command
 * that will be appended next run in the container. -ERR_RECIPE: a directory's name cannot be
 * written in a mount; argv is then as it was. */
int container_enter(const struct container *c, const struct container_use *use, struct strv *argv,
		    struct err *e);
void container_done(struct container *c); /* what it holds; NULL is fine */

#endif
