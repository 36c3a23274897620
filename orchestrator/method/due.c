/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/due.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "orchestrator/base/mem.h"

enum { DAY_S = 24 * 3600 };

/* A look that costs less than a minute of a GPU is not worth more for it. */
#define HOURS_LEAST (1.0 / 60)

/* -- dates ------------------------------------------------------------------------------------ */

static bool date_of(const char *text, int64_t *days)
{
	struct tm t = {0}, back;
	time_t s;

	if (strlen(text) != 10 || text[4] != '-' || text[7] != '-')
		return false;
	for (size_t i = 0; i < 10; i++)
		if (i != 4 && i != 7 && !isdigit((unsigned char)text[i]))
			return false;
	t.tm_year = (int)strtol(text, NULL, 10) - 1900;
	t.tm_mon = (int)strtol(text + 5, NULL, 10) - 1;
	t.tm_mday = (int)strtol(text + 8, NULL, 10);
	back = t;
	s = timegm(&back); /* 30 February would come back as another date */
	*days = s / DAY_S;
	return back.tm_mon == t.tm_mon && back.tm_mday == t.tm_mday && t.tm_year >= 70;
}

bool due_nights_between(const char *from, const char *to, int64_t *nights)
{
	int64_t a, b;

	if (!date_of(from, &a) || !date_of(to, &b))
		return false;
	*nights = b - a;
	return true;
}

/* -- looks ------------------------------------------------------------------------------------ */

/* Looks of earlier nights, in short. */
struct looks {
	int64_t since; /* nights since the last; -1: none */
	int64_t span;  /* nights from the first to the last */
	bool tonight;
	size_t ahead;
};

/* A night on record that is later than tonight says nothing about what was seen by now. */
static struct looks looks_of(const struct due_item *it, const char *night)
{
	struct looks l = {.since = -1};
	int64_t first = -1;

	for (size_t i = 0; i < it->n_nights; i++) {
		int64_t ago;

		if (!due_nights_between(it->nights[i], night, &ago))
			continue;
		l.tonight = l.tonight || ago == 0;
		l.ahead += ago < 0;
		if (ago < 0)
			continue;
		l.since = l.since < 0 || ago < l.since ? ago : l.since;
		first = ago > first ? ago : first;
	}
	l.span = l.since < 0 ? 0 : first - l.since;
	return l;
}

static enum due_state state_of(const struct due_item *it, const struct looks *l)
{
	if (l->tonight && !it->left)
		return DUE_DONE;
	if (it->left || l->since < 0)
		return DUE_RUN;
	if (it->period > 0 && l->since >= it->period)
		return DUE_RUN;
	return it->after_change && it->environment_now > 0 ? DUE_RUN : DUE_NOT_YET;
}

static double risk_of(const struct due_item *it, const struct looks *l)
{
	double known = DUE_PRIOR_NIGHTS + (double)l->span;
	double quiet, same = 1, false_alarms = pow(1 - DUE_SUSPECT, it->suspects);

	if (l->since < 0)
		return 1;
	quiet = pow(known / (known + (double)l->since), DUE_PRIOR_CHANGES + it->changes);
	if (it->environment_now > 0)
		same = 1 - (1 + (double)it->environment_changes) /
				   (DUE_PRIOR_ENVIRONMENTS + it->environments);
	return 1 - quiet * fmax(same, 0) * false_alarms;
}

/* GPU-hours where there are GPUs, else node-hours, else hours; unknown ones count as an hour. */
static double cost_of(const struct due_item *it)
{
	double h = it->gpu_hours > 0    ? it->gpu_hours
		   : it->node_hours > 0 ? it->node_hours
		   : it->minutes > 0    ? it->minutes / 60
					: 1;

	return fmax(h, HOURS_LEAST);
}

static const char *plural(int64_t n)
{
	return n == 1 ? "" : "s";
}

static void say_why(const struct due_item *it, const struct looks *l, char *out, size_t n)
{
	char keys[80] = "", doubts[60] = "", ahead[80] = "";

	if (it->environment_now)
		snprintf(keys, sizeof keys, ", %d key%s of the environment changed",
			 it->environment_now, plural(it->environment_now));
	if (it->suspects)
		snprintf(doubts, sizeof doubts, ", %d open suspicion%s", it->suspects,
			 plural(it->suspects));
	if (l->ahead)
		snprintf(ahead, sizeof ahead,
			 ", %zu later night%s on record (was the clock set back?)", l->ahead,
			 plural((int64_t)l->ahead));
	if (it->left)
		snprintf(out, n, "begun and not ended%s%s%s", keys, doubts, ahead);
	else if (l->since < 0)
		snprintf(out, n, "never looked at%s", ahead);
	else if (l->tonight)
		snprintf(out, n, "looked at this night%s%s", doubts, ahead);
	else
		snprintf(out, n, "%lld night%s since the last look%s%s%s", (long long)l->since,
			 plural(l->since), keys, doubts, ahead);
}

/* -- order and budget -------------------------------------------------------------------------- */

struct ranked {
	const struct due_item *item;
	struct due_choice *choice;
};

static bool overdue(const struct ranked *r)
{
	return r->item->period > 0 && r->choice->since >= (int64_t)DUE_OVERDUE * r->item->period;
}

static int by_worth(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->item->canary != y->item->canary)
		return x->item->canary ? -1 : 1;
	if (x->item->left != y->item->left)
		return x->item->left ? -1 : 1;
	if (overdue(x) != overdue(y))
		return overdue(x) ? -1 : 1;
	if (x->choice->worth > y->choice->worth || x->choice->worth < y->choice->worth)
		return x->choice->worth > y->choice->worth ? -1 : 1;
	return strcmp(x->item->name, y->item->name);
}

static double known(double v)
{
	return v > 0 ? v : 0;
}

/* Take it out of the budget. A canary is run whole or not at all. */
static bool takes_room(const struct due_item *it, struct due_budget *b)
{
	double gpu = known(it->gpu_hours), node = known(it->node_hours), min = known(it->minutes);
	bool some = b->gpu_hours > 0 && b->node_hours > 0 && b->minutes > 0;
	bool fits = gpu <= b->gpu_hours && node <= b->node_hours && min <= b->minutes;

	if (!some || (it->canary && !it->left && !fits))
		return false;
	b->gpu_hours = fmax(b->gpu_hours - gpu, 0);
	b->node_hours = fmax(b->node_hours - node, 0);
	b->minutes = fmax(b->minutes - min, 0);
	return true;
}

size_t due_choose(const struct due_item *v, size_t n, const char *night,
		  const struct due_budget *left, struct due_choice *out)
{
	_cleanup_free_ struct ranked *order = xcalloc(n + 1, sizeof *order);
	struct due_budget b = *left;
	size_t due = 0, run = 0;

	for (size_t i = 0; i < n; i++) {
		struct looks l = looks_of(&v[i], night);

		out[i] = (struct due_choice){.state = state_of(&v[i], &l),
					     .risk = risk_of(&v[i], &l),
					     .since = l.since,
					     .ahead = l.ahead};
		out[i].worth = out[i].risk / cost_of(&v[i]);
		say_why(&v[i], &l, out[i].why, sizeof out[i].why);
		if (out[i].state == DUE_RUN)
			order[due++] = (struct ranked){&v[i], &out[i]};
	}
	if (due)
		qsort(order, due, sizeof *order, by_worth);
	for (size_t i = 0; i < due; i++)
		if (takes_room(order[i].item, &b))
			order[i].choice->place = run++;
		else
			order[i].choice->state = DUE_NO_ROOM;
	return run;
}

/* -- nodes ------------------------------------------------------------------------------------ */

struct seen_node {
	const struct due_node *node;
	size_t index;
};

static int newest_first(const void *a, const void *b)
{
	const struct seen_node *x = a, *y = b;
	int d = strcmp(y->node->night, x->node->night);

	if (d == 0)
		d = y->node->looks - x->node->looks;
	return d ? d : strcmp(y->node->name, x->node->name);
}

static size_t less(size_t a, size_t b)
{
	return a > b ? a - b : 0;
}

size_t due_avoid(const struct due_node *v, size_t n, size_t usable, size_t need, size_t blocks,
		 bool *avoid)
{
	_cleanup_free_ struct seen_node *order = xcalloc(n + 1, sizeof *order);
	size_t wanted = need * blocks, left = wanted, most, marked = 0;

	if (n < usable)
		left = blocks > 1 ? wanted - need : need;
	most = less(n, left) < less(usable, wanted) ? less(n, left) : less(usable, wanted);
	for (size_t i = 0; i < n; i++)
		order[i] = (struct seen_node){&v[i], i};
	if (n)
		qsort(order, n, sizeof *order, newest_first);
	for (size_t i = 0; i < n && marked < most && *order[i].node->night; i++, marked++)
		avoid[order[i].index] = true;
	return marked;
}
