/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a script of which a campaign is to be made: it is refused, or campaign and copy are
 * there, and the copy is a script again that launches the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/init.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_copy(const struct buf *script)
{
	struct sbatch s = {0};
	struct err e = {0};

	check(sbatch_parse("copy", script->data, script->len, &s, &e) == 0);
	check(strstr(script->data, "{ fettle_hold; ") && strstr(script->data, "fettle_args[@]"));
	sbatch_free(&s);
}

static void make(const struct sbatch *s)
{
	struct init_options o = {.script = "f.sbatch", .scheduler = "slurm", .saves_nothing = true};
	struct init i = {.o = &o, .s = s, .copy = xstrdup("f.sh"), .name = xstrdup("f")};
	struct buf script = {0}, recipe = {0};

	init_resources(&i);
	if (i.s->components == 1)
		init_find_launch(&i);
	if (i.launch) {
		init_recognise(&i);
		init_script(&i, &script);
	}
	check(i.launch || i.refused.n);
	if (i.refused.n == 0) {
		init_recipe(&i, &recipe);
		check(strstr(recipe.data, "\nreturn {\n") != NULL);
		check_copy(&script);
	}
	buf_free(&script);
	buf_free(&recipe);
	init_done(&i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct sbatch s = {0};
	struct err e = {0};

	if (sbatch_parse("f.sbatch", (const char *)data, n, &s, &e) == 0)
		make(&s);
	sbatch_free(&s);
	return 0;
}
