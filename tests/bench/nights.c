/* SPDX-License-Identifier: GPL-2.0-or-later */
/* link: -lsqlite3 -lcjson -lxxhash -lRmath -lm */
/* nights DIR [SERIES NIGHTS]: a workspace with the sample of nights, or with so many series over so
 * many nights: what the command line's tests look at, and what is timed on. */
#include <stdio.h>
#include <stdlib.h>

#include "orchestrator/method/workspace.h"
#include "tests/unit/nights_sample.h"

int main(int argc, char **argv)
{
	struct workspace *w = NULL;
	struct err e = {0};

	if (argc != 2 && argc != 4) {
		fprintf(stderr, "usage: nights DIR [SERIES NIGHTS]\n");
		return 2;
	}
	sample_must(workspace_open(argv[1], DB_CREATE, &clock_system, &w, &e), &e);
	if (argc == 4)
		sample_year(w->db, (int)strtol(argv[2], NULL, 10), (int)strtol(argv[3], NULL, 10));
	else
		sample_put(w->db);
	workspace_close(w);
	return 0;
}
