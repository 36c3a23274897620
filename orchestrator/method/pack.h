/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Raw files of a finished campaign go into a tar file, and come back. tar(1) writes it, compares it
 * with the files, and only when all of that is on the disk is the manifest written (archive.h) and
 * are the files removed. Whatever is killed in between, each file is under blocks/ or in a tar file
 * that has a manifest; the same command again goes on. The campaign's lease is held meanwhile.
 */
#ifndef FETTLE_METHOD_PACK_H
#define FETTLE_METHOD_PACK_H

#include "experiments/archive.h"
#include "orchestrator/method/workspace.h"

struct pack_options {
	const char *dir; /* absolute, where tar files go; NULL: archive/ of the workspace */
	bool keep;       /* pack, and remove nothing */
	bool dry_run;    /* only count */
};

struct pack_done {
	size_t dirs, files; /* packed or brought back by this call */
	int64_t bytes;      /* of these files */
	char *tar;          /* that was written; NULL: none */
	int64_t tar_bytes;
	size_t removed;   /* directories */
	struct strv said; /* what was left alone, and why */
};
void pack_done_free(struct pack_done *d);

/* ERR_STATE for a campaign that is not over, and when a file changed while it was packed;
 * ERR_NOT_FOUND without tar(1). */
int pack_campaign(struct workspace *w, int64_t campaign, const struct pack_options *o,
		  struct pack_done *out, struct err *e);
/* Bring all of it back: each file is compared with its hash first. ERR_NOT_FOUND when nothing is
 * packed. */
int pack_restore(struct workspace *w, int64_t campaign, struct pack_done *out, struct err *e);
/* Is the tar file there, and as it was written? */
int pack_verify(const char *root, const struct archive *a, struct err *e);

#endif
