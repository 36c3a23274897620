/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commit that a directory is at, read from its .git: no program is started. */
#ifndef FETTLE_METHOD_COMMIT_H
#define FETTLE_METHOD_COMMIT_H

/* Of the repository that dir (absolute) lies in, also as a worktree or submodule: its hash, heap.
 * NULL: it lies in none, or the commit is kept in a way that we do not read (reftable). What is
 * changed and not committed does not show. */
char *commit_of(const char *dir);

#endif
