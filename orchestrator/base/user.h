/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of users, for records and messages. Not in the agent: a static program cannot ask NSS. */
#ifndef FETTLE_BASE_USER_H
#define FETTLE_BASE_USER_H

#include <sys/types.h>

/* Heap; "uid N" where the system has no name for it. */
char *user_name_of(uid_t uid);
char *user_name(void); /* of whoever runs this program */

#endif
