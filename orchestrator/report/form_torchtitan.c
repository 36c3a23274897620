/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sections of torchtitan's TOML file: an argument "--a.b" of it is the key b of the section a. */
#include <ctype.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/recommend.h"

extern const struct recommend_form form_torchtitan;

/* "--training.steps=" -> the length of "training", of what stands behind the dashes; 0: it is no
 * key of a section. */
static size_t section_length(const struct recommend_part *p)
{
	const char *name = p->name + 2, *dot;
	size_t n;

	if (p->how != RECOMMEND_ARGUMENT || !str_starts(p->name, "--") || !isalpha(name[0]))
		return 0;
	n = strcspn(name, "=");
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_-.", name[i]))
			return 0;
	dot = memrchr(name, '.', n);
	return dot && dot + 1 < name + n && !strstr(name, "..") ? (size_t)(dot - name) : 0;
}

static void quoted(struct buf *out, const char *s)
{
	buf_char(out, '"');
	for (; *s; s++)
		if (*s == '"' || *s == '\\')
			buf_printf(out, "\\%c", *s);
		else if ((unsigned char)*s < 0x20 || *s == 0x7f)
			buf_printf(out, "\\u%04X", (unsigned)*s);
		else
			buf_char(out, *s);
	buf_char(out, '"');
}

/* A number as TOML writes it: 8, -2, 0.5, 1e-4; not "08", ".5" or "inf". */
static bool is_number(const char *s)
{
	double v;
	size_t digits;

	s += *s == '-';
	digits = strspn(s, "0123456789");
	if (digits == 0 || (s[0] == '0' && digits > 1) || s[strspn(s, "0123456789.eE+-")] ||
	    !isdigit((unsigned char)s[strlen(s) - 1]))
		return false;
	if (s[digits] == '.' && !isdigit((unsigned char)s[digits + 1]))
		return false;
	return str_to_double(s, &v);
}

static void value(struct buf *out, const char *s)
{
	if (str_eq(s, "true") || str_eq(s, "false") || is_number(s))
		buf_str(out, s);
	else if (str_eq(s, "True") || str_eq(s, "False"))
		buf_str(out, *s == 'T' ? "true" : "false");
	else
		quoted(out, s);
}

/* The section of part `first` with all its keys, unless an earlier part has brought it. */
static void section(const struct recommend_parts *p, size_t first, struct buf *out)
{
	const char *name = p->v[first].name;
	size_t n = section_length(&p->v[first]);

	for (size_t i = 0; i < first; i++)
		if (section_length(&p->v[i]) == n && strncmp(p->v[i].name, name, n + 3) == 0)
			return;
	buf_printf(out, "\n[%.*s]\n", (int)n, name + 2);
	for (size_t i = first; i < p->n; i++) {
		const char *key = p->v[i].name + n + 3;

		if (section_length(&p->v[i]) != n || strncmp(p->v[i].name, name, n + 3) != 0)
			continue;
		buf_printf(out, "%.*s = ", (int)strcspn(key, "="), key);
		value(out, p->v[i].value);
		buf_char(out, '\n');
	}
}

static int write(const struct report *r, struct strv *left, struct buf *out, struct err *e)
{
	struct recommend_parts p = {0};
	struct buf sections = {0};

	recommend_parts(r, &p);
	for (size_t i = 0; i < p.n; i++)
		if (section_length(&p.v[i]))
			section(&p, i, &sections);
		else
			recommend_leave(r, &p.v[i], left);
	recommend_parts_free(&p);
	if (!sections.len || !str_eq(r->recipe->workload.framework, "torchtitan")) {
		buf_free(&sections);
		return err_set(e, ERR_NOT_FOUND,
			       "campaign %lld: no setting of the fix is a key of torchtitan's file "
			       "(the framework of the campaign is %s)",
			       (long long)r->campaign.id,
			       r->recipe->workload.framework ? r->recipe->workload.framework
							     : "not told");
	}
	recommend_comment_head(r, left, "# ", 0, out);
	recommend_comment(out, "# ", 0,
			  "\nuse: these keys in the file of --job.config_file, in place of its "
			  "own; an argument of the launch line wins over them");
	buf_put(out, sections.data, sections.len);
	buf_free(&sections);
	return 0;
}

const struct recommend_form form_torchtitan = {
	.name = "torchtitan", .summary = "keys of torchtitan's TOML file", .write = write};
