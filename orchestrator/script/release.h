/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Versions of the software that reads a setting, as recipes write them: "nccl 2.17.1" is a
 * component and a version of it. A knob says so from which version on it exists (since), which is
 * the first without it (gone), and what its default is from which version on (defaults); a workload
 * says what it runs (versions = { nccl = "2.18.3" }). What the workload does not say is not judged.
 */
#ifndef FETTLE_SCRIPT_RELEASE_H
#define FETTLE_SCRIPT_RELEASE_H

#include "orchestrator/script/reader.h"

/* What may have a version; NULL at the end. */
extern const char *const release_components[];

/* By the numbers between dots, missing ones being 0: "2.9" < "2.17" = "2.17.0"; what follows the
 * numbers ("-1", "+cuda12.4", "rc1") does not count. <0, 0, >0. */
int release_compare(const char *a, const char *b);

/* Does `text` begin with a number, as a version does? */
bool release_valid(const char *version);

/* The version in "nccl 2.17.1" if its component is the given one, else NULL. Borrowed. */
const char *release_of(const char *text, const char *component);

/* Readers of schema fields. A text "nccl 2.17" into a char *; a table of values by such texts, the
 * lowest version first, or by framework, into a struct kvs; a table of versions by component into a
 * struct kvs. */
int release_read(const struct reader *r, const struct json *v, const char *path, void *out,
		 struct err *e);
int release_read_defaults(const struct reader *r, const struct json *v, const char *path, void *out,
			  struct err *e);
int release_read_running(const struct reader *r, const struct json *v, const char *path, void *out,
			 struct err *e);

/* Why the knob does not exist in what runs ("nccl 2.18.3 does not have it: since 2.23.4"); heap,
 * NULL when it does, or when that is not known. */
char *release_missing(const struct knob *k, const struct kvs *running);

/* The knob's default in the workload's framework, else in what it runs; NULL when the catalogue
 * does not say. Borrowed. */
const char *release_default(const struct knob *k, const struct workload *w);

#endif
