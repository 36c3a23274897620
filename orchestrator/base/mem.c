/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROW_FIRST = 8 }; /* most lists are shorter; the next sizes are 16, 32, ... */

void *xchecked(void *p)
{
	if (!p) {
		fputs("fettle: error: out of memory\n", stderr);
		abort();
	}
	return p;
}

void *xmalloc(size_t n)
{
	return xchecked(malloc(n ? n : 1));
}

void *xcalloc(size_t n, size_t size)
{
	return xchecked(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		return xchecked(NULL);
	return xchecked(realloc(p, bytes ? bytes : 1));
}

char *xstrdup(const char *s)
{
	return s ? xstrndup(s, strlen(s)) : NULL;
}

char *xstrndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *p = xmalloc(len + 1);

	memcpy(p, s, len);
	p[len] = '\0';
	return p;
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *p = NULL;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&p, fmt, ap);
	va_end(ap);
	return n < 0 ? xchecked(NULL) : p;
}

void *xgrow(void *array, size_t n, size_t *cap, size_t size)
{
	size_t want = *cap ? *cap : GROW_FIRST;

	if (n < *cap)
		return array;
	while (want <= n)
		want = want > SIZE_MAX / 2 ? SIZE_MAX : want * 2;
	array = xrealloc(array, want, size);
	memset((char *)array + *cap * size, 0, (want - *cap) * size);
	*cap = want;
	return array;
}

void mem_freep(void *pp)
{
	void *p;

	memcpy(&p, pp, sizeof p); /* pp is a pointer to some T *, not to a void * */
	free(p);
	p = NULL;
	memcpy(pp, &p, sizeof p);
}
