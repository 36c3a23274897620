/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory. Small allocations abort when memory is out: state is safe because every step commits
 * a transaction and can resume. Sizes that come from input are bounded by the caller first.
 */
#ifndef FETTLE_BASE_MEM_H
#define FETTLE_BASE_MEM_H

#include <stddef.h>

void *xchecked(void *p); /* what a library has allocated; NULL aborts */
void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size); /* zeroed; aborts on overflow of n * size */
void *xrealloc(void *p, size_t n, size_t size);
char *xstrdup(const char *s); /* NULL gives NULL */
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Grow a heap array so that index n is valid: doubles *cap from 8. New elements are zeroed. */
void *xgrow(void *array, size_t n, size_t *cap, size_t size);

/* _cleanup_free_ char *s = ...; frees s at the end of the scope. */
void mem_freep(void *pp);
#define _cleanup_free_ __attribute__((cleanup(mem_freep)))
#define _cleanup_(f)   __attribute__((cleanup(f)))

/* Move ownership out: `return TAKE(p);` leaves p NULL, so that its cleanup does nothing. */
#define TAKE(p)                            \
	({                                 \
		__typeof__(p) take_ = (p); \
		(p) = NULL;                \
		take_;                     \
	})

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
