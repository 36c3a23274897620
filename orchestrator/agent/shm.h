/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that a trial leaves in /dev/shm (POSIX shared memory): found by comparing before and after.
 */
#ifndef FETTLE_AGENT_SHM_H
#define FETTLE_AGENT_SHM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct shm_list {
	ino_t *v;
	size_t n, cap;
};

/* The files of our user that are there now. An unreadable directory gives an empty list. */
void shm_before(const char *dir, struct shm_list *out);
/* Remove regular files of our user that are not in `before`, were changed since start_us (UTC) and
 * that no live process of our user maps or holds open (another job of the same user may share the
 * node). Returns how many were removed. */
size_t shm_clean(const char *dir, const struct shm_list *before, int64_t start_us);
void shm_free(struct shm_list *l);

#endif
