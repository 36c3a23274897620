/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What another node says of its ranks: any bytes are added whole, or change nothing. */
#include <assert.h>
#include <stdint.h>

#include "orchestrator/agent/evidence.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct evidence ev = {0};
	struct err e = {0};
	int rc = evidence_add(&ev, (const char *)data, size, 0, &e);

	assert(rc == 0 || (ev.n == 0 && e.text[0] != '\0'));
	assert(ev.seen == (int)ev.n && ev.expected >= ev.seen);
	for (size_t i = 0; i < ev.n; i++)
		assert(ev.v[i].rank >= 0 && ev.v[i].node);
	evidence_free(&ev);
	return 0;
}
