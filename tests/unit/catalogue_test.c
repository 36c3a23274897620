/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shipped catalogue of knobs: complete, honest about its proofs, true about versions of NCCL.
 */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "tests/unit/recipe.h"

#include <pcre2.h>

#include "orchestrator/script/passed.h"
#include "orchestrator/script/release.h"
#include "probes/probe.h"

static struct knob *knobs;
static size_t n_knobs;

static int setup(void **state)
{
	const struct script_path path = {.dirs = recipe_dirs};
	struct err e = {0};

	(void)state;
	if (script_catalogue(&path, &knobs, &n_knobs, &e) == 0)
		return 0;
	fprintf(stderr, "%s\n", e.text);
	return -1;
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_knobs; i++)
		knob_done(&knobs[i]);
	free(knobs);
	return 0;
}

static const struct knob *knob(const char *name)
{
	for (size_t i = 0; i < n_knobs; i++)
		if (str_eq(knobs[i].name, name))
			return &knobs[i];
	return NULL;
}

/* --- complete ----------------------------------------------------------------------------- */

static void need(const struct knob *k, const char *what, bool there)
{
	if (!there)
		fail_msg("%s:%d: knob %s has no %s", k->at.file, k->at.line, k->name, what);
}

static void test_every_knob_is_complete(void **state)
{
	(void)state;
	assert_true(n_knobs >= 190);
	for (size_t i = 0; i < n_knobs; i++) {
		const struct knob *k = &knobs[i];

		need(k, "file", k->at.line > 0 && fs_exists(k->at.file));
		need(k, "summary", k->summary);
		need(k, "risk", k->risk);
		need(k, "notes", k->notes);
		need(k, "when", k->about.when);
		need(k, "safe values", k->about.safe);
		need(k, "expect", k->expect);
		need(k, "word on how it is documented", k->about.documented);
		need(k, "bottleneck", k->bottleneck != BOTTLENECK_UNKNOWN);
		need(k, "way to be passed", k->target || k->about.passed.n);
		assert_false(k->user_defined);
	}
}

/* What changes results must not call itself neutral. */
static void test_classes(void **state)
{
	static const struct {
		const char *name;
		enum knob_class cls;
	} cases[] = {
		{"NCCL_ALGO", CLASS_NUMERICS},
		{"NCCL_PROTO", CLASS_NUMERICS},
		{"NCCL_NVLS_ENABLE", CLASS_NUMERICS},
		{"NCCL_COLLNET_ENABLE", CLASS_NUMERICS},
		{"NCCL_BUFFSIZE", CLASS_NEUTRAL},
		{"bucket_cap_mb", CLASS_NUMERICS},
		{"OMP_NUM_THREADS", CLASS_NUMERICS},
		{"compile", CLASS_NUMERICS},
		{"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", CLASS_NUMERICS},
		{"batch_size", CLASS_OPTIMISATION},
		{"gradient_accumulation", CLASS_OPTIMISATION},
		{"gradient_compression", CLASS_OPTIMISATION},
		{"grad_reduce_in_bf16", CLASS_OPTIMISATION},
		{"bf16", CLASS_OPTIMISATION},
		{"fp8", CLASS_OPTIMISATION},
		{"in_order", CLASS_OPTIMISATION},
		{"tensor_parallel", CLASS_OPTIMISATION},
		{"num_workers", CLASS_NEUTRAL},
		{"expandable_segments", CLASS_NEUTRAL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct knob *k = knob(cases[i].name);

		if (!k)
			fail_msg("no knob %s", cases[i].name);
		if (k->cls != cases[i].cls)
			fail_msg("%s is %s", k->name, knob_class_name(k->cls));
	}
}

/* --- how they are passed ------------------------------------------------------------------- */

/* Arguments as each framework spells them. */
static void check_form(const struct knob *k, const char *framework, const struct passed *p)
{
	static const struct {
		const char *framework, *begins, *ends, *holds;
	} forms[] = {
		{"hf_trainer", "--", "", "_"}, {"megatron", "--", "", "-"},
		{"nanogpt", "--", "=", ""},    {"torchtune", "", "=", ""},
		{"torchtitan", "--", "", "."}, {"lightning", "--", "", "."},
		{"deepspeed", "--", "", ""},
	};
	/* One word each, without a dash or an underscore in it. */
	static const char *const words[] = {"--fsdp", "--optim", "--tf32", "--bf16", "--fp16"};

	if (p->kind != PASSED_ARG && p->kind != PASSED_FLAG)
		return;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_eq(p->target, words[i]))
			return;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		if (str_eq(forms[i].framework, framework) &&
		    !(str_starts(p->target, forms[i].begins) &&
		      str_ends(p->target, forms[i].ends) && strstr(p->target + 2, forms[i].holds)))
			fail_msg("%s: %s does not look like an argument of %s", k->name, p->target,
				 framework);
}

static void test_passed_as_the_framework_spells_it(void **state)
{
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < n_knobs; i++)
		for (size_t j = 0; j < knobs[i].about.passed.n; j++) {
			const struct kv *w = &knobs[i].about.passed.v[j];
			struct passed p = {0};
			bool framework = false;

			for (size_t f = 0; passed_frameworks[f]; f++)
				framework = framework || str_eq(passed_frameworks[f], w->key);
			if (!framework)
				continue;
			assert_true(passed_parse(w->value, &p));
			check_form(&knobs[i], w->key, &p);
			passed_done(&p);
			n++;
		}
	assert_true(n > 200);
}

/* A framework that fettle can pass the knob to; NULL: none. */
static const char *framework_for(const struct knob *k)
{
	for (size_t i = 0; i < k->about.passed.n; i++) {
		struct passed p = {0};
		bool can = passed_parse(k->about.passed.v[i].value, &p) && p.kind <= PASSED_ENV;

		passed_done(&p);
		for (size_t f = 0; can && passed_frameworks[f]; f++)
			if (str_eq(passed_frameworks[f], k->about.passed.v[i].key))
				return passed_frameworks[f];
	}
	return NULL;
}

/* Its functions have nothing against a baseline of which nothing was measured. */
static void check_functions(const struct loaded *l, const struct knob *k)
{
	static const struct script_signals none = {NULL, 0};
	struct expectation x = {0};
	char *reason = NULL;
	struct err e = {0};

	if (script_expect(&l->sources, k, k->values.v[0], k->default_value, &none, &x, &e) ||
	    script_lint(&l->sources, k, k->values.v[0], &none, &reason, &e))
		fail_msg("%s", e.text);
	if (!x.why)
		fail_msg("%s does not say what it expects", k->name);
	expectation_done(&x);
	free(reason);
}

static bool lists(const struct strv *v, const char *word)
{
	for (size_t i = 0; word && i < v->n; i++)
		if (str_eq(v->v[i], word))
			return true;
	return false;
}

/* May both stand in one campaign? */
static bool together(const struct knob *a, const struct knob *b)
{
	bool same = a->target && str_eq(a->target, b->target) &&
		    (!a->subkey || !b->subkey || str_eq(a->subkey, b->subkey));

	return !same && !lists(&a->about.excludes, b->name) && !lists(&b->about.excludes, a->name);
}

/* Put knobs that are passed so into a campaign, as many as go together, load it, ask them. */
static size_t load_some(const char *dir, const char *framework, bool *done)
{
	const struct knob *taken[256];
	struct buf list = {0};
	size_t n = 0;

	for (size_t i = 0; i < n_knobs && n < ARRAY_LEN(taken); i++) {
		const struct knob *k = &knobs[i];
		bool fits = !done[i] && k->values.n && !k->requires_knob &&
			    str_eq(k->target ? NULL : framework_for(k), framework) &&
			    (k->target || framework);

		for (size_t j = 0; j < n && fits; j++)
			fits = together(k, taken[j]);
		if (!fits)
			continue;
		buf_printf(&list, "'%s', ", k->name);
		taken[n++] = k;
		done[i] = true;
	}
	if (n) {
		_cleanup_free_ char *text = xasprintf(
			"return { name = 'c', objective = 'trial_wall_s', resources = { nodes = 2 "
			"},\nworkload = { command = { 'true' }, framework = %s%s%s },\n"
			"knobs = { %s } }\n",
			framework ? "'" : "", framework ? framework : "nil", framework ? "'" : "",
			list.data);
		_cleanup_loaded_ struct loaded l = load_text(dir, text);

		if (l.rc)
			fail_msg("%s", l.e.text);
		for (size_t i = 0; i < l.recipe->n_knobs; i++)
			check_functions(&l, &l.recipe->knobs[i]);
	}
	buf_free(&list);
	return n;
}

/* A campaign can use it: each knob that has values, counts alone, and that fettle can pass. */
static void test_knobs_load_in_a_campaign(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ bool *done = xcalloc(n_knobs, sizeof *done);
	size_t n = 0, some;

	(void)state;
	while ((some = load_some(dir, NULL, done)))
		n += some;
	for (size_t f = 0; passed_frameworks[f]; f++)
		while ((some = load_some(dir, passed_frameworks[f], done)))
			n += some;
	assert_true(n > 130);
}

/* Steps of accumulation come from the measured ratio of communication to computing. */
static void test_accumulation_follows_the_ratio(void **state)
{
	static const struct signal v[] = {
		{"comm_exposed_ratio", 0.4}, {"comm_kernel_ratio", 0.6}, {"compute_ratio", 0.3}};
	static const struct script_signals measured = {v, ARRAY_LEN(v)};
	static const struct {
		const char *value;
		bool worth_trying;
		double gain; /* 1 / (1 - 0.4 + 0.4 / n) - 1 */
	} cases[] = {{"2", true, 0.25}, {"4", true, 0.4285714}, {"8", false, 0}};
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *text = campaign_with("knobs = { 'gradient_accumulation' }");
	_cleanup_loaded_ struct loaded l = load_text(dir, text);

	(void)state;
	if (l.rc)
		fail_msg("%s", l.e.text);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct expectation x = {0};
		struct err e = {0};

		assert_ok(script_expect(&l.sources, &l.recipe->knobs[0], cases[i].value, "1",
					&measured, &x, &e));
		assert_int_equal(x.worth_trying, cases[i].worth_trying);
		if (x.worth_trying)
			assert_true(x.gain > cases[i].gain - 1e-6 && x.gain < cases[i].gain + 1e-6);
		assert_contains(x.why, "communication over computing is 2.00, which asks for 2");
		expectation_done(&x);
	}
}

/* --- proofs ------------------------------------------------------------------------------- */

/* Lines of the components, as they come when the setting is V. */
static char *line_of_fact(const char *fact)
{
	if (str_starts(fact, "nccl.env."))
		return xasprintf("h:1:2 [0] NCCL INFO %s set by environment to 7.\n", fact + 9);
	if (str_eq(fact, "nccl.socket_threads"))
		return xstrdup("h:1:2 [0] NCCL INFO NET/Socket: Using 7 threads and 8 sockets per "
			       "thread\n");
	if (str_eq(fact, "nccl.sockets_per_thread"))
		return xstrdup("h:1:2 [0] NCCL INFO NET/Socket: Using 2 threads and 7 sockets per "
			       "thread\n");
	if (str_eq(fact, "nccl.p2p_chunk"))
		return xstrdup("h:1:2 [0] NCCL INFO P2P Chunksize set to 7\n");
	if (str_eq(fact, "ddp.bucket_cap_mb"))
		return xstrdup("[I1 a.cpp:1] [Rank 0]: DDP Initialized with:\n"
			       "bucket_cap_bytes: 7340032\n");
	if (str_starts(fact, "ddp."))
		return xasprintf("[I1 a.cpp:1] [Rank 0]: DDP Initialized with:\n%s: 7\n", fact + 4);
	return NULL;
}

/* Does a fact of this name say 7? */
struct wanted {
	const char *key;
	bool found;
};

static void take_fact(void *ctx, const struct probe_fact *f)
{
	struct wanted *w = ctx;

	w->found = w->found || (str_eq(f->key, w->key) && str_eq(f->text, "7"));
}

static void check_fact_is_read(const struct knob *k)
{
	const struct probe *p = probe_find(str_starts(k->proof.fact, "ddp.") ? "torch_ddp"
									     : "nccl_log");
	const struct probe_context none = {.file = "test"};
	struct wanted want = {.key = k->proof.fact};
	const struct probe_sink sink = {.fact = take_fact, .ctx = &want};
	_cleanup_free_ char *line = line_of_fact(k->proof.fact);
	struct probe_run *r = NULL;
	struct err e = {0};

	if (!line)
		fail_msg("%s: no probe is known to give the fact %s", k->name, k->proof.fact);
	assert_ok(p->open(&none, &sink, &r, &e));
	assert_ok(p->feed(r, line, strlen(line), &e));
	p->finish(r, NULL);
	if (!want.found)
		fail_msg("%s: probe %s does not read %s from %s", k->name, p->name, want.key, line);
}

/* "{value}" is 7 here. */
static bool matches(const char *pattern, const char *text)
{
	const char *at = strstr(pattern, "{value}");
	_cleanup_free_ char *whole = at ? xasprintf("%.*s7%s", (int)(at - pattern), pattern, at + 7)
					: xstrdup(pattern);
	PCRE2_SIZE where;
	int code;
	pcre2_code *re = pcre2_compile((PCRE2_SPTR)whole, PCRE2_ZERO_TERMINATED, PCRE2_MULTILINE,
				       &code, &where, NULL);
	pcre2_match_data *m;
	bool ok;

	assert_non_null(re);
	m = pcre2_match_data_create_from_pattern(re, NULL);
	ok = pcre2_match(re, (PCRE2_SPTR)text, strlen(text), 0, 0, m, NULL) > 0;
	pcre2_match_data_free(m);
	pcre2_code_free(re);
	return ok;
}

/* Megatron-LM prints "  name ..... value", dots up to column 48; the plugin its own line. */
static void check_pattern(const struct knob *k)
{
	static const char plugin[] = "h:1:2 [0] NCCL INFO NET/Plugin: Loaded collnet plugin SHARP "
				     "(v8)\n";
	const char *megatron = kvs_get(&k->about.passed, "megatron");
	struct passed p = {0};
	struct buf line = {0};

	if (matches(k->proof.log_pattern, plugin))
		return;
	if (!megatron || !passed_parse(megatron, &p))
		fail_msg("%s: nobody is known to print %s", k->name, k->proof.log_pattern);
	/* the one whose member has another name than its argument */
	buf_str(&line, str_eq(p.target, "--use-nccl-ub") ? "--nccl-ub" : p.target);
	for (char *c = line.data; *c; c++)
		*c = *c == '-' ? '_' : *c;
	{
		_cleanup_free_ char *text = xasprintf(
			"  %s %.*s 7\n", line.data + 2, (int)(48 - (line.len - 2)),
			"................................................");

		if (!matches(k->proof.log_pattern, text))
			fail_msg("%s: %s does not match %s", k->name, k->proof.log_pattern, text);
	}
	buf_free(&line);
	passed_done(&p);
}

static void test_components_say_what_is_asked_for(void **state)
{
	size_t facts = 0, patterns = 0;

	(void)state;
	for (size_t i = 0; i < n_knobs; i++) {
		const struct knob *k = &knobs[i];

		if (k->proof.fact) {
			check_fact_is_read(k);
			/* NCCL and DDP are silent unless they are asked. */
			need(k, "environment that makes the component speak", k->proof.env.n);
			facts++;
		}
		if (k->proof.log_pattern) {
			check_pattern(k);
			patterns++;
		}
	}
	assert_true(facts >= 85 && patterns >= 10);
}

/* NCCL takes any name for its own, so each must be acknowledged; but for those of its log. */
static void test_nccl_must_acknowledge(void **state)
{
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < n_knobs; i++) {
		const struct knob *k = &knobs[i];
		bool log = str_starts(k->name, "NCCL_DEBUG") || strstr(k->name, "_DUMP_FILE") ||
			   str_eq(k->name, "NCCL_CONF_FILE") ||
			   str_eq(k->name, "NCCL_PROFILER_PLUGIN");

		if (!str_starts(k->name, "NCCL_") || log)
			continue;
		need(k, "acknowledgement", k->proof.level == PROOF_ACKNOWLEDGED);
		n++;
	}
	assert_true(n >= 85);
}

/* --- versions of NCCL ---------------------------------------------------------------------- */

/* What the sources of NCCL, tag by tag, say of a name. */
struct window {
	char *name, *first, *last, *documented, *history;
};

static bool next_window(char **text, struct window *out)
{
	char **const fields[] = {&out->name, &out->first, &out->last, &out->documented,
				 &out->history};
	char *line = *text;

	while (line && *line == '#')
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL;
	if (!line || !*line)
		return false;
	*text = line + strcspn(line, "\n");
	if (**text)
		*(*text)++ = '\0';
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		*fields[i] = line;
		line += strcspn(line, "\t");
		if (*line)
			*line++ = '\0';
	}
	return true;
}

/* Before the oldest tag that was read nothing is known. */
static bool since_agrees(const struct knob *k, const struct window *w)
{
	const char *since = release_of(k->about.since, "nccl");

	if (str_eq(w->first, "2.3.5"))
		return !since;
	/* 2.14.3 to 2.16.2 read the name with a second NCCL_ in front */
	if (str_eq(k->name, "NCCL_ALLOC_P2P_NET_LL_BUFFERS"))
		return since && release_compare(since, w->first) <= 0;
	return since && release_compare(since, w->first) == 0;
}

static bool gone_agrees(const struct knob *k, const struct window *w)
{
	const char *gone = release_of(k->about.gone, "nccl");

	return str_eq(w->last, "-") ? !gone : gone && release_compare(gone, w->last) > 0;
}

/* One "2.14.3=18": from then on the catalogue must say so, and not what was before. */
static void check_default(const struct knob *k, char *entry, const char *before)
{
	char *value = strchr(entry, '=');
	struct workload w = {0};
	const char *said;

	*value++ = '\0';
	kvs_set(&w.versions, "nccl", entry);
	said = release_default(k, &w);
	if (!said)
		said = k->default_value;
	if (value[0] >= '0' && value[0] <= '9'
		    ? !str_eq(said, value) && k->about.defaults.n
		    : before && !str_eq(before, value) && str_eq(said, before))
		fail_msg("%s is %s from %s on, the catalogue says %s", k->name, value, entry,
			 said ? said : "nothing");
	kvs_free(&w.versions);
}

static void check_history(const struct knob *k, char *history)
{
	const char *before = NULL;

	for (char *entry = history, *next; entry; entry = next) {
		next = strchr(entry, ',');
		if (next)
			*next++ = '\0';
		check_default(k, entry, before);
		before = strchr(entry, '\0') + 1;
	}
}

static void test_windows_of_nccl(void **state)
{
	struct buf text = {0};
	struct err e = {0};
	struct window w;
	char *at;
	size_t n = 0;

	(void)state;
	assert_ok(fs_read("tests/fixtures/nccl-windows.tsv", 1 << 20, &text, &e));
	at = text.data;
	while (next_window(&at, &w)) {
		const struct knob *k = knob(w.name);

		if (!k)
			fail_msg("the catalogue has no %s", w.name);
		if (!since_agrees(k, &w))
			fail_msg("%s: NCCL reads it from %s on, the catalogue says %s", w.name,
				 w.first, k->about.since ? k->about.since : "nothing");
		if (!gone_agrees(k, &w))
			fail_msg("%s: read up to %s, the catalogue says gone with %s", w.name,
				 w.last, k->about.gone ? k->about.gone : "nothing");
		if (!str_eq(k->about.documented,
			    str_eq(w.documented, "undocumented") ? "no" : w.documented))
			fail_msg("%s is %s, the catalogue says %s", w.name, w.documented,
				 k->about.documented);
		check_history(k, w.history);
		n++;
	}
	buf_free(&text);
	assert_int_equal(n, 95);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_knob_is_complete),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_passed_as_the_framework_spells_it),
		cmocka_unit_test(test_knobs_load_in_a_campaign),
		cmocka_unit_test(test_accumulation_follows_the_ratio),
		cmocka_unit_test(test_components_say_what_is_asked_for),
		cmocka_unit_test(test_nccl_must_acknowledge),
		cmocka_unit_test(test_windows_of_nccl),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
