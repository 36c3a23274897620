/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/slurm/stderrbuf.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STDERRBUF_MAX = 4096 }; /* a refusal is one to three lines */

int stderrbuf_start(struct stderrbuf *c, struct err *e)
{
	*c = (struct stderrbuf){.fd = -1, .stderr_fd = -1};
	c->stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	c->fd = memfd_create("fettle-slurm-stderr", MFD_CLOEXEC);
	if (c->stderr_fd < 0 || c->fd < 0 || fcntl(c->fd, F_SETFL, O_APPEND) ||
	    dup2(c->fd, STDERR_FILENO) < 0)
		return err_sys(e, ERR_IO, "cannot capture stderr");
	return 0;
}

void stderrbuf_take(struct stderrbuf *c, struct buf *out)
{
	char text[STDERRBUF_MAX];
	off_t size = lseek(c->fd, 0, SEEK_END);
	ssize_t n;

	if (size <= 0)
		return;
	n = pread(c->fd, text, sizeof(text), size > STDERRBUF_MAX ? size - STDERRBUF_MAX : 0);
	while (n > 0 && text[n - 1] == '\n')
		n--;
	if (n > 0)
		buf_put(out, text, (size_t)n);
	if (ftruncate(c->fd,
		      0)) /* only a broken memory file refuses: then the text is seen twice */
		return;
}

void stderrbuf_stop(struct stderrbuf *c)
{
	struct buf rest = {0};

	if (c->fd < 0 || c->stderr_fd < 0)
		return;
	stderrbuf_take(c, &rest);
	dup2(c->stderr_fd, STDERR_FILENO);
	if (rest.len)
		buf_char(&rest, '\n');
	if (rest.len && write(STDERR_FILENO, rest.data, rest.len) < 0)
		c->fd = -1; /* nobody listens: there is nothing else to do with it */
	buf_free(&rest);
}
