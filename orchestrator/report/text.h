/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text from recipes, logs and workloads, made fit to print. It may hold anything: quotes, markup,
 * control sequences of terminals, bytes that are no UTF-8, overrides of the reading direction. What
 * comes out is valid UTF-8 in which nothing can act; what was there can still be recognised.
 */
#ifndef FETTLE_REPORT_TEXT_H
#define FETTLE_REPORT_TEXT_H

#include "orchestrator/base/str.h"

/* Append s as valid UTF-8: each byte that is none becomes U+FFFD. Nothing else changes. */
void text_utf8(struct buf *out, const char *s);

/* As text_utf8, on one line: newlines and tabs become blanks, other control characters "\x1b", and
 * marks that change the direction of reading, and what is no character, U+FFFD. */
void text_line(struct buf *out, const char *s);

/* Columns that s takes on a terminal: a Chinese character takes two. */
size_t text_width(const char *s);
/* Bytes of the longest beginning of s that takes at most so many columns. */
size_t text_fit(const char *s, size_t columns);
/* As text_line(), then blanks up to so many columns; a longer text is whole. */
void text_cell(struct buf *out, const char *s, size_t columns);
/* The same, blanks first. */
void text_cell_right(struct buf *out, const char *s, size_t columns);
/* The same as a text of its own; heap. */
char *text_clean(const char *s);

/* One word for a POSIX shell: as it is when no character of it is special, else in single quotes.
 */
void text_sh(struct buf *out, const char *s);

/* A path as part of a URL: each byte that could mean something there as %xx. */
void text_url(struct buf *out, const char *path);

/* A field of a CSV file (RFC 4180), always quoted, on one line. What a spreadsheet would take for a
 * formula, a text that begins with = + - or @ and is no number, gets a ' before it. */
void text_csv(struct buf *out, const char *s);

/* A string of Lua in double quotes that means s, on one line. */
void text_lua(struct buf *out, const char *s);

/* May it name a variable in a shell script? [A-Za-z_][A-Za-z0-9_]* */
bool text_is_name(const char *s);

#endif
