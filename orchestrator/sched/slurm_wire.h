/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What sched_slurm.c and fettle-slurm must agree on; the rest is in orchestrator/slurm/PROTOCOL.md.
 */
#ifndef FETTLE_SCHED_SLURM_WIRE_H
#define FETTLE_SCHED_SLURM_WIRE_H

#define WIRE_FORMAT "fettle.slurm/1"

enum {
	/* One line. A request carries an environment (the kernel allows 128 KiB a variable), a
	 * reply the jobs asked for at about 500 bytes each. */
	WIRE_LINE_MAX = 16 << 20,
};

/* `code` of a reply that is not ok. */
#define WIRE_TEMP "temp" /* try again; a submit may or may not have been accepted */
#define WIRE_PERM "perm" /* Slurm refuses this, and will again */
#define WIRE_NOTFOUND \
	"notfound" /* the named thing (partition, node, reservation, job) does not exist */

#endif
