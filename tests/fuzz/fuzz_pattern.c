/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first line is the pattern, the rest is the text. */
#include "tests/fuzz/probe_fuzz.h"

extern const struct probe probe_pattern;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *lf = size ? memchr(data, '\n', size) : NULL;
	struct probe_context c = {.metric = "loss"};
	char *pattern;

	if (!lf)
		return 0;
	pattern = xstrndup((const char *)data, (size_t)(lf - data));
	c.pattern = pattern;
	fuzz_probe(&probe_pattern, &c, lf + 1, size - (size_t)(lf + 1 - data));
	free(pattern);
	return 0;
}
