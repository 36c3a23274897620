/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A document (doc.h) as HTML: what stands in <main> of a page of html.h. A heading of level 2
 * begins a section with an id. */
#ifndef FETTLE_REPORT_HTML_DOC_H
#define FETTLE_REPORT_HTML_DOC_H

#include "orchestrator/report/doc.h"

extern const struct doc_writer html_doc_writer;

/* "s3": the id of section n, from 1 on. */
#define HTML_DOC_ID "s%zu"

#endif
