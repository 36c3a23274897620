/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/outlets.h"

#include <stdlib.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/webhook.h"
#include "orchestrator/report/outlet.h"

enum { OPT_METRICS = 768, OPT_WEBHOOK_FILE, OPT_WEBHOOK_ENV };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct outlets *o = state->input;

	switch (key) {
	case OPT_METRICS:
		o->metrics = arg;
		return 0;
	case OPT_WEBHOOK_FILE:
		o->webhook_file = arg;
		return 0;
	case OPT_WEBHOOK_ENV:
		o->webhook_env = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->webhook_file && o->webhook_env)
			argp_error(state,
				   "one of --webhook-url-file and --webhook-url-env, not both");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{"metrics", OPT_METRICS, "FILE", 0,
	 "write series and regressions there, for node_exporter's textfile collector (NAME.prom)",
	 0},
	{"webhook-url-file", OPT_WEBHOOK_FILE, "FILE", 0,
	 "post each confirmed regression, once, to the Slack-compatible webhook whose URL is in "
	 "this file (mode 600)",
	 0},
	{"webhook-url-env", OPT_WEBHOOK_ENV, "NAME", 0,
	 "the same, with the URL in this variable of the environment", 0},
	{0}};
const struct argp outlets_argp = {.options = options, .parser = parse};

bool outlets_any(const struct outlets *o)
{
	return o->metrics || outlets_write(o);
}

bool outlets_write(const struct outlets *o)
{
	return o->webhook_file || o->webhook_env;
}

static struct outlet_view view_of(const struct workspace *w)
{
	return (struct outlet_view){.workspace = w->root, .now_us = clock_utc_us(w->clock)};
}

int outlets_text(struct workspace *w, const struct outlet *format, const char *to, const char *lang,
		 struct buf *out, struct err *e)
{
	struct outlet_view v = view_of(w);
	int rc = outlet_load(w->db, &v, e);

	if (rc < 0)
		return rc;
	v.to = to;
	if (format->for_people)
		lang_begin(lang);
	format->write(&v, out);
	lang_end();
	outlet_view_done(&v);
	return 0;
}

/* Others read it: the collector runs as another user. */
static int write_file(const struct outlet_view *v, const char *path, struct err *e)
{
	struct buf text = {0};
	int rc;

	outlet_find("metrics")->write(v, &text);
	rc = fs_write_named(path, text.data, text.len, 0644, e);
	buf_free(&text);
	return rc;
}

/* Only told_us changes: what else became of it meanwhile stays. */
static int mark(struct workspace *w, const struct outlet_view *v, struct err *e)
{
	int rc = db_begin(w->db, "regressions that were told", e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; rc == 0 && i < v->n_regressions; i++) {
		struct regression_row r = {0};

		if (!outlet_is_told(v, &v->regressions[i].row))
			continue;
		if ((rc = history_regression_get(w->db, v->regressions[i].row.id, &r, e)) == 0) {
			r.told_us = v->now_us;
			rc = history_regression_update(w->db, &r, e);
		}
		regression_row_done(&r);
	}
	if (rc == 0)
		return db_commit(w->db, e);
	db_rollback(w->db);
	return rc;
}

/* The place of the URL is looked at also when there is nothing to send: a fault of it is then known
 * before the night on which it matters. */
static int send_news(struct workspace *w, const struct outlets *o, struct outlet_view *v,
		     struct err *e)
{
	_cleanup_free_ char *url = NULL;
	struct buf text = {0};
	int rc = o->webhook_file ? webhook_read_file(o->webhook_file, &url, e)
				 : webhook_read_env(o->webhook_env, &url, e);

	v->news = true;
	if (rc < 0 || outlet_count_told(v) == 0)
		return rc;
	outlet_find("slack")->write(v, &text);
	if ((rc = webhook_post(url, text.data, e)) == 0)
		rc = mark(w, v, e);
	buf_free(&text);
	return rc;
}

int outlets_deliver(struct workspace *w, const struct outlets *o, const struct outlet_night *night,
		    struct err *e)
{
	struct outlet_view v = view_of(w);
	struct err second = {0};
	int rc = 0, sent = 0;

	if (!outlets_any(o))
		return 0;
	v.night = night;
	if ((rc = outlet_load(w->db, &v, e)) < 0)
		return rc;
	if (o->metrics)
		rc = write_file(&v, o->metrics, e);
	if (outlets_write(o))
		sent = send_news(w, o, &v, rc < 0 ? &second : e);
	outlet_view_done(&v);
	return rc < 0 ? rc : sent;
}
