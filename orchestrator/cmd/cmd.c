/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"
#include "orchestrator/cmd/complete.h"
#include "orchestrator/report/text.h"

char *cmd_word(const char *arg)
{
	return text_clean(arg);
}

/* Line by line: what is between two newlines is a text that came from anywhere. */
static ssize_t write_clean(void *to, const char *text, size_t n)
{
	_cleanup_free_ char *own = xstrndup(text, n);
	struct buf out = {0};

	for (char *line = own, *end; line; line = end ? end + 1 : NULL) {
		if ((end = strchr(line, '\n')))
			*end = '\0';
		text_line(&out, line);
		if (end)
			buf_char(&out, '\n');
	}
	if (out.len)
		fwrite(out.data, 1, out.len, to);
	buf_free(&out);
	return (ssize_t)n;
}

/* argp and getopt print arguments to stderr as they are, and may end the program there. */
static void parse_safely(const struct argp *argp, int argc, char **argv, void *input)
{
	FILE *real = stderr,
	     *clean = fopencookie(real, "w", (cookie_io_functions_t){.write = write_clean});

	if (clean) {
		setvbuf(clean, NULL, _IOLBF, BUFSIZ);
		stderr = clean; /* a variable in glibc, and exit() flushes what is open */
	}
	argp_parse(argp, argc, argv, 0, NULL, input);
	stderr = real;
	if (clean)
		fclose(clean);
}

void cmd_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	struct buf answer = {0};

	if (argc < 2 || !str_eq(argv[argc - 1], COMPLETE_MARK)) {
		parse_safely(argp, argc, argv, input);
		return;
	}
	complete_words(argp, argc - 1, argv, &answer);
	if (answer.len)
		fputs(answer.data, stdout);
	buf_free(&answer);
	exit(fflush(stdout) ? 1 : 0);
}

int cmd_fail(const struct cmd *c, const struct err *e)
{
	struct buf text = {0};

	fflush(stdout); /* results that are there come before the reason why there are no more */
	text_line(&text, e->text); /* names in it may come from anywhere */
	fprintf(stderr, "fettle %s: error: %s\n", c->name, text.data ? text.data : "");
	buf_free(&text);
	return err_exit_status(e->code);
}
