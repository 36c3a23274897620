/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/schema.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/bundle.h"
#include "orchestrator/script/fieldpath.h"
#include "orchestrator/script/passed.h"
#include "orchestrator/script/pattern.h"
#include "orchestrator/script/release.h"

enum {
	DEFAULT_TRIAL_S = 600,
	DEFAULT_PERIOD_MS = 200, /* five samples a second: ten in a window of 2 s */
	DEFAULT_LOG_MIB = 64,
	MIB = 1024 * 1024,
};

static const char *const mode_words[] = {"quick", "standard", "long", "strict", NULL};
static const char *const scheduler_words[] = {"local", "slurm", "slurm_cli", "fake", NULL};

#define AT(member)       offsetof(struct recipe, member)
#define IN(type, member) offsetof(struct type, member)
#define END                  \
	{                    \
		.name = NULL \
	}

/* --- workload ----------------------------------------------------------------------------- */

bool schema_env_name_valid(const char *s)
{
	if (!isalpha((unsigned char)*s) && *s != '_')
		return false;
	while (isalnum((unsigned char)*s) || *s == '_')
		s++;
	return !*s;
}

static int env_entry(const struct reader *r, const struct json *m, const char *at, struct kvs *env,
		     struct err *e)
{
	const char *name = json_key(m);
	struct buf text = {0};

	if (!schema_env_name_valid(name))
		return reader_fault(
			r, at, e,
			"\"%.60s\" is no name of an environment variable: letters, digits and _, "
			"not beginning with a digit",
			name);
	if (str_starts(name, "FETTLE_"))
		return reader_fault(r, at, e,
				    "names that begin with FETTLE_ are set by fettle itself");
	if (json_type(m) == JSON_STRING)
		buf_str(&text, json_text(m, ""));
	else if (json_type(m) == JSON_NUMBER)
		reader_number_text(json_number(m, 0), &text);
	else
		return reader_expected(r, m, at, "a text or a number", e);
	kvs_set(env, name, text.data ? text.data : "");
	buf_free(&text);
	return 0;
}

int schema_read_env(const struct reader *r, const struct json *v, const char *path, void *out,
		    struct err *e)
{
	struct kvs *env = out;
	int rc = 0;

	if (json_type(v) == JSON_ARRAY && !json_len(v))
		return 0;
	if (json_type(v) != JSON_OBJECT)
		return reader_expected(r, v, path,
				       "a table of texts by name, e.g. { OMP_NUM_THREADS = \"4\" }",
				       e);
	for (const struct json *m = json_first(v); m && !rc; m = json_next(m)) {
		_cleanup_free_ char *at = fieldpath_child(path, json_key(m));

		rc = env_entry(r, m, at, env, e);
	}
	kvs_sort(env);
	return rc;
}

static int read_pattern(const struct reader *r, const struct json *v, const char *path, void *out,
			struct err *e)
{
	struct buf why = {0};
	int rc = reader_text(r, v, path, out, e);

	if (!rc && !pattern_check(*(char **)out, false, NULL, &why))
		rc = reader_fault(r, path, e, "the pattern %s", why.data);
	buf_free(&why);
	return rc;
}

struct metrics_draft {
	char *probe, *pattern;
	bool file;
};

static const struct field metrics_fields[] = {
	{.name = "probe",
	 .type = FIELD_TEXT,
	 .offset = IN(metrics_draft, probe),
	 .doc = "the probe that reads the output (`fettle probe --list`)",
	 .example = "\"train_log\""},
	{.name = "pattern",
	 .type = FIELD_CUSTOM,
	 .read = read_pattern,
	 .kind = "PCRE2 pattern",
	 .offset = IN(metrics_draft, pattern),
	 .doc = "matched against each line of the output; a group feeds the metric of its name, "
		"`value` the "
		"objective, `step` and `rank` tell which",
	 .example = "\"step (?<step>\\\\d+) loss (?<loss>\\\\S+)\""},
	{.name = "file",
	 .type = FIELD_BOOL,
	 .offset = IN(metrics_draft, file),
	 .doc = "the workload appends lines of JSON, `{\"step\": 7, \"loss\": 0.1}`, to the file "
		"`$FETTLE_METRICS`",
	 .example = "true"},
	END,
};
static const struct schema schema_metrics = {"metrics", metrics_fields};

static int read_metrics(const struct reader *r, const struct json *v, const char *path, void *out,
			struct err *e)
{
	struct workload *w = out;
	struct metrics_draft d = {0};
	int rc = reader_table(r, &schema_metrics, v, path, &d, e);

	if (!rc && !!d.probe + !!d.pattern + d.file != 1)
		rc = reader_fault(r, path, e,
				  "expected exactly one of probe, pattern and file = true");
	if (rc) {
		free(d.probe);
		free(d.pattern);
		return rc;
	}
	w->source = d.file ? SOURCE_METRICS_FILE : d.pattern ? SOURCE_PATTERN : SOURCE_PROBE;
	free(w->probe);
	w->probe = d.probe;
	w->pattern = d.pattern;
	return 0;
}

static const struct field window_fields[] = {
	{.name = "warmup_steps",
	 .type = FIELD_INT64,
	 .min = 0,
	 .max = 1e9,
	 .offset = IN(workload, warmup_steps),
	 .unit = "steps",
	 .dflt = "0",
	 .doc = "steps that are run and not measured",
	 .example = "20"},
	{.name = "steps",
	 .type = FIELD_INT64,
	 .min = 1,
	 .max = 1e9,
	 .offset = IN(workload, steps),
	 .unit = "steps",
	 .dflt = "to its own end",
	 .doc = "steps that are measured; then the trial is ended",
	 .example = "200"},
	{.name = "pattern",
	 .type = FIELD_CUSTOM,
	 .read = read_pattern,
	 .kind = "PCRE2 pattern",
	 .offset = IN(workload, step_pattern),
	 .dflt = "none",
	 .doc = "matches once a step in the output; needed with `steps`, unless the metrics come "
		"by `file`",
	 .example = "\"^step \""},
	END,
};
static const struct schema schema_window = {"window", window_fields};

static const struct field limits_fields[] = {
	{.name = "trial_s",
	 .type = FIELD_SIZE,
	 .min = 1,
	 .max = 604800,
	 .offset = IN(workload, trial_limit_s),
	 .unit = "s",
	 .dflt = "600",
	 .doc = "a trial that runs longer is ended and counts as failed"},
	{.name = "log_mib",
	 .type = FIELD_SIZE,
	 .min = 0.001,
	 .max = 10240,
	 .scale = MIB,
	 .offset = IN(workload, log_limit_bytes),
	 .unit = "MiB",
	 .dflt = "64",
	 .doc = "output that is kept of a trial; of more, the head and the tail"},
	END,
};
static const struct schema schema_limits = {"limits", limits_fields};

/* The name of a workload file is taken out before this schema is used. */
static int read_use(const struct reader *r, const struct json *v, const char *path, void *out,
		    struct err *e)
{
	(void)out;
	return json_type(v) == JSON_STRING
		       ? 0
		       : reader_expected(r, v, path, "the name of a workload file", e);
}

static const struct field workload_fields[] = {
	{.name = "name",
	 .type = FIELD_TEXT,
	 .offset = IN(workload, name),
	 .dflt = "the campaign's name",
	 .doc = "what is measured; results of one workload are compared over time"},
	{.name = "use",
	 .type = FIELD_CUSTOM,
	 .read = read_use,
	 .kind = "text",
	 .dflt = "none",
	 .doc = "start from `workloads/NAME.lua` of the recipe path; the other fields are laid "
		"over it. "
		"`workload(\"NAME\", {...})` writes it for you",
	 .example = "\"demo\""},
	{.name = "command",
	 .type = FIELD_TEXTS,
	 .required = true,
	 .offset = IN(workload, command),
	 .doc = "program and arguments, each as its own text: no shell reads them",
	 .example = "{ \"python3\", \"train.py\" }"},
	{.name = "workdir",
	 .type = FIELD_TEXT,
	 .offset = IN(workload, workdir),
	 .dflt = "the campaign file's directory",
	 .doc = "where it runs; relative to the campaign file"},
	{.name = "env",
	 .type = FIELD_CUSTOM,
	 .read = schema_read_env,
	 .kind = "table of texts by name",
	 .offset = IN(workload, env),
	 .dflt = "none",
	 .doc = "environment, over the one captured at the first run",
	 .example = "{ OMP_NUM_THREADS = \"4\" }"},
	{.name = "secrets",
	 .type = FIELD_TEXTS,
	 .offset = IN(workload, secrets),
	 .dflt = "none",
	 .doc = "names of variables that are passed on and never stored",
	 .example = "{ \"WANDB_API_KEY\" }"},
	{.name = "container",
	 .type = FIELD_TABLE,
	 .sub = &schema_container,
	 .offset = IN(workload, container),
	 .dflt = "none",
	 .doc = "what it runs in, see [containers](#containers)",
	 .example = "{ image = \"nvcr.io#nvidia/pytorch:25.09-py3\" }"},
	{.name = "window",
	 .type = FIELD_TABLE,
	 .sub = &schema_window,
	 .dflt = "the whole run",
	 .doc = "what is measured of a trial"},
	{.name = "metrics",
	 .type = FIELD_CUSTOM,
	 .read = read_metrics,
	 .kind = "table: [metrics](#metrics)",
	 .dflt = "`{ probe = \"train_log\" }`",
	 .doc = "how its figures are read"},
	{.name = "config",
	 .type = FIELD_TEXT,
	 .offset = IN(workload, config),
	 .dflt = "none",
	 .doc = "the framework's JSON file as the command names it, relative to `workdir`: knobs "
		"that are keys of it are written to a copy",
	 .example = "\"ds_config.json\""},
	{.name = "framework",
	 .type = FIELD_CHOICE,
	 .words = passed_frameworks,
	 .offset = IN(workload, framework),
	 .dflt = "none: a knob's own `arg` or `env`",
	 .doc = "what trains: knobs of the catalogue are passed its way",
	 .example = "\"hf_trainer\""},
	{.name = "versions",
	 .type = FIELD_CUSTOM,
	 .read = release_read_running,
	 .kind = "table of texts by component",
	 .offset = IN(workload, versions),
	 .dflt = "not known",
	 .doc = "what it runs on: a knob that this version does not have is refused, and its "
		"defaults are this version's",
	 .example = "{ nccl = \"2.18.3\", torch = \"2.4\" }"},
	{.name = "limits",
	 .type = FIELD_TABLE,
	 .sub = &schema_limits,
	 .dflt = "see there",
	 .doc = "bounds of a trial"},
	{.name = "model",
	 .type = FIELD_TABLE,
	 .sub = &schema_model,
	 .offset = IN(workload, model),
	 .dflt = "none",
	 .doc = "what is trained: gives `mfu_pct` and `hfu_pct` where the log has none"},
	{.name = "scaling",
	 .type = FIELD_TABLE,
	 .sub = &schema_scaling,
	 .offset = IN(workload, scaling),
	 .dflt = "none",
	 .doc = "the same training on fewer devices: gives `scaling_efficiency_pct`"},
	END,
};
const struct schema schema_workload = {"workload", workload_fields};

/* --- blocks -----------------------------------------------------------------------------------
 */

static const struct field blocks_fields[] = {
	{.name = "aa",
	 .type = FIELD_INT,
	 .min = 0,
	 .max = 1000,
	 .offset = AT(aa_blocks),
	 .dflt = "quick 4, standard 6, long 8, strict 8",
	 .doc = "blocks of the baseline against itself, 2 or more; 0: none, so no noise is known "
		"beforehand and no rule names a bottleneck"},
	{.name = "final",
	 .type = FIELD_INT,
	 .min = 0,
	 .max = 1000,
	 .offset = AT(final_blocks),
	 .dflt = "quick 4, standard 8, long 12, strict 12",
	 .doc = "blocks of the last measurement of the fix, 2 or more; 0: none, and no fix"},
	{.name = "soak",
	 .type = FIELD_INT,
	 .min = 0,
	 .max = 100000,
	 .offset = AT(soak_trials),
	 .dflt = "quick 3, standard 6, long 10, strict 10",
	 .doc = "trials of the fix in a row that look for drift; 0: none"},
	END,
};
static const struct schema schema_blocks = {"blocks", blocks_fields};

/* --- campaign ----------------------------------------------------------------------------- */

/* Workload and knobs need files of the recipe path: plan.c reads them. */
static int read_elsewhere(const struct reader *r, const struct json *v, const char *path, void *out,
			  struct err *e)
{
	(void)r, (void)v, (void)path, (void)out, (void)e;
	return 0;
}

static const struct field campaign_fields[] = {
	{.name = "name",
	 .type = FIELD_TEXT,
	 .required = true,
	 .offset = AT(name),
	 .doc = "letters, digits, `.`, `_` and `-`",
	 .example = "\"imagenet-loader\""},
	{.name = "question",
	 .type = FIELD_TEXT,
	 .offset = AT(question),
	 .dflt = "none",
	 .doc = "what you want to know; stands at the top of the report"},
	{.name = "workload",
	 .type = FIELD_CUSTOM,
	 .read = read_elsewhere,
	 .required = true,
	 .kind = "table: [workload](#workload)",
	 .doc = "the command whose speed matters",
	 .example = "{ command = { \"python3\", \"train.py\" } }"},
	{.name = "resources",
	 .type = FIELD_TABLE,
	 .sub = &schema_resources,
	 .offset = AT(resources),
	 .dflt = "the scheduler's",
	 .doc = "what a trial runs on"},
	{.name = "objective",
	 .type = FIELD_CUSTOM,
	 .read = schema_read_objective,
	 .required = true,
	 .kind = "name of a metric, or table: [objective](#objective)",
	 .doc = "the metric that is to become better",
	 .example = "\"throughput_samples_per_s\""},
	{.name = "target",
	 .type = FIELD_NUMBER,
	 .offset = AT(target),
	 .unit = "the objective's",
	 .doc = "what the objective should reach",
	 .example = "1500"},
	{.name = "second_objective",
	 .type = FIELD_CUSTOM,
	 .read = schema_read_second,
	 .kind = "name of a metric, or table: [objective](#objective)",
	 .doc = "a second one: the report shows both for each configuration, and which of them "
		"no other beats in both; verdicts rest on the first",
	 .example = "\"mem_peak_reserved_gib\""},
	{.name = "constraints",
	 .type = FIELD_CUSTOM,
	 .read = schema_read_constraints,
	 .kind = "table by metric: [constraint](#constraint)",
	 .doc = "absolute limits: an arm that breaks one is rejected like one that breaks a guard",
	 .example = "{ mfu_pct = { at_least = 40 } }"},
	{.name = "guards",
	 .type = FIELD_CUSTOM,
	 .read = schema_read_guards,
	 .kind = "table by metric: a margin, or [guard](#guard)",
	 .dflt = "failures only",
	 .doc = "metrics that must not become worse",
	 .example = "{ loss = 0.01 }"},
	{.name = "knobs",
	 .type = FIELD_CUSTOM,
	 .read = read_elsewhere,
	 .kind = "list: [knobs](#knob)",
	 .dflt = "none",
	 .doc = "what may be changed",
	 .example = "{ \"pin_memory\", num_workers = { 2, 4 } }"},
	{.name = "budget",
	 .type = FIELD_TABLE,
	 .sub = &schema_budget,
	 .offset = AT(budget),
	 .dflt = "no bound",
	 .doc = "when to stop"},
	{.name = "mode",
	 .type = FIELD_WORD,
	 .words = mode_words,
	 .offset = AT(mode),
	 .dflt = "`\"standard\"`",
	 .doc = "how hard to look: see [modes](#modes)"},
	{.name = "rounds",
	 .type = FIELD_INT,
	 .min = 1,
	 .max = 100,
	 .offset = AT(rounds),
	 .dflt = "quick 1, standard 3, long 5, strict 3",
	 .doc = "most passes from hypothesis to verdict; alpha is shared among them"},
	{.name = "alpha",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 0.5,
	 .above = true,
	 .offset = AT(alpha),
	 .dflt = "0.05; strict 0.01",
	 .doc = "chance of any false win in the whole campaign"},
	{.name = "min_effect",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 1,
	 .above = true,
	 .offset = AT(min_effect),
	 .unit = "share",
	 .dflt = "0.01",
	 .doc = "the smallest gain that is worth a change"},
	{.name = "blocks",
	 .type = FIELD_TABLE,
	 .sub = &schema_blocks,
	 .dflt = "by mode",
	 .doc = "fixed numbers of blocks"},
	{.name = "converge",
	 .type = FIELD_TABLE,
	 .sub = &schema_converge,
	 .dflt = "see there",
	 .doc = "the long run of a fix that is accepted, pending convergence (`fettle converge`)"},
	{.name = "ladder",
	 .type = FIELD_TABLE,
	 .sub = &schema_ladder,
	 .offset = AT(ladder),
	 .dflt = "none",
	 .doc = "measure how the workload scales, instead of tuning it"},
	{.name = "repeats",
	 .type = FIELD_INT,
	 .min = 1,
	 .max = 100,
	 .offset = AT(repeats),
	 .dflt = "1",
	 .doc = "runs of an arm in a block"},
	{.name = "blocks_per_allocation",
	 .type = FIELD_INT,
	 .min = 1,
	 .max = 1000,
	 .offset = AT(blocks_per_allocation),
	 .dflt = "1",
	 .doc = "blocks of the baseline, of validation, ablation and the fix that share a job, as far "
		"as its time limit allows: they count as one, so each such stage runs so many times "
		"more blocks; screens share jobs by themselves; a job of scheduler local is one "
		"block"},
	{.name = "warmup_trials",
	 .type = FIELD_INT,
	 .min = 0,
	 .max = 100,
	 .offset = AT(warmup_trials),
	 .dflt = "1",
	 .doc = "trials at the start of an allocation that are not counted"},
	{.name = "quality",
	 .type = FIELD_TABLE,
	 .sub = &schema_quality,
	 .offset = AT(quality),
	 .dflt = "see there",
	 .doc = "what makes an attempt void or is noted, judged without knowing the arms"},
	{.name = "samplers",
	 .type = FIELD_TABLE,
	 .sub = &schema_samplers,
	 .offset = AT(samplers),
	 .dflt = "see there",
	 .doc = "what is sampled beside a trial"},
	{.name = "agent",
	 .type = FIELD_TABLE,
	 .sub = &schema_agent,
	 .offset = AT(agent),
	 .dflt = "see there",
	 .doc = "how fettle-agent comes to the nodes of a cluster"},
	{.name = "profile",
	 .type = FIELD_CUSTOM,
	 .read = schema_read_profile,
	 .kind = "true or false",
	 .offset = AT(profile),
	 .dflt = "where the command is a Python program",
	 .doc = "one untimed trial of the baseline and of each new incumbent under a profiler: nsys "
		"where there is one, else PyTorch's own; the rules read what it shows"},
	{.name = "schedule",
	 .type = FIELD_CUSTOM,
	 .read = schema_read_schedule,
	 .kind = "`\"night\"`, `\"week\"`, or table: [schedule](#schedule)",
	 .offset = AT(schedule),
	 .dflt = "left alone; a canary each night",
	 .doc = "when `fettle nightly` runs this file",
	 .example = "\"week\""},
	{.name = "canary",
	 .type = FIELD_CUSTOM,
	 .read = schema_read_canary,
	 .kind = "true, or table: [canary](#canary)",
	 .offset = AT(canary),
	 .dflt = "none",
	 .doc = "measure one configuration night after night, instead of tuning it"},
	{.name = "fingerprint",
	 .type = FIELD_CUSTOM,
	 .read = schema_read_fingerprint,
	 .kind = "table by key: [fingerprint](#fingerprint)",
	 .dflt = "none",
	 .doc = "what else belongs to the environment that a result holds for",
	 .example = "{ toolchain = { file = \"/sw/current/VERSION\" } }"},
	{.name = "thresholds",
	 .type = FIELD_CUSTOM,
	 .read = schema_read_thresholds,
	 .kind = "table of numbers by rule",
	 .offset = AT(thresholds),
	 .dflt = "the rules' own",
	 .doc = "limits above which [rules](#rule) speak",
	 .example = "{ data_wait = 0.2 }"},
	{.name = "seed",
	 .type = FIELD_INT64,
	 .min = 1,
	 .max = 9007199254740992.0,
	 .offset = AT(seed),
	 .dflt = "from the campaign's uuid",
	 .doc = "of the random order of arms"},
	{.name = "scheduler",
	 .type = FIELD_CHOICE,
	 .words = scheduler_words,
	 .offset = AT(scheduler),
	 .dflt = "the command line's, else `\"local\"`",
	 .doc = "where trials run"},
	END,
};
const struct schema schema_campaign = {"campaign", campaign_fields};

struct recipe *schema_defaults(void)
{
	struct recipe *r = xcalloc(1, sizeof(*r));

	r->target = NAN;
	r->mode = MODE_STANDARD;
	r->alpha = NAN;
	r->min_effect = NAN;
	r->repeats = 1;
	r->blocks_per_allocation = 1;
	r->warmup_trials = 1;
	r->budget.stuck_s = DEFAULT_STUCK_S;
	r->samplers = (struct samplers){.period_ms = DEFAULT_PERIOD_MS, .every_node = true};
	r->agent.dir = xstrdup("/tmp");
	r->quality = schema_quality_defaults();
	r->converge = (struct converge){.seeds = 3, .margin = 0.01};
	r->ladder.max_loss = 0.10;
	r->schedule.every = CADENCE_NONE;
	r->soak_trials = BLOCKS_UNSAID;
	r->aa_blocks = BLOCKS_UNSAID;
	r->final_blocks = BLOCKS_UNSAID;
	r->workload.source = SOURCE_PROBE;
	r->workload.probe = xstrdup("train_log");
	r->workload.trial_limit_s = DEFAULT_TRIAL_S;
	r->workload.log_limit_bytes = (int64_t)DEFAULT_LOG_MIB * MIB;
	r->workload.model.dtype = FLOPS_BF16;
	return r;
}

const struct schema *const schema_all[] = {
	&schema_campaign,    &schema_workload,
	&schema_container,   &schema_window,
	&schema_metrics,     &schema_limits,
	&schema_model,       &schema_scaling,
	&schema_resources,   &schema_objective,
	&schema_guard,       &schema_constraint,
	&schema_knob,        &schema_proof,
	&schema_requires,    &schema_bundle,
	&schema_budget,      &schema_blocks,
	&schema_quality,     &schema_samplers,
	&schema_agent,       &schema_converge,
	&schema_ladder,      &schema_rung,
	&schema_schedule,    &schema_canary,
	&schema_fingerprint, &schema_site,
	&schema_caps,        &schema_user,
	&schema_rule,        &schema_finding,
	&schema_expectation, NULL,
};
