/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block.json as plain structs: what one attempt of one block is to run (FORMATS.md). The reader
 * bounds everything, ignores unknown keys and names the file and the key in each error. The text is
 * not trusted: it may be cut, edited by hand, or written by a newer fettle.
 */
#ifndef FETTLE_AGENT_BLOCK_H
#define FETTLE_AGENT_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "orchestrator/base/container.h"
#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

enum {
	BLOCK_FILE_MAX = 8 << 20, /* 1,000 arms with 8 KiB of arguments each */
	BLOCK_TOKEN_MAX = 63,     /* as struct sched_status */
};

enum window_source { WINDOW_OUT, WINDOW_METRICS };

struct block_window {
	char *pattern; /* PCRE2; "" only if source is metrics or steps is 0 */
	enum window_source source;
	int64_t warmup, steps; /* steps 0: the trial ends by itself */
};

struct block_limits {
	int64_t trial_s, log_bytes, work_bytes, grace_s; /* work_bytes 0: none */
};

struct block_arm {
	int64_t arm;
	struct strv launch; /* in place of the block's; empty: the block's */
	struct strv argv;
	struct kvs env;
	struct strv unset;
};

struct block_slot {
	int slot, repeat;
	size_t arm_index;
	char *kind;
};

/* A key of the recipe's own in the environment: what is read for it. */
struct block_key {
	char *name;
	char *file;          /* relative to the workdir; NULL: */
	struct strv command; /* run there */
};

struct block {
	char token[BLOCK_TOKEN_MAX + 1];
	int64_t block, attempt, deadline_us; /* deadline 0: none */
	struct block_window window;
	struct block_limits limits;
	struct strv launch;
	struct container container; /* runtime NULL: none */
	struct strv container_env;  /* names whose values must hold inside, beside the arms' */
	struct strv profiler;       /* put before the command where block_profiles() */
	char *workdir;
	struct kvs env;
	struct strv secrets, env_prefixes;
	int64_t sampler_period_ms; /* 0: no samples */
	bool sample_nodes;         /* those of the allocation's other nodes too */
	char *dcgm_url;            /* NULL: none */
	bool tells_environment;    /* each node leaves environment.json (nodeenv.h) */
	struct kvs key_env;        /* of commands of keys, over env */
	struct block_key *keys;
	size_t n_keys;
	struct block_arm *arms;
	size_t n_arms;
	struct block_slot *slots;
	size_t n_slots;
};

/* Parse n bytes; `name` is for errors. On success the caller owns *out (block_free). */
int block_parse(const char *name, const char *text, size_t n, struct block **out, struct err *e);
int block_read(const char *path, struct block **out, struct err *e);
/* Are the ranks of this slot started by a launcher, so that they may be nobody's descendants here
 * (srun)? */
bool block_launches(const struct block *b, const struct block_slot *slot);
/* What is put before the slot's command: its arm's, else the block's. */
const struct strv *block_launch(const struct block *b, const struct block_slot *slot);
/* Is the block's profiler here (looked up in `path`), and a device for it? */
bool block_profiles(const struct block *b, const char *path);
const struct block_slot *block_slot_of(const struct block *b,
				       int slot); /* NULL: none of that number */
void block_free(struct block *b);                 /* NULL is fine */
void block_freep(struct block **b);

#endif
