/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What frameworks are known by, print, and take. Part of init.h. */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/init.h"
#include "orchestrator/script/check.h"
#include "orchestrator/script/passed.h"

#define WORDS(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

enum { LOG_STEPS = 5, LOG_STEPS_MOST = 10 }; /* between two lines of the log */

WORDS(hf_extra, "--save_strategy", "no", "--report_to", "none");
WORDS(lightning_extra, "--trainer.enable_checkpointing=false");
WORDS(nanogpt_extra, "--always_save_checkpoint=False", "--wandb_log=False");
WORDS(no_extra, NULL);
WORDS(megatron_knobs, "overlap_grad_reduce", "overlap_param_gather", "use_distributed_optimizer");

static const struct init_framework megatron = {
	"Megatron-LM",  "megatron", "megatron",       "iteration\\s+\\d+/",
	"step_time_ms", true,       "--log-interval", 100,
	NULL,           no_extra,   megatron_knobs};
static const struct init_framework hf_trainer = {"the Hugging Face Trainer",
						 "hf_trainer",
						 "hf_trainer",
						 "\\{'loss':",
						 "step_time_ms",
						 true,
						 "--logging_steps",
						 500,
						 "--output_dir",
						 hf_extra,
						 no_extra};
static const struct init_framework lightning = {
	"Lightning", "lightning", "lightning", "^Epoch \\d+:.*it/s",          "step_time_ms",
	true,        NULL,        1,           "--trainer.default_root_dir=", lightning_extra,
	no_extra};
static const struct init_framework torchtitan = {"torchtitan",
						 "torchtitan",
						 "torchtitan",
						 "step:\\s*\\d+\\s+loss:",
						 "throughput_tokens_per_s_per_gpu",
						 true,
						 "--metrics.log_freq",
						 10,
						 "--job.dump_folder",
						 no_extra,
						 no_extra};
static const struct init_framework nanogpt = {
	"nanoGPT",         "nanogpt", "nanogpt",    "iter \\d+: loss", "step_time_ms", true,
	"--log_interval=", 10,        "--out_dir=", nanogpt_extra,     no_extra};
static const struct init_framework deepspeed = {"DeepSpeed",
						"deepspeed",
						"deepspeed",
						"SamplesPerSec=|steps: \\d+ loss:",
						"throughput_samples_per_s",
						false,
						NULL,
						10,
						NULL,
						no_extra,
						no_extra};
static const struct init_framework nemo = {
	"NeMo", NULL,     "nemo",  "global_step[:=] ?\\d+", "step_time_ms", true, NULL, 1,
	NULL,   no_extra, no_extra};
/* A line that has a step's number, by the words that most scripts use. */
static const struct init_framework other = {
	"no framework that fettle knows",
	NULL,
	NULL,
	"(?i)\\b(?:step|iter(?:ation)?|batch)\\b\\D{0,3}(?<step>\\d+)",
	"throughput_steps_per_s",
	false,
	NULL,
	1,
	NULL,
	no_extra,
	no_extra};

static bool has_arg(const struct sbatch_launch *l, const char *name)
{
	bool known;

	return sbatch_arg(l, name, &known) != NULL;
}

/* Some argument begins so. */
static bool has_prefix(const struct sbatch_launch *l, const char *prefix)
{
	for (size_t i = 0; i < l->args.n; i++)
		if (str_starts(l->args.v[i].text, prefix))
			return true;
	return false;
}

static bool launched_by(const struct sbatch_launch *l, const char *name)
{
	for (size_t i = 0; i < l->launchers.n; i++)
		if (str_eq(l->launchers.v[i], name))
			return true;
	return false;
}

const struct init_framework *init_framework_of(const struct sbatch_launch *l)
{
	const char *program = l->program ? fs_basename(l->program) : "";

	if (has_arg(l, "--tensor-model-parallel-size") ||
	    (has_arg(l, "--micro-batch-size") && has_arg(l, "--num-layers")))
		return &megatron;
	if (has_arg(l, "--per_device_train_batch_size") && has_arg(l, "--output_dir"))
		return &hf_trainer;
	if (has_prefix(l, "--trainer."))
		return &lightning;
	if (str_starts(program, "torchtitan") || has_arg(l, "--job.config_file"))
		return &torchtitan;
	if (has_prefix(l, "exp_manager.") || has_prefix(l, "trainer.max_steps="))
		return &nemo;
	if (str_starts(program, "train") &&
	    (has_prefix(l, "config/") || has_prefix(l, "--batch_size=")) &&
	    (has_prefix(l, "--out_dir=") || has_prefix(l, "--block_size=") ||
	     has_prefix(l, "--dtype=") || has_prefix(l, "--always_save_checkpoint=")))
		return &nanogpt;
	if (launched_by(l, "deepspeed") || has_arg(l, "--deepspeed") ||
	    has_arg(l, "--deepspeed_config"))
		return &deepspeed;
	return &other;
}

/* The number behind the option, without the `=` of its name; 0 unknown. */
static int number_of(const struct sbatch_launch *l, const char *arg)
{
	_cleanup_free_ char *name = xstrndup(arg, strcspn(arg, "="));
	bool known;
	const char *v = sbatch_arg(l, name, &known);
	int64_t n;

	return v && known && str_to_i64(v, &n) && n > 0 && n < 1000000 ? (int)n : 0;
}

int init_log_interval(const struct init *i, bool *set)
{
	const struct init_framework *f = i->framework;
	int said = f->log_arg ? number_of(i->launch, f->log_arg) : 0;

	*set = f->log_arg && (said ? said : f->log_default) > LOG_STEPS_MOST;
	if (*set)
		return LOG_STEPS;
	return said ? said : f->log_default;
}

/* -- where it saves ---------------------------------------------------------------------------- */

/* Options that say where results go, as scripts call them. */
static const char *const save_names[] = {"save",
					 "save-dir",
					 "save-path",
					 "save-folder",
					 "output",
					 "output-dir",
					 "output-path",
					 "out",
					 "out-dir",
					 "outdir",
					 "checkpoint",
					 "checkpoints",
					 "checkpoint-dir",
					 "checkpoint-path",
					 "checkpoint-folder",
					 "ckpt",
					 "ckpt-dir",
					 "ckpt-path",
					 "log-dir",
					 "logdir",
					 "logging-dir",
					 "tensorboard-dir",
					 "tensorboard-log-dir",
					 "tb-dir",
					 "run-dir",
					 "results-dir",
					 "result-dir",
					 "work-dir",
					 "exp-dir",
					 "experiment-dir",
					 "default-root-dir",
					 "trainer.default_root_dir",
					 "job.dump_folder",
					 "profile-dir",
					 "wandb-save-dir",
					 "exp_manager.exp_dir"};

/* "--save_dir=x" is "save-dir"; a name with a dot stays as it is. Heap. */
static char *plain_name(const char *arg)
{
	size_t dashes = strspn(arg, "-");
	char *name = xstrndup(arg + dashes, strcspn(arg + dashes, "="));

	if (!strchr(name, '.'))
		for (char *p = name; *p; p++)
			*p = *p == '_' ? '-' : *p;
	return name;
}

static bool says_where(const struct init *i, const char *arg)
{
	_cleanup_free_ char *name = plain_name(arg);

	if (arg[0] != '-' && !strchr(arg, '='))
		return false;
	for (size_t k = 0; k < i->o->save_args.n; k++) {
		_cleanup_free_ char *own = plain_name(i->o->save_args.v[k]);

		if (str_eq(own, name))
			return true;
	}
	for (size_t k = 0; k < ARRAY_LEN(save_names); k++)
		if (str_eq(save_names[k], name))
			return true;
	return false;
}

/* The trial's own directory, or a file of the same name in it. */
static char *own_place(const char *value)
{
	static const char *const ends[] = {".pt",  ".pth", ".ckpt", ".bin", ".safetensors",
					   ".h5",  ".npz", ".json", ".csv", ".log",
					   ".txt", ".pkl", NULL};
	const char *base = fs_basename(value);

	for (size_t k = 0; ends[k]; k++)
		if (str_ends(base, ends[k]) && !strpbrk(base, "$`\"'\\"))
			return xasprintf("\"$FETTLE_CKPT_DIR/%s\"", base);
	return xstrdup("\"$FETTLE_CKPT_DIR\"");
}

/* `--save DIR` or `--save=DIR`, as the script has it. */
static void redirect(struct init *i, const char *arg, bool joined, const char *value)
{
	_cleanup_free_ char *name = xstrndup(arg, strcspn(arg, "="));
	_cleanup_free_ char *place = own_place(value);

	if (joined) {
		strv_addf(&i->redirects, "%s=%s", name, place);
	} else {
		strv_add(&i->redirects, name);
		strv_add(&i->redirects, place);
	}
}

/* What is loaded from where it is saved would be resumed. */
static void redirect_resumed(struct init *i, const char *saved)
{
	bool known;
	const char *load = sbatch_arg(i->launch, "--load", &known);

	if (load && saved && str_eq(load, saved)) {
		strv_add(&i->redirects, "--load");
		strv_add(&i->redirects, "\"$FETTLE_CKPT_DIR\"");
	}
}

static bool redirect_said(struct init *i)
{
	const struct shell_fields *a = &i->launch->args;
	const char *saved = NULL;
	size_t n = 0;

	for (size_t k = 0; k < a->n; k++) {
		const char *text = a->v[k].text;
		const char *eq = strchr(text, '=');
		const char *value = eq ? eq + 1 : k + 1 < a->n ? a->v[k + 1].text : "";

		if (!says_where(i, text))
			continue;
		redirect(i, text, eq != NULL, value);
		saved = str_starts(text, "--save") ? value : saved;
		n++;
	}
	redirect_resumed(i, saved);
	return n > 0;
}

/* Names of --save-arg that the script does not have are added. */
static bool redirect_asked(struct init *i)
{
	for (size_t k = 0; k < i->o->save_args.n; k++) {
		const char *arg = i->o->save_args.v[k];
		_cleanup_free_ char *name = xstrndup(arg, strcspn(arg, "="));

		if (!has_arg(i->launch, name))
			redirect(i, arg, str_ends(arg, "="), "");
	}
	return i->o->save_args.n > 0;
}

static void redirect_all(struct init *i)
{
	const struct init_framework *f = i->framework;
	bool set, any = redirect_said(i);
	int every = init_log_interval(i, &set);

	any = redirect_asked(i) || any;
	if (f->save && !any)
		redirect(i, f->save, str_ends(f->save, "="), "");
	for (size_t k = 0; f->extra[k]; k++)
		strv_add(&i->redirects, f->extra[k]);
	if (set && str_ends(f->log_arg, "=")) {
		strv_addf(&i->redirects, "%s%d", f->log_arg, every);
	} else if (set) {
		strv_add(&i->redirects, f->log_arg);
		strv_addf(&i->redirects, "%d", every);
	}
	/* Megatron-LM saves nothing unless it is told where. */
	if (!any && !f->save && f != &megatron && !i->o->saves_nothing)
		init_refuse(
			i, i->launch->line,
			"no argument of %s says where it saves, so that trials would write over "
			"each other and over your results: name it with --save-arg NAME (such as "
			"--save-arg=--out), or say --saves-nothing",
			i->launch->program);
}

/* -- what it exports --------------------------------------------------------------------------- */

/* What the shell, the launcher or fettle itself needs is left to the script. */
static bool is_private(const char *name)
{
	static const char *const names[] = {
		"PATH",       "LD_LIBRARY_PATH", "PYTHONPATH",  "HOME",        "USER",       "PWD",
		"SHELL",      "TMPDIR",          "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK",
		"LOCAL_RANK", "NODE_RANK",       "PS4"};

	for (size_t k = 0; k < ARRAY_LEN(names); k++)
		if (str_eq(name, names[k]))
			return true;
	return str_starts(name, "SLURM_") || str_starts(name, "SBATCH_") ||
	       str_starts(name, "SRUN_") || str_starts(name, "FETTLE_") ||
	       str_starts(name, "APPTAINER") || str_starts(name, "SINGULARITY");
}

static void forget(struct init *i, const char *name)
{
	for (size_t k = 0; k < i->env.n; k++)
		if (str_eq(i->env.v[k].key, name))
			kvs_set(&i->env, name, NULL);
}

static void take_export(struct init *i, const struct sbatch_var *v)
{
	_cleanup_free_ char *at = xasprintf("%s line %d", v->name, v->line);

	if (check_is_secret(v->name)) {
		strv_add(&i->secrets, v->name);
		return;
	}
	/* Helpers of the script (CMD="srun ...") are no settings. */
	if (is_private(v->name) || strpbrk(v->text, " \n"))
		return;
	if (!v->value || v->conditional) {
		forget(i, v->name);
		init_say(i, v->line, "what %s is, only the shell knows: it stays with the script",
			 v->name);
		return;
	}
	kvs_set(&i->env, v->name, v->value);
	strv_add(&i->env_at, at);
}

static void take_exports(struct init *i)
{
	for (size_t k = 0; k < i->s->n_vars; k++) {
		const struct sbatch_var *v = &i->s->vars[k];

		if (v->command > i->launch->command || init_skips(i, v->line))
			continue;
		switch (v->how) {
		case SBATCH_EXPORT:
			take_export(i, v);
			break;
		case SBATCH_PREFIX:
			if (v->command == i->launch->command)
				take_export(i, v);
			break;
		case SBATCH_UNSET:
			forget(i, v->name);
			break;
		case SBATCH_ASSIGN:
			/* A new value of one that was exported before. */
			if (kvs_has(&i->env, v->name))
				take_export(i, v);
			break;
		}
	}
}

/* -- knobs ------------------------------------------------------------------------------------- */

static const struct knob *in_catalogue(const struct init *i, const char *name)
{
	for (size_t k = 0; k < i->n_catalogue; k++)
		if (str_eq(i->catalogue[k].name, name))
			return &i->catalogue[k];
	return NULL;
}

/* The knob with those of its values that are not what the script has; false: none is left. */
static bool values_but(const struct knob *k, const char *now, int64_t most, struct buf *out)
{
	size_t n = 0;

	for (size_t j = 0; j < k->values.n; j++) {
		const char *v = k->values.v[j];
		double number;
		bool plain = str_to_double(v, &number);

		if (str_eq(v, now) || (most > 0 && plain && number > (double)most))
			continue;
		if (plain || str_eq(v, "true") || str_eq(v, "false"))
			buf_printf(out, "%s%s", n++ ? ", " : "", v);
		else
			buf_printf(out, "%s\"%s\"", n++ ? ", " : "", v);
	}
	return n > 0;
}

static void propose(struct init *i, const char *name, int64_t most)
{
	const struct knob *k = in_catalogue(i, name);
	struct buf values = {0};
	const char *now;

	if (!k || k->how != HOW_ENV)
		return;
	now = k->subkey ? NULL : kvs_get(&i->env, k->target);
	if (!now && most <= 0)
		strv_addf(&i->knobs, "\"%s\"", name);
	else if (values_but(k, now, most, &values))
		strv_addf(&i->knobs, "%s = { %s }", name, values.data);
	buf_free(&values);
}

/* An argument that the campaign varies: it stands in its command, with the script's value. */
static void propose_arg(struct init *i, const char *name, const char *arg, int64_t most)
{
	const struct knob *k = in_catalogue(i, name);
	bool joined = str_ends(arg, "="), known = false;
	_cleanup_free_ char *option = xstrndup(arg, strlen(arg) - joined);
	const char *now = sbatch_arg(i->launch, option, &known);
	struct buf values = {0};

	if (!k || !now || !known || !*now)
		return;
	if (values_but(k, now, most, &values)) {
		if (joined) {
			strv_addf(&i->command, "%s%s", arg, now);
		} else {
			strv_add(&i->command, arg);
			strv_add(&i->command, now);
		}
		strv_addf(&i->knobs, "knob(\"%s\", { arg = \"%s\", values = { %s } })", name, arg,
			  values.data);
	}
	buf_free(&values);
}

/* As the script writes it: with a `=`, or as two words. */
static void propose_written(struct init *i, const char *name, const char *option, int64_t most)
{
	size_t n = strlen(option);

	for (size_t k = 0; k < i->launch->args.n; k++) {
		const char *text = i->launch->args.v[k].text;
		_cleanup_free_ char *arg = NULL;

		if (strncmp(text, option, n) != 0 || (text[n] && text[n] != '='))
			continue;
		arg = xasprintf("%s%s", option, text[n] ? "=" : "");
		propose_arg(i, name, arg, most);
		return;
	}
}

static void propose_loader(struct init *i)
{
	static const char *const
		workers[] = {"--num-workers",      "--num_workers",   "--dataloader_num_workers",
			     "--data.num_workers", "--workers",       "--n-workers",
			     "--n_workers",        "--loader-workers"},
		*const prefetch[] = {"--prefetch-factor", "--prefetch_factor",
				     "--dataloader_prefetch_factor", "--data.prefetch_factor"};

	for (size_t k = 0; k < ARRAY_LEN(workers); k++)
		propose_written(i, "num_workers", workers[k], i->cpus);
	for (size_t k = 0; k < ARRAY_LEN(prefetch); k++)
		propose_written(i, "prefetch_factor", prefetch[k], 0);
}

/* Flags of the framework that the script does not give yet. */
static void propose_flags(struct init *i)
{
	for (size_t n = 0; i->framework->knobs[n]; n++) {
		const struct knob *k = in_catalogue(i, i->framework->knobs[n]);
		const char *how = k ? kvs_get(&k->about.passed, i->framework->name) : NULL;
		struct passed p = {0};

		if (!how || !passed_parse(how, &p))
			continue;
		if (p.kind == PASSED_FLAG && !has_arg(i->launch, p.target))
			strv_addf(&i->knobs, "\"%s\"", k->name);
		passed_done(&p);
	}
}

static void propose_nccl(struct init *i)
{
	size_t before = i->knobs.n;

	propose(i, "NCCL_BUFFSIZE", 0);
	propose(i, "NCCL_MIN_CTAS", 0);
	if (i->nodes > 1) {
		propose(i, "NCCL_IB_QPS_PER_CONNECTION", 0);
		propose(i, "NCCL_CROSS_NIC", 0);
	}
	if (i->knobs.n == before)
		return;
	/* They must be acknowledged by NCCL's own lines. */
	if (kvs_get(&i->env, "NCCL_DEBUG") && !str_eq(kvs_get(&i->env, "NCCL_DEBUG"), "INFO"))
		init_say(i, i->launch->line,
			 "NCCL_DEBUG is INFO in trials: NCCL's own lines prove its settings");
	kvs_set(&i->env, "NCCL_DEBUG", "INFO");
	kvs_set(&i->env, "NCCL_DEBUG_SUBSYS", "INIT,ENV");
}

static void propose_knobs(struct init *i)
{
	propose_loader(i);
	propose_flags(i);
	propose(i, "OMP_NUM_THREADS", i->cpus);
	if (!i->gpus) {
		propose(i, "MALLOC_ARENA_MAX", 0);
		return;
	}
	propose(i, "expandable_segments", 0);
	propose_nccl(i);
}

void init_recognise(struct init *i)
{
	i->framework = init_framework_of(i->launch);
	if (i->launch->program)
		redirect_all(i);
	else
		init_refuse(i, i->launch->line,
			    "what it launches cannot be told without a shell: write the program "
			    "on the line itself");
	take_exports(i);
	/* A pipe would hold back what Python prints. */
	if (!kvs_has(&i->env, "PYTHONUNBUFFERED"))
		kvs_set(&i->env, "PYTHONUNBUFFERED", "1");
	propose_knobs(i);
}
