/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job script as lint rules see it. */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/script/lint_input.h"
#include "orchestrator/script/sbatch.h"

/* --- options -------------------------------------------------------------------------------------
 */

static void add_options(struct lint_input *in, const struct sbatch *s)
{
	struct json *all = json_object();

	for (size_t i = 0; i < s->n_options; i++) {
		const struct sbatch_option *o = &s->options[i];
		struct json *v = json_object();

		if (o->value)
			json_set_text(v, "value", o->value);
		json_set_text(v, "file", s->name);
		json_set_number(v, "line", o->line);
		json_set(all, o->name, v);
	}
	lint_input_json_set(in, "sbatch", all);
}

/* The number of an option, as far as nothing told it before. */
static void add_count(struct lint_input *in, const struct sbatch *s, const char *name,
		      const char *key)
{
	const struct sbatch_option *o = sbatch_option(s, name, 0);
	int64_t v;

	if (o && o->value && !lint_input_has(in, key) && str_to_i64(o->value, &v) && v > 0)
		lint_input_number(in, key, (double)v);
}

/* GPUs of a node: "8", "h100:8", "gpu:8", "gpu:h100:8,nvme:1". */
static void add_gpus(struct lint_input *in, const struct sbatch *s)
{
	const struct sbatch_option *o = sbatch_option(s, "gpus-per-node", 0);
	bool gres = !o;
	const char *p;
	int64_t v;

	if (!o)
		o = sbatch_option(s, "gres", 0);
	if (!o || !o->value || lint_input_has(in, "gpus_per_node"))
		return;
	p = gres ? strstr(o->value, "gpu:") : o->value;
	if (p) {
		_cleanup_free_ char *item = xstrndup(p, strcspn(p, ","));
		const char *colon = strrchr(item, ':');

		if (str_to_i64(colon ? colon + 1 : item, &v) && v > 0)
			lint_input_number(in, "gpus_per_node", (double)v);
	}
}

/* "module load nccl/2.18.3" */
static void add_version(struct lint_input *in, const struct sbatch *s, const char *module,
			const char *key)
{
	for (size_t i = 0; i < s->n_modules && !lint_input_has(in, key); i++) {
		const char *p = strstr(s->modules[i].text, module);
		size_t n = p ? strspn(p + strlen(module), "0123456789.") : 0;

		if (n) {
			_cleanup_free_ char *version = xstrndup(p + strlen(module), n);

			lint_input_text(in, key, version);
		}
	}
}

/* --- variables and commands ----------------------------------------------------------------------
 */

static void add_variable(struct lint_input *in, const struct sbatch *s, const struct sbatch_var *v)
{
	static const char *const layers[] = {
		[SBATCH_EXPORT] = "export",
		[SBATCH_ASSIGN] = "shell",
		[SBATCH_UNSET] = "export",
		[SBATCH_PREFIX] = "prefix",
	};
	bool unset = v->how == SBATCH_UNSET;

	lint_input_setting(in,
			   &(struct lint_setting){.name = v->name,
						  .value = unset ? NULL : v->value,
						  .text = v->text,
						  .dynamic = !unset && !v->value,
						  .conditional = v->conditional,
						  .used = lint_expanded(s->text, v->name, v->line),
						  .file = s->name,
						  .line = v->line,
						  .layer = layers[v->how]});
}

/* NAME=VALUE of a launcher's option, or several with commas between them. */
static void add_given(struct lint_input *in, const struct sbatch *s, int line, const char *text)
{
	while (*text) {
		size_t name = shell_name_length(text), all = strcspn(text, ",");
		_cleanup_free_ char *key = xstrndup(text, name), *value = NULL;

		if (!name || text[name] != '=')
			return;
		value = xstrndup(text + name + 1, all - name - 1);
		lint_input_setting(in, &(struct lint_setting){.name = key,
							      .value = strchr(value, '$') ? NULL
											  : value,
							      .text = value,
							      .dynamic = strchr(value, '$'),
							      .file = s->name,
							      .line = line,
							      .layer = "command"});
		text += all + (text[all] == ',');
	}
}

/* What launchers set for their ranks: mpirun -x, apptainer --env, docker -e. (srun's --export is
 * among the script's variables.) */
static void add_launcher_settings(struct lint_input *in, const struct sbatch *s,
				  const struct sbatch_launch *l)
{
	static const char *const options[] = {"-x", "--env", "-e", NULL};

	for (size_t i = 0; i < l->options.n; i++)
		for (size_t k = 0; options[k]; k++) {
			const char *word = l->options.v[i].text;
			size_t n = strlen(options[k]);

			if (str_eq(word, options[k]) && i + 1 < l->options.n)
				add_given(in, s, l->line, l->options.v[i + 1].text);
			else if (str_starts(word, options[k]) && word[n] == '=')
				add_given(in, s, l->line, word + n + 1);
		}
}

/* NAME=VALUE before a command inside of `bash -c TEXT`, and export in it. */
static void add_inner_settings(struct lint_input *in, const struct sbatch *s,
			       const struct sbatch_launch *l)
{
	const struct shell_words *words = &s->body.v[l->command].words;
	_cleanup_free_ char *text = NULL;
	struct shell inner = {0};

	if (!l->inner_word || l->inner_word >= words->n)
		return;
	text = shell_literal(words->v[l->inner_word].text, &s->values);
	shell_read(text ? text : "", text ? strlen(text) : 0, l->line, &inner);
	for (size_t i = 0; i < inner.n; i++) {
		const struct shell_command *c = &inner.v[i];
		bool export = c->words.n && str_eq(c->words.v[0].text, "export");

		for (size_t j = 0; j < c->n_assigns && c->words.n; j++) {
			_cleanup_free_ char *given = xasprintf("%s=%s", c->assigns[j].name,
							       c->assigns[j].value.text);

			add_given(in, s, c->line, given);
		}
		for (size_t j = 1; export && j < c->words.n; j++)
			add_given(in, s, c->line, c->words.v[j].text);
	}
	shell_free(&inner);
}

enum {
	JSON_FILES_MAX = 8,            /* of one script */
	JSON_FILE_BYTES_MAX = 1 << 20, /* a configuration of DeepSpeed has 4 KiB */
};

/* Files of JSON that the program is given, as far as they are here: x.json, by the word. */
static void add_json_files(struct json *all, const struct sbatch *s, const struct strv *words)
{
	const char *slash = strrchr(s->name, '/');
	_cleanup_free_ char *dir = slash ? xstrndup(s->name, (size_t)(slash - s->name))
					 : xstrdup(".");

	for (size_t i = 0; i < words->n && json_len(all) < JSON_FILES_MAX; i++) {
		const char *equals = strchr(words->v[i], '=');
		const char *word = equals ? equals + 1 : words->v[i];
		_cleanup_free_ char *path = *word == '/' ? xstrdup(word) : fs_join(dir, word);
		struct json *value;

		if (!str_ends(word, ".json") || json_get(all, word) ||
		    json_read_file(path, JSON_FILE_BYTES_MAX, &value, NULL) < 0)
			continue;
		json_set(all, word, value);
	}
}

static void add_launch(struct lint_input *in, struct json *files, const struct sbatch *s,
		       const struct sbatch_launch *l)
{
	struct strv words = {0};
	size_t program;

	for (size_t i = 0; i < l->options.n; i++)
		strv_add(&words, l->options.v[i].text);
	program = words.n;
	if (l->program)
		strv_add(&words, l->program);
	for (size_t i = 0; i < l->args.n; i++)
		strv_add(&words, l->args.v[i].text);
	lint_input_command_at(in, &words, program, s->name, l->line);
	add_json_files(files, s, &words);
	add_launcher_settings(in, s, l);
	add_inner_settings(in, s, l);
	strv_free(&words);
}

static void add_notes(struct lint_input *in, const struct sbatch *s)
{
	static const char *const kinds[] = {
		[SBATCH_OFF] = "off",         [SBATCH_IGNORED] = "ignored",
		[SBATCH_UNKNOWN] = "unknown", [SBATCH_UNEXPANDED] = "unexpanded",
		[SBATCH_OPAQUE] = "opaque",
	};
	struct json *list = json_array();

	for (size_t i = 0; i < s->n_notes; i++) {
		struct json *o = json_object();

		json_set_text(o, "kind", kinds[s->notes[i].kind]);
		json_set_text(o, "text", s->notes[i].text);
		json_set_text(o, "file", s->name);
		json_set_number(o, "line", s->notes[i].line);
		json_add(list, o);
	}
	lint_input_json_set(in, "notes", list);
}

void lint_input_script(struct lint_input *in, const struct sbatch *s)
{
	struct json *files = json_object();

	add_options(in, s);
	add_count(in, s, "nodes", "nodes");
	add_count(in, s, "ntasks-per-node", "ranks_per_node");
	add_count(in, s, "cpus-per-task", "cpus_per_task");
	add_gpus(in, s);
	add_version(in, s, "nccl/", "nccl");
	add_version(in, s, "pytorch/", "torch");
	add_version(in, s, "slurm/", "slurm");
	for (size_t i = 0; i < s->n_vars; i++)
		add_variable(in, s, &s->vars[i]);
	for (size_t i = 0; i < s->n_launches; i++)
		if (!s->launches[i].errand)
			add_launch(in, files, s, &s->launches[i]);
	lint_input_json_set(in, "json", files);
	add_notes(in, s);
}
