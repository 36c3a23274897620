/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/listing.h"

extern const struct cmd cmd_reparse;

enum {
	EXIT_DIFFERS = 1,
	LINES_MAX = 20, /* of one kind, for a person; --json has all */
};

struct args {
	struct drive_options look;
	const char *campaign;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->look;
		return 0;
	case ARGP_KEY_ARG:
		return drive_one_campaign(state, arg, &a->campaign);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* -- for a person ------------------------------------------------------------------------------ */

static void print_lines(const char *title, const struct strv *s)
{
	if (s->n)
		printf("%s\n", title);
	for (size_t i = 0; i < s->n && i < LINES_MAX; i++) {
		printf("  ");
		listing_clean(s->v[i]);
		putchar('\n');
	}
	if (s->n > LINES_MAX)
		printf("  and %zu more (--json lists them)\n", s->n - LINES_MAX);
}

static void print_change(const struct reparse_change *c)
{
	const char *sep = "";

	printf("  %s (%s): ", c->metric, c->stat);
	if (c->changed) {
		printf("%zu changed", c->changed);
		if (isfinite(c->low))
			printf(" by %+.3g to %+.3g %%", 100 * c->low, 100 * c->high);
		sep = ", ";
	}
	if (c->added) {
		printf("%s%zu new", sep, c->added);
		sep = ", ";
	}
	if (c->gone)
		printf("%s%zu gone", sep, c->gone);
	putchar('\n');
}

static void print_again(const struct campaign_again *a)
{
	if (!campaign_again_differs(a))
		printf("  %s: %s still (%+.2f %%, was %+.2f %%)\n", a->about, a->was,
		       100 * a->est_is, 100 * a->est);
	else
		printf("  %s: would be %s (%+.2f %%); it was %s (%+.2f %%), and stays so\n",
		       a->about, a->is, 100 * a->est_is, a->was, 100 * a->est);
}

static void print_text(int64_t id, const struct campaign_reparse *r)
{
	printf("campaign %lld: %zu attempt%s read again (parsers of revision %d)\n", (long long)id,
	       r->attempts, r->attempts == 1 ? "" : "s", PARSER_REV);
	print_lines("their old values stay, since their files cannot be read again:", &r->kept);
	if (r->n_changes)
		printf("values that are others now:\n");
	else
		printf("no value changed\n");
	for (size_t i = 0; i < r->n_changes; i++)
		print_change(&r->changes[i]);
	print_lines("trials that are judged otherwise:", &r->states);
	if (r->n_again)
		printf("conclusions:\n");
	for (size_t i = 0; i < r->n_again; i++)
		print_again(&r->again[i]);
}

/* -- for a program ----------------------------------------------------------------------------- */

static struct json *texts(const struct strv *s)
{
	struct json *a = json_array();

	for (size_t i = 0; i < s->n; i++)
		json_add_text(a, s->v[i]);
	return a;
}

static struct json *changes_json(const struct campaign_reparse *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_changes; i++) {
		const struct reparse_change *c = &r->changes[i];
		struct json *o = json_object();

		json_set_text(o, "metric", c->metric);
		json_set_text(o, "stat", c->stat);
		json_set_i64(o, "changed", (int64_t)c->changed);
		json_set_i64(o, "new", (int64_t)c->added);
		json_set_i64(o, "gone", (int64_t)c->gone);
		json_set_number(o, "low", c->low);
		json_set_number(o, "high", c->high);
		json_add(a, o);
	}
	return a;
}

static struct json *conclusions_json(const struct campaign_reparse *r)
{
	struct json *a = json_array();

	for (size_t i = 0; i < r->n_again; i++) {
		struct json *o = json_object();

		json_set_text(o, "about", r->again[i].about);
		json_set_text(o, "was", r->again[i].was);
		json_set_text(o, "is", r->again[i].is);
		json_set_number(o, "est_was", r->again[i].est);
		json_set_number(o, "est_is", r->again[i].est_is);
		json_set_bool(o, "differs", campaign_again_differs(&r->again[i]));
		json_add(a, o);
	}
	return a;
}

static void print_json(int64_t id, const struct campaign_reparse *r)
{
	_cleanup_(json_freep) struct json *o = json_object();
	_cleanup_free_ char *text = NULL;

	json_set_i64(o, "campaign", id);
	json_set_i64(o, "parser_rev", PARSER_REV);
	json_set_i64(o, "attempts", (int64_t)r->attempts);
	json_set(o, "kept", texts(&r->kept));
	json_set(o, "changes", changes_json(r));
	json_set(o, "trials", texts(&r->states));
	json_set(o, "conclusions", conclusions_json(r));
	text = json_print(o, true);
	printf("%s\n", text);
}

static int reread(struct workspace *w, const struct args *a, int *status, struct err *e)
{
	struct campaign_reparse r = {0};
	int64_t id = 0;
	int rc = drive_find(w, a->campaign, &id, e);

	if (rc == 0)
		rc = campaign_reread(w, id, &r, e);
	for (size_t i = 0; rc == 0 && i < r.n_again; i++)
		if (campaign_again_differs(&r.again[i]))
			*status = EXIT_DIFFERS;
	if (rc == 0 && a->look.json)
		print_json(id, &r);
	else if (rc == 0)
		print_text(id, &r);
	campaign_reparse_done(&r);
	return rc;
}

static int run(int argc, char **argv)
{
	static const struct argp_child children[] = {{&look_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "[CAMPAIGN]",
		.doc = "Read the raw files of a campaign again with the parsers of this program, and put "
		       "what they give in place of the stored values (campaign: number or name; "
		       "default: the newest).\v"
		       "For after a parser was mended. It says which values changed; attempts whose "
		       "files are gone or were changed are named and keep theirs. Verdicts that were "
		       "given stay as they are: when one would be another now, it is said, and the exit "
		       "status is 1.",
		.children = children};
	struct args a = {0};
	struct workspace *w = NULL;
	struct err e = {0};
	int status = 0;

	cmd_parse(&argp, argc, argv, &a);
	if (workspace_open(workspace_default(a.look.workspace), DB_WRITE, &clock_system, &w, &e) <
		    0 ||
	    reread(w, &a, &status, &e) < 0)
		status = cmd_fail(&cmd_reparse, &e);
	workspace_close(w);
	return status;
}

const struct cmd cmd_reparse = {.name = "reparse",
				.summary = "read the raw files again after a parser changed",
				.run = run};
