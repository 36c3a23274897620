/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What recommend writes is read back by the programs it is written for: sh, bash, a JSON reader. */
#include "orchestrator/report/recommend.h"

#include "orchestrator/base/json.h"
#include "orchestrator/base/proc.h"
#include "orchestrator/report/text.h"
#include "tests/unit/check.h"
#include "tests/unit/report_sample.h"

enum { OUTPUT_MAX = 1 << 20, SHELL_US = 20 * 1000000 };

/* Values that a careless writer lets through to the shell. */
static struct kv nasty[] = {
	{"NASTY_QUOTES", "it's \"quoted\" `id` $(id)"},
	{"NASTY_DOLLAR", "$HOME ${PATH} \\ !x # not a comment"},
	{"NASTY_LINES", "one\ntwo\n# three\nexport PWNED=1"},
	{"NASTY_BLANKS", "  a\tb  "},
	{"NASTY_EMPTY", ""},
	{"NASTY_GLOB", "*?[a]~;|&<>(){}"},
	{"NASTY_GONE", NULL},
	{"odd.name", "v v"},
};

static char *nasty_argv[] = {"printf", "<%s>", "a b", "it's", "x\ny", "$HOME", "", NULL};

static struct report nasty_report(void)
{
	struct report r = sample_report();

	r.fix_config.env.v = nasty;
	r.fix_config.env.n = ARRAY_LEN(nasty);
	r.fix_config.argv.v = nasty_argv;
	r.fix_config.argv.n = ARRAY_LEN(nasty_argv) - 1;
	r.campaign.name = "evil\nexport PWNED=1";
	return r;
}

static int write_as(const struct report *r, const char *form, bool force, struct buf *out,
		    struct err *e)
{
	const struct recommend_form *f;

	assert_int_equal(recommend_find(form, &f, e), 0);
	return recommend_write(r, f, force, NULL, out, e);
}

static char *written(const struct report *r, const char *form, bool force)
{
	struct buf b = {0};
	struct err e = {0};

	assert_ok(write_as(r, form, force, &b, &e));
	return buf_take(&b);
}

static char *output_of(const char *const *argv)
{
	struct proc_spawn s = {.file = argv[0],
			       .argv = (char *const *)argv,
			       .fd_in = -1,
			       .fd_out = -1,
			       .fd_err = -1};
	struct buf out = {0}, err_out = {0};
	struct err e = {0};
	int status = -1;

	assert_ok(proc_capture(&s, SHELL_US, OUTPUT_MAX, &out, &err_out, &status, &e));
	if (status)
		fail_msg("status %d: %s", status, err_out.data ? err_out.data : "");
	buf_free(&err_out);
	return buf_take(&out);
}

/* Source the file in a shell and print the variable as a child of it sees it. */
static void seen_by_child(const char *file, const char *name, const char *want)
{
	const char *argv[] = {"sh",
			      "-c",
			      "NASTY_GONE=here; export NASTY_GONE; set -a; . \"$1\"; set +a; "
			      "printenv -0 \"$2\" || printf \"(unset)\"",
			      "sh",
			      file,
			      name,
			      NULL};
	_cleanup_free_ char *out = output_of(argv);

	assert_string_equal(out, want ? want : "(unset)");
}

static void env_survives_the_shell(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *file = fs_join(dir, "fix env");
	struct report r = nasty_report();
	_cleanup_free_ char *text = written(&r, "env", false);
	struct err e = {0};

	(void)state;
	assert_ok(fs_write_atomic(file, text, strlen(text), 0600, &e));
	for (size_t i = 0; i + 1 < ARRAY_LEN(nasty); i++)
		seen_by_child(file, nasty[i].key, nasty[i].value);
	seen_by_child(file, "PWNED", NULL);
	assert_contains(text, "# fettle: campaign 7, evil\n# export PWNED=1\n");
	assert_contains(text, "unset NASTY_GONE\n");
	assert_contains(text, "# env 'odd.name=v v' printf '<%s>' 'a b'");
}

/* The script runs: srun is a program of ours that drops its own options. */
static void sbatch_script_runs_what_was_measured(void **state)
{
	_cleanup_scratch_ char *dir = scratch_new();
	_cleanup_free_ char *file = fs_join(dir, "job.sh"), *srun = fs_join(dir, "srun");
	_cleanup_free_ char *path = xasprintf("PATH=%s:/usr/bin:/bin", dir);
	static const char fake[] = "#!/bin/sh\nwhile [ \"${1#--}\" != \"$1\" ]; do shift; done\n"
				   "printf '%s|' \"$NASTY_LINES\"\nexec \"$@\"\n";
	const char *argv[] = {"env", path, "WANDB_API_KEY=s3cr3t", "bash", file, NULL};
	struct report r = nasty_report();
	_cleanup_free_ char *text = written(&r, "sbatch", false), *out = NULL;
	struct err e = {0};

	(void)state;
	assert_ok(fs_write_atomic(file, text, strlen(text), 0600, &e));
	assert_ok(fs_write_atomic(srun, fake, sizeof fake - 1, 0700, &e));
	out = output_of(argv);
	assert_string_equal(out, "one\ntwo\n# three\nexport PWNED=1|<a b><it's><x\ny><$HOME><>");
	assert_null(strstr(text, "s3cr3t"));
}

static void sbatch_names_the_resources(void **state)
{
	struct report r = sample_report();
	_cleanup_free_ char *text = written(&r, "sbatch", false);

	(void)state;
	assert_true(str_starts(text, "#!/bin/bash\n#SBATCH --job-name=demo__night___1_\n"));
	assert_contains(text, "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n");
	assert_contains(text, "#SBATCH --gpus-per-node=4\n#SBATCH --mem=65536M\n");
	assert_contains(text, "#SBATCH --partition=gpu\n#SBATCH --account=\"team a\"\n");
	assert_contains(text, "#SBATCH --chdir=\"/data/my job\"\n");
	assert_contains(text, "exec srun --mpi=none --kill-on-bad-exit=1 --nodes=2 --ntasks=8 "
			      "python3 train.py --data 'it'\\''s here/$HOME' --num-workers 2\n");
}

static void sbatch_names_the_further_options(void **state)
{
	struct report r = sample_report();
	struct recipe recipe = sample_recipe;
	_cleanup_free_ char *text = NULL;

	(void)state;
	recipe.resources.options = (struct job_options){.licenses = (char[]){"matlab:1"},
							.comment = (char[]){"two words"},
							.mem_mib_per_gpu = 4096,
							.nice = -5};
	r.recipe = &recipe;
	text = written(&r, "sbatch", false);
	assert_contains(text, "#SBATCH --mem-per-gpu=4096M\n#SBATCH --licenses=matlab:1\n"
			      "#SBATCH --nice=-5\n#SBATCH --comment=\"two words\"\n");
}

static void control_characters_cannot_leave_their_line(void **state)
{
	struct report r = sample_report();
	struct recipe recipe = sample_recipe;
	struct buf b = {0};
	struct err e = {0};

	(void)state;
	recipe.resources.account = "a\n#SBATCH --uid=0";
	r.recipe = &recipe;
	assert_int_equal(write_as(&r, "sbatch", false, &b, &e), -ERR_STATE);
	assert_contains(e.text, "--account");
	assert_null(b.data);
}

static void json_as_it_was(void **state)
{
	struct report r = sample_report();
	_cleanup_free_ char *text = written(&r, "json", false);
	struct buf want = {0};
	struct err e = {0};

	(void)state;
	if (getenv("UPDATE_GOLDEN"))
		assert_ok(fs_write_atomic("tests/golden/recommend.json", text, strlen(text), 0644,
					  &e));
	assert_ok(fs_read("tests/golden/recommend.json", OUTPUT_MAX, &want, &e));
	assert_string_equal(text, want.data);
	buf_free(&want);
}

static void pending_convergence_is_said(void **state)
{
	struct report r = sample_report();
	_cleanup_free_ char *env = NULL, *json = NULL;

	(void)state;
	r.fix.state = "accepted, pending convergence";
	env = written(&r, "env", false);
	json = written(&r, "json", false);
	assert_contains(env, "!! Pending convergence");
	assert_contains(json, "\"pending_convergence\": true");
}

static void a_gain_not_seen_again_is_refused(void **state)
{
	struct report r = sample_report();
	struct buf b = {0};
	struct err e = {0};
	_cleanup_free_ char *forced = NULL;

	(void)state;
	r.fix.lo = -0.01;
	r.fix.state = "gain not seen again in the final stage";
	assert_false(recommend_confirmed(&r));
	assert_int_equal(write_as(&r, "env", false, &b, &e), -ERR_STATE);
	assert_contains(e.text, "--force");
	assert_null(b.data);
	forced = written(&r, "env", true);
	assert_contains(forced, "!!!! NOT CONFIRMED");
}

static void a_fix_that_breaks_a_guard_is_refused(void **state)
{
	struct report r = sample_report();
	struct buf b = {0};
	struct err e = {0};
	_cleanup_free_ char *forced = NULL, *json = NULL;

	(void)state;
	r.fix.state = "rejected: guard";
	r.fix.reason = "guard loss (last): worse by +2.00 % [1.90, 2.10], margin 1.00 %";
	assert_false(recommend_confirmed(&r));
	assert_int_equal(write_as(&r, "env", false, &b, &e), -ERR_STATE);
	assert_contains(e.text, "breaks a guard: guard loss (last): worse by +2.00 %");
	assert_contains(e.text, "--force");
	assert_null(b.data);
	forced = written(&r, "env", true);
	assert_contains(forced, "!!!! REJECTED: this fix breaks a guard.");
	assert_contains(forced, "# note: guard loss (last)");
	json = written(&r, "json", true);
	assert_contains(json, "\"confirmed\": false");
}

static void no_fix_says_what_to_do(void **state)
{
	static const struct {
		enum campaign_state state;
		const char *advice;
	} cases[] = {{CAMPAIGN_RUNNING, "fettle status 7"},
		     {CAMPAIGN_STOPPED, "fettle resume 7"},
		     {CAMPAIGN_DONE, "fettle report 7"},
		     {CAMPAIGN_FAILED, "fettle run"}};
	struct report r = sample_report();

	(void)state;
	r.has_fix = false;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf b = {0};
		struct err e = {0};

		r.campaign.state = cases[i].state;
		assert_int_equal(write_as(&r, "env", true, &b, &e), -ERR_NOT_FOUND);
		assert_contains(e.text, cases[i].advice);
		assert_null(b.data);
	}
}

static void an_unknown_form_names_the_near_one(void **state)
{
	const struct recommend_form *form = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(recommend_find("sbatsh", &form, &e), -ERR_USAGE);
	assert_contains(e.text, "did you mean \"sbatch\"");
}

/* -- text ------------------------------------------------------------------------------------- */

static void line_of(const char *in, const char *want)
{
	struct buf b = {0};

	text_line(&b, in);
	assert_string_equal(b.data ? b.data : "", want);
	buf_free(&b);
}

static void text_is_made_fit_to_print(void **state)
{
	(void)state;
	line_of("plain", "plain");
	line_of("a\nb\tc\r", "a b c ");
	line_of("\x1b]0;x\x07", "\\x1b]0;x\\x07");
	line_of("\xc3\xa9\xe5\x9f\xba\xf0\x9f\x98\x80", "\xc3\xa9\xe5\x9f\xba\xf0\x9f\x98\x80");
	line_of("\xc2\x9b"
		"31m",
		"\\x9b31m");                                             /* CSI of 8 bits */
	line_of("\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd");                 /* overlong */
	line_of("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* a surrogate */
	line_of("\xe5\x9f", "\xef\xbf\xbd\xef\xbf\xbd");                 /* cut */
	line_of("a\xe2\x80\xae"
		"b",
		"a\xef\xbf\xbd"
		"b"); /* right-to-left override */
}

static void names_of_variables(void **state)
{
	(void)state;
	assert_true(text_is_name("_A1"));
	assert_false(text_is_name("1A"));
	assert_false(text_is_name("a.b"));
	assert_false(text_is_name(""));
	assert_false(text_is_name("A=1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(env_survives_the_shell),
		cmocka_unit_test(sbatch_script_runs_what_was_measured),
		cmocka_unit_test(sbatch_names_the_resources),
		cmocka_unit_test(sbatch_names_the_further_options),
		cmocka_unit_test(control_characters_cannot_leave_their_line),
		cmocka_unit_test(json_as_it_was),
		cmocka_unit_test(pending_convergence_is_said),
		cmocka_unit_test(a_gain_not_seen_again_is_refused),
		cmocka_unit_test(a_fix_that_breaks_a_guard_is_refused),
		cmocka_unit_test(no_fix_says_what_to_do),
		cmocka_unit_test(an_unknown_form_names_the_near_one),
		cmocka_unit_test(text_is_made_fit_to_print),
		cmocka_unit_test(names_of_variables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
