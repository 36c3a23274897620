/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/slurm/options.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/sched/slurm_limits.h"

void options_free(struct options *o)
{
	free(o->tres_per_node);
	free(o->tres_per_job);
	free(o->tres_per_task);
	free(o->cpus_per_tres);
	free(o->mem_per_tres);
	*o = (struct options){0};
}

/* libslurm wants char * and changes nothing. */
static char *text_of(const struct json *job, const char *key)
{
	const char *s = json_text(json_get(job, key), NULL);

	return s && *s ? (char *)(uintptr_t)s : NULL;
}

/* --- generic resources ------------------------------------------------------------------ */

void options_put_gres(const char *list, struct buf *out)
{
	while (*list) {
		size_t n = strcspn(list, ",");

		if (str_starts(list, "gres:") || str_starts(list, "gres/")) {
			list += strlen("gres/");
			n -= strlen("gres/");
		}
		if (n > 0)
			buf_printf(out, "%s" COMPAT_GRES_PREFIX "%.*s", out->len ? "," : "", (int)n,
				   list);
		list += n;
		list += *list == ',';
	}
}

/* "gres:gpu:VALUE" for a value as "8" or "h200:8"; NULL for none. */
static char *gpus_text(const char *value)
{
	return value ? xasprintf(COMPAT_GRES_PREFIX "gpu:%s", value) : NULL;
}

static char *gpus_number(int64_t value)
{
	return value > 0 ? xasprintf(COMPAT_GRES_PREFIX "gpu:%lld", (long long)value) : NULL;
}

static void set_tres(struct options *o, const struct json *job, job_desc_msg_t *d)
{
	int64_t gpus = json_i64(json_get(job, "gpus_per_node"), 0);
	const char *gres = text_of(job, "gres");
	struct buf node = {0};

	if (gpus > 0)
		buf_printf(&node, COMPAT_GRES_PREFIX "gpu:%lld", (long long)gpus);
	if (gres)
		options_put_gres(gres, &node);
	o->tres_per_node = node.len ? buf_take(&node) : NULL;
	o->tres_per_job = gpus_text(text_of(job, "gpus"));
	o->tres_per_task = gpus_text(text_of(job, "gpus_per_task"));
	o->cpus_per_tres = gpus_number(json_i64(json_get(job, "cpus_per_gpu"), 0));
	o->mem_per_tres = gpus_number(json_i64(json_get(job, "mem_mib_per_gpu"), 0));
	d->tres_per_node = o->tres_per_node;
	d->tres_per_job = o->tres_per_job;
	d->tres_per_task = o->tres_per_task;
	d->cpus_per_tres = o->cpus_per_tres;
	d->mem_per_tres = o->mem_per_tres;
	buf_free(&node);
}

/* --- times ------------------------------------------------------------------------------ */

/* Slurm's own reading of "now+2hours", "16:00", "2026-11-30T22:00". The function is exported by
 * every release and declared by none. */
static int set_time(const struct json *job, const char *key, time_t *out, struct err *e)
{
	typedef time_t (*parse_f)(char *, int);
	parse_f parse = (parse_f)(uintptr_t)dlsym(RTLD_DEFAULT, "slurm_parse_time");
	char *text = text_of(job, key);
	_cleanup_free_ char *copy = text ? xstrdup(text) : NULL;
	time_t t;

	if (!text)
		return 0;
	if (!parse)
		return err_set(e, ERR_RECIPE, "%s: this libslurm cannot read times", key);
	t = parse(copy, 0);
	if (t <= 0)
		return err_set(e, ERR_RECIPE,
			       "%s = '%s' is no time that Slurm knows: 2026-11-30T22:00, 22:00, "
			       "now+2hours",
			       key, text);
	if (t < time(NULL) && str_eq(key, "deadline"))
		return err_set(e, ERR_RECIPE, "deadline = '%s' is over", text);
	*out = t;
	return 0;
}

/* --- the rest --------------------------------------------------------------------------- */

static int set_switches(const struct json *job, job_desc_msg_t *d, struct err *e)
{
	const char *text = text_of(job, "switches"), *at = text ? strchr(text, '@') : NULL;
	_cleanup_free_ char *count = NULL;
	int64_t n, wait_s = at ? slurm_limits_duration_s(at + 1) : 0;

	if (!text)
		return 0;
	count = xstrndup(text, at ? (size_t)(at - text) : strlen(text));
	if (!str_to_i64(count, &n) || n < 1 || n > INT32_MAX || wait_s < 0 || wait_s > INT32_MAX)
		return err_set(
			e, ERR_RECIPE,
			"switches = '%s': a count, or a count and the minutes to wait for it: "
			"\"1@60\"",
			text);
	d->req_switch = (uint32_t)n;
	if (at)
		d->wait4switch = (uint32_t)wait_s;
	return 0;
}

static const struct mail_word {
	const char *word;
	uint16_t bits;
} mail_words[] = {
	{"NONE", 0},
	{"BEGIN", MAIL_JOB_BEGIN},
	{"END", MAIL_JOB_END},
	{"FAIL", MAIL_JOB_FAIL},
	{"REQUEUE", MAIL_JOB_REQUEUE},
	{"ALL",
	 MAIL_JOB_BEGIN | MAIL_JOB_END | MAIL_JOB_FAIL | MAIL_JOB_REQUEUE | MAIL_JOB_STAGE_OUT},
	{"STAGE_OUT", MAIL_JOB_STAGE_OUT},
	{"TIME_LIMIT", MAIL_JOB_TIME100},
	{"TIME_LIMIT_90", MAIL_JOB_TIME90},
	{"TIME_LIMIT_80", MAIL_JOB_TIME80},
	{"TIME_LIMIT_50", MAIL_JOB_TIME50},
};

static const struct mail_word *find_mail_word(const char *word, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(mail_words); i++)
		if (strlen(mail_words[i].word) == n && !strncasecmp(mail_words[i].word, word, n))
			return &mail_words[i];
	return NULL;
}

int options_mail_type(const char *list, uint16_t *bits, struct err *e)
{
	uint16_t all = 0;

	for (const char *p = list; *p;) {
		size_t n = strcspn(p, ",");
		const struct mail_word *w = find_mail_word(p, n);

		if (!w)
			return err_set(
				e, ERR_RECIPE,
				"mail_type: '%.*s' is none of NONE, BEGIN, END, FAIL, REQUEUE, "
				"ALL, STAGE_OUT, TIME_LIMIT, TIME_LIMIT_90, TIME_LIMIT_80, "
				"TIME_LIMIT_50",
				(int)n, p);
		all |= w->bits;
		p += n;
		p += *p == ',';
	}
	*bits = all;
	return 0;
}

static int set_mail(const struct json *job, job_desc_msg_t *d, struct err *e)
{
	const char *types = text_of(job, "mail_type");
	int rc = types ? options_mail_type(types, &d->mail_type, e) : 0;

	d->mail_user = text_of(job, "mail_user");
	return rc;
}

static void set_memory_and_nice(const struct json *job, job_desc_msg_t *d)
{
	int64_t mib = json_i64(json_get(job, "mem_mib_per_cpu"), 0);
	int64_t nice = json_i64(json_get(job, "nice"), 0);

	if (mib > 0)
		d->pn_min_memory = (uint64_t)mib | MEM_PER_CPU;
	if (nice && nice > -INT32_MAX && nice < INT32_MAX)
		d->nice = (uint32_t)(NICE_OFFSET + nice);
}

int options_set(struct options *o, const struct json *job, job_desc_msg_t *d, struct err *e)
{
	int rc;

	set_tres(o, job, d);
	set_memory_and_nice(job, d);
	d->licenses = text_of(job, "licenses");
	d->dependency = text_of(job, "dependency");
	d->comment = text_of(job, "comment");
	if ((rc = set_time(job, "begin", &d->begin_time, e)) ||
	    (rc = set_time(job, "deadline", &d->deadline, e)) || (rc = set_switches(job, d, e)))
		return rc;
	return set_mail(job, d, e);
}
