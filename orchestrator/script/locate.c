/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/locate.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"
#include "orchestrator/script/fieldpath.h"

enum {
	/* Tokens that are kept. A campaign has hundreds; beyond this only lines get coarser. */
	TOKENS_MAX = 200000,
	/* `return a`, `a = b`, `b = {}`: so many names are followed. */
	ALIAS_MAX = 8,
};

enum token_kind { TOK_NAME, TOK_TEXT, TOK_NUMBER, TOK_OTHER };

/* A token: where it is, and how deep in brackets and in blocks it stands. Openers and closers have
 * the depth of what is around them. */
struct token {
	enum token_kind kind;
	const char *at;
	size_t len;
	int line, brackets, blocks;
};

struct tokens {
	struct token *v;
	size_t n, cap;
};

/* --- scanning ----------------------------------------------------------------------------- */

struct scan {
	const char *p;
	int line, brackets, blocks;
	struct tokens *out;
};

/* Length of a long bracket's opening ("[[", "[==["), 0 if there is none. */
static size_t long_open(const char *p)
{
	size_t n = 1;

	if (*p != '[')
		return 0;
	while (p[n] == '=')
		n++;
	return p[n] == '[' ? n + 1 : 0;
}

/* Skip to behind the closing bracket that fits an opening of `open` bytes. */
static void skip_long(struct scan *s, size_t open)
{
	s->p += open;
	for (; *s->p; s->p++) {
		if (*s->p == '\n')
			s->line++;
		if (*s->p != ']')
			continue;
		if (strspn(s->p + 1, "=") >= open - 2 && s->p[open - 1] == ']') {
			s->p += open;
			return;
		}
	}
}

static void skip_comment(struct scan *s)
{
	size_t open;

	s->p += 2;
	open = long_open(s->p);
	if (open)
		skip_long(s, open);
	else
		s->p += strcspn(s->p, "\n");
}

static void skip_quoted(struct scan *s)
{
	char quote = *s->p++;

	while (*s->p && *s->p != quote) {
		if (*s->p == '\\' && s->p[1])
			s->p++;
		if (*s->p == '\n')
			s->line++;
		s->p++;
	}
	if (*s->p)
		s->p++;
}

static bool word_is(const struct token *t, const char *word)
{
	return t->len == strlen(word) && !memcmp(t->at, word, t->len);
}

static bool in_words(const struct token *t, const char *const *words)
{
	for (; *words; words++)
		if (word_is(t, *words))
			return true;
	return false;
}

/* while and for open their block with their `do`; else and elseif stay in the if's. */
static void count_block(struct scan *s, struct token *t)
{
	static const char *const open[] = {"function", "if", "do", "repeat", NULL};
	static const char *const close[] = {"end", "until", NULL};

	if (in_words(t, open))
		s->blocks++;
	else if (in_words(t, close))
		t->blocks = --s->blocks;
}

static void count_bracket(struct scan *s, struct token *t)
{
	if (strchr("{([", *t->at))
		s->brackets++;
	else if (strchr("})]", *t->at))
		t->brackets = --s->brackets;
}

static void scan_token(struct scan *s)
{
	struct token t = {
		.at = s->p, .line = s->line, .brackets = s->brackets, .blocks = s->blocks};
	size_t open = long_open(s->p);

	if (open || *s->p == '"' || *s->p == '\'') {
		t.kind = TOK_TEXT;
		if (open)
			skip_long(s, open);
		else
			skip_quoted(s);
	} else if (isalpha((unsigned char)*s->p) || *s->p == '_') {
		t.kind = TOK_NAME;
		while (isalnum((unsigned char)*s->p) || *s->p == '_')
			s->p++;
	} else if (isdigit((unsigned char)*s->p)) {
		t.kind = TOK_NUMBER;
		while (isalnum((unsigned char)*s->p) || *s->p == '.')
			s->p++;
	} else {
		t.kind = TOK_OTHER;
		/* `==` must not look like the `=` of a field; the other pairs with `=` likewise. */
		s->p += strchr("=~<>", *s->p) && s->p[1] == '=' ? 2 : 1;
	}
	t.len = (size_t)(s->p - t.at);
	if (t.kind == TOK_NAME)
		count_block(s, &t);
	else if (t.kind == TOK_OTHER)
		count_bracket(s, &t);
	s->out->v = xgrow(s->out->v, s->out->n, &s->out->cap, sizeof(t));
	s->out->v[s->out->n++] = t;
}

static void scan_all(const char *text, struct tokens *out)
{
	struct scan s = {.p = text, .line = 1, .out = out};

	while (*s.p && out->n < TOKENS_MAX) {
		if (*s.p == '\n')
			s.line++;
		if (isspace((unsigned char)*s.p))
			s.p++;
		else if (s.p[0] == '-' && s.p[1] == '-')
			skip_comment(&s);
		else
			scan_token(&s);
	}
}

/* --- walking ------------------------------------------------------------------------------ */

static const struct token *tok(const struct tokens *t, size_t i)
{
	static const struct token none = {.kind = TOK_OTHER, .at = "", .line = 1};

	return i < t->n ? &t->v[i] : &none;
}

static bool is(const struct tokens *t, size_t i, const char *word)
{
	return i < t->n && t->v[i].kind != TOK_TEXT && word_is(&t->v[i], word);
}

/* Index behind the last `return` of the main chunk; t->n if there is none. */
static size_t find_return(const struct tokens *t)
{
	for (size_t i = t->n; i-- > 0;)
		if (is(t, i, "return") && !t->v[i].blocks && !t->v[i].brackets)
			return i + 1;
	return t->n;
}

/* Index behind the last `name =` of the main chunk before `before`. */
static size_t find_assignment(const struct tokens *t, const struct token *name, size_t before)
{
	for (size_t i = before; i-- > 1;)
		if (is(t, i, "=") && !t->v[i].blocks && !t->v[i].brackets &&
		    t->v[i - 1].kind == TOK_NAME && t->v[i - 1].len == name->len &&
		    !memcmp(t->v[i - 1].at, name->at, name->len))
			return i + 1;
	return t->n;
}

/* The `{` of the table that the expression at i gives; t->n if it is none that we can see. */
static size_t table_of(const struct tokens *t, size_t i)
{
	for (int hops = 0; hops < ALIAS_MAX && i < t->n; hops++) {
		if (is(t, i, "{"))
			return i;
		if (t->v[i].kind != TOK_NAME)
			return t->n;
		if (is(t, i + 1, "{"))
			return i + 1;
		if (is(t, i + 1, "(")) {
			int inside = t->v[i + 1].brackets + 1;

			for (i += 2; i < t->n && t->v[i].brackets >= inside; i++)
				if (is(t, i, "{"))
					return i;
			return t->n;
		}
		i = find_assignment(t, &t->v[i], i);
	}
	return t->n;
}

/* One field of a constructor: where it begins, where its value begins. */
struct item {
	size_t start, value;
	size_t name; /* token that names it; 0: it stands by position */
};

static struct item item_at(const struct tokens *t, size_t i)
{
	struct item it = {.start = i, .value = i};

	if (t->v[i].kind == TOK_NAME && is(t, i + 1, "=")) {
		it.name = i;
		it.value = i + 2;
	} else if (is(t, i, "[") && is(t, i + 2, "]") && is(t, i + 3, "=")) {
		it.name = i + 1;
		it.value = i + 4;
	}
	return it;
}

static bool named(const struct token *t, const char *name)
{
	size_t n = strlen(name);

	if (t->kind == TOK_TEXT)
		return t->len == n + 2 && *t->at != '[' && !memcmp(t->at + 1, name, n);
	return t->len == n && !memcmp(t->at, name, n);
}

/* Behind the item: the next `,` or `;` of this constructor, or its `}`. */
static size_t item_end(const struct tokens *t, size_t open, size_t i)
{
	int inside = t->v[open].brackets + 1, blocks = t->v[open].blocks;

	for (; i < t->n; i++) {
		if (t->v[i].brackets < inside)
			return i;
		if (t->v[i].brackets == inside && t->v[i].blocks == blocks &&
		    (is(t, i, ",") || is(t, i, ";")))
			return i;
	}
	return t->n;
}

static bool find_item(const struct tokens *t, size_t open, const struct fieldpath_part *part,
		      struct item *out)
{
	int inside = t->v[open].brackets + 1;
	size_t at = 0, i = open + 1;

	while (i < t->n && t->v[i].brackets >= inside) {
		*out = item_at(t, i);
		if (!out->name)
			at++;
		if (part->index ? !out->name && at == part->index
				: out->name && named(&t->v[out->name], part->name))
			return true;
		i = item_end(t, open, i);
		if (i < t->n && t->v[i].brackets < inside)
			return false;
		i++;
	}
	return false;
}

int locate_line(const char *text, const char *path)
{
	struct tokens t = {0};
	struct fieldpath_part part;
	struct item it;
	size_t open;
	int line;

	scan_all(text, &t);
	open = table_of(&t, find_return(&t));
	line = tok(&t, open)->line;
	while (open < t.n && *path && fieldpath_next(&path, &part) &&
	       find_item(&t, open, &part, &it)) {
		line = tok(&t, it.start)->line;
		open = table_of(&t, it.value);
	}
	free(t.v);
	return line;
}
