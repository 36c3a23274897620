/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What NCCL (2.4 to 2.30) and RCCL print under NCCL_DEBUG=INFO:
 *
 *   [<time> ]host:pid:tid [dev] NCCL INFO <message>
 *   [<time> ]host:pid:tid [dev] file:line [(func)] NCCL WARN <message>
 *
 * Facts, each once: nccl.version, nccl.network, nccl.net_devices, nccl.net_missing,
 * nccl.net_plugin, nccl.tuner, nccl.nvls, nccl.nvls_tree, nccl.gdr ("Enabled for GPU 0 / HCA 0
 * ..."), nccl.pxn, nccl.graph (NCCL's own estimate of a pattern), nccl.comm ("0x9f2c nranks 16"),
 * nccl.algo
 * ("AllReduce 268435456 RING SIMPLE"), nccl.warn_class and, as often as they come, nccl.warn,
 * nccl.watchdog, nccl.watchdog_stuck and nccl.error (PyTorch's, vLLM's). At the end:
 * nccl.suspect, what a reader of the log should look at;
 * nccl.env.NAME (a variable that the library read and took: "set by environment to V") and
 * nccl.env_refused.NAME (a value that it did not take). A variable that no line names did not reach
 * the library, or does not exist. What it works with, whatever was asked for: nccl.p2p_chunk,
 * nccl.socket_threads, nccl.sockets_per_thread. The rank of these is that of their process in its
 * largest communicator.
 *
 * Values, at the end: nccl_transport_channels (label transport: "NET/IB", "P2P/IPC", "SHM", ...),
 * nccl_gdr_channels, nccl_gdr, nccl_nranks, nccl_nnodes, nccl_communicators; and as they come
 * nccl_coll_channels, nccl_nvls_channels, nccl_p2p_channels, nccl_init_s. "collnet channels"
 * repeats the count of coll (a misprint of NCCL) and is not taken. Transports need
 * NCCL_DEBUG_SUBSYS with INIT or P2P,NET.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/emit.h"
#include "probes/nccl_origin.h"
#include "probes/nccl_words.h"
#include "probes/probe.h"
#include "probes/trigger.h"

enum {
	PROCS_MAX = 16384, /* processes of the largest job that we expect to read in one file */
	ENV_PER_PROC_MAX = 128, /* NCCL has some 200 variables */
	TRANSPORTS_MAX = 64,
	ALGOS_MAX = 512,  /* (function, size, algorithm) of one job */
	COMMS_MAX = 4096, /* communicators: one a pipeline stage, tensor group and data group */
	WARNS_MAX = 200,  /* a broken network repeats itself; the first ones say what is wrong */
	ORIGIN_MAX = 128, /* "host:pid" */
	NAME_MAX_BYTES = 96,
	NEAR_SLOTS = 4096,
};

/* What a process says of itself. */
enum said { SAID_ENV, SAID_REFUSED, SAID_EFFECT };
struct env {
	char *name, *value;
	int64_t line;
	enum said said;
};

/* One process, told apart by "host:pid". */
struct proc {
	char *origin;
	int prefix_rank;
	int64_t nranks; /* of its largest communicator so far, and its rank in it */
	int rank;
	struct env *env;
	size_t n_env, cap_env;
};

struct transport {
	char name[NAME_MAX_BYTES];
	int64_t channels;
};

/* Kinds of lines, told by their words in one pass. */
enum kind {
	KIND_FAILURE, /* no line of NCCL's own */
	KIND_TUNING,
	KIND_CHANNEL,
	KIND_ENV,
	KIND_EFFECT,
	KIND_COUNTS,
	KIND_INIT,
	KIND_VERSION,
	KIND_NVLS,
	KIND_CONNECTED,
	KIND_DEVICES,
	KIND_CHOICES /* and up: one each of choices[] */
};

static const struct {
	const char *word;
	enum kind kind;
} kinds[] = {
	{" Bytes -> ", KIND_TUNING},
	{" via ", KIND_CHANNEL},
	{" set by environment to ", KIND_ENV},
	{" set to ", KIND_ENV},
	{"Invalid value ", KIND_ENV},
	{"P2P Chunksize set to ", KIND_EFFECT},
	{"NET/Socket: Using ", KIND_EFFECT},
	{" coll channels, ", KIND_COUNTS},
	{"ncclComm", KIND_INIT},
	{"comm 0x", KIND_INIT},
	{" Init ", KIND_INIT},
	{"CCL version ", KIND_VERSION},
	{"NVLS multicast support is", KIND_NVLS},
	{"Connected ", KIND_CONNECTED},
	{" : Using ", KIND_DEVICES},
	{" : No device found", KIND_DEVICES},
};

struct probe_run {
	struct input *in;
	struct emit out;
	struct trigger *words;
	uint32_t found; /* kinds that the current line may be of */
	size_t behind;  /* its bytes behind "NCCL ", 0 if it has none */
	struct proc *procs;
	size_t n_procs, cap_procs;
	uint16_t near[NEAR_SLOTS]; /* by hash of the origin: the process seen last, from 1 */
	struct transport transports[TRANSPORTS_MAX];
	size_t n_transports;
	struct strv algos, hosts, once, comms; /* what was reported already */
	int64_t lines, warns, starts, completes, gdr_channels, net_channels, nranks, nnodes;
	int64_t gdr_enabled;   /* lines that say so of a GPU and an adapter */
	int64_t nvls_channels; /* of the communicator with most, -1: not told */
	bool gdr_seen, gdr, ib_found, nvls_available;
	int64_t failed_line; /* the first that says that NCCL failed, 0: none */
	const char *failed;
	bool cause_next; /* behind "Last error:" of that rank */
	int cause_rank;
};

/* A line of NCCL, taken apart. */
struct message {
	struct nccl_origin from;
	struct span text;
};

/* True the first time that a text is seen; never for more than max of them. */
static bool first_time(struct strv *seen, const char *text, size_t max)
{
	for (size_t i = 0; i < seen->n; i++)
		if (str_eq(seen->v[i], text))
			return false;
	if (seen->n >= max)
		return false;
	strv_add(seen, text);
	return true;
}

/* The end of an origin is what differs: the process number. */
static size_t near_slot(struct span origin)
{
	uint64_t v = 0;

	if (origin.n >= sizeof(v))
		memcpy(&v, origin.s + origin.n - sizeof(v), sizeof(v));
	return v * UINT64_C(0x9e3779b97f4a7c15) >> 52;
}

static struct proc *proc_add(struct probe_run *r, const struct message *m)
{
	struct proc *p;

	if (r->n_procs == PROCS_MAX || m->from.id.n >= ORIGIN_MAX)
		return NULL;
	r->procs = xgrow(r->procs, r->n_procs, &r->cap_procs, sizeof(*r->procs));
	if (m->from.host.n) {
		_cleanup_free_ char *host = xstrndup(m->from.host.s, m->from.host.n);

		first_time(&r->hosts, host, PROCS_MAX);
	}
	p = &r->procs[r->n_procs++];
	*p = (struct proc){.origin = xstrndup(m->from.id.s, m->from.id.n),
			   .prefix_rank = r->out.rank,
			   .rank = -1};
	return p;
}

static struct proc *proc_of(struct probe_run *r, const struct message *m)
{
	uint16_t *near = &r->near[near_slot(m->from.id)];
	struct proc *p = NULL;

	if (*near && span_eq(m->from.id, r->procs[*near - 1].origin))
		return &r->procs[*near - 1];
	for (size_t i = 0; i < r->n_procs && !p; i++)
		if (span_eq(m->from.id, r->procs[i].origin))
			p = &r->procs[i];
	if (!p)
		p = proc_add(r, m);
	if (p)
		*near = (uint16_t)(p - r->procs + 1);
	return p;
}

static void fact_once(struct probe_run *r, const char *key, struct span text)
{
	size_t k = strlen(key);

	for (size_t i = 0; i < r->once.n; i++) {
		const char *s = r->once.v[i];

		if (str_starts(s, key) && s[k] == ' ' && span_eq(text, s + k + 1))
			return;
	}
	if (r->once.n == ALGOS_MAX)
		return;
	strv_addf(&r->once, "%s %.*s", key, (int)text.n, text.s);
	emit_fact(&r->out, key, text);
}

static void keep_env(struct probe_run *r, const struct message *m, struct span name,
		     struct span value, enum said said)
{
	struct proc *p = proc_of(r, m);

	if (!p || p->n_env == ENV_PER_PROC_MAX || !name.n || name.n > NAME_MAX_BYTES)
		return;
	for (size_t i = 0; i < p->n_env; i++)
		if (span_eq(name, p->env[i].name) && span_eq(value, p->env[i].value)) {
			/* It is read first, and refused then. */
			if (said == SAID_REFUSED)
				p->env[i].said = said;
			return;
		}
	p->env = xgrow(p->env, p->n_env, &p->cap_env, sizeof(*p->env));
	p->env[p->n_env++] = (struct env){.name = xstrndup(name.s, name.n),
					  .value = xstrndup(value.s, value.n),
					  .line = r->out.raw_of->line,
					  .said = said};
}

static bool is_variable(struct span t)
{
	if (t.n < 6 || (memcmp(t.s, "NCCL_", 5) != 0 && memcmp(t.s, "RCCL_", 5) != 0))
		return false;
	for (size_t i = 0; i < t.n; i++)
		if (!(t.s[i] >= 'A' && t.s[i] <= 'Z') && !(t.s[i] >= '0' && t.s[i] <= '9') &&
		    t.s[i] != '_')
			return false;
	return true;
}

/* "NCCL_X set by environment to V[.]", "NCCL_IB_HCA set to V", "Invalid value S for NCCL_X, ...".
 */
static bool env_line(struct probe_run *r, const struct message *m)
{
	static const char *const ways[] = {" set by environment to ", " set to "};
	struct span t = m->text, name, value, rest = t;

	value = span_after(t, "Invalid value ");
	if (value.s) {
		struct span at = span_after(value, " for ");

		if (at.s && span_next(&at, ", ", &name) && is_variable(name)) {
			value.n = (size_t)(name.s - value.s) - strlen(" for ");
			keep_env(r, m, name, value, SAID_REFUSED);
			return true;
		}
	}
	if (!span_word(&rest, &name) || !is_variable(name))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		if (rest.n < strlen(ways[i]) || memcmp(rest.s, ways[i], strlen(ways[i])) != 0)
			continue;
		value = span_trim(span_after(rest, ways[i]));
		if (value.n && value.s[value.n - 1] == '.')
			value.n--;
		keep_env(r, m, name, value, SAID_ENV);
		return true;
	}
	return false;
}

/* What NCCL works with, whatever was asked for: "P2P Chunksize set to 131072", "NET/Socket: Using 2
 * threads and 8 sockets per thread". */
static bool effect_line(struct probe_run *r, const struct message *m)
{
	struct span v = span_after(m->text, "P2P Chunksize set to "), w;

	if (v.s && span_word(&v, &w)) {
		keep_env(r, m, span_of("p2p_chunk"), w, SAID_EFFECT);
		return true;
	}
	v = span_after(m->text, "NET/Socket: Using ");
	if (!v.s || !span_word(&v, &w))
		return false;
	keep_env(r, m, span_of("socket_threads"), w, SAID_EFFECT);
	v = span_after(v, " and ");
	if (v.s && span_word(&v, &w))
		keep_env(r, m, span_of("sockets_per_thread"), w, SAID_EFFECT);
	return true;
}

/* The kind of a transport: its first two parts, so that /read, /CE, device and /GDRDMA fall off. */
static struct span transport_kind(struct span via)
{
	struct span rest = via, a, b;

	if (!span_next(&rest, "/", &a))
		return via;
	if (span_eq(a, "SHM") || span_eq(a, "direct shared memory"))
		return span_of("SHM");
	if (!rest.s || !span_next(&rest, "/(", &b))
		return a;
	return (struct span){a.s, (size_t)(b.s + b.n - a.s)};
}

static void count_transport(struct probe_run *r, struct span kind)
{
	size_t i = 0;

	while (i < r->n_transports && !span_eq(kind, r->transports[i].name))
		i++;
	if (i == r->n_transports) {
		if (i == TRANSPORTS_MAX || !kind.n || kind.n >= NAME_MAX_BYTES)
			return;
		memcpy(r->transports[i].name, kind.s, kind.n);
		r->transports[i].name[kind.n] = '\0';
		r->n_transports++;
	}
	r->transports[i].channels++;
}

/* "Channel 00/0 : 0[0] -> 1[1] [send] via P2P/CUMEM"; before 2.5 "Ring 00 : ...". */
static bool channel_line(struct probe_run *r, const struct message *m)
{
	struct span via, end, t = m->text;

	if (!span_starts(t, "Channel ") && !span_starts(t, "Ring ") && !span_starts(t, "CollNet "))
		return false;
	via = span_after(t, " via ");
	if (!via.s)
		return false;
	/* RCCL adds the communicator. */
	end = span_after(via, " comm 0x");
	if (end.s)
		via.n = (size_t)(end.s - via.s) - strlen(" comm 0x");
	via = span_trim(via);
	count_transport(r, transport_kind(via));
	if (via.n > 3 && memcmp(via.s, "NET", 3) == 0) {
		r->net_channels++;
		r->gdr_channels += span_has(via, "/GDRDMA");
	}
	return true;
}

/* The number before a word: "16 nvls channels"; -1 when it is not there. */
static double count_before(struct probe_run *r, struct span t, const char *word, const char *metric)
{
	struct span f, w, last = {"", 0};
	double v = -1;

	while (span_next(&t, ",", &f)) {
		if (!span_has(f, word))
			continue;
		if (span_word(&f, &w))
			last = w;
		break;
	}
	if (last.n && emit_token(&r->out, metric, last, 1, NULL) && num_whole(last, &v))
		return v;
	return -1;
}

static bool counts_line(struct probe_run *r, const struct message *m)
{
	double nvls;

	if (!span_has(m->text, " coll channels, "))
		return false;
	count_before(r, m->text, " coll channels", "nccl_coll_channels");
	nvls = count_before(r, m->text, " nvls channels", "nccl_nvls_channels");
	if (nvls > (double)r->nvls_channels && nvls < 1e6)
		r->nvls_channels = (int64_t)nvls;
	count_before(r, m->text, " p2p channels", "nccl_p2p_channels");
	return true;
}

static bool number_after(struct span t, const char *key, double *out)
{
	struct span v = span_after(t, key);

	return v.s && num_scan(v, out, NULL) == NUM_FINITE;
}

/* "commId 0x9f2c": the communicators of tensor, pipeline and data groups are told apart by it. */
static void keep_comm(struct probe_run *r, struct span t, double nranks)
{
	struct span v = span_after(t, " commId "), id;
	_cleanup_free_ char *text = NULL;

	if (!v.s || !span_word(&v, &id))
		return;
	text = xasprintf("%.*s nranks %.0f", (int)(id.n < 40 ? id.n : 40), id.s, nranks);
	if (first_time(&r->comms, text, COMMS_MAX))
		emit_fact(&r->out, "nccl.comm", span_of(text));
}

/* "... rank 0 nranks 16 cudaDev 0 ... - Init START|COMPLETE" and the timings behind it. */
static bool init_line(struct probe_run *r, const struct message *m)
{
	struct proc *p = proc_of(r, m);
	struct span t = m->text;
	double rank, nranks, total;

	/* "NVLS Creating Multicast group nranks 8 ..." is no communicator. */
	if (!span_has(t, "ncclComm") && !span_has(t, "comm 0x") && !span_has(t, " Init "))
		return false;
	if (span_has(t, " nNodes ") && number_after(t, " nNodes ", &total) && total < 1e7 &&
	    (int64_t)total > r->nnodes)
		r->nnodes = (int64_t)total;
	if (!number_after(t, " rank ", &rank) || !number_after(t, " nranks ", &nranks) ||
	    rank < 0 || rank > 1e7 || nranks < 1 || nranks > 1e7)
		return false;
	if (p && (int64_t)nranks > p->nranks) {
		p->nranks = (int64_t)nranks;
		p->rank = (int)rank;
	}
	if ((int64_t)nranks > r->nranks)
		r->nranks = (int64_t)nranks;
	keep_comm(r, t, nranks);
	r->starts += span_has(t, "Init START");
	r->completes += span_has(t, "Init COMPLETE");
	if (span_has(t, "Init timings") && number_after(t, " total ", &total)) {
		r->out.rank = (int)rank;
		emit_value(&r->out, "nccl_init_s", total, NULL);
	}
	return true;
}

static bool tuning_line(struct probe_run *r, const struct message *m)
{
	_cleanup_free_ char *text = nccl_tuning(m->text);

	if (!text)
		return false;
	if (first_time(&r->algos, text, ALGOS_MAX))
		emit_fact(&r->out, "nccl.algo", span_of(text));
	return true;
}

/* Lines that say one thing behind a few words: the fact's key and what it must hold. */
static const struct {
	const char *words, *key;
} choices[] = {
	{"Using network ", "nccl.network"},
	{"TUNER/Plugin: Using ", "nccl.tuner"},
	{"Assigned NET plugin ", "nccl.net_plugin"},
	{"NET/Plugin: Loaded net plugin ", "nccl.net_plugin"},
	{"GPU Direct RDMA ", "nccl.gdr"},
	{"Pattern ", "nccl.graph"},
	{"Using internal Network ", "nccl.network"}, /* before 2.6 */
	{"Failed to initialize NET plugin ", "nccl.net_missing"},
};

static bool is_choice(struct span t, size_t i)
{
	switch (i) {
	case 4:
		return span_has(t, " for GPU ") || span_has(t, " for HCA ");
	case 5:
		return span_has(t, "nChannels ") && span_has(t, ", type ");
	default:
		return true;
	}
}

/* "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>" */
static bool device_line(struct probe_run *r, struct span t)
{
	struct span v = span_after(t, " : Using "), devices, name, text;

	if (t.n < 4 || memcmp(t.s, "NET/", 4) != 0)
		return false;
	if (span_has(t, " : No device found")) {
		name = t;
		span_next(&name, " ", &devices);
		fact_once(r, "nccl.net_missing", devices);
		return true;
	}
	if (!v.s || !v.n || v.s[0] != '[' || !span_next(&v, ";", &devices))
		return false;
	/* "[RO]" alone is an option, relaxed ordering, and no device. */
	if (!span_has(devices, "[0]"))
		return true;
	r->ib_found = r->ib_found || span_starts(t, "NET/IB ");
	text = (struct span){t.s, (size_t)(devices.s + devices.n - t.s)};
	fact_once(r, "nccl.net_devices", span_trim(text));
	return true;
}

static bool rings_line(struct probe_run *r, struct span t)
{
	struct span pxn = span_after(t, " PXN "), w;
	double gdr;

	if (!span_has(t, "Connected all rings"))
		return false;
	if (pxn.s && span_word(&pxn, &w))
		fact_once(r, "nccl.pxn", w);
	if (number_after(t, " GDR ", &gdr)) {
		r->gdr_seen = true;
		r->gdr = r->gdr || gdr > 0;
	}
	return true;
}

static bool has(uint32_t found, unsigned kind)
{
	return found >> kind & 1;
}

static bool version_line(struct probe_run *r, struct span t)
{
	struct span v = span_after(t, "CCL version ");

	if (v.s && span_starts(v, ": "))
		v = span_after(v, ": ");
	if (!v.s || !v.n || v.s[0] < '0' || v.s[0] > '9')
		return false;
	fact_once(r, "nccl.version", span_trim(v));
	return true;
}

static bool nvls_line(struct probe_run *r, struct span t)
{
	bool not = span_has(t, "not available");

	if (!span_has(t, "NVLS multicast support is"))
		return false;
	r->nvls_available = r->nvls_available || !not ;
	fact_once(r, "nccl.nvls", span_of(not ? "not available" : "available"));
	return true;
}

static bool connected_line(struct probe_run *r, struct span t)
{
	if (!span_has(t, "Connected NVLS tree"))
		return rings_line(r, t);
	fact_once(r, "nccl.nvls_tree", span_of("connected"));
	return true;
}

static bool choice_line(struct probe_run *r, struct span t, uint32_t found)
{
	for (unsigned i = 0; i < ARRAY_LEN(choices); i++) {
		struct span v = {NULL, 0};

		if (has(found, KIND_CHOICES + i))
			v = span_after(t, choices[i].words);
		if (!v.s || !is_choice(t, i))
			continue;
		r->gdr_enabled += i == 4 && span_starts(v, "Enabled for GPU");
		if (span_has(v, " to comm"))
			v.n = (size_t)(span_after(v, " to comm").s - v.s) - strlen(" to comm");
		if (span_starts(v, "tuner plugin ")) /* 2.21 to 2.26 */
			v = span_after(v, "tuner plugin ");
		fact_once(r, choices[i].key, span_trim(v));
		return true;
	}
	return false;
}

static void info_line(struct probe_run *r, const struct message *m, uint32_t found)
{
	(void)proc_of(r, m); /* its host counts */
	(void)((has(found, KIND_TUNING) && tuning_line(r, m)) ||
	       (has(found, KIND_CHANNEL) && channel_line(r, m)) ||
	       (has(found, KIND_ENV) && env_line(r, m)) ||
	       (has(found, KIND_EFFECT) && effect_line(r, m)) ||
	       (has(found, KIND_COUNTS) && counts_line(r, m)) ||
	       (has(found, KIND_INIT) && init_line(r, m)) ||
	       (has(found, KIND_VERSION) && version_line(r, m->text)) ||
	       (has(found, KIND_NVLS) && nvls_line(r, m->text)) ||
	       (found >> KIND_CHOICES && choice_line(r, m->text, found)) ||
	       (has(found, KIND_CONNECTED) && connected_line(r, m->text)) ||
	       (has(found, KIND_DEVICES) && device_line(r, m->text)));
}

static void warn_line(struct probe_run *r, struct span text)
{
	const char *what = nccl_warn_class(text);

	if (r->warns++ < WARNS_MAX)
		emit_fact(&r->out, "nccl.warn", span_trim(text));
	if (what)
		fact_once(r, "nccl.warn_class", span_of(what));
}

static bool is_last_error(struct span t)
{
	static const char end[] = "Last error:";

	return t.n >= sizeof(end) - 1 &&
	       memcmp(t.s + t.n - (sizeof(end) - 1), end, sizeof(end) - 1) == 0;
}

/* Of those above NCCL; the line behind "Last error:" is NCCL's own warning. */
static bool failure_line(struct probe_run *r, const struct input_line *l)
{
	struct span t = span_trim(input_span(l));
	struct nccl_failure f;

	if (r->cause_next && l->rank == r->cause_rank) {
		r->cause_next = false;
		if (!t.n || span_has(t, "NCCL "))
			return false;
		emit_begin(&r->out, l);
		warn_line(r, t);
		return true;
	}
	if (is_last_error(t)) {
		r->cause_next = r->failed_line != 0;
		r->cause_rank = l->rank;
		return true;
	}
	if (!nccl_failed(t, &f))
		return false;
	emit_begin(&r->out, l);
	r->lines++;
	if (!r->failed_line) {
		r->failed_line = l->line;
		r->failed = f.what;
	}
	if (r->warns++ < WARNS_MAX)
		emit_fact(&r->out, f.fact, f.text);
	return true;
}

/* Which kinds a line may be of. Who wrote it tells nothing of that, so only what is behind "NCCL
 * INFO" is looked at; most lines of a large job are of channels. */
static bool is_wanted(void *ctx, struct span line)
{
	struct probe_run *r = ctx;
	struct span mark = span_after(line, "CCL ");
	char letter = mark.s && mark.s - line.s > 4 ? mark.s[-5] : '\0';

	/* Of RCCL's own name only its version has need: its lines say NCCL. */
	if (letter != 'N' && (letter != 'R' || !span_starts(mark, "version ")))
		mark = (struct span){NULL, 0};
	r->behind = mark.n;
	r->found = 0;
	if (span_starts(mark, "INFO Channel "))
		r->found = UINT32_C(1) << KIND_CHANNEL;
	else if (span_starts(mark, "INFO "))
		r->found = trigger_scan(r->words, mark, 0);
	else if (r->cause_next || span_starts(mark, "error") || span_starts(mark, "Error ") ||
		 span_has(line, "atchdog ") || is_last_error(span_trim(line)))
		r->found = UINT32_C(1) << KIND_FAILURE;
	return r->found || mark.s;
}

static void nccl_line(struct probe_run *r, const struct input_line *l, struct span mark)
{
	struct span t = input_span(l);
	struct message m = {0};
	bool warns = span_starts(mark, "WARN ");

	/* "NCCL version 2.28.9+cuda12.9", "RCCL version : 2.22.3-HEAD:1a2b3c4" stand alone. */
	if (span_starts(mark, "version ") && !span_has(t, "NCCL INFO")) {
		r->lines++;
		version_line(r, t);
		return;
	}
	if ((!warns && !span_starts(mark, "INFO ")) ||
	    !nccl_origin((struct span){t.s, (size_t)(mark.s - t.s) - strlen("NCCL ")}, &m.from))
		return;
	if (!l->complete || l->cut) {
		emit_bad(&r->out, "cut in the middle of a line");
		return;
	}
	r->lines++;
	mark = (struct span){mark.s + strlen("INFO "), mark.n - strlen("INFO ")};
	m.text = span_trim(mark);
	m.text.n = (size_t)(mark.s + mark.n - m.text.s);
	if (warns)
		warn_line(r, m.text);
	else
		info_line(r, &m, r->found);
}

static void on_line(void *ctx, const struct input_line *l)
{
	struct probe_run *r = ctx;

	if (has(r->found, KIND_FAILURE) && failure_line(r, l))
		return;
	if (!r->behind || r->behind + strlen("NCCL ") > l->len)
		return;
	emit_begin(&r->out, l);
	nccl_line(r, l, (struct span){l->text + l->len - r->behind, r->behind});
}

static int nccl_open(const struct probe_context *c, const struct probe_sink *sink,
		     struct probe_run **out, struct err *e)
{
	struct probe_run *r = xcalloc(1, sizeof(*r));

	(void)e;
	emit_open(&r->out, c, sink);
	r->nvls_channels = -1;
	r->words = trigger_new();
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		trigger_add(r->words, kinds[i].word, kinds[i].kind);
	for (unsigned i = 0; i < ARRAY_LEN(choices); i++)
		trigger_add(r->words, choices[i].words, KIND_CHOICES + i);
	r->in = input_new(on_line, r);
	input_filter(r->in, is_wanted);
	*out = r;
	return 0;
}

static int nccl_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	input_feed(r->in, bytes, n);
	return 0;
}

static void emit_env(struct probe_run *r, const struct proc *p)
{
	static const char *const groups[] = {
		[SAID_ENV] = "env.", [SAID_REFUSED] = "env_refused.", [SAID_EFFECT] = ""};
	struct input_line l = {
		.text = "", .complete = true, .rank = -1, .local_rank = -1, .host = ""};

	for (size_t i = 0; i < p->n_env; i++) {
		const struct env *v = &p->env[i];
		_cleanup_free_ char *key = xasprintf("nccl.%s%s", groups[v->said], v->name);

		l.line = v->line;
		l.rank = p->rank >= 0 ? p->rank : p->prefix_rank;
		emit_begin(&r->out, &l);
		emit_fact(&r->out, key, span_of(v->value));
	}
}

static int64_t channels_of(const struct probe_run *r, const char *transport)
{
	for (size_t i = 0; i < r->n_transports; i++)
		if (str_eq(r->transports[i].name, transport))
			return r->transports[i].channels;
	return 0;
}

/* What a slow network or a wrong setting looks like in this log. */
static void emit_suspects(struct probe_run *r)
{
	int64_t socket = channels_of(r, "NET/Socket"), shm = channels_of(r, "SHM"),
		indirect = channels_of(r, "P2P/indirect");
	bool ib = r->ib_found || channels_of(r, "NET/IB");

	if (socket && ib)
		emit_fact(&r->out, "nccl.suspect",
			  span_of("channels go over TCP sockets (NET/Socket) although NET/IB found "
				  "devices"));
	if (r->net_channels > socket && !r->gdr_channels)
		emit_fact(&r->out, "nccl.suspect",
			  span_of("no network channel uses GPU Direct RDMA"));
	if (shm)
		emit_fact(&r->out, "nccl.suspect",
			  span_of("channels inside a node go through host memory (SHM)"));
	if (indirect)
		emit_fact(&r->out, "nccl.suspect",
			  span_of("channels inside a node go through a third GPU (P2P/indirect)"));
	if (r->nvls_available && !r->nvls_channels)
		emit_fact(&r->out, "nccl.suspect",
			  span_of("NVLink SHARP is available and no channel uses it"));
}

/* What only the whole log tells. Its values come from no line. */
static void emit_totals(struct probe_run *r)
{
	for (size_t i = 0; i < r->n_procs; i++)
		emit_env(r, &r->procs[i]);
	r->out.raw_of = NULL;
	r->out.raw[0] = '\0';
	r->out.rank = -1;
	for (size_t i = 0; i < r->n_transports; i++) {
		struct emit_labels ls;
		struct emit_tag tag = {.step = -1, .t_us = -1};

		ls.n = 0;
		emit_label(&ls, "transport", span_of(r->transports[i].name));
		tag.labels = ls.v;
		tag.n_labels = ls.n;
		emit_value(&r->out, "nccl_transport_channels", (double)r->transports[i].channels,
			   &tag);
	}
	if (r->net_channels)
		emit_value(&r->out, "nccl_gdr_channels", (double)r->gdr_channels, NULL);
	/* "GDR 1" of a ring that stays in its node says nothing. */
	if (r->net_channels || ((r->gdr_seen || r->gdr_enabled) && r->nnodes > 1))
		emit_value(&r->out, "nccl_gdr",
			   r->gdr || r->gdr_channels > 0 ||
				   (!r->gdr_seen && !r->net_channels && r->gdr_enabled),
			   NULL);
	if (r->nranks) {
		emit_value(&r->out, "nccl_nranks", (double)r->nranks, NULL);
		emit_value(&r->out, "nccl_nnodes",
			   (double)(r->nnodes ? r->nnodes : (int64_t)r->hosts.n), NULL);
	}
	if (r->comms.n)
		emit_value(&r->out, "nccl_communicators", (double)r->comms.n, NULL);
	emit_suspects(r);
}

static enum probe_status judge(const struct probe_run *r, struct buf *detail)
{
	enum probe_status s;

	if (!r->lines) {
		if (detail)
			buf_str(detail, "no line of NCCL");
		return PROBE_ABSENT;
	}
	if (r->failed_line) {
		if (detail)
			buf_printf(detail, "line %lld: %s", (long long)r->failed_line, r->failed);
		return PROBE_FAILED;
	}
	s = r->out.bad ? emit_status(&r->out, detail) : PROBE_OK;
	if (r->starts <= r->completes)
		return s == PROBE_ABSENT ? PROBE_PARTIAL : s;
	if (detail)
		buf_printf(detail, "%s%lld communicators began and did not complete",
			   detail->len ? "; " : "", (long long)(r->starts - r->completes));
	return PROBE_PARTIAL;
}

static void run_free(struct probe_run *r)
{
	for (size_t i = 0; i < r->n_procs; i++) {
		for (size_t k = 0; k < r->procs[i].n_env; k++) {
			free(r->procs[i].env[k].name);
			free(r->procs[i].env[k].value);
		}
		free(r->procs[i].env);
		free(r->procs[i].origin);
	}
	free(r->procs);
	strv_free(&r->algos);
	strv_free(&r->hosts);
	strv_free(&r->once);
	strv_free(&r->comms);
	trigger_free(r->words);
	input_free(r->in);
	emit_close(&r->out);
	free(r);
}

static enum probe_status nccl_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s;

	input_finish(r->in);
	emit_totals(r);
	s = judge(r, detail);
	run_free(r);
	return s;
}

/* nccl-tests prints NCCL lines between its own: its probe is surer of itself. */
static int nccl_sniff(const char *head, size_t n)
{
	return span_has((struct span){head, n}, " NCCL INFO ") ? 85 : 0;
}

const struct probe probe_nccl_log = {
	.name = "nccl_log",
	.summary = "NCCL_DEBUG=INFO: version, variables taken and refused, transports, algorithms, "
		   "warnings",
	.example = "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING torchrun train.py",
	.sniff = nccl_sniff,
	.in_logs = true,
	.open = nccl_open,
	.feed = nccl_feed,
	.finish = nccl_finish,
};
