/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/fingerprint.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"

enum { PROC_FILE_MAX = 1 << 20 }; /* /proc/cpuinfo of 512 CPUs is about 800 KB */

/* The text after "key<blanks>:" on its first line of a /proc file, or NULL; heap. */
static char *proc_field(const char *path, const char *key)
{
	struct buf b = {0};
	char *out = NULL, *p;

	if (fs_read(path, PROC_FILE_MAX, &b, NULL) == 0 && b.data && (p = strstr(b.data, key))) {
		p += strlen(key);
		p += strspn(p, " \t:");
		out = xstrndup(p, strcspn(p, "\n"));
	}
	buf_free(&b);
	return out;
}

static void set_field(struct json *o, const char *name, const char *path, const char *key)
{
	_cleanup_free_ char *text = proc_field(path, key);

	size_t n = text ? strlen(text) : 0;

	if (n >= 2 && text[0] == '"' && text[n - 1] == '"') { /* values of /etc/os-release */
		text[n - 1] = '\0';
		json_set_text(o, name, text + 1);
	} else if (text) {
		json_set_text(o, name, text);
	}
}

char *fingerprint_json(const char *scheduler)
{
	_cleanup_(json_freep) struct json *o = json_object();
	struct utsname u;

	if (uname(&u) == 0) {
		json_set_text(o, "host", u.nodename);
		json_set_text(o, "kernel", u.release);
		json_set_text(o, "machine", u.machine);
	}
	json_set_i64(o, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
	set_field(o, "cpu", "/proc/cpuinfo", "model name");
	set_field(o, "microcode", "/proc/cpuinfo", "microcode");
	set_field(o, "memory", "/proc/meminfo", "MemTotal");
	set_field(o, "nvidia_driver", "/proc/driver/nvidia/version", "NVRM version");
	set_field(o, "os", "/etc/os-release", "PRETTY_NAME=");
	json_set_text(o, "scheduler", scheduler);
	return json_print(o, false);
}

/* A field's value as people read it; heap. */
static char *value_text(const struct json *v)
{
	return json_type(v) == JSON_STRING ? xstrdup(json_text(v, "")) : json_print(v, false);
}

int fingerprint_changes(const char *then, const char *now, struct strv *out, struct err *e)
{
	_cleanup_(json_freep) struct json *a = NULL, *b = NULL;
	bool local;
	int rc;

	if ((rc = json_parse("stored fingerprint", then, strlen(then), &a, e)) < 0 ||
	    (rc = json_parse("fingerprint", now, strlen(now), &b, e)) < 0)
		return rc;
	local = str_eq(json_text(json_get(a, "scheduler"), ""), "local");
	for (const struct json *m = json_first(a); m; m = json_next(m)) {
		const struct json *other = json_get(b, json_key(m));
		_cleanup_free_ char *was = value_text(m), *is = other ? value_text(other) : NULL;

		if (!is || str_eq(was, is) || (str_eq(json_key(m), "host") && !local))
			continue;
		strv_addf(out, "%s: %s -> %s", json_key(m), was, is);
	}
	return 0;
}
