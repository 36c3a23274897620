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
#ifdef __SSE2__
#include <emmintrin.h>
#endif

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

/* Bit i is set where byte i is -1; all bytes are 0 or -1. */
static inline uint32_t vec_bits(vec v)
{
#ifdef __SSE2__
	return (uint32_t)_mm_movemask_epi8((__m128i)v);
#else
	/* Bit 8 i of a half times this falls on bit 56 + i. */
	const uint64_t gather = UINT64_C(0x0102040810204080), ones = UINT64_C(0x0101010101010101);
	uint64_t half[2];

	memcpy(half, &v, sizeof(half));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	half[0] = __builtin_bswap64(half[0]);
	half[1] = __builtin_bswap64(half[1]);
#endif
	return (uint32_t)((half[0] & ones) * gather >> 56 | (half[1] & ones) * gather >> 56 << 8);
#endif
}

#endif
