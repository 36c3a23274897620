/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A block directory as an agent leaves it, made by the test: three slots (a warm-up run of arm 11,
 * a timed one of arm 11, a timed one of arm 12) with output, metrics, records and manifest. Tests
 * change the JSON before attempt_write(), or the files after it.
 */
#ifndef FETTLE_TESTS_UNIT_ATTEMPT_H
#define FETTLE_TESTS_UNIT_ATTEMPT_H

#include "tests/unit/check.h"

#include "orchestrator/base/json.h"
#include "orchestrator/method/method.h"

enum { ATTEMPT_SLOTS = 3, ATTEMPT_ARM_A = 11, ATTEMPT_ARM_B = 12, ATTEMPT_HYPOTHESIS = 5 };
#define ATTEMPT_TOKEN "fettle:0123abcd:a7"

struct attempt {
	char *root, *dir;
	struct script_sources sources;
	struct recipe *recipe;
	struct slot slots[ATTEMPT_SLOTS];
	struct arm_row arms[2];
	struct stage_row stage;
	struct hypothesis_row hyp;
	struct block_row plan;
	char *out[ATTEMPT_SLOTS], *metrics[ATTEMPT_SLOTS]; /* NULL: no such file */
	struct json *rec[ATTEMPT_SLOTS], *done;
	struct attempt_files files;
};

static inline char *attempt_path(const struct attempt *a, const char *name)
{
	return fs_join(a->dir, name);
}

static inline void attempt_put(const struct attempt *a, const char *name, const char *text)
{
	_cleanup_free_ char *path = attempt_path(a, name);
	struct err e = {0};

	assert_ok(fs_write_atomic(path, text, strlen(text), 0600, &e));
}

static inline struct json *attempt_record(const struct attempt *a, int i)
{
	struct json *o = json_object(), *nodes = json_array();

	json_set_text(o, "format", "fettle.trial/1");
	json_set_text(o, "token", ATTEMPT_TOKEN);
	json_set_i64(o, "slot", i);
	json_set_i64(o, "arm", a->slots[i].arm);
	json_set_i64(o, "repeat", a->slots[i].repeat);
	json_set_text(o, "kind", slot_kind_name(a->slots[i].kind));
	json_set_text(o, "state", "ok");
	json_set_text(o, "reason", "");
	json_set_i64(o, "start_us", 1000000);
	json_set_i64(o, "window_start_us", 1100000);
	json_set_i64(o, "window_end_us", 1900000);
	json_set_i64(o, "wall_us", 1000000);
	json_set_i64(o, "maxrss_kib", 2048);
	json_add_text(nodes, "n1");
	json_set(o, "nodes", nodes);
	return o;
}

static inline struct attempt *attempt_new(const char *recipe)
{
	static const char *const dirs[] = {"recipes", NULL};
	struct script_path path = {.dirs = dirs};
	struct attempt *a = xcalloc(1, sizeof *a);
	struct json *nodes = json_array();
	struct err e = {0};

	assert_ok(script_load(recipe, &path, &a->recipe, &a->sources, &e));
	a->root = scratch_new();
	a->dir = fs_join(a->root, "blocks/1.1");
	assert_ok(fs_mkdirs(a->dir, 0700, &e));
	a->slots[0] = (struct slot){.arm = ATTEMPT_ARM_A, .kind = SLOT_WARMUP};
	a->slots[1] = (struct slot){.arm = ATTEMPT_ARM_A, .kind = SLOT_TIMED, .index = 1};
	a->slots[2] = (struct slot){.arm = ATTEMPT_ARM_B, .kind = SLOT_TIMED, .index = 2};
	a->plan = (struct block_row){.slots = a->slots,
				     .n_slots = ATTEMPT_SLOTS,
				     .dir = (char *)(uintptr_t) "blocks/1.1",
				     .token = (char *)(uintptr_t)ATTEMPT_TOKEN};
	a->hyp = (struct hypothesis_row){.id = ATTEMPT_HYPOTHESIS,
					 .knob = (char *)(uintptr_t) "A",
					 .value = (char *)(uintptr_t) "1"};
	a->arms[0] = (struct arm_row){.id = ATTEMPT_ARM_A};
	a->arms[1] = (struct arm_row){
		.id = ATTEMPT_ARM_B, .index = 1, .hypothesis = ATTEMPT_HYPOTHESIS};
	a->stage = (struct stage_row){.arms = a->arms, .n_arms = 2};
	a->done = json_object();
	json_set_text(a->done, "format", "fettle.done/1");
	json_set_text(a->done, "token", ATTEMPT_TOKEN);
	json_set_text(a->done, "state", "complete");
	json_add_text(nodes, "n1");
	json_set(a->done, "nodes", nodes);
	for (int i = 0; i < ATTEMPT_SLOTS; i++) {
		a->rec[i] = attempt_record(a, i);
		a->out[i] = xstrdup("hello\n");
		a->metrics[i] = xstrdup(
			"{\"step\": 1, \"throughput_samples_per_s\": 5, \"loss\": 9}\n"
			"{\"step\": 2, \"throughput_samples_per_s\": 100, \"loss\": 3}\n"
			"{\"step\": 3, \"throughput_samples_per_s\": 110, \"loss\": 2}\n"
			"{\"step\": 4, \"throughput_samples_per_s\": 120, \"loss\": 1}\n");
	}
	return a;
}

static inline void attempt_file(struct attempt *a, int i, const char *member, const char *name,
				const char *text)
{
	char rel[64], xxh[33];
	struct json *o = json_object();

	snprintf(rel, sizeof rel, "t%02d/%s", i, name);
	if (text)
		attempt_put(a, rel, text);
	fs_hash(text ? text : "", text ? strlen(text) : 0, xxh);
	json_set_text(o, "path", rel);
	json_set_i64(o, "bytes", text ? (int64_t)strlen(text) : 0);
	json_set_text(o, "xxh", text ? xxh : "");
	json_set(a->rec[i], member, o);
}

/* A slot of the manifest, for the record as it is now. */
static inline void attempt_list(struct attempt *a, struct json *slots, int i)
{
	_cleanup_free_ char *text = json_print(a->rec[i], true);
	struct json *o = json_object();
	char xxh[33];

	fs_hash(text, strlen(text), xxh);
	json_set_i64(o, "slot", i);
	json_set_text(o, "xxh", xxh);
	json_add(slots, o);
}

static inline void attempt_write_done(struct attempt *a)
{
	_cleanup_free_ char *text = json_print(a->done, true);

	attempt_put(a, "done.json", text);
}

static inline void attempt_write(struct attempt *a)
{
	struct json *slots = json_array();

	for (int i = 0; i < ATTEMPT_SLOTS; i++) {
		_cleanup_free_ char *text = NULL;
		char name[32];
		struct err e = {0};

		snprintf(name, sizeof name, "t%02d", i);
		_cleanup_free_ char *dir = attempt_path(a, name);
		assert_ok(fs_mkdirs(dir, 0700, &e));
		attempt_file(a, i, "out", "out", a->out[i]);
		attempt_file(a, i, "metrics", "metrics.jsonl", a->metrics[i]);
		text = json_print(a->rec[i], true);
		snprintf(name, sizeof name, "t%02d.json", i);
		attempt_put(a, name, text);
		attempt_list(a, slots, i);
	}
	json_set(a->done, "slots", slots);
	attempt_write_done(a);
}

static inline int attempt_ingest(struct attempt *a, struct err *e)
{
	attempt_files_done(&a->files);
	return ingest_attempt(a->recipe, &a->stage, &a->hyp, 1, &a->plan, a->dir, &a->files, e);
}

static inline void attempt_free(struct attempt *a)
{
	attempt_files_done(&a->files);
	for (int i = 0; i < ATTEMPT_SLOTS; i++) {
		json_free(a->rec[i]);
		free(a->out[i]);
		free(a->metrics[i]);
	}
	json_free(a->done);
	recipe_free(a->recipe);
	script_sources_free(&a->sources);
	free(a->dir);
	scratch_free(&a->root);
	free(a);
}

#endif
