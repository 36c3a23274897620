/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/cmd/screen.h"

#include <errno.h>

#define ERASE_LINE  "\033[K"
#define ERASE_BELOW "\033[J"

/* One write for all of it, so that no half of a drawing is seen. A terminal that went away is no
 * reason to end: whoever drives a campaign is told by SIGHUP. */
static void put(struct screen *s, const struct buf *b)
{
	if (s->gone)
		return;
	fwrite(b->data, 1, b->len, s->out);
	if (fflush(s->out) != 0)
		s->gone = errno == EIO || errno == ENXIO;
}

void screen_draw(struct screen *s, const struct strv *lines, size_t rows)
{
	size_t n = lines->n < rows ? lines->n : rows;
	struct buf b = {0};

	buf_str(&b, "\r" ERASE_LINE);
	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "\n%s" ERASE_LINE, lines->v[i]);
	buf_str(&b, ERASE_BELOW "\r");
	if (n)
		buf_printf(&b, "\033[%zuA", n);
	put(s, &b);
	buf_free(&b);
	s->shown = n;
}

void screen_clear(struct screen *s)
{
	struct buf b = {0};

	if (!s->shown)
		return;
	buf_str(&b, "\r" ERASE_BELOW);
	put(s, &b);
	buf_free(&b);
	s->shown = 0;
}

void screen_say(struct screen *s, const char *text)
{
	struct buf b = {0};

	if (s->shown)
		buf_str(&b, "\r" ERASE_BELOW);
	buf_str(&b, text);
	put(s, &b);
	buf_free(&b);
	s->shown = 0;
}
