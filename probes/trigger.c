/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/trigger.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"

/* A word is found by any GRAM bytes of it that begin at an even place of the line, so that only
 * those places are looked at; a word that is too short for that is searched by its rarest byte. */
enum {
	WORDS_MAX = 128,
	GRAM = 3,
	STRIDE = 3,
	LONG_MIN = GRAM + STRIDE - 1,
	SLOT_BITS = 13, /* 16 KiB of slots stay in the first cache */
	GRAMS_MAX = WORDS_MAX * STRIDE,
};

struct word {
	const char *text;
	size_t n;
	size_t rarest; /* of a short word */
	uint32_t bit;
};

struct gram {
	uint16_t word, at; /* where it stands in which word */
	uint16_t next;     /* of those in the same slot, from 1; 0 ends */
};

struct trigger {
	uint16_t slots[1 << SLOT_BITS]; /* the first gram of each, from 1 */
	struct gram grams[GRAMS_MAX];
	struct word words[WORDS_MAX];
	uint8_t few[WORDS_MAX]; /* short words */
	uint16_t n_grams;
	uint8_t n, n_few;
	uint32_t all; /* every bit that a word sets */
};

struct trigger *trigger_new(void)
{
	return xcalloc(1, sizeof(struct trigger));
}

void trigger_free(struct trigger *t)
{
	free(t);
}

static unsigned slot_of(const char *s)
{
	uint16_t two;

	memcpy(&two, s, sizeof(two));
	return (two | (uint32_t)(unsigned char)s[2] << 16) * UINT32_C(0x9e3779b1) >>
	       (32 - SLOT_BITS);
}

/* The rarer a byte is in logs, the higher: letters by their frequency in English. */
static int rarity(char c)
{
	static const char common[] = " etaoinsrhldcum:pfg.-=,0_1yw2b5v4k3";
	const char *at = c ? strchr(common, c) : NULL;

	return at ? (int)(at - common) : (int)sizeof(common);
}

/* Where the k rarest bytes in a row of a word begin. */
static size_t rarest_at(const char *word, size_t n, size_t k)
{
	size_t best_at = 0;
	int best = -1;

	for (size_t i = 0; i + k <= n; i++) {
		int score = 0;

		for (size_t j = 0; j < k; j++)
			score += rarity(word[i + j]);
		if (score > best) {
			best = score;
			best_at = i;
		}
	}
	return best_at;
}

void trigger_add(struct trigger *t, const char *word, unsigned id)
{
	struct word *w = &t->words[t->n];
	size_t n = strlen(word), at;

	if (t->n + 1 >= WORDS_MAX || !n)
		abort();
	*w = (struct word){word, n, rarest_at(word, n, 1), UINT32_C(1) << id};
	t->all |= w->bit;
	if (n < LONG_MIN) {
		t->few[t->n_few++] = t->n++;
		return;
	}
	at = rarest_at(word, n, LONG_MIN);
	for (size_t i = at; i < at + STRIDE; i++) {
		uint16_t *slot = &t->slots[slot_of(word + i)];

		t->grams[t->n_grams] = (struct gram){t->n, (uint16_t)i, *slot};
		*slot = ++t->n_grams;
	}
	t->n++;
}

static bool stands_at(const struct word *w, struct span line, size_t i, size_t at)
{
	return i >= at && line.n - (i - at) >= w->n && span_same(line.s + i - at, w->text, w->n);
}

static uint32_t check(const struct trigger *t, struct span line, size_t i, uint16_t k)
{
	uint32_t found = 0;

	for (; k; k = t->grams[k - 1].next) {
		const struct gram *g = &t->grams[k - 1];

		if (stands_at(&t->words[g->word], line, i, g->at))
			found |= t->words[g->word].bit;
	}
	return found;
}

static uint32_t check_short(const struct word *w, struct span line)
{
	const char *p = line.s, *end = line.s + line.n;

	while ((p = memchr(p, w->text[w->rarest], (size_t)(end - p)))) {
		if (stands_at(w, line, (size_t)(p - line.s), w->rarest))
			return w->bit;
		p++;
	}
	return 0;
}

uint32_t trigger_scan(const struct trigger *t, struct span line, uint32_t found)
{
	if (found == t->all)
		return found;
	for (size_t i = 0; i + GRAM <= line.n; i += STRIDE) {
		uint16_t k = t->slots[slot_of(line.s + i)];

		if (k && (found |= check(t, line, i, k)) == t->all)
			return found;
	}
	for (uint8_t i = 0; line.n && i < t->n_few; i++)
		if (!(found & t->words[t->few[i]].bit))
			found |= check_short(&t->words[t->few[i]], line);
	return found;
}
