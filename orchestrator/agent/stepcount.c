/* SPDX-License-Identifier: GPL-2.0-or-later */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "orchestrator/agent/stepcount.h"

#include <fcntl.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/base/mem.h"

enum {
	MATCH_LIMIT = 100000, /* backtracking steps a line: about a millisecond */
	DEPTH_LIMIT = 1000,
	HEAP_LIMIT_KIB = 1024,
	METRICS_CHUNK = 64 << 10,
	METRICS_A_POLL = 4 << 20, /* the rest is read at the next poll, so that output is not kept
				     waiting */
	LINE_HEAD = 1024,         /* of a line of metrics: the key mostly stands in front */
	RECENT = 16,              /* steps that a rank may lag behind another */
};
static const char STEP_KEY[] = "\"step\"";

struct stepcount {
	const struct block_window *spec;
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *limits;
	int64_t steps, start_us, end_us, limited;
	int fd; /* metrics.jsonl, -1 while it is absent */
	ino_t ino;
	off_t offset;
	bool line_has_step;              /* of the unfinished line */
	char carry[sizeof STEP_KEY - 1]; /* its newest bytes: the key may be cut by a chunk */
	size_t carry_len;
	char head[LINE_HEAD]; /* of the unfinished line */
	size_t head_len;
	int64_t recent[RECENT]; /* steps that were counted, a ring */
	size_t n_recent;
};

static int compile(struct stepcount *w, struct err *e)
{
	PCRE2_UCHAR why[256];
	PCRE2_SIZE at;
	int code;

	w->code = pcre2_compile((PCRE2_SPTR)w->spec->pattern, PCRE2_ZERO_TERMINATED,
				PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
	if (!w->code) {
		pcre2_get_error_message(code, why, sizeof why);
		return err_set(e, ERR_PARSE, "window.pattern \"%s\": %s at character %zu",
			       w->spec->pattern, (const char *)why, at + 1);
	}
	pcre2_jit_compile(w->code,
			  PCRE2_JIT_COMPLETE); /* refused on hardened nodes: then interpreted */
	w->data = xchecked(pcre2_match_data_create(1, NULL));
	w->limits = xchecked(pcre2_match_context_create(NULL));
	pcre2_set_match_limit(w->limits, MATCH_LIMIT);
	pcre2_set_depth_limit(w->limits, DEPTH_LIMIT);
	pcre2_set_heap_limit(w->limits, HEAP_LIMIT_KIB);
	return 0;
}

int stepcount_new(const struct block_window *spec, struct stepcount **out, struct err *e)
{
	struct stepcount *w = xcalloc(1, sizeof *w);
	int rc = 0;

	w->spec = spec;
	w->fd = -1;
	if (spec->source == WINDOW_OUT && *spec->pattern)
		rc = compile(w, e);
	if (rc) {
		stepcount_free(w);
		return rc;
	}
	*out = w;
	return 0;
}

static void close_metrics(struct stepcount *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	w->offset = 0;
	w->line_has_step = false;
	w->carry_len = w->head_len = w->n_recent = 0;
}

void stepcount_free(struct stepcount *w)
{
	if (!w)
		return;
	close_metrics(w);
	pcre2_match_context_free(w->limits);
	pcre2_match_data_free(w->data);
	pcre2_code_free(w->code);
	free(w);
}

void stepcount_reset(struct stepcount *w, int64_t start_us)
{
	close_metrics(w);
	w->steps = w->end_us = w->limited = 0;
	w->start_us = w->spec->warmup == 0 && w->spec->steps > 0 ? start_us : 0;
}

static void count_step(struct stepcount *w, int64_t utc_us)
{
	w->steps++;
	if (w->steps == w->spec->warmup)
		w->start_us = utc_us;
	if (w->spec->steps > 0 && w->steps == w->spec->warmup + w->spec->steps)
		w->end_us = utc_us;
}

void stepcount_line(void *ctx, const char *line, size_t n, int64_t utc_us)
{
	struct stepcount *w = ctx;
	int rc;

	if (!w->code)
		return;
	rc = pcre2_match(w->code, (PCRE2_SPTR)line, n, 0, 0, w->data, w->limits);
	if (rc >= 0)
		count_step(w, utc_us);
	else if (rc != PCRE2_ERROR_NOMATCH)
		w->limited++;
}

/* Looks for the key in the end of the last chunk and the start of this one together. */
static bool has_step(const struct stepcount *w, const char *text, size_t n)
{
	char both[2 * sizeof STEP_KEY];
	size_t key = sizeof STEP_KEY - 1, more = n < key ? n : key;

	memcpy(both, w->carry, w->carry_len);
	memcpy(both + w->carry_len, text, more);
	return memmem(both, w->carry_len + more, STEP_KEY, key) || memmem(text, n, STEP_KEY, key);
}

static void keep_carry(struct stepcount *w, const char *text, size_t n)
{
	size_t room = sizeof w->carry - 1, keep;

	if (n >= room) {
		memcpy(w->carry, text + n - room, room);
		w->carry_len = room;
		return;
	}
	keep = w->carry_len + n > room ? room - n : w->carry_len;
	memmove(w->carry, w->carry + w->carry_len - keep, keep);
	memcpy(w->carry + keep, text, n);
	w->carry_len = keep + n;
}

static void keep_head(struct stepcount *w, const char *text, size_t n)
{
	size_t room = sizeof w->head - 1 - w->head_len;

	memcpy(w->head + w->head_len, text, n < room ? n : room);
	w->head_len += n < room ? n : room;
	w->head[w->head_len] = '\0';
}

/* The number of the line's step; false when it is none, or too far back in the line. */
static bool line_step(const struct stepcount *w, int64_t *step)
{
	const char *p = memmem(w->head, w->head_len, STEP_KEY, sizeof STEP_KEY - 1);
	char *end;

	if (!p)
		return false;
	p += sizeof STEP_KEY - 1;
	p += strspn(p, " \t");
	if (*p++ != ':')
		return false;
	*step = strtoll(p, &end, 10);
	return end != p && end < w->head + w->head_len;
}

/* Several lines may tell of one step: the loss here, the rate there, or every rank its own. */
static bool is_repeat(struct stepcount *w)
{
	int64_t step;

	if (!line_step(w, &step))
		return false;
	for (size_t i = 0; i < w->n_recent && i < RECENT; i++)
		if (w->recent[i] == step)
			return true;
	w->recent[w->n_recent++ % RECENT] = step;
	return false;
}

static void scan_metrics(struct stepcount *w, const char *text, size_t n, int64_t utc_us)
{
	const char *end = text + n, *nl;

	while ((nl = memchr(text, '\n', (size_t)(end - text)))) {
		keep_head(w, text, (size_t)(nl - text));
		if ((w->line_has_step || has_step(w, text, (size_t)(nl - text))) && !is_repeat(w))
			count_step(w, utc_us);
		w->line_has_step = false;
		w->carry_len = w->head_len = 0;
		text = nl + 1;
	}
	keep_head(w, text, (size_t)(end - text));
	w->line_has_step = w->line_has_step || has_step(w, text, (size_t)(end - text));
	keep_carry(w, text, (size_t)(end - text));
}

/* Open it, or again if another file has taken its name or it was truncated. */
static bool follow_metrics(struct stepcount *w, const char *path)
{
	struct stat st;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return w->fd >= 0;
	if (w->fd >= 0 && (st.st_ino != w->ino || st.st_size < w->offset))
		close_metrics(w);
	if (w->fd < 0) {
		w->fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		w->ino = st.st_ino;
	}
	return w->fd >= 0;
}

void stepcount_poll_metrics(struct stepcount *w, const char *path, int64_t utc_us)
{
	char chunk[METRICS_CHUNK];
	size_t sum = 0;
	ssize_t n;

	if (w->spec->source != WINDOW_METRICS || !follow_metrics(w, path))
		return;
	while (sum < METRICS_A_POLL && (n = pread(w->fd, chunk, sizeof chunk, w->offset)) > 0) {
		scan_metrics(w, chunk, (size_t)n, utc_us);
		w->offset += n;
		sum += (size_t)n;
	}
}

int64_t stepcount_steps(const struct stepcount *w)
{
	return w->steps;
}

int64_t stepcount_start_us(const struct stepcount *w)
{
	return w->start_us;
}

int64_t stepcount_end_us(const struct stepcount *w)
{
	return w->end_us;
}

bool stepcount_measuring(const struct stepcount *w)
{
	return w->steps > w->spec->warmup;
}

bool stepcount_full(const struct stepcount *w)
{
	return w->end_us != 0;
}

int64_t stepcount_limited_lines(const struct stepcount *w)
{
	return w->limited;
}
