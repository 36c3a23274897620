/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/dcgm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "orchestrator/base/clock.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum {
	PERIOD_US = 1000000,  /* the exporter itself asks DCGM every 30 s, at best every second */
	ANSWER_US = 300000,   /* from connect to the last byte: a sampler must not wait longer */
	ANSWER_MAX = 1 << 20, /* 8 GPUs with MIG and 100 fields are 300 KiB */
	FILE_MAX = 64 << 20,
	PORT_MAX = 65535,
	HTTP_PORT = 80,
};

struct dcgm {
	struct sockaddr_in to;
	char *host, *path;
	int fd;
	int64_t written, next_us;
	struct buf answer;
};

static const char SCHEME[] = "http://";

/* "host[:port][/path]" behind the scheme; what is wrong with it, or NULL. */
static const char *read_url(const char *url, struct sockaddr_in *to, char **host, char **path)
{
	const char *p = url ? url : "", *slash;
	_cleanup_free_ char *place = NULL;
	int64_t port = HTTP_PORT;
	char *colon;

	if (!str_starts(p, SCHEME))
		return "it does not start with http://";
	p += strlen(SCHEME);
	slash = strchr(p, '/');
	place = slash ? xstrndup(p, (size_t)(slash - p)) : xstrdup(p);
	*to = (struct sockaddr_in){.sin_family = AF_INET};
	*host = xstrdup(place);
	colon = strchr(place, ':');
	if (colon) {
		*colon = '\0';
		if (!str_to_i64(colon + 1, &port) || port < 1 || port > PORT_MAX)
			return "its port is no number from 1 to 65535";
	}
	to->sin_port = htons((uint16_t)port);
	if (inet_pton(AF_INET, str_eq(place, "localhost") ? "127.0.0.1" : place, &to->sin_addr) !=
	    1)
		return "its host is neither localhost nor an IPv4 address";
	for (const char *c = slash ? slash : ""; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return "it holds a blank or a control character";
	*path = xstrdup(slash ? slash : "/metrics");
	return NULL;
}

const char *dcgm_url_fault(const char *url)
{
	_cleanup_free_ char *host = NULL, *path = NULL;
	struct sockaddr_in to;

	return read_url(url, &to, &host, &path);
}

void dcgm_open(const char *url, const char *path, struct dcgm **out)
{
	struct dcgm *d = xcalloc(1, sizeof *d);

	d->fd = -1;
	if (!read_url(url, &d->to, &d->host, &d->path))
		d->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
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
	if (ask(d, fd, until) && hear(d, fd, until) && (text = body(d)))
		keep(d, at_us, text);
	close(fd);
}
