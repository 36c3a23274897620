/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/gc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "experiments/query.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

enum { DEPTH_MAX = 64, DAY_S = 86400 };

struct gc {
	struct workspace *w;
	struct gc_items *out;
	struct strv known; /* directories of attempts, sorted */
	struct strv over;  /* those of them whose campaign runs no more, sorted */
	bool quiet;        /* no campaign runs */
	int64_t now_s, old_s;
};

void gc_items_free(struct gc_items *items)
{
	for (size_t i = 0; i < items->n; i++)
		free(items->v[i].path);
	free(items->v);
	*items = (struct gc_items){0};
}

/* -- the disk ---------------------------------------------------------------------------------- */

/* Calls visit for each entry of a directory of the workspace; an absent one has none. */
static void each_entry(struct gc *g, const char *rel,
		       void (*visit)(struct gc *g, const char *rel, const char *name))
{
	_cleanup_free_ char *path = fs_join(g->w->root, rel);
	DIR *d = opendir(path);

	for (struct dirent *f = d ? readdir(d) : NULL; f; f = readdir(d)) {
		_cleanup_free_ char *name = *rel ? fs_join(rel, f->d_name) : xstrdup(f->d_name);

		if (!str_eq(f->d_name, ".") && !str_eq(f->d_name, ".."))
			visit(g, name, f->d_name);
	}
	if (d)
		closedir(d);
}

static int64_t tree_bytes(const char *path, int depth)
{
	struct stat st;
	int64_t sum;
	DIR *d;

	if (lstat(path, &st) != 0)
		return 0;
	sum = st.st_size;
	if (!S_ISDIR(st.st_mode) || depth > DEPTH_MAX || !(d = opendir(path)))
		return sum;
	for (struct dirent *f = readdir(d); f; f = readdir(d)) {
		_cleanup_free_ char *name = fs_join(path, f->d_name);

		if (!str_eq(f->d_name, ".") && !str_eq(f->d_name, ".."))
			sum += tree_bytes(name, depth + 1);
	}
	closedir(d);
	return sum;
}

/* Seconds since it was changed; -1: it is not there. */
static int64_t age_s(struct gc *g, const char *rel)
{
	_cleanup_free_ char *path = fs_join(g->w->root, rel);
	struct stat st;

	return lstat(path, &st) == 0 ? g->now_s - (int64_t)st.st_mtime : -1;
}

static void add(struct gc *g, const char *rel, const char *why, bool stays)
{
	_cleanup_free_ char *path = fs_join(g->w->root, rel);
	struct gc_items *o = g->out;

	o->v = xgrow(o->v, o->n, &o->cap, sizeof *o->v);
	o->v[o->n] = (struct gc_item){
		.path = xstrdup(rel), .why = why, .bytes = tree_bytes(path, 0), .stays = stays};
	o->bytes += stays ? 0 : o->v[o->n].bytes;
	o->n++;
}

/* -- what goes --------------------------------------------------------------------------------- */

/* ".NAME.tmp.PID" of fs_write_atomic(), "NAME.tmp.PID" of a copy of the database. */
static bool is_tmp(const char *name)
{
	const char *at = strstr(name, ".tmp.");

	return at && at[5] && at[5 + strspn(at + 5, "0123456789")] == '\0';
}

static void visit_tmp(struct gc *g, const char *rel, const char *name)
{
	if (is_tmp(name) && age_s(g, rel) > DAY_S)
		add(g, rel, "left by a process that was killed while it wrote", false);
}

static void visit_archive(struct gc *g, const char *rel, const char *name)
{
	_cleanup_free_ char *path = fs_join(g->w->root, rel), *manifest = NULL;

	if (str_starts(name, "campaign-") && str_ends(name, ".tar.gz")) {
		manifest = xasprintf("%.*s.json", (int)(strlen(path) - strlen(".tar.gz")), path);
		if (!fs_exists(manifest))
			add(g, rel, "a tar file without its manifest: is all of it in blocks/?",
			    true);
	}
	if ((str_starts(name, ".campaign-") || is_tmp(name)) && age_s(g, rel) > DAY_S)
		add(g, rel, "left by a `fettle archive` that was killed", false);
}

static void visit_root(struct gc *g, const char *rel, const char *name)
{
	visit_tmp(g, rel, name);
	if (str_starts(name, "fettle.db.before-") && !is_tmp(name) && age_s(g, rel) > g->old_s)
		add(g, rel, "the database from before an upgrade", false);
}

/* Jobs that wait in the queue start the agent from there. */
static void visit_agent(struct gc *g, const char *rel, const char *name)
{
	(void)name;
	if (g->quiet && age_s(g, rel) > DAY_S)
		add(g, rel, "a copy of the agent for jobs: no campaign runs", false);
}

static bool is_trial(const char *name)
{
	return name[0] == 't' && isdigit((unsigned char)name[1]) &&
	       name[1 + strspn(name + 1, "0123456789")] == '\0';
}

/* The agent removes them when a trial ends; they stay when it was killed. */
static void visit_trial(struct gc *g, const char *rel, const char *name)
{
	static const char *const scratch[] = {"ckpt", "tmp", "cache"};

	for (size_t i = 0; is_trial(name) && i < ARRAY_LEN(scratch); i++) {
		_cleanup_free_ char *dir = fs_join(rel, scratch[i]);

		if (age_s(g, dir) >= 0)
			add(g, dir, "scratch of a trial that was not taken away", false);
	}
	visit_tmp(g, rel, name);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool among(const struct strv *sorted, const char *name)
{
	return sorted->n && bsearch(&name, sorted->v, sorted->n, sizeof *sorted->v, by_name);
}

static void visit_block(struct gc *g, const char *rel, const char *name)
{
	_cleanup_free_ char *path = fs_join(g->w->root, rel);
	struct stat st;

	/* A kept part of an attempt is a link to that attempt's directory. */
	if (name[0] == '.' || lstat(path, &st) != 0 || S_ISLNK(st.st_mode))
		return;
	if (!among(&g->known, rel))
		add(g, rel, "of no attempt in the database (of an older one, or moved here?)",
		    true);
	else if (among(&g->over, rel))
		each_entry(g, rel, visit_trial);
}

/* -- what the database knows ------------------------------------------------------------------- */

static void append(struct strv *to, const struct strv *from)
{
	for (size_t i = 0; i < from->n; i++)
		strv_add(to, from->v[i]);
}

static int read_campaigns(struct gc *g, struct err *e)
{
	struct campaign_row *v = NULL;
	size_t n = 0;
	int rc = query_campaign_list(g->w->db, NULL, &v, &n, e);

	g->quiet = true;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct strv dirs = {0};
		bool open = false;

		rc = query_attempt_dirs(g->w->db, v[i].id, &dirs, &open, e);
		append(&g->known, &dirs);
		if (v[i].state == CAMPAIGN_RUNNING || open)
			g->quiet = false;
		else
			append(&g->over, &dirs);
		strv_free(&dirs);
	}
	campaign_rows_free(v, n);
	if (g->known.n)
		qsort(g->known.v, g->known.n, sizeof *g->known.v, by_name);
	if (g->over.n)
		qsort(g->over.v, g->over.n, sizeof *g->over.v, by_name);
	return rc;
}

static int by_path(const void *a, const void *b)
{
	const struct gc_item *x = a, *y = b;

	return strcmp(x->path, y->path);
}

int gc_find(struct workspace *w, int days, struct gc_items *out, struct err *e)
{
	struct gc g = {.w = w,
		       .out = out,
		       .now_s = clock_utc_us(w->clock) / 1000000,
		       .old_s = (int64_t)days * DAY_S};
	int rc;

	*out = (struct gc_items){0};
	if ((rc = read_campaigns(&g, e)) == 0) {
		each_entry(&g, "", visit_root);
		each_entry(&g, "reports", visit_tmp);
		each_entry(&g, "archive", visit_archive);
		each_entry(&g, "agent", visit_agent);
		each_entry(&g, "blocks", visit_block);
		if (out->n)
			qsort(out->v, out->n, sizeof *out->v, by_path);
	}
	strv_free(&g.known);
	strv_free(&g.over);
	return rc;
}

int gc_remove(struct workspace *w, const struct gc_items *items, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < items->n; i++) {
		_cleanup_free_ char *path = fs_join(w->root, items->v[i].path);

		if (!items->v[i].stays)
			rc = fs_remove_tree(path, e);
	}
	return rc;
}
