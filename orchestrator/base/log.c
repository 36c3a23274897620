/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* The one piece of state of the program that is not passed in: set by main before anything runs. */
static const char *log_program = "fettle";
static enum log_level log_max = LOG_LVL_WARN;

void log_init(const char *program, enum log_level max)
{
	log_program = program;
	log_max = max;
}

static const char *level_name(enum log_level level)
{
	switch (level) {
	case LOG_LVL_ERROR:
		return "error";
	case LOG_LVL_WARN:
		return "warning";
	case LOG_LVL_INFO:
		return "info";
	case LOG_LVL_DEBUG:
		return "debug";
	}
	return "log";
}

void log_at(enum log_level level, const char *fmt, ...)
{
	int saved = errno;
	char text[4096]; /* an err text (2 KiB) and a long path; one write keeps lines whole */
	va_list ap;

	if (level > log_max)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s: %s: %s\n", log_program, level_name(level), text);
	errno = saved;
}
