/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/envfile.h"

#include <ctype.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

/* One line: where reading stands, and what to call it in a message. */
struct line {
	const char *p, *end;
	const char *file;
	int number;
};

static int fault(const struct line *l, struct err *e, const char *what)
{
	return err_set(e, ERR_USAGE, "%s:%d: %s", l->file, l->number, what);
}

static bool name_char(char c, bool first)
{
	return isalpha((unsigned char)c) || c == '_' || (!first && isdigit((unsigned char)c));
}

static void blanks(struct line *l)
{
	while (l->p < l->end && (*l->p == ' ' || *l->p == '\t'))
		l->p++;
}

/* The word `text` followed by a blank. */
static bool keyword(struct line *l, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(l->end - l->p) <= n || memcmp(l->p, text, n) != 0 ||
	    (l->p[n] != ' ' && l->p[n] != '\t'))
		return false;
	l->p += n;
	blanks(l);
	return true;
}

static char *name(struct line *l)
{
	const char *start = l->p;

	while (l->p < l->end && name_char(*l->p, l->p == start))
		l->p++;
	return l->p > start ? xstrndup(start, (size_t)(l->p - start)) : NULL;
}

static int single_quoted(struct line *l, struct buf *out, struct err *e)
{
	const char *close = memchr(l->p, '\'', (size_t)(l->end - l->p));

	if (!close)
		return fault(l, e, "a ' has no other before the line ends");
	buf_put(out, l->p, (size_t)(close - l->p));
	l->p = close + 1;
	return 0;
}

static int double_quoted(struct line *l, struct buf *out, struct err *e)
{
	while (l->p < l->end && *l->p != '"') {
		if (*l->p == '$' || *l->p == '`')
			return fault(l, e, "nothing is expanded here: write the value itself");
		if (*l->p == '\\' && l->p + 1 < l->end && strchr("\"\\$`", l->p[1]))
			l->p++;
		buf_char(out, *l->p++);
	}
	if (l->p == l->end)
		return fault(l, e, "a \" has no other before the line ends");
	l->p++;
	return 0;
}

static int plain(struct line *l, struct buf *out, struct err *e)
{
	char c = *l->p++;

	if (c == '$' || c == '`')
		return fault(l, e, "nothing is expanded here: write the value itself");
	if (strchr(";&|<>()", c))
		return fault(l, e, "quote a value with ; & | < > ( or ) in it");
	if (c == '\\' && l->p == l->end)
		return fault(l, e, "a value goes on no other line");
	buf_char(out, c == '\\' ? *l->p++ : c);
	return 0;
}

static int value(struct line *l, struct buf *out, struct err *e)
{
	int rc = 0;

	while (rc == 0 && l->p < l->end && *l->p != ' ' && *l->p != '\t') {
		if (*l->p == '\'') {
			l->p++;
			rc = single_quoted(l, out, e);
		} else if (*l->p == '"') {
			l->p++;
			rc = double_quoted(l, out, e);
		} else {
			rc = plain(l, out, e);
		}
	}
	if (rc == 0)
		blanks(l);
	if (rc == 0 && l->p < l->end && *l->p != '#')
		rc = fault(l, e, "one NAME=VALUE a line; quote a value with blanks in it");
	return rc;
}

static int unset_line(struct line *l, struct kvs *out, struct err *e)
{
	_cleanup_free_ char *key = name(l);

	blanks(l);
	if (!key || (l->p < l->end && *l->p != '#'))
		return fault(l, e, "expected unset NAME");
	kvs_set(out, key, NULL);
	return 0;
}

static int setting(struct line *l, struct kvs *out, struct err *e)
{
	_cleanup_free_ char *key = NULL;
	struct buf text = {0};
	int rc;

	blanks(l);
	if (l->p == l->end || *l->p == '#')
		return 0;
	if (keyword(l, "unset"))
		return unset_line(l, out, e);
	(void)keyword(l, "export");
	key = name(l);
	if (!key || l->p == l->end || *l->p != '=')
		return fault(l, e, "expected NAME=VALUE, a comment, or unset NAME");
	l->p++;
	rc = value(l, &text, e);
	if (rc == 0)
		kvs_set(out, key, text.data ? text.data : "");
	buf_free(&text);
	return rc;
}

int envfile_parse(const char *file, const char *text, size_t n, struct kvs *out, struct err *e)
{
	struct line l = {.file = file};
	const char *end = text + n;
	struct kvs all = {0};
	int rc = 0;

	if (n && memchr(text, '\0', n))
		return err_set(e, ERR_USAGE, "%s: holds a NUL byte and is no text", file);
	for (const char *p = text; rc == 0 && p < end; p = l.end + 1) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));

		l.p = p;
		l.end = newline ? newline : end;
		l.number++;
		rc = setting(&l, &all, e);
	}
	for (size_t i = 0; rc == 0 && i < all.n; i++)
		kvs_set(out, all.v[i].key, all.v[i].value);
	kvs_free(&all);
	return rc;
}

int envfile_read(const char *path, struct kvs *out, struct err *e)
{
	struct buf text = {0};
	int rc = fs_read(path, ENVFILE_BYTES_MAX, &text, e);

	if (rc == 0)
		rc = envfile_parse(path, text.data ? text.data : "", text.len, out, e);
	else
		rc = err_set(e, ERR_USAGE, "%s: cannot be read as a file of NAME=VALUE lines",
			     path);
	buf_free(&text);
	return rc;
}

int envfile_assignment(const char *text, struct kvs *out, struct err *e)
{
	struct line l = {.p = text, .end = text + strlen(text)};
	_cleanup_free_ char *key = name(&l);

	if (!key || *l.p != '=')
		return err_set(e, ERR_USAGE, "expected NAME=VALUE, got %.200s", text);
	kvs_set(out, key, l.p + 1);
	return 0;
}
