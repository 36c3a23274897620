/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/launcher.h"

#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/str.h"

/* srun that fails says a few lines; more is a workload's output. */
enum { OUT_MAX = 16 << 10 };

static bool is_before_start(const char *line)
{
	static const char *const later[] = {": task ", ": tasks ", "slurmstepd: error: execve"};

	if (!str_starts(line, "srun: "))
		return false;
	for (size_t i = 0; i < sizeof later / sizeof *later; i++)
		if (strstr(line, later[i]))
			return false;
	return true;
}

bool launcher_failed_before_start(const char *out_path)
{
	struct buf b = {0};
	bool all = fs_read(out_path, OUT_MAX, &b, NULL) == 0 && b.len > 0;

	for (char *line = b.data, *next; all && line && *line; line = next) {
		char *end = strchr(line, '\n');

		next = end ? end + 1 : NULL;
		if (end)
			*end = '\0';
		all = is_before_start(line);
	}
	buf_free(&b);
	return all;
}
