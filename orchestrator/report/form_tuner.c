/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The CSV file that NCCL's example tuner plugin reads: collective type, least and most bytes,
 * algorithm, protocol, channels, nodes, ranks. A line names one algorithm with one protocol, so
 * that a fix which leaves one of them to NCCL cannot stand there. The plugin reads a line into 256
 * bytes.
 */
#include <string.h>
#include <strings.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/report/recommend.h"

extern const struct recommend_form form_tuner;

enum { LINE_BYTES_MAX = 250 };

/* As NCCL_ALGO has it, as the plugin has it, the collectives that NCCL runs with it. */
static const struct algorithm {
	const char *nccl, *csv, *collectives[6];
} algorithms[] = {
	{"Tree", "tree", {"allreduce"}},
	{"Ring", "ring", {"allreduce", "allgather", "reducescatter", "broadcast", "reduce"}},
	{"CollNetDirect", "collnet_direct", {"allreduce", "allgather", "reducescatter"}},
	{"CollNetChain", "collnet_chain", {"allreduce"}},
	{"NVLS", "nvls", {"allreduce", "allgather", "reducescatter"}},
	{"NVLSTree", "nvls_tree", {"allreduce"}},
	{"PAT", "pat", {"allgather", "reducescatter"}},
};
static const struct {
	const char *nccl, *csv;
} protocols[] = {{"LL", "ll"}, {"LL128", "ll128"}, {"Simple", "simple"}};

static const struct algorithm *algorithm_of(const char *value)
{
	for (size_t i = 0; value && i < ARRAY_LEN(algorithms); i++)
		if (strcasecmp(algorithms[i].nccl, value) == 0)
			return &algorithms[i];
	return NULL;
}

static const char *protocol_of(const char *value)
{
	for (size_t i = 0; value && i < ARRAY_LEN(protocols); i++)
		if (strcasecmp(protocols[i].nccl, value) == 0)
			return protocols[i].csv;
	return NULL;
}

/* A fixed number of channels has both bounds: the pair of names with it; NULL: NCCL chooses. */
static const char *const *channels_of(const struct kvs *env, int64_t *n)
{
	static const char *const names[][2] = {{"NCCL_MIN_CTAS", "NCCL_MAX_CTAS"},
					       {"NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"}};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *least = kvs_get(env, names[i][0]);

		if (least && str_eq(least, kvs_get(env, names[i][1])) && str_to_i64(least, n) &&
		    *n > 0)
			return names[i];
	}
	return NULL;
}

static void leave(const struct report *r, const char *const *channels, struct strv *left)
{
	struct recommend_parts p = {0};

	recommend_parts(r, &p);
	for (size_t i = 0; i < p.n; i++) {
		const char *name = p.v[i].name;

		if (!str_eq(name, "NCCL_ALGO") && !str_eq(name, "NCCL_PROTO") &&
		    !(channels && (str_eq(name, channels[0]) || str_eq(name, channels[1]))))
			recommend_leave(r, &p.v[i], left);
	}
	recommend_parts_free(&p);
}

static int write(const struct report *r, struct strv *left, struct buf *out, struct err *e)
{
	const struct kvs *env = &r->fix_config.env;
	const struct algorithm *a = algorithm_of(kvs_get(env, "NCCL_ALGO"));
	const char *protocol = protocol_of(kvs_get(env, "NCCL_PROTO"));
	const char *const *channels;
	int64_t n = -1;

	if (!a || !protocol)
		return err_set(e, ERR_NOT_FOUND,
			       "campaign %lld: a line of the tuner's file names one algorithm with "
			       "one protocol, and the fix does not have both (NCCL_ALGO=%s, "
			       "NCCL_PROTO=%s): --as nccl passes what it has",
			       (long long)r->campaign.id,
			       kvs_has(env, "NCCL_ALGO") ? kvs_get(env, "NCCL_ALGO") : "",
			       kvs_has(env, "NCCL_PROTO") ? kvs_get(env, "NCCL_PROTO") : "");
	channels = channels_of(env, &n);
	leave(r, channels, left);
	if (!channels)
		strv_add(
			left,
			"not in here: the number of channels, which this fix leaves to NCCL: -1 in the "
			"lines, where the example plugin as published sets 1; mend that "
			"(*nChannels = 0 in its getCollInfo) or use --as nccl");
	recommend_comment_head(r, left, "# ", LINE_BYTES_MAX, out);
	recommend_comment(out, "# ", LINE_BYTES_MAX,
			  "\nuse: NCCL_TUNER_PLUGIN=libnccl-tuner-example.so "
			  "NCCL_TUNER_CONFIG_FILE=/path/of/this/file, without NCCL_ALGO and "
			  "NCCL_PROTO\n"
			  "collective,min_bytes,max_bytes,algorithm,protocol,channels,nodes,ranks");
	for (const char *const *c = a->collectives; *c; c++)
		buf_printf(out, "%s,0,18446744073709551615,%s,%s,%lld,-1,-1\n", *c, a->csv,
			   protocol, (long long)n);
	return 0;
}

const struct recommend_form form_tuner = {
	.name = "tuner",
	.summary = "CSV file of NCCL's example tuner plugin: algorithm, protocol, channels",
	.write = write};
