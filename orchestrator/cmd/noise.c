/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/noise.h"

#include <math.h>
#include <stdlib.h>

#include "experiments/query.h"
#include "experiments/stats.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/table.h"

/* The residual of arm and unit (an allocation's blocks on the same nodes: they share what the
 * allocation does to an arm, as in every test), as that of one run: a cell is the mean over the
 * runs of an arm in the blocks of a unit. */
static int residual(struct workspace *w, const struct stage_row *s, const struct recipe *past,
		    struct stats_two_way *out, struct err *e)
{
	struct value_row *v = NULL;
	struct table t = {0};
	size_t n = 0, blocks;
	int rc = query_stage_values(w->db, s->id, past->objective, past->objective_stat, &v, &n, e);

	if (rc < 0)
		return rc;
	table_init(&t, s, v, n);
	table_fill(&t, s, v, n, table_log);
	blocks = t.blocks;
	table_cluster(&t, v, n);
	*out = stats_two_way(t.y, t.arms, t.blocks);
	if (t.blocks)
		out->ssr *= past->repeats * (double)blocks / (double)t.blocks;
	free(t.y);
	free(t.n);
	value_rows_free(v, n);
	return 0;
}

static size_t *place_of(struct noise *n, enum stage_kind k)
{
	switch (k) {
	case STAGE_AA:
		return &n->df_aa;
	case STAGE_SCREEN:
		return &n->df_screen;
	case STAGE_CONFIRM:
		return &n->df_confirm;
	case STAGE_VERIFY:
	case STAGE_ABLATE:
	case STAGE_FINAL:
	case STAGE_SOAK:
	case STAGE_CANARY:
	case STAGE_CONVERGE:
	case STAGE_PROFILE:
	case STAGE_LADDER:
		break;
	}
	return NULL;
}

int noise_of_campaign(struct workspace *w, int64_t campaign, const struct recipe *past,
		      struct noise *out, struct err *e)
{
	struct stage_row *stages = NULL;
	size_t n = 0;
	double ssr = 0;
	int rc = query_stages(w->db, campaign, &stages, &n, e);

	*out = (struct noise){.sd = NAN};
	for (size_t i = 0; rc == 0 && i < n; i++) {
		size_t *df = place_of(out, stages[i].kind);
		struct stats_two_way t = {0};

		if (!df || (rc = residual(w, &stages[i], past, &t, e)) < 0)
			continue;
		*df += t.df;
		out->df += t.df;
		ssr += t.ssr;
	}
	stage_rows_free(stages, n);
	if (out->df == 0)
		return rc;
	out->campaign = campaign;
	out->sd = sqrt(ssr / (double)out->df);
	return rc;
}

char *noise_text(const struct noise *n)
{
	const struct {
		const char *name;
		size_t df;
	} parts[] = {{"A/A", n->df_aa}, {"screen", n->df_screen}, {"validation", n->df_confirm}};
	struct buf b = {0};
	size_t left = 0;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		left += parts[i].df > 0;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (parts[i].df == 0)
			continue;
		buf_printf(&b, "%s%s (%zu%s)",
			   !b.len      ? ""
			   : left == 1 ? " and "
				       : ", ",
			   parts[i].name, parts[i].df, b.len ? "" : " degrees of freedom");
		left--;
	}
	return buf_take(&b);
}
