/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What this machine is, as far as it decides how fast a workload runs: kernel and its settings,
 * processors, memory, firmware, network interfaces, drivers. Read from /proc and /sys and by
 * ethtool's ioctl, without privileges and without starting a program; the whole takes some
 * milliseconds. What is not there is left out, never "". Nothing that runs freely (uptime, load,
 * clocks of the moment) is among it: two readings of an unchanged machine are equal. Keys and their
 * sources: orchestrator/agent/FORMATS.md.
 */
#ifndef FETTLE_BASE_NODEFACTS_H
#define FETTLE_BASE_NODEFACTS_H

#include <stddef.h>

#include "orchestrator/base/str.h"

enum { NODEFACTS_VALUE_MAX = 200 }; /* bytes of a value that are kept */

/* Added to out, which need not be empty. root is put before each path: "" but in tests, where the
 * ioctl is left out. */
void nodefacts_read(const char *root, struct kvs *out);

/* Of the output of `nvidia-smi -q`: driver, CUDA, and what the GPUs are. */
void nodefacts_smi(const char *text, struct kvs *out);

/* PyTorch as the interpreter at this path finds it among its own packages: its version, and those
 * of CUDA and NCCL that it brings. By the names of files: no Python is started. */
void nodefacts_python(const char *interpreter, struct kvs *out);

/* The head of a file whose first line counts, which need not be a plain one: n - 1 bytes at most,
 * ended by NUL. 0, or errno; ENODATA when there is no text in it. */
int nodefacts_line(const char *path, char *out, size_t n);

/* The first line of a text from anywhere, made printable: one blank for what is blank, none at the
 * ends, '?' for what would change how a terminal shows the rest; cut at the bound, between
 * characters. Nothing is set when nothing is left. */
void nodefacts_put(struct kvs *out, const char *key, const char *text);

#endif
