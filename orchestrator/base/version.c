/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/version.h"

const char *version_text(void)
{
	return FETTLE_VERSION;
}
