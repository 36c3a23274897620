/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A message posted to a URL. The URL of an incoming webhook is a secret: whoever has it can post.
 * So it comes from a file that nobody else may read or from a variable of the environment, never
 * from arguments, and stands in no message of ours.
 *
 * libcurl is loaded when a message is to be sent: linked, it and its thirty libraries would cost
 * every start of fettle 16 ms.
 */
#ifndef FETTLE_CMD_WEBHOOK_H
#define FETTLE_CMD_WEBHOOK_H

#include "orchestrator/base/err.h"

/* The first line of a file of ours (or root's) with no permission for anybody else. ERR_USAGE
 * otherwise, or when it is no URL: https, or http to this machine itself. Heap. */
int webhook_read_file(const char *path, char **url, struct err *e);
/* The same from a variable of the environment. */
int webhook_read_env(const char *name, char **url, struct err *e);

/* POST json; 10 s a try, two tries when nobody answers or the server is at fault (429, 5xx).
 * Certificates are verified, redirects not followed. ERR_IO with the reason. */
int webhook_post(const char *url, const char *json, struct err *e);

#endif
