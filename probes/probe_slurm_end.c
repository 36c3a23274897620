/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How Slurm says in a job's output that a step or job ended badly:
 *
 *   slurmstepd[-host]: error: *** JOB|STEP id ON host CANCELLED AT time [DUE TO reason] ***
 *   slurmstepd: error: *** STEP id ON host FAILED (non-zero exit code or other failure mode) ***
 *   slurmstepd: error: Detected N oom-kill event(s) in StepId=id ...      (up to 22.05)
 *   slurmstepd: error: Detected N oom_kill events in StepId=id ...        (23.02 and later)
 *   srun: error: host: tasks 0-3,7: Out Of Memory|Terminated|Killed|Exited with exit code 1|...
 *   srun: error: Node failure on host
 *   srun: Job step aborted: ...
 *   srun: error: Unable to create step for job id: ...
 *
 * Fact slurm.end: one word of TIMEOUT, OUT_OF_MEMORY, NODE_FAIL, PREEMPTED, REQUEUED, NOT_STARTED,
 * TASK_FAILURE, SIGNAL, FAILED, CANCELLED, TERMINATED, KILLED, EXIT, ABORTED, and behind it where.
 * Value: host_oom_kills. The status is failed, named by what explains most: a time limit cancels
 * and terminates, so the rank of a word decides, then the order. Slurm's own state comes first;
 * this is for what it does not tell any more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/emit.h"
#include "probes/probe.h"

/* What explains more stands before. */
static const char *const words[] = {
	"OUT_OF_MEMORY", "TIMEOUT",      "NODE_FAIL", "PREEMPTED", "REQUEUED",
	"NOT_STARTED",   "TASK_FAILURE", "SIGNAL",    "KILLED",    "EXIT",
	"FAILED",        "TERMINATED",   "ABORTED",   "CANCELLED",
};

struct probe_run {
	struct input *in;
	struct emit out;
	size_t worst; /* index of a word; ARRAY_LEN(words): nothing yet */
	int64_t worst_line;
	char worst_text[160];
};

static void end(struct probe_run *r, const struct input_line *l, const char *word,
		struct span where)
{
	size_t rank = 0;
	char text[160];

	while (rank < ARRAY_LEN(words) && !str_eq(words[rank], word))
		rank++;
	where = span_trim(where);
	snprintf(text, sizeof(text), "%s%s%.*s", word, where.n ? " " : "",
		 (int)(where.n < 120 ? where.n : 120), where.n ? where.s : "");
	emit_fact(&r->out, "slurm.end", span_of(text));
	if (rank >= r->worst)
		return;
	r->worst = rank;
	r->worst_line = l->line;
	str_copy(r->worst_text, sizeof(r->worst_text), text);
}

static const char *reason_word(struct span t)
{
	static const struct {
		const char *text, *word;
	} reasons[] = {
		{"DUE TO TIME LIMIT", "TIMEOUT"},
		{"DUE TO PREEMPTION", "PREEMPTED"},
		{"DUE TO NODE FAILURE", "NODE_FAIL"},
		{"DUE TO JOB REQUEUE", "REQUEUED"},
		{"DUE TO TASK FAILURE", "TASK_FAILURE"},
		{"DUE TO JOB NOT RUNNING", "CANCELLED"},
		{"DUE to SIGNAL", "SIGNAL"},
		{"DUE TO SIGNAL", "SIGNAL"},
		{" UNCORRECTABLE MEMORY ERROR AT ", "NODE_FAIL"}, /* up to 21.08 */
		{" CANCELLED AT ", "CANCELLED"},
		{" FAILED (", "FAILED"},
		{"STEPD TERMINATED ON", "TERMINATED"},
	};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (span_has(t, reasons[i].text))
			return reasons[i].word;
	return NULL;
}

/* "*** STEP 1234.0 ON gpu-a CANCELLED AT ... ***": the banner of slurmstepd. */
static bool banner_line(struct probe_run *r, const struct input_line *l)
{
	static const char *const verbs[] = {" CANCELLED AT ", " FAILED (",
					    " UNCORRECTABLE MEMORY ERROR AT ", " DUE TO "};
	struct span t = span_after(input_span(l), "*** "), where = t, mark;
	const char *word;

	if (!t.s || !(word = reason_word(t)))
		return false;
	if (!span_has(t, "***")) {
		emit_bad(&r->out, "a message of Slurm that is cut");
		return true;
	}
	/* What is ended, and where: the words up to the verb. */
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		mark = span_after(t, verbs[i]);
		if (!mark.s)
			continue;
		where.n = (size_t)(mark.s - t.s) - strlen(verbs[i]);
		break;
	}
	end(r, l, word, where);
	return true;
}

/* The step's number: "StepId=1234.0. ...", "step 1234.batch cgroup. ...". False when it is cut. */
static bool oom_step(struct span rest, const struct input_line *l, struct span *step)
{
	if (!span_next(&rest, " ", step) ||
	    (span_eq(*step, "step") && !span_next(&rest, " ", step)) || (!rest.s && !l->complete))
		return false;
	if (span_has(*step, "StepId="))
		*step = span_after(*step, "StepId=");
	while (step->n && step->s[step->n - 1] == '.')
		step->n--;
	return step->n > 0;
}

/* "Detected 2 oom-kill event(s) in StepId=1234.0. ..."; some say no step. */
static bool oom_line(struct probe_run *r, const struct input_line *l)
{
	struct span t = span_after(input_span(l), "Detected "), n = t, w, rest;
	struct emit_labels labels = {.n = 0};
	struct emit_tag tag = EMIT_NONE;

	if (!t.s || (!span_has(t, " oom-kill event") && !span_has(t, " oom_kill event")) ||
	    !span_word(&n, &w))
		return false;
	rest = span_after(t, " in ");
	t = (struct span){"", 0};
	if (rest.s ? !oom_step(rest, l, &t) : !span_has(n, " Some of ")) {
		emit_bad(&r->out, "a message of Slurm that is cut");
		return true;
	}
	if (t.n)
		emit_label(&labels, "step", t);
	tag.labels = labels.v;
	tag.n_labels = labels.n;
	if (!emit_token(&r->out, "host_oom_kills", w, 1, &tag))
		emit_bad(&r->out, "a count of oom-kill events is no number");
	end(r, l, "OUT_OF_MEMORY", t);
	return true;
}

static const char *task_word(struct span t)
{
	static const struct {
		const char *text, *word;
	} ends[] = {
		{"Out Of Memory", "OUT_OF_MEMORY"},
		{"Exited with exit code", "EXIT"},
		{"Terminated", "TERMINATED"},
		{"Killed", "KILLED"},
	};

	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (t.n >= strlen(ends[i].text) &&
		    memcmp(t.s, ends[i].text, strlen(ends[i].text)) == 0)
			return ends[i].word;
	return "SIGNAL";
}

/* "srun: error: gpu-b: tasks 1-7: Terminated" */
static bool task_line(struct probe_run *r, const struct input_line *l)
{
	struct span t = span_after(input_span(l), "srun: error: "),
		    node = span_after(t, "Node failure on "), host, task, rest = t;

	if (node.s) {
		end(r, l, "NODE_FAIL", node);
		return true;
	}
	if (!t.s || !span_next(&rest, ":", &host) || !rest.s || !span_next(&rest, ":", &task) ||
	    !rest.s)
		return false;
	task = span_trim(task);
	if (!str_starts(task.s, "task ") && !str_starts(task.s, "tasks "))
		return false;
	rest = span_trim(rest);
	if (!rest.n)
		emit_bad(&r->out, "a message of Slurm that is cut");
	else
		end(r, l, task_word(rest), t);
	return true;
}

/* Wordings before the kernel's own events were read, and what srun says at the end. */
static bool other_line(struct probe_run *r, const struct input_line *l)
{
	static const struct {
		const char *text, *word;
	} others[] = {
		{"exceeded memory limit", "OUT_OF_MEMORY"},
		{"exceeded virtual memory limit", "OUT_OF_MEMORY"},
		{"Exceeded job memory limit", "OUT_OF_MEMORY"},
		{"Exceeded step memory limit", "OUT_OF_MEMORY"},
		{"Job step aborted", "ABORTED"},
		{"aborted before step completely launched", "NOT_STARTED"},
		{"srun: forcing job termination", "CANCELLED"},
		{"srun: Force Terminated", "CANCELLED"},
		{"srun: error: Unable to create step", "NOT_STARTED"},
		{"srun: error: Unable to create job step", "NOT_STARTED"}, /* up to 15.08 */
		{"srun: error: Unable to allocate resources", "NOT_STARTED"},
		{"srun: error: Unable to confirm allocation", "NOT_STARTED"},
		{"srun: error: Application launch failed", "NOT_STARTED"},
		{"srun: error: Task launch for", "NOT_STARTED"},
		{"error: execve():", "NOT_STARTED"},
		{"error: Failed to invoke spank plugin stack", "NOT_STARTED"},
		{"error: Failed to invoke task plugins", "NOT_STARTED"},
		{"error: spank: required plugin", "NOT_STARTED"}, /* of a container that fails */
	};
	struct span t = input_span(l);

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (span_has(t, others[i].text)) {
			end(r, l, others[i].word,
			    str_eq(others[i].word, "NOT_STARTED") ? span_after(t, "error: ")
								  : (struct span){"", 0});
			return true;
		}
	return false;
}

/* "slurmstepd: ", "slurmstepd-host: "; slurmd spoke for it up to 2.6. */
static bool is_slurms(struct span t)
{
	return span_has(t, "slurm") || span_has(t, "srun: ");
}

static void on_line(void *ctx, const struct input_line *l)
{
	struct probe_run *r = ctx;

	if (!is_slurms(input_span(l)))
		return;
	emit_begin(&r->out, l);
	(void)(banner_line(r, l) || oom_line(r, l) || task_line(r, l) || other_line(r, l));
}

static int slurm_open(const struct probe_context *c, const struct probe_sink *sink,
		      struct probe_run **out, struct err *e)
{
	struct probe_run *r = xcalloc(1, sizeof(*r));

	(void)e;
	emit_open(&r->out, c, sink);
	r->worst = ARRAY_LEN(words);
	r->in = input_new(on_line, r);
	*out = r;
	return 0;
}

static int slurm_feed(struct probe_run *r, const char *bytes, size_t n, struct err *e)
{
	(void)e;
	input_feed(r->in, bytes, n);
	return 0;
}

static enum probe_status slurm_finish(struct probe_run *r, struct buf *detail)
{
	enum probe_status s = PROBE_ABSENT;

	input_finish(r->in);
	if (r->worst < ARRAY_LEN(words)) {
		s = PROBE_FAILED;
		if (detail)
			buf_printf(detail, "line %lld: %s", (long long)r->worst_line,
				   r->worst_text);
	} else if (r->out.bad) {
		s = PROBE_PARTIAL;
		if (detail)
			buf_printf(detail, "line %lld: %s", (long long)r->out.bad_line,
				   r->out.bad_why);
	} else if (detail) {
		buf_str(detail, "no message of Slurm about an end");
	}
	input_free(r->in);
	emit_close(&r->out);
	free(r);
	return s;
}

/* The last word on a text that nothing else knows: training logs hold these lines too. */
static int slurm_sniff(const char *head, size_t n)
{
	struct span t = {head, n};

	return span_has(t, "slurmstepd: error: ") || span_has(t, "srun: error: ") ||
			       span_has(t, "srun: Job step aborted")
		       ? 55
		       : 0;
}

const struct probe probe_slurm_end = {
	.name = "slurm_end",
	.summary = "how Slurm says that a job or step ended: time limit, memory, node, preemption",
	.example = "cat slurm-1234.out",
	.sniff = slurm_sniff,
	.in_logs = true,
	.open = slurm_open,
	.feed = slurm_feed,
	.finish = slurm_finish,
};
