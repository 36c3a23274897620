/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/query.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/proc.h"
#include "orchestrator/method/campaign.h"
#include "orchestrator/method/method.h"
#include "orchestrator/method/pack_tar.h"

enum {
	TREE_DEPTH_MAX = 64,   /* a trial's own directories have a few */
	WAIT_US = 5000000,     /* between two beats of the lease */
	TOLD_BYTES_MAX = 4096, /* of what tar says when it fails: the first line counts */
};

struct pack {
	struct campaign *c;
	const char *root;
	struct pack_done *out;
};

void pack_done_free(struct pack_done *d)
{
	free(d->tar);
	strv_free(&d->said);
	*d = (struct pack_done){0};
}

/* -- tar --------------------------------------------------------------------------------------- */

/* With the lease kept alive. */
static int wait_for_tar(struct pack *p, const struct proc_id *id, int *status, struct err *e)
{
	int rc;

	while ((rc = proc_wait(id, WAIT_US, status, e)) == -ERR_TEMP)
		if ((rc = campaign_beat(p->c, e)) < 0)
			return rc;
	return rc;
}

static int tar_failed(const char *what, int told, int status, struct err *e)
{
	char text[TOLD_BYTES_MAX + 1], *line;
	ssize_t n = pread(told, text, TOLD_BYTES_MAX, 0);

	text[n > 0 ? n : 0] = '\0';
	if (WIFSIGNALED(status))
		return err_set(e, ERR_STATE, "tar cannot %s: it was ended by a signal, %s", what,
			       strsignal(WTERMSIG(status)));
	line = text + strspn(text, "\n"); /* gzip begins with an empty one */
	return err_set(e, ERR_STATE, "tar cannot %s: %.*s", what, (int)strcspn(line, "\n"), line);
}

/* What tar says goes into memory: the disk may be what is full. */
static int run_tar(struct pack *p, const char *what, const struct strv *args, struct err *e)
{
	_cleanup_free_ char *path = xasprintf("PATH=%s",
					      getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
	/* Nothing of TAR_OPTIONS and GZIP: the same file from everybody's shell. */
	char *env[] = {path, (char[]){"LC_ALL=C"}, NULL};
	struct strv argv = {0};
	struct proc_id id;
	int rc, status = 0, fd = memfd_create("tar", MFD_CLOEXEC);

	if (fd < 0)
		return err_sys(e, ERR_IO, "cannot run tar");
	strv_add(&argv, "tar");
	for (size_t i = 0; i < args->n; i++)
		strv_add(&argv, args->v[i]);
	rc = proc_spawn(&(struct proc_spawn){.file = "tar",
					     .argv = strv_end(&argv),
					     .env = env,
					     .workdir = p->root,
					     .fd_in = -1,
					     .fd_out = -1,
					     .fd_err = fd,
					     .die_with_parent = true},
			&id, e);
	if (rc == 0)
		rc = wait_for_tar(p, &id, &status, e);
	if (rc == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
		rc = tar_failed(what, fd, status, e);
	close(fd);
	strv_free(&argv);
	return rc;
}

/* -- files ------------------------------------------------------------------------------------- */

static int walk(const char *root, const char *rel, int depth, struct archive *a, struct err *e);

static int walk_entry(const char *root, const char *rel, int depth, struct archive *a,
		      struct err *e)
{
	_cleanup_free_ char *path = fs_join(root, rel);
	char to[PATH_MAX], hash[33] = "";
	struct stat st;
	ssize_t n;
	int rc;

	if (lstat(path, &st) != 0)
		return err_sys(e, ERR_IO, "cannot read %s", path);
	if (S_ISDIR(st.st_mode))
		return walk(root, rel, depth + 1, a, e);
	if (S_ISLNK(st.st_mode)) {
		if ((n = readlink(path, to, sizeof to - 1)) < 0)
			return err_sys(e, ERR_IO, "cannot read %s", path);
		to[n] = '\0';
		archive_add_file(a, rel, to, 0, "");
		return 0;
	}
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_STATE,
			       "%s is neither a file nor a directory: remove it, then pack again",
			       path);
	if ((rc = fs_hash_file(path, hash, e)) == 0)
		archive_add_file(a, rel, NULL, st.st_size, hash);
	return rc;
}

static int walk(const char *root, const char *rel, int depth, struct archive *a, struct err *e)
{
	_cleanup_free_ char *path = fs_join(root, rel);
	DIR *d;
	int rc = 0;

	if (depth > TREE_DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "%s: more than %d directories inside each other", path,
			       TREE_DEPTH_MAX);
	if (!(d = opendir(path)))
		return err_sys(e, ERR_IO, "cannot read %s", path);
	for (struct dirent *f = readdir(d); f && rc == 0; f = readdir(d)) {
		_cleanup_free_ char *name = fs_join(rel, f->d_name);

		if (!str_eq(f->d_name, ".") && !str_eq(f->d_name, ".."))
			rc = walk_entry(root, name, depth, a, e);
	}
	closedir(d);
	return rc;
}

/* -- removing ---------------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
	const struct archive_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static void sort_files(struct archive *a)
{
	if (a->n)
		qsort(a->files, a->n, sizeof *a->files, by_path);
}

/* Is all that `is` has in `want` (sorted), too, with the same content? */
static bool same_files(const struct archive *want, const struct archive *is,
		       const struct archive_file **odd)
{
	for (size_t i = 0; i < is->n; i++) {
		const struct archive_file *f = want->n ? bsearch(&is->files[i], want->files,
								 want->n, sizeof *f, by_path)
						       : NULL;

		*odd = &is->files[i];
		if (!f || !str_eq(f->link, is->files[i].link) ||
		    !str_eq(f->hash, is->files[i].hash))
			return false;
	}
	return true;
}

/* What is there of it, a link too; nothing when it is gone. */
static int look_at(struct pack *p, const char *dir, bool *there, struct archive *out, struct err *e)
{
	_cleanup_free_ char *path = fs_join(p->root, dir);
	struct stat st;

	*there = lstat(path, &st) == 0;
	return *there ? walk_entry(p->root, dir, 0, out, e) : 0;
}

/* Directories of an archive that has its manifest. What came into one since then stays. */
static int remove_dirs(struct pack *p, struct archive *a, struct err *e)
{
	int rc = 0;

	sort_files(a);
	for (size_t i = 0; rc == 0 && i < a->dirs.n; i++) {
		_cleanup_free_ char *path = fs_join(p->root, a->dirs.v[i]);
		const struct archive_file *odd = NULL;
		struct archive now = {0};
		bool there;

		rc = look_at(p, a->dirs.v[i], &there, &now, e);
		if (rc == 0 && there && !same_files(a, &now, &odd)) {
			strv_addf(&p->out->said, "%s stays: %s is not as it was packed in %s",
				  a->dirs.v[i], odd->path, a->tar);
		} else if (rc == 0 && there) {
			rc = fs_remove_tree(path, e);
			p->out->removed += rc == 0;
		}
		if (rc == 0)
			rc = campaign_beat(p->c, e);
		archive_done(&now);
	}
	return rc;
}

/* -- packing ----------------------------------------------------------------------------------- */

/* Directories of the campaign that are here and in no archive, with their files. */
static int collect(struct pack *p, const struct archives *known, struct archive *a, struct err *e)
{
	struct strv dirs = {0};
	bool open = false;
	int rc = query_attempt_dirs(p->c->ws->db, a->campaign, &dirs, &open, e);

	if (rc == 0 && open)
		rc = err_set(e, ERR_STATE,
			     "campaign %lld still has a job: `fettle tick` looks what became of it",
			     (long long)a->campaign);
	for (size_t i = 0; rc == 0 && i < dirs.n; i++) {
		bool there;

		if (archives_find(known, dirs.v[i]))
			continue;
		rc = look_at(p, dirs.v[i], &there, a, e);
		if (rc == 0 && there)
			strv_add(&a->dirs, dirs.v[i]);
		if (rc == 0)
			rc = campaign_beat(p->c, e);
	}
	strv_free(&dirs);
	return rc;
}

static int write_list(const struct archive *a, const char *path, struct err *e)
{
	struct buf b = {0};
	int rc;

	for (size_t i = 0; i < a->dirs.n; i++)
		buf_printf(&b, "%s\n", a->dirs.v[i]);
	rc = fs_write_atomic(path, b.data, b.len, 0600, e);
	buf_free(&b);
	return rc;
}

static int beat(void *ctx, struct err *e)
{
	return campaign_beat(((struct pack *)ctx)->c, e);
}

/* Every file must come out of it as it was read, and nothing else. */
static int check_tar(struct pack *p, const struct archive *a, const char *tar, struct err *e)
{
	const struct archive_file *odd = NULL;
	struct archive in = {0};
	int rc = pack_tar_read(tar, beat, p, &in, e);

	if (rc == 0 && (!same_files(a, &in, &odd) || in.n != a->n))
		rc = err_set(e, ERR_STATE,
			     "%s changed while it was packed: nothing was removed, pack again",
			     odd ? odd->path : "a file");
	archive_done(&in);
	return rc;
}

static int write_tar(struct pack *p, const struct archive *a, const char *tar, struct err *e)
{
	_cleanup_free_ char *list = xasprintf("%s.list", tar);
	struct strv args = {0};
	int fd, rc = write_list(a, list, e);

	strv_add(&args, "--create");
	strv_add(&args, "--gzip");
	strv_add(&args, "--format=gnu");
	strv_add(&args, "--hard-dereference");
	strv_addf(&args, "--file=%s", tar);
	strv_addf(&args, "--files-from=%s", list);
	/* As private as what goes into it, wherever it lies; tar leaves that as it is. */
	unlink(tar);
	if (rc == 0 && (fd = fs_create(tar, O_WRONLY | O_EXCL, 0600)) < 0)
		rc = err_sys(e, ERR_IO, "cannot write %s", tar);
	else if (rc == 0)
		close(fd);
	if (rc == 0)
		rc = run_tar(p, "pack the files", &args, e);
	unlink(list);
	strv_free(&args);
	return rc;
}

/* The tar file under its name, and then the manifest: from there on the files lie in it. */
static int commit_archive(struct pack *p, struct archive *a, const char *tmp, struct err *e)
{
	_cleanup_free_ char *tar = archive_tar_path(p->root, a);
	int rc = fs_hash_file(tmp, a->hash, e);

	a->bytes = fs_size(tmp);
	a->at_us = clock_utc_us(p->c->ws->clock);
	if (rc == 0)
		rc = fs_publish(tmp, tar, e);
	if (rc == 0)
		rc = archive_store(p->root, a, e);
	if (rc == 0) {
		p->out->tar = xstrdup(a->tar);
		p->out->tar_bytes = a->bytes;
	}
	return rc;
}

static void count(struct pack_done *out, const struct archive *a)
{
	out->dirs += a->dirs.n;
	out->files += a->n;
	for (size_t i = 0; i < a->n; i++)
		out->bytes += a->files[i].bytes;
}

static int write_archive(struct pack *p, struct archive *a, const struct pack_options *o,
			 struct err *e)
{
	_cleanup_free_ char *own = fs_join(p->root, "archive");
	_cleanup_free_ char *name = xasprintf("campaign-%lld.%d.tar.gz", (long long)a->campaign,
					      a->number);
	_cleanup_free_ char *tmp = xasprintf("%s/.%s.tmp", o->dir ? o->dir : own, name);
	int rc = fs_mkdirs(own, 0700, e);

	if (rc == 0 && o->dir)
		rc = fs_mkdirs(o->dir, 0700, e);
	/* Of one directory for several workspaces the uuid keeps the files apart. */
	a->tar = o->dir ? xasprintf("%s/%.8s-%s", o->dir, p->c->ws->uuid, name)
			: xasprintf("archive/%s", name);
	sort_files(a);
	if (rc == 0)
		rc = write_tar(p, a, tmp, e);
	if (rc == 0)
		rc = check_tar(p, a, tmp, e);
	if (rc == 0)
		rc = commit_archive(p, a, tmp, e);
	if (rc < 0)
		unlink(tmp);
	return rc;
}

static int is_over(const struct campaign *c, struct err *e)
{
	if (c->row.state == CAMPAIGN_DONE || c->row.state == CAMPAIGN_FAILED)
		return 0;
	return err_set(e, ERR_STATE,
		       "campaign %lld is %s: its raw files are packed when it is over",
		       (long long)c->row.id, campaign_state_name(c->row.state));
}

static int open_pack(struct pack *p, struct workspace *w, int64_t id, struct pack_done *out,
		     struct err *e)
{
	const struct campaign_options o = {0};
	int rc;

	*out = (struct pack_done){0};
	*p = (struct pack){.root = w->root, .out = out};
	if ((rc = campaign_open_stored(w, id, &o, &p->c, e)) == 0)
		rc = is_over(p->c, e);
	return rc;
}

int pack_campaign(struct workspace *w, int64_t id, const struct pack_options *o,
		  struct pack_done *out, struct err *e)
{
	struct archive a = {.campaign = id, .number = 1};
	struct archives known = {0};
	struct pack p;
	int rc = open_pack(&p, w, id, out, e);

	if (rc == 0)
		rc = archives_load(w->root, id, &known, e);
	/* What a call before was killed at. */
	for (size_t i = 0; rc == 0 && i < known.n && !o->dry_run && !o->keep; i++)
		rc = remove_dirs(&p, &known.v[i], e);
	if (known.n)
		a.number = known.v[known.n - 1].number + 1;
	if (rc == 0)
		rc = collect(&p, &known, &a, e);
	if (rc == 0)
		count(out, &a);
	if (rc == 0 && a.dirs.n && !o->dry_run)
		rc = write_archive(&p, &a, o, e);
	if (rc == 0 && a.dirs.n && !o->dry_run && !o->keep)
		rc = remove_dirs(&p, &a, e);
	archives_free(&known);
	archive_done(&a);
	campaign_close(p.c);
	return rc;
}

/* -- bringing back ----------------------------------------------------------------------------- */

int pack_verify(const char *root, const struct archive *a, struct err *e)
{
	_cleanup_free_ char *tar = archive_tar_path(root, a);
	char hash[33];
	int rc = fs_hash_file(tar, hash, e);

	if (rc == 0 && !str_eq(hash, a->hash))
		rc = fs_size(tar) == a->bytes
			     ? err_set(e, ERR_STATE,
				       "%s is damaged: of the size that was written, but with "
				       "another hash",
				       tar)
			     : err_set(e, ERR_STATE, "%s is damaged: %lld bytes of %lld", tar,
				       (long long)fs_size(tar), (long long)a->bytes);
	return rc;
}

static int extract(struct pack *p, struct archive *a, const char *stage, struct err *e)
{
	_cleanup_free_ char *tar = archive_tar_path(p->root, a);
	const struct archive_file *odd = NULL;
	struct archive is = {0};
	struct strv args = {0};
	int rc = fs_remove_tree(stage, e);

	strv_add(&args, "--extract");
	strv_add(&args, "--gzip");
	strv_addf(&args, "--file=%s", tar);
	strv_addf(&args, "--directory=%s", stage);
	if (rc == 0 && (rc = fs_mkdirs(stage, 0700, e)) == 0)
		rc = run_tar(p, "unpack the files", &args, e);
	for (size_t i = 0; rc == 0 && i < a->dirs.n; i++)
		rc = walk_entry(stage, a->dirs.v[i], 0, &is, e);
	sort_files(a);
	if (rc == 0 && (!same_files(a, &is, &odd) || is.n != a->n))
		rc = err_set(e, ERR_STATE, "%s: %s is not as it was when it was packed", tar,
			     odd ? odd->path : "a file");
	strv_free(&args);
	archive_done(&is);
	return rc;
}

/* What is left of a directory is in the archive, too, or the directory stays as it is. */
static int put_back(struct pack *p, const struct archive *a, const char *stage, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < a->dirs.n; i++) {
		_cleanup_free_ char *from = fs_join(stage, a->dirs.v[i]);
		_cleanup_free_ char *to = fs_join(p->root, a->dirs.v[i]);
		const struct archive_file *odd = NULL;
		struct archive now = {0};
		bool there;

		rc = look_at(p, a->dirs.v[i], &there, &now, e);
		if (rc == 0 && there && !same_files(a, &now, &odd))
			rc = err_set(e, ERR_STATE,
				     "%s is there and another one than in %s: move it away first",
				     odd->path, a->tar);
		if (rc == 0 && there)
			rc = fs_remove_tree(to, e);
		if (rc == 0 && rename(from, to) != 0)
			rc = err_sys(e, ERR_IO, "cannot bring back %s", to);
		archive_done(&now);
	}
	return rc;
}

static int sync_all(const char *root, struct err *e)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = fd < 0 ? -1 : syncfs(fd);

	if (fd >= 0)
		close(fd);
	return rc ? err_sys(e, ERR_IO, "cannot sync %s", root) : 0;
}

static int restore_archive(struct pack *p, struct archive *a, struct err *e)
{
	_cleanup_free_ char *manifest = archive_manifest_path(p->root, a);
	_cleanup_free_ char *tar = archive_tar_path(p->root, a);
	_cleanup_free_ char *stage = xasprintf("%s/archive/.campaign-%lld.%d", p->root,
					       (long long)a->campaign, a->number);
	int rc = pack_verify(p->root, a, e);

	if (rc == 0)
		rc = extract(p, a, stage, e);
	if (rc == 0)
		rc = put_back(p, a, stage, e);
	/* All is back on the disk before the only other copy goes. */
	if (rc == 0)
		rc = sync_all(p->root, e);
	if (rc == 0 && unlink(manifest) != 0)
		rc = err_sys(e, ERR_IO, "cannot remove %s", manifest);
	if (rc == 0) {
		unlink(tar);
		count(p->out, a);
	}
	(void)fs_remove_tree(stage, NULL);
	return rc;
}

int pack_restore(struct workspace *w, int64_t id, struct pack_done *out, struct err *e)
{
	struct archives known = {0};
	struct pack p;
	int rc = open_pack(&p, w, id, out, e);

	if (rc == 0)
		rc = archives_load(w->root, id, &known, e);
	if (rc == 0 && known.n == 0)
		rc = err_set(e, ERR_NOT_FOUND, "nothing of campaign %lld is packed", (long long)id);
	for (size_t i = 0; rc == 0 && i < known.n; i++)
		rc = restore_archive(&p, &known.v[i], e);
	archives_free(&known);
	campaign_close(p.c);
	return rc;
}
