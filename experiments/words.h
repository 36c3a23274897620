/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words of an enum that MODEL_ENUM (model.h) declares: NAME_name() and NAME_parse(). */
#ifndef FETTLE_EXPERIMENTS_WORDS_H
#define FETTLE_EXPERIMENTS_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

static inline bool words_find(const char *const *words, size_t n, const char *word, size_t *out)
{
	for (size_t i = 0; i < n; i++) {
		if (str_eq(words[i], word)) {
			*out = i;
			return true;
		}
	}
	return false;
}

/* From the words in the order of the enum, `last` being its last one. */
#define MODEL_WORDS(type, last, ...)                                                             \
	static const char *const type##_words[] = {__VA_ARGS__};                                 \
	_Static_assert(ARRAY_LEN(type##_words) == (size_t)(last) + 1, "a word for each " #type); \
	const char *type##_name(enum type v)                                                     \
	{                                                                                        \
		return (size_t)v < ARRAY_LEN(type##_words) ? type##_words[v] : "?";              \
	}                                                                                        \
	bool type##_parse(const char *word, enum type *out)                                      \
	{                                                                                        \
		size_t i;                                                                        \
                                                                                                 \
		if (!words_find(type##_words, ARRAY_LEN(type##_words), word, &i))                \
			return false;                                                            \
		*out = (enum type)i;                                                             \
		return true;                                                                     \
	}

#endif
