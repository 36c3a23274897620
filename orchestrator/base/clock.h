/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Time is passed in, never read by the method: a clock is the machine's or a virtual one that
 * scheduler `fake` advances. Stored time is UTC microseconds. */
#ifndef FETTLE_BASE_CLOCK_H
#define FETTLE_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

struct clock {
	int64_t (*utc_us)(void *ctx);  /* microseconds since the epoch */
	int64_t (*mono_us)(void *ctx); /* CLOCK_MONOTONIC, for durations on this host */
	void *ctx;
};

extern const struct clock clock_system;

/* A clock that stands still until it is advanced. Both of its times move together. */
struct clock_virtual {
	int64_t utc_us, mono_us;
};
struct clock clock_virtual_of(struct clock_virtual *v); /* borrows v */
void clock_advance(struct clock_virtual *v, int64_t us);

int64_t clock_utc_us(const struct clock *c);
int64_t clock_mono_us(const struct clock *c);

/* "2026-11-29T13:21:44Z" into out (n >= 21). */
void clock_iso(int64_t utc_us, char *out, size_t n);

#endif
