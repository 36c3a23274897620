/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bus bandwidth of collectives by message size. */
#include <stdio.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/markdown.h"
#include "orchestrator/report/mdlog.h"

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

static void arm_rows(const struct report_sizes *s, struct buf *b)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct report_size *x = &s->v[i];
		char size[32];

		md_row(b);
		md_cell_code(b, s->label);
		md_cell(b, stage_kind_name(s->stage));
		md_cell(b, size_text(x->bytes, size));
		md_cell_number(b, x->base);
		md_cell_number(b, x->treatment);
		md_cell_percent(b, x->effect.est, 1);
		buf_char(b, ' ');
		md_interval(b, x->effect.lo, x->effect.hi);
		buf_str(b, " |");
		md_cell_i64(b, (int64_t)x->effect.n);
		md_row_end(b);
	}
}

void mdlog_sizes(const struct report *r, struct buf *b)
{
	static const struct md_column c[] = {{"configuration", false}, {"stage", false},
					     {"size", true},           {"before, GB/s", true},
					     {"after, GB/s", true},    {"change", true},
					     {"interval", true},       {"blocks", true}};

	if (r->n_sizes == 0)
		return;
	buf_str(b, "\n## Bus bandwidth by size\n\n");
	md_table(b, c, ARRAY_LEN(c));
	for (size_t i = 0; i < r->n_sizes; i++)
		arm_rows(&r->sizes[i], b);
	buf_str(b,
		"\nAgainst the baseline of the same blocks (stage aa: against itself, which is "
		"the noise), with the 95 % t-interval of the pairs, each size by itself. Verdicts "
		"rest on the objective alone.\n");
}
