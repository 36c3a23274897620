/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The declared truth of scheduler `fake`: what each configuration is really worth, how noisy the
 * machine is, and which faults happen how often. All draws are pure functions of seed and names, so
 * that a killed and resumed campaign sees what an unbroken one would have seen.
 *
 * JSON, every member optional (defaults in brackets). A "text" is looked for in the arguments
 * (an arm's own launcher before them) joined by blanks and in lines KEY=VALUE of the arm's
 * environment; a number at its end must end there.
 *
 * What settings are worth:
 *   base [100]             throughput_samples_per_s of a configuration without effects
 *   effects {}             "text": relative gain
 *   loss [2.0], loss_effects {}  last loss, and what is added to it, by text
 *   metrics {}             further metrics of each step: name: value
 *   metric_effects {}      "text": {"name": value}: replaces such a value
 * What blurs it (relative, on the log scale):
 *   sd_run [0.02]          noise of one trial
 *   tails [0]              3: Student's t with 3 degrees of freedom and the same sd; 0: normal
 *   noisier {}             "text": factor on sd_run for arms that match
 *   straggler_p [0], straggler [0.1]  probability of a slow trial, and what it loses
 *   sd_step [0]            noise of one step
 *   slow_p [0], slow [0.3] probability that the steps of a trial become slower by `slow` from 60 %
 *                          of the steps on
 *   step_drift [0]         change of throughput from the first step of a trial to its last
 *   outlier_p [0], outlier [4]  probability that a step takes longer, and by how many times itself
 *   neighbour_p [0], neighbour [0.2]  probability that other processes hold half of the CPUs during
 *                          a trial, and what it loses; in memory the node's samples show it
 *   throttle_p [0], throttle [0.2]    the same of a device that slows itself down
 *   sd_alloc [0.03]        shared by all trials of one allocation
 *   ar1 [0]                correlation of that noise from one allocation to the next, in the order
 *                          of their submits
 *   sd_node [0]            shared by all trials on one node, for good
 *   slow_node [0], slow_node_by [0.05]  number of a node (from 1; 0: none), and what it loses
 *   sd_arm_alloc [0]       of an arm in an allocation: a setting that helps on some nodes only
 *   drift [0]              change of throughput per trial within an allocation
 *   order [0]              change of all trials but the first timed one of an allocation
 *   trend [0]              change per allocation, in the order of their submits
 *   loss_sd [0]            noise of the last loss (absolute)
 * The cluster:
 *   trial_s [3], queue_s [0]     virtual seconds of a trial and in the queue
 *   spread_s [0]                 a job takes up to so many seconds longer, by chance
 *   nodes [1], at_once [1]       its size; allocations take the nodes in turn
 *   ahead [0]                    allocations that may wait behind those that run
 *   sticky [false]               they take the first node that they may, all of them
 *   blocks_at_most [1]           blocks that an allocation may hold; 0: no bound; 1: as local
 *   time_limit_s [0]             longest allocation; 0: no bound
 *   silent_after [0]             submits after which it answers nothing about jobs, and none ends;
 *                                0: never
 * Faults:
 *   undelivered []         names that the ranks' evidence lacks: variables, or arguments with their
 *                          value
 *   ranks {}               "text": how many ranks the processes of arms that match are [1]
 *   out_lines {}           "text": line: printed by arms that match
 *   maps {}                "text": path: mapped library of arms that match
 *   fails {}, nan {}       "text": probability that a matching trial fails, or shows a NaN loss
 *   faults {lost, void, node_fail, timeout, submit_lost, accepted_but_timed_out, failed_trial,
 *          preempted}      probabilities [0]
 * How it is played:
 *   fixed [false]          noise by (block, slot, arm) in place of (token, slot): equal in every
 *                          attempt
 *   by_job [false]         faults by the number of the submit, and without "fixed" noise by
 * (number, slot): equal in every workspace persist [true]         keep the jobs in
 * <blocks_root>/.fake.json in_memory [false]      blocks and results never touch a file: persist is
 * off hand_over              in memory: {"metric": ["mean", ...]}, the statistics that are handed
 *                          over; absent: all of all metrics
 *   steps [false]          in memory: all steps of a trial are handed over, as files have them; so
 *                          they are in any case where what is declared shows only in steps (sd_step
 *                          to throttle_p above, a metric samples_per_step or tokens_per_step). Else
 *                          one figure a metric, which is much quicker
 *   environment {}         "key": text: what each node tells of itself
 *   acks {}                in memory: "text": name of the knob that arms that match acknowledge
 */
#ifndef FETTLE_SCHED_FAKE_TRUTH_H
#define FETTLE_SCHED_FAKE_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/json.h"

enum { FAKE_SAMPLES_A_STEP = 32 }; /* turns samples a second into step time */

struct fake_faults {
	double lost, voided, node_fail, timeout, submit_lost, accepted_but_timed_out, failed_trial,
		preempted;
};

struct fake_truth {
	struct json *spec; /* owned; objects of the members above */
	double slow_node, slow_node_by;
	double base, sd_run, sd_alloc, sd_node, sd_arm_alloc, ar1, drift, order, trend, loss,
		loss_sd;
	double straggler_p, straggler, sd_step, slow_p, slow, step_drift, outlier_p, outlier;
	double neighbour_p, neighbour, throttle_p, throttle;
	double trial_s, queue_s, spread_s;
	int nodes, at_once, ahead, blocks_at_most, silent_after;
	int64_t time_limit_s;
	bool t3, fixed, sticky, by_job, persist, in_memory, steps;
	struct fake_faults faults;
};

/* spec NULL: the defaults. Unknown members, wrong types and impossible numbers are errors that name
 * the member. */
int fake_truth_read(const char *spec, struct fake_truth *out, struct err *e);
void fake_truth_free(struct fake_truth *t);

/* Does the arm (a member of block.json's "arms") match the text of an effect? */
bool fake_matches(const struct json *arm, const char *text);

/* Which trial a draw is for. */
struct fake_draw {
	uint64_t seed;
	const char *token;
	int64_t job, block, arm;
	int node, slot;
	int turn;   /* trials of its allocation that came before its block */
	bool later; /* a timed trial came before it in its allocation */
};
double fake_throughput(const struct fake_truth *t, const struct json *arm,
		       const struct fake_draw *d);
double fake_loss(const struct fake_truth *t, const struct json *arm, const struct fake_draw *d);
/* The value of a metric for an arm without any noise: what a campaign ought to find. NaN: the truth
 * says nothing about it. */
double fake_worth(const struct fake_truth *t, const struct json *arm, const char *metric);
/* The metric samples_per_step of an arm where the truth has it, else FAKE_SAMPLES_A_STEP. */
double fake_samples_a_step(const struct fake_truth *t, const struct json *arm);
/* What slows a whole trial down from outside. */
bool fake_has_neighbour(const struct fake_truth *t, const struct fake_draw *d);
bool fake_is_throttled(const struct fake_truth *t, const struct fake_draw *d);
/* Log factor on the throughput of step `step` of `steps`: its own noise, a stall, a drift, and a
 * fail-slow. */
double fake_step_noise(const struct fake_truth *t, const struct fake_draw *d, int64_t step,
		       int64_t steps);
bool fake_trial_fails(const struct fake_truth *t, const struct json *arm,
		      const struct fake_draw *d);
bool fake_trial_is_nan(const struct fake_truth *t, const struct json *arm,
		       const struct fake_draw *d);

enum fake_fate {
	FATE_OK,
	FATE_LOST,
	FATE_VOID,
	FATE_NODE_FAIL,
	FATE_TIMEOUT,
	FATE_PREEMPTED, /* after half of its slots */
};
/* `job`: the number that the submit has or would get. */
enum fake_fate fake_fate_of(const struct fake_truth *t, uint64_t seed, const char *token,
			    int64_t job);

/* Which of a job's n blocks the fault hits, from 0. */
size_t fake_hit(const struct fake_truth *t, uint64_t seed, const char *token, int64_t job,
		size_t n);
/* How many seconds longer than its trials the job takes. */
double fake_extra_s(const struct fake_truth *t, uint64_t seed, const char *token, int64_t job);

enum fake_answer {
	ANSWER_OK,
	ANSWER_LOST,      /* the submit never arrived */
	ANSWER_TIMED_OUT, /* it was accepted, but the caller does not learn so */
};
enum fake_answer fake_answer_of(const struct fake_truth *t, uint64_t seed, const char *token,
				int64_t job, int try);

#endif
