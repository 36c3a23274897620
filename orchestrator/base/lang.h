/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The language of documents, by the gettext of glibc. Between lang_begin() and lang_end() texts
 * that pass through _() come out in it; outside they stay English, so that the same words serve
 * documents on one hand, and JSON, the database, errors and logs on the other. English is the
 * language of the sources and has no catalogue.
 *
 * Texts are marked for xgettext: _("...") translates here and now, N_("...") only marks (tables),
 * P_("context", "...") where one English word needs two in another language. doc.h translates what
 * it is given. Numbers stay those of the C locale.
 */
#ifndef FETTLE_BASE_LANG_H
#define FETTLE_BASE_LANG_H

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

#define _(text)            lang_text(text)
#define N_(text)           text
#define P_(context, text)  lang_text_in(context "\004" text)
#define NC_(context, text) context "\004" text /* marks only: for lang_text_in() */
#define LANG_PLURAL(n)     ((unsigned long)(n))
#define _n(one, many, n)   lang_plural(one, many, LANG_PLURAL(n))

/* Is there a language of that name ("zh", "zh_CN", "en")? ERR_USAGE naming those that there are. */
int lang_check(const char *name, struct err *e);

/* English, then those with a catalogue, in no order. */
void lang_names(struct strv *out);

/* `name` as for lang_check(); NULL: that of the environment, as gettext reads it (LANGUAGE, where
 * LC_ALL, LC_MESSAGES or LANG is not C), English where there is no catalogue for it. Until
 * lang_end(), which may come without a begin; no process is to be started in between. */
void lang_begin(const char *name);
void lang_end(void);

/* Static or of the catalogue; text itself when there is no translation. "" and NULL stay. */
const char *lang_text(const char *text) __attribute__((format_arg(1)));
/* `text` is context, byte 4, text; without the context when there is no translation. */
const char *lang_text_in(const char *text) __attribute__((format_arg(1)));
/* A word of an enum; `context` is the enum's name, and the words of all enums that are named in
 * such calls are in the catalogues. */
const char *lang_word(const char *context, const char *word);
const char *lang_plural(const char *one, const char *many, unsigned long n)
	__attribute__((format_arg(1), format_arg(2)));

/* Of the language that is begun: "en", "zh-CN" (BCP 47). */
const char *lang_tag(void);

#endif
