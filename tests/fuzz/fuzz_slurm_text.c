/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Output of Slurm's commands: any text gives whole records, or none. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/sched/slurm_limits.h"
#include "orchestrator/sched/slurm_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_records(struct json *jobs)
{
	for (size_t i = 0; i < json_len(jobs); i++) {
		const struct json *j = json_at(jobs, i);

		assert(*json_text(json_get(j, "job"), ""));
		assert(json_text(json_get(j, "name"), NULL));
		assert(json_i64(json_get(j, "state"), -1) >= 0);
		assert(json_i64(json_get(j, "end_s"), -1) >= 0);
	}
	json_freep(&jobs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = xstrndup((const char *)data, size);
	_cleanup_free_ char *nodes = NULL, *partition = NULL, *value = NULL, *what = NULL;
	struct buf said = {0};
	int64_t start_s = 0;

	check_records(slurm_text_squeue(text));
	check_records(slurm_text_sacct(text));
	if (slurm_text_forecast(text, &start_s, &nodes, &partition))
		assert(start_s >= 0);
	value = slurm_text_value(text, "MaxTime");
	assert(!value || !strpbrk(value, " \n"));
	assert(slurm_limits_duration_s(text) >= -1);
	what = slurm_text_refusal(text, &said);
	assert(what || !said.len);
	buf_free(&said);
	return 0;
}
