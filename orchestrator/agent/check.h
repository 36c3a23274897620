/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `fettle-agent --check`: tries on this machine what trials need, for `fettle doctor` and for
 * people. */
#ifndef FETTLE_AGENT_CHECK_H
#define FETTLE_AGENT_CHECK_H

#include <stdbool.h>

/* One line a check on stdout: "ok NAME: detail", "no NAME: what is lost without it", "bad NAME:
 * why". False if one is bad. */
bool check_print(void);

#endif
