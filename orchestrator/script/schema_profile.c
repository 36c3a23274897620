/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a campaign says about its diagnosis: whether it profiles, and limits of rules. */
#include "orchestrator/base/mem.h"
#include "orchestrator/script/schema.h"

int schema_read_profile(const struct reader *r, const struct json *v, const char *path, void *out,
			struct err *e)
{
	if (json_type(v) != JSON_BOOL)
		return reader_expected(r, v, path, "true or false", e);
	*(enum profile_wish *)out = json_bool(v, false) ? PROFILE_YES : PROFILE_NO;
	return 0;
}

/* Which rules there are is checked where they are read. */
int schema_read_thresholds(const struct reader *r, const struct json *v, const char *path,
			   void *out, struct err *e)
{
	for (const struct json *m = json_first(v); m; m = json_next(m)) {
		_cleanup_free_ char *at = xasprintf("%s.%s", path, json_key(m) ? json_key(m) : "?");
		struct buf text = {0};

		if (json_type(m) != JSON_NUMBER || json_type(v) != JSON_OBJECT)
			return reader_expected(r, m, at,
					       "numbers by rule, e.g. { data_wait = 0.2 }", e);
		buf_number(&text, json_number(m, 0));
		kvs_set(out, json_key(m), text.data);
		buf_free(&text);
	}
	kvs_sort(out);
	return 0;
}
