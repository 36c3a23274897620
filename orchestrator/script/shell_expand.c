/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What words become, as far as it can be told: quotes are taken off, known variables put in. */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/shell.h"

const struct shell_value *shell_var(const struct shell_vars *vars, const char *name)
{
	for (size_t i = 0; vars && i < vars->n; i++)
		if (str_eq(vars->v[i].name, name))
			return &vars->v[i];
	return NULL;
}

/* NULL: there are too many. */
static struct shell_value *var_slot(struct shell_vars *vars, const char *name)
{
	for (size_t i = 0; i < vars->n; i++)
		if (str_eq(vars->v[i].name, name))
			return &vars->v[i];
	if (vars->n >= SHELL_VARS_MAX)
		return NULL;
	vars->v = xgrow(vars->v, vars->n, &vars->cap, sizeof *vars->v);
	vars->v[vars->n].name = xstrdup(name);
	return &vars->v[vars->n++];
}

static void fields_add(struct shell_fields *f, const char *text, bool known)
{
	if (f->n >= SHELL_FIELDS_MAX || f->bytes + strlen(text) > SHELL_WORDS_MAX) {
		f->cut = true;
		return;
	}
	f->bytes += strlen(text);
	f->v = xgrow(f->v, f->n, &f->cap, sizeof *f->v);
	f->v[f->n++] = (struct shell_field){.text = xstrdup(text), .known = known};
}

void shell_var_set(struct shell_vars *vars, const char *name, const char *value)
{
	struct shell_value *v = var_slot(vars, name);

	if (!v)
		return;
	shell_fields_free(&v->items);
	v->known = v->told = value != NULL;
	v->array = false;
	if (value)
		fields_add(&v->items, value, true);
}

void shell_vars_free(struct shell_vars *vars)
{
	for (size_t i = 0; i < vars->n; i++) {
		free(vars->v[i].name);
		shell_fields_free(&vars->v[i].items);
	}
	free(vars->v);
	*vars = (struct shell_vars){0};
}

void shell_fields_free(struct shell_fields *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->v[i].text);
	free(f->v);
	*f = (struct shell_fields){0};
}

/* -- one word ---------------------------------------------------------------------------------- */

struct expansion {
	const char *s;
	const struct shell_vars *vars;
	struct shell_fields *out;
	struct buf field;
	bool any;   /* the field exists, be it empty */
	bool known; /* all of the field so far */
	bool split; /* fields are split: not so in an assignment */
	int depth;
};

static void end_field(struct expansion *x)
{
	if (x->any)
		fields_add(x->out, x->field.data ? x->field.data : "", x->known);
	buf_clear(&x->field);
	x->any = false;
	x->known = true;
}

static void put(struct expansion *x, const char *s, size_t n)
{
	if (x->field.len + n > SHELL_VALUE_MAX) {
		x->known = false;
		n = 0;
	}
	buf_put(&x->field, s, n);
	x->any = true;
}

static void put_unknown(struct expansion *x, const char *s, size_t n)
{
	put(x, s, n);
	x->known = false;
}

/* A piece of a value of which not all is known. */
static void put_partly(struct expansion *x, const char *s, size_t n)
{
	bool open = memchr(s, '$', n) || memchr(s, '`', n);

	put(x, s, n);
	x->known = x->known && !open;
}

/* Matching bracket of the expansion that begins at s ("${", "$("); its length, to the end when
 * there is none. */
static size_t bracket_length(const char *s, char open, char close)
{
	int level = 0;

	for (size_t i = 1; s[i]; i++) {
		if (s[i] == '\\' && s[i + 1])
			i++;
		else if (s[i] == open)
			level++;
		else if (s[i] == close && --level == 0)
			return i + 1;
	}
	return strlen(s);
}

/* Bytes up to the next blank that is not inside of `$(...)` or the like. */
static size_t piece_length(const char *s)
{
	size_t n = 0;

	while (s[n] && !strchr(" \t\n", s[n])) {
		if (s[n] == '$' && s[n + 1] == '(')
			n += bracket_length(s + n, '(', ')');
		else if (s[n] == '$' && s[n + 1] == '{')
			n += bracket_length(s + n, '{', '}');
		else
			n++;
	}
	return n;
}

/* Outside of quotes blanks of a value split it. */
static void put_value(struct expansion *x, const struct shell_field *f, bool quoted)
{
	const char *value = f->text;

	if (quoted || !x->split) {
		put(x, value, strlen(value));
		x->known = x->known && f->known;
		return;
	}
	while (*value) {
		size_t n = f->known ? strcspn(value, " \t\n") : piece_length(value);

		if (n && f->known)
			put(x, value, n);
		else if (n)
			put_partly(x, value, n);
		value += n;
		if (*value)
			end_field(x);
		value += strspn(value, " \t\n");
	}
}

static void put_items(struct expansion *x, const struct shell_value *v, bool quoted, bool all)
{
	if (v->items.n == 0 && quoted && !all)
		x->any = true;
	for (size_t i = 0; i < v->items.n && (all || i == 0); i++) {
		if (i > 0)
			end_field(x);
		put_value(x, &v->items.v[i], quoted);
		if (quoted)
			x->any = true;
	}
}

static void expand_into(struct expansion *x, const char *word, bool quoted);

/* ${NAME:-word} and ${NAME-word}, := and =: the value, or the word when the script has none. */
static bool put_default(struct expansion *x, const struct shell_value *v, const char *op, size_t n,
			bool quoted)
{
	size_t skip = op[0] == ':';
	_cleanup_free_ char *word = NULL;

	if (op[skip] != '-' && op[skip] != '=')
		return false;
	if (v && !v->told)
		return false;
	if (v && v->items.n && (v->items.v[0].text[0] || !skip)) {
		put_items(x, v, quoted, false);
		return true;
	}
	word = xstrndup(op + skip + 1, n - skip - 1);
	if (x->depth >= SHELL_DEPTH_MAX)
		return false;
	x->depth++;
	expand_into(x, word, quoted);
	x->depth--;
	return true;
}

/* "${...}" of length n; returns whether it could be told. */
static bool put_braced(struct expansion *x, const char *s, size_t n, bool quoted)
{
	_cleanup_free_ char *inner = xstrndup(s + 2, n > 3 ? n - 3 : 0);
	size_t len = shell_name_length(inner);
	_cleanup_free_ char *name = xstrndup(inner, len);
	const struct shell_value *v = shell_var(x->vars, name);
	const char *rest = inner + len;

	if (len == 0)
		return false;
	if (!*rest || str_eq(rest, "[@]") || str_eq(rest, "[*]") || str_eq(rest, "[0]")) {
		if (!v || !v->told || (str_eq(rest, "[*]") && quoted))
			return false;
		put_items(x, v, quoted, rest[0] && rest[1] != '0');
		return true;
	}
	return put_default(x, v, rest, strlen(rest), quoted);
}

/* At a `$`; returns the length of the expansion. */
static size_t put_dollar(struct expansion *x, const char *s, bool quoted)
{
	size_t n = shell_name_length(s + 1);
	_cleanup_free_ char *name = NULL;
	const struct shell_value *v;

	if (s[1] == '{') {
		n = bracket_length(s, '{', '}');
		if (!put_braced(x, s, n, quoted))
			put_unknown(x, s, n);
		return n;
	}
	if (s[1] == '(') {
		n = bracket_length(s, '(', ')');
		put_unknown(x, s, n);
		return n;
	}
	if (n == 0) {
		bool special = s[1] && strchr("0123456789@*#?$!-", s[1]);

		if (special)
			put_unknown(x, s, 2);
		else
			put(x, s, 1);
		return special ? 2 : 1;
	}
	name = xstrndup(s + 1, n);
	v = shell_var(x->vars, name);
	if (v && v->told)
		put_items(x, v, quoted, false);
	else
		put_unknown(x, s, n + 1);
	return n + 1;
}

static size_t put_backquoted(struct expansion *x, const char *s)
{
	size_t n = 1;

	while (s[n] && s[n] != '`')
		n += s[n] == '\\' && s[n + 1] ? 2 : 1;
	n += s[n] == '`';
	put_unknown(x, s, n);
	return n;
}

/* After the opening quote; returns the length with the closing one. */
static size_t put_double(struct expansion *x, const char *s)
{
	size_t i = 0;

	x->any = true;
	while (s[i] && s[i] != '"') {
		if (s[i] == '\\' && s[i + 1] == '\n') {
			i += 2;
		} else if (s[i] == '\\' && s[i + 1] && strchr("$`\"\\", s[i + 1])) {
			put(x, s + i + 1, 1);
			i += 2;
		} else if (s[i] == '$') {
			i += put_dollar(x, s + i, true);
		} else if (s[i] == '`') {
			i += put_backquoted(x, s + i);
		} else {
			put(x, s + i, 1);
			i++;
		}
	}
	return i + (s[i] == '"');
}

/* $'...': the few escapes that scripts use; others make it unknown. */
static size_t put_ansi(struct expansion *x, const char *s)
{
	static const char from[] = "nt\\'\"", to[] = "\n\t\\'\"";
	size_t i = 0;

	x->any = true;
	for (; s[i] && s[i] != '\''; i++) {
		const char *at;

		if (s[i] != '\\' || !s[i + 1]) {
			put(x, s + i, 1);
			continue;
		}
		i++;
		at = strchr(from, s[i]);
		if (at)
			put(x, to + (at - from), 1);
		else
			put_unknown(x, s + i, 1);
	}
	return i + (s[i] == '\'');
}

static size_t put_plain(struct expansion *x, const char *s, bool first)
{
	if (s[0] == '\\') {
		if (s[1] && s[1] != '\n')
			put(x, s + 1, 1);
		return s[1] ? 2 : 1;
	}
	put(x, s, 1);
	/* Names of files, lists in braces, homes: the shell would look. */
	if (x->split && strchr("*?[", s[0]))
		x->known = false;
	if (x->split && s[0] == '{' && s[strcspn(s, ",}")] == ',')
		x->known = false;
	if (first && s[0] == '~')
		x->known = false;
	return 1;
}

static void expand_into(struct expansion *x, const char *word, bool quoted)
{
	size_t i = 0, n;

	while (word[i]) {
		if (quoted && word[i] != '$' && word[i] != '\\' && word[i] != '`') {
			put(x, word + i, 1);
			i++;
			continue;
		}
		switch (word[i]) {
		case '\'':
			n = strcspn(word + i + 1, "'");
			put(x, word + i + 1, n);
			i += n + 1 + (word[i + 1 + n] == '\'');
			break;
		case '"':
			i += 1 + put_double(x, word + i + 1);
			break;
		case '`':
			i += put_backquoted(x, word + i);
			break;
		case '$':
			if (word[i + 1] == '\'')
				i += 2 + put_ansi(x, word + i + 2);
			else
				i += put_dollar(x, word + i, quoted);
			break;
		default:
			i += put_plain(x, word + i, i == 0);
			break;
		}
	}
}

static bool expand(const char *word, const struct shell_vars *vars, bool split,
		   struct shell_fields *out)
{
	struct expansion x = {.s = word, .vars = vars, .out = out, .known = true, .split = split};
	size_t from = out->n;
	bool known;

	expand_into(&x, word, false);
	end_field(&x);
	buf_free(&x.field);
	known = !out->cut;
	for (size_t i = from; i < out->n; i++)
		known = known && out->v[i].known;
	return known;
}

void shell_expand_words(const struct shell_words *words, size_t from, const struct shell_vars *vars,
			struct shell_fields *out)
{
	for (size_t i = from; i < words->n; i++) {
		size_t before = out->n;

		expand(words->v[i].text, vars, true, out);
		for (size_t j = before; j < out->n; j++)
			out->v[j].word = i;
	}
}

char *shell_literal(const char *word, const struct shell_vars *vars)
{
	struct shell_fields f = {0};
	bool known = expand(word, vars, false, &f);
	char *text = NULL;

	if (known && f.n <= 1)
		text = xstrdup(f.n ? f.v[0].text : "");
	shell_fields_free(&f);
	return text;
}

/* -- assignments ------------------------------------------------------------------------------- */

static bool same_items(const struct shell_fields *a, const struct shell_fields *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!str_eq(a->v[i].text, b->v[i].text))
			return false;
	return true;
}

static void append_text(struct shell_fields *to, const struct shell_field *more)
{
	char *joined = xasprintf("%s%s", to->v[0].text, more->text);

	free(to->v[0].text);
	to->v[0].text = joined;
	to->v[0].known = to->v[0].known && more->known;
	to->bytes += strlen(more->text);
}

/* What the assignment gives. Parts that are not known stay in it as they are written: most of a
 * list of arguments is worth knowing. */
static struct shell_value assigned(const struct shell_vars *vars, const struct shell_assign *a)
{
	struct shell_value v = {.told = true, .array = a->array};
	const struct shell_value *old = a->append ? shell_var(vars, a->name) : NULL;
	struct shell_fields f = {0};
	bool f_cut;

	for (size_t i = 0; old && i < old->items.n; i++)
		fields_add(&v.items, old->items.v[i].text, old->items.v[i].known);
	if (old) {
		v.told = old->told;
		v.array = v.array || old->array;
	}
	for (size_t i = 0; a->array && i < a->items.n; i++)
		expand(a->items.v[i].text, vars, true, &f);
	if (!a->array)
		expand(a->value.text, vars, false, &f);
	if (!a->array && f.n == 0)
		fields_add(&f, "", true);
	for (size_t i = 0; i < f.n; i++) {
		if (!a->array && v.items.n)
			append_text(&v.items, &f.v[i]);
		else
			fields_add(&v.items, f.v[i].text, f.v[i].known);
	}
	f_cut = f.cut;
	shell_fields_free(&f);
	/* The output of a command: `$NAME` says more than the command. */
	if (v.items.n && (str_starts(v.items.v[0].text, "$(") || v.items.v[0].text[0] == '`'))
		v.told = false;
	if (f_cut || v.items.cut || v.items.bytes > SHELL_VALUE_MAX) {
		shell_fields_free(&v.items);
		v.told = false;
	}
	v.known = v.told;
	for (size_t i = 0; i < v.items.n; i++)
		v.known = v.known && v.items.v[i].known;
	return v;
}

void shell_var_assign(struct shell_vars *vars, const struct shell_assign *a, bool sure)
{
	struct shell_value v = assigned(vars, a);
	const struct shell_value *old = shell_var(vars, a->name);
	struct shell_value *slot;

	if (!sure && (!old || !old->told || !same_items(&old->items, &v.items)))
		v.told = v.known = false;
	slot = var_slot(vars, a->name);
	if (!slot) {
		shell_fields_free(&v.items);
		return;
	}
	shell_fields_free(&slot->items);
	slot->items = v.items;
	slot->known = v.known;
	slot->told = v.told;
	slot->array = v.array;
}
