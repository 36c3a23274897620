/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/lang.h"

#include <dirent.h>
#include <libintl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/paths.h"
#include "orchestrator/base/str.h"

#define DOMAIN  "fettle"
#define ENGLISH "en"

enum { NAME_MAX_BYTES = 32 }; /* "zh_CN", "sr@latin": longer ones are none */

/* What lang_end() puts back: gettext asks the environment and the locale, which are everybody's. */
static struct {
	locale_t own, old;
	char *language;
	bool begun, had_language;
} scope;

/* -- which languages there are ---------------------------------------------------------------- */

static bool has_catalogue(const char *locale_dir, const char *name)
{
	_cleanup_free_ char *dir = fs_join(locale_dir, name);
	_cleanup_free_ char *file = fs_join(dir, "LC_MESSAGES/" DOMAIN ".mo");

	return fs_exists(file);
}

/* The catalogue that `name` stands for: of the whole name, else of its language with the region
 * that it is written for by default. false: there is none. */
static bool find_catalogue(const char *name, char out[NAME_MAX_BYTES])
{
	static const char *const regions[] = {"", "_CN"}; /* "zh" alone is written as in China */
	_cleanup_free_ char *dir = paths_locale();
	char plain[NAME_MAX_BYTES];
	size_t n = strcspn(name, ".@");

	if (n == 0 || n >= sizeof plain - sizeof "_CN" || strchr(name, '/'))
		return false;
	memcpy(plain, name, n);
	plain[n] = '\0';
	for (size_t i = 0; plain[i]; i++)
		if (plain[i] == '-') /* "zh-CN" is what web pages call it */
			plain[i] = '_';
	for (size_t i = 0; i < ARRAY_LEN(regions); i++) {
		_cleanup_free_ char *try = xasprintf("%s%s", plain, regions[i]);

		if (has_catalogue(dir, try))
			return str_copy(out, NAME_MAX_BYTES, try);
	}
	return false;
}

static bool is_english(const char *name)
{
	return str_starts(name, ENGLISH) && strchr("_-.@", name[2]); /* strchr finds the end, too */
}

void lang_names(struct strv *out)
{
	_cleanup_free_ char *dir = paths_locale();
	DIR *d = opendir(dir);
	const struct dirent *entry;

	strv_add(out, ENGLISH);
	while (d && (entry = readdir(d)) != NULL)
		if (entry->d_name[0] != '.' && has_catalogue(dir, entry->d_name))
			strv_add(out, entry->d_name);
	if (d)
		closedir(d);
}

int lang_check(const char *name, struct err *e)
{
	char found[NAME_MAX_BYTES];
	_cleanup_(strv_free) struct strv names = {0};
	struct buf list = {0};

	if (is_english(name) || find_catalogue(name, found))
		return 0;
	lang_names(&names);
	for (size_t i = 0; i < names.n; i++)
		buf_printf(&list, "%s%s", i ? ", " : "", names.v[i]);
	err_set(e, ERR_USAGE, "there is no translation into \"%s\": %s", name, list.data);
	buf_free(&list);
	return -ERR_USAGE;
}

/* -- which one is meant ----------------------------------------------------------------------- */

static const char *set_variable(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

static bool is_c(const char *locale)
{
	return str_eq(locale, "C") || str_eq(locale, "POSIX");
}

/* The first language of the environment that we have; false: English. */
static bool from_environment(char out[NAME_MAX_BYTES])
{
	const char *locale = set_variable("LC_ALL"), *list = set_variable("LANGUAGE");

	if (!locale)
		locale = set_variable("LC_MESSAGES");
	if (!locale)
		locale = set_variable("LANG");
	if (!locale || is_c(locale))
		return false;
	for (const char *p = list ? list : locale; *p;) {
		size_t n = strcspn(p, ":");
		_cleanup_free_ char *name = xstrndup(p, n);

		if (is_english(name))
			return false;
		if (find_catalogue(name, out))
			return true;
		p += n + (p[n] == ':');
	}
	return false;
}

static bool choose(const char *name, char out[NAME_MAX_BYTES])
{
	return name ? find_catalogue(name, out) : from_environment(out);
}

/* -- begin and end ---------------------------------------------------------------------------- */

/* gettext gives nothing in the locale C: any other does, and LANGUAGE names the language. The first
 * of these is on every machine since glibc 2.35, and before on those of Debian and Red Hat. */
static locale_t any_locale(const char *language)
{
	_cleanup_free_ char *own = xasprintf("%s.UTF-8", language);
	const char *const names[] = {"C.UTF-8", "C.utf8", own, "en_US.UTF-8", ""};
	locale_t base = duplocale(uselocale((locale_t)0)), made = (locale_t)0;

	for (size_t i = 0; base && !made && i < ARRAY_LEN(names); i++)
		made = newlocale(LC_MESSAGES_MASK, names[i], base);
	if (base && !made)
		freelocale(base);
	return made;
}

void lang_begin(const char *name)
{
	_cleanup_free_ char *dir = paths_locale();
	char language[NAME_MAX_BYTES];
	const char *before = getenv("LANGUAGE");

	lang_end();
	if (!choose(name, language) || !(scope.own = any_locale(language)))
		return;
	scope.begun = true;
	scope.had_language = before != NULL;
	scope.language = xstrdup(before ? before : "");
	scope.old = uselocale(scope.own);
	setenv("LANGUAGE", language, 1);
	bindtextdomain(DOMAIN, dir);
	bind_textdomain_codeset(DOMAIN, "UTF-8"); /* whatever LC_CTYPE is: documents are UTF-8 */
	textdomain(DOMAIN);                       /* also forgets what it found for another one */
}

void lang_end(void)
{
	if (!scope.begun)
		return;
	uselocale(scope.old);
	freelocale(scope.own);
	if (scope.had_language)
		setenv("LANGUAGE", scope.language, 1);
	else
		unsetenv("LANGUAGE");
	free(scope.language);
	memset(&scope, 0, sizeof scope);
}

/* -- texts ------------------------------------------------------------------------------------ */

const char *lang_text(const char *text)
{
	/* the translation of "" is the head of the catalogue */
	return scope.begun && text && *text ? gettext(text) : text;
}

const char *lang_text_in(const char *text)
{
	const char *found = lang_text(text);
	const char *end = found == text ? strchr(text, '\004') : NULL;

	return end ? end + 1 : found;
}

const char *lang_word(const char *context, const char *word)
{
	char key[128];
	const char *found;

	if (!scope.begun || !word ||
	    snprintf(key, sizeof key, "%s\004%s", context, word) >= (int)sizeof key)
		return word;
	found = gettext(key);
	return found == key ? word : found;
}

const char *lang_plural(const char *one, const char *many, unsigned long n)
{
	return scope.begun ? ngettext(one, many, n) : n == 1 ? one : many;
}

const char *lang_tag(void)
{
	return P_("BCP 47 tag of this language", "en");
}
