/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/dcgm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "orchestrator/base/address.h"
#include "orchestrator/base/clock.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum {
	PERIOD_US = 1000000,  /* the exporter itself asks DCGM every 30 s, at best every second */
	ANSWER_US = 300000,   /* from connect to the last byte: a sampler must not wait longer */
	PAUSE_US = 30000000,  /* for one that took our time and gave no answer */
	ANSWER_MAX = 1 << 20, /* 8 GPUs with MIG and 100 fields are 300 KiB */
	FILE_MAX = 64 << 20,
};

struct dcgm {
	struct sockaddr_in to;
	char *host, *path;
	int fd;
	int64_t written, next_us;
	struct buf answer;
};

void dcgm_open(const char *url, const char *path, struct dcgm **out)
{
	struct dcgm *d = xcalloc(1, sizeof *d);

	d->fd = -1;
	if (!address_read(url, &d->to, &d->host, &d->path))
		d->fd = fs_create(path, O_WRONLY | O_APPEND, 0600);
	if (d->fd < 0)
		dcgm_close(d);
	else
		*out = d;
}

void dcgm_close(struct dcgm *d)
{
	if (!d)
		return;
	if (d->fd >= 0)
		close(d->fd);
	buf_free(&d->answer);
	free(d->host);
	free(d->path);
	free(d);
}

static int64_t now_us(void)
{
	return clock_mono_us(&clock_system);
}

/* True when the socket is ready before the time is over. */
static bool ready(int fd, short events, int64_t until)
{
	int64_t left = until - now_us();
	struct pollfd p = {.fd = fd, .events = events};

	return left > 0 && poll(&p, 1, (int)((left + 999) / 1000)) > 0;
}

static bool ask(const struct dcgm *d, int fd, int64_t until)
{
	_cleanup_free_ char *text = xasprintf("GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", d->path,
					      d->host);
	int failed = 0;
	socklen_t n = sizeof failed;

	if (connect(fd, (const struct sockaddr *)&d->to, sizeof d->to) && errno != EINPROGRESS)
		return false;
	return ready(fd, POLLOUT, until) && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &n) &&
	       !failed && send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
}

/* To the end of the answer. */
static bool hear(struct dcgm *d, int fd, int64_t until)
{
	char chunk[16384];

	buf_clear(&d->answer);
	while (ready(fd, POLLIN, until)) {
		ssize_t n = read(fd, chunk, sizeof chunk);

		if (n <= 0)
			return n == 0;
		if (d->answer.len + (size_t)n > ANSWER_MAX)
			return false;
		buf_put(&d->answer, chunk, (size_t)n);
	}
	return false;
}

/* The text behind the head of an answer "HTTP/1.x 200 ..."; NULL: it is none. */
static const char *body(const struct dcgm *d)
{
	const char *text = d->answer.data ? d->answer.data : "", *end = strstr(text, "\r\n\r\n");

	return str_starts(text, "HTTP/1.") && str_starts(text + strcspn(text, " "), " 200") && end
		       ? end + 4
		       : NULL;
}

static void keep(struct dcgm *d, int64_t at_us, const char *text)
{
	_cleanup_free_ char *stamp = xasprintf("# %lld.%06lld\n", (long long)(at_us / 1000000),
					       (long long)(at_us % 1000000));
	size_t n = strlen(stamp) + strlen(text);

	if (d->written + (int64_t)n > FILE_MAX)
		return;
	if (write(d->fd, stamp, strlen(stamp)) < 0 || write(d->fd, text, strlen(text)) < 0)
		return;
	d->written += (int64_t)n;
}

void dcgm_take(struct dcgm *d)
{
	int64_t until = now_us() + ANSWER_US, at_us = clock_utc_us(&clock_system);
	const char *text;
	int fd;

	if (now_us() < d->next_us)
		return;
	d->next_us = now_us() + PERIOD_US;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (ask(d, fd, until) && hear(d, fd, until)) {
		if ((text = body(d)))
			keep(d, at_us, text);
	} else if (now_us() >= until) {
		d->next_us = now_us() + PAUSE_US;
	}
	close(fd);
}
