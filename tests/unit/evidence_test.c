/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Proof that a setting took effect, and that nothing undeclared came with it. A scene is a stage of
 * two arms with one block; each trial shows what an honest agent would have seen until a test
 * changes it.
 */
#include "tests/unit/store.h"

#include "orchestrator/base/json.h"
#include "orchestrator/base/str.h"
#include "orchestrator/method/method.h"
#include "tests/unit/recipe.h"

static const char recipe_text[] =
	"return { name = 'scene', objective = 'throughput_samples_per_s',\n"
	"workload = { command = { 'train', '--keep', '1', '--g', '3' }, env = { CONF = 'a:1,b:2' },\n"
	"  window = { warmup_steps = 0, steps = 3 }, metrics = { file = true } },\n"
	"knobs = {\n"
	"  { name = 'E', env = 'E', class = 'neutral', values = { 1 }, implies = { 'env.E_ALIAS' } },\n"
	"  { name = 'sub', env = 'CONF', subkey = 'b', class = 'neutral', values = { 22 } },\n"
	"  { name = 'G', arg = '--g', class = 'neutral', values = { 4 }, implies = { 'arg.--h' } },\n"
	"  { name = 'J', arg = '--j=', class = 'neutral', values = { 5 } },\n"
	"  { name = 'F', arg = '--f', flag = true, class = 'neutral', default = false, values = { true } },\n"
	"  { name = 'K', env = 'K', class = 'neutral', values = { 1 },\n"
	"    proof = { level = 'acknowledged', log = 'K is {value}' } },\n"
	"  { name = 'lax', env = 'LAX', class = 'neutral', values = { 1 },\n"
	"    proof = { level = 'delivered', log = 'lax is {value}' } },\n"
	"  { name = 'N', env = 'NCCL_N', class = 'neutral', values = { 1 },\n"
	"    proof = { level = 'acknowledged', fact = 'nccl.env.NCCL_N' } },\n"
	"  { name = 'M', env = 'LD_PRELOAD', class = 'neutral', values = { 'libjemalloc.so.2' },\n"
	"    proof = { level = 'effective', maps = 'libjemalloc' } },\n"
	"  { name = 'T', env = 'T', class = 'neutral', values = { 2 },\n"
	"    proof = { level = 'effective', metric = 'tree_threads', expect = 'up' } },\n"
	"} }\n";

struct scene {
	char *dir;
	struct loaded recipe;
	struct store st; /* only its db and campaign are used */
	struct config config[2];
	int64_t config_id[2], arm[2], stage;
	struct arm_row arms[2];
	struct stage_row row;
	struct hypothesis_row hyp;
	struct workspace ws;
	struct campaign c;
	int ranks, blocks;
	struct trial_result t[2]; /* of the block that is being made */
};

static void set(struct trial_result *t, int rank, const char *key, const char *value)
{
	for (size_t i = 0; i < t->n_effective; i++)
		if (t->effective[i].rank == rank && str_eq(t->effective[i].key, key)) {
			free(t->effective[i].value);
			t->effective[i].value = xstrdup(value);
			return;
		}
	trial_result_effective(t, rank, key, value, PROOF_DELIVERED);
}

/* key NULL: everything of the rank. */
static void drop(struct trial_result *t, int rank, const char *key)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->n_effective; i++) {
		struct effective_value *v = &t->effective[i];

		if (v->rank == rank && (!key || str_eq(v->key, key))) {
			free(v->key);
			free(v->value);
		} else {
			t->effective[kept++] = *v;
		}
	}
	t->n_effective = kept;
}

static char *argv_text(const struct strv *argv)
{
	struct json *a = json_array();
	char *text;

	for (size_t i = 0; i < argv->n; i++)
		json_add_text(a, argv->v[i]);
	text = json_print(a, false);
	json_free(a);
	return text;
}

/* What each rank of a trial of this configuration shows: its arguments, its variables, and what all
 * trials have. */
static void show(struct scene *s, int arm)
{
	const struct config *c = &s->config[arm];
	_cleanup_free_ char *argv = argv_text(&c->argv);

	for (int rank = 0; rank < s->ranks; rank++) {
		set(&s->t[arm], rank, "argv", argv);
		set(&s->t[arm], rank, "envhash.HOME", "xxh64:1");
		set(&s->t[arm], rank, "env.OMP_NUM_THREADS", "4");
		set(&s->t[arm], rank, "env.MASTER_PORT", arm ? "4001" : "4000");
		set(&s->t[arm], rank, "envhash.TMPDIR", arm ? "xxh64:2" : "xxh64:3");
		for (size_t i = 0; i < c->env.n; i++) {
			_cleanup_free_ char *key = xasprintf("env.%s", c->env.v[i].key);

			set(&s->t[arm], rank, key, c->env.v[i].value);
		}
	}
}

static void next_block(struct scene *s)
{
	for (int i = 0; i < 2; i++) {
		s->t[i] = (struct trial_result){.slot = i, .arm = s->arm[i], .kind = SLOT_TIMED};
		trial_result_metric(&s->t[i], "tree_threads", "mean", "", i ? 8 : 4);
		show(s, i);
	}
}

static void setting(struct scene *s, const char *knob, const char *value)
{
	struct kvs settings = {0};
	struct err e = {0};

	kvs_set(&settings, knob, value);
	assert_ok(config_build(s->recipe.recipe, &settings, &s->config[1], &e));
	kvs_free(&settings);
	assert_ok(query_config_put(s->st.db, &s->config[1], &s->config_id[1], &e));
}

static struct scene *scene_new(const char *knob, const char *value, int ranks)
{
	struct scene *s = xcalloc(1, sizeof *s);
	const struct kvs none = {0};
	struct err e = {0};

	s->dir = scratch_new();
	s->recipe = load_text(s->dir, recipe_text);
	if (s->recipe.rc < 0)
		fail_msg("%s", s->recipe.e.text);
	s->ranks = ranks;
	assert_ok(db_open(":memory:", DB_CREATE, NULL, &s->st.db, &e));
	s->st.campaign = store_campaign(s->st.db, "scene");
	assert_ok(config_build(s->recipe.recipe, &none, &s->config[0], &e));
	assert_ok(query_config_put(s->st.db, &s->config[0], &s->config_id[0], &e));
	setting(s, knob, value);
	memcpy(s->st.config, s->config_id, sizeof s->config_id);
	s->hyp = (struct hypothesis_row){.id = store_hypothesis(s->st.db, s->st.campaign, 1, knob),
					 .knob = TEXT(knob),
					 .value = TEXT(value)};
	s->stage = store_stage(&s->st, STAGE_CONFIRM, 1, s->hyp.id, s->arm);
	for (int i = 0; i < 2; i++)
		s->arms[i] = (struct arm_row){.id = s->arm[i],
					      .index = i,
					      .config = s->config_id[i],
					      .hypothesis = i ? s->hyp.id : 0,
					      .label = TEXT("arm")};
	s->row = (struct stage_row){.id = s->stage, .arms = s->arms, .n_arms = 2};
	s->ws.db = s->st.db;
	s->c.ws = &s->ws;
	s->c.recipe = s->recipe.recipe;
	s->c.facts.hyps = &s->hyp;
	s->c.facts.n_hyps = 1;
	next_block(s);
	return s;
}

/* The block as it is now is stored, and the next one begins. */
static void store(struct scene *s)
{
	static const char *const nodes[] = {"n1"};
	struct slot slots[2] = {{.arm = s->arm[0], .kind = SLOT_TIMED},
				{.arm = s->arm[1], .kind = SLOT_TIMED}};
	struct err e = {0};
	int64_t block, attempt;
	bool again;

	assert_ok(query_block_add(s->st.db, s->stage, s->blocks++, slots, 2, &block, &e));
	attempt = store_plan(&s->st, block);
	assert_ok(query_attempt_ingest(s->st.db, attempt, "0123", s->t, 2, nodes, 1, STORE_NOW_US,
				       &again, &e));
	for (int i = 0; i < 2; i++)
		trial_result_done(&s->t[i]);
	next_block(s);
}

static char *check(struct scene *s)
{
	struct evidence *v = NULL;
	char *reason = NULL;
	struct err e = {0};

	assert_ok(evidence_load(&s->c, &s->row, &v, &e));
	assert_ok(evidence_check(v, 1, &reason, &e));
	evidence_free(v);
	return reason;
}

static void scene_free(struct scene *s)
{
	for (int i = 0; i < 2; i++) {
		trial_result_done(&s->t[i]);
		config_done(&s->config[i]);
	}
	db_close(s->st.db);
	loaded_done(&s->recipe);
	scratch_free(&s->dir);
	free(s);
}

static void assert_proved(struct scene *s)
{
	_cleanup_free_ char *reason = check(s);

	if (reason)
		fail_msg("not proved: %s", reason);
}

static void assert_reason(struct scene *s, const char *part)
{
	_cleanup_free_ char *reason = check(s);

	if (!reason)
		fail_msg("proved, but \"%s\" is missing", part);
	assert_contains(reason, part);
}

/* One honest block: proved. Then one that `spoil` has changed: not, and the reason says why. */
static void spoiled(const char *knob, const char *value, int ranks, void (*spoil)(struct scene *),
		    const char *reason)
{
	struct scene *s = scene_new(knob, value, ranks);

	store(s);
	assert_proved(s);
	spoil(s);
	store(s);
	if (reason)
		assert_reason(s, reason);
	else
		assert_proved(s);
	scene_free(s);
}

/* -- delivered ------------------------------------------------------------------------------- */

static void env_missing(struct scene *s)
{
	drop(&s->t[1], 0, "env.E");
}

static void env_other(struct scene *s)
{
	set(&s->t[1], 0, "env.E", "2");
}

static void env_missing_in_rank_2(struct scene *s)
{
	drop(&s->t[1], 2, "env.E");
}

static void test_a_variable(void **state)
{
	(void)state;
	spoiled("E", "1", 1, env_missing, "not delivered: E should be 1 in rank 0");
	spoiled("E", "1", 1, env_other, "and is 2");
	spoiled("E", "1", 4, env_missing_in_rank_2, "not delivered: E should be 1 in rank 2");
}

static void list_without(struct scene *s)
{
	set(&s->t[1], 0, "env.CONF", "a:1");
}

static void list_with_a_longer_value(struct scene *s)
{
	set(&s->t[1], 0, "env.CONF", "a:1,b:221");
}

static void list_with_a_longer_key(struct scene *s)
{
	set(&s->t[1], 0, "env.CONF", "a:1,bb:22");
}

static void list_in_another_order(struct scene *s)
{
	set(&s->t[1], 0, "env.CONF", "b:22,a:1");
}

static void test_an_element_of_a_list(void **state)
{
	(void)state;
	spoiled("sub", "22", 1, list_without, "not delivered: CONF should be 22");
	spoiled("sub", "22", 1, list_with_a_longer_value, "not delivered");
	spoiled("sub", "22", 1, list_with_a_longer_key, "not delivered");
	spoiled("sub", "22", 1, list_in_another_order, NULL);
}

static void argument_missing(struct scene *s)
{
	set(&s->t[1], 0, "argv", "[\"train\",\"--keep\",\"1\"]");
}

static void argument_other(struct scene *s)
{
	set(&s->t[1], 0, "argv", "[\"train\",\"--keep\",\"1\",\"--g\",\"44\"]");
}

static void argv_unread(struct scene *s)
{
	drop(&s->t[1], 0, "argv");
}

static void joined_apart(struct scene *s)
{
	set(&s->t[1], 0, "argv", "[\"train\",\"--keep\",\"1\",\"--g\",\"3\",\"--j\",\"5\"]");
}

static void flag_missing(struct scene *s)
{
	set(&s->t[1], 0, "argv", "[\"train\",\"--keep\",\"1\",\"--g\",\"3\"]");
}

static void test_an_argument(void **state)
{
	(void)state;
	spoiled("G", "4", 1, argument_missing, "--g 4 is not in the arguments of rank 0");
	spoiled("G", "4", 1, argument_other, "--g 4 is not in the arguments of rank 0");
	spoiled("G", "4", 1, argv_unread, "--g 4 is not in the arguments of rank 0");
	spoiled("J", "5", 1, joined_apart, "--j= 5 is not in the arguments of rank 0");
	spoiled("F", "true", 1, flag_missing, "--f true is not in the arguments of rank 0");
}

static void nothing_of_rank_0(struct scene *s)
{
	drop(&s->t[1], 0, NULL);
}

/* A launcher is no rank: that it got the setting proves nothing about those who train. */
static void only_the_launcher(struct scene *s)
{
	for (size_t i = 0; i < s->t[1].n_effective; i++)
		s->t[1].effective[i].rank = -1;
}

static void test_no_rank_could_be_read(void **state)
{
	struct scene *s = scene_new("E", "1", 1);

	(void)state;
	nothing_of_rank_0(s);
	store(s);
	assert_reason(s, "no process of the treatment could be read in /proc");
	scene_free(s);
	spoiled("E", "1", 1, only_the_launcher, "no rank of trial");
}

/* -- acknowledged and effective ---------------------------------------------------------------- */

static void test_an_acknowledgement(void **state)
{
	struct scene *s = scene_new("K", "1", 1);

	(void)state;
	trial_result_effective(&s->t[1], 0, "ack.K", "K is 1", PROOF_ACKNOWLEDGED);
	store(s);
	assert_proved(s);
	store(s); /* the second block lacks it */
	assert_reason(s, "not acknowledged: nothing in the output of trial");
	scene_free(s);
}

/* What a component says once a rank must come from each of them. */
static void test_an_acknowledgement_of_every_rank(void **state)
{
	struct scene *s = scene_new("N", "1", 2);

	(void)state;
	trial_result_effective(&s->t[1], 0, "ack.N", "1", PROOF_ACKNOWLEDGED);
	trial_result_effective(&s->t[1], 1, "ack.N", "1", PROOF_ACKNOWLEDGED);
	store(s);
	assert_proved(s);
	trial_result_effective(&s->t[1], 0, "ack.N", "1", PROOF_ACKNOWLEDGED);
	store(s);
	assert_reason(s, "not acknowledged by rank 1");
	scene_free(s);
}

/* A pattern may stand beside a lower level: it is no demand then. */
static void test_only_the_required_level_is_demanded(void **state)
{
	struct scene *s = scene_new("lax", "1", 1);

	(void)state;
	store(s);
	assert_proved(s);
	scene_free(s);
}

static void map_all(struct scene *s)
{
	for (int r = 0; r < s->ranks; r++)
		set(&s->t[1], r, "maps.libjemalloc.so.2", "/usr/lib/libjemalloc.so.2");
}

static void test_a_mapped_file(void **state)
{
	struct scene *s = scene_new("M", "libjemalloc.so.2", 3);

	(void)state;
	map_all(s);
	store(s);
	assert_proved(s);
	map_all(s);
	drop(&s->t[1], 1, "maps.libjemalloc.so.2");
	store(s);
	assert_reason(s, "no effect: no file named *libjemalloc* is mapped into rank 1");
	scene_free(s);
}

static void threads(struct scene *s, double base, double treatment)
{
	for (int i = 0; i < 2; i++)
		for (size_t k = 0; k < s->t[i].n_metrics; k++)
			s->t[i].metrics[k].value = i ? treatment : base;
}

static void test_a_metric_that_must_move(void **state)
{
	struct scene *s = scene_new("T", "2", 1);

	(void)state;
	store(s);
	assert_proved(s);
	threads(s, 8, 8);
	store(s);
	assert_reason(s, "no effect: tree_threads did not move (up was expected) in 1 of 2 pairs");
	scene_free(s);
	s = scene_new("T", "2", 1);
	threads(s, 8, 4);
	store(s);
	assert_reason(s, "did not move (up was expected) in 1 of 1 pairs");
	scene_free(s);
	s = scene_new("T", "2", 1);
	threads(s, NAN, 4); /* refused by the store: absent */
	store(s);
	assert_reason(s, "effect unproved: tree_threads was not measured in both arms");
	scene_free(s);
}

/* -- nothing else ------------------------------------------------------------------------------ */

static void other_env(struct scene *s)
{
	set(&s->t[1], 0, "env.OMP_NUM_THREADS", "8");
}

static void other_env_in_rank_1(struct scene *s)
{
	set(&s->t[1], 1, "env.OMP_NUM_THREADS", "8");
}

static void env_only_in_the_treatment(struct scene *s)
{
	set(&s->t[1], 0, "env.NCCL_X", "1");
}

static void env_only_in_the_baseline(struct scene *s)
{
	set(&s->t[0], 0, "env.NCCL_X", "1");
}

static void other_hash(struct scene *s)
{
	set(&s->t[1], 0, "envhash.HOME", "xxh64:9");
}

static void other_hash_only_in_the_baseline(struct scene *s)
{
	set(&s->t[0], 0, "envhash.SECRET_SAUCE", "xxh64:9");
}

static void test_an_undeclared_variable(void **state)
{
	(void)state;
	spoiled("E", "1", 1, other_env,
		"undeclared difference: OMP_NUM_THREADS is 8 in the one arm and 4 in the other");
	spoiled("E", "1", 2, other_env_in_rank_1, "undeclared difference: OMP_NUM_THREADS");
	spoiled("E", "1", 1, env_only_in_the_treatment, "undeclared difference: NCCL_X is 1");
	spoiled("E", "1", 1, env_only_in_the_baseline, "undeclared difference: NCCL_X is 1");
	spoiled("E", "1", 1, other_hash, "undeclared difference: HOME is other text");
	spoiled("E", "1", 1, other_hash_only_in_the_baseline,
		"undeclared difference: SECRET_SAUCE is other text");
}

static void more_arguments(struct scene *s)
{
	set(&s->t[1], 0, "argv", "[\"train\",\"--keep\",\"1\",\"--g\",\"4\",\"--amp\"]");
}

static void more_arguments_in_the_baseline(struct scene *s)
{
	set(&s->t[0], 0, "argv", "[\"train\",\"--keep\",\"1\",\"--g\",\"3\",\"--amp\"]");
}

static void more_arguments_in_rank_1(struct scene *s)
{
	set(&s->t[1], 1, "argv", "[\"train\",\"--keep\",\"1\",\"--g\",\"4\",\"--amp\"]");
}

static void another_value_of_another_argument(struct scene *s)
{
	set(&s->t[1], 0, "argv", "[\"train\",\"--keep\",\"2\",\"--g\",\"4\"]");
}

static void test_an_undeclared_argument(void **state)
{
	(void)state;
	spoiled("G", "4", 1, more_arguments, "the argument --amp stands in one arm only");
	spoiled("G", "4", 1, more_arguments_in_the_baseline,
		"the argument --amp stands in one arm only");
	spoiled("G", "4", 2, more_arguments_in_rank_1, "the argument --amp stands in one arm only");
	spoiled("G", "4", 1, another_value_of_another_argument, "stands in one arm only");
}

static void volatile_differences(struct scene *s)
{
	set(&s->t[1], 0, "env.SLURM_STEP_ID", "7");
	set(&s->t[1], 0, "env.FETTLE_SLOT", "3");
	set(&s->t[1], 0, "env._", "/usr/bin/x");
	set(&s->t[1], 0, "argv",
	    "[\"train\",\"--keep\",\"1\",\"--g\",\"3\",\"/w/blocks/1.1/t01/ckpt\"]");
}

static void implied_variable(struct scene *s)
{
	set(&s->t[1], 0, "env.E_ALIAS", "1");
}

static void implied_argument(struct scene *s)
{
	set(&s->t[1], 0, "argv",
	    "[\"train\",\"--keep\",\"1\",\"--g\",\"4\",\"--h\",\"9\",\"--h=7\"]");
}

static void a_name_that_begins_like_an_implied_one(struct scene *s)
{
	set(&s->t[1], 0, "argv", "[\"train\",\"--keep\",\"1\",\"--g\",\"4\",\"--hh\"]");
}

static void test_what_may_differ(void **state)
{
	(void)state;
	spoiled("E", "1", 1, volatile_differences, NULL);
	spoiled("E", "1", 1, implied_variable, NULL);
	spoiled("G", "4", 1, implied_argument, NULL);
	spoiled("G", "4", 1, a_name_that_begins_like_an_implied_one, "--hh");
}

/* A rank that was not there yet when the agent looked says nothing about differences. */
static void a_rank_less_in_the_baseline(struct scene *s)
{
	drop(&s->t[0], 1, NULL);
}

/* A run that was over before the agent looked shows its launcher alone. */
static void only_the_launcher_in_the_treatment(struct scene *s)
{
	set(&s->t[0], 0, "env.CUDA_VISIBLE_DEVICES", "0,1");
	set(&s->t[1], 0, "argv", "[\"/usr/bin/srun\",\"-N2\",\"train\",\"--keep\",\"1\"]");
}

static void only_the_launcher_in_the_baseline(struct scene *s)
{
	set(&s->t[0], 0, "argv", "[\"bash\",\"train\",\"--keep\",\"1\"]");
}

static void launchers_of_two_kinds(struct scene *s)
{
	set(&s->t[0], 0, "argv", "[\"/bin/sh\",\"train\",\"--keep\",\"1\"]");
	set(&s->t[1], 0, "argv", "[\"srun\",\"-N2\",\"train\",\"--keep\",\"1\"]");
}

static void the_launcher_in_both(struct scene *s)
{
	set(&s->t[0], 0, "argv", "[\"srun\",\"train\",\"--keep\",\"1\"]");
	set(&s->t[1], 0, "argv", "[\"srun\",\"-N4\",\"train\",\"--keep\",\"1\"]");
}

/* Its arguments name the variables that each arm declares. */
static void the_launcher_enters_a_container(struct scene *s)
{
	struct container *k = &s->recipe.recipe->workload.container;

	k->runtime = xstrdup("apptainer");
	k->image = xstrdup("i.sif");
	set(&s->t[0], -1, "argv", "[\"srun\",\"apptainer\",\"exec\",\"i.sif\",\"train\"]");
	set(&s->t[1], -1, "argv",
	    "[\"srun\",\"apptainer\",\"exec\",\"--env\",\"E=1\",\"i.sif\",\"train\"]");
}

static void a_launcher_of_other_arguments(struct scene *s)
{
	set(&s->t[0], -1, "argv", "[\"srun\",\"train\"]");
	set(&s->t[1], -1, "argv", "[\"srun\",\"-N4\",\"train\"]");
}

static void test_a_launcher_is_not_compared_with_what_it_starts(void **state)
{
	(void)state;
	spoiled("E", "1", 1, only_the_launcher_in_the_treatment, NULL);
	spoiled("E", "1", 1, only_the_launcher_in_the_baseline, NULL);
	spoiled("E", "1", 1, launchers_of_two_kinds, NULL);
	spoiled("E", "1", 1, the_launcher_in_both, "the argument -N4 stands in one arm only");
	spoiled("E", "1", 1, a_launcher_of_other_arguments,
		"the argument -N4 stands in one arm only");
	spoiled("E", "1", 1, the_launcher_enters_a_container, NULL);
}

static void test_a_rank_that_only_one_arm_shows(void **state)
{
	(void)state;
	spoiled("E", "1", 2, a_rank_less_in_the_baseline, NULL);
}

/* A trial that failed shows nothing and spoils nothing. */
static void failed_trial(struct scene *s)
{
	s->t[1].state = TRIAL_FAILED;
	s->t[1].reason = xstrdup("exited with 1");
	drop(&s->t[1], 0, NULL);
}

static void test_a_failed_trial_is_no_evidence(void **state)
{
	(void)state;
	spoiled("E", "1", 1, failed_trial, NULL);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_a_variable),
		cmocka_unit_test(test_an_element_of_a_list),
		cmocka_unit_test(test_an_argument),
		cmocka_unit_test(test_no_rank_could_be_read),
		cmocka_unit_test(test_an_acknowledgement),
		cmocka_unit_test(test_an_acknowledgement_of_every_rank),
		cmocka_unit_test(test_only_the_required_level_is_demanded),
		cmocka_unit_test(test_a_mapped_file),
		cmocka_unit_test(test_a_metric_that_must_move),
		cmocka_unit_test(test_an_undeclared_variable),
		cmocka_unit_test(test_an_undeclared_argument),
		cmocka_unit_test(test_what_may_differ),
		cmocka_unit_test(test_a_launcher_is_not_compared_with_what_it_starts),
		cmocka_unit_test(test_a_rank_that_only_one_arm_shows),
		cmocka_unit_test(test_a_failed_trial_is_no_evidence),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
