/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/paths.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

/* Directory of the running program, or NULL where /proc is not mounted. */
static char *program_dir(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

	if (n <= 0)
		return NULL;
	path[n] = '\0';
	return xstrndup(path, (size_t)(fs_basename(path) - path));
}

/* The source folder that the build tree `dir` belongs to, or NULL if dir is no build tree. A tree
 * that was moved together with its sources is found by its place, not by what was written down. */
static char *source_dir(const char *dir)
{
	static const char *const up[] = {"..", "../.."};
	_cleanup_free_ char *mark = fs_join(dir, "fettle.srcdir");
	struct buf b = {0};

	if (fs_read(mark, PATH_MAX, &b, NULL))
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(up); i++) {
		_cleanup_free_ char *top = fs_join(dir, up[i]);
		_cleanup_free_ char *main_c = fs_join(top, "orchestrator/main.c");

		if (fs_exists(main_c)) {
			buf_free(&b);
			return fs_absolute(top, NULL);
		}
	}
	if (b.len > 0 && b.data[b.len - 1] == '\n')
		b.data[--b.len] = '\0';
	return buf_take(&b);
}

/* dir/rel if that exists, made absolute; NULL otherwise. */
static char *existing(const char *dir, const char *rel)
{
	_cleanup_free_ char *p = fs_join(dir, rel);

	return fs_exists(p) ? fs_absolute(p, NULL) : NULL;
}

static char *from_env(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? xstrdup(v) : NULL;
}

char *paths_recipes(void)
{
	_cleanup_free_ char *dir = program_dir();
	_cleanup_free_ char *src = dir ? source_dir(dir) : NULL;
	char *p = from_env("FETTLE_RECIPES");

	if (!p && src)
		p = fs_join(src, "recipes");
	if (!p && dir)
		p = existing(dir, "../share/fettle/recipes");
	return p ? p : xstrdup(FETTLE_DATADIR "/recipes");
}

char *paths_locale(void)
{
	_cleanup_free_ char *dir = program_dir();
	_cleanup_free_ char *mark = dir ? fs_join(dir, "fettle.srcdir") : NULL;
	char *p = from_env("FETTLE_LOCALE");

	if (!p && mark && fs_exists(mark))
		p = fs_join(dir, "locale");
	if (!p && dir)
		p = existing(dir, "../share/locale");
	return p ? p : xstrdup(FETTLE_LOCALEDIR);
}

char *paths_site(void)
{
	static const char etc[] = "/etc/fettle/site.lua";
	_cleanup_free_ char *dir = program_dir();
	const char *given = getenv("FETTLE_SITE");
	char *p = NULL;

	if (given)
		return *given ? xstrdup(given) : NULL;
	if (dir)
		p = existing(dir, "../etc/fettle/site.lua");
	return p || !fs_exists(etc) ? p : xstrdup(etc);
}

char *paths_user(void)
{
	_cleanup_free_ char *config = from_env("XDG_CONFIG_HOME"), *home = from_env("HOME");

	if (!config && home)
		config = fs_join(home, ".config");
	return config ? existing(config, "fettle/user.lua") : NULL;
}

static char *helper(const char *variable, const char *name)
{
	_cleanup_free_ char *dir = program_dir();
	_cleanup_free_ char *mark = dir ? fs_join(dir, "fettle.srcdir") : NULL;
	_cleanup_free_ char *rel = fs_join("../libexec/fettle", name);
	char *p = from_env(variable);

	if (!p && mark && fs_exists(mark))
		p = fs_join(dir, name);
	if (!p && dir)
		p = existing(dir, rel);
	return p ? p : fs_join(FETTLE_LIBEXECDIR, name);
}

char *paths_agent(void)
{
	return helper("FETTLE_AGENT", "fettle-agent");
}

char *paths_slurm_helper(void)
{
	return helper("FETTLE_SLURM_HELPER", "fettle-slurm");
}
