/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of settings as lint rules see them: what a shell would read, and NCCL's own file. */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/lint_input.h"
#include "orchestrator/script/shell.h"

/* --- as a shell reads it -------------------------------------------------------------------------
 */

static void add_assign(struct lint_input *in, const char *file, const struct shell_command *c,
		       const struct shell_assign *a, struct shell_vars *vars)
{
	_cleanup_free_ char *value = a->array || a->append ? NULL
							   : shell_literal(a->value.text, vars);

	shell_var_assign(vars, a, !c->conditional);
	lint_input_setting(in, &(struct lint_setting){.name = a->name,
						      .value = value,
						      .text = a->value.text,
						      .dynamic = !value,
						      .conditional = c->conditional,
						      .file = file,
						      .line = c->line,
						      .layer = "env file"});
}

/* `export NAME=VALUE ...` and `unset NAME ...`; an export without a value changes none. */
static void add_word(struct lint_input *in, const char *file, const struct shell_command *c,
		     const struct shell_word *w, bool unset, struct shell_vars *vars)
{
	size_t n = shell_name_length(w->text);
	_cleanup_free_ char *name = xstrndup(w->text, n), *value = NULL;
	struct lint_setting s = {.name = name, .file = file, .line = w->line, .layer = "env file"};

	s.conditional = c->conditional;
	if (!n || (w->text[n] != '=' && !unset))
		return;
	if (!unset) {
		value = shell_literal(w->text + n + 1, vars);
		s.value = value;
		s.text = w->text + n + 1;
		s.dynamic = !value;
		shell_var_set(vars, name, value);
	}
	lint_input_setting(in, &s);
}

static void add_command(struct lint_input *in, const char *file, const struct shell_command *c,
			struct shell_vars *vars)
{
	const char *first = c->words.n ? c->words.v[0].text : NULL;
	bool unset = str_eq(first, "unset");

	for (size_t i = 0; !first && i < c->n_assigns; i++)
		add_assign(in, file, c, &c->assigns[i], vars);
	if (unset || str_eq(first, "export"))
		for (size_t i = 1; i < c->words.n; i++)
			add_word(in, file, c, &c->words.v[i], unset, vars);
}

void lint_input_env(struct lint_input *in, const char *file, const char *text, size_t n)
{
	struct shell_vars vars = {0};
	struct shell s;

	if (memmem(text, n, "\r\n", 2))
		lint_input_text(in, "dos_file", file);
	shell_read(text, n, 1, &s);
	for (size_t i = 0; i < s.n; i++)
		add_command(in, file, &s.v[i], &vars);
	shell_free(&s);
	shell_vars_free(&vars);
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
	for (int line = 1; *text; line++) {
		size_t n = strcspn(text, "\n");

		conf_line(in, file, line, text, n);
		text += n + (text[n] == '\n');
	}
}
