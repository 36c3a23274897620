/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/report_all.h"

#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/history_page.h"
#include "orchestrator/cmd/publish.h"
#include "orchestrator/report/overview.h"
#include "orchestrator/report/text.h"

struct work {
	const struct report_all *a;
	char *dir; /* absolute */
	struct publish *out;
	struct overview site;
	size_t problems;
	struct err first; /* of them */
};

/* -- pages ------------------------------------------------------------------------------------ */

static int put_formats(struct work *k, const struct report *r, struct err *e)
{
	const struct overview_campaign *c = &k->site.campaigns[k->site.n_campaigns - 1];
	int rc = 0;

	for (const struct report_format *const *f = report_format_table; rc == 0 && *f; f++) {
		_cleanup_free_ char *name = overview_path(&k->site, c, (*f)->extension);
		struct buf b = {0};

		if ((rc = drive_format(*f, r, k->a->lang, &b, e)) == 0)
			rc = publish_put(k->out, name, &b, e);
		buf_free(&b);
	}
	return rc;
}

/* What an earlier refresh could still read is better than nothing. */
static void keep_formats(struct work *k, const struct campaign_row *row, const struct err *why)
{
	const struct overview_campaign *c;

	overview_add_problem(&k->site, row, why->text);
	c = &k->site.campaigns[k->site.n_campaigns - 1];
	for (const struct report_format *const *f = report_format_table; *f; f++) {
		_cleanup_free_ char *name = overview_path(&k->site, c, (*f)->extension);

		publish_keep(k->out, name);
	}
	if (k->problems++ == 0)
		err_set(&k->first, why->code, "campaign %lld (%s): %s", (long long)row->id,
			row->name, why->text);
}

static int put_campaign(struct work *k, struct workspace *w, const struct campaign_row *row,
			struct err *e)
{
	_cleanup_free_ char *place = fs_join(k->dir,
					     k->site.workspaces[k->site.n_workspaces - 1].folder);
	struct recipe *recipe = NULL;
	struct report *r = NULL;
	struct err why = {0};
	int rc;

	if (drive_report(w, row->id, &recipe, &r, &why) < 0) {
		keep_formats(k, row, &why);
		return 0;
	}
	report_lies_in(r, place);
	r->home = xstrdup("../index.html");
	overview_add(&k->site, r);
	rc = put_formats(k, r, e);
	report_free(r);
	recipe_free(recipe);
	return rc;
}

static int put_campaigns(struct work *k, struct workspace *w, struct err *e)
{
	struct campaign_row *rows = NULL;
	size_t n = 0;
	int rc = query_campaign_list(w->db, NULL, &rows, &n, e);

	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = put_campaign(k, w, &rows[i], e);
	campaign_rows_free(rows, n);
	return rc;
}

static int put_nights(struct work *k, struct workspace *w, struct err *e)
{
	struct overview_workspace *at = &k->site.workspaces[k->site.n_workspaces - 1];
	_cleanup_free_ char *name = overview_nights_path(at);
	struct nights *n = NULL;
	struct nights_glance *g = NULL;
	struct buf b = {0};
	int rc = nights_open(w->db, &n, e);

	if (rc == 0)
		rc = nights_glances(n, NULL, true, &g, &at->series, e);
	if (rc == 0 && at->series &&
	    (rc = history_page(w, n, g, at->series, NULL, k->a->lang, &b, &at->regressions, e)) ==
		    0)
		rc = publish_put(k->out, name, &b, e);
	buf_free(&b);
	nights_glances_free(g, at->series);
	nights_close(n);
	return rc;
}

/* -- workspaces ------------------------------------------------------------------------------- */

static bool is_taken(const struct overview *s, const char *folder)
{
	for (size_t i = 0; i < s->n_workspaces; i++)
		if (str_eq(s->workspaces[i].folder, folder))
			return true;
	return false;
}

/* The workspace's own name, with a number where several have the same. */
static char *folder_of(const struct overview *s, const char *root)
{
	char *base = publish_name(fs_basename(root)), *folder = xstrdup(base);

	for (size_t i = 2; is_taken(s, folder); i++) {
		free(folder);
		folder = xasprintf("%s-%zu", base, i);
	}
	free(base);
	return folder;
}

static char *url_of(const struct work *k, const char *root)
{
	_cleanup_free_ char *to = fs_absolute(root, NULL),
			    *way = to ? fs_relative(k->dir, to) : NULL;
	struct buf b = {0};

	if (!way)
		return NULL;
	text_url(&b, way);
	buf_char(&b, '/');
	return buf_take(&b);
}

static int put_workspace(struct work *k, const char *dir, struct err *e)
{
	struct workspace *w = NULL;
	int rc = workspace_open(dir, DB_READ, &clock_system, &w, e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < k->site.n_workspaces; i++)
		if (str_eq(k->site.workspaces[i].path, w->root))
			rc = err_set(e, ERR_USAGE, "%s is given twice", dir);
	if (rc == 0) {
		overview_add_workspace(&k->site, &(struct overview_workspace){
							 .name = xstrdup(fs_basename(w->root)),
							 .path = xstrdup(w->root),
							 .url = url_of(k, w->root),
							 .folder = folder_of(&k->site, w->root)});
		rc = put_campaigns(k, w, e);
	}
	if (rc == 0)
		rc = put_nights(k, w, e);
	workspace_close(w);
	return rc;
}

/* -- the index -------------------------------------------------------------------------------- */

static int put_index(struct work *k, struct err *e)
{
	_cleanup_(json_freep) struct json *j = NULL;
	_cleanup_free_ char *list = NULL;
	struct buf page = {0}, text = {0};
	int rc;

	overview_sort(&k->site);
	j = overview_json(&k->site);
	list = json_print(j, true);
	buf_printf(&text, "%s\n", list);
	lang_begin(k->a->lang);
	overview_page(&k->site, &page);
	lang_end();
	if ((rc = publish_put(k->out, "index.json", &text, e)) == 0)
		rc = publish_put(k->out, "index.html", &page, e); /* last: it leads to the others */
	buf_free(&text);
	buf_free(&page);
	return rc;
}

static int make(struct work *k, struct err *e)
{
	size_t written = 0, removed = 0;
	int rc = publish_begin(k->a->dir, &k->out, e);

	if (rc == 0 && !(k->dir = fs_absolute(k->a->dir, e)))
		rc = e ? -(int)e->code : -ERR_IO;
	for (size_t i = 0; rc == 0 && i < k->a->n; i++)
		rc = put_workspace(k, k->a->workspaces[i], e);
	if (rc == 0 && (rc = put_index(k, e)) == 0)
		rc = publish_commit(k->out, &written, &removed, e);
	if (rc < 0)
		return rc;
	printf("%s/index.html: %zu campaign%s of %zu workspace%s; %zu file%s written, %zu removed\n",
	       k->dir, k->site.n_campaigns, k->site.n_campaigns == 1 ? "" : "s",
	       k->site.n_workspaces, k->site.n_workspaces == 1 ? "" : "s", written,
	       written == 1 ? "" : "s", removed);
	if (k->problems)
		rc = err_set(e, k->first.code,
			     "the index is there, but %zu campaign%s no tuning log of now; %s",
			     k->problems, k->problems == 1 ? " has" : "s have", k->first.text);
	return rc;
}

int report_all(const struct report_all *a, struct err *e)
{
	struct work k = {.a = a};
	int rc = make(&k, e);

	publish_end(k.out);
	overview_done(&k.site);
	free(k.dir);
	return rc;
}
