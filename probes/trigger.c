/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/trigger.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"

enum { WORDS_MAX = 128, PAIRS = 65536 };

struct word {
	const char *text;
	size_t n, at; /* at: where its pair stands in it */
	uint32_t bit;
	uint8_t next; /* of the words with the same pair, from 1; 0 ends */
};

struct trigger {
	uint64_t seen[PAIRS / 64]; /* pairs that some word is known by */
	uint8_t first[PAIRS];      /* the first of their words, from 1 */
	struct word words[WORDS_MAX];
	uint8_t n;
};

struct trigger *trigger_new(void)
{
	return xcalloc(1, sizeof(struct trigger));
}

void trigger_free(struct trigger *t)
{
	free(t);
}

static unsigned pair_at(const char *s)
{
	return (unsigned)(unsigned char)s[0] | (unsigned)(unsigned char)s[1] << 8;
}

/* The rarer a byte is in logs, the higher: letters by their frequency in English. */
static int rarity(char c)
{
	static const char common[] = " etaoinsrhldcum:pfg.-=,0_1yw2b5v4k3";
	const char *at = c ? strchr(common, c) : NULL;

	return at ? (int)(at - common) : (int)sizeof(common);
}

void trigger_add(struct trigger *t, const char *word, unsigned id)
{
	struct word *w = &t->words[t->n];
	int best = -1;
	unsigned pair;

	if (t->n + 1 >= WORDS_MAX || strlen(word) < 2)
		abort();
	*w = (struct word){.text = word, .n = strlen(word), .bit = UINT32_C(1) << id};
	for (size_t i = 0; i + 1 < w->n; i++) {
		int score = rarity(word[i]) + rarity(word[i + 1]);

		if (score > best) {
			best = score;
			w->at = i;
		}
	}
	pair = pair_at(word + w->at);
	w->next = t->first[pair];
	t->first[pair] = ++t->n;
	t->seen[pair / 64] |= UINT64_C(1) << pair % 64;
}

static uint32_t check(const struct trigger *t, struct span line, size_t i)
{
	uint32_t found = 0;

	for (uint8_t k = t->first[pair_at(line.s + i)]; k; k = t->words[k - 1].next) {
		const struct word *w = &t->words[k - 1];

		if (i >= w->at && line.n - (i - w->at) >= w->n &&
		    memcmp(line.s + i - w->at, w->text, w->n) == 0)
			found |= w->bit;
	}
	return found;
}

uint32_t trigger_scan(const struct trigger *t, struct span line)
{
	uint32_t found = 0;

	for (size_t i = 0; i + 1 < line.n; i++) {
		unsigned pair = pair_at(line.s + i);

		if (t->seen[pair / 64] >> pair % 64 & 1)
			found |= check(t, line, i);
	}
	return found;
}
