/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One fuzzer for each format of `fettle history import`: `IMPORT_FUZZ(IMPORT_CSV)`. No bytes crash
 * it; what comes out as a sample is a finite number of a metric on a night of the calendar.
 */
#ifndef FETTLE_TESTS_IMPORT_FUZZ_H
#define FETTLE_TESTS_IMPORT_FUZZ_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/import.h"

static inline void fuzz_need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "fuzz: broken: %s\n", what);
	abort();
}

static inline void fuzz_import(enum import_format format, const char *text, size_t n)
{
	struct import_rules r = {.format = format, .until_us = INT64_C(4000000000000000)};
	struct import_table t = {0};
	struct import_samples s = {0};
	struct err e = {0};

	if (import_text("f.x", text, n, &r, &t, &e) == 0 && import_samples(&t, &r, &s, &e) == 0)
		fuzz_need(s.n > 0, "no sample and no error");
	else
		fuzz_need(e.code != ERR_OK && *e.text, "refused without a word");
	for (size_t i = 0; i < s.n; i++) {
		free(import_environment(&t, &s, s.v[i].row));
		fuzz_need(isfinite(s.v[i].value), "a value that is not finite");
		fuzz_need(history_night_valid(s.v[i].night), "a night that is no date");
		fuzz_need(*s.v[i].metric && s.v[i].line > 0, "metric or line");
		fuzz_need(s.v[i].at_us <= r.until_us, "a time in the future");
	}
	import_samples_done(&s);
	import_table_done(&t);
}

#define IMPORT_FUZZ(format)                                        \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n); \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)  \
	{                                                          \
		fuzz_import(format, (const char *)data, n);        \
		return 0;                                          \
	}

#endif
