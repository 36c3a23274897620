/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/effective.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/report/text.h"
#include "orchestrator/script/reader.h"

enum { VALUE_WIDTH = 60 }; /* a longer one does not push the places of all others to the right */

/* As one writes it in a recipe. */
static void put_value(const struct json *v, struct buf *out)
{
	switch (json_type(v)) {
	case JSON_NULL:
	case JSON_OBJECT:
		buf_str(out, "a function");
		return;
	case JSON_BOOL:
		buf_str(out, json_bool(v, false) ? "true" : "false");
		return;
	case JSON_NUMBER:
		reader_number_text(json_number(v, 0), out);
		return;
	case JSON_STRING:
		text_lua(out, json_text(v, ""));
		return;
	case JSON_ARRAY:
		buf_str(out, json_len(v) ? "{ " : "{");
		for (const struct json *m = json_first(v); m; m = json_next(m)) {
			put_value(m, out);
			buf_str(out, json_next(m) ? ", " : " ");
		}
		buf_char(out, '}');
		return;
	}
}

static char *line_of(const struct origin *o)
{
	struct buf raw = {0}, clean = {0};

	buf_printf(&raw, "%s = ", o->path);
	put_value(o->value, &raw);
	text_line(&clean, raw.data);
	buf_free(&raw);
	return buf_take(&clean);
}

static int load(const char *file, struct origins *out, struct err *e)
{
	struct drive_path path;
	int rc;

	drive_path_init(&path);
	rc = script_origins(file, &path.path, out, e);
	drive_path_done(&path);
	return rc;
}

int effective_text(const char *file, struct buf *out, struct err *e)
{
	struct origins x = {0};
	size_t width = 0;
	int rc = load(file, &x, e);

	for (size_t i = 0; i < x.n; i++) {
		_cleanup_free_ char *line = line_of(&x.v[i]);
		size_t n = strlen(line);

		width = n > width && n <= VALUE_WIDTH ? n : width;
	}
	for (size_t i = 0; i < x.n; i++) {
		_cleanup_free_ char *line = line_of(&x.v[i]);

		buf_printf(out, "%-*s  %-8s  ", (int)width, line, x.v[i].from);
		text_line(out, x.v[i].at.file);
		buf_printf(out, ":%d\n", x.v[i].at.line);
	}
	origins_done(&x);
	return rc;
}

int effective_json(const char *file, struct json **out, struct err *e)
{
	struct json *root, *values;
	struct origins x = {0};
	int rc = load(file, &x, e);

	if (rc < 0)
		return rc;
	root = json_object();
	values = json_array();
	json_set_text(root, "file", file);
	for (size_t i = 0; i < x.n; i++) {
		struct json *o = json_object();

		json_set_text(o, "path", x.v[i].path);
		json_set(o, "value", json_copy(x.v[i].value));
		json_set_text(o, "from", x.v[i].from);
		json_set_text(o, "file", x.v[i].at.file);
		json_set_i64(o, "line", x.v[i].at.line);
		json_add(values, o);
	}
	json_set(root, "values", values);
	origins_done(&x);
	*out = root;
	return 0;
}
