/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sentences of the store: why a verdict was given, what a rule saw, what became of a stage. They
 * were put together, in English, when they happened, and stay so in the database and the JSON. For
 * a document in another language a sentence is held against the formats that such sentences are
 * made by, and made anew from the translated one with what stood in the places of its conversions.
 * One that no format fits stays as it is.
 */
#ifndef FETTLE_REPORT_RECORDED_H
#define FETTLE_REPORT_RECORDED_H

/* In the language that is begun (base/lang.h); heap, NULL of NULL. */
char *recorded_text(const char *s);

/* The formats, for the test that holds them against the sources; NULL at the end. */
extern const char *const recorded_formats[];

#endif
