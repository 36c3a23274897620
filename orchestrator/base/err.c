/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	if (e) {
		e->code = code;
		va_start(ap, fmt);
		vsnprintf(e->text, sizeof e->text, fmt, ap);
		va_end(ap);
	}
	return -(int)code;
}

int err_sys(struct err *e, enum err_code code, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;
	size_t n;

	if (e) {
		e->code = code;
		va_start(ap, fmt);
		vsnprintf(e->text, sizeof e->text, fmt, ap);
		va_end(ap);
		n = strlen(e->text);
		snprintf(e->text + n, sizeof e->text - n, ": %s", strerror(saved));
	}
	errno = saved;
	return -(int)code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	char inner[sizeof e->text], outer[sizeof e->text / 2];
	va_list ap;

	if (!e)
		return -1;
	va_start(ap, fmt);
	vsnprintf(outer, sizeof outer, fmt, ap);
	va_end(ap);
	memcpy(inner, e->text, sizeof inner);
	inner[sizeof inner - 1] = '\0';
	/* The cause matters more than where it was met: what does not fit is cut from its end only.
	 */
	snprintf(e->text, sizeof e->text, "%s: %.*s", outer,
		 (int)(sizeof e->text - strlen(outer) - sizeof ": "), inner);
	return e->code == ERR_OK ? -1 : -(int)e->code;
}

int err_exit_status(enum err_code code)
{
	switch (code) {
	case ERR_OK:
		return 0;
	case ERR_USAGE:
	case ERR_RECIPE:
		return 2;
	case ERR_TEMP:
	case ERR_CANCELLED:
		return 3;
	case ERR_IO:
	case ERR_READ:
	case ERR_PARSE:
	case ERR_DB:
	case ERR_LIMIT:
	case ERR_NOT_FOUND:
	case ERR_STATE:
		return 4;
	}
	return 4;
}
