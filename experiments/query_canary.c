/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What canary stages are for. */
#include "experiments/history.h"

#include "experiments/db_priv.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum { PUT, GET, LIST, OF_CAMPAIGN };
#define CANARY                                                                             \
	"SELECT canary.stage, s.campaign, night, purpose, regression, s.open FROM canary " \
	"JOIN stage s ON s.id = canary.stage "
const char *const query_sql_canary[] = {
	[PUT] = "INSERT INTO canary(stage, night, purpose, regression) VALUES (:stage, :night, "
		":purpose, :regression)",
	[GET] = CANARY "WHERE canary.stage = :stage",
	[LIST] = CANARY "ORDER BY night DESC, canary.stage DESC",
	[OF_CAMPAIGN] = CANARY
	"WHERE s.campaign = :campaign ORDER BY night DESC, canary.stage DESC",
	NULL,
};
#define SQL(which) query_sql_canary[which]

int history_canary_put(struct db *db, const struct canary_row *c, struct err *e)
{
	struct canary_row there;
	bool found;
	struct stmt s;
	int rc = history_canary_get(db, c->stage, &there, &found, e);

	if (rc < 0)
		return rc;
	if (found)
		return err_set(e, ERR_STATE, "stage %lld is already a canary's, for night %s (%s)",
			       (long long)c->stage, there.night,
			       canary_purpose_name(there.purpose));
	s = stmt_open(db, SQL(PUT), "store what a canary stage is for", e);
	bind_i64(&s, ":stage", c->stage);
	bind_text(&s, ":night", c->night);
	bind_text(&s, ":purpose", canary_purpose_name(c->purpose));
	bind_opt(&s, ":regression", c->regression);
	return stmt_run(&s);
}

static void read_canary(struct stmt *s, struct canary_row *c)
{
	*c = (struct canary_row){.stage = col_i64(s, "stage"), .campaign = col_i64(s, "campaign")};
	str_copy(c->night, sizeof c->night, col_peek(s, "night"));
	COL_WORD(s, "purpose", canary_purpose, &c->purpose);
	c->regression = col_i64(s, "regression");
	c->open = col_bool(s, "open");
}

int history_canary_get(struct db *db, int64_t stage, struct canary_row *out, bool *found,
		       struct err *e)
{
	struct stmt s = stmt_open(db, SQL(GET), "read what a canary stage is for", e);

	bind_i64(&s, ":stage", stage);
	*found = stmt_row(&s);
	if (*found)
		read_canary(&s, out);
	return stmt_close(&s);
}

int history_canaries(struct db *db, int64_t campaign, struct canary_row **out, size_t *n,
		     struct err *e)
{
	struct stmt s = stmt_open(db, campaign ? SQL(OF_CAMPAIGN) : SQL(LIST), "list canary stages",
				  e);
	_cleanup_free_ struct canary_row *v = NULL;
	size_t used = 0, cap = 0;
	int rc;

	if (campaign)
		bind_i64(&s, ":campaign", campaign);
	while (stmt_row(&s)) {
		v = xgrow(v, used, &cap, sizeof *v);
		read_canary(&s, &v[used++]);
	}
	if ((rc = stmt_close(&s)) < 0)
		return rc;
	*out = TAKE(v);
	*n = used;
	return 0;
}
