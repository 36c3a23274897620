/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A tuning log made by hand: an accepted knob, one that is refuted by its guard, one that is
 * invalid, one that is screened out and one that is not tried; a fix, faults, events. Texts hold
 * what may break a format: column marks, backticks, markup, escapes of terminals, bytes that are no
 * UTF-8. Everything is static: nothing is to be freed.
 */
#ifndef FETTLE_TESTS_UNIT_REPORT_SAMPLE_H
#define FETTLE_TESTS_UNIT_REPORT_SAMPLE_H

#include <math.h>

#include "orchestrator/report/report.h"

/* Structs own their texts as char *; these are static, and nobody changes or frees them. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wincompatible-pointer-types-discards-qualifiers"
#else
#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers"
#endif

#define SAMPLE_T0 1795960000000000 /* 2026-11-29T13:46:40Z */
#define SAMPLE_S  1000000

/* The words of a string vector or a list of pairs that owns nothing. */
#define WORDS(...)                                                    \
	{                                                             \
		.v = (char *[]){__VA_ARGS__, NULL},                   \
		.n = sizeof((char *[]){__VA_ARGS__}) / sizeof(char *) \
	}
#define PAIRS(...)                                                          \
	{                                                                   \
		.v = (struct kv[]){__VA_ARGS__},                            \
		.n = sizeof((struct kv[]){__VA_ARGS__}) / sizeof(struct kv) \
	}

static struct knob sample_knobs[] = {
	{.name = "num_workers",
	 .summary = "loader processes",
	 .how = HOW_ARG,
	 .target = "--num-workers",
	 .default_value = "0",
	 .values = WORDS("2", "4"),
	 .proof = {.level = PROOF_EFFECTIVE, .metric = "tree_procs", .metric_expect = "up"}},
	{.name = "alloc_conf",
	 .how = HOW_ENV,
	 .target = "PYTORCH_CUDA_ALLOC_CONF",
	 .subkey = "max_split_size_mb",
	 .values = WORDS("128"),
	 .proof = {.level = PROOF_ACKNOWLEDGED}},
	{.name = "batch_size",
	 .how = HOW_ARG,
	 .target = "--batch-size",
	 .cls = CLASS_OPTIMISATION,
	 .default_value = "32",
	 .values = WORDS("64"),
	 .proof = {.level = PROOF_DELIVERED},
	 .user_defined = true},
};

static struct guard sample_guards[] = {{.metric = "loss",
					.stat = "last",
					.margin = 0.01,
					.at_most = NAN,
					.at_least = NAN,
					.better = BETTER_DOWN}};

static struct recipe sample_recipe = {
	.name = "demo",
	.question = "Does <b>anything</b> help | at all?",
	.workload = {.name = "tiny cnn",
		     .command = WORDS("python3", "train.py", "--data", "it's here/$HOME"),
		     .workdir = "/data/my job",
		     .secrets = WORDS("WANDB_API_KEY"),
		     .warmup_steps = 20,
		     .steps = 200},
	.resources = {.nodes = 2,
		      .tasks_per_node = 4,
		      .cpus_per_task = 8,
		      .gpus_per_node = 4,
		      .mem_mib_per_node = 65536,
		      .partition = "gpu",
		      .account = "team a",
		      .launcher = "srun"},
	.objective = "throughput_samples_per_s",
	.objective_stat = "mean",
	.better = BETTER_UP,
	.target = 1200,
	.guards = sample_guards,
	.n_guards = 1,
	.knobs = sample_knobs,
	.n_knobs = 3,
	.min_effect = 0.01,
	.repeats = 1,
};

static struct report_arm sample_aa[] = {
	{"default A", "default", 4, 0, 1000.5, 12.25, NULL, 0},
	{"default B", "default", 4, 1, 1004, 10.5, NULL, 0},
};
static struct report_arm sample_screen[] = {
	{"default", "default", 2, 0, 1001, 11, NULL, 0},
	{"num_workers=2", "num_workers=2", 2, 0, 1290, 9, NULL, 0},
	{"num_workers=4", "num_workers=4", 2, 0, 990, 30, NULL, 0},
	{"alloc_conf=128", "alloc_conf=128", 2, 0, 1000, NAN, NULL, 0},
	{"batch_size=64", "batch_size=64", 2, 2, NAN, NAN, NULL, 0},
};
static struct report_value sample_before[] = {{0, 990}, {1, 1000}, {2, 1010}, {3, 1000}};
static struct report_value sample_after[] = {{0, 1270}, {1, 1280}, {2, 1290}, {3, 1280}};
static struct report_arm sample_confirm[] = {
	{"default", "default", 4, 0, 1000, 10, sample_before, 4},
	{"num_workers=2", "num_workers=2", 4, 0, 1280, 10, sample_after, 4},
};
static struct report_arm sample_final[] = {
	{"default", "default", 4, 0, 1000, 10, sample_before, 4},
	{"num_workers=2", "num_workers=2", 4, 0, 1275, 10, sample_after, 4},
};
static struct report_profile sample_profiles[] = {
	{1, "default", {0.6, 0.125, 0.025, 0.2, 0.05}, true, {55, 50}},
	{2, "num_workers=2", {0.8, 0.125, 0.025, 0, 0.05}, true, {60, 40}},
};
static struct run_row sample_runs[] = {
	{1, 101, 0, 1, ATTEMPT_VALID, NULL, SAMPLE_T0, SAMPLE_T0 + 60 * SAMPLE_S},
	{1, 102, 1, 1, ATTEMPT_VOID, "<node> failed", SAMPLE_T0 + 60 * SAMPLE_S,
	 SAMPLE_T0 + 90 * SAMPLE_S},
	{1, 103, 1, 2, ATTEMPT_VALID, NULL, SAMPLE_T0 + 100 * SAMPLE_S, SAMPLE_T0 + 160 * SAMPLE_S},
	{3, 104, 0, 1, ATTEMPT_VALID, NULL, SAMPLE_T0 + 200 * SAMPLE_S, SAMPLE_T0 + 300 * SAMPLE_S},
	{3, 105, 1, 1, ATTEMPT_PLANNED, NULL, 0, 0},
};
static struct place_row sample_places[] = {{101, "n1"}, {102, "n1"}, {103, "n2"}, {104, "n2"}};
static struct report_steps sample_steps[] = {
	{0, 0, 9, 10, 12, 14}, {0, 1, 7, 8, 9, 10}, {1, 0, 9, 10, 13, 15}, {1, 1, 7, 8, 9, 11}};
static struct report_stage sample_stages[] = {
	{.id = 1,
	 .kind = STAGE_AA,
	 .seq = 1,
	 .blocks_planned = 4,
	 .blocks_valid = 4,
	 .blocks_void = 1,
	 .note = "noise of a run within a block 1.10 %",
	 .dirs = WORDS("blocks/1.1", "blocks/2.2", "blocks/3.1", "blocks/4.1"),
	 .arms = sample_aa,
	 .n_arms = 2},
	{.id = 2,
	 .kind = STAGE_SCREEN,
	 .seq = 2,
	 .round = 1,
	 .blocks_planned = 2,
	 .blocks_valid = 2,
	 .note = "best of the screen: num_workers=2",
	 .dirs = WORDS("blocks/5.1", "blocks/6.1"),
	 .arms = sample_screen,
	 .n_arms = 5},
	{.id = 3,
	 .kind = STAGE_CONFIRM,
	 .hypothesis = 11,
	 .seq = 3,
	 .round = 1,
	 .alpha_share = 0.025,
	 .blocks_planned = 8,
	 .blocks_valid = 4,
	 .note = "accepted",
	 .dirs = WORDS("blocks/7.1", "blocks/8.1", "blocks/9.1", "blocks/10.1"),
	 .arms = sample_confirm,
	 .n_arms = 2,
	 .steps = sample_steps,
	 .n_steps = 4},
	{.id = 4,
	 .kind = STAGE_FINAL,
	 .seq = 4,
	 .blocks_planned = 4,
	 .blocks_valid = 4,
	 .note = "validated",
	 .dirs = WORDS("blocks/11.1"),
	 .arms = sample_final,
	 .n_arms = 2},
};

static struct verdict_row sample_looks[] = {
	{.id = 1,
	 .stage = 3,
	 .hypothesis = 11,
	 .look = 1,
	 .n = 3,
	 .outcome = "continue",
	 .est = 0.25,
	 .lo = -0.05,
	 .hi = 0.64,
	 .df = 2,
	 .p = 0.021,
	 .p_star = 0.0066,
	 .sign_flip_p = NAN,
	 .at_us = SAMPLE_T0 + 60 * SAMPLE_S},
	{.id = 2,
	 .stage = 3,
	 .hypothesis = 11,
	 .look = 2,
	 .n = 4,
	 .final_look = true,
	 .outcome = "accepted",
	 .est = 0.28,
	 .lo = 0.21,
	 .hi = 0.354,
	 .df = 3,
	 .p = 0.0004,
	 .p_star = 0.0066,
	 .sign_flip_p = NAN,
	 .inputs_hash = "00112233445566778899aabbccddeeff",
	 .at_us = SAMPLE_T0 + 90 * SAMPLE_S},
};
static struct verdict_row sample_invalid[] = {
	{.id = 3,
	 .stage = 2,
	 .hypothesis = 13,
	 .final_look = true,
	 .outcome = "invalid",
	 .reason = "not acknowledged: nothing in `t03/out` says | that it was read",
	 .est = NAN,
	 .lo = NAN,
	 .hi = NAN,
	 .df = NAN,
	 .p = NAN,
	 .p_star = NAN,
	 .sign_flip_p = NAN,
	 .at_us = SAMPLE_T0 + 30 * SAMPLE_S},
};
static struct verdict_row sample_guarded[] = {
	{.id = 4,
	 .stage = 3,
	 .hypothesis = 14,
	 .look = 3,
	 .n = 5,
	 .final_look = true,
	 .outcome = "rejected: guard",
	 .reason = "loss is 4.0 % worse, at most 1.0 % was allowed",
	 .est = 0.11,
	 .lo = 0.05,
	 .hi = 0.17,
	 .df = 4,
	 .p = 0.002,
	 .p_star = 0.0066,
	 .alpha_spent = 0.05,
	 .sign_flip_p = 0.0625,
	 .effect_unproved = true,
	 .inputs_hash = "ffeeddccbbaa99887766554433221100",
	 .at_us = SAMPLE_T0 + 200 * SAMPLE_S},
};
static struct report_effect sample_effects[] = {
	{"cpu_iowait_pct", {0, 3, {NAN, NAN, NAN, 4}, 1}},
	{"data_wait_ratio", {0.3, 0.02, {-0.9333, -0.95, -0.91, 4}, -1}},
	{"loss", {2.5, 2.5, {0, 0, 0, 4}, 0}},
	{"throughput_samples_per_s", {1000, 1280, {0.28, 0.25, 0.31, 4}, 1}},
	{"tree_procs", {1, 3, {2, 2, 2, 4}, 1}},
	{"trial_wall_s", {15, 15.1, {0.0067, -0.02, 0.03, 4}, 0}},
};
static struct shown_row sample_shown[] = {
	{"argv", "2", PROOF_DELIVERED, 32},
	{"ack.num_workers", "workers: 2", PROOF_ACKNOWLEDGED, 4},
};

static struct report_hypothesis sample_hyps[] = {
	{.row = {.id = 11,
		 .round = 1,
		 .rank = 1,
		 .knob = "num_workers",
		 .value = "2",
		 .from_value = "0",
		 .proof = PROOF_EFFECTIVE,
		 .bottleneck = BOTTLENECK_STORAGE,
		 .evidence = "a step waits 30.0 % of its time for data",
		 .gain = 0.42,
		 .ceiling = 0.428,
		 .state = HYP_TESTED},
	 .has_verdict = true,
	 .looks = sample_looks,
	 .n_looks = 2,
	 .screen_mean = 0.29,
	 .effects = {.v = sample_effects, .n = 6, .trial_s = 120.5},
	 .stage = 2,
	 .proofs = sample_shown,
	 .n_proofs = 2},
	{.row = {.id = 12,
		 .round = 1,
		 .rank = 2,
		 .knob = "num_workers",
		 .value = "4",
		 .from_value = "0",
		 .proof = PROOF_EFFECTIVE,
		 .bottleneck = BOTTLENECK_STORAGE,
		 .gain = NAN,
		 .ceiling = NAN,
		 .state = HYP_SCREENED_OUT,
		 .reason = "screen mean -1.10 %"},
	 .screen_mean = -0.011,
	 .stage = -1},
	{.row = {.id = 13,
		 .round = 1,
		 .rank = 3,
		 .knob = "alloc_conf",
		 .value = "128",
		 .proof = PROOF_ACKNOWLEDGED,
		 .bottleneck = BOTTLENECK_MEMORY,
		 .gain = NAN,
		 .ceiling = NAN,
		 .state = HYP_TESTED},
	 .has_verdict = true,
	 .looks = sample_invalid,
	 .n_looks = 1,
	 .screen_mean = NAN,
	 .stage = 1},
	{.row = {.id = 14,
		 .round = 1,
		 .rank = 4,
		 .knob = "batch_size",
		 .value = "64",
		 .from_value = "32",
		 .cls = CLASS_OPTIMISATION,
		 .proof = PROOF_DELIVERED,
		 .user_defined = true,
		 .bottleneck = BOTTLENECK_COMPUTE,
		 .evidence = "the device is *busy*",
		 .gain = 0.1,
		 .ceiling = NAN,
		 .state = HYP_TESTED},
	 .has_verdict = true,
	 .looks = sample_guarded,
	 .n_looks = 1,
	 .screen_mean = 0.1,
	 .effects = {.trial_s = 150},
	 .stage = 2},
	{.row = {.id = 15,
		 .round = 1,
		 .rank = 5,
		 .knob = "num_workers",
		 .value = "64",
		 .from_value = "0",
		 .proof = PROOF_EFFECTIVE,
		 .gain = NAN,
		 .ceiling = NAN,
		 .state = HYP_LINTED_OUT,
		 .reason = "64 workers on 8 CPUs per rank: they would take turns"},
	 .screen_mean = NAN,
	 .stage = -1},
};

static struct finding_row sample_findings[] = {
	{1, "storage", "the step waits 30.0 % of its time for data", "data_wait", 0.3},
	{1, "host", "CPUs are 80 % busy", "cpu_busy", NAN},
};
static struct signal_row sample_signals[] = {
	{"cpu_user_pct", "mean", 80.25, 1.5, 4},
	{"data_wait_ratio", "mean", 0.3, 0.01, 4},
	{"data_wait_ratio", "p95", 0.41, 0.02, 4},
	{"loss", "last", 2.5, 0, 4},
	{"loss", "mean", 2.75, 0, 4},
	{"throughput_samples_per_s", "mean", 1000.5, 12.25, 4},
	{"trial_wall_s", "value", 15.25, 0.25, 4},
};
static struct fault_row sample_faults[] = {
	{.stage = "aa",
	 .arm = "default B",
	 .state = "failed",
	 .reason = "killed by signal 9 \x1b[31mred\x1b[0m \xff",
	 .log_path = "blocks/2.1/t01/out",
	 .stage_seq = 1,
	 .block_index = 1,
	 .slot = 1,
	 .attempt = 1},
	{.stage = "aa",
	 .arm = "",
	 .state = "lost",
	 .reason = "node_fail",
	 .log_path = "blocks/2.1/agent.out",
	 .stage_seq = 1,
	 .block_index = 1,
	 .slot = -1,
	 .attempt = 1},
};
static struct guard_row sample_guard_rows[] = {
	{4, 0, "loss", "last", "margin", "samples", 5, 2.6, 0.04, 0.03, 0.05, 0.01, "violated"},
	{4, 0, "mem_peak_reserved_gib", "max", "at_most", "step", 5, 61.5, -0.12, -0.13, -0.11, 70,
	 "passed"},
};
static struct guard_row sample_fix_guards[] = {
	{0, 4, "loss", "last", "margin", "step", 4, 2.51, 0.004, -0.009, 0.017, 0.01, "unsettled"},
	{0, 4, "trial_failed", "mean", "failures", "step", 4, 0, 0, NAN, NAN, NAN, "passed"},
};
static struct quality_row sample_quality[] = {
	{"confirm", "void", 1, 1, 2, QUALITY_FAIL_SLOW, QUALITY_VOID, 0.31, 0.1,
	 ("steps of slot 2 are 31 % slower from step 71 of the window on")},
	{"confirm", "valid", 2, 1, -1, QUALITY_STEADY, QUALITY_NOTE, -0.05, 0.03,
	 ("the window is not steady: in 2 of 2 trials the last third of the steps is 5.0 % "
	  "faster than the first; raise window.warmup_steps")},
};
static struct event_row sample_events[] = {
	{1, SAMPLE_T0 + 5 * SAMPLE_S, "lost", "block 2, attempt 1: node_fail"},
	{2, SAMPLE_T0 + 6 * SAMPLE_S, "resumed", "by process 99 on n1\nsecond line"},
};
static struct host_row sample_hosts[] = {
	{"n1", "s0.s1", 6, 0, 7, NAN, 0.19},
	{"n2", "s0.s2", 5, 8, 15, -0.42, 0.21},
};
static struct account_row sample_account[] = {
	{"timed trials", 11, 1500},
	{"warm-up trials", 11, 400},
	{"between trials", 11, 300},
	{"jobs that ended: node_fail", 1, 200},
};
static struct source_row sample_sources[] = {
	{"campaign", "/home/me/demo.lua", NULL, "0123456789abcdef0123456789abcdef"},
	{"rules/default", "/usr/share/fettle/recipes/rules/default.lua", NULL,
	 "fedcba9876543210fedcba9876543210"},
};

static struct config sample_fix = {.settings = PAIRS({"num_workers", "2"}),
				   .argv = WORDS("python3", "train.py", "--data", "it's here/$HOME",
						 "--num-workers", "2"),
				   .env = PAIRS({"OMP_NUM_THREADS", "4"}),
				   .hash = "abcdef0123456789abcdef0123456789"};
static struct kvs sample_effective = PAIRS({"num_workers", "0"});

/* A copy of its own, so that a test may change members of the report itself. */
static struct ablation_row sample_ablations[] = {
	{.stage = 3,
	 .arm = 31,
	 .knobs = "alloc_conf",
	 .n = 4,
	 .est = 0.001,
	 .lo = -0.004,
	 .hi = 0.006,
	 .outcome = ABLATION_DROPPED},
	{.stage = 3,
	 .arm = 32,
	 .knobs = "num_workers",
	 .n = 4,
	 .est = -0.21,
	 .lo = -0.24,
	 .hi = -0.18,
	 .outcome = ABLATION_PAYS},
};

static struct node_row sample_nodes[] = {
	{.stage = 1, .kind = STAGE_AA, .node = "n1", .blocks = 3},
	{.stage = 1, .kind = STAGE_AA, .node = "n_2", .blocks = 1},
	{.stage = 4, .kind = STAGE_FINAL, .node = "n3", .blocks = 4},
};

static inline struct report sample_report(void)
{
	struct report r = {
		.campaign = {.id = 7,
			     .name = "demo \"night\" <1>",
			     .recipe_path = "/home/me/demo.lua",
			     .recipe_hash = "00000000000000001111111111111111",
			     .scheduler = "slurm",
			     .user = "ada",
			     .state = CAMPAIGN_DONE,
			     .mode = MODE_QUICK,
			     .seed = UINT64_MAX,
			     .alpha = 0.05,
			     .confirm_max = 2,
			     .created_us = SAMPLE_T0,
			     .ended_us = SAMPLE_T0 + 600 * SAMPLE_S},
		.recipe = &sample_recipe,
		.workspace = "/scratch/me/fettle-workspace",
		.unit = "samples/s",
		.stages = sample_stages,
		.n_stages = 4,
		.hyps = sample_hyps,
		.n_hyps = 5,
		.findings = sample_findings,
		.n_findings = 2,
		.signals = sample_signals,
		.n_signals = 7,
		.faults = sample_faults,
		.n_faults = 2,
		.quality = sample_quality,
		.n_quality = 2,
		.guards = sample_guard_rows,
		.n_guards = 2,
		.events = sample_events,
		.n_events = 2,
		.sources = sample_sources,
		.n_sources = 2,
		.cost = {40, 55, 12, 1, 12, 900.5, 2400},
		.account = sample_account,
		.n_account = 4,
		.consumed = {11, 12, 2200, 2 << 20, 5500000, 2200,
			     "cpu=64,mem=512000,node=2,gres/gpu=16"},
		.hosts = sample_hosts,
		.n_hosts = 2,
		.has_fix = true,
		.fix = {.state = "validated",
			.reason =
				"guard loss (last): worse by +0.40 % [-0.90, 1.70], margin 1.00 % "
				"(not settled)",
			.est = 0.275,
			.lo = 0.24,
			.hi = 0.31,
			.n = 4,
			.fingerprint = "{\"host\":\"n1\",\"cpus\":32}",
			.soak_drift = -0.002,
			.at_us = SAMPLE_T0 + 500 * SAMPLE_S},
		.fix_guards = sample_fix_guards,
		.n_fix_guards = 2,
		.fix_config = sample_fix,
		.fix_effects = {.v = sample_effects, .n = 3},
		.environment = "{\"cpus\":\"32\",\"host\":\"n1\"}",
		.base_mean = 1002.25,
		.noise = 0.011,
		.smallest = 0.034,
		.aa_effect = 0.0035,
		.aa_lo = -0.012,
		.aa_hi = 0.019,
		.final_mean = 1275,
		.target_lo = 1262,
		.target_hi = 1288,
		.ablations = sample_ablations,
		.n_ablations = 2,
		.nodes = sample_nodes,
		.n_nodes = 3,
		.profiles = sample_profiles,
		.n_profiles = 2,
		.runs = sample_runs,
		.n_runs = 5,
		.places = sample_places,
		.n_places = 4,
		.effective = sample_effective,
		.alpha = {.total = 0.05, .stages = 2, .used = 2, .spent = 0.05},
		.target = TARGET_MET,
	};

	sample_hyps[0].verdict = sample_looks[1];
	sample_hyps[2].verdict = sample_invalid[0];
	sample_hyps[3].verdict = sample_guarded[0];
	return r;
}

#endif
