/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/sched/slurm_script.h"

#include <string.h>
#include <sys/stat.h>

#include "orchestrator/base/str.h"

/* Inside single quotes the shell knows one special character: the quote itself. */
static int put_quoted(struct buf *b, const char *path, struct err *e)
{
	if (!path || path[0] != '/')
		return err_set(e, ERR_RECIPE, "path '%s' in the batch script is not absolute",
			       path ? path : "");
	buf_str(b, " '");
	for (const char *p = path; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return err_set(e, ERR_RECIPE,
				       "path '%s' holds a control character: rename it", path);
		if (*p == '\'')
			buf_str(b, "'\\''");
		else
			buf_char(b, *p);
	}
	buf_char(b, '\'');
	return 0;
}

int slurm_script_text(const char *agent, const struct json *block_dirs, char **out, struct err *e)
{
	struct buf b = {0};
	int rc;

	if (json_len(block_dirs) == 0)
		return err_set(e, ERR_RECIPE, "a job needs a block directory");
	buf_str(&b, "#!/bin/sh\nexec");
	rc = put_quoted(&b, agent, e);
	for (size_t i = 0; rc == 0 && i < json_len(block_dirs); i++)
		rc = put_quoted(&b, json_text(json_at(block_dirs, i), NULL), e);
	buf_char(&b, '\n');
	if (rc == 0)
		*out = buf_take(&b);
	buf_free(&b);
	return rc;
}

int slurm_script_check_workdir(const char *dir, struct err *e)
{
	struct stat st;

	if (!dir || dir[0] != '/')
		return err_set(e, ERR_RECIPE, "workdir '%s' is not an absolute path",
			       dir ? dir : "");
	if (stat(dir, &st))
		return err_sys(e, ERR_NOT_FOUND, "workdir %s", dir);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_RECIPE, "workdir %s is not a directory", dir);
	return 0;
}

int slurm_script_check_token(const char *token, struct err *e)
{
	if (!token || !*token)
		return err_set(e, ERR_RECIPE, "a job needs a token");
	if (strlen(token) > SLURM_TOKEN_MAX)
		return err_set(
			e, ERR_RECIPE,
			"token '%.20s...' has %zu bytes: as the name of a job it may have %d",
			token, strlen(token), SLURM_TOKEN_MAX);
	return 0;
}

int slurm_script_output_path(const char *path, char **out, struct err *e)
{
	struct buf b = {0};

	if (strchr(path, '\\'))
		return err_set(
			e, ERR_RECIPE,
			"path '%s' holds a backslash, which Slurm takes for itself: rename it",
			path);
	for (const char *p = path; *p; p++)
		buf_str(&b, *p == '%' ? "%%" : (char[]){*p, '\0'});
	*out = buf_take(&b);
	return 0;
}
