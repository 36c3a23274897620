/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/effective.h"
#include "orchestrator/cmd/lintfile.h"
#include "orchestrator/report/text.h"

extern const struct cmd cmd_check;

enum { EXIT_USAGE = 2, FILES_MAX = 64 };

struct args {
	const char *files[FILES_MAX], *scheduler;
	size_t n;
	bool json, effective;
	struct lint_input *in;
};

/* --- options -------------------------------------------------------------------------------------
 */

enum { OPT_NCCL = 256, OPT_TORCH, OPT_TRANSPORT, OPT_NODES, OPT_GPUS, OPT_EFFECTIVE };

static void version(struct args *a, const char *key, const char *arg, struct argp_state *state)
{
	if (!arg[0] || arg[strspn(arg, "0123456789.-")])
		argp_error(state, "%s is no version: expected e.g. 2.27.3", arg);
	lint_input_text(a->in, key, arg);
}

static void count(struct args *a, const char *key, const char *arg, struct argp_state *state)
{
	int64_t v;

	if (!str_to_i64(arg, &v) || v < 0)
		argp_error(state, "%s is no number", arg);
	lint_input_number(a->in, key, (double)v);
}

static void transport(struct args *a, const char *arg, struct argp_state *state)
{
	static const char *const words[] = {"ib", "roce", "efa", "socket", NULL};

	for (size_t i = 0; words[i]; i++)
		if (str_eq(arg, words[i])) {
			lint_input_text(a->in, "transport", arg);
			return;
		}
	argp_error(state, "no transport is called %s: ib, roce, efa or socket", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 's':
		a->scheduler = arg;
		if (!sched_find(arg))
			argp_error(state, "no scheduler is called %s: " SCHED_NAMES, arg);
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case OPT_NCCL:
		version(a, "nccl", arg, state);
		return 0;
	case OPT_TORCH:
		version(a, "torch", arg, state);
		return 0;
	case OPT_TRANSPORT:
		transport(a, arg, state);
		return 0;
	case OPT_NODES:
		count(a, "nodes", arg, state);
		return 0;
	case OPT_GPUS:
		count(a, "gpus_per_node", arg, state);
		return 0;
	case OPT_EFFECTIVE:
		a->effective = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->n == FILES_MAX)
			argp_error(state, "at most %d files", FILES_MAX);
		a->files[a->n++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->n)
			argp_error(state, "which campaign, env file or job script?");
		if (a->effective && (a->n > 1 || !str_ends(a->files[0], ".lua")))
			argp_error(state, "--effective shows one campaign (NAME.lua)");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option opts[] = {
	{"scheduler", 's', "SCHEDULER", 0,
	 "check a campaign for this scheduler (default: the recipe's, else local)", 0},
	{"json", 'j', NULL, 0, "JSON instead of text", 0},
	{"effective", OPT_EFFECTIVE, NULL, 0,
	 "show what a campaign comes to: each value that it, its workload file, user.lua or "
	 "site.lua says, and where",
	 0},
	{"nccl-version", OPT_NCCL, "VERSION", 0, "NCCL that will run (default: any)", 0},
	{"torch-version", OPT_TORCH, "VERSION", 0, "PyTorch that will run (default: any)", 0},
	{"transport", OPT_TRANSPORT, "ib|roce|efa|socket", 0,
	 "network between nodes (default: not known)", 0},
	{"nodes", OPT_NODES, "N", 0, "nodes of the job (default: what the file says)", 0},
	{"gpus-per-node", OPT_GPUS, "N", 0, "GPUs of a node, 0 for none (default: as above)", 0},
	{0}};
static const struct argp argp = {
	.options = opts,
	.parser = parse,
	.args_doc = "FILE...",
	.doc = "Check a campaign (NAME.lua), files of NAME=VALUE lines, nccl.conf or job scripts, "
	       "and run nothing: every field, and whether each setting does what it says."
	       "\vSeveral files are one environment, later ones win. Exit status 0 when nothing is "
	       "wrong (warnings and notes may be), 2 when something is, with file and line, what "
	       "happens in fact and what to write instead."};

/* --- output --------------------------------------------------------------------------------------
 */

/* An error about one value of a knob leaves that value out, and the campaign goes on. */
static bool left_out(const struct lint_finding *f)
{
	return f->severity == LINT_ERROR && f->knob;
}

static size_t count_of(const struct lint_finding *f, size_t n, enum lint_severity s)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		k += f[i].severity == s && !left_out(&f[i]);
	return k;
}

static void print_text(const struct lint_finding *f)
{
	_cleanup_free_ char *words = lint_text(f);
	struct buf b = {0}, clean = {0};

	if (f->file)
		buf_printf(&b, "%s:", f->file);
	if (f->line > 0)
		buf_printf(&b, "%d:", f->line);
	buf_printf(&b, "%s%s: ", b.len ? " " : "",
		   left_out(f) ? "left out" : lint_severity_name(f->severity));
	if (f->knob && !str_eq(f->knob, f->name))
		buf_printf(&b, "%s=%s: ", f->knob, f->arm);
	buf_printf(&b, "%s [%s]", words, f->rule ? f->rule : "rule");
	text_line(&clean, b.data);
	puts(clean.data);
	buf_free(&b);
	buf_free(&clean);
}

static struct json *finding_json(const struct lint_finding *f)
{
	struct json *o = json_object();

	json_set_text(o, "severity", lint_severity_name(f->severity));
	json_set_text(o, "rule", f->rule);
	json_set_text(o, "file", f->file);
	if (f->line > 0)
		json_set_i64(o, "line", f->line);
	json_set_text(o, "name", f->name);
	json_set_text(o, "value", f->value);
	json_set_text(o, "what", f->what);
	json_set_text(o, "write", f->write);
	json_set_text(o, "knob", f->knob);
	json_set_text(o, "arm", f->arm);
	return o;
}

static void print_json(const struct args *a, const struct lint_finding *f, size_t n)
{
	struct json *o = json_object(), *files = json_array(), *list = json_array();
	_cleanup_free_ char *text = NULL;
	size_t out = 0;

	for (size_t i = 0; i < a->n; i++)
		json_add_text(files, a->files[i]);
	for (size_t i = 0; i < n; i++)
		json_add(list, finding_json(&f[i]));
	json_set(o, "files", files);
	json_set(o, "findings", list);
	for (size_t i = 0; i < n; i++)
		out += left_out(&f[i]);
	json_set_i64(o, "left_out", (int64_t)out);
	json_set_i64(o, "errors", (int64_t)count_of(f, n, LINT_ERROR));
	json_set_i64(o, "warnings", (int64_t)count_of(f, n, LINT_WARNING));
	json_set_i64(o, "notes", (int64_t)count_of(f, n, LINT_NOTE));
	text = json_print(o, true);
	puts(text);
	json_free(o);
}

static void print_counts(const struct args *a, const struct lint_finding *f, size_t n)
{
	static const char *const words[] = {"error", "warning", "note"};
	struct buf b = {0};

	for (int s = LINT_ERROR; s <= LINT_NOTE; s++) {
		size_t k = count_of(f, n, (enum lint_severity)s);

		if (k)
			buf_printf(&b, "%s%zu %s%s", b.len ? ", " : "", k, words[s],
				   k == 1 ? "" : "s");
	}
	printf("%s%s: %s\n", a->files[0], a->n > 1 ? " and others" : "",
	       b.len ? b.data : "nothing to object to");
	buf_free(&b);
}

/* --- a campaign ----------------------------------------------------------------------------------
 */

static void print_fit(const char *file, const struct recipe *r)
{
	printf("%s: fit to run: campaign %s, ", file, r->name);
	if (r->canary.blocks)
		printf("a canary of %d block%s a %s", r->canary.blocks,
		       r->canary.blocks == 1 ? "" : "s", cadence_name(r->schedule.every));
	else
		printf("%zu knob%s", r->n_knobs, r->n_knobs == 1 ? "" : "s");
	printf(", mode %s\n", run_mode_name(r->mode));
}

static int check_campaign(const struct args *a, const char *file)
{
	struct script_sources s = {0};
	struct recipe *r = NULL;
	struct strv warnings = {0};
	struct lint_finding *f = NULL;
	size_t n = 0, blocking = 0;
	struct err e = {0};
	int rc = drive_load(file, a->scheduler, &r, &s, &e), status;

	if (rc == 0)
		rc = lint_campaign(a->in, r, &s, &f, &n, &blocking, &e);
	status = rc == 0 && blocking < n ? EXIT_USAGE : 0;
	if (rc == 0) {
		script_warnings(r, &warnings);
		for (size_t i = 0; i < warnings.n && !a->json; i++)
			printf("%s: warning: %s\n", file, warnings.v[i]);
		for (size_t i = 0; i < n && !a->json; i++)
			print_text(&f[i]);
		if (a->json)
			print_json(a, f, n);
		else if (status)
			print_counts(a, f, n);
		else
			print_fit(file, r);
	}
	strv_free(&warnings);
	lint_findings_free(f, n);
	recipe_free(r);
	script_sources_free(&s);
	return rc ? cmd_fail(&cmd_check, &e) : status;
}

/* --- other files ---------------------------------------------------------------------------------
 */

static int check_files(const struct args *a)
{
	struct drive_path path;
	struct lint_finding *f = NULL;
	size_t n = 0, errors;
	struct err e = {0};
	int rc = 0;

	lintfile_add_nccl_conf(a->in);
	for (size_t i = 0; i < a->n && rc == 0; i++) {
		enum lintfile_kind kind;

		rc = lintfile_kind(a->files[i], &kind, &e);
		if (rc == 0 && kind == LINTFILE_CAMPAIGN)
			rc = err_set(&e, ERR_USAGE,
				     "%s: a campaign is checked alone, without other files",
				     a->files[i]);
		if (rc == 0)
			rc = lintfile_add(a->in, kind, a->files[i], &e);
	}
	drive_path_init(&path);
	if (rc == 0)
		rc = lint_run(&path.path, a->in, &f, &n, &e);
	drive_path_done(&path);
	if (rc)
		return cmd_fail(&cmd_check, &e);
	errors = count_of(f, n, LINT_ERROR);
	for (size_t i = 0; i < n && !a->json; i++)
		print_text(&f[i]);
	if (a->json)
		print_json(a, f, n);
	else
		print_counts(a, f, n);
	lint_findings_free(f, n);
	return errors ? EXIT_USAGE : 0;
}

static int show_effective(const struct args *a)
{
	_cleanup_(json_freep) struct json *root = NULL;
	struct buf text = {0};
	struct err e = {0};
	int rc = a->json ? effective_json(a->files[0], &root, &e)
			 : effective_text(a->files[0], &text, &e);

	if (root)
		text.data = json_print(root, true);
	if (rc == 0 && text.data)
		fputs(text.data, stdout);
	if (rc == 0 && root)
		putchar('\n');
	buf_free(&text);
	return rc ? cmd_fail(&cmd_check, &e) : 0;
}

static int run(int argc, char **argv)
{
	struct args a = {.in = lint_input_new()};
	int status;

	cmd_parse(&argp, argc, argv, &a);
	if (a.effective)
		status = show_effective(&a);
	else
		status = a.n == 1 && str_ends(a.files[0], ".lua") ? check_campaign(&a, a.files[0])
								  : check_files(&a);
	lint_input_free(a.in);
	return status;
}

const struct cmd cmd_check = {.name = "check",
			      .summary = "check a campaign, an env file or a job script, and run "
					 "nothing",
			      .run = run};
