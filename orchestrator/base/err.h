/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What went wrong: a code for programs and one sentence for people.
 *
 * Every function that can fail takes `struct err *e` last (it may be NULL), returns 0 or a
 * negative code, and has no side effect on failure. Context is added once a layer with
 * err_wrap(). Only cmd/ and main print errors and choose the exit status.
 */
#ifndef FETTLE_BASE_ERR_H
#define FETTLE_BASE_ERR_H

enum err_code {
	ERR_OK = 0,
	ERR_USAGE,     /* bad command line                        exit 2 */
	ERR_RECIPE,    /* bad recipe, knob, rule or site policy   exit 2 */
	ERR_TEMP,      /* scheduler away, lock held, window over  exit 3 */
	ERR_IO,        /* a file or a pipe                        exit 4 */
	ERR_READ,      /* a disk or file server fails on a read   exit 4 */
	ERR_PARSE,     /* text that is not what it should be      exit 4 */
	ERR_DB,        /* SQLite                                  exit 4 */
	ERR_LIMIT,     /* a bound of ours was reached             exit 4 */
	ERR_NOT_FOUND, /* the thing asked for does not exist      exit 4 */
	ERR_STATE,     /* the stored facts contradict each other  exit 4 */
	ERR_CANCELLED, /* stopped by a signal                     exit 3 */
};

/* 2 KiB: one paragraph, with a path of 255 bytes and a nearest spelling in it. */
struct err {
	enum err_code code;
	char text[2048];
};

/* Set *e (may be NULL) and return -code, so that a caller can write `return err_set(...)`. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As err_set, with ": " and strerror(errno) appended. Keeps errno. */
int err_sys(struct err *e, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Put context before the text that *e has: "outer: inner". Returns -e->code (-1 if e is NULL). */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The exit status that DESIGN 5 gives to a code: 0, 2, 3 or 4. */
int err_exit_status(enum err_code code);

#endif
