/* SPDX-License-Identifier: GPL-2.0-or-later */
/* #SBATCH lines as sbatch reads them: its get_argument(), then getopt_long(). Part of sbatch.h. */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/sbatch_priv.h"

enum takes { NOTHING, VALUE, MAYBE /* only as --name=value */ };

/* Options of sbatch 20.11 to 26.05: letter, what it takes, name. */
#define OPTIONS(X)                          \
	X('a', VALUE, "array")              \
	X('A', VALUE, "account")            \
	X(0, VALUE, "acctg-freq")           \
	X(0, VALUE, "batch")                \
	X(0, VALUE, "bb")                   \
	X(0, VALUE, "bbf")                  \
	X('b', VALUE, "begin")              \
	X('D', VALUE, "chdir")              \
	X(0, VALUE, "cluster-constraint")   \
	X('M', VALUE, "clusters")           \
	X(0, VALUE, "comment")              \
	X(0, VALUE, "consolidate-segments") \
	X('C', VALUE, "constraint")         \
	X(0, VALUE, "container")            \
	X(0, VALUE, "container-id")         \
	X(0, NOTHING, "contiguous")         \
	X('S', VALUE, "core-spec")          \
	X(0, VALUE, "cores-per-socket")     \
	X(0, VALUE, "cpu-freq")             \
	X(0, VALUE, "cpus-per-gpu")         \
	X('c', VALUE, "cpus-per-task")      \
	X(0, VALUE, "deadline")             \
	X(0, VALUE, "delay-boot")           \
	X('d', VALUE, "dependency")         \
	X('m', VALUE, "distribution")       \
	X('e', VALUE, "error")              \
	X('x', VALUE, "exclude")            \
	X(0, MAYBE, "exclusive")            \
	X(0, VALUE, "export")               \
	X(0, VALUE, "export-file")          \
	X(0, VALUE, "extra")                \
	X('B', VALUE, "extra-node-info")    \
	X(0, MAYBE, "get-user-env")         \
	X(0, VALUE, "gid")                  \
	X(0, VALUE, "gpu-bind")             \
	X(0, VALUE, "gpu-freq")             \
	X('G', VALUE, "gpus")               \
	X(0, VALUE, "gpus-per-node")        \
	X(0, VALUE, "gpus-per-socket")      \
	X(0, VALUE, "gpus-per-task")        \
	X(0, VALUE, "gres")                 \
	X(0, VALUE, "gres-flags")           \
	X('h', NOTHING, "help")             \
	X(0, VALUE, "hint")                 \
	X('H', NOTHING, "hold")             \
	X(0, NOTHING, "ignore-pbs")         \
	X('i', VALUE, "input")              \
	X('J', VALUE, "job-name")           \
	X(0, MAYBE, "kill-on-invalid-dep")  \
	X('L', VALUE, "licenses")           \
	X(0, VALUE, "mail-type")            \
	X(0, VALUE, "mail-user")            \
	X(0, VALUE, "mcs-label")            \
	X(0, VALUE, "mem")                  \
	X(0, VALUE, "mem-bind")             \
	X(0, VALUE, "mem-per-cpu")          \
	X(0, VALUE, "mem-per-gpu")          \
	X(0, VALUE, "mincpus")              \
	X(0, VALUE, "network")              \
	X(0, MAYBE, "nice")                 \
	X('k', MAYBE, "no-kill")            \
	X(0, NOTHING, "no-requeue")         \
	X('F', VALUE, "nodefile")           \
	X('w', VALUE, "nodelist")           \
	X('N', VALUE, "nodes")              \
	X('n', VALUE, "ntasks")             \
	X(0, VALUE, "ntasks-per-core")      \
	X(0, VALUE, "ntasks-per-gpu")       \
	X(0, VALUE, "ntasks-per-node")      \
	X(0, VALUE, "ntasks-per-socket")    \
	X(0, VALUE, "oom-kill-step")        \
	X(0, VALUE, "open-mode")            \
	X('o', VALUE, "output")             \
	X('O', NOTHING, "overcommit")       \
	X('s', NOTHING, "oversubscribe")    \
	X(0, NOTHING, "parsable")           \
	X('p', VALUE, "partition")          \
	X(0, VALUE, "power")                \
	X(0, VALUE, "prefer")               \
	X(0, VALUE, "priority")             \
	X(0, VALUE, "profile")              \
	X(0, MAYBE, "propagate")            \
	X('q', VALUE, "qos")                \
	X('Q', NOTHING, "quiet")            \
	X(0, NOTHING, "reboot")             \
	X(0, NOTHING, "requeue")            \
	X(0, VALUE, "reservation")          \
	X(0, VALUE, "resv-ports")           \
	X(0, VALUE, "segment")              \
	X(0, NOTHING, "share")              \
	X(0, VALUE, "signal")               \
	X(0, VALUE, "sockets-per-node")     \
	X(0, NOTHING, "spread-job")         \
	X(0, VALUE, "spread-segments")      \
	X(0, NOTHING, "stepmgr")            \
	X(0, VALUE, "switches")             \
	X(0, VALUE, "tasks-per-node")       \
	X(0, NOTHING, "test-only")          \
	X(0, VALUE, "thread-spec")          \
	X(0, VALUE, "threads-per-core")     \
	X('t', VALUE, "time")               \
	X(0, VALUE, "time-min")             \
	X(0, VALUE, "tmp")                  \
	X(0, VALUE, "tres-bind")            \
	X(0, VALUE, "tres-per-task")        \
	X(0, VALUE, "uid")                  \
	X(0, NOTHING, "usage")              \
	X(0, NOTHING, "use-min-nodes")      \
	X('v', NOTHING, "verbose")          \
	X('V', NOTHING, "version")          \
	X('W', NOTHING, "wait")             \
	X(0, VALUE, "wait-all-nodes")       \
	X(0, VALUE, "wckey")

#define ROW(letter, takes, name)  {letter, takes, name},
#define NAME(letter, takes, name) name,

static const struct {
	char letter;
	enum takes takes;
	const char *name;
} table[] = {OPTIONS(ROW)};

static const char *const names[] = {OPTIONS(NAME) NULL};

/* Of options that have several names the one that sbatch's manual uses. */
static const char *canonical(const char *name)
{
	if (str_eq(name, "tasks-per-node"))
		return "ntasks-per-node";
	if (str_eq(name, "share"))
		return "oversubscribe";
	return name;
}

const char *const *sbatch_option_names(void)
{
	return names;
}

/* -- one line ---------------------------------------------------------------------------------- */

struct word {
	char *text; /* quotes taken off */
	char *raw;
	int line, component;
};

struct words {
	struct word *v;
	size_t n, cap;
};

/* The next argument at *at: as sbatch's get_argument(). Returns 1, 0 at the end or at a `#`, or a
 * negative code for a quote that is not closed. */
static int next_argument(const struct sbatch *s, int line, const char **at, struct word *out,
			 struct err *e)
{
	const char *p = *at + strspn(*at, " \t"), *start = p;
	struct buf b = {0};
	char quote = '\0';

	if (!*p || *p == '#' || *p == '\n')
		return 0;
	for (; *p && *p != '\n' && (quote || (*p != ' ' && *p != '\t')); p++) {
		if (*p == '\\' && p[1] && p[1] != '\n')
			buf_char(&b, *++p);
		else if (quote ? *p == quote : (*p == '"' || *p == '\''))
			quote = quote ? '\0' : *p;
		else
			buf_char(&b, *p);
	}
	if (quote) {
		buf_free(&b);
		return err_set(e, ERR_USAGE,
			       "%s:%d: the %c in this #SBATCH line is not closed: sbatch refuses "
			       "it; close it",
			       s->name, line, quote);
	}
	*out = (struct word){
		.text = buf_take(&b), .raw = xstrndup(start, (size_t)(p - start)), .line = line};
	*at = p;
	return 1;
}

/* -- options ----------------------------------------------------------------------------------- */

static void add_option(struct sbatch *s, const struct word *w, const char *name, const char *value,
		       const char *text, bool known)
{
	s->options = xgrow(s->options, s->n_options, &s->cap_options, sizeof *s->options);
	s->options[s->n_options++] = (struct sbatch_option){.name = xstrdup(name),
							    .value = xstrdup(value),
							    .text = xstrdup(text),
							    .line = w->line,
							    .component = w->component,
							    .known = known};
	if (value && strchr(value, '$'))
		sbatch_notef(s, SBATCH_UNEXPANDED, w->line,
			     "sbatch expands no variables in #SBATCH lines: %s stays as it is",
			     text);
}

static void unknown_option(struct sbatch *s, const struct word *w, const char *name,
			   const char *value)
{
	const char *near = str_nearest(name, sbatch_option_names());

	add_option(s, w, name, value, w->raw, false);
	if (near)
		sbatch_notef(s, SBATCH_UNKNOWN, w->line,
			     "sbatch has no option %s; did you mean --%s?", w->raw, near);
	else
		sbatch_notef(s, SBATCH_UNKNOWN, w->line, "sbatch has no option %s", w->raw);
}

/* The option of that name, or the only one that begins so; ARRAY_LEN(table): none. */
static size_t find_long(const char *name, size_t n)
{
	size_t found = ARRAY_LEN(table), hits = 0;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (strncmp(table[i].name, name, n) != 0)
			continue;
		if (table[i].name[n] == '\0')
			return i;
		found = i;
		hits++;
	}
	return hits == 1 && n > 0 ? found : ARRAY_LEN(table);
}

static size_t find_short(char letter)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].letter == letter && letter)
			return i;
	return ARRAY_LEN(table);
}

/* The option takes the next word as its value, if there is one; returns how many words it took. */
static size_t with_next(struct sbatch *s, const struct words *all, size_t at, size_t which)
{
	const struct word *w = &all->v[at];
	_cleanup_free_ char *text = NULL;

	if (at + 1 >= all->n || all->v[at + 1].component != w->component) {
		add_option(s, w, canonical(table[which].name), NULL, w->raw, false);
		sbatch_notef(s, SBATCH_UNKNOWN, w->line, "%s needs a value", w->raw);
		return 1;
	}
	text = xasprintf("%s %s", w->raw, all->v[at + 1].raw);
	add_option(s, w, canonical(table[which].name), all->v[at + 1].text, text, true);
	return 2;
}

static size_t read_long(struct sbatch *s, const struct words *all, size_t at)
{
	const struct word *w = &all->v[at];
	const char *name = w->text + 2, *eq = strchr(name, '=');
	size_t n = eq ? (size_t)(eq - name) : strlen(name);
	size_t which = find_long(name, n);
	_cleanup_free_ char *own = xstrndup(name, n);

	if (which == ARRAY_LEN(table)) {
		unknown_option(s, w, own, eq ? eq + 1 : NULL);
		return 1;
	}
	if (table[which].takes == VALUE && !eq)
		return with_next(s, all, at, which);
	if (table[which].takes == NOTHING && eq) {
		add_option(s, w, canonical(table[which].name), eq + 1, w->raw, false);
		sbatch_notef(s, SBATCH_UNKNOWN, w->line, "--%s takes no value", table[which].name);
		return 1;
	}
	add_option(s, w, canonical(table[which].name), eq ? eq + 1 : NULL, w->raw, true);
	return 1;
}

/* "-N2", "-N 2", "-Hk": several letters in one word, the last of which may have a value. */
static size_t read_short(struct sbatch *s, const struct words *all, size_t at)
{
	const struct word *w = &all->v[at];

	for (const char *p = w->text + 1; *p; p++) {
		size_t which = find_short(*p);
		char name[2] = {*p, '\0'};

		if (which == ARRAY_LEN(table)) {
			unknown_option(s, w, name, NULL);
			return 1;
		}
		if (table[which].takes == VALUE && !p[1])
			return with_next(s, all, at, which);
		if (table[which].takes != NOTHING && p[1]) {
			add_option(s, w, canonical(table[which].name), p + 1, w->raw, true);
			return 1;
		}
		add_option(s, w, canonical(table[which].name), NULL, w->raw, true);
	}
	return 1;
}

static void read_words(struct sbatch *s, const struct words *all)
{
	for (size_t i = 0; i < all->n;) {
		const struct word *w = &all->v[i];

		if (str_starts(w->text, "--") && w->text[2]) {
			i += read_long(s, all, i);
		} else if (w->text[0] == '-' && w->text[1] && w->text[1] != '-') {
			i += read_short(s, all, i);
		} else {
			sbatch_notef(s, SBATCH_UNKNOWN, w->line,
				     "%s is no option: sbatch ignores it, and what follows it",
				     w->raw);
			return;
		}
	}
}

/* -- all lines --------------------------------------------------------------------------------- */

static const char magic[] = "#SBATCH";

/* What people write for a line that is switched off, or by mistake. */
static bool looks_off(const char *line)
{
	line += strspn(line, " \t");
	if (*line != '#')
		return false;
	line += strspn(line, "# \t");
	return strncasecmp(line, "SBATCH", strlen("SBATCH")) == 0 &&
	       line[strlen("SBATCH") + strspn(line + strlen("SBATCH"), " \t")] == '-';
}

static char *line_text(const char *p)
{
	return xstrndup(p, strcspn(p, "\r\n"));
}

static int read_directive(struct sbatch *s, const char *p, int line, int *component,
			  struct words *all, struct err *e)
{
	const char *rest = p + strlen(magic), *word = rest + strspn(rest, " \t");
	int rc;

	if ((str_starts(word, "hetjob") || str_starts(word, "packjob")) &&
	    strchr(" \t\n", word[strcspn(word, " \t\n")])) {
		++*component;
		return 0;
	}
	do {
		struct word w = {0};

		rc = next_argument(s, line, &rest, &w, e);
		if (rc == 1) {
			w.component = *component;
			all->v = xgrow(all->v, all->n, &all->cap, sizeof *all->v);
			all->v[all->n++] = w;
		}
	} while (rc == 1);
	return rc;
}

static bool is_command(const char *p)
{
	p += strspn(p, " \t");
	return *p && *p != '\n' && *p != '#';
}

static void note_off(struct sbatch *s, const char *p, int line, bool ended)
{
	_cleanup_free_ char *text = line_text(p + strspn(p, " \t"));

	if (ended && strncmp(p, magic, strlen(magic)) == 0)
		sbatch_notef(s, SBATCH_IGNORED, line,
			     "Slurm does not read this line: it stops at the first command; move "
			     "it up: %s",
			     text);
	else if (looks_off(p))
		sbatch_notef(s, SBATCH_OFF, line,
			     "a comment for Slurm, which reads only lines that begin with #SBATCH: "
			     "%s",
			     text);
}

int sbatch_read_options(struct sbatch *s, struct err *e)
{
	struct words all = {0};
	bool ended = false;
	int line = 1, component = 0, rc = 0;

	for (const char *p = s->text; rc == 0 && p && *p; line++) {
		const char *next = strchr(p, '\n');

		ended = ended || is_command(p);
		if (!ended && strncmp(p, magic, strlen(magic)) == 0)
			rc = read_directive(s, p, line, &component, &all, e);
		else
			note_off(s, p, line, ended);
		p = next ? next + 1 : NULL;
	}
	if (rc == 0) {
		read_words(s, &all);
		s->components = component + 1;
	}
	for (size_t i = 0; i < all.n; i++) {
		free(all.v[i].text);
		free(all.v[i].raw);
	}
	free(all.v);
	return rc;
}

const struct sbatch_option *sbatch_option(const struct sbatch *s, const char *name, int component)
{
	for (size_t i = s->n_options; i-- > 0;)
		if (s->options[i].known && s->options[i].component == component &&
		    str_eq(s->options[i].name, name))
			return &s->options[i];
	return NULL;
}
