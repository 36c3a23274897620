/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CSV with a header line: fields between commas, semicolons or tabs (what the header has most of),
 * in quotes where they hold one; blank lines and lines that begin with '#' before the header are
 * passed over. A quoted field ends on its line.
 */
#include "orchestrator/cmd/import.h"

#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "probes/csv.h"
#include "probes/input.h"

struct state {
	struct csv csv;
	char separator; /* 0: no header yet */
	size_t n;       /* fields of the header */
};

static void *open_csv(void)
{
	return xcalloc(1, sizeof(struct state));
}

static void close_csv(void *state)
{
	struct state *s = state;

	csv_free(&s->csv);
	free(s);
}

static char separator_of(struct span t)
{
	static const char all[] = ",;\t";
	size_t most = 0;
	char best = ',';

	for (const char *c = all; *c; c++) {
		size_t n = 0;

		for (size_t i = 0; i < t.n; i++)
			n += t.s[i] == *c;
		if (n > most) {
			most = n;
			best = *c;
		}
	}
	return best;
}

static int header(struct state *s, int64_t line, struct import_table *t, struct err *e)
{
	for (size_t i = 0; i < s->csv.n; i++) {
		struct span name = s->csv.v[i];

		if (name.n == 0)
			return err_set(e, ERR_PARSE,
				       "%s, line %lld: column %zu of the header has no name",
				       t->file, (long long)line, i + 1);
		if (import_field(t, name.s, name.n) != i)
			return err_set(e, ERR_PARSE,
				       "%s, line %lld: two columns are called \"%.*s\"", t->file,
				       (long long)line, (int)name.n, name.s);
	}
	s->n = s->csv.n;
	return 0;
}

static int line_csv(void *state, const struct import_rules *r, const struct input_line *l,
		    struct import_table *t, struct err *e)
{
	struct state *s = state;
	struct span text = {l->whole, l->whole_len};

	(void)r;
	if (!s->separator && span_starts(text, "#[Histogram log format"))
		return err_set(e, ERR_PARSE,
			       "%s: a log of histograms within one session, which is no history of "
			       "nights",
			       t->file);
	if (!s->separator && text.s[0] == '#')
		return 0;
	if (!csv_split_at(&s->csv, text, s->separator ? s->separator : separator_of(text)))
		return err_set(
			e, ERR_PARSE,
			"%s, line %lld: a quote is not closed on its line, or there are more "
			"than %d columns",
			t->file, (long long)l->line, CSV_FIELDS_MAX);
	if (!s->separator) {
		s->separator = separator_of(text);
		return header(s, l->line, t, e);
	}
	if (s->csv.n != s->n)
		return err_set(e, ERR_PARSE,
			       "%s, line %lld: %zu fields, where the header names %zu columns",
			       t->file, (long long)l->line, s->csv.n, s->n);
	import_row_begin(t, l->line);
	for (size_t i = 0; i < s->n; i++)
		import_cell_add(t, (uint32_t)i, s->csv.v[i].s, s->csv.v[i].n, CELL_ANY);
	return 0;
}

const struct import_reading import_csv = {open_csv, line_csv, close_csv};
