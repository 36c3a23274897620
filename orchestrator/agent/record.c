/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/agent/jwrite.h"
#include "orchestrator/agent/trialenv.h"
#include "orchestrator/base/clock.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"
#include "orchestrator/base/version.h"

const char *record_state_name(enum trial_state s)
{
	switch (s) {
	case TRIAL_OK:
		return "ok";
	case TRIAL_FAILED:
		return "failed";
	case TRIAL_VOID:
		return "void";
	}
	return "void";
}

static void write_redacted(struct jwrite *w, const char *key, const struct kvs *secrets,
			   const char *s)
{
	_cleanup_free_ char *clean = trialenv_redact(secrets, s);

	jwrite_text(w, key, clean);
}

static void write_argv(struct jwrite *w, const struct trial_context *c, const struct strv *argv)
{
	jwrite_array(w, "argv");
	for (size_t i = 0; i < argv->n; i++)
		write_redacted(w, NULL, c->secrets, argv->v[i]);
	jwrite_array_end(w);
}

static void write_times(struct jwrite *w, const struct trial_record *r)
{
	jwrite_int(w, "exit", r->exit);
	jwrite_int(w, "signal", r->signal);
	jwrite_text(w, "ended_by", r->ended_by);
	jwrite_int(w, "steps_seen", r->steps_seen);
	jwrite_int(w, "start_us", r->start_us);
	jwrite_int(w, "window_start_us", r->window_start_us);
	jwrite_int(w, "window_end_us", r->window_end_us);
	jwrite_int(w, "wall_us", r->wall_us);
	jwrite_int(w, "user_us", r->user_us);
	jwrite_int(w, "sys_us", r->sys_us);
	jwrite_int(w, "maxrss_kib", r->maxrss_kib);
}

static void write_out(struct jwrite *w, int slot, const struct capture_result *o)
{
	char path[64];

	snprintf(path, sizeof path, "t%02d/out", slot);
	jwrite_object(w, "out");
	jwrite_text(w, "path", path);
	jwrite_int(w, "bytes", o->bytes);
	jwrite_int(w, "total_bytes", o->total_bytes);
	jwrite_bool(w, "cut", o->cut);
	jwrite_text(w, "xxh", o->xxh);
	jwrite_object_end(w);
}

static void write_metrics(struct jwrite *w, const char *dir, int slot)
{
	char path[64], xxh[33] = "";
	_cleanup_free_ char *full = NULL;
	int64_t bytes;

	snprintf(path, sizeof path, "t%02d/metrics.jsonl", slot);
	full = fs_join(dir, path);
	bytes = fs_size(full);
	if (bytes > 0)
		fs_hash_file(full, xxh, NULL);
	jwrite_object(w, "metrics");
	jwrite_text(w, "path", path);
	jwrite_int(w, "bytes", bytes > 0 ? bytes : 0);
	jwrite_text(w, "xxh", xxh);
	jwrite_object_end(w);
}

int record_trial(const struct trial_context *c, const struct block_slot *slot,
		 const struct trial_record *r, char xxh[33], struct err *e)
{
	_cleanup_free_ char *path = xasprintf("%s/t%02d.json", c->dir, slot->slot);
	const char *text;
	struct jwrite w;
	size_t n;
	int rc;

	jwrite_init(&w);
	jwrite_object(&w, NULL);
	jwrite_text(&w, "format", "fettle.trial/1");
	jwrite_text(&w, "token", c->block->token);
	jwrite_int(&w, "slot", slot->slot);
	jwrite_int(&w, "arm", c->block->arms[slot->arm_index].arm);
	jwrite_int(&w, "repeat", slot->repeat);
	jwrite_text(&w, "kind", slot->kind);
	jwrite_text(&w, "state", record_state_name(r->state));
	write_redacted(&w, "reason", c->secrets, r->reason);
	write_times(&w, r);
	jwrite_texts(&w, "nodes", c->place->nodes.v, c->place->nodes.n);
	jwrite_text(&w, "boot_id", c->place->boot_id);
	write_argv(&w, c, &r->argv);
	write_out(&w, slot->slot, &r->out);
	write_metrics(&w, c->dir, slot->slot);
	evidence_write(&r->evidence, &w);
	nodestep_write(c->others, &w);
	jwrite_int(&w, "leftovers", (int64_t)r->leftovers);
	jwrite_int(&w, "shm_removed", r->shm_removed);
	jwrite_bool(&w, "cleaned", r->cleaned);
	jwrite_object_end(&w);
	rc = jwrite_file(&w, path, e);
	jwrite_result(&w, &text, &n);
	fs_hash(text, n, xxh);
	jwrite_free(&w);
	return rc;
}

static void write_slots(struct jwrite *w, const struct block *b, const struct done_record *r)
{
	jwrite_array(w, "slots");
	for (size_t i = 0; i < r->n_done; i++) {
		jwrite_object(w, NULL);
		jwrite_int(w, "slot", b->slots[i].slot);
		jwrite_text(w, "xxh", r->xxh[i]);
		jwrite_object_end(w);
	}
	jwrite_array_end(w);
}

static void write_switches(struct jwrite *w, const struct place *place,
			   const struct nodestep *others)
{
	jwrite_object(w, "switches");
	if (*place->switches)
		jwrite_text(w, place->node, place->switches);
	nodestep_switches(others, w);
	jwrite_object_end(w);
}

int record_done(const char *dir, const struct block *b, const struct place *place,
		const struct nodestep *others, const struct done_record *r, struct err *e)
{
	_cleanup_free_ char *path = fs_join(dir, "done.json"), *samples = fs_join(dir, "samples");
	char xxh[33] = "";
	const char *text;
	struct jwrite w;
	size_t n;
	int rc;

	fs_hash_file(samples, xxh, NULL);
	jwrite_init(&w);
	jwrite_object(&w, NULL);
	jwrite_text(&w, "format", "fettle.done/1");
	jwrite_text(&w, "token", b->token);
	jwrite_int(&w, "block", b->block);
	jwrite_int(&w, "attempt", b->attempt);
	jwrite_text(&w, "state", r->complete ? "complete" : "partial");
	jwrite_text(&w, "reason", r->reason);
	write_slots(&w, b, r);
	jwrite_texts(&w, "nodes", place->nodes.v, place->nodes.n);
	write_switches(&w, place, others);
	jwrite_text(&w, "agent_version", version_text());
	jwrite_int(&w, "start_us", r->start_us);
	jwrite_int(&w, "end_us", r->end_us);
	jwrite_text(&w, "samples_xxh", xxh);
	jwrite_object_end(&w);
	jwrite_result(&w, &text, &n);
	rc = fs_write_atomic(path, text, n, 0600, e);
	jwrite_free(&w);
	return rc;
}

static const char *env_or(const char *name, const char *dflt)
{
	const char *v = getenv(name);

	return v && *v ? v : dflt;
}

static void write_claim(struct jwrite *w, const struct block *b, const char *host,
			const char *boot_id)
{
	_cleanup_free_ char *self = xasprintf("%ld", (long)getpid());
	int64_t restart = 0;
	uint64_t ticks = 0;

	proc_start_ticks(getpid(), &ticks, NULL);
	str_to_i64(env_or("SLURM_RESTART_COUNT", "0"), &restart);
	jwrite_object(w, NULL);
	jwrite_text(w, "format", "fettle.claim/1");
	jwrite_text(w, "token", b->token);
	jwrite_text(w, "job", env_or("SLURM_JOB_ID", self));
	jwrite_int(w, "restart", restart);
	jwrite_text(w, "host", host);
	jwrite_int(w, "pid", getpid());
	jwrite_int(w, "start_ticks", (int64_t)ticks);
	jwrite_text(w, "boot_id", boot_id);
	jwrite_int(w, "at_us", clock_utc_us(&clock_system));
	jwrite_object_end(w);
}

int record_claim(const char *dir, const struct block *b, const char *host, const char *boot_id,
		 struct err *e)
{
	_cleanup_free_ char *path = fs_join(dir, "claim.json");
	int fd = fs_create(path, O_WRONLY | O_EXCL, 0600), rc = 0;
	const char *text;
	struct jwrite w;
	size_t n;

	if (fd < 0 && errno == EEXIST)
		return 1;
	if (fd < 0)
		return err_sys(e, ERR_IO, "cannot write %s", path);
	jwrite_init(&w);
	write_claim(&w, b, host, boot_id);
	jwrite_result(&w, &text, &n);
	/* One write: a reader sees nothing or all of it. An empty claim is a claim too. */
	if (write(fd, text, n) != (ssize_t)n || fsync(fd))
		rc = err_sys(e, ERR_IO, "cannot write %s", path);
	close(fd);
	jwrite_free(&w);
	return rc;
}
