/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fields of `workload.container`: what trials run in (base/container.h). */
#include "orchestrator/script/schema.h"

#define IN(member) offsetof(struct container, member)

static const char *const runtime_words[] = {"pyxis", "apptainer", "singularity", NULL};

static const struct field container_fields[] = {
	{.name = "image",
	 .type = FIELD_TEXT,
	 .required = true,
	 .offset = IN(image),
	 .doc = "the image, as the runtime takes it; a path is relative to `workdir`",
	 .example = "\"/images/pytorch.sqsh\""},
	{.name = "runtime",
	 .type = FIELD_CHOICE,
	 .words = runtime_words,
	 .offset = IN(runtime),
	 .dflt = "`\"pyxis\"` under srun, else `\"apptainer\"`",
	 .doc = "pyxis: options of srun; apptainer and singularity: `apptainer exec` in front of "
		"the command of each rank"},
	{.name = "mounts",
	 .type = FIELD_TEXTS,
	 .offset = IN(mounts),
	 .dflt = "none",
	 .doc = "`SRC`, `SRC:DST` or `SRC:DST:ro`, absolute; `workdir` and the block's directory "
		"are mounted by themselves",
	 .example = "{ \"/data/imagenet:/data:ro\" }"},
	{.name = "args",
	 .type = FIELD_TEXTS,
	 .offset = IN(args),
	 .dflt = "none",
	 .doc = "further options of the runtime; apptainer shows GPUs only with `--nv`",
	 .example = "{ \"--nv\" }"},
	{0},
};
const struct schema schema_container = {"container", container_fields};
