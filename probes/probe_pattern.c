/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A pattern of the recipe: PCRE2 with named groups, tried once on each line.
 *
 *   step (?<step>\d+).*loss (?<loss>\S+).*?(?<step_time_ms>[\d.]+) ms
 *
 * (?<step>) gives the step and (?<rank>) the rank; (?<value>) feeds the metric of the context; each
 * other group feeds the metric of its own name. A group that took no part in the match says
 * nothing; N/A, nan and the like are missing values; one "," or ";" at the end of a group is not
 * part of it. The pattern sees the line without launcher's prefix first, then with it, in case it
 * is data.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/emit.h"
#include "probes/probe.h"

enum {
	PATTERN_TEXT_MAX = 4096,
	/* A match of a sane pattern on a line of 64 KiB needs about as many steps as bytes; ten
	 * million (0.1 s) mean that it backtracks without end. */
	PATTERN_MATCH_LIMIT = 10 * 1000 * 1000,
	PATTERN_DEPTH_LIMIT = 10 * 1000,
	PATTERN_HEAP_KIB = 64 * 1024,
	/* JIT code backtracks on this stack; PCRE2's own 32 KiB are too few for a line of 64 KiB.
	 */
	PATTERN_STACK_MIN = 32 * 1024,
	PATTERN_STACK_MAX = 4 * 1024 * 1024,
	/* So many runaway lines are a bad pattern: the rest of the text is passed over. */
	PATTERN_RUNAWAY_MAX = 10,
	PATTERN_GROUPS_MAX = 32,
};

struct group {
	uint32_t number;
	char *name; /* of the metric that it feeds */
};

struct probe_run {
	struct input *in;
	struct emit out;
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *limits;
	pcre2_jit_stack *stack;
	struct group groups[PATTERN_GROUPS_MAX];
	size_t n_groups;
	uint32_t step, rank; /* group numbers, 0: none */
	int runaways;
};

static void run_free(struct probe_run *r)
{
	for (size_t i = 0; i < r->n_groups; i++)
		free(r->groups[i].name);
	pcre2_match_data_free(r->match);
	pcre2_jit_stack_free(r->stack);
	pcre2_match_context_free(r->limits);
	pcre2_code_free(r->code);
	input_free(r->in);
	emit_close(&r->out);
	free(r);
}

static int add_group(struct probe_run *r, const struct probe_context *c, uint32_t number,
		     const char *name, struct err *e)
{
	const char *metric = name;

	if (str_eq(name, "step") || str_eq(name, "rank")) {
		*(str_eq(name, "step") ? &r->step : &r->rank) = number;
		return 0;
	}
	if (str_eq(name, "value"))
		metric = c->metric;
	if (!metric)
		return err_set(e, ERR_RECIPE,
			       "pattern has a group <value>, but no metric is named that it feeds; "
			       "name the group after its metric, e.g. (?<loss>...)");
	if (!num_metric_name(span_of(metric)))
		return err_set(
			e, ERR_RECIPE,
			"pattern feeds \"%s\", which is no name of a metric: use a-z, 0-9 and _",
			metric);
	if (r->n_groups == PATTERN_GROUPS_MAX)
		return err_set(e, ERR_RECIPE, "pattern has more than %d named groups",
			       PATTERN_GROUPS_MAX);
	r->groups[r->n_groups++] = (struct group){number, xstrdup(metric)};
	return 0;
}

/* PCRE2's name table: entries of equal size, two bytes of group number, then the name. */
static int read_groups(struct probe_run *r, const struct probe_context *c, struct err *e)
{
	uint32_t count = 0, size = 0;
	PCRE2_SPTR entry = NULL;

	pcre2_pattern_info(r->code, PCRE2_INFO_NAMECOUNT, &count);
	pcre2_pattern_info(r->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
	pcre2_pattern_info(r->code, PCRE2_INFO_NAMETABLE, &entry);
	for (uint32_t i = 0; i < count; i++, entry += size) {
		uint32_t number = (uint32_t)entry[0] << 8 | entry[1];
		int rc = add_group(r, c, number, (const char *)entry + 2, e);

		if (rc)
			return rc;
	}
	if (!r->n_groups)
		return err_set(
			e, ERR_RECIPE,
			"pattern has no named group that feeds a metric: write e.g. "
			"loss (?<loss>\\S+), or (?<value>...) and the metric's name beside it");
	return 0;
}

static int compile(struct probe_run *r, const char *pattern, struct err *e)
{
	PCRE2_UCHAR text[128];
	PCRE2_SIZE at;
	int code;

	if (!pattern || !*pattern)
		return err_set(e, ERR_RECIPE, "probe \"pattern\" needs a pattern");
	if (strlen(pattern) > PATTERN_TEXT_MAX)
		return err_set(e, ERR_RECIPE, "pattern is longer than %d bytes", PATTERN_TEXT_MAX);
	r->code = pcre2_compile((PCRE2_SPTR)pattern, strlen(pattern),
				PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
	if (!r->code) {
		pcre2_get_error_message(code, text, sizeof(text));
		return err_set(e, ERR_RECIPE, "pattern, at byte %zu (\"%.20s\"): %s", (size_t)at,
			       at <= strlen(pattern) ? pattern + at : "", (char *)text);
	}
	/* Without a JIT (hardened kernels) the interpreter does the same work, slower. */
	pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE);
	r->match = pcre2_match_data_create_from_pattern(r->code, NULL);
	r->limits = pcre2_match_context_create(NULL);
	if (!r->match || !r->limits)
		return err_set(e, ERR_LIMIT, "out of memory for the pattern");
	r->stack = pcre2_jit_stack_create(PATTERN_STACK_MIN, PATTERN_STACK_MAX, NULL);
	pcre2_jit_stack_assign(r->limits, NULL, r->stack);
	pcre2_set_match_limit(r->limits, PATTERN_MATCH_LIMIT);
	pcre2_set_depth_limit(r->limits, PATTERN_DEPTH_LIMIT);
	pcre2_set_heap_limit(r->limits, PATTERN_HEAP_KIB);
	return 0;
}

/* True on a match of t; the groups are in r->match. */
static bool matches(struct probe_run *r, struct span t)
{
	int rc;

	if (r->runaways >= PATTERN_RUNAWAY_MAX)
		return false;
	rc = pcre2_match(r->code, (PCRE2_SPTR)t.s, t.n, 0, PCRE2_NO_UTF_CHECK, r->match, r->limits);
	if (rc < 0 && rc != PCRE2_ERROR_NOMATCH) {
		r->runaways++;
		emit_bad(&r->out, "the pattern backtracks without end on it");
	}
	return rc > 0;
}

/* The text of a group; false when it took no part. *at_end: it reaches the end of the line. */
static bool group_text(struct probe_run *r, struct span t, uint32_t number, struct span *out,
		       bool *at_end)
{
	PCRE2_SIZE *v = pcre2_get_ovector_pointer(r->match);
	size_t from = v[2 * number], to = v[2 * number + 1];

	if (!number || from == PCRE2_UNSET || to < from)
		return false;
	*at_end = to == t.n;
	if (to > from && (t.s[to - 1] == ',' || t.s[to - 1] == ';'))
		to--;
	*out = (struct span){t.s + from, to - from};
	return true;
}

static void emit_groups(struct probe_run *r, const struct input_line *l, struct span t)
{
	struct emit_tag tag = EMIT_NONE;
	struct span g;
	int64_t n;
	bool at_end;

	if (group_text(r, t, r->step, &g, &at_end) && num_whole_i64(g, &n) && n >= 0)
		tag.step = n;
	if (group_text(r, t, r->rank, &g, &at_end) && num_whole_i64(g, &n) && n >= 0 &&
	    n < INT32_MAX)
		r->out.rank = (int)n;
	for (size_t i = 0; i < r->n_groups; i++) {
		if (!group_text(r, t, r->groups[i].number, &g, &at_end))
			continue;
		/* "loss 2.3" may be the head of "loss 2.31": a cut last line proves nothing. */
		if (at_end && (!l->complete || l->cut))
			emit_bad(&r->out, "cut in the middle of a line");
		else if (!emit_token(&r->out, r->groups[i].name, g, 1, &tag))
			emit_bad(&r->out, "the pattern matches, but a group holds no number");
	}
}

static void on_line(void *ctx, const struct input_line *l)
{
	struct probe_run *r = ctx;
	struct span t = input_span(l);

	emit_begin(&r->out, l);
	if (matches(r, t)) {
		emit_groups(r, l, t);
	} else if (l->whole != l->text) {
		t = (struct span){l->whole, l->whole_len};
		r->out.rank = -1;
		if (matches(r, t))
			emit_groups(r, l, t);
	}
}

static int pattern_open(const struct probe_context *c, const struct probe_sink *sink,
			struct probe_run **out, struct err *e)
{
	struct probe_run *r = xcalloc(1, sizeof(*r));
	int rc;

	emit_open(&r->out, c, sink);
	rc = compile(r, c->pattern, e);
	if (!rc)
		rc = read_groups(r, c, e);
	if (rc) {
		run_free(r);
		return rc;
	}
	r->in = input_new(on_line, r);
	*out = r;
	return 0;
}

static int pattern_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	input_feed(r->in, bytes, n);
	return 0;
}

static enum probe_status pattern_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s;

	input_finish(r->in);
	s = emit_status(&r->out, detail);
	run_free(r);
	return s;
}

const struct probe probe_pattern = {
	.name = "pattern",
	.summary = "any text, read with a pattern of the recipe",
	.open = pattern_open,
	.feed = pattern_feed,
	.finish = pattern_finish,
};
