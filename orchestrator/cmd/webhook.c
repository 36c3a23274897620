/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/webhook.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"
#include "orchestrator/report/outlet.h"

#if defined(__has_include)
#if __has_include(<curl/curl.h>)
#include <curl/curl.h>
#define HAVE_CURL 1
#endif
#endif

/* URL_MAX: of a secret that people paste. ANSWER_MAX: "invalid_blocks" and its like. */
enum { URL_MAX = 2048, ANSWER_MAX = 200, TIMEOUT_S = 10, TRIES = 2, PAUSE_S = 1 };

/* -- the secret ------------------------------------------------------------------------------- */

static bool is_local(const char *host)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t n = strlen(names[i]);

		if (strncasecmp(host, names[i], n) == 0 &&
		    (host[n] == '\0' || strchr(":/?", host[n])))
			return true;
	}
	return false;
}

/* Without userinfo or a blank: what comes behind the scheme is the host. */
static int check_url(const char *where, const char *text, char **url, struct err *e)
{
	size_t n = strcspn(text, "\r\n");
	_cleanup_free_ char *line = xstrndup(text, n);
	bool https = strncasecmp(line, "https://", 8) == 0;

	if (n == 0 || n > URL_MAX || line[strcspn(line, " \t@")] ||
	    !(https ? line[8] != '\0' : strncasecmp(line, "http://", 7) == 0 && is_local(line + 7)))
		return err_set(e, ERR_USAGE,
			       "%s: its first line is to be the webhook's URL, https://...; http "
			       "only to this machine itself",
			       where);
	*url = xstrdup(line);
	return 0;
}

int webhook_read_file(const char *path, char **url, struct err *e)
{
	char text[URL_MAX + 2] = "";
	struct stat st;
	ssize_t n = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return err_sys(e, ERR_USAGE, "%s", path);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n < 0)
		return err_set(e, ERR_USAGE, "%s cannot be read as a file", path);
	if (st.st_mode & 077 || (st.st_uid != geteuid() && st.st_uid != 0))
		return err_set(
			e, ERR_USAGE,
			"%s holds a secret that others may read: chmod 600 it (mode is %03o)", path,
			(unsigned)st.st_mode & 0777);
	return check_url(path, text, url, e);
}

int webhook_read_env(const char *name, char **url, struct err *e)
{
	const char *text = getenv(name);
	_cleanup_free_ char *where = xasprintf("$%s", name);

	if (!text)
		return err_set(e, ERR_USAGE, "$%s, which is to hold the webhook's URL, is not set",
			       name);
	return check_url(where, text, url, e);
}

/* -- sending ---------------------------------------------------------------------------------- */

#ifdef HAVE_CURL

/* What we use of libcurl, whose ABI is stable since 7.16 (2006). */
struct curl {
	void *library;
	CURLcode (*global_init)(long flags);
	void (*global_cleanup)(void);
	CURL *(*init)(void);
	CURLcode (*setopt)(CURL *h, CURLoption option, ...);
	CURLcode (*perform)(CURL *h);
	CURLcode (*getinfo)(CURL *h, CURLINFO info, ...);
	void (*cleanup)(CURL *h);
	const char *(*strerror)(CURLcode code);
	struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
	void (*slist_free_all)(struct curl_slist *list);
};

static void unload(struct curl *c)
{
	if (c->library)
		dlclose(c->library);
}

static int load(struct curl *c, struct err *e)
{
	const struct {
		const char *name;
		void *to;
	} symbols[] = {
		{"curl_global_init", &c->global_init},
		{"curl_global_cleanup", &c->global_cleanup},
		{"curl_easy_init", &c->init},
		{"curl_easy_setopt", &c->setopt},
		{"curl_easy_perform", &c->perform},
		{"curl_easy_getinfo", &c->getinfo},
		{"curl_easy_cleanup", &c->cleanup},
		{"curl_easy_strerror", &c->strerror},
		{"curl_slist_append", &c->slist_append},
		{"curl_slist_free_all", &c->slist_free_all},
	};

	c->library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!c->library)
		return err_set(e, ERR_IO,
			       "libcurl.so.4 cannot be loaded (Debian package: libcurl4; RHEL "
			       "package: libcurl): %s",
			       dlerror());
	for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
		void *address = dlsym(c->library, symbols[i].name);

		if (!address)
			return err_set(e, ERR_IO, "libcurl.so.4 has no %s", symbols[i].name);
		memcpy(symbols[i].to, &address, sizeof address);
	}
	return 0;
}

/* What the server says to it, as far as a line of a message has room for it. */
static size_t take_answer(char *data, size_t size, size_t n, void *to)
{
	struct buf *answer = to;
	size_t room = ANSWER_MAX - answer->len, got = size * n;

	buf_put(answer, data, got < room ? got : room);
	return got;
}

/* Returns the HTTP status, or 0 with the reason in *why. */
static long post(struct curl *c, CURL *h, const char **why)
{
	CURLcode code = c->perform(h);
	long status = 0;

	if (code == CURLE_OK)
		c->getinfo(h, CURLINFO_RESPONSE_CODE, &status);
	*why = c->strerror(code);
	return code == CURLE_OK ? status : 0;
}

static bool worth_again(long status)
{
	return status == 0 || status == 429 || status >= 500;
}

static int send_it(struct curl *c, CURL *h, struct buf *answer, struct err *e)
{
	static const struct timespec pause = {.tv_sec = PAUSE_S};
	const char *why = "";
	struct buf said = {0};
	long status = 0;

	for (int i = 0; i < TRIES; i++) {
		if (i)
			nanosleep(&pause, NULL);
		buf_clear(answer);
		status = post(c, h, &why);
		if (status >= 200 && status < 300)
			return 0;
		if (!worth_again(status))
			break;
	}
	if (status == 0)
		return err_set(e, ERR_IO, "the webhook was not reached: %s", why);
	outlet_text(&said, answer->data, ANSWER_MAX);
	err_set(e, ERR_IO, "the webhook answered with status %ld%s%s", status, said.len ? ": " : "",
		said.len ? said.data : "");
	buf_free(&said);
	return -ERR_IO;
}

/* The protocol is in the URL, which was checked; redirects are not followed. */
static void set_options(struct curl *c, CURL *h, const char *url, const char *json,
			struct curl_slist *headers, struct buf *answer)
{
	c->setopt(h, CURLOPT_URL, url);
	c->setopt(h, CURLOPT_POSTFIELDS, json);
	c->setopt(h, CURLOPT_HTTPHEADER, headers);
	c->setopt(h, CURLOPT_USERAGENT, "fettle");
	c->setopt(h, CURLOPT_TIMEOUT, (long)TIMEOUT_S);
	c->setopt(h, CURLOPT_NOSIGNAL, 1L);
	c->setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	c->setopt(h, CURLOPT_SSL_VERIFYPEER, 1L);
	c->setopt(h, CURLOPT_SSL_VERIFYHOST, 2L);
	c->setopt(h, CURLOPT_WRITEFUNCTION, take_answer);
	c->setopt(h, CURLOPT_WRITEDATA, answer);
}

static int with_curl(struct curl *c, const char *url, const char *json, struct err *e)
{
	struct curl_slist *headers = c->slist_append(
		NULL, "Content-Type: application/json; charset=utf-8");
	struct buf answer = {0};
	CURL *h = c->init();
	int rc;

	if (h && headers) {
		set_options(c, h, url, json, headers, &answer);
		rc = send_it(c, h, &answer, e);
	} else {
		rc = err_set(e, ERR_IO, "libcurl does not start");
	}
	if (h)
		c->cleanup(h);
	c->slist_free_all(headers);
	buf_free(&answer);
	return rc;
}

int webhook_post(const char *url, const char *json, struct err *e)
{
	struct curl c = {0};
	int rc = load(&c, e);

	if (rc == 0) {
		if (c.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) {
			rc = with_curl(&c, url, json, e);
			c.global_cleanup();
		} else {
			rc = err_set(e, ERR_IO, "libcurl does not start");
		}
	}
	unload(&c);
	return rc;
}

#else

int webhook_post(const char *url, const char *json, struct err *e)
{
	(void)url;
	(void)json;
	return err_set(e, ERR_STATE,
		       "this fettle was built without curl/curl.h and sends no messages (Debian "
		       "package: libcurl4-openssl-dev; RHEL package: libcurl-devel)");
}

#endif
