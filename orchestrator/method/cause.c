/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/cause.h"

#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "probes/probe.h"

struct ends {
	char *text; /* what Slurm's first end of this kind says */
	int64_t line;
};

/* Exits, signals and cancellations are what the trial's record tells better; they are mostly what
 * follows from the ends that count here. */
static void take_end(void *ctx, const struct probe_fact *f)
{
	static const char *const kinds[] = {"OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL", "PREEMPTED",
					    "NOT_STARTED"};
	struct ends *e = ctx;

	if (e->text || !str_eq(f->key, "slurm.end"))
		return;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_starts(f->text, kinds[i])) {
			e->text = xstrdup(f->text);
			e->line = f->line;
		}
}

/* The sentence of a probe that says that the text failed, NULL otherwise. */
static char *failed_by(const char *probe, const char *path, struct err *e)
{
	const struct probe *p = probe_find(probe);
	struct probe_sink none = {0};
	struct buf detail = {0};
	struct err why = {0};

	if (p && probe_file(p, NULL, path, &none, &detail, &why) == PROBE_FAILED && detail.len)
		return buf_take(&detail);
	if (why.code == ERR_READ)
		*e = why;
	buf_free(&detail);
	return NULL;
}

static char *slurm_end(const char *path, struct err *e)
{
	const struct probe *p = probe_find("slurm_end");
	struct ends ends = {0};
	struct probe_sink sink = {.fact = take_end, .ctx = &ends};
	struct err why = {0};
	char *cause;

	if (p)
		(void)probe_file(p, NULL, path, &sink, NULL, &why);
	if (why.code == ERR_READ)
		*e = why;
	if (!ends.text)
		return NULL;
	cause = xasprintf("line %lld: %sSlurm says %s", (long long)ends.line,
			  str_starts(ends.text, "OUT_OF_MEMORY") ? "out of host memory: " : "",
			  ends.text);
	free(ends.text);
	return cause;
}

char *cause_of_failure(const char *path, struct err *e)
{
	char *cause = failed_by("torch_memory", path, e);

	if (!cause)
		cause = slurm_end(path, e);
	/* A peer that ran out of memory shows as a collective that never ends: last. */
	return cause ? cause : failed_by("nccl_log", path, e);
}
