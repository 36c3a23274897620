/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Diagnostics on stderr, a line each: "fettle: warning: text". Libraries use it only for what a
 * caller cannot return; results never go here. */
#ifndef FETTLE_BASE_LOG_H
#define FETTLE_BASE_LOG_H

enum log_level { LOG_LVL_ERROR, LOG_LVL_WARN, LOG_LVL_INFO, LOG_LVL_DEBUG };

void log_init(const char *program, enum log_level max); /* default: "fettle", LOG_LVL_WARN */
void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define log_error(...) log_at(LOG_LVL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_LVL_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_LVL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LVL_DEBUG, __VA_ARGS__)

#endif
