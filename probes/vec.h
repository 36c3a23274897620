/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sixteen bytes at once, in what GCC and clang make of it on any machine (SSE2, NEON): comparing
 * gives 0 or -1 a byte. For the loops that see every byte of a log.
 */
#ifndef FETTLE_PROBES_VEC_H
#define FETTLE_PROBES_VEC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef signed char vec __attribute__((vector_size(16)));
enum { VEC_BYTES = sizeof(vec) };

static inline vec vec_load(const char *s) /* of any alignment */
{
	vec v;

	memcpy(&v, s, sizeof(v));
	return v;
}

static inline vec vec_of(char c)
{
	return (vec){0} + (signed char)c;
}

static inline bool vec_any(vec v) /* a byte is not 0 */
{
	uint64_t half[2];

	memcpy(half, &v, sizeof(half));
	return half[0] | half[1];
}

#endif
