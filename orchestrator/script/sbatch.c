/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/sbatch.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/script/sbatch_priv.h"

enum {
	NOTES_MAX = 200,  /* kept of a script full of faults */
	VARS_MAX = 10000, /* lines that set a variable */
	VALUE_MAX = 4096, /* a longer value is left to the shell: 40 MiB in all */
};

void sbatch_notef(struct sbatch *s, enum sbatch_note_kind kind, int line, const char *fmt, ...)
{
	struct buf b = {0};
	va_list ap;

	if (s->n_notes >= NOTES_MAX)
		return;
	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	s->notes = xgrow(s->notes, s->n_notes, &s->cap_notes, sizeof *s->notes);
	s->notes[s->n_notes++] = (struct sbatch_note){kind, line, buf_take(&b)};
}

/* -- what sbatch refuses ----------------------------------------------------------------------- */

static int line_at(const char *text, size_t at)
{
	int line = 1;

	for (size_t i = 0; i < at; i++)
		line += text[i] == '\n';
	return line;
}

static int check_text(const char *name, const char *text, size_t n, struct err *e)
{
	const char *nul, *cr;

	if (n > SBATCH_BYTES_MAX)
		return err_set(e, ERR_USAGE, "%s: more than %d MiB: Slurm takes no such script",
			       name, SBATCH_BYTES_MAX >> 20);
	if (n < 2 || text[0] != '#' || text[1] != '!')
		return err_set(e, ERR_USAGE,
			       "%s:1: not a batch script: sbatch wants a first line such as "
			       "#!/bin/bash",
			       name);
	nul = memchr(text, '\0', n);
	if (nul)
		return err_set(e, ERR_USAGE, "%s:%d: a NUL: sbatch refuses it", name,
			       line_at(text, (size_t)(nul - text)));
	cr = memmem(text, n, "\r\n", 2);
	if (cr)
		return err_set(e, ERR_USAGE,
			       "%s:%d: a DOS line break: sbatch refuses it; run dos2unix on the "
			       "script",
			       name, line_at(text, (size_t)(cr - text)));
	return 0;
}

/* "#!/usr/bin/env -S bash -l" is "bash". */
static char *interpreter(const char *text)
{
	_cleanup_free_ char *line = xstrndup(text + 2, strcspn(text + 2, "\n"));
	char *p = line;

	while (*p) {
		char *word = p + strspn(p, " \t");
		size_t n = strcspn(word, " \t");
		bool last = !word[n];

		word[n] = '\0';
		if (*word && *word != '-' && !str_eq(fs_basename(word), "env"))
			return xstrdup(fs_basename(word));
		if (last)
			break;
		p = word + n + 1;
	}
	return xstrdup("");
}

/* -- variables --------------------------------------------------------------------------------- */

struct body {
	struct sbatch *s;
	size_t at; /* command */
	const struct shell_command *c;
};

static void add_var(struct body *b, const char *name, const char *text, const char *value,
		    enum sbatch_var_how how)
{
	struct sbatch *s = b->s;

	if (s->n_vars >= VARS_MAX)
		return;
	if (value && strlen(value) > VALUE_MAX)
		value = NULL;
	s->vars = xgrow(s->vars, s->n_vars, &s->cap_vars, sizeof *s->vars);
	s->vars[s->n_vars++] = (struct sbatch_var){.name = xstrdup(name),
						   .text = xstrdup(text),
						   .value = xstrdup(value),
						   .how = how,
						   .line = b->c->line,
						   .command = b->at,
						   .conditional = b->c->conditional ||
								  b->c->function != NULL};
}

static const char *known_value(const struct shell_vars *vars, const char *name)
{
	const struct shell_value *v = shell_var(vars, name);

	return v && v->known && !v->array && v->items.n ? v->items.v[0].text : NULL;
}

/* NAME=value alone, or NAME of `export NAME=value`. */
static void assign(struct body *b, const struct shell_assign *a, enum sbatch_var_how how)
{
	bool sure = !b->c->conditional && !b->c->function && !b->c->subshell;

	shell_var_assign(&b->s->values, a, sure);
	add_var(b, a->name, a->value.text, known_value(&b->s->values, a->name), how);
}

/* `export A=B` has its assignment as a word. */
static bool split_assignment(const struct shell_word *w, struct shell_assign *a)
{
	struct shell one = {0};
	bool found;

	shell_read(w->text, strlen(w->text), w->line, &one);
	found = one.n == 1 && one.v[0].n_assigns == 1 && one.v[0].words.n == 0;
	if (found) {
		*a = one.v[0].assigns[0];
		one.v[0].n_assigns = 0;
		free(one.v[0].assigns);
		one.v[0].assigns = NULL;
	}
	shell_free(&one);
	return found;
}

static void assign_done(struct shell_assign *a)
{
	free(a->name);
	free(a->value.text);
	for (size_t i = 0; i < a->items.n; i++)
		free(a->items.v[i].text);
	free(a->items.v);
}

static void unset(struct body *b, const char *name)
{
	bool sure = !b->c->conditional && !b->c->function;

	shell_var_set(&b->s->values, name, sure ? "" : NULL);
	add_var(b, name, NULL, NULL, SBATCH_UNSET);
}

/* export, declare, typeset, readonly, local. */
static void read_declaration(struct body *b, bool exported)
{
	bool off = false;

	for (size_t i = 1; i < b->c->words.n; i++) {
		const struct shell_word *w = &b->c->words.v[i];
		struct shell_assign a = {0};

		if (w->text[0] == '-') {
			exported = exported || strchr(w->text, 'x');
			off = off || strchr(w->text, 'n');
		} else if (split_assignment(w, &a)) {
			assign(b, &a, exported ? SBATCH_EXPORT : SBATCH_ASSIGN);
			assign_done(&a);
		} else if (shell_name_length(w->text) == strlen(w->text) && exported) {
			if (off)
				unset(b, w->text);
			else
				add_var(b, w->text, w->text, known_value(&b->s->values, w->text),
					SBATCH_EXPORT);
		}
	}
}

static void read_unset(struct body *b)
{
	for (size_t i = 1; i < b->c->words.n; i++)
		if (b->c->words.v[i].text[0] != '-')
			unset(b, b->c->words.v[i].text);
}

/* srun --export=ALL,A=1,B=2 */
static void read_export_option(struct body *b, const char *list)
{
	for (const char *p = list; *p;) {
		size_t n = strcspn(p, ","), name = shell_name_length(p);

		if (name > 0 && p[name] == '=' && name < n) {
			_cleanup_free_ char *key = xstrndup(p, name);
			_cleanup_free_ char *text = xstrndup(p + name + 1, n - name - 1);
			_cleanup_free_ char *value = shell_literal(text, &b->s->values);

			add_var(b, key, text, value, SBATCH_PREFIX);
		}
		p += n + (p[n] == ',');
	}
}

/* `A=1 cmd` and `env A=1 cmd`: for this command only. */
static void read_prefixes(struct body *b)
{
	const struct shell_words *w = &b->c->words;

	for (size_t i = 0; i < b->c->n_assigns; i++) {
		const struct shell_assign *a = &b->c->assigns[i];
		_cleanup_free_ char *value = shell_literal(a->value.text, &b->s->values);

		add_var(b, a->name, a->value.text, value, SBATCH_PREFIX);
	}
	for (size_t i = 1; i < w->n && str_eq(fs_basename(w->v[0].text), "srun"); i++)
		if (str_starts(w->v[i].text, "--export="))
			read_export_option(b, w->v[i].text + strlen("--export="));
	for (size_t i = 1; i < w->n && str_eq(fs_basename(w->v[0].text), "env"); i++) {
		struct shell_assign a = {0};
		_cleanup_free_ char *value = NULL;

		if (w->v[i].text[0] == '-')
			continue;
		if (!split_assignment(&w->v[i], &a))
			break;
		value = shell_literal(a.value.text, &b->s->values);
		add_var(b, a.name, a.value.text, value, SBATCH_PREFIX);
		assign_done(&a);
	}
}

/* -- what a command is ------------------------------------------------------------------------- */

static void add_line(struct sbatch_line **v, size_t *n, size_t *cap, const struct body *b)
{
	const struct shell_command *c = b->c;

	*v = xgrow(*v, *n, cap, sizeof **v);
	(*v)[(*n)++] = (struct sbatch_line){c->line,
					    xstrndup(b->s->text + c->start, c->end - c->start)};
}

static bool is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (str_eq(word, *list))
			return true;
	return false;
}

static bool is_activation(const struct shell_command *c, const char *name)
{
	static const char *const managers[] = {"conda", "mamba",      "micromamba",
					       "pyenv", "source_env", NULL};

	if (str_eq(name, "source") || str_eq(name, "."))
		return true;
	return is_one_of(name, managers) && c->words.n > 1 &&
	       (str_eq(c->words.v[1].text, "activate") || str_eq(c->words.v[1].text, "shell"));
}

static bool is_module(const struct shell_command *c, const char *name)
{
	return str_eq(name, "module") || str_eq(name, "ml") ||
	       (str_eq(name, "spack") && c->words.n > 1 && str_eq(c->words.v[1].text, "load"));
}

static void read_opaque(struct body *b, const char *name)
{
	if (str_eq(name, "eval"))
		sbatch_notef(b->s, SBATCH_OPAQUE, b->c->line,
			     "eval: what it runs, and what it sets, only a shell can tell");
	else if (str_eq(name, "set") && b->c->words.n > 1 &&
		 (str_eq(b->c->words.v[1].text, "-a") || str_eq(b->c->words.v[1].text, "-o")) &&
		 (b->c->words.n < 3 || str_eq(b->c->words.v[2].text, "allexport")))
		sbatch_notef(b->s, SBATCH_OPAQUE, b->c->line,
			     "what is assigned from here on is exported too");
}

static void read_loop_variable(struct body *b)
{
	if (b->c->words.n > 1)
		shell_var_set(&b->s->values, b->c->words.v[1].text, NULL);
}

static void read_command(struct body *b)
{
	static const char *const declares[] = {"declare", "typeset", "readonly", "local", NULL};
	const struct shell_command *c = b->c;
	const char *name;

	if (c->words.n == 0) {
		for (size_t i = 0; i < c->n_assigns; i++)
			assign(b, &c->assigns[i], SBATCH_ASSIGN);
		return;
	}
	name = c->words.v[0].text;
	if (str_eq(name, "export") || is_one_of(name, declares))
		read_declaration(b, str_eq(name, "export"));
	else if (str_eq(name, "unset"))
		read_unset(b);
	else if (str_eq(name, "for") && c->loop)
		read_loop_variable(b);
	else if (str_eq(name, "read") || str_eq(name, "mapfile") || str_eq(name, "readarray"))
		shell_var_set(&b->s->values, c->words.v[c->words.n - 1].text, NULL);
	else if (is_module(c, name))
		add_line(&b->s->modules, &b->s->n_modules, &b->s->cap_modules, b);
	else if (is_activation(c, name))
		add_line(&b->s->activations, &b->s->n_activations, &b->s->cap_activations, b);
	read_prefixes(b);
	read_opaque(b, name);
	sbatch_read_launch(b->s, b->at, &b->s->values);
}

/* Variables that Slurm gives to the batch script and that the options tell. */
static void give_slurm_variables(struct sbatch *s)
{
	static const struct {
		const char *option, *variable;
	} given[] = {
		{"nodes", "SLURM_NNODES"},
		{"nodes", "SLURM_JOB_NUM_NODES"},
		{"ntasks", "SLURM_NTASKS"},
		{"ntasks-per-node", "SLURM_NTASKS_PER_NODE"},
		{"cpus-per-task", "SLURM_CPUS_PER_TASK"},
		{"job-name", "SLURM_JOB_NAME"},
	};

	for (size_t i = 0; i < ARRAY_LEN(given); i++) {
		const struct sbatch_option *o = sbatch_option(s, given[i].option, 0);

		if (o && o->value && (str_eq(o->name, "job-name") || !strchr(o->value, '-')))
			shell_var_set(&s->values, given[i].variable, o->value);
	}
}

static int by_line(const void *a, const void *b)
{
	const struct sbatch_note *x = a, *y = b;

	return x->line != y->line ? (x->line > y->line) - (x->line < y->line)
				  : strcmp(x->text, y->text);
}

static void read_body(struct sbatch *s)
{
	shell_read(s->text, s->n, 1, &s->body);
	for (size_t i = 0; i < s->body.n_notes; i++)
		sbatch_notef(s, SBATCH_OPAQUE, s->body.notes[i].line, "%s", s->body.notes[i].text);
	give_slurm_variables(s);
	for (size_t i = 0; i < s->body.n; i++) {
		struct body b = {s, i, &s->body.v[i]};

		read_command(&b);
	}
	if (s->n_notes)
		qsort(s->notes, s->n_notes, sizeof *s->notes, by_line);
}

int sbatch_parse(const char *name, const char *text, size_t n, struct sbatch *out, struct err *e)
{
	struct sbatch s = {0};
	int rc = check_text(name, text, n, e);

	if (rc < 0)
		return rc;
	s.name = xstrdup(name);
	s.text = xstrndup(text, n);
	s.n = n;
	s.interpreter = interpreter(s.text);
	if ((rc = sbatch_read_options(&s, e)) < 0) {
		sbatch_free(&s);
		return rc;
	}
	read_body(&s);
	*out = s;
	return 0;
}

int sbatch_read(const char *path, struct sbatch *out, struct err *e)
{
	struct buf b = {0};
	int rc = fs_read(path, SBATCH_BYTES_MAX + 1, &b, e);

	if (rc == 0)
		rc = sbatch_parse(path, b.data ? b.data : "", b.len, out, e);
	buf_free(&b);
	return rc;
}

static void lines_free(struct sbatch_line *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].text);
	free(v);
}

static void launch_free(struct sbatch_launch *l)
{
	strv_free(&l->launchers);
	free(l->program);
	shell_fields_free(&l->options);
	shell_fields_free(&l->args);
}

void sbatch_free(struct sbatch *s)
{
	for (size_t i = 0; i < s->n_options; i++) {
		free(s->options[i].name);
		free(s->options[i].value);
		free(s->options[i].text);
	}
	for (size_t i = 0; i < s->n_vars; i++) {
		free(s->vars[i].name);
		free(s->vars[i].text);
		free(s->vars[i].value);
	}
	for (size_t i = 0; i < s->n_launches; i++)
		launch_free(&s->launches[i]);
	for (size_t i = 0; i < s->n_notes; i++)
		free(s->notes[i].text);
	lines_free(s->modules, s->n_modules);
	lines_free(s->activations, s->n_activations);
	free(s->options);
	free(s->vars);
	free(s->launches);
	free(s->notes);
	shell_free(&s->body);
	shell_vars_free(&s->values);
	free(s->name);
	free(s->text);
	free(s->interpreter);
	*s = (struct sbatch){0};
}
