/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/nccl_origin.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static size_t digits_at(struct span t, size_t i)
{
	size_t n = 0;

	while (i + n < t.n && t.s[i + n] >= '0' && t.s[i + n] <= '9')
		n++;
	return n;
}

/* Is all of w "host:pid:tid"? */
static bool is_origin(struct span w, struct nccl_origin *o)
{
	struct span rest = w, host;
	size_t pid;

	if (!span_next(&rest, ":", &host) || !host.n || !rest.s)
		return false;
	pid = digits_at(rest, 0);
	if (!pid || pid == rest.n || rest.s[pid] != ':' || pid + 1 == rest.n ||
	    pid + 1 + digits_at(rest, pid + 1) != rest.n)
		return false;
	o->host = host;
	o->id = (struct span){w.s, host.n + 1 + pid};
	return true;
}

bool nccl_origin(struct span head, struct nccl_origin *o)
{
	size_t i = head.n;

	while (i) {
		size_t end = i;

		while (i && !is_blank(head.s[i - 1]))
			i--;
		if (is_origin((struct span){head.s + i, end - i}, o))
			return true;
		i -= i > 0;
	}
	return false;
}
