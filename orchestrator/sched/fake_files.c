/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/sched/fake_files.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum {
	BLOCK_MAX = 8 << 20,
};

/* One trial while it is written. */
struct writing {
	struct fake_trial t;
	struct json *record;
};

/* --- small files ------------------------------------------------------------------------ */

/* Without fsync: a campaign against `fake` is made up anyway, and thousands of them run in a
 * minute. A reader never sees a part of it: rename is the last thing done. */
static int write_file(const char *path, const char *text, size_t n, struct err *e)
{
	_cleanup_free_ char *tmp = xasprintf("%s.tmp", path);
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool wrote = fd >= 0 && write(fd, text, n) == (ssize_t)n;

	if (fd >= 0)
		close(fd);
	if (!wrote || rename(tmp, path))
		return err_sys(e, ERR_IO, "cannot write %s", path);
	return 0;
}

static int write_buf(const char *dir, const char *name, const struct buf *b, char xxh[33],
		     struct err *e)
{
	_cleanup_free_ char *path = fs_join(dir, name);
	const char *text = b->data ? b->data : "";

	if (xxh)
		fs_hash(text, b->len, xxh);
	return write_file(path, text, b->len, e);
}

static int write_json(const char *dir, const char *name, const struct json *j, char xxh[33],
		      struct err *e)
{
	struct buf b = {0};
	_cleanup_free_ char *text = json_print(j, false);
	int rc;

	buf_str(&b, text);
	rc = write_buf(dir, name, &b, xxh, e);
	buf_free(&b);
	return rc;
}

static int read_block(const char *dir, struct json **out, struct err *e)
{
	_cleanup_free_ char *path = fs_join(dir, "block.json");
	int rc = json_read_file(path, BLOCK_MAX, out, e);

	if (!rc && !str_eq(json_text(json_get(*out, "format"), ""), "fettle.block/1")) {
		json_freep(out);
		rc = err_set(e, ERR_PARSE, "%s: format is not fettle.block/1", path);
	}
	return rc;
}

int fake_files_slots(const char *dir, size_t *out, struct err *e)
{
	_cleanup_(json_freep) struct json *block = NULL;
	int rc = read_block(dir, &block, e);

	if (!rc)
		*out = json_len(json_get(block, "slots"));
	return rc;
}

/* --- what the workload wrote ------------------------------------------------------------ */

static void put_metrics(const struct fake_trial *t, struct json *line)
{
	const struct json *own = json_get(t->run->truth->spec, "metrics");
	const struct json *effects = json_get(t->run->truth->spec, "metric_effects");

	for (size_t i = 0; i < json_len(own); i++)
		json_set_number(line, json_key(json_at(own, i)), json_number(json_at(own, i), 0));
	for (size_t i = 0; i < json_len(effects); i++) {
		const struct json *set = json_at(effects, i);

		for (size_t k = 0; fake_matches(t->arm, json_key(set)) && k < json_len(set); k++)
			json_set_number(line, json_key(json_at(set, k)),
					json_number(json_at(set, k), 0));
	}
}

static void put_step(const struct fake_trial *t, int64_t step, struct buf *out)
{
	double loss = fake_trial_loss(t, step);
	double f = exp(fake_step_noise(t->run->truth, &t->draw, step, t->steps));
	struct json *line = json_object();
	char *text;

	json_set_i64(line, "step", step);
	json_set_i64(line, "t_us", t->start_us + t->wall_us * step / (t->steps + 1));
	json_set_number(line, "throughput_samples_per_s", t->throughput * f);
	json_set_number(line, "step_time_ms", fake_trial_step_ms(t) / f);
	put_metrics(t, line);
	json_set_number(line, "loss", loss);
	text = json_print(line, false);
	json_free(line);
	if (isnan(loss)) { /* as a Python program writes it */
		char *at = strstr(text, "\"loss\":null");

		buf_put(out, text, at ? (size_t)(at - text) : strlen(text));
		buf_str(out, at ? "\"loss\":NaN}" : "");
	} else {
		buf_str(out, text);
	}
	buf_char(out, '\n');
	free(text);
}

static void make_metrics(const struct fake_trial *t, struct buf *out)
{
	int64_t steps = t->failed || t->voided ? t->steps / 2 : t->steps;

	for (int64_t i = 1; i <= steps; i++)
		put_step(t, i, out);
}

static void make_out(const struct fake_trial *t, const struct buf *metrics, struct buf *out)
{
	const struct json *lines = json_get(t->run->truth->spec, "out_lines");

	for (size_t i = 0; i < json_len(lines); i++)
		if (fake_matches(t->arm, json_key(json_at(lines, i))))
			buf_printf(out, "%s\n", json_text(json_at(lines, i), ""));
	buf_put(out, metrics->data ? metrics->data : "", metrics->len);
	if (t->failed)
		buf_str(out, "RuntimeError: planted failure\n");
}

/* --- evidence --------------------------------------------------------------------------- */

struct env_lists {
	struct json *env, *other;
};

static void put_env(void *ctx, const char *key, const char *value, bool plain)
{
	const struct env_lists *to = ctx;

	json_set_text(plain ? to->env : to->other, key, value);
}

static struct json *rank_json(const struct fake_trial *t, int number)
{
	const struct json *maps = json_get(t->run->truth->spec, "maps");
	struct env_lists lists = {json_object(), json_object()};
	struct json *rank = json_object(), *mapped = json_array();

	fake_trial_env(t, put_env, &lists);
	for (size_t i = 0; i < json_len(maps); i++)
		if (fake_matches(t->arm, json_key(json_at(maps, i))))
			json_add_text(mapped, json_text(json_at(maps, i), ""));
	json_set_i64(rank, "rank", number);
	json_set_i64(rank, "pid", 1000 + t->draw.slot + number);
	json_set(rank, "argv", fake_trial_argv(t));
	json_set(rank, "env", lists.env);
	json_set(rank, "env_other", lists.other);
	json_set(rank, "maps", mapped);
	json_set_i64(rank, "threads", 1);
	json_set_i64(rank, "children", 0);
	return rank;
}

static void put_ranks(const struct writing *w)
{
	struct json *ranks = json_array();
	int n = fake_trial_ranks(&w->t);

	for (int i = 0; i < n; i++)
		json_add(ranks, rank_json(&w->t, i));
	json_set(w->record, "ranks", ranks);
	json_set_i64(w->record, "ranks_seen", n);
	json_set_i64(w->record, "ranks_expected", n);
}

/* --- records ---------------------------------------------------------------------------- */

static void put_state(const struct fake_trial *t, struct json *r)
{
	json_set_text(r, "state", t->voided ? "void" : t->failed ? "failed" : "ok");
	json_set_text(r, "reason",
		      t->voided   ? FAKE_VOID_REASON
		      : t->failed ? FAKE_FAILED_REASON
				  : "");
	json_set_bool(r, "made_up", true);
	json_set_i64(r, "exit", t->failed ? 1 : 0);
	json_set_i64(r, "signal", 0);
	json_set_text(r, "ended_by", t->voided ? "io" : t->failed ? "exit" : "window");
	json_set_i64(r, "steps_seen", t->failed || t->voided ? t->steps / 2 : t->steps);
}

static void put_times(const struct fake_trial *t, struct json *r)
{
	bool whole = !t->failed && !t->voided;

	json_set_i64(r, "start_us", t->start_us);
	json_set_i64(r, "window_start_us",
		     whole ? t->start_us + t->wall_us * t->warmup / (t->steps + 1) : 0);
	json_set_i64(r, "window_end_us",
		     whole ? t->start_us + t->wall_us * t->steps / (t->steps + 1) : 0);
	json_set_i64(r, "wall_us", t->wall_us);
	json_set_i64(r, "user_us", t->wall_us);
	json_set_i64(r, "sys_us", t->wall_us / 10);
	json_set_i64(r, "maxrss_kib", 512000);
}

static void put_file(const struct writing *w, const char *name, size_t bytes, const char *xxh)
{
	struct json *o = json_object();
	char path[64];

	snprintf(path, sizeof path, "%s/%s", w->t.dir,
		 str_eq(name, "out") ? "out" : "metrics.jsonl");
	json_set_text(o, "path", path);
	json_set_i64(o, "bytes", (int64_t)bytes);
	if (str_eq(name, "out")) {
		json_set_i64(o, "total_bytes", (int64_t)bytes);
		json_set_bool(o, "cut", false);
	}
	json_set_text(o, "xxh", bytes || str_eq(name, "out") ? xxh : "");
	json_set(w->record, name, o);
}

static void put_head(const struct writing *w)
{
	const struct fake_trial *t = &w->t;
	struct json *r = w->record, *nodes = json_array();

	json_set_text(r, "format", "fettle.trial/1");
	json_set_text(r, "token", json_text(json_get(t->block, "token"), ""));
	json_set_i64(r, "slot", t->draw.slot);
	json_set_i64(r, "arm", t->draw.arm);
	json_set_i64(r, "repeat", json_i64(json_get(t->slot, "repeat"), 0));
	json_set_text(r, "kind", json_text(json_get(t->slot, "kind"), "timed"));
	put_state(t, r);
	put_times(t, r);
	json_add_text(nodes, t->run->node);
	json_set(r, "nodes", nodes);
	json_set_text(r, "boot_id", "00000000-0000-0000-0000-000000000000");
	json_set(r, "argv", json_copy(json_get(t->arm, "argv")));
}

static int write_trial(struct writing *w, char xxh[33], struct err *e)
{
	const struct fake_trial *t = &w->t;
	_cleanup_free_ char *dir = fs_join(t->run->dir, t->dir);
	struct buf metrics = {0}, out = {0};
	char name[32], metrics_xxh[33], out_xxh[33];
	int rc = 0;

	if (mkdir(dir, 0700) && errno != EEXIST)
		return err_sys(e, ERR_IO, "cannot make directory %s", dir);
	w->record = json_object();
	put_head(w);
	make_metrics(t, &metrics);
	make_out(t, &metrics, &out);
	rc = write_buf(dir, "metrics.jsonl", &metrics, metrics_xxh, e);
	if (!rc)
		rc = write_buf(dir, "out", &out, out_xxh, e);
	if (!rc) {
		put_file(w, "out", out.len, out_xxh);
		put_file(w, "metrics", metrics.len, metrics_xxh);
		put_ranks(w);
		json_set_i64(w->record, "leftovers", 0);
		json_set_bool(w->record, "cleaned", true);
		snprintf(name, sizeof name, "%s.json", t->dir);
		rc = write_json(t->run->dir, name, w->record, xxh, e);
	}
	json_free(w->record);
	buf_free(&metrics);
	buf_free(&out);
	return rc;
}

static int write_claim(const struct fake_run *r, const struct json *block, struct err *e)
{
	struct json *j = json_object();
	int rc;

	json_set_text(j, "format", "fettle.claim/1");
	json_set_text(j, "token", json_text(json_get(block, "token"), ""));
	json_set_text(j, "job", r->job_id);
	json_set_i64(j, "restart", 0);
	json_set_text(j, "host", r->node);
	json_set_i64(j, "pid", 1);
	json_set_i64(j, "start_ticks", 1);
	json_set_text(j, "boot_id", "00000000-0000-0000-0000-000000000000");
	json_set_i64(j, "at_us", r->start_us);
	rc = write_json(r->dir, "claim.json", j, NULL, e);
	json_free(j);
	return rc;
}

static int write_environment(const struct fake_run *r, const struct json *block, struct err *e)
{
	const struct json *keys = json_get(r->truth->spec, "environment");
	struct json *j;
	int rc;

	if (!keys)
		return 0;
	j = json_object();
	json_set_text(j, "format", "fettle.environment/1");
	json_set_text(j, "token", json_text(json_get(block, "token"), ""));
	json_set_text(j, "node", r->node);
	json_set(j, "keys", json_copy(keys));
	rc = write_json(r->dir, "environment.json", j, NULL, e);
	json_free(j);
	return rc;
}

static int write_done(const struct fake_run *r, const struct json *block, struct json *slots,
		      int64_t end_us, struct err *e)
{
	struct json *j = json_object(), *nodes = json_array();
	bool whole = r->fate == FATE_OK;
	int rc;

	json_add_text(nodes, r->node);
	json_set_text(j, "format", "fettle.done/1");
	json_set_text(j, "token", json_text(json_get(block, "token"), ""));
	json_set(j, "block", json_copy(json_get(block, "block")));
	json_set(j, "attempt", json_copy(json_get(block, "attempt")));
	json_set_text(j, "state", whole ? "complete" : "partial");
	json_set_text(j, "reason",
		      whole                       ? ""
		      : r->fate == FATE_PREEMPTED ? FAKE_STOP_REASON
						  : FAKE_VOID_REASON);
	json_set(j, "slots", slots);
	json_set(j, "nodes", nodes);
	json_set_text(j, "agent_version", "fake");
	json_set_i64(j, "start_us", r->start_us);
	json_set_i64(j, "end_us", end_us);
	json_set_text(j, "samples_xxh", "");
	rc = write_json(r->dir, "done.json", j, NULL, e);
	json_free(j);
	return rc;
}

int fake_files_write(const struct fake_run *r, int64_t *end_us, struct err *e)
{
	_cleanup_(json_freep) struct json *block = NULL;
	struct json *slots = json_array();
	int rc = read_block(r->dir, &block, e);
	size_t n = rc ? 0 : json_len(json_get(block, "slots"));
	bool has_done = r->fate == FATE_OK || r->fate == FATE_VOID || r->fate == FATE_PREEMPTED;

	*end_us = r->start_us;
	if (r->fate != FATE_OK && r->fate != FATE_VOID)
		n /= 2; /* it broke off on the way */
	if (!rc)
		rc = write_claim(r, block, e);
	if (!rc)
		rc = write_environment(r, block, e);
	for (size_t i = 0; i < n && !rc; i++) {
		struct json *entry = json_object();
		struct writing w;
		char xxh[33] = "";

		rc = fake_trial_of(r, block, i, *end_us, &w.t, e);
		if (!rc)
			rc = write_trial(&w, xxh, e);
		*end_us += (int64_t)(r->truth->trial_s * 1e6);
		json_set_i64(entry, "slot", rc ? 0 : w.t.draw.slot);
		json_set_text(entry, "xxh", xxh);
		json_add(slots, entry);
	}
	if (!rc && has_done)
		return write_done(r, block, slots, *end_us, e);
	json_free(slots);
	return rc;
}
