/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/user.h"

#include <pwd.h>
#include <unistd.h>

#include "orchestrator/base/mem.h"

char *user_name_of(uid_t uid)
{
	const struct passwd *p = getpwuid(uid);

	return p && *p->pw_name ? xstrdup(p->pw_name) : xasprintf("uid %u", (unsigned)uid);
}

char *user_name(void)
{
	return user_name_of(getuid());
}
