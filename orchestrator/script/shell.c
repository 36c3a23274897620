/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/shell.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"

enum frame_kind {
	FRAME_IF,
	FRAME_LOOP,
	FRAME_CASE,
	FRAME_BRACE,
	FRAME_SUBSHELL,
	FRAME_FUNCTION, /* its body is the brace or subshell that follows */
};

struct frame {
	enum frame_kind kind;
	int line;
	char *name; /* of a function */
};

enum { HEREDOCS_MAX = 16, NOTES_MAX = 100 }; /* begun on one line; kept of a text full of faults */

struct heredoc {
	size_t command, redirect;
	char *delimiter;
	bool strip;
};

struct reader {
	const char *s;
	size_t n, at;
	int line; /* of at */
	struct shell *out;
	struct shell_command now;
	struct frame frames[SHELL_DEPTH_MAX];
	size_t n_frames;
	struct heredoc docs[HEREDOCS_MAX];
	size_t n_docs;
	bool piped, after_test; /* the command before ended with `|`, with `&&` or `||` */
	bool patterns;          /* in a case, before a pattern */
	bool lost;              /* a quote is not closed: the rest cannot be told */
};

static void note(struct reader *r, int line, const char *text)
{
	struct shell *o = r->out;

	if (o->n_notes >= NOTES_MAX)
		return;
	o->notes = xgrow(o->notes, o->n_notes, &o->cap_notes, sizeof *o->notes);
	o->notes[o->n_notes++] = (struct shell_note){line, xstrdup(text)};
}

static char peek(const struct reader *r, size_t k)
{
	return r->at + k < r->n ? r->s[r->at + k] : '\0';
}

static void step(struct reader *r, size_t k)
{
	for (; k > 0 && r->at < r->n; k--)
		r->line += r->s[r->at++] == '\n';
}

static void step_to(struct reader *r, size_t at)
{
	step(r, at > r->at ? at - r->at : 0);
}

/* -- where quotes and expansions end ---------------------------------------------------------- */

static size_t skip_piece(const struct reader *r, size_t i, int depth);

/* After the opening quote; n when it is not closed. */
static size_t skip_double(const struct reader *r, size_t i, int depth)
{
	while (i < r->n && r->s[i] != '"') {
		if (r->s[i] == '\\' || r->s[i] == '$' || r->s[i] == '`')
			i = skip_piece(r, i, depth + 1);
		else
			i++;
	}
	return i < r->n ? i + 1 : r->n + 1;
}

static size_t skip_single(const struct reader *r, size_t i, bool escapes)
{
	for (; i < r->n && r->s[i] != '\''; i++)
		i += escapes && r->s[i] == '\\' && i + 1 < r->n;
	return i < r->n ? i + 1 : r->n + 1;
}

/* After the opening bracket, to after the closing one. */
static size_t skip_nested(const struct reader *r, size_t i, char open, char close, int depth)
{
	int level = 1;

	while (i < r->n) {
		char c = r->s[i];

		if (c == close && --level == 0)
			return i + 1;
		level += c == open;
		if (open == '(' && c == '#' && (r->s[i - 1] == ' ' || r->s[i - 1] == '\n')) {
			while (i < r->n && r->s[i] != '\n')
				i++;
			continue;
		}
		i = strchr("\\'\"`$", c) && c ? skip_piece(r, i, depth + 1) : i + 1;
	}
	return r->n + 1;
}

static size_t skip_backquotes(const struct reader *r, size_t i)
{
	for (; i < r->n && r->s[i] != '`'; i++)
		i += r->s[i] == '\\' && i + 1 < r->n;
	return i < r->n ? i + 1 : r->n + 1;
}

static size_t skip_dollar(const struct reader *r, size_t i, int depth)
{
	char next = i + 1 < r->n ? r->s[i + 1] : '\0';

	switch (next) {
	case '(':
		return skip_nested(r, i + 2, '(', ')', depth);
	case '{':
		return skip_nested(r, i + 2, '{', '}', depth);
	case '\'':
		return skip_single(r, i + 2, true);
	default:
		return i + 1;
	}
}

/* One character, quoted part or expansion of a word; above n when it is not closed. */
static size_t skip_piece(const struct reader *r, size_t i, int depth)
{
	if (depth > SHELL_DEPTH_MAX)
		return r->n + 1;
	switch (r->s[i]) {
	case '\\':
		return i + 2 <= r->n ? i + 2 : r->n;
	case '\'':
		return skip_single(r, i + 1, false);
	case '"':
		return skip_double(r, i + 1, depth);
	case '`':
		return skip_backquotes(r, i + 1);
	case '$':
		return skip_dollar(r, i, depth);
	default:
		return i + 1;
	}
}

static bool is_break(char c)
{
	return c == '\0' || strchr(" \t\r\n;&|()<>", c);
}

size_t shell_name_length(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

	return n > 0 && (s[0] < '0' || s[0] > '9') ? n : 0;
}

/* The `=` of NAME= or NAME+= or NAME[x]= at the start of s; NULL. */
static const char *assigned_at(const char *s)
{
	size_t n = shell_name_length(s);

	if (n == 0)
		return NULL;
	if (s[n] == '[')
		n += strcspn(s + n, "]") + (strchr(s + n, ']') ? 1 : 0);
	if (s[n] == '+')
		n++;
	return s[n] == '=' ? s + n : NULL;
}

/* The end of the word at `at`; an array's parentheses belong to it. */
static size_t word_end(struct reader *r)
{
	size_t i = r->at;

	while (i < r->n && !is_break(r->s[i])) {
		bool equals = r->s[i] == '=';

		i = skip_piece(r, i, 0);
		if (equals && i < r->n && r->s[i] == '(') {
			_cleanup_free_ char *before = xstrndup(r->s + r->at, i - r->at);
			const char *eq = assigned_at(before);

			if (eq && !eq[1])
				i = skip_nested(r, i + 1, '(', ')', 0);
		}
	}
	if (i > r->n) {
		note(r, r->line,
		     "a quote or bracket that begins here is not closed: what follows "
		     "cannot be told");
		r->lost = true;
		i = r->n;
	}
	return i;
}

static struct shell_word take_word(struct reader *r)
{
	struct shell_word w = {.start = r->at, .line = r->line};
	size_t end = word_end(r);

	if (end == r->at && end < r->n)
		end++; /* never stand still */
	w.end = end;
	w.text = xstrndup(r->s + r->at, end - r->at);
	step_to(r, end);
	return w;
}

static void words_add(struct shell_words *w, struct shell_word word)
{
	w->v = xgrow(w->v, w->n, &w->cap, sizeof *w->v);
	w->v[w->n++] = word;
}

/* -- frames ------------------------------------------------------------------------------------ */

static void push(struct reader *r, enum frame_kind kind, const char *name)
{
	if (r->n_frames >= SHELL_DEPTH_MAX) {
		note(r, r->line, "commands are nested too deeply: what follows cannot be told");
		r->lost = true;
		return;
	}
	r->frames[r->n_frames++] = (struct frame){kind, r->line, xstrdup(name)};
}

static void drop(struct reader *r)
{
	if (r->n_frames)
		free(r->frames[--r->n_frames].name);
}

/* Close the innermost frame of that kind, and the function whose body it was. */
static void pop(struct reader *r, enum frame_kind kind, const char *word)
{
	if (r->n_frames == 0 || r->frames[r->n_frames - 1].kind != kind) {
		_cleanup_free_ char *text = xasprintf("`%s` closes nothing", word);

		note(r, r->line, text);
		return;
	}
	drop(r);
	if (r->n_frames && r->frames[r->n_frames - 1].kind == FRAME_FUNCTION)
		drop(r);
}

static void place(const struct reader *r, struct shell_command *c)
{
	c->depth = r->n_frames;
	for (size_t i = 0; i < r->n_frames; i++) {
		const struct frame *f = &r->frames[i];

		switch (f->kind) {
		case FRAME_LOOP:
			c->loop = true;
			c->conditional = true;
			break;
		case FRAME_IF:
		case FRAME_CASE:
			c->conditional = true;
			break;
		case FRAME_SUBSHELL:
			c->subshell = true;
			break;
		case FRAME_FUNCTION:
			free(c->function);
			c->function = xstrdup(f->name);
			break;
		case FRAME_BRACE:
			break;
		}
	}
}

/* -- commands ---------------------------------------------------------------------------------- */

static bool is_empty(const struct shell_command *c)
{
	return c->words.n == 0 && c->n_assigns == 0;
}

static void assign_free(struct shell_assign *a)
{
	free(a->name);
	free(a->value.text);
	for (size_t i = 0; i < a->items.n; i++)
		free(a->items.v[i].text);
	free(a->items.v);
}

static void command_free(struct shell_command *c)
{
	for (size_t i = 0; i < c->n_assigns; i++)
		assign_free(&c->assigns[i]);
	for (size_t i = 0; i < c->words.n; i++)
		free(c->words.v[i].text);
	for (size_t i = 0; i < c->n_redirects; i++) {
		free(c->redirects[i].op);
		free(c->redirects[i].target.text);
		free(c->redirects[i].body);
	}
	free(c->assigns);
	free(c->words.v);
	free(c->redirects);
	free(c->function);
}

/* The command is over; `by` is the operator that ends it. */
static void finish(struct reader *r, const char *by)
{
	struct shell_command *c = &r->now;
	bool pipe = by[0] == '|' && by[1] != '|';

	if (is_empty(c) && c->n_redirects == 0) {
		command_free(c);
		*c = (struct shell_command){0};
		if (by[0] != '\n') {
			r->piped = pipe;
			r->after_test = str_eq(by, "&&") || str_eq(by, "||");
		}
		return;
	}
	c->piped_in = r->piped;
	c->piped_out = pipe;
	c->background = str_eq(by, "&");
	c->conditional = c->conditional || r->after_test;
	place(r, c);
	r->out->v = xgrow(r->out->v, r->out->n, &r->out->cap, sizeof *r->out->v);
	r->out->v[r->out->n++] = *c;
	*c = (struct shell_command){0};
	r->piped = pipe;
	r->after_test = str_eq(by, "&&") || str_eq(by, "||");
}

static void begin(struct reader *r, size_t start, int line)
{
	if (is_empty(&r->now) && r->now.n_redirects == 0) {
		r->now.start = start;
		r->now.line = line;
	}
}

static void ended_at(struct reader *r, size_t end)
{
	r->now.end = end;
	r->now.last_line = r->line;
}

static void read_items(const struct shell_word *value, struct shell_words *items)
{
	/* Inside of the parentheses newlines are blanks. */
	struct reader r = {.s = value->text + 1, .n = strlen(value->text) - 1, .line = value->line};
	struct shell scratch = {0};

	r.out = &scratch;
	if (r.n > 0 && r.s[r.n - 1] == ')')
		r.n--;
	while (r.at < r.n && items->n < SHELL_FIELDS_MAX) {
		if (strchr(" \t\r\n", peek(&r, 0))) {
			step(&r, 1);
		} else if (peek(&r, 0) == '\\' && peek(&r, 1) == '\n') {
			step(&r, 2);
		} else if (peek(&r, 0) == '#') {
			while (r.at < r.n && peek(&r, 0) != '\n')
				step(&r, 1);
		} else {
			struct shell_word w = take_word(&r);

			w.start += value->start + 1;
			w.end += value->start + 1;
			words_add(items, w);
		}
	}
	shell_free(&scratch);
}

static void add_assign(struct reader *r, struct shell_word *w, const char *eq)
{
	struct shell_command *c = &r->now;
	struct shell_assign a = {.name = xstrndup(w->text, shell_name_length(w->text)),
				 .append = eq > w->text && eq[-1] == '+'};
	size_t skip = (size_t)(eq + 1 - w->text);

	a.value = (struct shell_word){xstrdup(eq + 1), w->start + skip, w->end, w->line};
	a.array = eq[1] == '(';
	if (a.array)
		read_items(&a.value, &a.items);
	c->assigns = xgrow(c->assigns, c->n_assigns, &c->cap_assigns, sizeof *c->assigns);
	c->assigns[c->n_assigns++] = a;
	free(w->text);
}

/* -- here-documents ---------------------------------------------------------------------------- */

/* The delimiter without its quotes. */
static char *unquoted(const char *text)
{
	struct buf b = {0};

	for (; *text; text++)
		if (!strchr("'\"\\", *text))
			buf_char(&b, *text);
	return buf_take(&b);
}

static void read_heredoc(struct reader *r, struct heredoc *h)
{
	struct buf body = {0};
	int line = r->line;
	bool closed = false;

	while (r->at < r->n && !closed) {
		size_t start = r->at, i = start;
		const char *nl = memchr(r->s + start, '\n', r->n - start);
		size_t end = nl ? (size_t)(nl - r->s) : r->n;

		while (h->strip && i < end && r->s[i] == '\t')
			i++;
		closed = end - i == strlen(h->delimiter) &&
			 memcmp(r->s + i, h->delimiter, end - i) == 0;
		if (!closed) {
			buf_put(&body, r->s + i, end - i);
			buf_char(&body, '\n');
		}
		step_to(r, end + (nl ? 1 : 0));
	}
	if (!closed)
		note(r, line, "a here-document is not closed");
	free(h->delimiter);
	/* A fault of the grammar may have taken its command away. */
	if (h->command < r->out->n && h->redirect < r->out->v[h->command].n_redirects) {
		struct shell_redirect *d = &r->out->v[h->command].redirects[h->redirect];

		free(d->body);
		d->body = buf_take(&body);
	}
	buf_free(&body);
}

/* At the start of a line. */
static void read_heredocs(struct reader *r)
{
	for (size_t i = 0; i < r->n_docs; i++)
		read_heredoc(r, &r->docs[i]);
	r->n_docs = 0;
}

/* -- redirections ------------------------------------------------------------------------------ */

static size_t operator_length(const struct reader *r, size_t k)
{
	static const char *const ops[] = {"<<<", "<<-", "<<", ">>", "<&", ">&",
					  "<>",  ">|",  "<",  ">",  NULL};

	for (size_t i = 0; ops[i]; i++)
		if (r->at + k + strlen(ops[i]) <= r->n &&
		    strncmp(r->s + r->at + k, ops[i], strlen(ops[i])) == 0)
			return strlen(ops[i]);
	return 0;
}

/* The length of "2>", "&>", "<<", ... at `at`; 0: no redirection. Process substitution is a word.
 */
static size_t redirect_length(const struct reader *r)
{
	size_t digits = 0, n;

	if (peek(r, 0) == '&' && peek(r, 1) == '>')
		return peek(r, 2) == '>' ? 3 : 2;
	while (peek(r, digits) >= '0' && peek(r, digits) <= '9')
		digits++;
	n = operator_length(r, digits);
	if (n == 0 || (n == 1 && digits == 0 && peek(r, 1) == '('))
		return 0;
	return digits + n;
}

static void skip_blanks(struct reader *r)
{
	while (r->at < r->n) {
		if (peek(r, 0) == '\\' && peek(r, 1) == '\n')
			step(r, 2);
		else if (strchr(" \t\r", peek(r, 0)) && peek(r, 0))
			step(r, 1);
		else
			break;
	}
}

static void read_redirect(struct reader *r, size_t n)
{
	struct shell_command *c = &r->now;
	struct shell_redirect d = {.start = r->at, .op = xstrndup(r->s + r->at, n)};
	const char *op;

	begin(r, r->at, r->line);
	step(r, n);
	skip_blanks(r);
	d.target = take_word(r);
	d.end = r->at;
	c->redirects = xgrow(c->redirects, c->n_redirects, &c->cap_redirects, sizeof d);
	c->redirects[c->n_redirects++] = d;
	ended_at(r, r->at);
	op = d.op + strspn(d.op, "0123456789");
	if ((!str_eq(op, "<<") && !str_eq(op, "<<-")) || r->n_docs >= HEREDOCS_MAX)
		return;
	r->docs[r->n_docs++] = (struct heredoc){.command = r->out->n,
						.redirect = c->n_redirects - 1,
						.delimiter = unquoted(d.target.text),
						.strip = op[2] == '-'};
}

/* -- reserved words ---------------------------------------------------------------------------- */

static void read_for(struct reader *r, const char *word)
{
	if (str_eq(word, "for") || str_eq(word, "select")) {
		skip_blanks(r);
		if (peek(r, 0) == '(' && peek(r, 1) == '(') {
			size_t end = skip_nested(r, r->at + 1, '(', ')', 0);

			step_to(r, end > r->n ? r->n : end);
		} else {
			begin(r, r->at, r->line);
			words_add(&r->now.words,
				  (struct shell_word){xstrdup("for"), r->at, r->at, r->line});
			ended_at(r, r->at);
		}
	}
	push(r, FRAME_LOOP, NULL);
}

static void read_case(struct reader *r)
{
	struct shell_word w;

	skip_blanks(r);
	w = take_word(r);
	free(w.text);
	while (r->at < r->n && strchr(" \t\r\n", peek(r, 0)))
		step(r, 1);
	if (strncmp(r->s + r->at, "in", r->n - r->at < 2 ? r->n - r->at : 2) == 0)
		step(r, 2);
	push(r, FRAME_CASE, NULL);
	r->patterns = true;
}

/* `[[ ... ]]`: its operators are no redirections. */
static void read_test(struct reader *r)
{
	begin(r, r->at, r->line);
	while (r->at < r->n && !r->lost) {
		struct shell_word w;
		bool last;

		while (r->at < r->n && strchr(" \t\r\n", peek(r, 0)))
			step(r, 1);
		if (r->at >= r->n)
			break;
		w = take_word(r);
		last = str_eq(w.text, "]]");
		words_add(&r->now.words, w);
		ended_at(r, r->at);
		if (last)
			break;
	}
}

static void read_function(struct reader *r)
{
	struct shell_word w;

	skip_blanks(r);
	w = take_word(r);
	skip_blanks(r);
	if (peek(r, 0) == '(' && peek(r, 1) == ')')
		step(r, 2);
	push(r, FRAME_FUNCTION, w.text);
	free(w.text);
}

/* True when the word was one that belongs to the grammar and is done with. */
static bool reserved(struct reader *r, const char *word)
{
	static const char *const joints[] = {"then", "do", "else", "elif", "!", NULL};

	for (size_t i = 0; joints[i]; i++)
		if (str_eq(word, joints[i]))
			return true;
	if (str_eq(word, "if"))
		push(r, FRAME_IF, NULL);
	else if (str_eq(word, "fi"))
		pop(r, FRAME_IF, word);
	else if (str_eq(word, "while") || str_eq(word, "until") || str_eq(word, "for") ||
		 str_eq(word, "select"))
		read_for(r, word);
	else if (str_eq(word, "done"))
		pop(r, FRAME_LOOP, word);
	else if (str_eq(word, "case"))
		read_case(r);
	else if (str_eq(word, "esac"))
		pop(r, FRAME_CASE, word);
	else if (str_eq(word, "{"))
		push(r, FRAME_BRACE, NULL);
	else if (str_eq(word, "}"))
		pop(r, FRAME_BRACE, word);
	else if (str_eq(word, "function"))
		read_function(r);
	else
		return false;
	return true;
}

static void read_word(struct reader *r)
{
	struct shell_word w;
	bool first = is_empty(&r->now);
	const char *eq;

	if (first && peek(r, 0) == '[' && peek(r, 1) == '[') {
		read_test(r);
		return;
	}
	begin(r, r->at, r->line);
	w = take_word(r);
	if (first && reserved(r, w.text)) {
		free(w.text);
		return;
	}
	eq = r->now.words.n == 0 ? assigned_at(w.text) : NULL;
	if (eq)
		add_assign(r, &w, eq);
	else
		words_add(&r->now.words, w);
	ended_at(r, r->at);
}

/* -- operators --------------------------------------------------------------------------------- */

/* `( ... )`, `(( ... ))`, or the `()` of a function. */
static void open_bracket(struct reader *r)
{
	struct shell_command *c = &r->now;

	if (c->words.n == 1 && c->n_assigns == 0 && peek(r, 1) == ')') {
		push(r, FRAME_FUNCTION, c->words.v[0].text);
		command_free(c);
		*c = (struct shell_command){0};
		step(r, 2);
		return;
	}
	if (is_empty(c) && peek(r, 1) == '(') {
		size_t end = skip_nested(r, r->at + 1, '(', ')', 0);

		step_to(r, end > r->n ? r->n : end);
		return;
	}
	if (!is_empty(c))
		note(r, r->line, "a bracket stands where none belongs");
	push(r, FRAME_SUBSHELL, NULL);
	step(r, 1);
}

/* In a case: the pattern up to its bracket, or `esac`. */
static void read_pattern(struct reader *r)
{
	while (r->at < r->n && (strchr(" \t\r\n", peek(r, 0)) || peek(r, 0) == '('))
		step(r, 1);
	r->patterns = false;
	if (r->n - r->at >= 4 && strncmp(r->s + r->at, "esac", 4) == 0 && is_break(peek(r, 4)))
		return;
	while (r->at < r->n && peek(r, 0) != ')') {
		size_t end = skip_piece(r, r->at, 0);

		step_to(r, end > r->n ? r->n : end);
	}
	step(r, 1);
}

static void read_operator(struct reader *r)
{
	static const char *const ops[] = {";;&", ";;", ";&", "&&", "||", "|&", ";", "&", "|", NULL};
	size_t i = 0;

	while (ops[i] && (r->at + strlen(ops[i]) > r->n ||
			  strncmp(r->s + r->at, ops[i], strlen(ops[i])) != 0))
		i++;
	finish(r, ops[i] ? ops[i] : ";");
	step(r, ops[i] ? strlen(ops[i]) : 1);
	if (ops[i] && ops[i][0] == ';' && ops[i][1])
		r->patterns = r->n_frames && r->frames[r->n_frames - 1].kind == FRAME_CASE;
}

static void read_newline(struct reader *r)
{
	finish(r, "\n");
	step(r, 1);
	read_heredocs(r);
}

static void read_one(struct reader *r)
{
	size_t n;

	if (r->patterns) {
		read_pattern(r);
		return;
	}
	skip_blanks(r);
	if (r->at >= r->n)
		return;
	n = redirect_length(r);
	switch (peek(r, 0)) {
	case '\n':
		read_newline(r);
		return;
	case '#':
		while (r->at < r->n && peek(r, 0) != '\n')
			step(r, 1);
		return;
	case '(':
		open_bracket(r);
		return;
	case ')':
		finish(r, ";");
		pop(r, FRAME_SUBSHELL, ")");
		step(r, 1);
		return;
	case '\0':
		step(r, 1);
		return;
	default:
		break;
	}
	if (n > 0)
		read_redirect(r, n);
	else if (strchr(";&|", peek(r, 0)))
		read_operator(r);
	else if (strchr("<>", peek(r, 0)))
		step(r, 1); /* of a process substitution: the bracket follows */
	else
		read_word(r);
}

void shell_read(const char *text, size_t n, int line, struct shell *out)
{
	struct reader r = {.s = text, .n = n, .line = line, .out = out};

	*out = (struct shell){0};
	while (r.at < r.n && !r.lost)
		read_one(&r);
	finish(&r, "\n");
	read_heredocs(&r);
	for (; r.n_frames; drop(&r)) {
		const struct frame *f = &r.frames[r.n_frames - 1];

		if (!r.lost)
			note(&r, f->line, "a compound command that begins here is not closed");
	}
}

void shell_free(struct shell *s)
{
	for (size_t i = 0; i < s->n; i++)
		command_free(&s->v[i]);
	for (size_t i = 0; i < s->n_notes; i++)
		free(s->notes[i].text);
	free(s->v);
	free(s->notes);
	*s = (struct shell){0};
}
