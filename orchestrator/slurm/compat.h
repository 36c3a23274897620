/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One source for the headers of Slurm 20.11 to 26.05. Every difference between them that
 * fettle-slurm meets is named here and nowhere else, so a new release costs one look at this file.
 * The layout of structures differs in every release: the program runs only with the libslurm that
 * belongs to the header it was compiled with (compat_api_major).
 *
 * Included instead of <slurm/slurm.h>, by files of orchestrator/slurm/ only.
 */
#ifndef FETTLE_SLURM_COMPAT_H
#define FETTLE_SLURM_COMPAT_H

/* 26.05: keeps plain job numbers in slurm_load_job() and its kin. */
#define SLURM_BACKWARD_COMPAT 1
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#ifndef SLURM_VERSION_NUM /* a header of its own from 21.08 on */
#include <slurm/slurm_version.h>
#endif

#define COMPAT_AT(major, minor) (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(major, minor, 0))

/* Number of the job in the answer to a submit. */
#if COMPAT_AT(25, 11)
#define COMPAT_RESPONSE_ID(r) ((r)->step_id.job_id)
#else
#define COMPAT_RESPONSE_ID(r) ((r)->job_id)
#endif

/* The `sibling` argument (federations) came with 21.08. */
#if COMPAT_AT(21, 8)
#define COMPAT_KILL(id_text, signal, flags) slurm_kill_job2(id_text, signal, flags, NULL)
#else
#define COMPAT_KILL(id_text, signal, flags) slurm_kill_job2(id_text, signal, flags)
#endif

/* Generic resources in tres_per_node; without a prefix the API refuses them. */
#if COMPAT_AT(23, 11)
#define COMPAT_GRES_PREFIX "gres/"
#else
#define COMPAT_GRES_PREFIX "gres:"
#endif

/* hostlist_t was a pointer, then became the structure. */
#if COMPAT_AT(23, 11)
typedef hostlist_t *compat_hostlist;
#else
typedef hostlist_t compat_hostlist;
#endif

/* Renamed with 21.08. */
#ifndef NODE_STATE_POWERED_DOWN
#define NODE_STATE_POWERED_DOWN NODE_STATE_POWER_SAVE
#endif
#ifndef NODE_STATE_REBOOT_ISSUED
#define NODE_STATE_REBOOT_ISSUED 0U
#endif

#if COMPAT_AT(26, 5)
#define COMPAT_FREE_CTL_CONF(c) slurm_free_conf(c)
#else
#define COMPAT_FREE_CTL_CONF(c) slurm_free_ctl_conf(c)
#endif

/* Exported by every release, declared by none. */
extern void slurm_free_will_run_response_msg(will_run_response_msg_t *msg);

/* The major number of libslurm.so that goes with this header; 0: a release that we do not know. */
static inline int compat_api_major(void)
{
	static const struct {
		unsigned header; /* major << 8 | minor */
		int api;
	} known[] = {
		{20 << 8 | 11, 36}, {21 << 8 | 8, 37}, {22 << 8 | 5, 38},  {23 << 8 | 2, 39},
		{23 << 8 | 11, 40}, {24 << 8 | 5, 41}, {24 << 8 | 11, 42}, {25 << 8 | 5, 43},
		{25 << 8 | 11, 44}, {26 << 8 | 5, 45},
	};

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].header == (unsigned)SLURM_VERSION_NUMBER >> 8)
			return known[i].api;
	return 0;
}

#endif
