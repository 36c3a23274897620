/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bus bandwidth of collectives by message size. */
#include <stdio.h>

#include "orchestrator/base/lang.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/doc.h"
#include "orchestrator/report/tlog.h"

/* 1048576 -> "1 MiB"; sizes of collectives are powers of two, others stay bytes. */
static const char *size_text(double bytes, char out[32])
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double v = bytes;
	size_t u = 0;

	while (u + 1 < ARRAY_LEN(unit) && v >= 1024 && v / 1024 == (double)(long long)(v / 1024)) {
		v /= 1024;
		u++;
	}
	snprintf(out, 32, "%.0f %s", v, unit[u]);
	return out;
}

static void arm_rows(const struct report_sizes *s, struct doc *doc)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct report_size *x = &s->v[i];
		char size[32];

		doc_row(doc);
		doc_cell_code(doc, s->label);
		doc_cell(doc, lang_word("stage_kind", stage_kind_name(s->stage)));
		doc_cell(doc, size_text(x->bytes, size));
		doc_cell_number(doc, x->pairs.before);
		doc_cell_number(doc, x->pairs.after);
		doc_cell_percent(doc, x->pairs.effect.est, 1);
		doc_cell_interval(doc, x->pairs.effect.lo, x->pairs.effect.hi);
		doc_cell_i64(doc, (int64_t)x->pairs.effect.n);
	}
}

/* What a test measured stands for what the screen before it did. */
static bool only_screened(const struct report *r)
{
	for (size_t i = 0; i < r->n_sizes; i++)
		if (r->sizes[i].stage == STAGE_CONFIRM || r->sizes[i].stage == STAGE_FINAL)
			return false;
	return true;
}

void tlog_sizes(const struct report *r, struct doc *doc)
{
	static const struct doc_column c[] = {{"configuration", false}, {"stage", false},
					      {"size", true},           {"before, GB/s", true},
					      {"after, GB/s", true},    {"change", true},
					      {"interval", true},       {"blocks", true}};

	if (r->n_sizes == 0)
		return;
	doc_title(doc, 2, "Bus bandwidth by size");
	doc_table(doc, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_sizes; i++)
		if (r->sizes[i].stage != STAGE_SCREEN || only_screened(r))
			arm_rows(&r->sizes[i], doc);
	doc_say(doc,
		"Against the baseline of the same blocks (stage aa: against itself, which is "
		"the noise), with the 95 % t-interval of the pairs, each size by itself. Verdicts "
		"rest on the objective alone. All screens are in the JSON form.");
}
