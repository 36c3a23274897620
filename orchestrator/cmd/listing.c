/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/listing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/model.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/text.h"

enum {
	SERIES_MAX = 8192, /* as the window of a trial: nccl-tests of 40 sizes gives 400 */
	FACTS_MAX = 2000,
	REASONS_MAX = 64,
};

struct series {
	char *name; /* metric{labels} */
	const char *unit;
	int64_t n, missing;
	double min, max, sum, last;
	char why[32]; /* of the first that is missing */
};

struct fact {
	char *key, *text;
	int64_t line, n;
	int rank;
};

struct reason {
	char *why, *raw;
	int64_t line, n;
};

struct listing {
	struct series *series;
	size_t n_series, cap_series, at; /* at: where the last value went */
	struct fact *facts;
	size_t n_facts, cap_facts;
	struct reason *reasons;
	size_t n_reasons, cap_reasons;
	int64_t left_out; /* values, facts and reasons over the bounds */
};

struct listing *listing_new(void)
{
	return xcalloc(1, sizeof(struct listing));
}

void listing_free(struct listing *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n_series; i++)
		free(l->series[i].name);
	for (size_t i = 0; i < l->n_facts; i++) {
		free(l->facts[i].key);
		free(l->facts[i].text);
	}
	for (size_t i = 0; i < l->n_reasons; i++) {
		free(l->reasons[i].why);
		free(l->reasons[i].raw);
	}
	free(l->series);
	free(l->facts);
	free(l->reasons);
	free(l);
}

/* -- taking ----------------------------------------------------------------------------------- */

static char *name_of(const struct probe_value *v)
{
	struct buf b = {0};

	buf_str(&b, v->metric);
	for (size_t i = 0; i < v->n_labels; i++)
		buf_printf(&b, "%s%s=%s", i ? "," : "{", v->labels[i].key, v->labels[i].value);
	if (v->n_labels)
		buf_str(&b, "}");
	return buf_take(&b);
}

/* Values come in the same order for each step: the next series is mostly the one after the last. */
static struct series *series_of(struct listing *l, const struct probe_value *v)
{
	_cleanup_free_ char *name = name_of(v);
	const struct metric_def *def = metric_def_find(v->metric);

	for (size_t i = 1; i <= l->n_series; i++) {
		size_t k = (l->at + i) % l->n_series;

		if (str_eq(l->series[k].name, name)) {
			l->at = k;
			return &l->series[k];
		}
	}
	if (l->n_series == SERIES_MAX) {
		l->left_out++;
		return NULL;
	}
	l->series = xgrow(l->series, l->n_series, &l->cap_series, sizeof(*l->series));
	l->at = l->n_series++;
	l->series[l->at] = (struct series){.name = name, .unit = def ? def->unit : ""};
	name = NULL;
	return &l->series[l->at];
}

void listing_value(struct listing *l, const struct probe_value *v)
{
	struct series *s = series_of(l, v);

	if (!s)
		return;
	if (v->missing) {
		if (!s->missing++)
			str_copy(s->why, sizeof(s->why), v->missing);
		return;
	}
	s->min = s->n ? fmin(s->min, v->value) : v->value;
	s->max = s->n ? fmax(s->max, v->value) : v->value;
	s->sum += v->value;
	s->last = v->value;
	s->n++;
}

void listing_fact(struct listing *l, const struct probe_fact *f)
{
	for (size_t i = 0; i < l->n_facts; i++)
		if (str_eq(l->facts[i].key, f->key) && str_eq(l->facts[i].text, f->text)) {
			l->facts[i].n++;
			return;
		}
	if (l->n_facts == FACTS_MAX) {
		l->left_out++;
		return;
	}
	l->facts = xgrow(l->facts, l->n_facts, &l->cap_facts, sizeof(*l->facts));
	l->facts[l->n_facts++] = (struct fact){xstrdup(f->key), xstrdup(f->text), .line = f->line,
					       .n = 1, .rank = f->rank};
}

void listing_ignored(struct listing *l, const struct probe_ignored *g)
{
	for (size_t i = 0; i < l->n_reasons; i++)
		if (str_eq(l->reasons[i].why, g->why)) {
			l->reasons[i].n++;
			return;
		}
	if (l->n_reasons == REASONS_MAX) {
		l->left_out++;
		return;
	}
	l->reasons = xgrow(l->reasons, l->n_reasons, &l->cap_reasons, sizeof(*l->reasons));
	l->reasons[l->n_reasons++] = (struct reason){xstrdup(g->why), xstrdup(g->raw),
						     .line = g->line, .n = 1};
}

/* -- printing --------------------------------------------------------------------------------- */

void listing_clean(const char *s)
{
	struct buf b = {0};

	text_line(&b, s);
	fputs(b.data ? b.data : "", stdout);
	buf_free(&b);
}

/* A cell of so many columns on the right, "-" for none. */
static void number(double v, int width)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6g", v);
	printf(" %*s", width, isfinite(v) ? text : "-");
}

static void print_row(const struct series *s, int width)
{
	struct buf name = {0};

	text_line(&name, s->name);
	printf("%-*s %7lld", width, name.data ? name.data : "", (long long)s->n);
	buf_free(&name);
	number(s->n ? s->sum / (double)s->n : NAN, 12);
	number(s->n > 1 ? s->min : NAN, 12);
	number(s->n > 1 ? s->max : NAN, 12);
	number(s->n > 1 ? s->last : NAN, 12);
	printf("  %s", strcmp(s->unit, "1") == 0 ? "" : s->unit);
	if (s->missing) {
		printf("  (%lld without a value: ", (long long)s->missing);
		listing_clean(s->why);
		putchar(')');
	}
	putchar('\n');
}

static void print_series(const struct listing *l)
{
	size_t width = strlen("metric");

	if (!l->n_series)
		return;
	for (size_t i = 0; i < l->n_series; i++) {
		size_t n = strlen(l->series[i].name);

		width = n > width ? n : width;
	}
	/* Labels of hundreds of bytes do not push the numbers off the screen. */
	width = width > 100 ? 100 : width;
	printf("%-*s %7s %12s %12s %12s %12s  unit\n", (int)width, "metric", "n", "mean", "min",
	       "max", "last");
	for (size_t i = 0; i < l->n_series; i++)
		print_row(&l->series[i], (int)width);
	putchar('\n');
}

static void print_facts(const struct listing *l)
{
	for (size_t i = 0; i < l->n_facts; i++) {
		const struct fact *f = &l->facts[i];

		listing_clean(f->key);
		fputs(" = ", stdout);
		listing_clean(f->text);
		if (f->line)
			printf("  (line %lld", (long long)f->line);
		if (f->line && f->rank >= 0)
			printf(", rank %d", f->rank);
		if (f->line && f->n > 1)
			printf(", and %lld times more", (long long)f->n - 1);
		puts(f->line ? ")" : "");
	}
	if (l->n_facts)
		putchar('\n');
}

static void print_ignored(const struct listing *l)
{
	for (size_t i = 0; i < l->n_reasons; i++) {
		const struct reason *r = &l->reasons[i];

		printf("ignored: %lld time%s: ", (long long)r->n, r->n == 1 ? "" : "s");
		listing_clean(r->why);
		if (r->line)
			printf("; line %lld", (long long)r->line);
		if (r->raw && *r->raw) {
			fputs(": ", stdout);
			listing_clean(r->raw);
		}
		putchar('\n');
	}
	if (l->left_out)
		printf("not listed: %lld more than this table holds (--json has them all)\n",
		       (long long)l->left_out);
}

void listing_print(const struct listing *l)
{
	print_series(l);
	print_facts(l);
	print_ignored(l);
}
