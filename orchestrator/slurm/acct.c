/* SPDX-License-Identifier: GPL-2.0-or-later */
/* acct: what slurmdbd knows of jobs, also of those that slurmctld has forgotten. */
#include "orchestrator/slurm/helper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slurm/slurmdb.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/slurm/compat.h"

/* Above are Slurm's marks for "unknown". */
#define COUNT_MAX (UINT64_MAX / 2)

enum {
	TRES_MEMORY = 2, /* its number in every database */
	BYTES_A_KIB = 1024,
	JOBS_MAX = 10000, /* that one question may name: slurmctld keeps as many by default */
};

/* What the lists of slurmdb are called changed with the releases; their tags did not. */
typedef struct xlist *list;
typedef struct listIterator *iterator;

/* --- texts of TRES: "1=4,2=1500,1001=2" ------------------------------------------------- */

/* The largest count of one TRES; -1: it is not there. */
static int64_t tres_count(const char *text, int64_t id)
{
	while (text && *text) {
		char *end;
		long long number = strtoll(text, &end, 10);

		if (*end == '=' && number == id)
			return strtoll(end + 1, NULL, 10);
		text += strcspn(text, ",");
		text += *text == ',';
	}
	return -1;
}

static const char *tres_type(list names, long long id, const char **name)
{
	iterator i = names ? slurm_list_iterator_create(names) : NULL;
	const slurmdb_tres_rec_t *r;
	const char *type = NULL;

	while (i && !type && (r = slurm_list_next(i)))
		if (r->id == id) {
			type = r->type;
			*name = r->name;
		}
	if (i)
		slurm_list_iterator_destroy(i);
	return type;
}

/* With names in the place of numbers: "cpu=4,mem=1500,gres/gpu=2"; heap. */
static char *named_tres(list names, const char *text)
{
	struct buf b = {0};

	while (text && *text) {
		const char *name = NULL, *type;
		char *end;
		long long id = strtoll(text, &end, 10);
		size_t n = strcspn(text, ",");

		type = tres_type(names, id, &name);
		if (*end == '=' && type && strtoull(end + 1, NULL, 10) < COUNT_MAX)
			buf_printf(&b, "%s%s%s%s%.*s", b.len ? "," : "", type, name ? "/" : "",
				   name ? name : "", (int)(n - (size_t)(end - text)), end);
		text += n;
		text += *text == ',';
	}
	return buf_take(&b);
}

/* --- records ---------------------------------------------------------------------------- */

static void raise_to(int64_t *most, int64_t v)
{
	*most = v > *most ? v : *most;
}

/* Without a sensor it is 0. */
static int64_t joules_of(uint64_t consumed)
{
	return consumed < COUNT_MAX ? (int64_t)consumed : 0;
}

/* Memory: the most that a task of any step used. Energy: all steps together. */
static void add_usage(struct json *o, const slurmdb_job_rec_t *j)
{
	iterator i = j->steps ? slurm_list_iterator_create(j->steps) : NULL;
	int64_t bytes = -1, joules = 0;
	const slurmdb_step_rec_t *s;

	while (i && (s = slurm_list_next(i))) {
		raise_to(&bytes, tres_count(s->stats.tres_usage_in_max, TRES_MEMORY));
		joules += joules_of(s->stats.consumed_energy);
		json_set_bool(o, "ran", true);
	}
	if (i)
		slurm_list_iterator_destroy(i);
	if (bytes >= 0)
		json_set_i64(o, "maxrss_kib", bytes / BYTES_A_KIB);
	if (joules > 0)
		json_set_i64(o, "energy_j", joules);
}

static struct json *describe(const slurmdb_job_rec_t *j, list names)
{
	_cleanup_free_ char *nodes = helper_expand_nodes(j->nodes);
	_cleanup_free_ char *tres = named_tres(names, j->tres_alloc_str);
	struct json *o = json_object();
	char id[16];

	snprintf(id, sizeof(id), "%u", j->jobid);
	json_set_text(o, "job", id);
	json_set_text(o, "name", j->jobname);
	json_set_i64(o, "state", j->state);
	json_set_i64(o, "exit", j->exitcode);
	json_set_i64(o, "derived_exit", j->derived_ec);
	json_set_i64(o, "submit_s", j->submit);
	json_set_i64(o, "start_s", j->start);
	json_set_i64(o, "end_s", j->end);
	json_set_i64(o, "elapsed_s", j->elapsed);
	json_set_text(o, "nodes", str_eq(nodes, "None assigned") ? "" : nodes);
	json_set_text(o, "partition", j->partition);
	json_set_text(o, "tres", tres);
	add_usage(o, j);
	return o;
}

/* --- the question ----------------------------------------------------------------------- */

/* One selected job for each number asked for; heap, *n of them. */
static slurm_selected_step_t *select_jobs(const struct json *ids, size_t *n)
{
	slurm_selected_step_t *v;

	*n = json_len(ids) < JOBS_MAX ? json_len(ids) : JOBS_MAX;
	v = xcalloc(*n + 1, sizeof(*v));
	for (size_t i = 0; i < *n; i++) {
		int64_t id = 0;

		str_to_i64(json_text(json_at(ids, i), ""), &id);
		v[i].array_task_id = NO_VAL;
		v[i].het_job_offset = NO_VAL;
		v[i].step_id.job_id = id > 0 && id < NO_VAL ? (uint32_t)id : NO_VAL;
		v[i].step_id.step_id = NO_VAL;
		v[i].step_id.step_het_comp = NO_VAL;
	}
	return v;
}

static struct json *records(list jobs, list names)
{
	struct json *v = json_array();
	iterator i = slurm_list_iterator_create(jobs);
	const slurmdb_job_rec_t *j;

	while ((j = slurm_list_next(i)))
		json_add(v, describe(j, names));
	slurm_list_iterator_destroy(i);
	return v;
}

static int ask(struct helper *h, void *db, const struct json *ids, struct json *reply,
	       struct err *e)
{
	slurmdb_job_cond_t q = {.flags = JOBCOND_FLAG_DUP | JOBCOND_FLAG_NO_TRUNC,
				.db_flags = SLURMDB_JOB_FLAG_NOTSET};
	slurmdb_tres_cond_t every = {0};
	list jobs, names;
	size_t n;
	slurm_selected_step_t *selected = select_jobs(ids, &n);

	q.step_list = slurm_list_create(NULL);
	for (size_t i = 0; i < n; i++)
		slurm_list_append(q.step_list, &selected[i]);
	errno = 0;
	jobs = slurmdb_jobs_get(db, &q);
	slurm_list_destroy(q.step_list);
	free(selected);
	if (!jobs)
		return helper_slurm_failed(h, e, "slurmdbd does not answer");
	names = slurmdb_tres_get(db, &every);
	json_set(reply, "jobs", records(jobs, names));
	slurm_list_destroy(jobs);
	if (names)
		slurm_list_destroy(names);
	return 0;
}

int helper_acct(struct helper *h, const struct json *req, struct json *reply, struct err *e)
{
	const struct json *ids = json_get(req, "jobs");
	uint16_t flags = 0;
	void *db;
	int rc;

	if (json_len(ids) == 0) {
		json_set(reply, "jobs", json_array());
		return 0;
	}
	errno = 0;
	db = slurmdb_connection_get(&flags);
	if (!db)
		return err_set(e, ERR_RECIPE, "this cluster keeps no accounts (no slurmdbd)");
	rc = ask(h, db, ids, reply, e);
	slurmdb_connection_close(&db);
	return rc;
}
