/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/lintfile.h"

#include <ctype.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/envfile.h"
#include "orchestrator/script/sbatch.h"

static int read_text(const char *path, struct buf *out, struct err *e)
{
	struct err why = {0};

	if (fs_read(path, ENVFILE_BYTES_MAX, out, &why) < 0)
		return err_set(e, ERR_USAGE, "%s", why.text);
	if (out->len && memchr(out->data, '\0', out->len))
		return err_set(e, ERR_USAGE, "%s: holds a NUL byte and is no text", path);
	return 0;
}

int lintfile_kind(const char *path, enum lintfile_kind *out, struct err *e)
{
	struct buf text = {0};
	int rc = 0;

	*out = LINTFILE_ENV;
	if (str_ends(path, ".lua")) {
		*out = LINTFILE_CAMPAIGN;
		return 0;
	}
	rc = read_text(path, &text, e);
	if (rc == 0 && text.data &&
	    (str_starts(text.data, "#!") || str_starts(text.data, "#SBATCH") ||
	     strstr(text.data, "\n#SBATCH")))
		*out = LINTFILE_SCRIPT;
	else if (str_ends(path, ".conf"))
		*out = LINTFILE_CONF;
	buf_free(&text);
	return rc;
}

/* The name that a line sets, when it is `NAME=...` with or without `export`; heap, or NULL. */
static char *name_set(const char *line, const char **value)
{
	const char *p = line + strspn(line, " \t"), *end;

	if (str_starts(p, "export ") || str_starts(p, "export\t"))
		p += strlen("export ") + strspn(p + strlen("export "), " \t");
	for (end = p; isalnum((unsigned char)*end) || *end == '_'; end++)
		;
	if (end == p || *end != '=' || isdigit((unsigned char)*p))
		return NULL;
	*value = end + 1;
	return xstrndup(p, (size_t)(end - p));
}

/* As a shell reads it. What it would have to expand is not known here. */
static void env_line(struct lint_input *in, const char *path, int number, const char *line)
{
	struct lint_setting s = {.file = path, .line = number, .layer = "env file"};
	_cleanup_free_ char *name = NULL;
	struct kvs one = {0};

	if (envfile_parse(path, line, strlen(line), &one, NULL) == 0) {
		for (size_t i = 0; i < one.n; i++) {
			s.name = one.v[i].key;
			s.value = one.v[i].value;
			lint_input_setting(in, &s);
		}
	} else if ((name = name_set(line, &s.value))) {
		s.name = name;
		s.dynamic = true;
		lint_input_setting(in, &s);
	}
	kvs_free(&one);
}

/* As NCCL reads it: everything behind the = is the value. */
static void conf_line(struct lint_input *in, const char *path, int number, const char *line)
{
	struct lint_setting s = {.file = path, .line = number, .layer = "nccl.conf"};
	_cleanup_free_ char *name = *line == '#' ? NULL : name_set(line, &s.value);

	if (!name)
		return;
	s.name = name;
	lint_input_setting(in, &s);
}

static int add_lines(struct lint_input *in, enum lintfile_kind kind, const char *path,
		     struct err *e)
{
	struct buf text = {0};
	int rc = read_text(path, &text, e), number = 0;

	for (char *line = text.data, *next; rc == 0 && line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		(kind == LINTFILE_CONF ? conf_line : env_line)(in, path, ++number, line);
	}
	buf_free(&text);
	return rc;
}

static int add_script(struct lint_input *in, const char *path, struct err *e)
{
	struct sbatch s;
	int rc = sbatch_read(path, &s, e);

	if (rc)
		return rc;
	lint_input_script(in, &s);
	sbatch_free(&s);
	return 0;
}

int lintfile_add(struct lint_input *in, enum lintfile_kind kind, const char *path, struct err *e)
{
	if (kind == LINTFILE_SCRIPT)
		return add_script(in, path, e);
	return add_lines(in, kind, path, e);
}
