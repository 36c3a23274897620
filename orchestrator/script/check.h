/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks that concern several fields of a campaign, after each one alone has been read. */
#ifndef FETTLE_SCRIPT_CHECK_H
#define FETTLE_SCRIPT_CHECK_H

#include "orchestrator/script/reader.h"

/* Settle the defaults that depend on other fields, then check. Pure: looks at nothing outside. */
int check_plan(const struct reader *r, struct recipe *recipe, struct err *e);

/* Has a variable of this name a secret for its value? One of its words ends with TOKEN, KEY,
 * SECRET, PASSWD, PASSWORD or CREDENTIAL, with or without an S. */
bool check_is_secret(const char *name);

/* What a campaign is asked before it begins, not once it is stored: the working directory exists,
 * the probe is known, no secret stands in workload.env. */
int check_machine(const struct reader *r, const struct recipe *recipe, const char *const *probes,
		  struct err *e);

/* check_container.c. Runtime and launcher where one of them says the other. */
void container_settle(struct recipe *recipe);
int container_check(const struct reader *r, const struct recipe *recipe, struct err *e);
void container_warn(const struct recipe *r, struct strv *out);

#endif
