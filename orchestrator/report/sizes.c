/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/report/sizes.h"

#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/pairs.h"

/* One size: paired over the blocks in which both arms were measured. */
static struct report_size size_of(const struct curve_row *v, size_t n, int64_t base, int64_t arm)
{
	_cleanup_free_ struct pairs_value *x = xcalloc(n + 1, sizeof *x);

	return (struct report_size){.bytes = v[0].x,
				    .pairs = pairs_logs(x, pairs_of_curve(v, n, x), base, arm,
							BETTER_UP, NULL)};
}

static void add_arm(struct report *r, const struct stage_row *s, size_t arm,
		    const struct curve_row *v, size_t n, size_t *cap)
{
	struct report_sizes *o;
	size_t n_sizes = 0;

	r->sizes = xgrow(r->sizes, r->n_sizes, cap, sizeof *r->sizes);
	o = &r->sizes[r->n_sizes++];
	*o = (struct report_sizes){
		.label = xstrdup(s->arms[arm].label), .stage = s->kind, .round = s->round};
	for (size_t i = 0, j; i < n; i = j) {
		struct report_size one;

		for (j = i; j < n && v[j].x == v[i].x; j++)
			;
		one = size_of(v + i, j - i, s->arms[0].id, s->arms[arm].id);
		if (one.pairs.effect.n == 0)
			continue;
		o->v = xgrow(o->v, o->n, &n_sizes, sizeof *o->v);
		o->v[o->n++] = one;
	}
}

int report_sizes_load(struct db *db, struct report *r, const struct stage_row *s, size_t n,
		      struct err *e)
{
	size_t cap = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct curve_row *v = NULL;
		size_t k = 0;

		if (s[i].n_arms < 2)
			continue;
		rc = query_stage_sizes(db, s[i].id, "coll_busbw_gb_per_s", "mean", &v, &k, e);
		for (size_t a = 1; rc == 0 && k && a < s[i].n_arms; a++)
			add_arm(r, &s[i], a, v, k, &cap);
		curve_rows_free(v, k);
	}
	return rc;
}

void report_sizes_done(struct report *r)
{
	for (size_t i = 0; i < r->n_sizes; i++) {
		free(r->sizes[i].label);
		free(r->sizes[i].v);
	}
	free(r->sizes);
}

static struct json *size_json(const struct report_size *s)
{
	struct json *o = json_object();

	json_set_number(o, "size_bytes", s->bytes);
	json_set_number(o, "before", s->pairs.before);
	json_set_number(o, "after", s->pairs.after);
	json_set_number(o, "est", s->pairs.effect.est);
	json_set_number(o, "lo", s->pairs.effect.lo);
	json_set_number(o, "hi", s->pairs.effect.hi);
	json_set_i64(o, "n", (int64_t)s->pairs.effect.n);
	return o;
}

struct json *report_sizes_json(const struct report *r)
{
	struct json *all = json_array();

	for (size_t i = 0; i < r->n_sizes; i++) {
		const struct report_sizes *s = &r->sizes[i];
		struct json *o = json_object(), *v = json_array();

		for (size_t k = 0; k < s->n; k++)
			json_add(v, size_json(&s->v[k]));
		json_set_text(o, "arm", s->label);
		json_set_text(o, "stage", stage_kind_name(s->stage));
		json_set_i64(o, "round", s->round);
		json_set(o, "busbw_gb_per_s", v);
		json_add(all, o);
	}
	return all;
}
