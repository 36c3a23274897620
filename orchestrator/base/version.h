/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The version of the source that all programs of one build share: tag, commits since, commit. */
#ifndef FETTLE_BASE_VERSION_H
#define FETTLE_BASE_VERSION_H

const char *version_text(void); /* "0.1.0" or "0.1.0-12-gae09930" or "0.0.0-gae09930-dirty" */

#endif
