/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a node tells of itself, and what nvidia-smi told it: any bytes give keys whose values are
 * printable, of one line and bounded, or an error. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/nodefacts.h"
#include "orchestrator/method/fingerprint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct kvs *keys)
{
	for (size_t i = 0; i < keys->n; i++) {
		const char *v = keys->v[i].value;

		assert(*keys->v[i].key && *v && strlen(v) <= NODEFACTS_VALUE_MAX);
		assert(*v != ' ' && v[strlen(v) - 1] != ' ');
		for (; *v; v++)
			assert((unsigned char)*v >= ' ' && *v != 0x7F);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *node = NULL, *text = xstrndup((const char *)data, size),
			    *joined = NULL;
	struct kvs keys = {0}, smi = {0};
	struct strv notes = {0}, changes = {0};
	struct err e = {0};
	int rc = fingerprint_parse("f", (const char *)data, size, "t:1", &node, &keys, &notes, &e);

	assert(rc == 0 ? !!node : (!node && keys.n == 0 && e.text[0] != '\0'));
	nodefacts_smi(text, &smi);
	check(&keys);
	check(&smi);
	joined = fingerprint_join((struct fingerprint_node[]){{"n1", keys}, {"n2", smi}}, 2);
	assert(fingerprint_changes(joined, joined, &changes, &e) == 0 && changes.n == 0);
	fingerprint_changes(joined, text, &changes, &e);
	kvs_free(&keys);
	kvs_free(&smi);
	strv_free(&notes);
	strv_free(&changes);
	return 0;
}
