/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/cmd.h"
#include "orchestrator/cmd/knobcard.h"
#include "orchestrator/report/text.h"
#include "orchestrator/script/passed.h"

extern const struct cmd cmd_knobs;

enum { WORDS_MAX = 2 };

struct args {
	struct drive_options look;
	const char *words[WORDS_MAX];
	size_t n;
};

static bool is_verb(const char *word)
{
	return str_eq(word, "explain") || str_eq(word, "new");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->look;
		return 0;
	case ARGP_KEY_ARG:
		if (a->n == WORDS_MAX)
			argp_error(state, "one knob at a time, got %s too", arg);
		a->words[a->n++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (a->n == 1 && is_verb(a->words[0]))
			argp_error(state, "%s which knob?", a->words[0]);
		if (a->n == WORDS_MAX && !is_verb(a->words[0]))
			argp_error(state, "one pattern at a time, got %s too", a->words[1]);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The catalogue. */
struct knobs {
	struct knob *v;
	size_t n;
	struct tried *tried;
};

static void knobs_done(struct knobs *k)
{
	for (size_t i = 0; i < k->n; i++)
		knob_done(&k->v[i]);
	free(k->v);
	tried_free(k->tried);
}

static int knobs_load(const char *dir, struct knobs *k, struct err *e)
{
	struct drive_path path;
	int rc;

	drive_path_init(&path);
	rc = script_catalogue(&path.path, &k->v, &k->n, e);
	drive_path_done(&path);
	return rc < 0 ? rc : tried_load(dir, &k->tried, e);
}

static void print_json(struct json *root)
{
	_cleanup_free_ char *text = json_print(root, true);

	printf("%s\n", text);
	json_free(root);
}

/* -- the table -------------------------------------------------------------------------------- */

/* A pattern of the shell, or a part of the name; of the domain all of it. */
static bool wanted(const struct knob *k, const char *domain, const char *pattern)
{
	_cleanup_free_ char *part = NULL;

	if (!pattern || str_eq(domain, pattern))
		return true;
	part = strpbrk(pattern, "*?[") ? xstrdup(pattern) : xasprintf("*%s*", pattern);
	return fnmatch(part, k->name, FNM_CASEFOLD) == 0;
}

static void print_line(const struct knob *k, const struct tried *t)
{
	size_t tested = tried_tested(t, k->name);
	struct buf b = {0};

	buf_printf(&b, "%-32s %-12s %-13s %-12s ", k->name, knob_class_name(k->cls),
		   bottleneck_name(k->bottleneck), proof_level_name(k->proof.level));
	text_line(&b, k->summary);
	if (tested)
		buf_printf(&b, " (here %zu tested, %zu accepted)", tested,
			   tried_accepted(t, k->name));
	printf("%s\n", b.data);
	buf_free(&b);
}

static int not_found(const struct knobs *k, const char *word, struct err *e)
{
	_cleanup_free_ const char **names = xcalloc(k->n + 1, sizeof *names);
	const char *near;

	for (size_t i = 0; i < k->n; i++)
		names[i] = k->v[i].name;
	near = str_nearest(word, names);
	return err_set(
		e, ERR_NOT_FOUND,
		"the catalogue has no knob \"%s\" and no campaign here used one%s%s%s; `fettle "
		"knobs` lists them",
		word, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* Knobs of one file stand together: a heading where the next file begins. */
static int list(const struct knobs *k, const char *pattern, bool json, struct err *e)
{
	struct json *all = json ? json_array() : NULL;
	_cleanup_free_ char *last = NULL;
	size_t shown = 0;

	for (size_t i = 0; i < k->n; i++) {
		_cleanup_free_ char *domain = knobcard_domain(&k->v[i]);

		if (!wanted(&k->v[i], domain, pattern))
			continue;
		shown++;
		if (json) {
			json_add(all, knobcard_json(&k->v[i], k->v[i].name, k->tried));
			continue;
		}
		if (!str_eq(domain, last)) {
			printf("%s-- %s\n", last ? "\n" : "", domain);
			free(last);
			last = TAKE(domain);
		}
		print_line(&k->v[i], k->tried);
	}
	if (pattern && !shown) {
		json_free(all);
		return not_found(k, pattern, e);
	}
	if (json)
		print_json(all);
	else
		printf("\n%zu knob%s; `fettle knobs explain NAME` says all about one\n", shown,
		       shown == 1 ? "" : "s");
	return 0;
}

/* -- one knob --------------------------------------------------------------------------------- */

/* "--x", "--x=" and "x" are one name. */
static bool same_way(const char *target, const char *word)
{
	size_t n;

	if (!target)
		return false;
	target += strspn(target, "-");
	word += strspn(word, "-");
	n = strcspn(target, "=");
	return n && strlen(word) == n && strncmp(target, word, n) == 0;
}

/* By a variable, an argument, or what a framework calls it. */
static bool passed_by(const struct knob *k, const char *word)
{
	bool found = same_way(k->target, word);

	for (size_t i = 0; i < k->about.passed.n && !found; i++) {
		struct passed p;

		if (!passed_parse(k->about.passed.v[i].value, &p))
			continue;
		found = p.kind != PASSED_CODE && p.kind != PASSED_NOT && same_way(p.target, word);
		passed_done(&p);
	}
	return found;
}

static void show(const struct knob *k, const char *name, const struct tried *t, bool json)
{
	struct buf b = {0};

	if (json) {
		print_json(knobcard_json(k, name, t));
		return;
	}
	knobcard_text(k, name, t, &b);
	fputs(b.data, stdout);
	buf_free(&b);
}

/* Several knobs may be passed by one variable: as text one after the other, as JSON a list. */
static int explain_ways(const struct knobs *k, const char *word, bool json, struct err *e)
{
	struct json *all = json ? json_array() : NULL;
	size_t shown = 0;

	for (size_t i = 0; i < k->n; i++) {
		if (!passed_by(&k->v[i], word))
			continue;
		if (json)
			json_add(all, knobcard_json(&k->v[i], k->v[i].name, k->tried));
		else if (shown)
			putchar('\n');
		if (!json)
			show(&k->v[i], k->v[i].name, k->tried, false);
		shown++;
	}
	if (!shown) {
		json_free(all);
		return not_found(k, word, e);
	}
	if (json)
		print_json(all);
	return 0;
}

static int explain(const struct knobs *k, const char *word, bool json, struct err *e)
{
	const struct knob *found = NULL;

	for (size_t i = 0; i < k->n; i++)
		if (str_eq(k->v[i].name, word))
			found = &k->v[i];
	if (!found && !tried_known(k->tried, word))
		return explain_ways(k, word, json, e);
	show(found, word, k->tried, json);
	return 0;
}

/* -- a new one -------------------------------------------------------------------------------- */

/* %s: the name. To be loaded as it stands; what a line is for stands behind it. */
static const char template[] =
	"-- knobs/%s.lua on the recipe path (FETTLE_RECIPE_PATH, or recipe_path of site.lua)\n"
	"return {\n"
	"\tname = \"%s\",\n"
	"\tsummary = \"what it does, in one line\",\n"
	"\tenv = \"MY_VARIABLE\", -- or arg = \"--my-argument\"\n"
	"\t-- passed = { hf_trainer = \"--my_argument\" }, -- where a framework has a name of its own\n"
	"\ttype = \"int\", min = 1, max = 64, -- or one_of = { \"a\", \"b\" }\n"
	"\t-- default = 1, -- what the baseline has, if it is not in its command or environment\n"
	"\tvalues = { 2, 4 }, -- what to try\n"
	"\tclass = \"neutral\", -- results are bit-equal; or \"numerics\", \"optimisation\"\n"
	"\tproof = \"delivered\", -- better: { level = \"acknowledged\", log = \"using {value} of it\" }\n"
	"\tbottleneck = \"host\", -- or compute, communication, storage, memory\n"
	"\t-- since = \"torch 2.4\", -- the first version that has it\n"
	"\t-- excludes = { \"ANOTHER\" }, idle = { \"ANOTHER=0\" },\n"
	"\twhen = \"when it is worth trying\",\n"
	"\texpect = relieves(\"data_wait_ratio\", \"waiting for data\"), -- what it can give at most\n"
	"\tsafe = \"values that are safe\",\n"
	"\trisk = \"what can go wrong\",\n"
	"\tmistakes = { \"what users get wrong\" },\n"
	"\tnotes = \"what else to know\",\n"
	"}\n";

static int print_template(const char *name, struct err *e)
{
	size_t n = strspn(name,
			  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	if (!n || n > 64 || name[n])
		return err_set(e, ERR_USAGE,
			       "\"%.80s\" is no name of a knob: at most 64 letters, digits, '.', "
			       "'_' and '-'",
			       name);
	printf(template, name, name);
	return 0;
}

static int act(const struct args *a, struct err *e)
{
	struct knobs k = {0};
	int rc;

	if (a->n == WORDS_MAX && str_eq(a->words[0], "new"))
		return print_template(a->words[1], e);
	rc = knobs_load(a->look.workspace, &k, e);
	if (rc == 0 && a->n == WORDS_MAX)
		rc = explain(&k, a->words[1], a->look.json, e);
	else if (rc == 0)
		rc = list(&k, a->n ? a->words[0] : NULL, a->look.json, e);
	knobs_done(&k);
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_child children[] = {{&look_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "[PATTERN]\nexplain KNOB\nnew NAME",
		.doc = "The catalogue of knobs, by domain: all of them, or those whose name or "
		       "domain matches.\v"
		       "explain: what a knob does, how each framework takes it, its default by "
		       "version, what users get wrong, how its effect is proved, and every verdict "
		       "about it in this workspace. KNOB is its name, a variable or an argument.\n"
		       "new: a knob file to begin with.",
		.children = children};
	struct args a = {0};
	struct err e = {0};

	cmd_parse(&argp, argc, argv, &a);
	return act(&a, &e) < 0 ? cmd_fail(&cmd_knobs, &e) : 0;
}

const struct cmd cmd_knobs = {
	.name = "knobs", .summary = "the catalogue of knobs, and what was tried here", .run = run};
