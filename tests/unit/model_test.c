/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <math.h>

#include "experiments/model.h"

/* Each word comes back as its value, the values are those of the words of DESIGN 1 in order, and a
 * word in between or beyond is refused. */
#define CHECK_WORDS(type, ...)                                                      \
	static void type##_words_round_trip(void **state)                           \
	{                                                                           \
		static const char *const words[] = {__VA_ARGS__};                   \
		enum type v;                                                        \
                                                                                    \
		(void)state;                                                        \
		for (size_t i = 0; i < ARRAY_LEN(words); i++) {                     \
			assert_string_equal(type##_name((enum type)i), words[i]);   \
			v = (enum type)(ARRAY_LEN(words) - 1 - i);                  \
			assert_true(type##_parse(words[i], &v));                    \
			assert_int_equal(v, i);                                     \
		}                                                                   \
		v = (enum type)0;                                                   \
		assert_string_equal(type##_name((enum type)ARRAY_LEN(words)), "?"); \
		assert_false(type##_parse("?", &v));                                \
		assert_false(type##_parse("", &v));                                 \
		assert_false(type##_parse(NULL, &v));                               \
		assert_int_equal(v, 0);                                             \
	}

CHECK_WORDS(better, "up", "down", "none")
CHECK_WORDS(knob_class, "neutral", "numerics", "optimisation")
CHECK_WORDS(knob_how, "env", "arg", "bundle", "key")
CHECK_WORDS(proof_level, "none", "delivered", "acknowledged", "effective")
CHECK_WORDS(run_mode, "quick", "standard", "long", "strict")
CHECK_WORDS(stage_kind, "aa", "verify", "screen", "confirm", "ablate", "final", "soak", "canary",
	    "converge", "profile", "ladder")
CHECK_WORDS(profile_wish, "unsaid", "no", "yes")
CHECK_WORDS(arm_role, "baseline", "treatment")
CHECK_WORDS(hypothesis_state, "proposed", "linted_out", "not_tried", "screened_out", "tested")
CHECK_WORDS(bottleneck, "unknown", "compute", "communication", "storage", "host", "memory")
CHECK_WORDS(ablation_outcome, "pays", "open", "useless", "dropped")
CHECK_WORDS(trial_state, "ok", "failed", "void", "lost")
CHECK_WORDS(attempt_state, "planned", "submitted", "valid", "void", "lost")
CHECK_WORDS(slot_kind, "warmup", "timed")
CHECK_WORDS(campaign_state, "running", "stopped", "done", "failed")
CHECK_WORDS(verdict_outcome, "invalid", "rejected: guard", "accepted", "equivalent",
	    "rejected: no useful gain", "rejected: worse", "inconclusive")
CHECK_WORDS(metric_source, "probe", "pattern", "metrics_file")

static void catalogue_is_sound(void **state)
{
	size_t n = 0;

	(void)state;
	for (const struct metric_def *d = metric_defs; d->name; d++, n++) {
		assert_true(metric_name_valid(d->name));
		assert_ptr_equal(metric_def_find(d->name), d); /* no name twice */
		assert_true(d->min < d->max);
		assert_true(*d->unit && *d->summary);
	}
	assert_true(n > 50);
	assert_int_equal(metric_def_find("loss")->better, BETTER_DOWN);
	assert_string_equal(metric_def_find("mfu_pct")->unit, "%");
	assert_true(metric_def_find("mfu_pct")->max == 100);
	assert_null(metric_def_find("no_such_metric"));
	assert_null(metric_def_find(NULL));
}

static void metric_names(void **state)
{
	char longest[66];

	(void)state;
	memset(longest, 'a', sizeof longest);
	longest[64] = '\0';
	assert_true(metric_name_valid(longest));
	longest[64] = 'a';
	longest[65] = '\0';
	assert_false(metric_name_valid(longest));
	assert_true(metric_name_valid("a"));
	assert_true(metric_name_valid("my.metric_2"));
	assert_false(metric_name_valid(""));
	assert_false(metric_name_valid(NULL));
	assert_false(metric_name_valid("2fast"));
	assert_false(metric_name_valid("_x"));
	assert_false(metric_name_valid("Loss"));
	assert_false(metric_name_valid("a b"));
	assert_false(metric_name_valid("a;drop"));
}

static void trial_result_holds_values(void **state)
{
	struct trial_result t = {0};

	(void)state;
	assert_true(isnan(trial_result_get(&t, "loss", "last")));
	for (int i = 0; i < 100; i++)
		trial_result_metric(&t, "step_time_ms", "p95", i % 2 ? "rank=1" : NULL, i);
	trial_result_metric(&t, "loss", "last", "", 2.5);
	trial_result_metric(&t, "loss", "last", "rank=0", 3.5);
	trial_result_metric(&t, "loss", "last", "", 2.25);
	assert_true(trial_result_get(&t, "loss", "last") == 2.25); /* the last one put counts */
	assert_true(trial_result_get(&t, "step_time_ms", "p95") == 98);
	assert_true(isnan(trial_result_get(&t, "loss", "mean")));
	trial_result_effective(&t, 3, "env.X", NULL, PROOF_DELIVERED);
	assert_string_equal(t.effective[0].value, "");
	trial_result_done(&t);
	assert_int_equal(t.n_metrics, 0);
	trial_result_done(&t);
	trial_result_done(NULL);
}

/* Every member that is owned is set, so that the leak checker sees a forgotten one. */
static void recipe_free_frees_all(void **state)
{
	struct recipe *r = xcalloc(1, sizeof *r);
	struct knob *k = xcalloc(1, sizeof *k);
	char **texts[] = {
		&r->name,
		&r->question,
		&r->objective,
		&r->objective_stat,
		&r->scheduler,
		&r->hash,
		&r->workload.name,
		&r->workload.workdir,
		&r->workload.step_pattern,
		&r->workload.probe,
		&r->workload.pattern,
		&r->resources.partition,
		&r->resources.account,
		&r->resources.qos,
		&r->resources.reservation,
		&r->resources.constraint,
		&r->resources.nodelist,
		&r->resources.exclude,
		&r->resources.launcher,
		&r->resources.options.gres,
		&r->resources.options.gpus,
		&r->resources.options.gpus_per_task,
		&r->resources.options.licenses,
		&r->resources.options.switches,
		&r->resources.options.begin,
		&r->resources.options.deadline,
		&r->resources.options.dependency,
		&r->resources.options.comment,
		&r->resources.options.mail_type,
		&r->resources.options.mail_user,
		&k->name,
		&k->summary,
		&k->target,
		&k->subkey,
		&k->default_value,
		&k->proof.log_pattern,
		&k->proof.fact,
		&k->proof.maps,
		&k->proof.metric,
		&k->proof.metric_expect,
		&k->requires_knob,
		&k->expect,
		&k->lint,
		&k->risk,
		&k->notes,
		&k->at.file,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		*texts[i] = xstrdup("text");
	strv_add(&k->values, "1");
	strv_add(&k->implies, "env.X");
	strv_add(&k->requires_values, "2");
	strv_add(&r->workload.command, "python3");
	strv_add(&r->workload.secrets, "KEY");
	kvs_set(&r->workload.env, "A", "1");
	r->knobs = k;
	r->n_knobs = 1;
	r->guards = xcalloc(1, sizeof *r->guards);
	r->n_guards = 1;
	r->guards[0].metric = xstrdup("loss");
	r->guards[0].stat = xstrdup("last");
	r->guards[0].at.file = xstrdup("f.lua");
	assert_ptr_equal(recipe_knob(r, "text"), k);
	assert_null(recipe_knob(r, "other"));
	recipe_free(r);
	recipe_free(NULL);
	knob_done(NULL);
}

static void a_script_that_starts_its_ranks_stands_behind_env(void **state)
{
	struct resources r = {
		.nodes = 2, .tasks_per_node = 4, .launcher = (char *)(uintptr_t) "script"};
	struct strv launch = {0};

	(void)state;
	resources_launch(&r, &launch);
	assert_int_equal(launch.n, 1);
	assert_string_equal(launch.v[0], "env");
	strv_free(&launch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_script_that_starts_its_ranks_stands_behind_env),
		cmocka_unit_test(better_words_round_trip),
		cmocka_unit_test(knob_class_words_round_trip),
		cmocka_unit_test(knob_how_words_round_trip),
		cmocka_unit_test(proof_level_words_round_trip),
		cmocka_unit_test(run_mode_words_round_trip),
		cmocka_unit_test(stage_kind_words_round_trip),
		cmocka_unit_test(profile_wish_words_round_trip),
		cmocka_unit_test(arm_role_words_round_trip),
		cmocka_unit_test(hypothesis_state_words_round_trip),
		cmocka_unit_test(bottleneck_words_round_trip),
		cmocka_unit_test(ablation_outcome_words_round_trip),
		cmocka_unit_test(trial_state_words_round_trip),
		cmocka_unit_test(attempt_state_words_round_trip),
		cmocka_unit_test(slot_kind_words_round_trip),
		cmocka_unit_test(campaign_state_words_round_trip),
		cmocka_unit_test(verdict_outcome_words_round_trip),
		cmocka_unit_test(metric_source_words_round_trip),
		cmocka_unit_test(catalogue_is_sound),
		cmocka_unit_test(metric_names),
		cmocka_unit_test(trial_result_holds_values),
		cmocka_unit_test(recipe_free_frees_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
