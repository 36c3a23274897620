/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A document (doc.h) as Markdown: CommonMark with tables. Text from outside can neither break a
 * table nor become markup or HTML.
 */
#ifndef FETTLE_REPORT_MARKDOWN_H
#define FETTLE_REPORT_MARKDOWN_H

#include "orchestrator/report/doc.h"

extern const struct doc_writer markdown_writer;

#endif
