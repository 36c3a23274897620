/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fields of DCGM: what they are called by the exporter (two namings) and by dmon, and what they are
 * here. Field numbers, names and units: dcgm_fields.h of DCGM 4.6. */
#ifndef FETTLE_PROBES_DCGM_H
#define FETTLE_PROBES_DCGM_H

#include "probes/num.h"

struct dcgm_field {
	int id;
	const char *name;     /* of DCGM 4.6, without "DCGM_FI_" */
	const char *old_name; /* before it, or NULL */
	const char *legacy;   /* of the exporter before 2.0, without "dcgm_"; NULL: as old_name */
	const char *column;   /* of dmon */
	const char *metric;
	double scale;
};

/* "DCGM_FI_DEV_GPU_UTIL", or "dcgm_gpu_utilization" of the exporter before 2.0. */
const struct dcgm_field *dcgm_by_name(struct span name);
const struct dcgm_field *dcgm_by_column(struct span column); /* "SMACT" */

/* A number that stands for "none" in DCGM: blank, not found, not supported, not permitted (of 32
 * and 64 bit integers and of doubles). A memory of 0 C is one without a sensor. NULL when it is a
 * real one. */
const char *dcgm_blank(const struct dcgm_field *f, double v);

#endif
