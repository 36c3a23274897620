/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/cmd.h"

#include <stdio.h>

int cmd_fail(const struct cmd *c, const struct err *e)
{
	fflush(stdout); /* results that are there come before the reason why there are no more */
	fprintf(stderr, "fettle %s: error: %s\n", c->name, e->text);
	return err_exit_status(e->code);
}
