/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The environment that a result holds for, as JSON text: kernel, CPU, memory, drivers, scheduler.
 */
#ifndef FETTLE_METHOD_FINGERPRINT_H
#define FETTLE_METHOD_FINGERPRINT_H

/* Heap. Reads only files under /proc and /sys of this host and uname. */
char *fingerprint_json(const char *scheduler);

#endif
