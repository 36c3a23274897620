/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as a recipe. What begins with '{' is taken as the JSON that the sandbox's child would
 * have sent, and read here: schema, knobs, checks. Anything else is a campaign's text: its lines
 * are looked up, and it is evaluated in a child, as for a user. Either there is a plan that dumps,
 * or an error that names a file.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/script/check.h"
#include "orchestrator/script/knob.h"
#include "orchestrator/script/locate.h"
#include "orchestrator/script/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* More is only slower: every bound of the reader is met below this or by count. */
enum { INPUT_MAX = 16384 };

static const char catalogue[] =
	"[{\"name\":\"num_workers\",\"arg\":\"--num-workers\",\"type\":\"int\",\"min\":0,\"default\":0,"
	"\"values\":[1,2],\"class\":\"neutral\",\"proof\":{\"level\":\"effective\",\"metric\":\"tree_procs\"}},"
	"{\"name\":\"prefetch\",\"arg\":\"--prefetch\",\"values\":[4],\"class\":\"neutral\","
	"\"requires\":{\"knob\":\"num_workers\",\"above\":0},\"lint\":{\"$function\":\"[2].lint\"}},"
	"{\"name\":\"split\",\"env\":\"CONF\",\"subkey\":\"split\",\"values\":[64],\"class\":\"numerics\"}]";

static void check_error(const struct err *e)
{
	if (!e->code || (!strstr(e->text, "c.lua") && !strstr(e->text, "k.lua")))
		abort();
}

static int read_all(const struct reader *r, const struct json *v, const struct knob_index *x,
		    struct recipe *out, struct err *e)
{
	int rc = reader_table(r, &schema_campaign, v, "", out, e);

	if (!rc)
		rc = reader_table(r, &schema_workload, json_get(v, "workload"), "workload",
				  &out->workload, e);
	if (!rc && json_get(v, "knobs"))
		rc = knobs_read(r, json_get(v, "knobs"), x, out, e);
	return rc ? rc : check_plan(r, out, e);
}

static void fuzz_value(char *text)
{
	struct script_source campaign = {
		.name = (char *)"campaign", .path = (char *)"/c.lua", .text = text};
	struct script_source knobs = {
		.name = (char *)"knobs/k", .path = (char *)"/k.lua", .text = (char *)"return {}"};
	struct json *v = NULL, *k = NULL, *merged;
	struct knob_index index = {0};
	struct err e = {0};

	if (json_parse("fuzz", text, strlen(text), &v, &e))
		return;
	if (json_parse("catalogue", catalogue, strlen(catalogue), &k, &e))
		abort();
	merged = reader_merge(v, k);
	if (json_type(v) == JSON_OBJECT) {
		const struct reader_layer layer = {v, &campaign, "", ""};
		const struct reader r = {&layer, 1};
		struct evaluated file = {.src = &knobs, .value = k};
		struct recipe *recipe = schema_defaults();
		struct buf out = {0};

		if (knob_index_build(&file, 1, &index, &e))
			abort();
		if (read_all(&r, v, &index, recipe, &e))
			check_error(&e);
		else
			script_plan_dump(recipe, &out);
		buf_free(&out);
		recipe_free(recipe);
	}
	knob_index_free(&index);
	json_free(merged);
	json_free(v);
	json_free(k);
}

static void fuzz_text(char *text)
{
	static const char *const paths[] = {"", "workload.window.steps", "knobs[2].values[1]",
					    "guards[\"a.b\"]"};
	struct script_source campaign = {
		.name = (char *)"campaign", .path = (char *)"/c.lua", .text = text};
	const struct script_sources all = {.v = &campaign, .n = 1};
	struct recipe *recipe = NULL;
	struct err e = {0};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (locate_line(text, paths[i]) < 1)
			abort();
	if (script_reload(&all, &recipe, &e))
		check_error(&e);
	recipe_free(recipe);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_free_ char *text = NULL;

	if (n > INPUT_MAX || memchr(data, '\0', n))
		return 0;
	text = xstrndup((const char *)data, n);
	if (n && *text == '{')
		fuzz_value(text);
	else
		fuzz_text(text);
	return 0;
}
