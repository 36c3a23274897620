/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/output.h"

#include <errno.h>
#include <stdio.h>

#include "orchestrator/base/fs.h"

int output_write(const char *file, const struct buf *text, struct err *e)
{
	if (file && !str_eq(file, "-"))
		return fs_write_named(file, text->data ? text->data : "", text->len, 0600, e);
	if (text->len && fwrite(text->data, 1, text->len, stdout) != text->len)
		return errno == EPIPE ? 0 : err_sys(e, ERR_IO, "cannot write the output");
	return 0;
}
