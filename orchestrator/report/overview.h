/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The index over many tuning logs: a line a campaign, of one or several workspaces, with what was
 * validated; and per workspace its series over nights. One page without requests, that sorts and
 * searches by a script of its own, the only one that its policy lets run; without scripts it is a
 * sorted table. It holds nothing that changes while the campaigns do not: no time of its making.
 */
#ifndef FETTLE_REPORT_OVERVIEW_H
#define FETTLE_REPORT_OVERVIEW_H

#include "orchestrator/report/report.h"

struct json;

struct overview_workspace {
	char *name, *path;  /* shown; absolute */
	char *url;          /* of its directory from the index; NULL: no way leads there */
	char *folder;       /* of its pages, beside the index */
	size_t campaigns;   /* that it has */
	size_t series;      /* 0: it has no page of nights */
	size_t regressions; /* confirmed ones that are open */
};

/* What came out of a campaign. */
enum overview_result {
	OVERVIEW_UNKNOWN, /* there is no report: see `problem` */
	OVERVIEW_OPEN,    /* nothing yet; count: hypotheses with a verdict */
	OVERVIEW_DEFAULT, /* nothing was accepted; likewise */
	OVERVIEW_FIX,     /* outcome: its state */
	OVERVIEW_TEST,    /* no final stage was asked for; outcome: the verdict */
	OVERVIEW_LADDER,  /* count of `of` rungs held */
	OVERVIEW_CANARY,  /* count: nights */
};
const char *overview_result_name(enum overview_result r); /* "fix"; static */

/* A campaign in a line. Texts NULL and numbers NaN: not known, or it has none. */
struct overview_campaign {
	size_t workspace; /* index */
	int64_t id, created_us;
	char *name, *question, *workload, *reason, *scheduler;
	enum campaign_state state;
	enum run_mode mode;
	char *bottleneck, *problem; /* problem: why there is no tuning log */
	enum overview_result result;
	char *outcome, *changes; /* of OVERVIEW_FIX, OVERVIEW_TEST: what became of these changes */
	size_t count, of;
	int judge;                 /* of the outcome: +1 better, -1 worse, 0 neither */
	double est, lo, hi, noise; /* relative; + is better */
	int64_t runs;              /* timed */
	double node_hours, gpu_hours;
};

struct overview {
	struct overview_workspace *workspaces;
	size_t n_workspaces, cap_workspaces;
	struct overview_campaign *campaigns;
	size_t n_campaigns, cap_campaigns;
};
void overview_done(struct overview *s);

/* Another workspace; takes the texts of w. Returns its index. */
size_t overview_add_workspace(struct overview *s, const struct overview_workspace *w);
/* A campaign of the workspace that was added last; of one whose report cannot be loaded, why. */
void overview_add(struct overview *s, const struct report *r);
void overview_add_problem(struct overview *s, const struct campaign_row *c, const char *problem);
/* Newest first, as a reader without scripts sees them. */
void overview_sort(struct overview *s);

/* Name of the page of a campaign below the index, "team/campaign-7.html"; heap. */
char *overview_path(const struct overview *s, const struct overview_campaign *c,
		    const char *extension);
/* "team/nights.html"; heap. */
char *overview_nights_path(const struct overview_workspace *w);

/* overview_html.c: the page index.html; the script that it holds is named by its hash in its
 * policy. */
void overview_page(const struct overview *s, struct buf *out);
/* overview_json.c: the same for programs, fettle.index/1 (REPORT.md). */
struct json *overview_json(const struct overview *s);

#endif
