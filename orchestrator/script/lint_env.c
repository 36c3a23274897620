/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of settings as lint rules see them: what a shell would read, and NCCL's own file. */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/lint_input.h"
#include "orchestrator/script/shell.h"

/* $NAME, ${NAME}, ${NAME:-x}, ${#NAME} */
static bool expands(const char *dollar, const char *name, size_t n)
{
	const char *p = dollar + 1;

	p += *p == '{';
	p += *p == '#' || *p == '!';
	return !strncmp(p, name, n) && shell_name_length(p) == n;
}

bool lint_expanded(const char *text, const char *name, int line)
{
	size_t n = strlen(name);
	int now = 1;

	for (; *text; text++) {
		now += *text == '\n';
		if (*text == '$' && now != line && expands(text, name, n))
			return true;
	}
	return false;
}

/* --- as a shell reads it -------------------------------------------------------------------------
 */

/* What all the lines of one file share. */
struct reading {
	struct lint_input *in;
	const char *file, *text;
	struct shell_vars vars;
};

static void add_assign(struct reading *r, const struct shell_command *c,
		       const struct shell_assign *a)
{
	_cleanup_free_ char *value = a->array || a->append ? NULL
							   : shell_literal(a->value.text, &r->vars);

	shell_var_assign(&r->vars, a, !c->conditional);
	lint_input_setting(r->in,
			   &(struct lint_setting){.name = a->name,
						  .value = value,
						  .text = a->value.text,
						  .dynamic = !value,
						  .conditional = c->conditional,
						  .used = lint_expanded(r->text, a->name, c->line),
						  .file = r->file,
						  .line = c->line,
						  .layer = "env file"});
}

/* `export NAME=VALUE ...` and `unset NAME ...`; an export without a value changes none. */
static void add_word(struct reading *r, const struct shell_command *c, const struct shell_word *w,
		     bool unset)
{
	size_t n = shell_name_length(w->text);
	_cleanup_free_ char *name = xstrndup(w->text, n), *value = NULL;
	struct lint_setting s = {
		.name = name, .file = r->file, .line = w->line, .layer = "env file"};

	s.conditional = c->conditional;
	if (!n || (w->text[n] != '=' && !unset))
		return;
	if (!unset) {
		value = shell_literal(w->text + n + 1, &r->vars);
		s.value = value;
		s.text = w->text + n + 1;
		s.dynamic = !value;
		shell_var_set(&r->vars, name, value);
	}
	s.used = lint_expanded(r->text, name, w->line);
	lint_input_setting(r->in, &s);
}

static void add_command(struct reading *r, const struct shell_command *c)
{
	const char *first = c->words.n ? c->words.v[0].text : NULL;
	bool unset = str_eq(first, "unset");

	for (size_t i = 0; !first && i < c->n_assigns; i++)
		add_assign(r, c, &c->assigns[i]);
	if (unset || str_eq(first, "export"))
		for (size_t i = 1; i < c->words.n; i++)
			add_word(r, c, &c->words.v[i], unset);
}

/* Bytes of an editor's mark of UTF-8, which is told. */
static size_t mark_of_utf8(struct lint_input *in, const char *file, const char *text)
{
	static const char mark[] = "\xef\xbb\xbf";

	if (!str_starts(text, mark))
		return 0;
	lint_input_text(in, "marked_file", file);
	return strlen(mark);
}

void lint_input_env(struct lint_input *in, const char *file, const char *text, size_t n)
{
	size_t mark = mark_of_utf8(in, file, text);
	struct reading r = {.in = in, .file = file, .text = text + mark};
	struct shell s;

	if (memmem(text, n, "\r\n", 2))
		lint_input_text(in, "dos_file", file);
	shell_read(text + mark, n - mark, 1, &s);
	for (size_t i = 0; i < s.n; i++)
		add_command(&r, &s.v[i]);
	shell_free(&s);
	shell_vars_free(&r.vars);
}

/* --- as NCCL reads it ----------------------------------------------------------------------------
 */

/* Everything behind the = is the value, blanks, quotes and remarks included. */
static void conf_line(struct lint_input *in, const char *file, int line, const char *text, size_t n)
{
	size_t name = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				   "0123456789_");
	_cleanup_free_ char *key = xstrndup(text, name), *value = NULL;

	if (!name || name >= n || text[name] != '=')
		return;
	value = xstrndup(text + name + 1, n - name - 1);
	lint_input_setting(in, &(struct lint_setting){.name = key,
						      .value = value,
						      .file = file,
						      .line = line,
						      .layer = "nccl.conf"});
}

void lint_input_conf(struct lint_input *in, const char *file, const char *text)
{
	text += mark_of_utf8(in, file, text);
	for (int line = 1; *text; line++) {
		size_t n = strcspn(text, "\n");

		conf_line(in, file, line, text, n);
		text += n + (text[n] == '\n');
	}
}
