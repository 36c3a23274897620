/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/nccl_words.h"

#include <string.h>

#include "orchestrator/base/mem.h"

/* Numbers of 2.21 to 2.24, and of RCCL, are those of NCCL's enums. */
static struct span name_of(struct span t, const char *const *names, size_t n)
{
	double v;

	if (num_whole(t, &v) && v >= 0 && v < (double)n)
		return span_of(names[(size_t)v]);
	return t;
}

/* "Algo RING proto SIMPLE channel{..", "Kernel AllReduce_AGxLL_R nchannels 8 ..",
 * "cudaMemcpyBatchAsync". */
static bool choice(struct span t, struct span *algo, struct span *proto)
{
	static const char *const algos[] = {
		"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLSTREE", "PAT"};
	static const char *const protos[] = {"LL", "LL128", "SIMPLE"};

	if (!span_word(&t, proto))
		return false;
	if (span_eq(*proto, "Kernel")) {
		*algo = span_of("SYMMETRIC");
		return span_word(&t, proto);
	}
	if (!span_eq(*proto, "Algo")) {
		*algo = span_of("COPY_ENGINE");
		return true;
	}
	if (!span_word(&t, algo))
		return false;
	t = span_after(t, "proto ");
	if (!t.s || !span_word(&t, proto))
		return false;
	*algo = name_of(*algo, algos, ARRAY_LEN(algos));
	*proto = name_of(*proto, protos, ARRAY_LEN(protos));
	return true;
}

char *nccl_tuning(struct span t)
{
	struct span what = span_after(t, " Bytes -> "), head = t, size, func = {"?", 1}, algo,
		    proto;

	if (!what.s)
		return NULL;
	if (memchr(t.s, ':', (size_t)(what.s - t.s))) {
		struct span label = head;

		size = span_after(head, ":");
		if (!span_word(&label, &func))
			return NULL;
		if (func.s[func.n - 1] == ':')
			func.n--;
	} else {
		size = head;
	}
	if (!span_word(&size, &head) || !choice(what, &algo, &proto))
		return NULL;
	return xasprintf("%.*s %.*s %.*s %.*s", (int)func.n, func.s, (int)head.n, head.s,
			 (int)algo.n, algo.s, (int)proto.n, proto.s);
}

/* Those that tell a cause. */
static const struct {
	const char *words, *what;
} warnings[] = {
#define RETRY "network: a peer did not answer (IBV_WC_RETRY_EXC_ERR)"
#define FLUSH "network: work flushed after an earlier error (IBV_WC_WR_FLUSH_ERR)"
	{"status=12 ", RETRY},
	{"with error 12, ", RETRY}, /* to 2.14 */
	{"status=IBV_WC_RETRY_EXC_ERR", RETRY},
	{"status=5 ", FLUSH},
	{"with error 5, ", FLUSH},
	{"status=IBV_WC_WR_FLUSH_ERR", FLUSH},
#undef RETRY
#undef FLUSH
	{"Call to ibv_", "network: a verbs call failed"},
	{"async fatal event", "network: the adapter reports a fatal event"},
	{"Connection closed by remote peer", "a peer went away"},
	{"connection closed by remote peer", "a peer went away"},
	{"Error while creating shared memory segment", "host: /dev/shm is full or too small"},
	{"Cuda failure", "device: a CUDA call failed"},
	{"unhandled cuda error", "device: a CUDA call failed"},
	{"imeout", "a wait timed out"},
	{"Mismatched collective", "ranks call different collectives"},
};

const char *nccl_warn_class(struct span warning)
{
	for (size_t i = 0; i < ARRAY_LEN(warnings); i++)
		if (span_has(warning, warnings[i].words))
			return warnings[i].what;
	return NULL;
}

bool nccl_failed(struct span t, struct nccl_failure *out)
{
	static const struct {
		const char *words, *fact, *what;
	} failures[] = {
		{"Watchdog caught collective operation timeout: ", "nccl.watchdog",
		 "a collective timed out (PyTorch's watchdog)"},
		{"watchdog got stuck for ", "nccl.watchdog_stuck",
		 "PyTorch's watchdog itself got stuck"},
		{"NCCL error in: ", "nccl.error", "NCCL failed"},
		{"NCCL error: ", "nccl.error", "NCCL failed"},
		{"NCCL Error ", "nccl.error", "NCCL failed"},
	};

	for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
		out->text = span_trim(span_after(t, failures[i].words));
		if (!out->text.n)
			continue;
		out->fact = failures[i].fact;
		out->what = failures[i].what;
		return true;
	}
	return false;
}
