/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/clock.h"

#include <stdio.h>
#include <time.h>

enum { US_PER_S = 1000000, NS_PER_US = 1000 };

static int64_t read_us(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * US_PER_S + t.tv_nsec / NS_PER_US;
}

static int64_t system_utc_us(void *ctx)
{
	(void)ctx;
	return read_us(CLOCK_REALTIME);
}

static int64_t system_mono_us(void *ctx)
{
	(void)ctx;
	return read_us(CLOCK_MONOTONIC);
}

const struct clock clock_system = {.utc_us = system_utc_us, .mono_us = system_mono_us};

static int64_t virtual_utc_us(void *ctx)
{
	return ((const struct clock_virtual *)ctx)->utc_us;
}

static int64_t virtual_mono_us(void *ctx)
{
	return ((const struct clock_virtual *)ctx)->mono_us;
}

struct clock clock_virtual_of(struct clock_virtual *v)
{
	return (struct clock){.utc_us = virtual_utc_us, .mono_us = virtual_mono_us, .ctx = v};
}

void clock_advance(struct clock_virtual *v, int64_t us)
{
	v->utc_us += us;
	v->mono_us += us;
}

int64_t clock_utc_us(const struct clock *c)
{
	return c->utc_us(c->ctx);
}

int64_t clock_mono_us(const struct clock *c)
{
	return c->mono_us(c->ctx);
}

void clock_iso(int64_t utc_us, char *out, size_t n)
{
	time_t s = (time_t)(utc_us / US_PER_S - (utc_us % US_PER_S < 0));
	struct tm tm;

	if (n == 0)
		return;
	if (!gmtime_r(&s, &tm) || strftime(out, n, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		out[0] = '\0';
}
