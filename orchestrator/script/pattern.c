/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/script/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "orchestrator/base/mem.h"

#define VALUE_MARK "{value}"

/* The pattern with a harmless text in the place of each mark; heap. */
static char *filled(const char *text)
{
	struct buf b = {0};
	const char *mark;

	for (; (mark = strstr(text, VALUE_MARK)); text = mark + strlen(VALUE_MARK)) {
		buf_put(&b, text, (size_t)(mark - text));
		buf_char(&b, '1');
	}
	buf_str(&b, text);
	return buf_take(&b);
}

static void take_groups(const pcre2_code *code, struct strv *groups)
{
	uint32_t n = 0, size = 0;
	PCRE2_SPTR table;

	if (pcre2_pattern_info(code, PCRE2_INFO_NAMECOUNT, &n) || !n)
		return;
	pcre2_pattern_info(code, PCRE2_INFO_NAMEENTRYSIZE, &size);
	pcre2_pattern_info(code, PCRE2_INFO_NAMETABLE, &table);
	/* Each entry: two bytes of number, then the name. */
	for (uint32_t i = 0; i < n; i++)
		strv_add(groups, (const char *)table + i * size + 2);
}

bool pattern_check(const char *text, bool with_value, struct strv *groups, struct buf *why)
{
	_cleanup_free_ char *full = with_value ? filled(text) : xstrdup(text);
	PCRE2_UCHAR message[256];
	PCRE2_SIZE offset;
	pcre2_code *code;
	int number;

	if (strlen(text) > PATTERN_BYTES_MAX) {
		buf_printf(why, "is longer than %d bytes", PATTERN_BYTES_MAX);
		return false;
	}
	code = pcre2_compile((PCRE2_SPTR)full, PCRE2_ZERO_TERMINATED, 0, &number, &offset, NULL);
	if (!code) {
		pcre2_get_error_message(number, message, sizeof(message));
		buf_printf(why, "is no regular expression (PCRE2): %s, at byte %zu",
			   (const char *)message, (size_t)offset);
		return false;
	}
	if (groups)
		take_groups(code, groups);
	pcre2_code_free(code);
	return true;
}
