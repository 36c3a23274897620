/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/oom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum { FILE_MAX_BYTES = 64 * 1024 };

/* "oom_kill 3" on a line of its own; -1: not there. */
static int64_t counter(const char *root, const char *path)
{
	_cleanup_free_ char *full = xasprintf("%s%s", root, path);
	struct buf b = {0};
	int64_t v = -1;

	if (fs_read(full, FILE_MAX_BYTES, &b, NULL) == 0)
		for (const char *line = b.data; line; line = strchr(line, '\n')) {
			line += *line == '\n';
			if (str_starts(line, "oom_kill "))
				v = strtoll(line + strlen("oom_kill "), NULL, 10);
		}
	buf_free(&b);
	return v;
}

/* One line of /proc/self/cgroup: "0::/slice/job", or "4:memory:/job" before the second version. */
static int64_t of_cgroup(const char *root, const char *line)
{
	static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	size_t n = strcspn(line, "\n");
	const char *memory = strstr(line, ":memory:");
	int64_t v = -1;

	if (str_starts(line, "0::/")) {
		for (size_t i = 0; i < ARRAY_LEN(mounts) && v < 0; i++) {
			_cleanup_free_ char *path = xasprintf("%s%.*s/memory.events", mounts[i],
							      (int)n - 3, line + 3);

			v = counter(root, path);
		}
	} else if (memory && memory < line + n) {
		const char *name = memory + strlen(":memory:");
		_cleanup_free_ char *path = xasprintf(
			"/sys/fs/cgroup/memory%.*s/memory.oom_control", (int)(line + n - name),
			name);

		v = counter(root, path);
	}
	return v;
}

void oom_read(const char *root, struct oom_count *out)
{
	_cleanup_free_ char *path = xasprintf("%s/proc/self/cgroup", root);
	struct buf b = {0};

	*out = (struct oom_count){.own = -1, .node = counter(root, "/proc/vmstat")};
	if (fs_read(path, FILE_MAX_BYTES, &b, NULL) == 0)
		for (const char *line = b.data; line && *line && out->own < 0;) {
			out->own = of_cgroup(root, line);
			line = strchr(line, '\n');
			line += line != NULL;
		}
	buf_free(&b);
}

static int64_t growth(int64_t before, int64_t after)
{
	return before >= 0 && after > before ? after - before : 0;
}

void oom_text(const struct oom_count *before, const struct oom_count *after, char *out, size_t n)
{
	int64_t own = growth(before->own, after->own), node = growth(before->node, after->node),
		killed = own ? own : node;

	if (killed)
		snprintf(out, n, ": out of host memory: the kernel killed %lld process%s %s",
			 (long long)killed, killed == 1 ? "" : "es",
			 own ? "of its cgroup" : "of this node while it ran");
	else
		snprintf(out, n, "%s", after->node < 0 && after->own < 0 ? ": out of memory?" : "");
}
