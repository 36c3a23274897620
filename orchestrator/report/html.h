/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages that stand alone: one file, nothing fetched, no script but one of the program's own,
 * readable in light, dark and print. Names and log lines come from outside and may be anything:
 * html_text() makes them harmless, and the page forbids scripts and requests to itself besides.
 */
#ifndef FETTLE_REPORT_HTML_H
#define FETTLE_REPORT_HTML_H

#include "orchestrator/base/str.h"

/* Append s as text of an element or of a quoted attribute: clean as text_line() makes it, with the
 * five characters that mean something in HTML and SVG as references. NULL gives nothing. */
void html_text(struct buf *out, const char *s);

/* Everything up to the page's first element, with the style sheet of all pages of fettle; `css` is
 * put behind it and is a constant of the program ("": none). */
void html_head(struct buf *out, const char *title, const char *css);
/* The same for a page with one script, that it names by "sha256-..." of its text. */
void html_head_script(struct buf *out, const char *title, const char *css, const char *hash);
void html_tail(struct buf *out);

#endif
