/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines that start the work. Each launcher eats its own options; what is left is the next launcher
 * or the program. Part of sbatch.h.
 */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/script/sbatch_priv.h"

enum { CHAIN_MAX = 16 }; /* srun, apptainer, bash -c, env, numactl, torchrun, ... */

/* How a launcher's command line is read. `values` are the options that take the next word when they
 * have no `=`, `flags` those that do not; what is in neither takes one when it begins with `--`
 * and `long_values`. */
struct launcher {
	const char *name;
	const char *const *flags;  /* or, when values is there, unused */
	const char *const *values; /* NULL: every option that is no flag */
	const char *const *pairs;  /* take two words */
	int skip;      /* words after the options that are not the program: timeout's duration */
	bool launches; /* what it starts is the work (env only prepares) */
};

#define WORDS(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

WORDS(no_words, "");
WORDS(srun_flags, "-l", "--label", "-u", "--unbuffered", "-v", "--verbose", "-vv", "-vvv", "-q",
      "-Q", "--quiet", "-K", "--kill-on-bad-exit", "-k", "--no-kill", "-E", "--preserve-env", "-X",
      "--disable-status", "-I", "--immediate", "-O", "--overcommit", "-s", "--oversubscribe", "-H",
      "--hold", "-Z", "--no-allocate", "--exclusive", "--exact", "--overlap", "--pty",
      "--contiguous", "--whole", "--multi-prog", "--interactive", "--spread-job", "--reboot",
      "--use-min-nodes", "--propagate", "--container-writable", "--container-readonly",
      "--no-container-mount-home", "--container-mount-home", "--container-remap-root",
      "--no-container-remap-root", "--no-container-entrypoint", "--container-entrypoint",
      "--send-libs");
WORDS(mpirun_values, "-n", "-np", "--np", "-c", "-N", "-npernode", "--npernode", "-ppn",
      "-hostfile", "--hostfile", "-machinefile", "--machinefile", "-f", "-host", "--host", "-H",
      "-hosts", "-x", "-genvlist", "-envlist", "-bind-to", "--bind-to", "-map-by", "--map-by",
      "-rank-by", "--rank-by", "-wdir", "--wdir", "-wd", "-path", "--path", "-am", "-prefix",
      "--prefix", "--output-filename", "-output-filename", "--timeout", "-launcher", "-rmk",
      "--report-uri", "--stdin", "--cpu-set", "--ntasks-per-node", "-iface");
WORDS(mpirun_pairs, "-mca", "--mca", "-gmca", "--gmca", "-genv", "-env", "--prtemca", "--pmixmca",
      "--gpmixmca");
WORDS(torchrun_flags, "--standalone", "-m", "--module", "--no-python", "--no_python", "--run-path",
      "--run_path", "--use-env", "--use_env");
WORDS(accelerate_values, "--config_file", "--config-file", "--num_processes", "--num-processes",
      "--num_machines", "--num-machines", "--machine_rank", "--machine-rank", "--main_process_ip",
      "--main-process-ip", "--main_process_port", "--main-process-port", "--mixed_precision",
      "--mixed-precision", "--num_cpu_threads_per_process", "--num-cpu-threads-per-process",
      "--dynamo_backend", "--dynamo-backend", "--dynamo_mode", "--dynamo-mode", "--rdzv_backend",
      "--rdzv-backend", "--rdzv_conf", "--rdzv-conf", "--max_restarts", "--max-restarts",
      "--monitor_interval", "--role", "--log_dir", "--tee", "-t", "--gpu_ids", "--gpu-ids",
      "--deepspeed_config_file", "--zero_stage", "--offload_optimizer_device",
      "--offload_param_device", "--offload_optimizer_nvme_path", "--offload_param_nvme_path",
      "--gradient_accumulation_steps", "--gradient_clipping", "--zero3_init_flag",
      "--zero3_save_16bit_model", "--deepspeed_hostfile", "--deepspeed_exclusion_filter",
      "--deepspeed_inclusion_filter", "--deepspeed_multinode_launcher",
      "--deepspeed_moe_layer_cls_names", "--fsdp_version", "--fsdp_offload_params",
      "--fsdp_min_num_params", "--fsdp_sharding_strategy", "--fsdp_reshard_after_forward",
      "--fsdp_auto_wrap_policy", "--fsdp_transformer_layer_cls_to_wrap", "--fsdp_backward_prefetch",
      "--fsdp_state_dict_type", "--fsdp_forward_prefetch", "--fsdp_use_orig_params",
      "--fsdp_cpu_ram_efficient_loading", "--fsdp_sync_module_states",
      "--fsdp_activation_checkpointing", "--megatron_lm_tp_degree", "--megatron_lm_pp_degree",
      "--megatron_lm_num_micro_batches", "--main_training_function", "--same_network_ip", "--env",
      "--ipex", "--enable_cpu_affinity");
WORDS(deepspeed_flags, "--no_ssh_check", "--no_ssh", "--no_local_rank", "--no_python", "--module",
      "--force_multi", "--save_pid", "--bind_cores_to_rank", "--elastic_training");
WORDS(apptainer_flags, "--nv", "--nvccli", "--rocm", "-e", "--cleanenv", "-c", "--contain", "-C",
      "--containall", "--no-home", "-w", "--writable", "--writable-tmpfs", "-f", "--fakeroot",
      "--no-privs", "--keep-privs", "-i", "--ipc", "-p", "--pid", "-u", "--userns", "--uts", "-n",
      "--net", "--disable-cache", "--compat", "--no-init", "--no-umask", "--unsquash", "--sif-fuse",
      "--no-eval", "--no-setgroups", "-q", "-s", "-d");
WORDS(enroot_flags, "-r", "--root", "-w", "--rw");
WORDS(env_values, "-u", "--unset", "-C", "--chdir", "-S");
WORDS(timeout_values, "-k", "--kill-after", "-s", "--signal");
WORDS(numactl_values, "-m", "--membind", "-N", "--cpunodebind", "-C", "--physcpubind", "-i",
      "--interleave", "-p", "--preferred");
WORDS(taskset_values, "-c", "--cpu-list");
WORDS(nice_values, "-n", "--adjustment", "-c", "--class", "-o", "-e", "-i", "--output", "--error",
      "--input");
WORDS(time_values, "-f", "--format", "-o", "--output");
WORDS(nsys_flags, "-h", "--help");
WORDS(conda_values, "-n", "--name", "-p", "--prefix", "--cwd");
WORDS(uv_values, "--with", "--project", "--directory", "--env-file", "-p", "--python", "--extra",
      "--group");
WORDS(python_values, "-X", "-W", "--check-hash-based-pycs");

static const struct launcher launchers[] = {
	{"srun", srun_flags, NULL, NULL, 0, true},
	{"mpirun", NULL, mpirun_values, mpirun_pairs, 0, true},
	{"mpiexec", NULL, mpirun_values, mpirun_pairs, 0, true},
	{"mpiexec.hydra", NULL, mpirun_values, mpirun_pairs, 0, true},
	{"orterun", NULL, mpirun_values, mpirun_pairs, 0, true},
	{"prterun", NULL, mpirun_values, mpirun_pairs, 0, true},
	{"torchrun", torchrun_flags, NULL, NULL, 0, true},
	{"accelerate", NULL, accelerate_values, NULL, 0, true},
	{"deepspeed", deepspeed_flags, NULL, NULL, 0, true},
	{"apptainer", apptainer_flags, NULL, NULL, 1, true},
	{"singularity", apptainer_flags, NULL, NULL, 1, true},
	{"enroot", enroot_flags, NULL, NULL, 1, true},
	{"env", NULL, env_values, NULL, 0, false},
	{"timeout", NULL, timeout_values, NULL, 1, false},
	{"numactl", NULL, numactl_values, NULL, 0, false},
	{"taskset", NULL, taskset_values, NULL, 0, false},
	{"nice", NULL, nice_values, NULL, 0, false},
	{"ionice", NULL, nice_values, NULL, 0, false},
	{"stdbuf", NULL, nice_values, NULL, 0, false},
	{"time", NULL, time_values, NULL, 0, false},
	{"nohup", NULL, no_words, NULL, 0, false},
	{"setsid", NULL, no_words, NULL, 0, false},
	{"exec", NULL, no_words, NULL, 0, false},
	{"command", NULL, no_words, NULL, 0, false},
	{"nsys", nsys_flags, NULL, NULL, 0, false},
	{"conda", NULL, conda_values, NULL, 0, false},
	{"mamba", NULL, conda_values, NULL, 0, false},
	{"micromamba", NULL, conda_values, NULL, 0, false},
	{"uv", NULL, uv_values, NULL, 0, false},
	{"poetry", NULL, no_words, NULL, 0, false},
	{"pixi", NULL, no_words, NULL, 0, false},
};

static bool is_one_of(const char *word, const char *const *list)
{
	for (; list && *list; list++)
		if (str_eq(word, *list))
			return true;
	return false;
}

struct chain {
	const struct shell_fields *f;
	size_t at;
	struct sbatch_launch *l;
	bool launches; /* something that makes it the work was seen */
};

static const char *field(const struct chain *c, size_t i)
{
	return i < c->f->n ? c->f->v[i].text : "";
}

static const struct launcher *find_launcher(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(launchers); i++)
		if (str_eq(launchers[i].name, name))
			return &launchers[i];
	return NULL;
}

static void fields_copy(struct shell_fields *to, const struct shell_fields *from, size_t begin,
			size_t end)
{
	for (size_t i = begin; i < end && i < from->n; i++) {
		to->v = xgrow(to->v, to->n, &to->cap, sizeof *to->v);
		to->v[to->n] = from->v[i];
		to->v[to->n++].text = xstrdup(from->v[i].text);
	}
}

/* Does the option at i take the word after it? A single letter with its value behind it does not.
 */
static size_t option_words(const struct launcher *l, const char *option)
{
	bool glued = option[0] == '-' && option[1] != '-' && option[1] && option[2];

	if (strchr(option, '='))
		return 1;
	if (is_one_of(option, l->pairs))
		return 3;
	if (l->values)
		return is_one_of(option, l->values) ? 2 : 1;
	if (is_one_of(option, l->flags) || glued)
		return 1;
	return 2;
}

static bool is_assignment(const char *s)
{
	size_t n = shell_name_length(s);

	return n > 0 && s[n] == '=';
}

/* accelerate launch, apptainer exec, nsys profile: the word that says what is to be done. Returns
 * false when it is something else (apptainer build). */
static bool skip_verb(struct chain *c, const char *name)
{
	static const char *const verbs[][4] = {{"accelerate", "launch"},
					       {"apptainer", "exec", "run"},
					       {"singularity", "exec", "run"},
					       {"enroot", "start"},
					       {"nsys", "profile", "launch"},
					       {"conda", "run"},
					       {"mamba", "run"},
					       {"micromamba", "run"},
					       {"uv", "run"},
					       {"poetry", "run"},
					       {"pixi", "run"}};

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		if (!str_eq(verbs[i][0], name))
			continue;
		while (str_starts(field(c, c->at), "-")) /* global options: apptainer -q exec */
			c->at++;
		for (size_t k = 1; k < 4 && verbs[i][k]; k++)
			if (str_eq(verbs[i][k], field(c, c->at))) {
				c->at++;
				return true;
			}
		return false;
	}
	return true;
}

/* After the launcher's name: over its verb, its options, and what else is its own. */
static bool skip_launcher(struct chain *c, const struct launcher *l)
{
	bool variables = str_eq(l->name, "env");
	int skip = l->skip;

	if (!skip_verb(c, l->name))
		return false;
	while (c->at < c->f->n) {
		const char *w = field(c, c->at);

		if (str_eq(w, "--")) {
			c->at++;
			break;
		}
		if (str_eq(l->name, "torchrun") || str_eq(l->name, "deepspeed") ||
		    str_eq(l->name, "accelerate"))
			c->l->module = c->l->module || str_eq(w, "-m") || str_eq(w, "--module");
		if (w[0] == '-' && w[1])
			c->at += option_words(l, w);
		else if (variables && is_assignment(w))
			c->at++;
		else
			break;
	}
	/* taskset has its mask in front unless -c gave a list. */
	if (str_eq(l->name, "taskset") && c->at > 0 && str_starts(field(c, c->at), "0x"))
		skip = 1;
	c->at += (size_t)skip;
	return true;
}

static bool is_python(const char *name)
{
	return str_starts(name, "python") && name[strspn(name + 6, "0123456789.") + 6] == '\0';
}

/* What a module stands for when it is a launcher. */
static const char *launcher_of_module(const char *module)
{
	static const struct {
		const char *module, *launcher;
	} known[] = {{"torch.distributed.run", "torchrun"},
		     {"torch.distributed.launch", "torchrun"},
		     {"torch.distributed.elastic.run", "torchrun"},
		     {"accelerate.commands.launch", "accelerate"},
		     {"deepspeed.launcher.runner", "deepspeed"}};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_eq(known[i].module, module))
			return known[i].launcher;
	return NULL;
}

enum next { NEXT_AGAIN, NEXT_DONE, NEXT_NOTHING };

static void program_is(struct chain *c, size_t at)
{
	struct sbatch_launch *l = c->l;

	if (at < c->f->n && !strpbrk(fs_basename(field(c, at)), "$`"))
		l->program = xstrdup(field(c, at));
	l->program_word = at < c->f->n ? c->f->v[at].word : 0;
	fields_copy(&l->args, c->f, at + 1, c->f->n);
}

/* After "python": a script, -m module, or -c text. */
static enum next read_python(struct chain *c)
{
	const struct launcher options = {"python", NULL, python_values, NULL, 0, true};
	const char *known;

	while (c->at < c->f->n && field(c, c->at)[0] == '-' && !str_eq(field(c, c->at), "-m") &&
	       !str_eq(field(c, c->at), "-c") && field(c, c->at)[1])
		c->at += option_words(&options, field(c, c->at));
	if (c->at >= c->f->n || str_eq(field(c, c->at), "-"))
		return NEXT_NOTHING; /* reads its standard input */
	if (str_eq(field(c, c->at), "-c")) {
		c->l->errand = true;
		return NEXT_DONE;
	}
	if (!str_eq(field(c, c->at), "-m")) {
		program_is(c, c->at);
		return NEXT_DONE;
	}
	known = launcher_of_module(field(c, c->at + 1));
	c->at += 2;
	if (!known) {
		static const char *const errands[] = {
			"pip", "venv", "http.server", "json.tool", "torch.utils.collect_env", NULL};

		c->l->module = true;
		program_is(c, c->at - 1);
		c->l->errand = is_one_of(c->l->program, errands);
		return NEXT_DONE;
	}
	strv_add(&c->l->launchers, known);
	if (str_eq(known, "accelerate")) {
		/* The module itself is the verb. */
		const struct launcher *l = find_launcher(known);

		while (c->at < c->f->n && field(c, c->at)[0] == '-')
			c->at += option_words(l, field(c, c->at));
		return NEXT_AGAIN;
	}
	return skip_launcher(c, find_launcher(known)) ? NEXT_AGAIN : NEXT_NOTHING;
}

static enum next read_chain(struct chain *c);

/* The last command of `bash -c TEXT` is what is launched. */
static enum next read_inner(struct chain *c, size_t text)
{
	struct shell inner = {0};
	struct shell_fields f = {0};
	enum next rc = NEXT_DONE;

	if (c->l->inner_word)
		c->l->nested = true;
	else
		c->l->inner_word = c->f->v[text].word;
	shell_read(field(c, text), strlen(field(c, text)), c->l->line, &inner);
	for (size_t i = inner.n; i-- > 0;) {
		struct chain in = {.f = &f, .l = c->l, .launches = c->launches};

		if (inner.v[i].words.n == 0)
			continue;
		shell_expand_words(&inner.v[i].words, 0, NULL, &f);
		rc = read_chain(&in);
		c->launches = c->launches || in.launches;
		fields_copy(&c->l->options, &f, 0, in.at);
		break;
	}
	shell_fields_free(&f);
	shell_free(&inner);
	return rc;
}

static enum next read_shell(struct chain *c)
{
	while (field(c, c->at)[0] == '-' && !strchr(field(c, c->at), 'c'))
		c->at++;
	if (field(c, c->at)[0] == '-' && c->at + 1 < c->f->n) {
		strv_add(&c->l->launchers, "bash -c");
		return read_inner(c, c->at + 1);
	}
	if (c->at >= c->f->n)
		return NEXT_NOTHING;
	strv_add(&c->l->launchers, "bash");
	program_is(c, c->at);
	return NEXT_DONE;
}

/* Programs that a launcher runs for the sake of the script, not of the work. */
static bool is_errand(const char *name)
{
	WORDS(errands, "hostname", "nvidia-smi", "mkdir", "rm", "cp", "mv", "tar", "rsync", "ls",
	      "df", "du", "free", "lscpu", "echo", "cat", "date", "sleep", "true", "env",
	      "printenv", "rocm-smi", "ibstat", "ibv_devinfo", "dmesg", "chmod", "touch", "ping",
	      "find", "which", "test", "uname", "ulimit", "sbcast", "wget", "curl", "unzip",
	      "all_reduce_perf", "dcgmi", "pkill", "killall", "docker");

	return is_one_of(name, errands);
}

static enum next read_program(struct chain *c)
{
	const char *name = fs_basename(field(c, c->at));
	const struct launcher *l = find_launcher(name);
	bool interpreted;

	if (l) {
		c->at++;
		if (l->launches) {
			strv_add(&c->l->launchers, name);
			c->launches = true;
		}
		return skip_launcher(c, l) ? NEXT_AGAIN : NEXT_NOTHING;
	}
	interpreted = c->l->launchers.n > 0 && (str_eq(name, "bash") || str_eq(name, "sh"));
	if (interpreted) {
		c->at++;
		return read_shell(c);
	}
	if (is_python(name)) {
		c->at++;
		c->launches = true;
		strv_add(&c->l->launchers, "python");
		return read_python(c);
	}
	c->l->errand = is_errand(name);
	c->launches = c->launches || str_ends(name, ".py");
	program_is(c, c->at);
	return NEXT_DONE;
}

static enum next read_chain(struct chain *c)
{
	for (int i = 0; i < CHAIN_MAX && c->at < c->f->n; i++) {
		enum next n = read_program(c);

		if (n != NEXT_AGAIN)
			return n;
	}
	return NEXT_NOTHING;
}

static void launch_done(struct sbatch_launch *l)
{
	strv_free(&l->launchers);
	free(l->program);
	shell_fields_free(&l->options);
	shell_fields_free(&l->args);
}

void sbatch_read_launch(struct sbatch *s, size_t which, const struct shell_vars *values)
{
	const struct shell_command *cmd = &s->body.v[which];
	struct sbatch_launch l = {.command = which, .line = cmd->line, .last_line = cmd->last_line};
	struct shell_fields f = {0};
	struct chain c = {.f = &f, .l = &l};

	shell_expand_words(&cmd->words, 0, values, &f);
	if (read_chain(&c) == NEXT_NOTHING || !c.launches) {
		for (size_t i = 0; c.launches && i < cmd->n_redirects; i++)
			if (cmd->redirects[i].body)
				sbatch_notef(s, SBATCH_OPAQUE, cmd->line,
					     "what is launched stands in a here-document: it is "
					     "not looked into");
		launch_done(&l);
		shell_fields_free(&f);
		return;
	}
	if (!l.inner_word) {
		size_t end = f.n - (l.args.n < f.n ? l.args.n : f.n);

		fields_copy(&l.options, &f, 0, end);
	} else {
		struct shell_fields inner = l.options;

		l.options = (struct shell_fields){0};
		fields_copy(&l.options, &f, 0, c.at);
		fields_copy(&l.options, &inner, 0, inner.n);
		shell_fields_free(&inner);
	}
	shell_fields_free(&f);
	s->launches = xgrow(s->launches, s->n_launches, &s->cap_launches, sizeof *s->launches);
	s->launches[s->n_launches++] = l;
}

const char *sbatch_arg(const struct sbatch_launch *l, const char *name, bool *known)
{
	size_t n = strlen(name);

	for (size_t i = l->args.n; i-- > 0;) {
		const struct shell_field *f = &l->args.v[i];
		bool next = i + 1 < l->args.n && !str_starts(l->args.v[i + 1].text, "--");

		if (strncmp(f->text, name, n) != 0 || (f->text[n] && f->text[n] != '='))
			continue;
		*known = f->text[n] ? f->known : !next || l->args.v[i + 1].known;
		return f->text[n] ? f->text + n + 1 : next ? l->args.v[i + 1].text : "";
	}
	*known = true;
	return NULL;
}
