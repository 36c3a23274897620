/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/agent/nodeside.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "orchestrator/agent/block.h"
#include "orchestrator/agent/evidence.h"
#include "orchestrator/agent/jwrite.h"
#include "orchestrator/agent/nodeenv.h"
#include "orchestrator/agent/place.h"
#include "orchestrator/agent/procs.h"
#include "orchestrator/agent/sampler.h"
#include "orchestrator/agent/shm.h"
#include "orchestrator/agent/trialenv.h"
#include "orchestrator/base/clock.h"
#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

enum {
	PIECE_MAX = 800,  /* of a report: srun keeps lines of up to 1,024 bytes whole */
	WATCH_US = 25000, /* while the ranks of a trial are awaited: it is not measured yet */
	WATCH_MOST_US = 20000000,
	SETTLE_US = 100000, /* as trial.c: what is about to exit is no leftover */
	KILL_ROUND_US = 20000,
	KILL_GIVE_UP_US = 10000000,
	COMMAND_MAX = 64 << 10,
};
static const char SHM_DIR[] = "/dev/shm";

struct nodeside {
	char **dirs;
	size_t n_dirs, at; /* block at hand */
	struct place place;
	struct block *block; /* NULL: none yet */
	struct kvs secrets, added;
	struct sampler *sampler;
	int64_t sample_at, watch_at, watch_until; /* monotonic; INT64_MAX: not */
	int slot;                                 /* -1: no trial */
	char *marker;
	int64_t start_us;
	struct shm_list shm;
	struct evidence evidence;
	struct buf line;
};

static int64_t mono_us(void)
{
	return clock_mono_us(&clock_system);
}

static long long utc_us(void)
{
	return (long long)clock_utc_us(&clock_system);
}

/* --- answers ---------------------------------------------------------------------------- */

static void say_hello(const struct nodeside *n)
{
	struct utsname u;

	if (uname(&u))
		u.machine[0] = '\0';
	printf("@%s hello %lld %lld %s %s %s\n", n->place.node, utc_us(), (long long)mono_us(),
	       n->place.boot_id, u.machine, n->place.switches);
}

static void say_error(const struct nodeside *n, const struct err *e)
{
	char text[PIECE_MAX];

	str_copy(text, sizeof text, e->text);
	for (char *p = text; *p; p++)
		if (*p == '\n')
			*p = ' ';
	printf("@%s error %s\n", n->place.node, text);
}

static void say_report(const struct nodeside *n)
{
	const char *text;
	struct jwrite w;
	size_t len;

	jwrite_init(&w);
	jwrite_object(&w, NULL);
	evidence_write(&n->evidence, &w);
	jwrite_object_end(&w);
	jwrite_result(&w, &text, &len);
	for (size_t i = 0; i < len; i += PIECE_MAX)
		printf("@%s more %.*s\n", n->place.node,
		       (int)(len - i < PIECE_MAX ? len - i : PIECE_MAX), text + i);
	jwrite_free(&w);
}

/* --- the block -------------------------------------------------------------------------- */

static void leave_block(struct nodeside *n)
{
	sampler_close(TAKE(n->sampler));
	block_free(TAKE(n->block));
	kvs_free(&n->secrets);
	n->secrets = (struct kvs){0};
	n->sample_at = INT64_MAX;
}

static int enter_block(struct nodeside *n, size_t i, struct err *e)
{
	_cleanup_free_ char *path = NULL;
	int rc;

	if (i >= n->n_dirs)
		return err_set(e, ERR_STATE, "there is no block %zu", i);
	if (n->block && n->at == i)
		return 0;
	leave_block(n);
	path = fs_join(n->dirs[i], "block.json");
	rc = block_read(path, &n->block, e);
	if (!rc)
		rc = trialenv_secrets(n->block, &n->secrets, e);
	if (rc)
		return rc;
	n->at = i;
	if (n->block->sampler_period_ms) {
		sampler_open(&(struct sampler_setup){.dir = n->dirs[i],
						     .node = n->place.node,
						     .dcgm_url = n->block->dcgm_url,
						     .period_ms = n->block->sampler_period_ms},
			     &n->sampler);
		n->sample_at = mono_us();
	}
	return 0;
}

static void begin_block(struct nodeside *n, const char *args)
{
	unsigned long block = 0;
	long long asked = 0;
	struct err e = {0};

	if (sscanf(args, "%lld %lu", &asked, &block) != 2 || enter_block(n, block, &e)) {
		if (!e.code)
			err_set(&e, ERR_STATE, "\"%s\" is no block", args);
		say_error(n, &e);
		return;
	}
	nodeenv_write(n->block, n->dirs[n->at], n->place.node, false);
	printf("@%s entered %lld %lld\n", n->place.node, asked, utc_us());
}

/* --- the trial -------------------------------------------------------------------------- */

static void look(struct nodeside *n)
{
	const struct evidence_spec s = {.block = n->block,
					.node = n->place.node,
					.secrets = &n->secrets,
					.added = &n->added,
					.marker = n->marker};

	if (n->slot >= 0)
		evidence_take(&s, 0, &n->evidence);
}

static void begin_trial(struct nodeside *n, const char *args)
{
	unsigned long block = 0;
	long long asked = 0;
	struct err e = {0};
	int slot = -1;

	if (sscanf(args, "%lld %lu %d", &asked, &block, &slot) != 3 || slot < 0 ||
	    enter_block(n, block, &e)) {
		if (!e.code)
			err_set(&e, ERR_STATE, "trial \"%s\" is no block and slot", args);
		say_error(n, &e);
		return;
	}
	n->slot = slot;
	free(n->marker);
	n->marker = trialenv_marker(n->block, slot);
	n->start_us = utc_us();
	shm_before(SHM_DIR, &n->shm);
	n->watch_at = mono_us();
	n->watch_until = mono_us() + WATCH_MOST_US;
	printf("@%s ready %lld %lld\n", n->place.node, asked, utc_us());
}

/* Processes of the trial that live here; with a signal they are sent it. */
static size_t signal_rest(const struct nodeside *n, int signo)
{
	struct procs p = {0};
	size_t left;

	procs_scan(&p);
	procs_mark_env(&p, n->marker);
	left = procs_count(&p);
	if (left)
		procs_kill(&p, signo);
	procs_free(&p);
	return left;
}

/* How many had to be ended; *cleaned: none is left. */
static size_t end_rest(const struct nodeside *n, int64_t grace_s, bool *cleaned)
{
	int64_t begin = mono_us(), term_us = SETTLE_US, kill_us = term_us + grace_s * 1000000;
	size_t leftovers = 0, left;
	bool asked = false;

	while ((left = signal_rest(n, 0)) > 0) {
		int64_t age = mono_us() - begin;

		if (age >= term_us && !asked) {
			leftovers = signal_rest(n, SIGTERM);
			asked = true;
		}
		if (age >= kill_us)
			signal_rest(n, SIGKILL);
		if (age >= kill_us + KILL_GIVE_UP_US)
			break;
		poll(NULL, 0, KILL_ROUND_US / 1000);
	}
	*cleaned = left == 0;
	return leftovers;
}

static void forget_trial(struct nodeside *n)
{
	n->slot = -1;
	n->watch_at = INT64_MAX;
	evidence_free(&n->evidence);
	kvs_free(&n->added);
	n->added = (struct kvs){0};
	shm_free(&n->shm);
}

static void end_trial(struct nodeside *n, const char *asked)
{
	size_t leftovers, shm;
	bool cleaned;

	if (n->slot < 0)
		return;
	leftovers = end_rest(n, n->block->limits.grace_s, &cleaned);
	shm = shm_clean(SHM_DIR, &n->shm, n->start_us);
	say_report(n);
	printf("@%s ended %s %lld %zu %zu %d\n", n->place.node, asked, utc_us(), leftovers, shm,
	       cleaned);
	forget_trial(n);
}

/* Ranks that live for a moment only are seen early; a look when they are measured replaces that. */
static void watch(struct nodeside *n)
{
	look(n);
	n->watch_at = n->evidence.n == 0 && mono_us() < n->watch_until ? mono_us() + WATCH_US
								       : INT64_MAX;
}

/* --- the loop --------------------------------------------------------------------------- */

static void obey(struct nodeside *n, char *line)
{
	char *eq;

	if (str_starts(line, "set ") && (eq = strchr(line, '='))) {
		*eq = '\0';
		kvs_set(&n->added, line + strlen("set "), eq + 1);
	} else if (str_starts(line, "block ")) {
		begin_block(n, line + strlen("block "));
	} else if (str_starts(line, "trial ")) {
		begin_trial(n, line + strlen("trial "));
	} else if (str_starts(line, "look ")) {
		look(n);
		printf("@%s looked %s %lld\n", n->place.node, line + strlen("look "), utc_us());
	} else if (str_starts(line, "end ")) {
		end_trial(n, line + strlen("end "));
	}
	fflush(stdout);
}

/* False at the end of the input. */
static bool hear(struct nodeside *n)
{
	char bytes[4096];
	ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);

	for (ssize_t i = 0; i < got; i++) {
		if (bytes[i] == '\n') {
			obey(n, n->line.data ? n->line.data : (char[]){'\0'});
			buf_clear(&n->line);
		} else if (n->line.len < COMMAND_MAX) {
			buf_char(&n->line, bytes[i]);
		}
	}
	return got > 0;
}

static void take_sample(struct nodeside *n)
{
	const pid_t skip[] = {sampler_tool(n->sampler), 0};
	int64_t period = n->block->sampler_period_ms * 1000;

	sampler_take(n->sampler,
		     &(struct sampler_scope){.root = getpid(),
					     .skip = skip,
					     .marker = n->slot >= 0 ? n->marker : NULL});
	/* A late sample moves the next one: no burst after a stall. */
	n->sample_at += period;
	if (n->sample_at <= mono_us())
		n->sample_at = mono_us() + period;
}

static void serve(struct nodeside *n)
{
	for (;;) {
		int64_t next = n->sample_at < n->watch_at ? n->sample_at : n->watch_at;
		int64_t wait = next == INT64_MAX ? 0 : next - mono_us();
		struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

		if (poll(&p, 1,
			 next == INT64_MAX ? -1
			 : wait > 0        ? (int)((wait + 999) / 1000)
					   : 0) > 0 &&
		    !hear(n))
			return;
		if (mono_us() >= n->watch_at)
			watch(n);
		if (mono_us() >= n->sample_at)
			take_sample(n);
	}
}

int nodeside_run(char **dirs)
{
	struct nodeside n = {
		.dirs = dirs, .slot = -1, .sample_at = INT64_MAX, .watch_at = INT64_MAX};
	struct err e = {0};
	int status = 0;
	bool cleaned;

	while (dirs[n.n_dirs])
		n.n_dirs++;
	signal(SIGPIPE, SIG_IGN);
	place_find(&n.place);
	if (enter_block(&n, 0, &e)) {
		say_error(&n, &e);
		status = 4;
	} else {
		say_hello(&n);
		fflush(stdout);
		serve(&n);
	}
	if (n.slot >= 0) /* the agent is dead */
		end_rest(&n, 0, &cleaned);
	forget_trial(&n);
	leave_block(&n);
	place_free(&n.place);
	free(n.marker);
	buf_free(&n.line);
	return status;
}
