/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A whole script for sbatch, with the resources of the campaign. */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/recommend.h"
#include "orchestrator/report/text.h"

extern const struct recommend_form form_sbatch;

/* One option. sbatch splits the line at blanks, takes quotes off and reads `\` as an escape (its
 * get_argument()); `#` outside of quotes begins a comment. A control character has no place in any
 * of them, and a newline would end the line. */
static int option(struct buf *out, const char *name, const char *value, struct err *e)
{
	if (!value || !*value)
		return 0;
	for (const char *p = value; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return err_set(
				e, ERR_STATE,
				"--%s of the campaign holds a control character: it cannot stand "
				"in an sbatch script",
				name);
	buf_printf(out, "#SBATCH --%s=", name);
	if (value[strcspn(value, " \"'\\#")] == '\0') {
		buf_printf(out, "%s\n", value);
		return 0;
	}
	buf_char(out, '"');
	for (const char *p = value; *p; p++) {
		if (*p == '"' || *p == '\\')
			buf_char(out, '\\');
		buf_char(out, *p);
	}
	buf_str(out, "\"\n");
	return 0;
}

static void number(struct buf *out, const char *name, int64_t v, const char *suffix)
{
	if (v > 0)
		buf_printf(out, "#SBATCH --%s=%lld%s\n", name, (long long)v, suffix);
}

/* The job's name in squeue: what Slurm takes without quoting. */
static void job_name(struct buf *out, const char *name)
{
	buf_str(out, "#SBATCH --job-name=");
	for (const char *p = name; *p && p - name < 64; p++) {
		bool fine = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
			    (*p >= '0' && *p <= '9') || strchr("._-", *p);

		buf_char(out, fine ? *p : '_');
	}
	buf_char(out, '\n');
}

static int options(const struct report *r, struct buf *out, struct err *e)
{
	const struct resources *s = &r->recipe->resources;
	const struct {
		const char *name, *value;
	} texts[] = {{"partition", s->partition},
		     {"account", s->account},
		     {"qos", s->qos},
		     {"reservation", s->reservation},
		     {"constraint", s->constraint},
		     {"nodelist", s->nodelist},
		     {"exclude", s->exclude},
		     {"chdir", r->recipe->workload.workdir}};

	job_name(out, r->campaign.name);
	number(out, "nodes", s->nodes > 0 ? s->nodes : 1, "");
	number(out, "ntasks-per-node", s->tasks_per_node, "");
	number(out, "cpus-per-task", s->cpus_per_task, "");
	number(out, "gpus-per-node", s->gpus_per_node, "");
	number(out, "mem", s->mem_mib_per_node, "M");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		int rc = option(out, texts[i].name, texts[i].value, e);

		if (rc < 0)
			return rc;
	}
	for (const struct job_option *k = job_option_table; k->key; k++) {
		_cleanup_free_ char *value = job_option_value(&s->options, k);
		int rc = option(out, k->sbatch, value, e);

		if (rc < 0)
			return rc;
	}
	buf_str(out, "#SBATCH --exclusive\n");
	buf_str(out,
		"# The trials ran on nodes of their own. Without a --time the partition's default "
		"holds:\n"
		"# #SBATCH --time=12:00:00\n");
	return 0;
}

static void secrets(const struct report *r, struct buf *out)
{
	const struct strv *s = &r->recipe->workload.secrets;

	for (size_t i = 0; i < s->n; i++)
		if (text_is_name(s->v[i]))
			buf_printf(out,
				   ": \"${%s:?is a secret of the workload: export it before "
				   "sbatch}\"\n",
				   s->v[i]);
}

static int write(const struct report *r, struct strv *left, struct buf *out, struct err *e)
{
	struct strv none = {0};
	int rc;

	(void)left; /* it holds all: keys stand in a file that it names */
	if (recommend_is_copy(r))
		return err_set(e, ERR_USAGE,
			       "the campaign ran %s, a copy of your script for its trials: --patch "
			       "SCRIPT puts the fix into the script itself, --as env gives its "
			       "variables",
			       r->recipe->workload.command.v[0]);
	buf_str(out, "#!/bin/bash\n");
	if ((rc = options(r, out, e)) < 0)
		return rc;
	buf_str(out, "#\n");
	recommend_comment_head(r, &none, "# ", 0, out);
	buf_char(out, '\n');
	secrets(r, out);
	recommend_config_keys(r, out);
	recommend_variables(r, "export ", out);
	buf_str(out, "\nexec ");
	recommend_command(r, true, out);
	buf_char(out, '\n');
	return 0;
}

const struct recommend_form form_sbatch = {
	.name = "sbatch",
	.summary = "a whole sbatch script with the campaign's resources",
	.write = write};
