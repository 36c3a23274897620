/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/patch.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/edits.h"
#include "orchestrator/cmd/init.h"
#include "orchestrator/report/text.h"

struct patch {
	const struct report *r;
	const struct sbatch *s;
	const struct sbatch_launch *l;
	const struct shell_command *c; /* the launch */
	struct edits edits;
	struct strv lines; /* to be put before the launch */
	struct strv *left;
	struct recommend_parts done; /* that the edits express */
};

static void edit(struct patch *p, size_t start, size_t end, const char *text)
{
	edits_add(&p->edits, start, end, text);
}

static void leave(struct patch *p, const struct recommend_part *part, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void leave(struct patch *p, const struct recommend_part *part, const char *fmt, ...)
{
	_cleanup_free_ char *text = recommend_part_text(part);
	struct buf why = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&why, fmt, ap);
	va_end(ap);
	strv_addf(p->left, "not in here: %s: %s", text, why.data);
	buf_free(&why);
}

static void express(struct patch *p, const struct recommend_part *part)
{
	p->done.v = xgrow(p->done.v, p->done.n, &p->done.cap, sizeof *p->done.v);
	p->done.v[p->done.n++] = *part;
}

static bool launched_by(const struct sbatch_launch *l, const char *name)
{
	for (size_t i = 0; i < l->launchers.n; i++)
		if (str_eq(l->launchers.v[i], name))
			return true;
	return false;
}

/* -- variables --------------------------------------------------------------------------------- */

/* What the script says last of a variable, as far as the launch gets to see it; NULL: nothing. */
static const struct sbatch_var *said(const struct sbatch *s, const struct sbatch_launch *l,
				     const char *name)
{
	const struct sbatch_var *last = NULL;
	bool exported = false;

	for (size_t i = 0; i < s->n_vars; i++) {
		const struct sbatch_var *v = &s->vars[i];

		if (!str_eq(v->name, name) || v->command > l->command ||
		    (v->how == SBATCH_PREFIX && v->command != l->command) ||
		    (v->how == SBATCH_ASSIGN && !exported))
			continue;
		exported = v->how != SBATCH_UNSET;
		last = v;
	}
	return last;
}

/* Where a line can be put before the command that begins at a byte: not inside of a pipe, a list or
 * a line that goes on. */
static size_t line_before(const char *text, size_t at)
{
	while (true) {
		size_t end;

		while (at > 0 && text[at - 1] != '\n')
			at--;
		for (end = at; end > 0 && strchr(" \t\n", text[end - 1]);)
			end--;
		if (end == 0 || !strchr("\\|&", text[end - 1]) ||
		    (text[end - 1] == '&' && (end < 2 || text[end - 2] != '&')))
			return at;
		at = end;
	}
}

/* Does the launch run whenever this command has run, and never without it? Both stand in the same
 * branch or loop, the command on a line of its own. */
static bool runs_with(const struct sbatch *s, const struct shell_command *c,
		      const struct shell_command *launch)
{
	static const char *const ends[] = {"else", "elif", "fi", "done", "esac", "}", ";;", ")"};
	size_t line = line_before(s->text, c->start);

	if (c->depth != launch->depth || !str_eq(c->function, launch->function) ||
	    line + strspn(s->text + line, " \t") != c->start)
		return false;
	for (size_t at = c->end; at < launch->start; at++) {
		const char *text = s->text + at + strspn(s->text + at, " \t");

		for (size_t i = 0; i < ARRAY_LEN(ends); i++)
			if (str_starts(text, ends[i]))
				return false;
		at += strcspn(s->text + at, "\n");
	}
	return true;
}

/* NAME=value; heap. Without a value: NAME=. */
static char *assignment(const struct recommend_part *part)
{
	struct buf b = {0};

	buf_printf(&b, "%s=", part->name);
	if (part->value)
		text_sh(&b, part->value);
	return b.data;
}

/* The last word before the program that gives the variable a value: of `srun env A=1 ...`,
 * `mpirun -x A=1 ...`, `apptainer exec --env A=1 ...`; NULL: none. */
static const struct shell_word *given(const struct sbatch *s, const struct sbatch_launch *l,
				      const char *name)
{
	const struct shell_words *words = &s->body.v[l->command].words;
	const struct shell_word *last = NULL;
	size_t n = strlen(name);

	for (size_t i = 1; i < words->n && i < l->program_word; i++)
		if (strncmp(words->v[i].text, name, n) == 0 && words->v[i].text[n] == '=')
			last = &words->v[i];
	return last;
}

/* Does the launch line set or unset it in a way that we cannot edit: quoted, `env -u A`,
 * `bash -c "A=1 ..."`? */
static bool overruled(const struct sbatch *s, const struct sbatch_launch *l, const char *name)
{
	const struct shell_words *words = &s->body.v[l->command].words;
	size_t n = strlen(name), to;

	if (l->program_word == 0 || l->program_word >= words->n)
		return false;
	to = l->inner_word ? words->v[l->inner_word].end : words->v[l->program_word].start;
	for (size_t at = words->v[0].end; at + n < to; at++) {
		const char *text = s->text + at;

		if (strncmp(text, name, n) != 0 || shell_name_length(text) != n ||
		    isalnum((unsigned char)text[-1]) || strchr("_${", text[-1]))
			continue;
		if (text[n] == '=' || strncmp(text - 3, "-u ", 3) == 0 ||
		    strncmp(text - 8, "--unset=", 8) == 0)
			return true;
	}
	return false;
}

static bool has(const struct sbatch *s, const struct sbatch_launch *l,
		const struct recommend_part *part)
{
	const struct sbatch_var *v = said(s, l, part->name);
	const struct shell_word *w = given(s, l, part->name);
	const struct shell_vars none = {0};
	_cleanup_free_ char *text = NULL, *wanted = assignment(part);

	if (w)
		return part->value && str_eq(w->text, wanted);
	if (overruled(s, l, part->name))
		return false;
	if (!v)
		return false;
	if (!v->conditional)
		return part->value ? v->value && str_eq(v->value, part->value)
				   : v->how == SBATCH_UNSET;
	if (v->how != SBATCH_PREFIX &&
	    !runs_with(s, &s->body.v[v->command], &s->body.v[l->command]))
		return false;
	text = v->text ? shell_literal(v->text, &none) : NULL;
	return part->value ? str_eq(text, part->value) : v->how == SBATCH_UNSET;
}

/* What decides which variables a program of srun gets, and hands its value on: an option of srun,
 * else (*of_job) SLURM_EXPORT_ENV, or the option of sbatch, which sets that; NULL: all. */
static const char *export_option(const struct patch *p, bool *of_job)
{
	const struct sbatch_option *job = sbatch_option(p->s, "export", 0);
	const struct sbatch_var *v = said(p->s, p->l, "SLURM_EXPORT_ENV");

	*of_job = false;
	for (size_t i = 0; i < p->l->options.n; i++)
		if (str_starts(p->l->options.v[i].text, "--export="))
			return p->l->options.v[i].text + strlen("--export=");
	*of_job = launched_by(p->l, "srun");
	if (!*of_job)
		return NULL;
	return v ? v->value : job ? job->value : NULL;
}

/* `A=1 srun ...` and `srun env A=1 ...`: these win over what was exported. */
static bool edit_prefix(struct patch *p, const struct recommend_part *part)
{
	_cleanup_free_ char *text = assignment(part);
	const struct shell_word *w = given(p->s, p->l, part->name);
	bool found = false;

	for (size_t i = 0; i < p->c->n_assigns; i++) {
		const struct shell_assign *a = &p->c->assigns[i];
		size_t start = a->value.start - strlen(a->name) - 1 - a->append;

		if (!str_eq(a->name, part->name))
			continue;
		edit(p, start, a->value.end, part->value ? text : "");
		found = true;
	}
	if (w)
		edit(p, w->start, w->end, part->value ? text : "");
	return found || w;
}

/* Does the text use the variable? */
static bool uses(const struct sbatch *s, size_t from, size_t to, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = from; i + 1 < to; i++) {
		size_t at = i + 1 + (s->text[i + 1] == '{');

		if (s->text[i] == '$' && at + n <= to && memcmp(s->text + at, name, n) == 0 &&
		    shell_name_length(s->text + at) == n)
			return true;
	}
	return false;
}

/* A plain `export NAME=value` of its own, after which nothing but the launch looks at it: its value
 * is changed in place, so that a reader finds one line for it and not two. */
static bool edit_export(struct patch *p, const struct recommend_part *part)
{
	const struct sbatch_var *v = said(p->s, p->l, part->name);
	const struct shell_command *c = v ? &p->s->body.v[v->command] : NULL;
	struct buf text = {0};
	bool found = false;

	if (!v || !part->value || v->how != SBATCH_EXPORT || v->conditional || c->depth > 0 ||
	    c == p->c || c->words.n < 2 || !str_eq(c->words.v[0].text, "export") ||
	    uses(p->s, c->end, p->c->start, part->name))
		return false;
	buf_printf(&text, "%s=", part->name);
	text_sh(&text, part->value);
	for (size_t i = 1; i < c->words.n && !found; i++) {
		const struct shell_word *w = &c->words.v[i];
		size_t n = shell_name_length(w->text);

		if (n == strlen(part->name) && strncmp(w->text, part->name, n) == 0 &&
		    w->text[n] == '=') {
			edit(p, w->start, w->end, text.data);
			found = true;
		}
	}
	buf_free(&text);
	return found;
}

static void add_line(struct patch *p, const struct recommend_part *part)
{
	struct buf b = {0};

	if (part->value) {
		buf_printf(&b, "export %s=", part->name);
		text_sh(&b, part->value);
	} else {
		buf_printf(&b, "unset %s", part->name);
	}
	strv_add(&p->lines, b.data);
	buf_free(&b);
}

/* What stands in an image would win over the variables of the host. */
static void add_for_image(struct patch *p, const struct recommend_part *part)
{
	static const char *const prefixes[] = {"APPTAINERENV_", "SINGULARITYENV_"};

	if (!launched_by(p->l, "apptainer") && !launched_by(p->l, "singularity"))
		return;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		_cleanup_free_ char *name = xasprintf("%s%s", prefixes[i], part->name);

		add_line(p, &(struct recommend_part){
				    .how = RECOMMEND_VARIABLE, .name = name, .value = part->value});
	}
}

static bool listed(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (strncmp(list, name, n) == 0 && strchr(",=", list[n]))
			return true;
	return false;
}

/* Of an image of pyxis: its own value wins unless the option names the variable. */
static bool edit_pyxis(struct patch *p, const struct recommend_part *part)
{
	static const char option[] = "--container-env";
	const struct shell_word *srun = NULL;
	bool pyxis = false;

	for (size_t i = 0; i < p->l->options.n; i++) {
		const char *text = p->l->options.v[i].text;

		pyxis = pyxis || str_starts(text, "--container-image") ||
			str_starts(text, "--container-name");
		if (str_starts(text, "--container-env=") &&
		    listed(text + sizeof option, part->name))
			return true;
	}
	for (size_t i = 0; pyxis && i < p->c->words.n; i++) {
		const struct shell_word *w = &p->c->words.v[i];
		_cleanup_free_ char *more = xasprintf(",%s", part->name);

		if (str_starts(w->text, "--container-env=")) {
			edit(p, w->end, w->end, more);
			return true;
		}
		if (str_eq(fs_basename(w->text), "srun") && !srun)
			srun = w;
	}
	if (pyxis && srun) {
		_cleanup_free_ char *whole = xasprintf(" %s=%s", option, part->name);

		edit(p, srun->end, srun->end, whole);
	}
	return !pyxis || srun;
}

static void put_variable(struct patch *p, const struct recommend_part *part)
{
	bool job;
	const char *list = export_option(p, &job);
	bool all = !list || str_starts(list, "ALL"), named = list && listed(list, part->name);

	if ((all || named) && has(p->s, p->l, part))
		return;
	if (!text_is_name(part->name)) {
		leave(p, part, "a shell cannot set such a name: put env before the program");
	} else if (job && (!all || named)) {
		leave(p, part,
		      "--export=%s of the job decides what srun hands on: put unset SLURM_EXPORT_ENV before line %d",
		      list, p->l->line);
	} else if (!all || named) {
		leave(p, part,
		      "line %d: --export=%s decides what the program gets: change it there",
		      p->l->line, list);
	} else if (!given(p->s, p->l, part->name) && overruled(p->s, p->l, part->name)) {
		leave(p, part,
		      "line %d sets or unsets it where the program is started: change it there",
		      p->l->line);
	} else if (!edit_pyxis(p, part)) {
		leave(p, part, "line %d: add it to --container-env of that image", p->l->line);
	} else {
		if (!edit_prefix(p, part) && !edit_export(p, part))
			add_line(p, part);
		add_for_image(p, part);
		express(p, part);
	}
}

/* -- arguments --------------------------------------------------------------------------------- */

/* What a word is when it holds nothing that only a shell could tell; heap, NULL. */
static char *literal(const struct shell_word *w)
{
	const struct shell_vars none = {0};

	return shell_literal(w->text, &none);
}

/* A word with the blank before it. */
static void edit_out(struct patch *p, const struct shell_word *w)
{
	bool blank = w->start > 0 && strchr(" \t", p->s->text[w->start - 1]);

	edit(p, w->start - blank, w->end, "");
}

/* Words [from, n): the value of each `NAME=v` and `NAME v`, or the flag, is changed. */
static bool edit_words(struct patch *p, const struct shell_words *words, size_t from,
		       const struct recommend_part *part)
{
	size_t n = strcspn(part->name, "=");
	bool found = false;

	for (size_t i = from; i < words->n; i++) {
		_cleanup_free_ char *text = literal(&words->v[i]);
		struct buf b = {0};
		bool joined;

		if (!text || strncmp(text, part->name, n) != 0 || (text[n] && text[n] != '='))
			continue;
		joined = text[n] == '=';
		if (part->knob->flag) {
			if (str_eq(part->value, "false"))
				edit_out(p, &words->v[i]);
		} else if (joined) {
			buf_printf(&b, "%.*s=", (int)n, part->name);
			text_sh(&b, part->value);
			edit(p, words->v[i].start, words->v[i].end, b.data);
		} else if (i + 1 < words->n) {
			text_sh(&b, part->value);
			edit(p, words->v[i + 1].start, words->v[i + 1].end, b.data);
			i++;
		}
		buf_free(&b);
		found = true;
	}
	return found;
}

/* "${ARGS[@]}" on the launch line: the items of the array, where the script writes them once. */
static bool edit_arrays(struct patch *p, const struct recommend_part *part)
{
	bool found = false;

	for (size_t i = 0; i < p->l->command; i++) {
		const struct shell_command *c = &p->s->body.v[i];

		for (size_t k = 0; k < c->n_assigns && c->words.n == 0; k++) {
			const struct shell_assign *a = &c->assigns[k];
			_cleanup_free_ char *use = xasprintf("${%s[@]}", a->name);
			bool used = false;

			for (size_t w = 1; w < p->c->words.n && a->array; w++)
				used = used || strstr(p->c->words.v[w].text, use);
			if (used)
				found = edit_words(p, &a->items, 0, part) || found;
		}
	}
	return found;
}

/* A word that is the same in and outside of any quotes. */
static bool is_plain(const char *s)
{
	return *s && s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				 "_-+=.,:/@%")] == '\0';
}

/* At the end, where of two equal arguments the last one counts. */
static bool append_argument(struct patch *p, const struct recommend_part *part)
{
	size_t inner = p->l->inner_word, at = p->c->words.v[p->c->words.n - 1].end;
	struct buf b = {0};
	bool fine = true;

	buf_printf(&b, " %s", part->name);
	if (!part->knob->flag) {
		buf_str(&b, str_ends(part->name, "=") ? "" : " ");
		text_sh(&b, part->value);
	}
	if (inner) {
		at = p->l->nested || inner + 1 != p->c->words.n
			     ? 0
			     : init_inner_end(&p->c->words.v[inner]);
		fine = at > 0 && is_plain(part->value);
	}
	if (fine)
		edit(p, at, at, b.data);
	buf_free(&b);
	return fine;
}

/* Does the launch, as the script is written, pass this already? */
static bool passes(const struct sbatch_launch *l, const struct recommend_part *part)
{
	_cleanup_free_ char *name = xstrndup(part->name, strcspn(part->name, "="));
	bool known, there = false;
	const char *v;

	if (!part->knob->flag) {
		v = sbatch_arg(l, name, &known);
		return v && known && str_eq(v, part->value);
	}
	for (size_t i = 0; i < l->args.n; i++)
		there = there || str_eq(l->args.v[i].text, name);
	return there == str_eq(part->value, "true");
}

static void put_argument(struct patch *p, const struct recommend_part *part)
{
	bool out = part->knob->flag && str_eq(part->value, "false");
	bool found;

	if (passes(p->l, part))
		return;
	found = !p->l->inner_word && edit_words(p, &p->c->words, p->l->program_word + 1, part);
	found = edit_arrays(p, part) || found;
	if (!found && (out || !append_argument(p, part))) {
		leave(p, part, "line %d: it cannot be %s by an edit of that line: do it by hand",
		      p->l->line, out ? "taken out" : "put there");
		return;
	}
	express(p, part);
}

/* -- the whole --------------------------------------------------------------------------------- */

static void put_part(struct patch *p, const struct recommend_part *part)
{
	switch (part->how) {
	case RECOMMEND_VARIABLE:
		put_variable(p, part);
		break;
	case RECOMMEND_ARGUMENT:
		put_argument(p, part);
		break;
	case RECOMMEND_KEY:
	case RECOMMEND_COMMAND:
		recommend_leave(p->r, part, p->left);
		break;
	}
}

static void put_lines(struct patch *p)
{
	size_t at = line_before(p->s->text, p->c->start), blanks;
	_cleanup_free_ char *indent = NULL;
	struct buf title = {0}, b = {0};

	blanks = strspn(p->s->text + at, " \t");
	indent = xstrndup(p->s->text + at, blanks);
	recommend_title(p->r, &title);
	buf_printf(&b, "%s# %s\n", indent, title.data);
	for (size_t i = 0; i < p->left->n; i++) {
		struct buf line = {0};

		text_line(&line, p->left->v[i]);
		buf_printf(&b, "%s# fettle: %s\n", indent, line.data);
		buf_free(&line);
	}
	for (size_t i = 0; i < p->lines.n; i++)
		buf_printf(&b, "%s%s\n", indent, p->lines.v[i]);
	edit(p, at, at, b.data);
	buf_free(&title);
	buf_free(&b);
}

static const struct sbatch_launch *same_launch(const struct patch *p, const struct sbatch *s)
{
	size_t which = (size_t)(p->l - p->s->launches);

	return s->n_launches == p->s->n_launches ? &s->launches[which] : NULL;
}

/* A reader of the patched script must see what the edits were to express. */
static int check(const struct patch *p, const char *name, struct err *e)
{
	struct buf text = {0};
	struct sbatch s = {0};
	const struct sbatch_launch *l = NULL;
	const struct recommend_part *wrong = NULL;
	int rc;

	edits_apply(&p->edits, p->s->text, 0, p->s->n, &text);
	rc = sbatch_parse(name, text.data, text.len, &s, e);
	if (rc == 0 && s.body.n_notes <= p->s->body.n_notes)
		l = same_launch(p, &s);
	for (size_t i = 0; l && i < p->done.n && !wrong; i++) {
		const struct recommend_part *part = &p->done.v[i];

		if (part->how == RECOMMEND_VARIABLE ? !has(&s, l, part)
						    : !p->l->inner_word && !passes(l, part))
			wrong = part;
	}
	if (rc == 0 && (!l || wrong)) {
		_cleanup_free_ char *what = wrong ? recommend_part_text(wrong) : xstrdup("the fix");

		rc = err_set(e, ERR_STATE,
			     "%s:%d: %s cannot be put into this script by an edit that is sure to "
			     "work: take --as env, and put its variables and arguments there by "
			     "hand",
			     name, p->l->line, what);
	}
	sbatch_free(&s);
	buf_free(&text);
	return rc;
}

static int make(struct patch *p, const struct patch_options *o, struct buf *out, struct err *e)
{
	struct recommend_parts parts = {0};
	int rc = 0;

	recommend_parts(p->r, &parts);
	for (size_t i = 0; i < parts.n; i++)
		put_part(p, &parts.v[i]);
	if (p->edits.n || p->lines.n) {
		put_lines(p);
		edits_sort(&p->edits);
		rc = check(p, o->script, e);
	} else if (p->left->n && p->left->n == parts.n) {
		rc = err_set(e, ERR_STATE,
			     "%s:%d: nothing of the fix can be put into this script: %s", o->script,
			     p->l->line, p->left->v[0]);
	}
	if (rc == 0)
		edits_diff(&p->edits, p->s->text, p->s->n, o->script, o->reverse, out);
	recommend_parts_free(&parts);
	return rc;
}

/* The campaign measured a command: it should be the one that this script launches. */
static void compare_program(struct patch *p, const char *name)
{
	const struct strv *command = &p->r->recipe->workload.command;

	if (recommend_is_copy(p->r) || !p->l->program)
		return;
	for (size_t i = 0; i < command->n; i++)
		if (str_eq(fs_basename(command->v[i]), fs_basename(p->l->program)))
			return;
	strv_addf(p->left, "%s:%d launches %s, and the campaign measured %s", name, p->l->line,
		  p->l->program, command->n ? command->v[0] : "another program");
}

int patch_write(const struct report *r, const struct patch_options *o, struct strv *left,
		struct buf *out, struct err *e)
{
	const struct init_options options = {.launch = o->launch};
	struct sbatch s = {0};
	struct init i = {.o = &options, .s = &s};
	struct patch p = {.r = r, .s = &s, .left = left};
	int rc = sbatch_read(o->script, &s, e);

	if (rc < 0)
		return rc;
	init_find_launch(&i);
	p.l = i.launch;
	if (!p.l) {
		rc = err_set(e, ERR_USAGE, "%s", i.refused.v[0]);
	} else {
		p.c = &s.body.v[p.l->command];
		rc = make(&p, o, out, e);
		if (rc == 0)
			compare_program(&p, o->script);
	}
	init_done(&i);
	edits_free(&p.edits);
	strv_free(&p.lines);
	recommend_parts_free(&p.done);
	sbatch_free(&s);
	return rc;
}
