/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as files of settings, on their way to the rules: every setting has a name and a place.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/lint_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_free_ char *text = xstrndup((const char *)data, n);
	struct lint_input *in = lint_input_new();
	struct json *x;

	lint_input_env(in, "f", text, strlen(text));
	lint_input_conf(in, "f", text);
	x = lint_input_json(in);
	for (const struct json *s = json_first(json_get(x, "settings")); s; s = json_next(s))
		if (!json_text(json_get(s, "name"), "")[0] ||
		    json_number(json_get(s, "line"), 0) < 1)
			abort();
	json_free(x);
	lint_input_free(in);
	return 0;
}
