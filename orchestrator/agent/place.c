/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/place.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"

enum {
	NODES_TEXT_MAX = 1 << 20, /* 10,000 names of 100 bytes */
	EXPAND_TIMEOUT_US = 20000000,
};

static void add_lines(const char *text, struct strv *out)
{
	while (*text) {
		size_t n = strcspn(text, "\n,");
		_cleanup_free_ char *name = xstrndup(text, n);

		if (n)
			strv_add(out, name);
		text += n + (text[n] != '\0');
	}
}

/* "n[1-4]" needs Slurm's own reader; a list without brackets does not. */
static void expand_nodes(const char *list, struct strv *out)
{
	char *argv[] = {(char *)"scontrol", (char *)"show", (char *)"hostnames",
			(char *)(uintptr_t)list, NULL};
	const struct proc_spawn s = {.file = "scontrol", .argv = argv, .fd_in = -1, .fd_err = -1};
	struct buf b = {0};
	int status = 0;

	if (strchr(list, '[') &&
	    proc_capture(&s, EXPAND_TIMEOUT_US, NODES_TEXT_MAX, &b, NULL, &status, NULL) == 0 &&
	    status == 0)
		add_lines(b.data ? b.data : "", out);
	if (out->n == 0 && strchr(list, '['))
		strv_add(out, list);
	else if (out->n == 0)
		add_lines(list, out);
	buf_free(&b);
}

/* "s0.s3.n17" of "switch.switch.node": what comes before the node. Without a topology there is the
 * node alone. */
static char *find_switches(void)
{
	const char *address = getenv("SLURM_TOPOLOGY_ADDR"),
		   *pattern = getenv("SLURM_TOPOLOGY_ADDR_PATTERN"), *end;

	if (!address || !pattern || !str_ends(pattern, ".node"))
		return xstrdup("");
	end = strrchr(address, '.');
	return end ? xstrndup(address, (size_t)(end - address)) : xstrdup("");
}

void place_find(struct place *p)
{
	const char *list = getenv("SLURM_JOB_NODELIST"), *name = getenv("SLURMD_NODENAME"),
		   *count = getenv("SLURM_JOB_NUM_NODES");
	int64_t n = 0;

	*p = (struct place){0};
	if (gethostname(p->host, sizeof p->host - 1))
		str_copy(p->host, sizeof p->host, "localhost");
	proc_boot_id(p->boot_id);
	p->switches = find_switches();
	p->node = xstrdup(name && *name ? name : p->host);
	if (list && *list)
		expand_nodes(list, &p->nodes);
	if (p->nodes.n == 0)
		strv_add(&p->nodes, p->node);
	if (count && str_to_i64(count, &n) && n > 0 && n < 1000000)
		p->expected = (int)n;
}

void place_free(struct place *p)
{
	strv_free(&p->nodes);
	free(p->node);
	free(p->switches);
	*p = (struct place){0};
}
