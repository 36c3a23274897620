/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the program's own files are. For each, in this order: the environment variable; beside the
 * running program when that lies in a build tree (it holds the file `fettle.srcdir`); relative to
 * the running program as `make install` lays it out, so that an installed tree can be moved; the
 * place fixed when it was built. Heap strings; never NULL, though the file may be absent.
 */
#ifndef FETTLE_BASE_PATHS_H
#define FETTLE_BASE_PATHS_H

char *paths_recipes(void); /* FETTLE_RECIPES: the directory of knobs/, rules/, lib/, ... */
char *paths_agent(void);   /* FETTLE_AGENT: the program fettle-agent */
char *paths_locale(void);  /* FETTLE_LOCALE: holds zh_CN/LC_MESSAGES/fettle.mo */
/* NULL: there is none. FETTLE_SITE (which need not exist, and is none when empty), else etc/fettle
 * beside where the program is installed, else /etc/fettle/site.lua. */
char *paths_site(void);
/* NULL: there is none. $XDG_CONFIG_HOME/fettle/user.lua, without that variable of ~/.config. */
char *paths_user(void);
char *paths_slurm_helper(void); /* FETTLE_SLURM_HELPER: the program fettle-slurm */

#endif
