/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The event loop: poll(2) over fds, signalfd for SIGINT, SIGTERM, SIGHUP, SIGWINCH and
 * SIGCHLD. A pidfd is a descriptor like any other. */
#ifndef FETTLE_BASE_LOOP_H
#define FETTLE_BASE_LOOP_H

#include <stdint.h>

#include "orchestrator/base/err.h"

struct loop;
typedef void (*loop_fd_f)(void *ctx, int fd, short revents);
typedef void (*loop_signal_f)(void *ctx, int signo);

/* blocks the signals above in this process; loop_free restores the mask */
int loop_new(struct loop **out, struct err *e);
void loop_free(struct loop *l);
int loop_add_fd(struct loop *l, int fd, short events, loop_fd_f f, void *ctx, struct err *e);
void loop_del_fd(struct loop *l, int fd);
void loop_on_signal(struct loop *l, loop_signal_f f, void *ctx);
/* Wait for at most timeout_us (< 0: for ever), call what is due once, return the number of events
 * or a negative error. */
int loop_run_once(struct loop *l, int64_t timeout_us, struct err *e);

#endif
