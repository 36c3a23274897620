/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiments/query.h"

#include <string.h>

#include "experiments/db_priv.h"

enum { GET, PUT, TAKE_OVER, BEAT, DROP };
const char *const query_sql_lease[] = {
	[GET] = "SELECT held, host, boot_id, pid, start_ticks, heartbeat_us, fence FROM lease "
		"WHERE campaign = :campaign",
	[PUT] = "INSERT INTO lease(campaign, held, host, boot_id, pid, start_ticks, heartbeat_us, "
		"fence) "
		"VALUES (:campaign, 1, :host, :boot, :pid, :ticks, :beat, :fence)",
	[TAKE_OVER] = "UPDATE lease SET held = 1, host = :host, boot_id = :boot, pid = :pid, "
		      "start_ticks = :ticks, heartbeat_us = :beat, fence = :fence "
		      "WHERE campaign = :campaign",
	[BEAT] = "UPDATE lease SET heartbeat_us = :beat "
		 "WHERE campaign = :campaign AND fence = :fence AND held = 1",
	[DROP] = "UPDATE lease SET held = 0 WHERE campaign = :campaign AND fence = :fence AND held "
		 "= 1",
	NULL,
};
#define SQL(which) query_sql_lease[which]

static int read_lease(struct db *db, int64_t campaign, struct lease *out, bool *exists, bool *held,
		      struct err *e)
{
	struct stmt s = stmt_open(db, SQL(GET), "read the lease", e);
	struct lease l = {0};
	int rc;

	*exists = *held = false;
	bind_i64(&s, ":campaign", campaign);
	if (stmt_row(&s)) {
		*exists = true;
		*held = col_bool(&s, "held");
		str_copy(l.host, sizeof l.host, col_peek(&s, "host"));
		str_copy(l.boot_id, sizeof l.boot_id, col_peek(&s, "boot_id"));
		l.pid = col_i64(&s, "pid");
		l.start_ticks = (uint64_t)col_i64(&s, "start_ticks");
		l.heartbeat_us = col_i64(&s, "heartbeat_us");
		l.fence = col_i64(&s, "fence");
	}
	rc = stmt_close(&s);
	if (rc == 0)
		*out = l;
	return rc;
}

/* A pid is an identity together with its start time, its boot and its host. */
static bool same_owner(const struct lease *a, const struct lease *b)
{
	return a->pid == b->pid && a->start_ticks == b->start_ticks &&
	       strcmp(a->boot_id, b->boot_id) == 0 && strcmp(a->host, b->host) == 0;
}

static int write_lease(struct db *db, int64_t campaign, const struct lease *l, bool exists,
		       struct err *e)
{
	struct stmt s = stmt_open(db, SQL(exists ? TAKE_OVER : PUT), "take the lease", e);

	bind_i64(&s, ":campaign", campaign);
	bind_text(&s, ":host", l->host);
	bind_text(&s, ":boot", l->boot_id);
	bind_i64(&s, ":pid", l->pid);
	bind_i64(&s, ":ticks", (int64_t)l->start_ticks);
	bind_i64(&s, ":beat", l->heartbeat_us);
	bind_i64(&s, ":fence", l->fence);
	return stmt_run(&s);
}

static int owned_by(struct db *db, int64_t campaign, const struct lease *l, enum err_code code,
		    const char *words, struct err *e)
{
	char at[32];

	clock_iso(l->heartbeat_us, at, sizeof at);
	return err_set(e, code, "%s: campaign %lld %s pid %lld on host %s (last heartbeat %s)",
		       db_path(db), (long long)campaign, words, (long long)l->pid, l->host, at);
}

/* What lets a lease be taken that somebody holds. */
struct claim {
	int64_t lapse_us;
	bool force;
	const struct lease *dead; /* NULL: nobody was judged */
};

static bool may_take(const struct lease *now, const struct lease *mine, const struct claim *claim)
{
	if (claim->dead)
		return now->fence == claim->dead->fence && same_owner(now, claim->dead);
	return claim->force || mine->heartbeat_us - now->heartbeat_us > claim->lapse_us;
}

static int take(struct db *db, int64_t campaign, struct lease *mine, const struct claim *claim,
		struct err *e)
{
	struct lease now;
	bool exists, held;
	int rc = read_lease(db, campaign, &now, &exists, &held, e);

	if (rc < 0)
		return rc;
	if (held && same_owner(&now, mine)) {
		mine->fence = now.fence;
	} else {
		if (held && !may_take(&now, mine, claim))
			return owned_by(db, campaign, &now, ERR_TEMP, "is being run by", e);
		mine->fence = now.fence + 1;
	}
	return write_lease(db, campaign, mine, exists, e);
}

static int take_in_transaction(struct db *db, int64_t campaign, struct lease *mine,
			       const struct claim *claim, struct err *e)
{
	struct lease l = *mine;
	int rc = db_begin(db, "take the lease", e);

	if (rc < 0)
		return rc;
	rc = db_leave(db, true, take(db, campaign, &l, claim, e), e);
	if (rc == 0)
		*mine = l;
	return rc;
}

int query_lease_take(struct db *db, int64_t campaign, struct lease *mine, int64_t lapse_us,
		     bool force, struct err *e)
{
	const struct claim claim = {.lapse_us = lapse_us, .force = force};

	return take_in_transaction(db, campaign, mine, &claim, e);
}

int query_lease_seize(struct db *db, int64_t campaign, struct lease *mine, const struct lease *dead,
		      struct err *e)
{
	const struct claim claim = {.dead = dead};

	return take_in_transaction(db, campaign, mine, &claim, e);
}

int query_lease_get(struct db *db, int64_t campaign, struct lease *out, bool *held, struct err *e)
{
	bool exists;

	return read_lease(db, campaign, out, &exists, held, e);
}

/* Why a row with our fence was not there. */
static int fenced(struct db *db, int64_t campaign, const struct lease *mine, struct err *e)
{
	struct lease now;
	bool exists, held;
	int rc = read_lease(db, campaign, &now, &exists, &held, e);

	if (rc < 0)
		return rc;
	if (exists && now.fence != mine->fence)
		return owned_by(db, campaign, &now, ERR_STATE, "was taken over by", e);
	return err_set(e, ERR_STATE, "%s: campaign %lld: its lease is not held any more",
		       db_path(db), (long long)campaign);
}

static int if_mine(struct db *db, int64_t campaign, const struct lease *mine, const char *sql,
		   const char *what, struct err *e)
{
	struct stmt s = stmt_open(db, sql, what, e);
	int rc;

	bind_i64(&s, ":campaign", campaign);
	bind_i64(&s, ":fence", mine->fence);
	if (sql == SQL(BEAT))
		bind_i64(&s, ":beat", mine->heartbeat_us);
	rc = stmt_run(&s);
	if (rc == 0 && db_changed(db) == 0)
		rc = fenced(db, campaign, mine, e);
	return rc;
}

int query_lease_beat(struct db *db, int64_t campaign, const struct lease *mine, struct err *e)
{
	return if_mine(db, campaign, mine, SQL(BEAT), "renew the lease", e);
}

int query_lease_drop(struct db *db, int64_t campaign, const struct lease *mine, struct err *e)
{
	return if_mine(db, campaign, mine, SQL(DROP), "give the lease back", e);
}

int query_lease_check(struct db *db, int64_t campaign, const struct lease *mine, struct err *e)
{
	struct lease now;
	bool exists, held;
	int rc = read_lease(db, campaign, &now, &exists, &held, e);

	if (rc < 0 || (held && now.fence == mine->fence))
		return rc;
	return fenced(db, campaign, mine, e);
}
