/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Raw files that were packed: archive/campaign-<id>.<n>.json in a workspace names a tar file, the
 * directories that are in it, and size and hash (XXH3-128) of each file. While that manifest is
 * there, the directories lie in the tar file, whatever is left of them under blocks/. It is written
 * when the tar file is known to be whole, and removed when they are back.
 */
#ifndef FETTLE_EXPERIMENTS_ARCHIVE_H
#define FETTLE_EXPERIMENTS_ARCHIVE_H

#include <stdint.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

struct archive_file {
	char *path; /* relative to the workspace */
	char *link; /* what a symbolic link holds; NULL: a file */
	int64_t bytes;
	char hash[33];
};

struct archive {
	int64_t campaign;
	int number;
	char *tar; /* relative to the workspace, or absolute when it lies elsewhere */
	int64_t bytes, at_us;
	char hash[33];    /* of the tar file */
	struct strv dirs; /* "blocks/7.1" */
	struct archive_file *files;
	size_t n, cap;
};
struct archives {
	struct archive *v;
	size_t n, cap;
};

/* Those of a campaign, or of all of them (0), by campaign and number. A workspace without any has
 * none. */
int archives_load(const char *root, int64_t campaign, struct archives *out, struct err *e);
void archives_free(struct archives *a);
void archive_done(struct archive *a); /* what it holds */

void archive_add_file(struct archive *a, const char *path, const char *link, int64_t bytes,
		      const char *hash);
/* Atomically; a->number is given by the caller. */
int archive_store(const char *root, const struct archive *a, struct err *e);
/* Absolute names; heap. */
char *archive_manifest_path(const char *root, const struct archive *a);
char *archive_tar_path(const char *root, const struct archive *a);

/* The archive that holds `path`, a directory of an attempt or something in it, relative to the
 * workspace; NULL: none. */
const struct archive *archives_find(const struct archives *a, const char *path);
/* For who looks for a file that is not there: "its raw files are packed in ...: `fettle archive
 * --restore 3` brings them back" where its workspace has it in an archive; heap, NULL. */
char *archive_advice(const char *path);

#endif
