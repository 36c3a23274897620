/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/method/pack.h"
#include "orchestrator/report/report.h"

extern const struct cmd cmd_archive;

enum { OPT_ALL = 512, OPT_KEEP, OPT_RESTORE, OPT_VERIFY };

struct args {
	struct drive_options look;
	struct strv campaigns;
	const char *dir;
	bool all, keep, dry_run, restore, verify;
};

static void check(const struct args *a, struct argp_state *state)
{
	if (a->restore + a->verify + a->keep > 1)
		argp_error(state, "--restore, --verify and --keep are not for one call");
	if (a->all && a->campaigns.n)
		argp_error(state, "--all, or campaigns by number and name");
	if (a->restore && !a->all && !a->campaigns.n)
		argp_error(state, "which campaign is to be brought back?");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->look;
		return 0;
	case OPT_ALL:
		a->all = true;
		return 0;
	case OPT_KEEP:
		a->keep = true;
		return 0;
	case OPT_RESTORE:
		a->restore = true;
		return 0;
	case OPT_VERIFY:
		a->verify = true;
		return 0;
	case 'n':
		a->dry_run = true;
		return 0;
	case 'd':
		a->dir = arg;
		return 0;
	case ARGP_KEY_ARG:
		strv_add(&a->campaigns, arg);
		return 0;
	case ARGP_KEY_END:
		check(a, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* -- one campaign ------------------------------------------------------------------------------ */

/* Stored reports say where the raw files lie. */
static int write_reports(struct workspace *w, int64_t id, struct err *e)
{
	struct recipe *recipe = NULL;
	struct report *report = NULL;
	int rc = drive_report(w, id, &recipe, &report, e);

	if (rc == 0)
		rc = drive_write_reports(w, report, id, NULL, e);
	report_free(report);
	recipe_free(recipe);
	return rc;
}

static void print_text(int64_t id, const struct args *a, const struct pack_done *d)
{
	const char *what = a->dry_run ? "would be packed" : a->restore ? "brought back" : "packed";

	printf("campaign %lld: %zu directories with %zu files, %lld bytes, %s", (long long)id,
	       d->dirs, d->files, (long long)d->bytes, d->dirs ? what : "to be packed");
	if (d->tar)
		printf(" into %s, %lld bytes", d->tar, (long long)d->tar_bytes);
	if (!a->restore && !a->dry_run && !a->keep)
		printf("; %zu directories removed", d->removed);
	printf("\n");
	for (size_t i = 0; i < d->said.n; i++)
		printf("  %s\n", d->said.v[i]);
}

static void add_json(struct json *list, int64_t id, const struct pack_done *d)
{
	struct json *o = json_object(), *said = json_array();

	json_set_i64(o, "campaign", id);
	json_set_i64(o, "dirs", (int64_t)d->dirs);
	json_set_i64(o, "files", (int64_t)d->files);
	json_set_i64(o, "bytes", d->bytes);
	json_set_text(o, "tar", d->tar);
	json_set_i64(o, "tar_bytes", d->tar_bytes);
	json_set_i64(o, "removed", (int64_t)d->removed);
	for (size_t i = 0; i < d->said.n; i++)
		json_add_text(said, d->said.v[i]);
	json_set(o, "said", said);
	json_add(list, o);
}

static int one(struct workspace *w, int64_t id, const struct args *a, struct json *list,
	       struct err *e)
{
	const struct pack_options o = {.dir = a->dir, .keep = a->keep, .dry_run = a->dry_run};
	struct pack_done d = {0};
	int rc = a->restore ? pack_restore(w, id, &d, e) : pack_campaign(w, id, &o, &d, e);

	if (rc == 0 && !a->dry_run && (d.dirs || d.removed))
		rc = write_reports(w, id, e);
	if (rc == 0 && a->look.json)
		add_json(list, id, &d);
	else if (rc == 0)
		print_text(id, a, &d);
	pack_done_free(&d);
	return rc;
}

/* -- several ----------------------------------------------------------------------------------- */

static int verify(struct workspace *w, struct json *list, bool json, struct err *e)
{
	struct archives v = {0};
	int rc = archives_load(w->root, 0, &v, e), bad = 0;

	for (size_t i = 0; rc == 0 && i < v.n; i++) {
		struct err why = {0};
		bool fine = pack_verify(w->root, &v.v[i], &why) == 0;
		struct json *o = json_object();

		json_set_i64(o, "campaign", v.v[i].campaign);
		json_set_text(o, "tar", v.v[i].tar);
		json_set_bool(o, "whole", fine);
		json_set_text(o, "reason", fine ? NULL : why.text);
		json_add(list, o);
		if (!json)
			printf("campaign %lld: %s: %s\n", (long long)v.v[i].campaign, v.v[i].tar,
			       fine ? "whole" : why.text);
		if (!fine && bad++ == 0)
			*e = why;
	}
	archives_free(&v);
	return rc < 0 ? rc : bad ? -(int)e->code : 0;
}

static bool is_over(const struct campaign_row *c)
{
	return c->state == CAMPAIGN_DONE || c->state == CAMPAIGN_FAILED;
}

static bool has_archive(const struct workspace *w, int64_t id)
{
	struct archives v = {0};
	bool has = archives_load(w->root, id, &v, NULL) == 0 && v.n > 0;

	archives_free(&v);
	return has;
}

static int every(struct workspace *w, const struct args *a, struct json *list, struct err *e)
{
	struct campaign_row *v = NULL;
	size_t n = 0;
	int rc = query_campaign_list(w->db, NULL, &v, &n, e);

	for (size_t i = n; rc == 0 && i-- > 0;)
		if (is_over(&v[i]) && (!a->restore || has_archive(w, v[i].id)))
			rc = one(w, v[i].id, a, list, e);
	campaign_rows_free(v, n);
	return rc;
}

static int named(struct workspace *w, const struct args *a, struct json *list, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < a->campaigns.n; i++) {
		int64_t id;

		if ((rc = drive_find(w, a->campaigns.v[i], &id, e)) == 0)
			rc = one(w, id, a, list, e);
	}
	return rc;
}

static int go(struct workspace *w, struct args *a, struct err *e)
{
	_cleanup_(json_freep) struct json *list = json_array();
	_cleanup_free_ char *text = NULL;
	int rc;

	/* Without a campaign it only says what there would be to do. */
	if (!a->all && !a->campaigns.n && !a->verify)
		a->all = a->dry_run = true;
	rc = a->verify ? verify(w, list, a->look.json, e)
	     : a->all  ? every(w, a, list, e)
		       : named(w, a, list, e);
	if (a->look.json) {
		text = json_print(list, true);
		printf("%s\n", text);
	}
	return rc;
}

static int absolute_dir(struct args *a, char **own, struct err *e)
{
	int rc = a->dir ? fs_mkdirs(a->dir, 0700, e) : 0;

	if (rc < 0 || !a->dir)
		return rc;
	if (!(*own = fs_absolute(a->dir, e)))
		return -(int)e->code;
	a->dir = *own;
	return 0;
}

static int run(int argc, char **argv)
{
	static const struct argp_option opts[] = {
		{"all", OPT_ALL, NULL, 0, "every campaign that is over", 0},
		{"dir", 'd', "DIR", 0, "where tar files go (archive/ of the workspace)", 0},
		{"dry-run", 'n', NULL, 0, "only say what would be packed", 0},
		{"keep", OPT_KEEP, NULL, 0, "pack, and remove nothing", 0},
		{"restore", OPT_RESTORE, NULL, 0, "bring the raw files back", 0},
		{"verify", OPT_VERIFY, NULL, 0, "are all tar files there, as they were written?",
		 0},
		{0}};
	static const struct argp_child children[] = {{&look_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "[CAMPAIGN...]",
		.doc = "Pack the raw files of campaigns that are over into tar files, before a scratch "
		       "file system is purged.\v"
		       "What was packed is read again and compared, file by file, before anything is "
		       "removed; killed at any moment, the same command goes on. Reports say from then "
		       "on where the files lie. Without a campaign, --all or --verify it says what "
		       "there is to pack.",
		.children = children};
	struct args a = {0};
	_cleanup_free_ char *own = NULL;
	struct workspace *w = NULL;
	struct err e = {0};
	int status = 0;

	cmd_parse(&argp, argc, argv, &a);
	if (workspace_open(workspace_default(a.look.workspace), DB_WRITE, &clock_system, &w, &e) <
		    0 ||
	    absolute_dir(&a, &own, &e) < 0 || go(w, &a, &e) < 0)
		status = cmd_fail(&cmd_archive, &e);
	workspace_close(w);
	strv_free(&a.campaigns);
	return status;
}

const struct cmd cmd_archive = {
	.name = "archive",
	.summary = "raw files of finished campaigns packed, or brought back",
	.run = run};
