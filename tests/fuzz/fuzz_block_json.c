/* SPDX-License-Identifier: GPL-2.0-or-later */
/* block.json as the agent reads it: any bytes give a block that holds its own bounds, or an error.
 */
#include <assert.h>
#include <string.h>

#include "orchestrator/agent/block.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct block *b = NULL;
	struct err e = {0};
	int rc = block_parse("block.json", (const char *)data, size, &b, &e);

	assert((rc == 0) == (b != NULL));
	assert(rc == 0 || e.text[0] != '\0');
	if (b) {
		assert(b->n_arms > 0 && b->n_slots > 0 && b->workdir[0] == '/');
		for (size_t i = 0; i < b->n_slots; i++)
			assert(b->slots[i].arm_index < b->n_arms);
		for (size_t i = 0; i < b->n_arms; i++)
			assert(b->arms[i].argv.n > 0);
	}
	block_free(b);
	return 0;
}
