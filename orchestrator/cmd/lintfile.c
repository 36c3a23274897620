/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/lintfile.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/envfile.h"
#include "orchestrator/script/sbatch.h"

static int read_text(const char *path, struct buf *out, struct err *e)
{
	struct err why = {0};

	if (fs_read(path, ENVFILE_BYTES_MAX, out, &why) < 0)
		return err_set(e, why.code == ERR_READ ? ERR_READ : ERR_USAGE, "%s", why.text);
	if (out->len && memchr(out->data, '\0', out->len))
		return err_set(e, ERR_USAGE, "%s: holds a NUL byte and is no text", path);
	return 0;
}

int lintfile_kind(const char *path, enum lintfile_kind *out, struct err *e)
{
	struct buf text = {0};
	int rc = 0;

	*out = LINTFILE_ENV;
	if (str_ends(path, ".lua")) {
		*out = LINTFILE_CAMPAIGN;
		return 0;
	}
	rc = read_text(path, &text, e);
	if (rc == 0 && text.data &&
	    (str_starts(text.data, "#!") || str_starts(text.data, "#SBATCH") ||
	     strstr(text.data, "\n#SBATCH")))
		*out = LINTFILE_SCRIPT;
	else if (str_ends(path, ".conf"))
		*out = LINTFILE_CONF;
	buf_free(&text);
	return rc;
}

static int add_script(struct lint_input *in, const char *path, struct err *e)
{
	struct sbatch s;
	int rc = sbatch_read(path, &s, e);

	if (rc)
		return rc;
	lint_input_script(in, &s);
	sbatch_free(&s);
	return 0;
}

int lintfile_add(struct lint_input *in, enum lintfile_kind kind, const char *path, struct err *e)
{
	struct buf text = {0};
	int rc;

	if (kind == LINTFILE_SCRIPT)
		return add_script(in, path, e);
	rc = read_text(path, &text, e);
	if (rc == 0 && kind == LINTFILE_CONF)
		lint_input_conf(in, path, text.data ? text.data : "");
	else if (rc == 0)
		lint_input_env(in, path, text.data ? text.data : "", text.len);
	buf_free(&text);
	return rc;
}

void lintfile_add_nccl_conf(struct lint_input *in)
{
	const char *home = getenv("HOME");
	_cleanup_free_ char *own = home ? fs_join(home, ".nccl.conf") : NULL;
	const char *const files[] = {"/etc/nccl.conf", own};

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (files[i] && fs_exists(files[i]))
			(void)lintfile_add(in, LINTFILE_CONF, files[i], NULL);
}
