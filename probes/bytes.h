/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Amounts with a unit, as programs print them for people: "65430 MiB", "20.00 GB", "0 bytes". */
#ifndef FETTLE_PROBES_BYTES_H
#define FETTLE_PROBES_BYTES_H

#include "probes/num.h"

/* The amount that t starts with, in bytes; used (may be NULL) gets its length, unit included. The
 * programs read here count KB, MB, GB by 1024, as KiB, MiB, GiB. False without a known unit. */
bool bytes_scan(struct span t, double *out, size_t *used);

/* The same with the factors of 1000 that DeepSpeed writes: "336.23 M", "3139.93 GMACs",
 * "81.9 TFLOPS", "76.67 ms" (in s), "34.09 us", "433.07". What follows the letter of the factor
 * must be `unit` or nothing. */
bool factor_scan(struct span t, const char *unit, double *out);

#endif
