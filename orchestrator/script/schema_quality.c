/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fields of `quality`: what makes an attempt void and what is only noted. */
#include "orchestrator/script/schema.h"

#define IN(type, member) offsetof(struct type, member)
#define END                  \
	{                    \
		.name = NULL \
	}

static const char *const action_words[] = {"off", "note", "void", NULL};

#define RULE(rule, index, dflt_word, text)                                                      \
	{                                                                                       \
		.name = rule, .type = FIELD_WORD, .words = action_words,                        \
		.offset = IN(quality_settings, action) + (index) * sizeof(enum quality_action), \
		.dflt = "`\"" dflt_word "\"`", .doc = text                                      \
	}
#define CHANGE(member, dflt_text, text)                                                     \
	{                                                                                   \
		.name = #member, .type = FIELD_NUMBER, .min = 0, .max = 10, .above = true,  \
		.offset = IN(quality_settings, member), .unit = "share", .dflt = dflt_text, \
		.doc = text                                                                 \
	}

static const struct field quality_fields[] = {
	RULE("fail_slow", QUALITY_FAIL_SLOW, "void",
	     "the steps of a trial become slower at some step by `slow_by` or more and stay so"),
	RULE("steady", QUALITY_STEADY, "note",
	     "in most trials the last third of the steps differs from the first by `drift_by`"),
	RULE("drift", QUALITY_DRIFT, "note", "the same in one trial"),
	RULE("outliers", QUALITY_OUTLIERS, "note",
	     "single steps that stand out take 1 % of the window or more"),
	RULE("clocks", QUALITY_CLOCKS, "note", "SM clocks differ between trials by `clocks_by`"),
	RULE("throttle", QUALITY_THROTTLE, "void",
	     "a device slowed itself down (heat, power brake) in some trials and not in others"),
	RULE("neighbour", QUALITY_NEIGHBOUR, "note",
	     "other processes or the hypervisor took `busy_by` more of the CPUs in one trial than "
	     "in another"),
	CHANGE(slow_by, "0.1", "see fail_slow"),
	CHANGE(drift_by, "0.03", "see steady and drift"),
	CHANGE(clocks_by, "0.05", "see clocks"),
	CHANGE(busy_by, "0.25", "see neighbour"),
	END,
};
const struct schema schema_quality = {"quality", quality_fields};

struct quality_settings schema_quality_defaults(void)
{
	struct quality_settings q = {
		.slow_by = 0.1, .drift_by = 0.03, .clocks_by = 0.05, .busy_by = 0.25};

	for (size_t i = 0; i < QUALITY_RULES; i++)
		q.action[i] = QUALITY_NOTE;
	q.action[QUALITY_FAIL_SLOW] = q.action[QUALITY_THROTTLE] = QUALITY_VOID;
	return q;
}
