/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes: parsing fails with a position, or printing gives text that reads back as itself. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_round_trip(const struct json *j, bool pretty)
{
	_cleanup_free_ char *once = json_print(j, pretty);
	_cleanup_free_ char *twice = NULL;
	struct json *again = NULL;

	if (json_parse("fuzz", once, strlen(once), &again, NULL))
		abort();
	twice = json_print(again, pretty);
	if (strcmp(once, twice) != 0)
		abort();
	json_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct err e = {0};
	struct json *j = NULL;

	if (json_parse("fuzz", (const char *)data, n, &j, &e)) {
		if (j || e.code != ERR_PARSE || strncmp(e.text, "fuzz:", 5) != 0)
			abort();
		return 0;
	}
	check_round_trip(j, false);
	check_round_trip(j, true);
	json_path(j, "a.b.c");
	json_free(j);
	return 0;
}
