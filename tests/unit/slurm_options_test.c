/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sbatch's words for the options of a job, into Slurm's job description. */
#include "tests/unit/check.h"

#include "orchestrator/base/mem.h"
#include "orchestrator/slurm/options.h"

static void test_gres(void **state)
{
	static const struct {
		const char *list, *want;
	} rows[] = {
		{"gpu:2", COMPAT_GRES_PREFIX "gpu:2"},
		{"gres/gpu:h200:2,nvme:1",
		 COMPAT_GRES_PREFIX "gpu:h200:2," COMPAT_GRES_PREFIX "nvme:1"},
		{"gres:gpu,,", COMPAT_GRES_PREFIX "gpu"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf b = {0};

		options_put_gres(rows[i].list, &b);
		assert_string_equal(b.data, rows[i].want);
		buf_free(&b);
	}
}

static void test_mail(void **state)
{
	struct err e = {0};
	uint16_t bits = 0;

	(void)state;
	assert_ok(options_mail_type("END,fail", &bits, &e));
	assert_int_equal(bits, MAIL_JOB_END | MAIL_JOB_FAIL);
	assert_int_equal(options_mail_type("END,FIAL", &bits, &e), -ERR_RECIPE);
	assert_contains(e.text, "'FIAL' is none of NONE, BEGIN");
}

static int set(const char *text, job_desc_msg_t *d, struct options *o, struct err *e)
{
	_cleanup_(json_freep) struct json *job = NULL;
	int rc;

	assert_int_equal(json_parse("job", text, strlen(text), &job, e), 0);
	memset(d, 0, sizeof(*d));
	rc = options_set(o, job, d, e);
	d->comment = NULL; /* it lay in the text */
	return rc;
}

static void test_numbers_arrive(void **state)
{
	struct options o = {0};
	struct err e = {0};
	job_desc_msg_t d;

	(void)state;
	assert_ok(
		set("{\"gpus_per_node\":2,\"gres\":\"nvme:1\",\"nice\":-3,\"mem_mib_per_cpu\":100,"
		    "\"mem_mib_per_gpu\":200,\"switches\":\"2@1-0\"}",
		    &d, &o, &e));
	assert_string_equal(d.tres_per_node,
			    COMPAT_GRES_PREFIX "gpu:2," COMPAT_GRES_PREFIX "nvme:1");
	assert_string_equal(d.mem_per_tres, COMPAT_GRES_PREFIX "gpu:200");
	assert_int_equal(d.nice, NICE_OFFSET - 3);
	assert_true(d.pn_min_memory == (MEM_PER_CPU | 100));
	assert_int_equal(d.req_switch, 2);
	assert_int_equal(d.wait4switch, 86400);
	assert_null(d.tres_per_job);
	options_free(&o);
}

static void test_what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *job, *say;
	} rows[] = {
		{"{\"switches\":\"0\"}", "switches = '0': a count"},
		{"{\"switches\":\"1@soon\"}", "switches = '1@soon': a count"},
		{"{\"mail_type\":\"SOMETIMES\"}", "mail_type: 'SOMETIMES'"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct options o = {0};
		struct err e = {0};
		job_desc_msg_t d;

		assert_int_equal(set(rows[i].job, &d, &o, &e), -ERR_RECIPE);
		assert_contains(e.text, rows[i].say);
		options_free(&o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gres),
		cmocka_unit_test(test_mail),
		cmocka_unit_test(test_numbers_arrive),
		cmocka_unit_test(test_what_is_wrong_is_said),
	};

	return cmocka_run_group_tests_name("slurm_options", tests, NULL, NULL);
}
