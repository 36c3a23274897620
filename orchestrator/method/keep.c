/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a preempted attempt had measured: the passes over all arms that were complete are kept, as a
 * smaller block of their own. The order of a block is one pass after the other, each in an order of
 * its own, so they are a prefix of its slots, and which passes are missing does not depend on an
 * arm.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/method/fingerprint.h"
#include "orchestrator/method/method.h"

/* Slots of the warm-up, and arms of one pass. */
static void shape(const struct block_row *b, size_t *warm, size_t *arms)
{
	*warm = *arms = 0;
	while (*warm < b->n_slots && b->slots[*warm].kind == SLOT_WARMUP)
		(*warm)++;
	while (*warm + *arms < b->n_slots && b->slots[*warm + *arms].repeat == 0)
		(*arms)++;
}

static size_t whole_slots(const struct block_row *b, size_t present)
{
	size_t warm, arms;

	shape(b, &warm, &arms);
	if (arms == 0 || present < warm + arms)
		return 0;
	return warm + (present - warm) / arms * arms;
}

static size_t records_present(const struct block_row *b, const char *dir)
{
	size_t n = 0;

	for (; n < b->n_slots; n++) {
		char name[32];
		_cleanup_free_ char *path = NULL;

		snprintf(name, sizeof name, "t%02d.json", b->slots[n].index);
		path = fs_join(dir, name);
		if (!fs_exists(path))
			break;
	}
	return n;
}

/* The largest whole prefix whose trials were all run to their end. *n 0: none, and *a is empty. */
static int read_prefix(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		       const char *dir, struct attempt_files *a, size_t *n, struct err *e)
{
	struct block_row part = *b;
	size_t warm, arms;
	int rc;

	shape(b, &warm, &arms);
	for (*n = whole_slots(b, records_present(b, dir)); *n > warm; *n -= arms) {
		part.n_slots = *n;
		rc = ingest_prefix(c->recipe, s, c->facts.hyps, c->facts.n_hyps, &part, dir, a, e);
		if (rc < 0 || a->complete)
			return rc;
		attempt_files_done(a);
	}
	*n = 0;
	return 0;
}

/* Its directory is a link to the one that the agent wrote: paths of logs and whoever reads it again
 * find the files. */
static int link_dir(struct campaign *c, int64_t block, const struct block_row *from, struct err *e)
{
	_cleanup_free_ char *name = xasprintf("%lld.1", (long long)block);
	_cleanup_free_ char *path = fs_join(c->ws->blocks_root, name);

	if (symlink(fs_basename(from->dir), path) < 0 && errno != EEXIST)
		return err_sys(e, ERR_IO, "cannot link %s", path);
	return 0;
}

static void name_logs(struct attempt_files *a, int64_t block)
{
	for (size_t i = 0; i < a->n; i++) {
		free(a->trials[i].log_path);
		a->trials[i].log_path = xasprintf("blocks/%lld.1/t%02d/out", (long long)block,
						  a->trials[i].slot);
	}
}

/* The plan of the kept block numbers its slots as the attempt's did: warm-up first, also where
 * another block of the allocation ran it; heap. */
static struct slot *kept_plan(const struct stage_row *s, const struct block_row *b, size_t n_slots,
			      size_t *n)
{
	size_t before = (size_t)b->slots[0].index;
	struct slot *v = xcalloc(before + n_slots, sizeof *v);

	for (size_t i = 0; i < before; i++)
		v[i] = (struct slot){.arm = s->arms[0].id, .repeat = (int)i, .kind = SLOT_WARMUP};
	memcpy(v + before, b->slots, n_slots * sizeof *v);
	*n = before + n_slots;
	return v;
}

/* The warm-up is its allocation's, and stays with the attempt that ran it. */
static void drop_warmup(struct attempt_files *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++) {
		if (a->trials[i].kind == SLOT_WARMUP) {
			trial_result_done(&a->trials[i]);
			free(a->quality[i].step_ms);
			continue;
		}
		a->quality[n] = a->quality[i];
		a->trials[n++] = a->trials[i];
	}
	a->n = n;
}

static int store(struct campaign *c, const struct stage_row *s, const struct block_row *b,
		 size_t n_slots, struct attempt_files *a, int64_t *block, struct err *e)
{
	struct db *db = c->ws->db;
	size_t n;
	_cleanup_free_ struct slot *slots = kept_plan(s, b, n_slots, &n);
	int64_t attempt;
	bool again = false;
	int rc = query_block_add(db, b->stage, (int)c->facts.total, slots, n, block, e);

	drop_warmup(a);
	if (rc == 0)
		rc = query_attempt_keep(db, *block, b->allocation, &attempt, e);
	if (rc == 0)
		rc = link_dir(c, *block, b, e);
	if (rc < 0)
		return rc;
	name_logs(a, *block);
	rc = query_attempt_ingest(db, attempt, a->hash, a->trials, a->n,
				  (const char *const *)strv_end(&a->nodes), a->nodes.n,
				  clock_utc_us(c->ws->clock), &again, e);
	return rc < 0 || again ? rc : fingerprint_store(c, attempt, a, e);
}

int keep_pairs(struct campaign *c, const struct stage_row *s, const struct block_row *b,
	       const char *dir, size_t *passes, struct err *e)
{
	struct attempt_files a = {0};
	size_t n, warm, arms;
	int64_t block = 0;
	int rc = 0;

	*passes = 0;
	if (s->kind == STAGE_SOAK || s->kind == STAGE_CONVERGE || s->kind == STAGE_PROFILE)
		/* a soak is one run of trials, and what a long run measures is at its end */
		return 0;
	shape(b, &warm, &arms);
	rc = read_prefix(c, s, b, dir, &a, &n, e);
	if (rc == 0 && n > 0)
		rc = store(c, s, b, n, &a, &block, e);
	if (n > 0 && rc == 0) {
		*passes = (n - warm) / arms;
		c->facts.total++; /* until the facts are loaded again */
	}
	attempt_files_done(&a);
	return rc;
}
