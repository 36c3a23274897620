/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/address.h"

#include <arpa/inet.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum { PORT_MAX = 65535, HTTP_PORT = 80 };
static const char SCHEME[] = "http://";

const char *address_read(const char *url, struct sockaddr_in *to, char **host, char **path)
{
	const char *p = url, *slash;
	_cleanup_free_ char *place = NULL;
	int64_t port = HTTP_PORT;
	char *colon;

	if (!str_starts(p, SCHEME))
		return "it does not start with http://";
	p += strlen(SCHEME);
	slash = strchr(p, '/');
	place = slash ? xstrndup(p, (size_t)(slash - p)) : xstrdup(p);
	*host = xstrdup(place);
	*path = xstrdup(slash ? slash : "/metrics");
	*to = (struct sockaddr_in){.sin_family = AF_INET};
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
	for (const char *c = *path; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return "it holds a blank or a control character";
	return NULL;
}

const char *address_fault(const char *url)
{
	_cleanup_free_ char *host = NULL, *path = NULL;
	struct sockaddr_in to;

	return address_read(url, &to, &host, &path);
}
