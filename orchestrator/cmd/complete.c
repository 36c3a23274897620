/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/complete.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/report/nights.h"
#include "orchestrator/report/outlet.h"
#include "orchestrator/report/regressions.h"
#include "orchestrator/report/recommend.h"
#include "orchestrator/report/text.h"
#include "probes/probe.h"

struct ask {
	const struct argp *argp;
	int argc;
	char **argv;
	const char *typed;  /* the unfinished word, or what stands behind its '=' */
	const char *before; /* "--option=" where the shell does not take that apart; "" */
	struct buf *out;
};

void complete_offer(struct buf *out, const char *typed, const char *word, const char *about)
{
	if (!str_starts(word, typed))
		return;
	buf_str(out, word);
	if (about && *about) {
		buf_char(out, '\t');
		text_line(out, about);
	}
	buf_char(out, '\n');
}

static void offer(const struct ask *q, const char *word, const char *about)
{
	_cleanup_free_ char *whole = *q->before ? xasprintf("%s%s", q->before, word) : NULL;

	if (str_starts(word, q->typed))
		complete_offer(q->out, "", whole ? whole : word, about);
}

/* --- options -------------------------------------------------------------------------------------
 */

typedef bool (*option_f)(const struct ask *q, const struct argp_option *o, const void *wanted);

/* The first option, of the command or what it shares with others, for which f says so. */
static const struct argp_option *each_option(const struct ask *q, const struct argp *a, option_f f,
					     const void *wanted)
{
	const struct argp_option *found = NULL;

	for (const struct argp_option *o = a->options; o && (o->name || o->key); o++)
		if (f(q, o, wanted))
			return o;
	for (const struct argp_child *c = a->children; c && c->argp && !found; c++)
		found = each_option(q, c->argp, f, wanted);
	return found;
}

static bool offer_option(const struct ask *q, const struct argp_option *o, const void *wanted)
{
	_cleanup_free_ char *word = o->name ? xasprintf("--%s", o->name) : NULL;

	(void)wanted;
	if (word && !(o->flags & OPTION_HIDDEN))
		offer(q, word, o->doc);
	return false;
}

static bool is_long(const struct ask *q, const struct argp_option *o, const void *wanted)
{
	(void)q;
	return str_eq(o->name, wanted);
}

static bool is_short(const struct ask *q, const struct argp_option *o, const void *wanted)
{
	(void)q;
	return o->key == *(const char *)wanted;
}

/* The option that the word is, if its value is the next word; NULL otherwise. */
static const struct argp_option *wants_value(const struct ask *q, const char *word)
{
	const struct argp_option *o;

	if (str_starts(word, "--"))
		o = each_option(q, q->argp, is_long, word + 2);
	else
		o = word[0] == '-' && word[1]
			    ? each_option(q, q->argp, is_short, word + strlen(word) - 1)
			    : NULL;
	return o && o->arg && !(o->flags & OPTION_ARG_OPTIONAL) ? o : NULL;
}

/* --- what there is of a kind ---------------------------------------------------------------------
 */

static const char *workspace_of(const struct ask *q)
{
	const char *given = NULL;

	for (int i = 1; i < q->argc - 1; i++) {
		if (str_eq(q->argv[i], "-w") || str_eq(q->argv[i], "--workspace"))
			given = q->argv[i + 1];
		else if (str_starts(q->argv[i], "--workspace="))
			given = q->argv[i] + strlen("--workspace=");
	}
	return workspace_default(given);
}

/* NULL where there is none: then nothing is offered, and nothing is said. */
static struct workspace *look(const struct ask *q)
{
	struct workspace *w = NULL;

	return workspace_open(workspace_of(q), DB_READ, &clock_system, &w, NULL) < 0 ? NULL : w;
}

static void offer_campaigns(const struct ask *q)
{
	struct workspace *w = look(q);
	struct campaign_row *v = NULL;
	size_t n = 0;

	if (w && query_campaign_list(w->db, NULL, &v, &n, NULL) < 0)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *id = xasprintf("%lld", (long long)v[i].id);
		_cleanup_free_ char *about = xasprintf("%s, %s", v[i].name,
						       campaign_state_name(v[i].state));
		bool newest = true;

		for (size_t k = 0; k < i; k++)
			newest = newest && !str_eq(v[k].name, v[i].name);
		offer(q, id, about);
		if (newest)
			offer(q, v[i].name, "the newest of this name");
	}
	campaign_rows_free(v, n);
	workspace_close(w);
}

static void offer_series(const struct ask *q)
{
	struct workspace *w = look(q);
	struct series_row *v = NULL;
	size_t n = 0;

	if (w && history_series_list(w->db, 0, &v, &n, NULL) < 0)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *id = xasprintf("%lld", (long long)v[i].id);
		_cleanup_free_ char *about = xasprintf("%s of %s", v[i].metric, v[i].workload);

		offer(q, id, about);
	}
	series_rows_free(v, n);
	workspace_close(w);
}

static void offer_regressions(const struct ask *q)
{
	struct workspace *w = look(q);
	struct regression_row *v = NULL;
	size_t n = 0;

	if (w && history_regressions(w->db, true, &v, &n, NULL) < 0)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *id = xasprintf("%lld", (long long)v[i].id);
		_cleanup_free_ char *about = xasprintf("%s, %s", regression_word(&v[i]),
						       regression_state_name(v[i].state));

		offer(q, id, about);
	}
	regression_rows_free(v, n);
	workspace_close(w);
}

static void offer_knobs(const struct ask *q)
{
	struct drive_path path;
	struct knob *v = NULL;
	size_t n = 0;

	drive_path_init(&path);
	if (script_catalogue(&path.path, &v, &n, NULL) < 0)
		n = 0;
	drive_path_done(&path);
	for (size_t i = 0; i < n; i++) {
		offer(q, v[i].name, v[i].summary);
		knob_done(&v[i]);
	}
	free(v);
}

static void offer_schedulers(const struct ask *q)
{
	for (size_t i = 0; sched_table[i]; i++)
		offer(q, sched_table[i]->name, NULL);
}

static void offer_formats(const struct ask *q)
{
	for (size_t i = 0; report_format_table[i]; i++)
		offer(q, report_format_table[i]->name, NULL);
}

static void offer_outlets(const struct ask *q)
{
	for (size_t i = 0; outlet_table[i]; i++)
		offer(q, outlet_table[i]->name, NULL);
}

static void offer_forms(const struct ask *q)
{
	for (size_t i = 0; recommend_form_table[i]; i++)
		offer(q, recommend_form_table[i]->name, recommend_form_table[i]->summary);
}

static void offer_probes(const struct ask *q)
{
	for (size_t i = 0; probe_table[i]; i++)
		offer(q, probe_table[i]->name, NULL);
}

static void offer_metrics(const struct ask *q)
{
	for (size_t i = 0; metric_defs[i].name; i++)
		offer(q, metric_defs[i].name, metric_defs[i].unit);
}

static void offer_languages(const struct ask *q)
{
	_cleanup_(strv_free) struct strv names = {0};

	lang_names(&names);
	for (size_t i = 0; i < names.n; i++)
		offer(q, names.v[i], NULL);
}

static void offer_commands(const struct ask *q)
{
	for (size_t i = 0; cmd_table[i]; i++)
		if (!cmd_table[i]->hidden)
			offer(q, cmd_table[i]->name, cmd_table[i]->summary);
}

static void shell_files(const struct ask *q)
{
	buf_str(q->out, ":files\n");
}

static void shell_dirs(const struct ask *q)
{
	buf_str(q->out, ":dirs\n");
}

static void shell_recipes(const struct ask *q)
{
	buf_str(q->out, ":recipes\n");
}

/* Placeholders of usage lines and of options. Others (N, TEXT) stand for what only the user knows.
 */
static const struct {
	const char *word;
	void (*offer)(const struct ask *q);
} kinds[] = {
	{"CAMPAIGN", offer_campaigns},
	{"COMMAND", offer_commands},
	{"DIR", shell_dirs},
	{"FILE", shell_files},
	{"FORM", offer_forms},
	{"FORMAT", offer_formats},
	{"KNOB", offer_knobs},
	{"LANGUAGE", offer_languages},
	{"METRIC", offer_metrics},
	{"OUTLET", offer_outlets},
	{"PATTERN", offer_knobs},
	{"PROBE", offer_probes},
	{"RECIPE", shell_recipes},
	{"REGRESSION", offer_regressions},
	{"SCHEDULER", offer_schedulers},
	{"SCRIPT", shell_files},
	{"SERIES", offer_series},
};

/* `words`: alternatives with | between them; small letters are words to be typed. */
static void offer_alternatives(const struct ask *q, const char *words, size_t len)
{
	for (const char *p = words, *end; p < words + len; p = end + 1) {
		size_t n = strcspn(p, "|");
		_cleanup_free_ char *word = NULL;

		end = p + n < words + len ? p + n : words + len;
		word = xstrndup(p, (size_t)(end - p));
		if (*word >= 'a' && *word <= 'z')
			offer(q, word, NULL);
		for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
			if (str_eq(kinds[i].word, word))
				kinds[i].offer(q);
	}
}

/* --- arguments -----------------------------------------------------------------------------------
 */

/* Does `word` stand for one of the alternatives? A placeholder takes everything. */
static bool fits(const char *words, size_t len, const char *word)
{
	bool all_small = true;

	for (const char *p = words; p < words + len;) {
		size_t n = strcspn(p, "|");

		if (p + n > words + len)
			n = (size_t)(words + len - p);
		if (strlen(word) == n && strncmp(p, word, n) == 0)
			return true;
		all_small = all_small && *p >= 'a' && *p <= 'z';
		p += n + 1;
	}
	return !all_small;
}

/* One way of calling the command, "explain KNOB": what can stand behind the arguments given. */
static void offer_way(const struct ask *q, const char *usage, size_t len, const struct strv *given)
{
	const char *p = usage, *end = usage + len;

	for (size_t i = 0; p < end; i++) {
		size_t blank = strspn(p, " []"), n;
		bool more;

		p += blank;
		n = strcspn(p, " ].\n");
		if (p >= end || *p == '-' || !n)
			return; /* options, or the end */
		more = str_starts(p + n, "...");
		if (i >= given->n) {
			offer_alternatives(q, p, n);
			return;
		}
		if (!fits(p, n, given->v[i]))
			return;
		if (more) {
			offer_alternatives(q, p, n);
			return;
		}
		p += n + strspn(p + n, "]");
	}
}

static void offer_arguments(const struct ask *q)
{
	_cleanup_(strv_free) struct strv given = {0};
	const char *usage = q->argp->args_doc;

	for (int i = 1; i < q->argc - 1; i++) {
		if (q->argv[i][0] != '-')
			strv_add(&given, q->argv[i]);
		else
			i += wants_value(q, q->argv[i]) != NULL;
	}
	while (usage && *usage) {
		size_t n = strcspn(usage, "\n");

		offer_way(q, usage, n, &given);
		usage += n + (usage[n] == '\n');
	}
}

/* "--as" "=" "s" is what bash makes of --as=s; other shells leave it whole. */
static const struct argp_option *value_of(struct ask *q)
{
	const char *last = q->typed;
	int n = q->argc - 1;

	if (str_eq(last, "=") && n > 1) {
		q->typed = "";
		return wants_value(q, q->argv[n - 1]);
	}
	if (n > 2 && str_eq(q->argv[n - 1], "="))
		return wants_value(q, q->argv[n - 2]);
	return n > 1 ? wants_value(q, q->argv[n - 1]) : NULL;
}

static bool whole_value(struct ask *q, char **option)
{
	const char *equals = str_starts(q->typed, "--") ? strchr(q->typed, '=') : NULL;
	const struct argp_option *o;
	_cleanup_free_ char *name = equals ? xstrndup(q->typed, (size_t)(equals - q->typed)) : NULL;

	if (!name)
		return false;
	o = wants_value(q, name);
	*option = xstrndup(q->typed, (size_t)(equals + 1 - q->typed));
	q->before = *option;
	q->typed = equals + 1;
	if (o)
		offer_alternatives(q, o->arg, strlen(o->arg));
	return true;
}

void complete_words(const struct argp *argp, int argc, char **argv, struct buf *out)
{
	struct ask q = {argp, argc, argv, argc > 1 ? argv[argc - 1] : "", "", out};
	_cleanup_free_ char *option = NULL;
	const struct argp_option *o = value_of(&q);

	if (o) {
		offer_alternatives(&q, o->arg, strlen(o->arg));
		return;
	}
	if (whole_value(&q, &option))
		return;
	if (q.typed[0] == '-') {
		each_option(&q, argp, offer_option, NULL);
		offer(&q, "--help", "what the command does, and its options");
		return;
	}
	offer_arguments(&q);
}
