/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/slurm/helper.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/version.h"
#include "orchestrator/sched/slurm_wire.h"
#include "orchestrator/slurm/compat.h"

enum { READ_CHUNK = 65536 };

static const struct operation {
	const char *name;
	helper_op run;
} operations[] = {
	{"hello", helper_hello},     {"ping", helper_ping},         {"submit", helper_submit},
	{"willrun", helper_willrun}, {"poll", helper_poll},         {"find", helper_find},
	{"cancel", helper_cancel},   {"capacity", helper_capacity}, {"nodes", helper_nodes},
	{"acct", helper_acct},
};

/* --- replies ---------------------------------------------------------------------------- */

static int send_reply(struct helper *h, const struct json *reply)
{
	_cleanup_free_ char *text = json_print(reply, false);
	struct buf line = {0};
	int rc;

	buf_str(&line, text);
	buf_char(&line, '\n');
	rc = fs_write_all(h->out, line.data, line.len);
	buf_free(&line);
	h->request_id = -1;
	return rc;
}

static const char *code_word(enum err_code code)
{
	if (code == ERR_TEMP)
		return WIRE_TEMP;
	return code == ERR_NOT_FOUND ? WIRE_NOTFOUND : WIRE_PERM;
}

static int send_failure(struct helper *h, const struct err *e)
{
	_cleanup_(json_freep) struct json *reply = json_object();
	struct buf said = {0};
	int rc;

	stderrbuf_take(&h->stderrbuf, &said);
	json_set_i64(reply, "id", h->request_id);
	json_set_bool(reply, "ok", false);
	json_set_i64(reply, "errno", h->slurm_errno);
	json_set_text(reply, "code", code_word(e->code));
	json_set_text(reply, "text", e->text);
	json_set_text(reply, "stderr", said.data ? said.data : "");
	rc = send_reply(h, reply);
	buf_free(&said);
	return rc;
}

/* libslurm calls exit(1) when it cannot go on: the request that it was busy with still gets its
 * answer. */
static void on_process_exit(int status, void *ctx)
{
	struct helper *h = ctx;
	struct err e;

	if (h->request_id >= 0) {
		err_set(&e, h->ready ? ERR_TEMP : ERR_NOT_FOUND,
			"libslurm ended fettle-slurm with status %d", status);
		send_failure(h, &e);
	}
	stderrbuf_stop(&h->stderrbuf);
}

/* --- requests --------------------------------------------------------------------------- */

static const struct operation *find_operation(const struct json *req, struct err *e)
{
	const char *op = json_text(json_get(req, "op"), "");

	for (size_t i = 0; i < ARRAY_LEN(operations); i++)
		if (str_eq(operations[i].name, op))
			return &operations[i];
	err_set(e, ERR_USAGE, "unknown op '%s' (%s)", op, WIRE_FORMAT);
	return NULL;
}

static int perform(struct helper *h, const struct json *req, struct json *reply, struct err *e)
{
	const struct operation *op = find_operation(req, e);
	int rc;

	if (!op)
		return -ERR_USAGE;
	if (op->run == helper_hello)
		return helper_hello(h, req, reply, e);
	if (!h->ready)
		return err_set(e, ERR_USAGE, "op '%s' before 'hello'", op->name);
	rc = helper_check_controller(h, e);
	if (rc == 0)
		rc = op->run(h, req, reply, e);
	h->away = rc == -ERR_TEMP;
	return rc;
}

/* 0, or negative when nobody reads the replies any more. */
static int answer(struct helper *h, const char *line, size_t n)
{
	_cleanup_(json_freep) struct json *req = NULL, *reply = json_object();
	struct buf ignored = {0};
	struct err e = {0};
	int rc;

	h->slurm_errno = 0;
	h->request_id = 0;
	if (json_parse("request", line, n, &req, &e))
		return send_failure(h, &e);
	h->request_id = json_i64(json_get(req, "id"), 0);
	json_set_i64(reply, "id", h->request_id);
	json_set_bool(reply, "ok", true);
	if (perform(h, req, reply, &e))
		return send_failure(h, &e);
	stderrbuf_take(&h->stderrbuf, &ignored); /* so that it is not blamed on the next request */
	if (ignored.len)
		json_set_text(reply, "stderr", ignored.data);
	rc = send_reply(h, reply);
	buf_free(&ignored);
	return rc;
}

/* Answer every whole line in `in` and keep the rest. */
static int answer_lines(struct helper *h, struct buf *in)
{
	char *start = in->data, *end = in->data + in->len, *newline;

	while ((newline = memchr(start, '\n', (size_t)(end - start)))) {
		if (newline > start && answer(h, start, (size_t)(newline - start)))
			return -1;
		start = newline + 1;
	}
	in->len = (size_t)(end - start);
	memmove(in->data, start, in->len);
	return 0;
}

static int serve(struct helper *h, struct err *e)
{
	_cleanup_(buf_free) struct buf in = {0};
	_cleanup_free_ char *chunk = xmalloc(READ_CHUNK);

	for (;;) {
		ssize_t n = read(STDIN_FILENO, chunk, READ_CHUNK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, ERR_IO, "cannot read requests");
		if (n == 0)
			return 0;
		if (in.len + (size_t)n > WIRE_LINE_MAX)
			return err_set(e, ERR_LIMIT, "a request is longer than %d bytes",
				       WIRE_LINE_MAX);
		buf_put(&in, chunk, (size_t)n);
		if (answer_lines(h, &in))
			return 0;
	}
}

static int say_usage(const char *arg)
{
	if (str_eq(arg, "--version")) {
		printf("fettle-slurm %s, built for Slurm %d.%02d.%d, %s\n", version_text(),
		       SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
		       SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER),
		       SLURM_VERSION_MICRO(SLURM_VERSION_NUMBER), WIRE_FORMAT);
		return 0;
	}
	printf("usage: fettle-slurm   (JSON lines on stdin and stdout: "
	       "orchestrator/slurm/PROTOCOL.md)\n"
	       "try:   echo '{\"id\":1,\"op\":\"hello\"}' | fettle-slurm\n");
	return str_eq(arg, "--help") ? 0 : 2;
}

int main(int argc, char **argv)
{
	struct helper h = {.request_id = -1, .out = STDOUT_FILENO};
	struct err e = {0};
	int rc;

	if (argc > 1)
		return say_usage(argv[1]);
	signal(SIGPIPE, SIG_IGN);
	rc = stderrbuf_start(&h.stderrbuf, &e);
	if (rc == 0 && on_exit(on_process_exit, &h))
		rc = err_set(&e, ERR_IO, "cannot register an exit handler");
	if (rc == 0)
		rc = serve(&h, &e);
	if (h.ready)
		slurm_fini();
	if (rc)
		dprintf(STDERR_FILENO, "fettle-slurm: %s\n", e.text);
	exit(rc ? 1 : 0); /* not return: the exit handler needs h */
}
