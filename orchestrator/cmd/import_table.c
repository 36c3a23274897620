/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading a file into a table: bytes, lines, and which format they are in. */
#include "orchestrator/cmd/import.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "orchestrator/base/mem.h"
#include "probes/input.h"

enum { CHUNK = 256 * 1024 };

/* -- table ----------------------------------------------------------------------------------- */

void import_table_done(struct import_table *t)
{
	free(t->file);
	strv_free(&t->fields);
	free(t->cells);
	free(t->rows);
	buf_free(&t->texts);
	*t = (struct import_table){0};
}

void import_row_begin(struct import_table *t, int64_t line)
{
	t->rows = xgrow(t->rows, t->n_rows, &t->cap_rows, sizeof *t->rows);
	t->rows[t->n_rows++] = (struct import_row){.line = line, .first = t->n_cells};
}

void import_cell_add(struct import_table *t, uint32_t field, const char *text, size_t n,
		     enum cell_kind kind)
{
	if (n == 0)
		return;
	t->cells = xgrow(t->cells, t->n_cells, &t->cap_cells, sizeof *t->cells);
	t->cells[t->n_cells++] = (struct import_cell){field, (uint32_t)t->texts.len, kind};
	t->rows[t->n_rows - 1].n++;
	buf_put(&t->texts, text, n);
	buf_char(&t->texts, '\0');
}

static bool is_field(const struct import_table *t, size_t i, const char *name, size_t n)
{
	return strncmp(t->fields.v[i], name, n) == 0 && t->fields.v[i][n] == '\0';
}

/* Rows have their fields in one order, mostly: the next is behind the last. */
uint32_t import_field(struct import_table *t, const char *name, size_t n)
{
	for (size_t k = 0; k < t->fields.n; k++) {
		size_t i = (t->near + 1 + k) % t->fields.n;

		if (is_field(t, i, name, n)) {
			t->near = i;
			return (uint32_t)i;
		}
	}
	strv_addf(&t->fields, "%.*s", (int)n, name);
	t->near = t->fields.n - 1;
	return (uint32_t)t->near;
}

/* -- formats --------------------------------------------------------------------------------- */

static const struct import_reading *reading_of(enum import_format f)
{
	switch (f) {
	case IMPORT_CSV:
		return &import_csv;
	case IMPORT_JSONL:
		return &import_jsonl;
	case IMPORT_OPENMETRICS:
		return &import_openmetrics;
	case IMPORT_GUESS:
		break;
	}
	return NULL;
}

/* By the first line that is not blank. */
static enum import_format guess(const char *line, size_t n)
{
	if (import_openmetrics_sniff(line, n))
		return IMPORT_OPENMETRICS;
	return line[0] == '{' || line[0] == '[' ? IMPORT_JSONL : IMPORT_CSV;
}

/* One text on its way. */
struct reader {
	const struct import_rules *rules;
	const struct import_reading *reading; /* NULL: no line yet */
	void *state;
	struct import_table *table;
	size_t bytes;
	int rc;
	struct err *e;
};

static void take_line(void *ctx, const struct input_line *l)
{
	struct reader *r = ctx;
	size_t blank = strspn(l->whole, " \t");

	if (r->rc < 0 || blank == l->whole_len)
		return;
	if (l->cut) {
		r->rc = err_set(r->e, ERR_PARSE, "%s, line %lld: longer than %d bytes",
				r->table->file, (long long)l->line, INPUT_LINE_MAX);
		return;
	}
	if (!r->reading) {
		enum import_format f = r->rules->format;

		r->reading = reading_of(
			f != IMPORT_GUESS ? f : guess(l->whole + blank, l->whole_len - blank));
		r->state = r->reading->open();
	}
	r->rc = r->reading->line(r->state, r->rules, l, r->table, r->e);
	if (r->rc == 0 && r->table->fields.n > IMPORT_FIELDS_MAX)
		r->rc = err_set(
			r->e, ERR_LIMIT,
			"%s, line %lld: more than %d fields so far: a field's name is the same "
			"in every row",
			r->table->file, (long long)l->line, IMPORT_FIELDS_MAX);
}

static int feed(struct reader *r, struct input *in, const char *bytes, size_t n)
{
	r->bytes += n;
	if (r->bytes > IMPORT_BYTES_MAX)
		return r->rc = err_set(r->e, ERR_LIMIT,
				       "%s: more than %d MiB: cut it up, a file a year say",
				       r->table->file, IMPORT_BYTES_MAX >> 20);
	input_feed(in, bytes, n);
	return r->rc;
}

static int finish(struct reader *r, struct input *in)
{
	if (r->rc == 0)
		input_finish(in);
	input_free(in);
	if (r->reading)
		r->reading->close(r->state);
	if (r->rc == 0 && r->table->n_rows == 0)
		r->rc = err_set(r->e, ERR_PARSE,
				"%s: no row in it: expected CSV with a header line, JSON lines, or "
				"OpenMetrics text with timestamps",
				r->table->file);
	if (r->rc < 0)
		import_table_done(r->table);
	return r->rc;
}

int import_text(const char *file, const char *text, size_t n, const struct import_rules *rules,
		struct import_table *out, struct err *e)
{
	struct reader r = {.rules = rules, .table = out, .e = e};
	struct input *in = input_new(take_line, &r);

	*out = (struct import_table){.file = xstrdup(file)};
	feed(&r, in, text, n);
	return finish(&r, in);
}

static int gz_fault(gzFile f, const char *file, struct err *e)
{
	int z;
	const char *why = gzerror(f, &z);

	return z == Z_ERRNO ? err_sys(e, ERR_IO, "%s", file)
			    : err_set(e, ERR_IO, "%s: a damaged gzip file: %s", file, why);
}

int import_read(const char *file, const struct import_rules *rules, struct import_table *out,
		struct err *e)
{
	struct reader r = {.rules = rules, .table = out, .e = e};
	gzFile f = input_open(file);
	_cleanup_free_ char *chunk = NULL;
	struct input *in;
	int n, z;

	if (!f)
		return err_sys(e, ERR_NOT_FOUND, "%s", file);
	*out = (struct import_table){.file = xstrdup(file)};
	in = input_new(take_line, &r);
	chunk = xmalloc(CHUNK);
	while ((n = gzread(f, chunk, CHUNK)) > 0 && feed(&r, in, chunk, (size_t)n) == 0)
		;
	/* A gzip file that is cut gives its bytes without a fault: half a history is none. */
	gzerror(f, &z);
	if (r.rc == 0 && (n < 0 || z == Z_BUF_ERROR))
		r.rc = gz_fault(f, file, e);
	gzclose(f);
	return finish(&r, in);
}
