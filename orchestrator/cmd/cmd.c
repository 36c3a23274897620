/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/base/str.h"
#include "orchestrator/cmd/complete.h"

void cmd_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	struct buf answer = {0};

	if (argc < 2 || !str_eq(argv[argc - 1], COMPLETE_MARK)) {
		argp_parse(argp, argc, argv, 0, NULL, input);
		return;
	}
	complete_words(argp, argc - 1, argv, &answer);
	if (answer.len)
		fputs(answer.data, stdout);
	buf_free(&answer);
	exit(fflush(stdout) ? 1 : 0);
}

#include "orchestrator/report/text.h"

int cmd_fail(const struct cmd *c, const struct err *e)
{
	struct buf text = {0};

	fflush(stdout); /* results that are there come before the reason why there are no more */
	text_line(&text, e->text); /* names in it may come from anywhere */
	fprintf(stderr, "fettle %s: error: %s\n", c->name, text.data ? text.data : "");
	buf_free(&text);
	return err_exit_status(e->code);
}
