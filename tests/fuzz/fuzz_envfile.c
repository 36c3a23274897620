/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a file of environment settings: names are names, and a fault has its line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/cmd/envfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct kvs k = {0};
	struct err e = {0};
	int rc = envfile_parse("f.env", (const char *)data, n, &k, &e);

	if (rc < 0 && (k.n || !strstr(e.text, "f.env:")))
		abort();
	for (size_t i = 0; i < k.n; i++)
		if (!k.v[i].key[0] || strpbrk(k.v[i].key, "= \n'\"$"))
			abort();
	kvs_free(&k);
	return 0;
}
