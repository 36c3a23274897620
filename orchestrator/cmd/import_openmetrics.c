/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * OpenMetrics text, and Prometheus' own, with timestamps (seconds or milliseconds):
 *
 *   step_time_ms{workload="gpt",node="n1"} 412.5 1767225600
 *   {__name__="up", job="x"} 1 1767225600000        as `promtool tsdb dump` prints it
 *
 * Labels `workload`, `place` and `nodes`, and those that --env names, are what they say; every
 * other belongs to the name of the metric: a value of another device is another series. Counters,
 * histograms and summaries are no levels and are left out unless --metric asks for them.
 */
#include "orchestrator/cmd/import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/input.h"

enum { LABELS_MAX = 64 };

struct state {
	struct kvs types, units; /* of families */
	bool ended;              /* # EOF was seen */
};

static void *open_openmetrics(void)
{
	return xcalloc(1, sizeof(struct state));
}

static void close_openmetrics(void *state)
{
	struct state *s = state;

	kvs_free(&s->types);
	kvs_free(&s->units);
	free(s);
}

/* -- text ------------------------------------------------------------------------------------ */

static void skip(struct span *t, size_t n)
{
	t->s += n;
	t->n -= n;
}

static void skip_blanks(struct span *t)
{
	while (t->n && (t->s[0] == ' ' || t->s[0] == '\t'))
		skip(t, 1);
}

static bool take(struct span *t, char c)
{
	skip_blanks(t);
	if (!t->n || t->s[0] != c)
		return false;
	skip(t, 1);
	return true;
}

/* [a-zA-Z_:.][a-zA-Z0-9_:.]* */
static struct span take_name(struct span *t)
{
	struct span name = {t->s, 0};

	while (name.n < t->n && strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:."
				       "0123456789",
				       t->s[name.n]))
		name.n++;
	if (name.n && strchr("0123456789", name.s[0]))
		name.n = 0;
	skip(t, name.n);
	return name;
}

/* A text in quotes with \\ \" \n; heap, NULL when it is not closed. */
static char *take_quoted(struct span *t)
{
	struct buf b = {0};

	skip(t, 1);
	for (; t->n && t->s[0] != '"'; skip(t, 1)) {
		if (t->s[0] == '\\' && t->n > 1) {
			skip(t, 1);
			buf_char(&b, t->s[0] == 'n' ? ' ' : t->s[0]);
		} else {
			buf_char(&b, t->s[0]);
		}
	}
	if (!t->n) {
		buf_free(&b);
		return NULL;
	}
	skip(t, 1);
	return buf_take(&b);
}

/* One `name="value"`, or `"name"`, which names the metric itself. */
static bool take_label(struct span *t, struct kvs *labels)
{
	_cleanup_free_ char *name = NULL, *value = NULL;

	skip_blanks(t);
	if (t->n && t->s[0] == '"') {
		name = take_quoted(t);
	} else {
		struct span word = take_name(t);

		name = word.n ? xstrndup(word.s, word.n) : NULL;
	}
	if (!name || !*name || labels->n == LABELS_MAX)
		return false;
	if (!take(t, '=')) {
		kvs_set(labels, "__name__", name);
		return true;
	}
	skip_blanks(t);
	if (!t->n || t->s[0] != '"' || !(value = take_quoted(t)))
		return false;
	kvs_set(labels, name, value);
	return true;
}

static bool take_labels(struct span *t, struct kvs *labels)
{
	if (!take(t, '{'))
		return true;
	while (!take(t, '}')) {
		if (!take_label(t, labels))
			return false;
		if (!take(t, ',')) {
			skip_blanks(t);
			return take(t, '}');
		}
	}
	return true;
}

/* -- a sample -------------------------------------------------------------------------------- */

struct sample {
	struct kvs labels; /* __name__ too */
	struct span value, time;
};

/* False: it is none. */
static bool take_sample(struct span t, struct sample *out)
{
	_cleanup_free_ char *bare = NULL;
	struct span name = take_name(&t), rest;
	double v;

	if (name.n) {
		bare = xstrndup(name.s, name.n);
		kvs_set(&out->labels, "__name__", bare);
	}
	if (!take_labels(&t, &out->labels) || !kvs_has(&out->labels, "__name__") ||
	    !span_word(&t, &out->value) || num_scan(out->value, &v, NULL) == NUM_NONE)
		return false;
	if (!span_word(&t, &out->time) || out->time.s[0] == '#') {
		out->time.n = 0;
		return true;
	}
	return !span_word(&t, &rest) || rest.s[0] == '#';
}

static bool is_word_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (str_eq(*words, word))
			return true;
	return false;
}

/* Is a metric by this name a level, by its type or, without one, by how its name ends? */
static bool is_level(const struct state *s, const char *name)
{
	static const char *const levels[] = {"gauge", "unknown", "untyped", NULL};
	static const char *const parts[] = {"_total", "_bucket",  "_count",
					    "_sum",   "_created", "_info"};
	const char *type = kvs_get(&s->types, name);

	if (type)
		return is_word_of(type, levels);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (str_ends(name, parts[i]))
			return false;
	return true;
}

static bool is_asked_for(const struct import_rules *r, const char *name)
{
	for (size_t i = 0; i < r->n_metrics; i++)
		if (str_eq(r->metrics[i].name, name))
			return true;
	return false;
}

static bool is_own_field(const struct import_rules *r, const char *label)
{
	static const char *const own[] = {"workload", "place", "nodes", "node", NULL};

	if (is_word_of(label, own) || kvs_has(&r->only, label))
		return true;
	for (size_t i = 0; i < r->env.n; i++)
		if (str_eq(r->env.v[i], label))
			return true;
	return false;
}

static void put(struct import_table *t, const char *field, const char *text)
{
	import_cell_add(t, import_field(t, field, strlen(field)), text, strlen(text), CELL_TEXT);
}

/* NAME{label="value",...} of the labels that are not fields of their own. */
static char *series_name(const struct import_rules *r, const struct kvs *labels)
{
	struct buf b = {0};
	size_t n = 0;

	buf_str(&b, kvs_get(labels, "__name__"));
	for (size_t i = 0; i < labels->n; i++) {
		const struct kv *l = &labels->v[i];

		if (str_eq(l->key, "__name__") || is_own_field(r, l->key))
			continue;
		buf_printf(&b, "%s%s=\"%s\"", n++ ? "," : "{", l->key, l->value);
	}
	buf_str(&b, n ? "}" : "");
	return buf_take(&b);
}

static void add_row(const struct state *s, const struct import_rules *r, struct sample *m,
		    int64_t line, struct import_table *t)
{
	const char *bare = kvs_get(&m->labels, "__name__"), *unit = kvs_get(&s->units, bare);
	_cleanup_free_ char *name = NULL;

	kvs_sort(&m->labels);
	name = series_name(r, &m->labels);
	import_row_begin(t, line);
	import_cell_add(t, import_field(t, "time", 4), m->time.s, m->time.n, CELL_ANY);
	put(t, "metric", name);
	import_cell_add(t, import_field(t, "value", 5), m->value.s, m->value.n, CELL_ANY);
	if (unit)
		put(t, "unit", unit);
	for (size_t i = 0; i < m->labels.n; i++)
		if (is_own_field(r, m->labels.v[i].key))
			put(t, m->labels.v[i].key, m->labels.v[i].value);
}

/* # TYPE name type, # UNIT name unit, # EOF */
static void comment(struct state *s, struct span t)
{
	struct span word[3] = {{0}};
	_cleanup_free_ char *name = NULL, *text = NULL;
	size_t n = 0;

	skip(&t, 1);
	while (n < 3 && span_word(&t, &word[n]))
		n++;
	if (n == 1 && span_eq(word[0], "EOF"))
		s->ended = true;
	if (n < 3)
		return;
	name = xstrndup(word[1].s, word[1].n);
	text = xstrndup(word[2].s, word[2].n);
	if (span_eq(word[0], "TYPE"))
		kvs_set(&s->types, name, text);
	else if (span_eq(word[0], "UNIT"))
		kvs_set(&s->units, name, text);
}

static int line_openmetrics(void *state, const struct import_rules *r, const struct input_line *l,
			    struct import_table *t, struct err *e)
{
	struct state *s = state;
	struct span text = span_trim((struct span){l->whole, l->whole_len});
	struct sample m = {0};
	const char *name;
	int rc = 0;

	if (s->ended)
		return err_set(e, ERR_PARSE, "%s, line %lld: text behind # EOF", t->file,
			       (long long)l->line);
	if (text.s[0] == '#') {
		comment(s, text);
		return 0;
	}
	if (!take_sample(text, &m))
		rc = err_set(e, ERR_PARSE,
			     "%s, line %lld: no sample: expected NAME{label=\"value\"} VALUE TIME",
			     t->file, (long long)l->line);
	else if (!m.time.n)
		rc = err_set(
			e, ERR_PARSE,
			"%s, line %lld: no time behind the value: a history needs samples with "
			"timestamps, as promtool tsdb dump writes them",
			t->file, (long long)l->line);
	name = rc == 0 ? kvs_get(&m.labels, "__name__") : "";
	if (rc == 0 && !is_level(s, name) && !is_asked_for(r, name))
		t->not_levels++;
	else if (rc == 0)
		add_row(s, r, &m, l->line, t);
	kvs_free(&m.labels);
	return rc;
}

bool import_openmetrics_sniff(const char *line, size_t n)
{
	static const char *const words[] = {"# HELP ", "# TYPE ", "# UNIT "};
	struct span text = {line, n};
	struct sample m = {0};
	bool fits = false;

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (span_starts(text, words[i]))
			return true;
	fits = take_sample(text, &m);
	kvs_free(&m.labels);
	return fits;
}

const struct import_reading import_openmetrics = {open_openmetrics, line_openmetrics,
						  close_openmetrics};
