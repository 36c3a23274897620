/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The campaign as text. Part of init.h. */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/init.h"
#include "orchestrator/report/text.h"

enum {
	WARMUP_STEPS = 20,
	STEPS = 100,
	LINES_LEAST = 2, /* warm-up lines: the first step compiles, the second fills caches */
	TRIAL_S = 1800,
	COMMENT_COLUMNS = 100,
};

/* A comment of Lua, broken at blanks. */
static void put_comment(struct buf *out, const char *indent, const char *text)
{
	struct buf line = {0};

	text_line(&line, text);
	for (const char *p = line.data; p && *p;) {
		size_t n = strlen(p), most = COMMENT_COLUMNS;

		if (n > most) {
			for (n = most; n > 0 && p[n] != ' '; n--)
				;
			n = n ? n : strcspn(p, " ");
		}
		buf_printf(out, "%s-- %.*s\n", indent, (int)n, p);
		p += n + (p[n] == ' ');
	}
	buf_free(&line);
}

static void put_name(struct buf *out, const char *name)
{
	if (text_is_name(name)) {
		buf_str(out, name);
	} else {
		buf_char(out, '[');
		text_lua(out, name);
		buf_char(out, ']');
	}
}

static const char *line_of(const struct init *i, const char *name)
{
	size_t n = strlen(name);

	for (size_t k = i->env_at.n; k-- > 0;)
		if (strncmp(i->env_at.v[k], name, n) == 0 && i->env_at.v[k][n] == ' ')
			return i->env_at.v[k] + n + 1;
	return NULL;
}

static void put_env(const struct init *i, struct buf *out)
{
	struct kvs sorted = {0};

	kvs_copy(&sorted, &i->env);
	kvs_sort(&sorted);
	buf_str(out, "\t\tenv = {\n");
	for (size_t k = 0; k < sorted.n; k++) {
		const char *line = line_of(i, sorted.v[k].key);

		if (!sorted.v[k].value)
			continue;
		buf_str(out, "\t\t\t");
		put_name(out, sorted.v[k].key);
		buf_str(out, " = ");
		text_lua(out, sorted.v[k].value);
		buf_printf(out, ",%s%s\n", line ? " -- " : "", line ? line : "");
	}
	buf_str(out, "\t\t},\n");
	kvs_free(&sorted);
}

static void put_list(struct buf *out, const char *field, const struct strv *items)
{
	if (!items->n)
		return;
	buf_printf(out, "\t\t%s = { ", field);
	for (size_t k = 0; k < items->n; k++) {
		buf_str(out, k ? ", " : "");
		text_lua(out, items->v[k]);
	}
	buf_str(out, " },\n");
}

static bool has_group(const char *pattern, const char *name)
{
	_cleanup_free_ char *group = xasprintf("(?<%s>", name);

	return pattern && strstr(pattern, group);
}

static int lines(int steps, int every, int least)
{
	int n = (steps + every - 1) / every;

	return n > least ? n : least;
}

static void put_window(const struct init *i, struct buf *out)
{
	const char *pattern = i->o->pattern ? i->o->pattern : i->framework->pattern;
	bool set;
	int every = init_log_interval(i, &set);

	if (every > 1) {
		_cleanup_free_ char *why = xasprintf(
			"counted are lines of the log, which tells of %d steps each", every);

		put_comment(out, "\t\t", why);
	}
	buf_printf(out, "\t\twindow = { warmup_steps = %d, steps = %d, pattern = ",
		   lines(WARMUP_STEPS, every, LINES_LEAST), lines(STEPS, every, 10));
	text_lua(out, pattern);
	buf_str(out, " },\n");
	if (i->framework->probe && !i->o->pattern) {
		buf_printf(out, "\t\tmetrics = { probe = \"%s\" },\n", i->framework->probe);
		return;
	}
	if (!i->o->pattern)
		put_comment(out, "\t\t",
			    "name what your log says: (?<loss>\\S+), (?<step_time_ms>\\S+), "
			    "(?<throughput_samples_per_s>\\S+)");
	buf_str(out, "\t\tmetrics = { pattern = ");
	text_lua(out, pattern);
	buf_str(out, " },\n");
}

static void put_workload(const struct init *i, struct buf *out)
{
	_cleanup_free_ char *what = xasprintf(
		"the lines of %s up to its launch on line %d; the arguments here are "
		"given again behind its own, and the last one counts",
		fs_basename(i->s->name), i->launch->line);
	struct strv command = {0};

	strv_add(&command, i->copy);
	for (size_t k = 0; k < i->command.n; k++)
		strv_add(&command, i->command.v[k]);
	buf_str(out, "\tworkload = {\n");
	put_comment(out, "\t\t", what);
	put_list(out, "command", &command);
	if (i->workdir) {
		buf_str(out, "\t\tworkdir = ");
		text_lua(out, i->workdir);
		buf_str(out, ",\n");
	}
	if (i->framework->name)
		buf_printf(out, "\t\tframework = \"%s\",\n", i->framework->name);
	put_env(i, out);
	put_list(out, "secrets", &i->secrets);
	put_window(i, out);
	buf_printf(out, "\t\tlimits = { trial_s = %d },\n\t},\n", TRIAL_S);
	strv_free(&command);
}

static void put_resources(const struct init *i, struct buf *out)
{
	buf_str(out, "\tresources = {\n");
	for (size_t k = 0; k < i->resources.n; k++)
		buf_printf(out, "\t\t%s = %s,\n", i->resources.v[k].key, i->resources.v[k].value);
	buf_str(out, "\t\tlauncher = \"script\", -- it starts its ranks itself\n\t},\n");
}

/* What the user's own pattern reads, the best of it; else what the agent counts. */
static const char *objective_of(const struct init *i)
{
	static const char *const read[] = {"throughput_samples_per_s", "throughput_tokens_per_s",
					   "step_time_ms", NULL};

	if (!i->o->pattern && i->framework->probe)
		return i->framework->objective;
	for (size_t k = 0; read[k]; k++)
		if (has_group(i->o->pattern, read[k]))
			return read[k];
	return "throughput_steps_per_s";
}

static void put_goal(const struct init *i, struct buf *out)
{
	bool loss = i->o->pattern ? has_group(i->o->pattern, "loss") : i->framework->has_loss;

	buf_printf(out, "\tobjective = \"%s\",\n", objective_of(i));
	if (loss)
		buf_str(out, "\tguards = { loss = 0.01 },\n");
	else
		put_comment(out, "\t",
			    "guards = { loss = 0.01 } as soon as the log's loss is read: without "
			    "it nobody looks whether training still learns");
}

static void put_knobs(const struct init *i, struct buf *out)
{
	buf_str(out, "\tknobs = {\n");
	for (size_t k = 0; k < i->knobs.n; k++)
		buf_printf(out, "\t\t%s,\n", i->knobs.v[k]);
	buf_str(out, "\t},\n");
}

void init_recipe(struct init *i, struct buf *out)
{
	_cleanup_free_ char *from = xasprintf(
		"Written by `fettle init %s`; the script was read, not run. Recognised: "
		"%s.",
		fs_basename(i->s->name), i->framework->title);

	put_comment(out, "", from);
	put_comment(out, "", "Look it over, then: fettle check, fettle plan, fettle run.");
	for (size_t k = 0; k < i->said.n; k++)
		put_comment(out, "", i->said.v[k]);
	buf_str(out, "return {\n\tname = ");
	text_lua(out, i->name);
	buf_str(out, ",\n");
	put_workload(i, out);
	put_resources(i, out);
	put_goal(i, out);
	put_knobs(i, out);
	buf_printf(out, "\tscheduler = \"%s\",\n\tmode = \"quick\",\n", i->o->scheduler);
	buf_str(out, "}\n");
}
