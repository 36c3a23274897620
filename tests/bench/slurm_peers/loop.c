/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The least that Slurm's own library allows: N jobs submitted one after the other, then our jobs
 * asked about ten times a second until each has ended well. Nothing is kept. slurm_peers.sh holds
 * fettle's jobs against it.
 *
 *	loop N NAME PROGRAM
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/slurm/compat.h"

enum { MAX_JOBS = 100000, POLL_US = 100000, STATE_MASK = 0xff, STILL_ENDING = 0x8000 };

static void die(const char *what)
{
	fprintf(stderr, "loop: %s: %s\n", what, slurm_strerror(errno));
	exit(1);
}

static void submit(char *name, char *script)
{
	static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", dir[] = "/tmp",
		    out[] = "/dev/null";
	char *env[] = {path, NULL};
	submit_response_msg_t *r = NULL;
	job_desc_msg_t d;

	slurm_init_job_desc_msg(&d);
	d.name = name;
	d.user_id = getuid();
	d.group_id = getgid();
	d.script = script;
	d.environment = env;
	d.env_size = 1;
	d.work_dir = dir;
	d.std_out = d.std_err = out;
	d.min_nodes = d.max_nodes = 1;
	d.time_limit = 1;
	d.requeue = 0;
	d.shared = JOB_SHARED_NONE;
	if (slurm_submit_batch_job(&d, &r))
		die("submit");
	slurm_free_submit_response_response_msg(r);
}

/* How many jobs of that name have not ended. */
static long alive(const char *name)
{
	job_info_msg_t *all = NULL;
	long n = 0;

	if (slurm_load_job_user(&all, getuid(), SHOW_LOCAL))
		die("slurm_load_job_user");
	for (uint32_t i = 0; i < all->record_count; i++) {
		const slurm_job_info_t *j = &all->job_array[i];
		uint32_t state = j->job_state & STATE_MASK;

		if (!j->name || strcmp(j->name, name) != 0)
			continue;
		if (state > JOB_COMPLETE) {
			fprintf(stderr, "loop: job %u ended in state %u\n", j->job_id, state);
			exit(1);
		}
		n += state < JOB_COMPLETE || (j->job_state & STILL_ENDING);
	}
	slurm_free_job_info_msg(all);
	return n;
}

int main(int argc, char **argv)
{
	long n = argc == 4 ? strtol(argv[1], NULL, 10) : 0;
	char script[4096];

	if (n < 1 || n > MAX_JOBS) {
		fprintf(stderr, "usage: loop N NAME PROGRAM\n");
		return 2;
	}
	snprintf(script, sizeof script, "#!/bin/sh\nexec '%s'\n", argv[3]);
	slurm_init(NULL);
	for (long i = 0; i < n; i++)
		submit(argv[2], script);
	while (alive(argv[2]))
		usleep(POLL_US);
	slurm_fini();
	return 0;
}
