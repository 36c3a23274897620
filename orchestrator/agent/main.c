/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fettle-agent BLOCKDIR...: runs attempts on a node. Exit: 0 done, 3 stopped before the end, 2
 * usage, 4 broken. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/agent/attempt.h"
#include "orchestrator/agent/check.h"
#include "orchestrator/agent/nodeside.h"
#include "orchestrator/agent/nodestep.h"
#include "orchestrator/agent/signals.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/log.h"
#include "orchestrator/base/str.h"
#include "orchestrator/base/version.h"

static const char USAGE[] =
	"usage: fettle-agent BLOCKDIR...\n"
	"       fettle-agent sample BLOCKDIR...\n"
	"       fettle-agent --check | --version | --help\n"
	"\n"
	"Runs the trials that BLOCKDIR/block.json lists and leaves their records beside it. It is "
	"started\n"
	"by fettle, on this machine or as a job; a directory that another agent has claimed is "
	"left alone.\n"
	"  sample     what it is on the other nodes of its allocation: it starts itself there\n"
	"  --check    try what trials need on this machine, and say what is there\n"
	"\n"
	"exit status: 0 done, 2 usage, 3 stopped before the end, 4 a block could not be run\n";

static int worse(int a, int b)
{
	return a > b ? a : b;
}

static int run_blocks(char **dirs, struct signals *signals)
{
	struct allocation l = {.dirs = dirs};
	int status = 0;
	size_t i;

	place_find(&l.place);
	for (i = 0; dirs[i] && !signals->stop; i++) {
		enum attempt_end end = ATTEMPT_COMPLETE;
		struct err e = {0};

		if (fs_shared(dirs[i])) /* what trials leave is the group's, too */
			umask(umask(077) & ~(mode_t)S_IRWXG);
		if (attempt_run(&l, i, signals, &end, &e)) {
			log_error("%s", e.text);
			status = worse(status, 4);
		} else if (end == ATTEMPT_PARTIAL) {
			status = worse(status, 3);
		}
		signals_read(signals);
	}
	nodestep_stop(l.others);
	place_free(&l.place);
	return dirs[i] ? worse(status, 3) : status;
}

/* The copy that sbcast put on this node's disk for the job. */
static void remove_copy(void)
{
	const char *path = getenv("FETTLE_AGENT_LOCAL");

	if (path && str_starts(fs_basename(path), "fettle-agent."))
		unlink(path);
}

int main(int argc, char **argv)
{
	struct signals signals;
	struct err e = {0};
	int status;

	log_init("fettle-agent", LOG_LVL_INFO);
	if (argc == 2 && str_eq(argv[1], "--version"))
		return printf("fettle-agent %s\n", version_text()) < 0 ? 4 : 0;
	if (argc == 2 && str_eq(argv[1], "--help"))
		return fputs(USAGE, stdout) < 0 ? 4 : 0;
	if (argc == 2 && str_eq(argv[1], "--check"))
		return check_print() ? 0 : 4;
	if (argc < 2 || argv[1][0] == '-') {
		fputs(USAGE, stderr);
		return 2;
	}
	if (str_eq(argv[1], "sample") && argc > 2) {
		status = nodeside_run(argv + 2);
		remove_copy();
		return status;
	}
	if (signals_open(&signals, &e)) {
		log_error("%s", e.text);
		return 4;
	}
	/* Orphans of a trial become our children, so that none of them can get away. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	status = run_blocks(argv + 1, &signals);
	signals_close(&signals);
	remove_copy();
	return status;
}
