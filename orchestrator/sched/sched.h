/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A scheduler runs allocations: it starts `fettle-agent BLOCKDIR` somewhere and says what became of
 * it. It knows nothing about experiments. The truth about results is what the agent wrote; a
 * scheduler's word only says why something is missing. One contract test runs over all of them.
 *
 * One scheduler is one file sched_<name>.c that defines `const struct sched sched_<name>`.
 */
#ifndef FETTLE_SCHED_SCHED_H
#define FETTLE_SCHED_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "experiments/model.h"
#include "orchestrator/base/clock.h"
#include "orchestrator/base/err.h"
#include "orchestrator/base/str.h"

enum job_state {
	JOB_PENDING,
	JOB_RUNNING,
	JOB_ENDED,   /* it will not run any more: `end` says how */
	JOB_UNKNOWN, /* the scheduler could not be asked (never taken for an end) */
	JOB_GONE,    /* the scheduler answered and knows no such job */
};
enum job_end {
	END_NONE,
	END_OK,     /* the agent exited 0 */
	END_FAILED, /* the agent or its script exited otherwise */
	END_TIMEOUT,
	END_CANCELLED,
	END_NODE_FAIL,
	END_PREEMPTED,
	END_OOM,
	END_REQUEUED,
	END_LAUNCH_FAILED,
	END_DEADLINE,      /* it could no longer be in time */
	END_NEVER_STARTED, /* withdrawn by us: what it waited for does not come */
	END_VANISHED,      /* the scheduler knows no such job any more */
};
enum { JOB_ENDS = END_VANISHED + 1 };
const char *job_state_name(enum job_state s);
const char *job_end_name(enum job_end s);
bool job_end_parse(const char *word, enum job_end *out);
bool job_end_is_infrastructure(
	enum job_end s); /* not the workload's fault: the attempt is void and run again */

/* What a pending job waits for. */
enum pending_for {
	PENDING_TURN,  /* its turn: resources, priority, a time */
	PENDING_HELD,  /* somebody to release it */
	PENDING_NODES, /* nodes or a partition that are down, drained or reserved */
	PENDING_NEVER, /* what no waiting brings: a limit, an account, a dependency */
};
const char *pending_for_name(enum pending_for p);

/* What to start. All borrowed. */
struct sched_job {
	const char *token; /* "fettle:<uuid8>:a<allocation>": idempotency; the job's name */
	const char *const *block_dirs; /* absolute; each holds block.json; run in this order */
	size_t n_block_dirs;
	const char *workdir; /* absolute, existing */
	char *const *env;    /* explicit environment of the agent */
	const char *output;  /* absolute path of the agent's own stdout and stderr */
	int nodes, tasks_per_node, cpus_per_task, gpus_per_node;
	int64_t mem_mib_per_node, time_limit_s;
	bool exclusive;
	const char *sbcast_dir; /* each node gets its own copy of the agent there; NULL: not */
	const char *partition, *account, *qos, *reservation, *constraint, *nodelist, *exclude;
	const struct job_options *options; /* NULL: none */
};

struct sched_status {
	char id[64]; /* the scheduler's own id */
	char token[64];
	enum job_state state;
	enum job_end end;
	enum pending_for pending; /* while it is pending */
	bool suspended;           /* it is, or was since its start */
	int exit_status;
	int64_t start_us, end_us; /* 0 when unknown */
	char nodes[256];  /* host names, comma separated; "" when unknown (may be cut: the agent's
			     record is whole) */
	char reason[128]; /* the scheduler's words: "Resources", "NodeDown", ... */
};

struct sched_capacity {
	int nodes_total, nodes_idle; /* of the partition asked for; local: 1, 1 */
	int nodes_out;               /* of those, down or drained */
	int jobs_at_once;            /* how many allocations of ours make sense at the same time */
	int jobs_ahead;              /* how many more may wait behind them, so that a node that
					becomes free has its next one at once; 0: none need to */
	int blocks_at_most;          /* in one allocation; 0: no bound */
	int64_t time_limit_s;        /* longest allocation; 0: no bound, or not known */
	char summary[256];           /* for doctor */
};

/* What a dry run foretells. */
struct sched_forecast {
	int64_t start_us; /* 0: unknown */
	char nodes[256];  /* host names, comma separated (may be cut); "" when unknown */
	char partition[64];
};

/* What the cluster's accounts say that a job took. */
struct sched_account {
	bool known;         /* there is a record, and the job has ended in it */
	int64_t elapsed_s;  /* -1: not recorded; so below */
	int64_t maxrss_kib; /* the most that a task of any step used */
	int64_t energy_j;   /* of its nodes, by their own sensors */
	char tres[128];     /* what it held: "cpu=4,mem=2000,node=2,gres/gpu=2" (may be cut) */
};

/* What a scheduler is opened with. Borrowed for its life. */
struct sched_config {
	const char *blocks_root; /* <workspace>/blocks, absolute */
	const char *agent;       /* path of fettle-agent */
	const char *helper;      /* path of fettle-slurm, or NULL */
	const char *partition;
	const struct clock *clock;
	uint64_t seed;    /* fake: outcomes */
	const char *spec; /* fake: JSON of planted effects and faults; NULL: defaults */
};

/* What a trial printed step by step, of a scheduler that keeps no files. */
struct step_series {
	const char *metric; /* static, or borrowed for as long as the block is kept */
	double *v;          /* from the first step on, warm-up too; NAN: no number there */
	size_t n;
};
struct trial_steps {
	struct step_series *v;
	size_t n, cap;
	int ncpu; /* of the node, where it was sampled: its means are among the trial's metrics */
};

/* What a node was when it ran an attempt: kernel, drivers, settings, ... */
struct node_keys {
	char *node;
	struct kvs keys;
};

/* What an attempt left behind, as it is stored. */
struct attempt_files {
	struct trial_result *trials;
	struct quality_trial *quality; /* of each trial; NULL: nothing is known of its steps */
	struct trial_steps *steps;     /* of each trial, still to be read; NULL: nothing is */
	size_t n;
	struct strv nodes;
	struct kvs switches;      /* of each node that has them: "s0.s3", the topmost first */
	char hash[33];            /* of the manifest */
	int64_t start_us, end_us; /* of the allocation, by the agent; 0: not known */
	bool complete;            /* the manifest says so and every record is there and intact */
	bool partial;             /* the manifest says that the agent did not come to its end */
	char *reason;             /* why not; NULL */
	bool unread;              /* that is a read that failed: another time it may be complete */
	struct strv notes;        /* what its reader should know of the nodes */
	struct node_keys *environments; /* of those of its nodes that told */
	size_t n_environments;
};
void attempt_files_done(struct attempt_files *a);

struct json;
struct sched_run; /* private state of an open scheduler */

struct sched {
	const char *name, *summary;
	int (*open)(const struct sched_config *c, struct sched_run **out, struct err *e);
	void (*close)(struct sched_run *s); /* never cancels jobs; NULL is fine */
	/* Start the job and give its id. -ERR_TEMP: not now, or it may or may not have been
	 * accepted, so find() must be asked before submit() is tried again. Any other error: it was
	 * not accepted. */
	int (*submit)(struct sched_run *s, const struct sched_job *job, char id[64], struct err *e);
	/* State of each id, same order. JOB_UNKNOWN entries are no error; out is caller's array of
	 * n. */
	int (*poll)(struct sched_run *s, const char *const *ids, size_t n, struct sched_status *out,
		    struct err *e);
	/* End it. A job that is already gone is success. */
	int (*cancel)(struct sched_run *s, const char *id, struct err *e);
	/* Look for a job by token: 1 found (out filled), 0 proved absent, negative: could not be
	 * asked. */
	int (*find)(struct sched_run *s, const char *token, struct sched_status *out,
		    struct err *e);
	/* The jobs that wait or run and whose token starts with `prefix`: *out (heap), *n. NULL:
	 * what is over cannot come back to life here, as with a slurmctld that was killed. */
	int (*alive)(struct sched_run *s, const char *prefix, struct sched_status **out, size_t *n,
		     struct err *e);
	int (*capacity)(struct sched_run *s, struct sched_capacity *out, struct err *e);
	/* Would it be accepted, when and where would it start? 0 and *out, or why not. */
	int (*will_run)(struct sched_run *s, const struct sched_job *job,
			struct sched_forecast *out, struct err *e);
	/* What each job took, same order; NULL: this scheduler keeps no accounts. -ERR_RECIPE:
	 * nor does this cluster. Records come some time after the end. */
	int (*account)(struct sched_run *s, const char *const *ids, size_t n,
		       struct sched_account *out, struct err *e);
	/* Sleep until something may have changed, at most timeout_us; fake advances its virtual
	 * clock. `fd` (-1: none) also wakes it. */
	int (*wait)(struct sched_run *s, int64_t timeout_us, int fd, struct err *e);
	/* NULL for whoever starts an agent: block.json and its results are then files. Else it may
	 * keep them itself. keep: 1: `block` (what block.json would hold, a root) is now its own,
	 * under the name dir; 0: it wants the file. results: 1: *out is what the agent's files in
	 * dir would have said; 0: they are files; -ERR_NOT_FOUND: no manifest yet. */
	int (*keep)(struct sched_run *s, const char *dir, struct json *block);
	int (*results)(struct sched_run *s, const char *dir, struct attempt_files *out,
		       struct err *e);
};

extern const struct sched *const sched_table[];     /* generated, NULL-terminated */
#define SCHED_NAMES "local, slurm, slurm_cli, fake" /* for messages */
const struct sched *sched_find(const char *name);

#endif
