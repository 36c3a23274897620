/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When and how much at a time a campaign may run: asked before each submit. */
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/hours.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/method.h"

enum {
	US_PER_S = 1000000,
	/* Slurm counts limits in minutes from the moment at which it looks: a job that would end
	 * with the window to the second is refused for its deadline. */
	MARGIN_S = 60,
	CAPACITY_US = 30 * US_PER_S, /* how long an answer about idle nodes is good enough */
};

static void hours_now(const struct campaign *c, struct hours_state *out)
{
	const struct budget *b = &c->recipe->budget;

	hours_both_at(&b->window, &b->site_window, clock_utc_us(c->ws->clock), out);
	if (c->until_us && out->open && out->closes_us > c->until_us) {
		out->closes_us = c->until_us;
		out->open = clock_utc_us(c->ws->clock) < c->until_us;
	}
}

int64_t limits_close_us(const struct campaign *c)
{
	struct hours_state s;

	hours_now(c, &s);
	return s.open && s.closes_us < INT64_MAX ? s.closes_us : 0;
}

int64_t limits_left_s(const struct campaign *c)
{
	struct hours_state s;

	hours_now(c, &s);
	if (!s.open)
		return 0;
	if (s.closes_us == INT64_MAX)
		return INT64_MAX;
	return (s.closes_us - clock_utc_us(c->ws->clock)) / US_PER_S - MARGIN_S;
}

/* The hours that say more, for a time in their zone. */
static const struct strv *hours_of(const struct campaign *c)
{
	const struct budget *b = &c->recipe->budget;

	return b->window.n ? &b->window : &b->site_window;
}

void limits_night(const struct campaign *c, char out[11])
{
	int64_t now = clock_utc_us(c->ws->clock);
	struct hours_night n;
	char text[96];

	hours_text(hours_of(c), now, text, sizeof text);
	str_copy(out, 11, hours_night_at(hours_of(c), now, &n) ? n.night : text);
}

/* Of a night that ends, or has spent what it may. */
static char *night_text(const struct campaign *c, int64_t length_s)
{
	int64_t left = c->until_us - clock_utc_us(c->ws->clock);
	char ends[96];

	if (c->until_node_s > 0 && c->node_s >= c->until_node_s)
		return xstrdup("the night has spent what it may");
	if (c->until_us == 0 || left / US_PER_S - MARGIN_S >= length_s)
		return NULL;
	hours_text(hours_of(c), c->until_us, ends, sizeof ends);
	if (left <= 0)
		return xasprintf("the night ended at %s", ends);
	return xasprintf("the next block may take %lld min and the night ends at %s: it is not "
			 "started",
			 (long long)(length_s + 59) / 60, ends);
}

char *limits_window_text(const struct campaign *c, int64_t length_s)
{
	struct hours_state s;
	char opens[96] = "within two weeks", closes[96], *night = night_text(c, length_s);
	int64_t left = limits_left_s(c);

	if (night || left >= length_s)
		return night;
	hours_now(c, &s);
	if (s.open) {
		hours_text(hours_of(c), s.closes_us, closes, sizeof closes);
		return xasprintf("the next block may take %lld min and the window closes at %s: "
				 "it is not started",
				 (long long)(length_s + 59) / 60, closes);
	}
	if (s.opens_us)
		hours_text(hours_of(c), s.opens_us, opens, sizeof opens);
	return xasprintf("the window %s is closed and opens %s%s", hours_of(c)->v[0],
			 s.opens_us ? "at " : "never ", opens);
}

char *limits_wait_text(const struct campaign *c)
{
	size_t n = c->facts.in_flight;
	char ends[96];

	if (c->wait_until_us == 0 || clock_utc_us(c->ws->clock) < c->wait_until_us)
		return NULL;
	hours_text(hours_of(c), c->until_us ? c->until_us : c->wait_until_us, ends, sizeof ends);
	if (n == 0)
		return xasprintf("the night ended at %s", ends);
	return xasprintf("the night ended at %s with %zu block%s in flight, of whose end the "
			 "scheduler told nothing: the next night takes what %s measured",
			 ends, n, n > 1 ? "s" : "", n > 1 ? "they" : "it");
}

/* Nodes idle now; an answer is good for a while, none at all counts as none idle. */
static int nodes_idle(struct campaign *c)
{
	int64_t now = clock_mono_us(c->ws->clock);
	struct sched_capacity fresh;

	if (c->capacity_us > now - CAPACITY_US)
		return c->capacity.nodes_idle;
	if (c->sched->capacity(c->run, &fresh, NULL) < 0)
		return 0;
	c->capacity = fresh;
	c->capacity_us = now;
	return fresh.nodes_idle;
}

bool limits_nodes_idle(struct campaign *c)
{
	int want = c->recipe->budget.idle_nodes;

	return want == 0 || nodes_idle(c) >= want;
}

size_t limits_at_once(const struct campaign *c)
{
	const struct budget *b = &c->recipe->budget;
	int nodes = c->resources.nodes > 0 ? c->resources.nodes : 1;
	int n = c->capacity.jobs_at_once > 0 ? c->capacity.jobs_at_once : 1;

	if (b->jobs && n > b->jobs)
		n = b->jobs;
	if (b->nodes && n > b->nodes / nodes)
		n = b->nodes / nodes;
	return n > 0 ? (size_t)n : 1;
}

/* Nobody waits ahead where that would decide more than when a job starts: where the campaign places
 * its blocks by what ran before, or where it must not hold more nodes or spend more than it was
 * given. */
size_t limits_in_flight(const struct campaign *c)
{
	const struct budget *b = &c->recipe->budget;
	const struct resources *r = &c->resources;
	size_t n = limits_at_once(c), more = n + (size_t)c->capacity.jobs_ahead;

	if (r->placement != PLACEMENT_ANY || r->among.n || b->nodes || b->trials > 0 ||
	    b->node_hours > 0 || b->gpu_hours > 0 || c->until_node_s > 0)
		return n;
	return b->jobs && more > (size_t)b->jobs ? (size_t)b->jobs : more;
}
