/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The copy of the user's script: its bytes, with edits at the launch. Part of init.h. */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/edits.h"
#include "orchestrator/cmd/init.h"
#include "orchestrator/report/text.h"

struct copy {
	struct init *i;
	const struct shell_command *c; /* the launch */
	struct edits edits;
	size_t cut; /* bytes from here on are left out; the script's length: none */
};

static void edit(struct copy *k, size_t start, size_t end, const char *text)
{
	edits_add(&k->edits, start, end, text);
}

static bool launched_by(const struct init *i, const char *name)
{
	for (size_t k = 0; k < i->launch->launchers.n; k++)
		if (str_eq(i->launch->launchers.v[k], name))
			return true;
	return false;
}

/* -- the launch -------------------------------------------------------------------------------- */

static const char arguments[] = "${fettle_args[@]+\"${fettle_args[@]}\"}";

size_t init_inner_end(const struct shell_word *w)
{
	size_t n = strlen(w->text), end = 0;
	struct shell inner = {0};

	if (n < 3 || (w->text[0] != '"' && w->text[0] != '\'') || w->text[n - 1] != w->text[0])
		return 0;
	shell_read(w->text + 1, n - 2, w->line, &inner);
	for (size_t i = inner.n; i-- > 0 && end == 0;)
		if (inner.v[i].words.n)
			end = inner.v[i].words.v[inner.v[i].words.n - 1].end;
	shell_free(&inner);
	return end ? w->start + 1 + end : 0;
}

/* `bash -c TEXT`: the arguments become those of TEXT. */
static void edit_inner(struct copy *k)
{
	const struct shell_word *w = &k->c->words.v[k->i->launch->inner_word];
	_cleanup_free_ char *behind = xasprintf(" fettle %s", arguments);
	size_t end = k->i->launch->nested ? 0 : init_inner_end(w);

	if (end == 0 || k->i->launch->inner_word + 1 != k->c->words.n) {
		init_refuse(k->i, w->line,
			    "what bash -c runs must stand there as one text in quotes, the last "
			    "word of the line: fettle cannot put its arguments into it");
		return;
	}
	edit(k, end, end, w->text[0] == '"' ? " \\\"\\$@\\\"" : " \"$@\"");
	edit(k, w->end, w->end, behind);
}

static void edit_arguments(struct copy *k)
{
	const struct shell_word *last = &k->c->words.v[k->c->words.n - 1];
	_cleanup_free_ char *text = xasprintf(" %s", arguments);

	if (k->i->launch->inner_word)
		edit_inner(k);
	else
		edit(k, last->end, last->end, text);
}

/* Output that went into a file is what fettle reads. */
static void edit_redirects(struct copy *k)
{
	for (size_t n = 0; n < k->c->n_redirects; n++) {
		const struct shell_redirect *r = &k->c->redirects[n];
		const char *op = r->op + strspn(r->op, "0123456789");

		if (op[0] != '>' && op[0] != '&')
			continue;
		if (str_eq(op, ">&") || str_starts(r->target.text, "/dev/"))
			continue;
		edit(k, r->start, r->end, op[0] == '&' ? "2>&1" : "");
		init_say(k->i, r->target.line, "%s %s is left out: the output is read by fettle",
			 r->op, r->target.text);
	}
}

/* srun --output and --error: with their values. */
static void edit_srun_output(struct copy *k)
{
	static const char *const names[] = {"--output", "--error", "-o", "-e"};

	for (size_t n = 1; n < k->c->words.n && launched_by(k->i, "srun"); n++) {
		const struct shell_word *w = &k->c->words.v[n];

		if (n >= (k->i->launch->inner_word ? k->i->launch->inner_word
						   : k->i->launch->program_word))
			break;
		for (size_t j = 0; j < ARRAY_LEN(names); j++) {
			size_t len = strlen(names[j]);
			bool two = str_eq(w->text, names[j]);

			if (!two &&
			    !(str_starts(w->text, names[j]) && w->text[len] == '=' && j < 2))
				continue;
			edit(k, w->start, two && n + 1 < k->c->words.n ? w[1].end : w->end, "");
			init_say(k->i, w->line, "%s is left out: the output is read by fettle",
				 w->text);
		}
	}
}

/* `tee FILE` behind the launch would write over the file of an earlier run. */
static void edit_tee(struct copy *k)
{
	const struct shell *body = &k->i->s->body;

	for (size_t n = k->i->launch->command + 1; n < body->n && body->v[n].piped_in; n++) {
		const struct shell_command *c = &body->v[n];

		if (c->words.n == 0 || !str_eq(c->words.v[0].text, "tee"))
			continue;
		for (size_t j = 1; j < c->words.n; j++)
			if (c->words.v[j].text[0] != '-') {
				edit(k, c->words.v[j].start, c->words.v[j].end, "/dev/null");
				init_say(k->i, c->line, "tee does not write %s in trials",
					 c->words.v[j].text);
			}
	}
}

/* What stands before the launch as `A=1`, or in env A=1, would win over the campaign. */
static void edit_prefixes(struct copy *k)
{
	for (size_t n = 0; n < k->c->n_assigns; n++) {
		const struct shell_assign *a = &k->c->assigns[n];

		if (kvs_get(&k->i->env, a->name))
			edit(k, a->value.start - strlen(a->name) - 1 - a->append, a->value.end, "");
	}
	for (size_t n = 1; n < k->c->words.n; n++) {
		const struct shell_word *w = &k->c->words.v[n];
		size_t len = shell_name_length(w->text);
		_cleanup_free_ char *name = xstrndup(w->text, len);

		if (!str_eq(fs_basename(k->c->words.v[0].text), "env"))
			break;
		if (w->text[len] == '=' && kvs_get(&k->i->env, name))
			edit(k, w->start, w->end, "");
	}
}

/* -- what reaches the program ------------------------------------------------------------------ */

/* The word of the launch that begins so; NULL. */
static const struct shell_word *word_like(const struct copy *k, const char *prefix)
{
	for (size_t n = 0; n < k->c->words.n; n++)
		if (str_starts(k->c->words.v[n].text, prefix))
			return &k->c->words.v[n];
	return NULL;
}

static bool option_like(const struct copy *k, const char *prefix)
{
	for (size_t n = 0; n < k->i->launch->options.n; n++)
		if (str_starts(k->i->launch->options.v[n].text, prefix))
			return true;
	return false;
}

static void check_export(struct copy *k)
{
	const struct shell_fields *f = &k->i->launch->options;

	for (size_t n = 0; n < f->n; n++) {
		const char *list = f->v[n].text;

		if (!str_starts(list, "--export="))
			continue;
		list += strlen("--export=");
		if (!str_starts(list, "ALL") || (list[3] && list[3] != ','))
			init_refuse(k->i, k->i->launch->line,
				    "%s keeps what the campaign sets from the program: write "
				    "--export=ALL,...",
				    f->v[n].text);
		else if (list[3])
			init_say(k->i, k->i->launch->line,
				 "%s: these variables are the script's in every trial",
				 f->v[n].text);
	}
}

/* An option of pyxis gets more in its list, or is added. */
static void edit_pyxis_option(struct copy *k, const char *name, const char *more)
{
	_cleanup_free_ char *prefix = xasprintf("%s=", name);
	_cleanup_free_ char *longer = xasprintf(",%s", more);
	_cleanup_free_ char *whole = xasprintf(" %s=%s", name, more);
	const struct shell_word *w = word_like(k, prefix), *srun = word_like(k, "srun");

	if (w)
		edit(k, w->end, w->end, longer);
	else if (option_like(k, prefix) || word_like(k, name) || !srun)
		init_refuse(k->i, k->i->launch->line,
			    "%s must stand on the launch line itself, as %s=...: fettle adds to it",
			    name, name);
	else
		edit(k, srun->end, srun->end, whole);
}

static void edit_container(struct copy *k)
{
	if (option_like(k, "--container-image") || option_like(k, "--container-name")) {
		edit_pyxis_option(k, "--container-mounts",
				  "\"$FETTLE_TRIAL_DIR:$FETTLE_TRIAL_DIR\"");
		edit_pyxis_option(k, "--container-env", "\"$fettle_names\"");
	}
	if (launched_by(k->i, "enroot"))
		init_refuse(k->i, k->i->launch->line,
			    "enroot start takes no variables from outside: launch with srun "
			    "--container-image (pyxis), or apptainer");
}

static bool in_apptainer(const struct init *i)
{
	return launched_by(i, "apptainer") || launched_by(i, "singularity");
}

/* -- the other lines --------------------------------------------------------------------------- */

/* Commands that reach out of a trial. */
static void check_command(struct copy *k, const struct shell_command *c)
{
	static const char *const submits[] = {"sbatch", "salloc", "scancel", "scontrol", NULL};
	static const char *const removes[] = {"rm", "mv", "rmdir", "unlink", "shred", NULL};
	const char *name = c->words.n ? fs_basename(c->words.v[0].text) : "";
	const char *verb = c->words.n > 1 ? c->words.v[1].text : "";

	for (size_t n = 0; submits[n]; n++)
		if (str_eq(name, submits[n]) &&
		    !(str_eq(name, "scontrol") && str_starts(verb, "show")))
			init_refuse(k->i, c->line,
				    "%s in every trial: leave the line out with --skip %d", name,
				    c->line);
	for (size_t n = 0; removes[n]; n++)
		if (str_eq(name, removes[n]))
			init_refuse(
				k->i, c->line,
				"%s takes away what is not the trial's: leave the line out with "
				"--skip %d",
				name, c->line);
}

static void note_writes(struct copy *k, const struct shell_command *c)
{
	for (size_t n = 0; n < c->n_redirects; n++) {
		const struct shell_redirect *r = &c->redirects[n];
		const char *op = r->op + strspn(r->op, "0123456789");

		if ((op[0] == '>' || op[0] == '&') && !str_eq(op, ">&") &&
		    !str_starts(r->target.text, "/dev/"))
			init_say(k->i, c->line, "every trial writes %s", r->target.text);
	}
}

static void edit_others(struct copy *k)
{
	const struct shell *body = &k->i->s->body;

	for (size_t n = 0; n < body->n; n++) {
		const struct shell_command *c = &body->v[n];

		if (c == k->c || c->start >= k->cut)
			continue;
		if (init_skips(k->i, c->line)) {
			edit(k, c->start, c->end, ":");
			init_say(k->i, c->line, "left out, as --skip says");
			continue;
		}
		check_command(k, c);
		if (!c->piped_in)
			note_writes(k, c);
	}
}

/* What follows a launch that is waited for is not measured, and may do more than a trial should. */
static void cut_after_launch(struct copy *k)
{
	const struct shell *body = &k->i->s->body;
	size_t at = k->i->launch->command, line = 0, left = 0;
	int last;

	k->cut = k->i->s->n;
	if (k->c->depth > 0 || k->c->background) {
		if (k->c->loop && !k->c->background)
			init_say(k->i, k->c->line, "a loop launches it: trials see its first pass");
		return;
	}
	last = body->v[at].last_line;
	while (at + 1 < body->n && (body->v[at + 1].line <= last || body->v[at + 1].piped_in))
		last = body->v[++at].last_line;
	if (at + 1 >= body->n)
		return;
	/* The start of the next command's line. */
	for (line = body->v[at + 1].start; line > 0 && k->i->s->text[line - 1] != '\n';)
		line--;
	k->cut = line;
	for (size_t n = at + 1; n < body->n; n++)
		left++;
	init_say(k->i, body->v[at + 1].line, "%zu command%s after the launch %s left out", left,
		 left == 1 ? "" : "s", left == 1 ? "is" : "are");
}

/* -- the text ---------------------------------------------------------------------------------- */

static void put_assignment(struct buf *out, const char *text)
{
	const char *eq = strchr(text, '=');

	buf_printf(out, ": \"${%.*s:=", (int)(eq - text), text);
	for (const char *p = eq + 1; *p; p++) {
		if (strchr("\"\\$`}", *p))
			buf_char(out, '\\');
		buf_char(out, *p);
	}
	buf_printf(out, "}\"; export %.*s\n", (int)(eq - text), text);
}

static void put_hold(const struct init *i, struct buf *out)
{
	const char *also = in_apptainer(i) ? " \"APPTAINERENV_$name=${fettle_held[$name]}\" "
					     "\"SINGULARITYENV_$name=${fettle_held[$name]}\""
					   : "";
	const char *gone = in_apptainer(i) ? " \"APPTAINERENV_$name\" \"SINGULARITYENV_$name\""
					   : "";

	buf_str(out,
		"declare -A fettle_held=()\n"
		"for fettle_name in ${FETTLE_SET:-}; do\n"
		"\t[ -z \"${!fettle_name+x}\" ] || "
		"fettle_held[$fettle_name]=${!fettle_name}\n"
		"done\n"
		"fettle_hold() { # what the campaign sets holds, whatever the lines above say\n"
		"\tlocal IFS=' ' name\n"
		"\tfor name in ${FETTLE_SET:-}; do\n"
		"\t\tif [ -n \"${fettle_held[$name]+x}\" ]; then\n");
	buf_printf(out,
		   "\t\t\texport \"$name=${fettle_held[$name]}\"%s\n"
		   "\t\telse\n"
		   "\t\t\tunset \"$name\"%s\n"
		   "\t\tfi\n"
		   "\tdone\n"
		   "}\n",
		   also, gone);
}

static void put_prelude(const struct init *i, struct buf *out)
{
	buf_str(out, "# [fettle] ------------------------------------------------------------\n"
		     ": \"${FETTLE_CKPT_DIR:?fettle starts this script: see fettle run}\"\n"
		     "fettle_args=(\"$@\"");
	for (size_t n = 0; n < i->redirects.n; n++)
		buf_printf(out, " %s", i->redirects.v[n]);
	buf_str(out, ")\nset --");
	for (size_t n = 0; n < i->o->args.n; n++) {
		buf_char(out, ' ');
		text_sh(out, i->o->args.v[n]);
	}
	buf_str(out, "\n: \"${SLURM_SUBMIT_DIR:=$PWD}\"; export SLURM_SUBMIT_DIR\n");
	for (size_t n = 0; n < i->variables.n; n++)
		put_assignment(out, i->variables.v[n]);
	if (in_apptainer(i))
		buf_str(out, "export APPTAINER_BIND=\"${APPTAINER_BIND:+$APPTAINER_BIND,}"
			     "$FETTLE_TRIAL_DIR\"\n"
			     "export SINGULARITY_BIND=\"${SINGULARITY_BIND:+$SINGULARITY_BIND,}"
			     "$FETTLE_TRIAL_DIR\"\n"
			     "for fettle_name in FETTLE_TRIAL FETTLE_METRICS FETTLE_CKPT_DIR; do\n"
			     "\texport \"APPTAINERENV_$fettle_name=${!fettle_name}\" "
			     "\"SINGULARITYENV_$fettle_name=${!fettle_name}\"\n"
			     "done\n");
	buf_str(out, "fettle_names=FETTLE_TRIAL,FETTLE_METRICS,FETTLE_CKPT_DIR"
		     "${FETTLE_SET:+,${FETTLE_SET// /,}}\n");
	put_hold(i, out);
	buf_str(out, "# [fettle] end; in the lines of the script it is at the launch only "
		     "----------\n");
}

/* Of a pipe the launch's status counts. */
static const char *status_word(const struct copy *k)
{
	return k->c->piped_out && !k->c->piped_in ? " \"${PIPESTATUS[0]}\"" : "";
}

static void put_body(struct copy *k, struct buf *out)
{
	const struct sbatch *s = k->i->s;
	const char *nl = strchr(s->text, '\n');
	size_t at = nl ? (size_t)(nl - s->text) + 1 : s->n;

	edits_sort(&k->edits);
	edits_apply(&k->edits, s->text, at, k->cut, out);
	if (out->len && out->data[out->len - 1] != '\n')
		buf_char(out, '\n');
	if (k->cut < s->n)
		buf_printf(out, "exit%s # [fettle] what follows is left out\n", status_word(k));
}

static void check_interpreter(struct init *i)
{
	const char *name = i->s->interpreter;

	if (!str_eq(name, "bash") && !str_eq(name, "sh") && !str_eq(name, "dash"))
		init_refuse(i, 1, "the script is for %s: fettle reads those of bash and sh",
			    *name ? name : "nothing");
	else if (!str_eq(name, "bash"))
		init_say(i, 1, "the copy is run by bash, not by %s", name);
}

void init_script(struct init *i, struct buf *out)
{
	struct copy k = {.i = i, .c = &i->s->body.v[i->launch->command]};
	size_t first = strcspn(i->s->text, "\n");

	check_interpreter(i);
	cut_after_launch(&k);
	edit(&k, k.c->start, k.c->start, "{ fettle_hold; ");
	edit_prefixes(&k);
	edit_srun_output(&k);
	edit_container(&k);
	edit_arguments(&k);
	edit_redirects(&k);
	edit(&k, k.c->end, k.c->end, "; }");
	edit_tee(&k);
	edit_others(&k);
	check_export(&k);
	if (str_eq(i->s->interpreter, "bash"))
		buf_put(out, i->s->text, first);
	else
		buf_str(out, "#!/bin/bash");
	buf_printf(out,
		   "\n# Written by `fettle init %s`. Its lines, with what a campaign changes.\n",
		   fs_basename(i->s->name));
	put_prelude(i, out);
	put_body(&k, out);
	edits_free(&k.edits);
}
