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
	buf_char(b, '\'');
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

/* The first that is there, of the node's machine. */
static int put_search(struct buf *b, const struct json *job, struct err *e)
{
	const char *copy = json_text(json_get(job, "agent_copy"), NULL),
		   *machine = json_text(json_get(job, "agent_machine"), "");
	int rc;

	buf_str(b, "machine=$(uname -m)\nfor agent in ");
	rc = put_quoted(b, json_text(json_get(job, "agent"), NULL), e);
	if (rc == 0 && copy) {
		buf_char(b, ' ');
		rc = put_quoted(b, copy, e);
	}
	buf_str(b, "; do\n");
	if (*machine) /* one of ours (slurm_agent.c) */
		buf_printf(b, "\t[ \"$machine\" = %s ] || agent=$agent-$machine\n", machine);
	buf_str(b,
		"\t[ ! -x \"$agent\" ] || break\ndone\n"
		"[ -x \"$agent\" ] || {\n"
		"\techo \"fettle: the agent for $machine is missing on $(uname -n): there is no "
		"$agent. Build it on such a machine, put it there, and let all nodes see it\" >&2\n"
		"\texit 127\n}\n");
	return rc;
}

/* Onto the disks of all nodes. Where that fails the agent is run from where it is. */
static int put_broadcast(struct buf *b, const char *dir, struct err *e)
{
	int rc;

	buf_str(b, "local=");
	rc = put_quoted(b, dir, e);
	buf_str(b, "/fettle-agent.$SLURM_JOB_ID\n"
		   "if sbcast --force \"$agent\" \"$local\"; then\n"
		   "\tagent=$local FETTLE_AGENT_LOCAL=$local\n"
		   "\texport FETTLE_AGENT_LOCAL\nfi\n");
	return rc;
}

int slurm_script_text(const struct json *job, char **out, struct err *e)
{
	const struct json *dirs = json_get(job, "block_dirs");
	const char *local = json_text(json_get(job, "sbcast_dir"), NULL);
	struct buf b = {0};
	int rc;

	if (json_len(dirs) == 0)
		return err_set(e, ERR_RECIPE, "a job needs a block directory");
	buf_str(&b, "#!/bin/sh\n");
	rc = put_search(&b, job, e);
	if (rc == 0 && local)
		rc = put_broadcast(&b, local, e);
	buf_str(&b, "exec \"$agent\"");
	for (size_t i = 0; rc == 0 && i < json_len(dirs); i++) {
		buf_char(&b, ' ');
		rc = put_quoted(&b, json_text(json_at(dirs, i), NULL), e);
	}
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
