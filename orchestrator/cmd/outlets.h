/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How things stand, told outside of fettle: metrics in a file, what is new to a webhook. `fettle
 * nightly` does it at the end of a night, `fettle regressions` when asked; formats are those of
 * report/outlet.h. What cannot be told changes nothing that was measured.
 */
#ifndef FETTLE_CMD_OUTLETS_H
#define FETTLE_CMD_OUTLETS_H

#include <argp.h>
#include <stdbool.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"
#include "orchestrator/method/workspace.h"

struct outlet;
struct outlet_night;

struct outlets {
	const char *metrics;                    /* file; NULL: none */
	const char *webhook_file, *webhook_env; /* where the webhook's URL is; NULL: none */
};
/* argp child with --metrics, --webhook-url-file, --webhook-url-env; input is struct outlets. */
extern const struct argp outlets_argp;

bool outlets_any(const struct outlets *o);
bool outlets_write(const struct outlets *o); /* is the database written to? */

/* One format as text; `to` is whom a mail is for (NULL: nobody), `lang` the language of what people
 * read, as in struct drive_options. */
int outlets_text(struct workspace *w, const struct outlet *format, const char *to, const char *lang,
		 struct buf *out, struct err *e);

/* All that was asked for: the others also when one fails, the first error is returned. A regression
 * is sent once: those that the webhook took are marked, in a transaction of their own. `night` may
 * be NULL. */
int outlets_deliver(struct workspace *w, const struct outlets *o, const struct outlet_night *night,
		    struct err *e);

#endif
