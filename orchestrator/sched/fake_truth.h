/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The declared truth of scheduler `fake`: what each configuration is really worth, how noisy the
 * machine is, and which faults happen how often. All draws are pure functions of seed and names, so
 * that a killed and resumed campaign sees what an unbroken one would have seen.
 *
 * JSON, every member optional (defaults in brackets):
 *   base [100]            throughput_samples_per_s of a configuration without effects
 *   sd_run [0.02]         relative noise of one trial, log-normal
 *   sd_alloc [0.03]       relative noise that all trials of one allocation share
 *   drift [0]             relative change of throughput per trial within an allocation
 *   effects {}            "text": relative gain. The text is looked for in the arguments joined by
 * blanks and in lines KEY=VALUE of the arm's environment; a number at its end must end there. loss
 * [2.0], loss_effects {}    last loss, and what is added to it, by the same texts metrics {}
 * further metrics of each step: name: value metric_effects {}     "text": {"name": value}: replaces
 * such a value trial_s [3], queue_s [0]       virtual seconds of a trial and in the queue nodes
 * [1], at_once [1]         size of the cluster fixed [false]         noise by (block, slot, arm) in
 * place of (token, slot): equal in every attempt persist [true]        keep the jobs in
 * <blocks_root>/.fake.json undelivered []        names that the ranks' evidence lacks: variables,
 * or arguments with their value out_lines {}          "text": line: printed by arms that match maps
 * {}               "text": path: mapped library of arms that match fails {}, nan {}      "text":
 * probability that a matching trial fails, or shows a NaN loss faults {lost, void, node_fail,
 * timeout, submit_lost, accepted_but_timed_out, failed_trial}  probabilities [0]
 */
#ifndef FETTLE_SCHED_FAKE_TRUTH_H
#define FETTLE_SCHED_FAKE_TRUTH_H

#include <stdbool.h>
#include <stdint.h>

#include "orchestrator/base/err.h"
#include "orchestrator/base/json.h"

struct fake_faults {
	double lost, voided, node_fail, timeout, submit_lost, accepted_but_timed_out, failed_trial;
};

struct fake_truth {
	struct json *spec; /* owned; objects of the members above */
	double base, sd_run, sd_alloc, drift, loss;
	double trial_s, queue_s;
	int nodes, at_once;
	bool fixed, persist;
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
	int64_t block, arm;
	int slot;
};
double fake_throughput(const struct fake_truth *t, const struct json *arm,
		       const struct fake_draw *d);
double fake_loss(const struct fake_truth *t, const struct json *arm);
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
};
enum fake_fate fake_fate_of(const struct fake_truth *t, uint64_t seed, const char *token);

enum fake_answer {
	ANSWER_OK,
	ANSWER_LOST,      /* the submit never arrived */
	ANSWER_TIMED_OUT, /* it was accepted, but the caller does not learn so */
};
enum fake_answer fake_answer_of(const struct fake_truth *t, uint64_t seed, const char *token,
				int try);

#endif
