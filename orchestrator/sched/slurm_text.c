/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/sched/slurm_text.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"

enum {
	STATE_UNKNOWN = 0xff, /* no base state has this number */
	SIGNAL_BITS = 0x7f,
	KIB_A_MIB = 1024,
	KIB_A_GIB = 1024 * 1024,
};

/* --- states ----------------------------------------------------------------------------- */

/* The flags hide the state below them: what is completing or is being signalled has still
 * processes, what was requeued waits. */
static const struct word {
	const char *word;
	uint32_t bits;
} states[] = {
	{"PENDING", 0},           {"RUNNING", 1},
	{"SUSPENDED", 2},         {"COMPLETED", 3},
	{"CANCELLED", 4},         {"FAILED", 5},
	{"TIMEOUT", 6},           {"NODE_FAIL", 7},
	{"PREEMPTED", 8},         {"BOOT_FAIL", 9},
	{"DEADLINE", 10},         {"OUT_OF_MEMORY", 11},
	{"LAUNCH_FAILED", 0x105}, {"REQUEUED", 0x400},
	{"REQUEUE_FED", 0x400},   {"REQUEUE_HOLD", 0x800},
	{"SPECIAL_EXIT", 0x1000}, {"RESIZING", 0x2001},
	{"CONFIGURING", 0x4001},  {"COMPLETING", 0x8001},
	{"STOPPED", 0x10001},     {"POWER_UP_NODE", 0x4001},
	{"REVOKED", 0x80004},     {"RESV_DEL_HOLD", 0x200000},
	{"SIGNALING", 0x400001},  {"STAGE_OUT", 0x8001},
};

bool slurm_text_state(const char *word, uint32_t *bits)
{
	size_t n = strcspn(word, " +"); /* "CANCELLED by 1000", sacct's "CANCELLED+" */

	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (strlen(states[i].word) == n && !strncmp(states[i].word, word, n)) {
			*bits = states[i].bits;
			return true;
		}
	*bits = STATE_UNKNOWN;
	return false;
}

/* The numbers of the reasons that decide something (slurm_state.c); 1 stands for any other. */
static uint32_t reason_number(const char *word)
{
	static const struct word reasons[] = {{"None", 0},
					      {"", 0},
					      {"(null)", 0},
					      {"BadConstraints", 21},
					      {"JobLaunchFailure", 23}};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (str_eq(reasons[i].word, word))
			return reasons[i].bits;
	return 1;
}

/* --- fields ----------------------------------------------------------------------------- */

/* Cut a line at its bars; the last field takes what is left. How many there were. */
static size_t split(char *line, char **field, size_t n)
{
	size_t i = 0;

	while (i < n) {
		field[i++] = line;
		line = i < n ? strchr(line, '|') : NULL;
		if (!line)
			break;
		*line++ = '\0';
	}
	return i;
}

/* "N/A", "Unknown", "None": 0. */
static int64_t seconds(const char *word)
{
	int64_t s;

	return str_to_i64(word, &s) && s > 0 ? s : 0;
}

static int64_t number(const char *word)
{
	int64_t n;

	return str_to_i64(word, &n) ? n : 0;
}

static const char *list_or_nothing(const char *nodes)
{
	return str_eq(nodes, "(null)") || str_eq(nodes, "None assigned") ? "" : nodes;
}

/* ReasonList puts the reason of a waiting job in brackets; of a running one it lists its nodes. */
static char *reason_text(const char *reason, const char *list)
{
	size_t n = strlen(list);

	if (n > 2 && list[0] == '(' && list[n - 1] == ')')
		return xstrndup(list + 1, n - 2);
	return xstrdup(reason);
}

/* Calls `line` for each line of the text, which it may change. */
static void each_line(const char *text, void (*line)(char *line, void *ctx), void *ctx)
{
	_cleanup_free_ char *copy = xstrdup(text);

	for (char *p = copy, *end; *p; p = end) {
		size_t n = strcspn(p, "\n");

		end = p + n + (p[n] == '\n');
		p[n] = '\0';
		line(p, ctx);
	}
}

/* "EXIT:SIGNAL" as a wait status. Alone a number is one already: that is how squeue up to 22.05
 * writes it. */
static int64_t wait_status(const char *word)
{
	const char *colon = strchr(word, ':');
	_cleanup_free_ char *code = xstrndup(word, strcspn(word, ":"));

	if (!colon)
		return number(word);
	return (number(code) & 0xff) << 8 | (number(colon + 1) & SIGNAL_BITS);
}

/* --- squeue ----------------------------------------------------------------------------- */

static void squeue_line(char *line, void *ctx)
{
	enum { JOB, STATE, EXIT, RESTARTS, START, END, SUBMIT, PART, NODES, REASON, LIST, NAME, N };
	char *f[N];
	_cleanup_free_ char *why = NULL;
	struct json *o;
	uint32_t bits;

	if (split(line, f, N) != N || !seconds(f[JOB]))
		return;
	slurm_text_state(f[STATE], &bits);
	why = reason_text(f[REASON], f[LIST]);
	o = json_object();
	json_set_text(o, "job", f[JOB]);
	json_set_text(o, "name", f[NAME]);
	json_set_i64(o, "state", bits);
	json_set_i64(o, "reason", reason_number(f[REASON]));
	json_set_text(o, "reason_text", why);
	json_set_i64(o, "exit", wait_status(f[EXIT]));
	json_set_i64(o, "restarts", number(f[RESTARTS]));
	json_set_i64(o, "submit_s", seconds(f[SUBMIT]));
	json_set_i64(o, "start_s", seconds(f[START]));
	json_set_i64(o, "end_s", seconds(f[END]));
	json_set_text(o, "nodes", list_or_nothing(f[NODES]));
	json_set_text(o, "partition", f[PART]);
	json_add(ctx, o);
}

struct json *slurm_text_squeue(const char *text)
{
	struct json *jobs = json_array();

	each_line(text, squeue_line, jobs);
	return jobs;
}

/* --- sacct ------------------------------------------------------------------------------ */

int64_t slurm_text_kib(const char *word)
{
	_cleanup_free_ char *digits = xstrndup(word, strspn(word, "0123456789."));
	double v, scale = 1.0 / KIB_A_MIB; /* without a unit: bytes */

	if (!str_to_double(digits, &v) || v < 0 || v > 1e15)
		return -1;
	switch (word[strlen(digits)]) {
	case 'K':
		scale = 1;
		break;
	case 'M':
		scale = KIB_A_MIB;
		break;
	case 'G':
		scale = KIB_A_GIB;
		break;
	case 'T':
		scale = (double)KIB_A_GIB * KIB_A_MIB;
		break;
	}
	return (int64_t)(v * scale);
}

static void raise_to(struct json *o, const char *key, int64_t v)
{
	if (v > json_i64(json_get(o, key), -1))
		json_set_i64(o, key, v);
}

enum {
	SACCT_JOB,
	SACCT_STATE,
	SACCT_EXIT,
	SACCT_START,
	SACCT_END,
	SACCT_SUBMIT,
	SACCT_PARTITION,
	SACCT_NODES,
	SACCT_ELAPSED,
	SACCT_RSS,
	SACCT_JOULES,
	SACCT_TRES,
	SACCT_NAME,
	SACCT_FIELDS,
};

struct accounted {
	struct json *jobs, *last; /* the job whose steps may follow */
};

static struct json *sacct_job(char **f)
{
	struct json *o = json_object();
	uint32_t bits;

	slurm_text_state(f[SACCT_STATE], &bits);
	json_set_text(o, "job", f[SACCT_JOB]);
	json_set_text(o, "name", f[SACCT_NAME]);
	json_set_i64(o, "state", bits);
	json_set_i64(o, "exit", wait_status(f[SACCT_EXIT]));
	json_set_i64(o, "submit_s", seconds(f[SACCT_SUBMIT]));
	json_set_i64(o, "start_s", seconds(f[SACCT_START]));
	json_set_i64(o, "end_s", seconds(f[SACCT_END]));
	json_set_i64(o, "elapsed_s", number(f[SACCT_ELAPSED]));
	json_set_text(o, "nodes", list_or_nothing(f[SACCT_NODES]));
	json_set_text(o, "partition", f[SACCT_PARTITION]);
	json_set_text(o, "tres", f[SACCT_TRES]);
	return o;
}

/* Lines of a job come together, its own first: "7", then "7.batch", "7.0". */
static void sacct_line(char *line, void *ctx)
{
	struct accounted *a = ctx;
	char *f[SACCT_FIELDS];
	bool is_step;
	size_t n;

	if (split(line, f, SACCT_FIELDS) != SACCT_FIELDS || !*f[SACCT_JOB])
		return;
	n = strcspn(f[SACCT_JOB], ".");
	is_step = f[SACCT_JOB][n] != '\0';
	if (!is_step) {
		a->last = sacct_job(f);
		json_add(a->jobs, a->last);
	}
	f[SACCT_JOB][n] = '\0';
	if (!a->last || !str_eq(json_text(json_get(a->last, "job"), ""), f[SACCT_JOB]))
		return;
	raise_to(a->last, "maxrss_kib", slurm_text_kib(f[SACCT_RSS]));
	if (number(f[SACCT_JOULES]) > 0) /* without a sensor it is 0 */
		raise_to(a->last, "energy_j", number(f[SACCT_JOULES]));
	if (is_step)
		json_set_bool(a->last, "ran", true);
}

struct json *slurm_text_sacct(const char *text)
{
	struct accounted a = {.jobs = json_array()};

	each_line(text, sacct_line, &a);
	return a.jobs;
}

/* --- scontrol, sbatch, sinfo ------------------------------------------------------------ */

char *slurm_text_value(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *p = text; (p = strstr(p, key)); p += n) {
		const char *v = p + n;
		size_t len;

		if ((p != text && !strchr(" \n", p[-1])) || v[strspn(v, " ")] != '=')
			continue;
		v += strspn(v, " ") + 1;
		v += *v == ' ';
		len = strcspn(v, " \n");
		return len == strlen("(null)") && str_starts(v, "(null)") ? NULL : xstrndup(v, len);
	}
	return NULL;
}

/* The word after `before`; heap, NULL. */
static char *word_after(const char *text, const char *before)
{
	const char *p = strstr(text, before);

	return p ? xstrndup(p + strlen(before), strcspn(p + strlen(before), " \n")) : NULL;
}

bool slurm_text_forecast(const char *text, int64_t *start_s, char **nodes, char **partition)
{
	const char *line = strstr(text, " to start at ");
	_cleanup_free_ char *when = NULL;

	if (!line)
		return false;
	when = word_after(line, " to start at ");
	*start_s = seconds(when);
	*nodes = word_after(line, " on nodes ");
	*partition = word_after(line, " in partition ");
	return true;
}

struct refusal {
	char *what;
	struct buf *said;
};

/* "sbatch: error: Batch job submission failed: What", "allocation failure: What",
 * "slurm_load_jobs error: What". */
static void refusal_line(char *line, void *ctx)
{
	static const char *const who[] = {
		"sbatch: ", "squeue: ", "scontrol: ", "sinfo: ", "scancel: ", "sacct: ", "error: "};
	static const char *const says[] = {
		"Batch job submission failed: ", "allocation failure: ",
		"slurm_load_jobs error: ",       "slurm_load_partitions error: ",
		"slurm_load_partitions: ",       "slurm_load_node: "};
	struct refusal *r = ctx;

	for (size_t i = 0; i < ARRAY_LEN(who); i++)
		if (str_starts(line, who[i]))
			line += strlen(who[i]);
	for (size_t i = 0; i < ARRAY_LEN(says); i++)
		if (str_starts(line, says[i])) {
			free(r->what);
			r->what = xstrdup(line + strlen(says[i]));
			return;
		}
	if (*line)
		buf_printf(r->said, "%s%s", r->said->len ? "\n" : "", line);
}

char *slurm_text_refusal(const char *text, struct buf *said)
{
	struct refusal r = {.said = said};

	each_line(text, refusal_line, &r);
	if (!r.what && said->len) { /* the only line there is says it */
		r.what = buf_take(said);
		*said = (struct buf){0};
	}
	return r.what;
}

bool slurm_text_node_idle(const char *word)
{
	return str_eq(word, "idle");
}

bool slurm_text_node_out(const char *word)
{
	static const char *const out[] = {"down",   "drain", "fail", "unknown",
					  "future", "error", "inval"};

	for (size_t i = 0; i < ARRAY_LEN(out); i++)
		if (str_starts(word, out[i]))
			return true;
	return false;
}
