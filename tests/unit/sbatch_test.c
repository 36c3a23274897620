/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include "orchestrator/script/sbatch.h"

static void parse(const char *text, struct sbatch *s)
{
	struct err e = {0};

	assert_ok(sbatch_parse("t.sbatch", text, strlen(text), s, &e));
}

static const char *option(const struct sbatch *s, const char *name)
{
	const struct sbatch_option *o = sbatch_option(s, name, 0);

	return o && o->value ? o->value : "(none)";
}

static const struct sbatch_var *last_var(const struct sbatch *s, const char *name)
{
	for (size_t i = s->n_vars; i-- > 0;)
		if (str_eq(s->vars[i].name, name))
			return &s->vars[i];
	fail_msg("no variable %s", name);
	return NULL;
}

static const struct sbatch_note *note_at(const struct sbatch *s, int line)
{
	for (size_t i = 0; i < s->n_notes; i++)
		if (s->notes[i].line == line)
			return &s->notes[i];
	fail_msg("no note on line %d", line);
	return NULL;
}

/* "a|b|c" */
static char *joined(const struct shell_fields *f)
{
	struct buf b = {0};

	for (size_t i = 0; i < f->n; i++)
		buf_printf(&b, "%s%s%s", i ? "|" : "", f->v[i].text, f->v[i].known ? "" : "?");
	return buf_take(&b);
}

static void test_options_are_read_as_sbatch_reads_them(void **state)
{
	struct sbatch s = {0};

	(void)state;
	parse("#!/usr/bin/env -S bash -l\n"
	      "#SBATCH -N2 -n 16 --mem=4G # all of a node\n"
	      "\n# a comment\n"
	      "#SBATCH --comment=\"two words\" --constraint='a&b' -J x\\ y\n"
	      "#SBATCH --partition a --part=b\n"
	      "#SBATCH -Hk --exclusive --nice=100 --tasks-per-node=4\n",
	      &s);
	assert_string_equal(s.interpreter, "bash");
	assert_int_equal(s.n_notes, 0);
	assert_string_equal(option(&s, "nodes"), "2");
	assert_string_equal(option(&s, "ntasks"), "16");
	assert_string_equal(option(&s, "mem"), "4G");
	assert_string_equal(option(&s, "comment"), "two words");
	assert_string_equal(option(&s, "constraint"), "a&b");
	assert_string_equal(option(&s, "job-name"), "x y");
	assert_string_equal(option(&s, "partition"), "b");
	assert_int_equal(sbatch_option(&s, "partition", 0)->line, 6);
	assert_non_null(sbatch_option(&s, "hold", 0));
	assert_non_null(sbatch_option(&s, "no-kill", 0));
	assert_null(sbatch_option(&s, "exclusive", 0)->value);
	assert_string_equal(option(&s, "ntasks-per-node"), "4");
	sbatch_free(&s);
}

static void test_lines_that_slurm_does_not_read_are_told(void **state)
{
	struct sbatch s = {0};

	(void)state;
	parse("#!/bin/bash\n##SBATCH --nodes=4\n# SBATCH -N 3\n #SBATCH --nodes=5\n"
	      "#SBATCH --nodes=1 --output=$HOME/o --ndoes=3\n"
	      "#SBATCH --time\n"
	      "cd /x\n#SBATCH --mem=4G\n# SBATCH lines are read by Slurm\n",
	      &s);
	assert_string_equal(option(&s, "nodes"), "1");
	assert_int_equal(note_at(&s, 2)->kind, SBATCH_OFF);
	assert_int_equal(note_at(&s, 3)->kind, SBATCH_OFF);
	assert_int_equal(note_at(&s, 4)->kind, SBATCH_OFF);
	assert_int_equal(note_at(&s, 5)->kind, SBATCH_UNEXPANDED);
	assert_contains(s.notes[4].text, "did you mean --nodes?");
	assert_contains(note_at(&s, 6)->text, "--time needs a value");
	assert_int_equal(note_at(&s, 8)->kind, SBATCH_IGNORED);
	assert_contains(note_at(&s, 8)->text, "--mem=4G");
	assert_null(sbatch_option(&s, "mem", 0));
	assert_int_equal(s.n_notes, 7);
	sbatch_free(&s);
}

static void test_what_sbatch_refuses_is_refused(void **state)
{
	static const struct {
		const char *text, *what;
	} bad[] = {
		{"", "t.sbatch:1: not a batch script"},
		{"echo x\n", "t.sbatch:1: not a batch script"},
		{"#!/bin/bash\necho\r\n", "t.sbatch:2: a DOS line break"},
		{"#!/bin/bash\n#SBATCH -J 'a\n", "t.sbatch:2: the ' in this #SBATCH line"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct sbatch s = {0};
		struct err e = {0};

		assert_int_equal(sbatch_parse("t.sbatch", bad[i].text, strlen(bad[i].text), &s, &e),
				 -ERR_USAGE);
		assert_contains(e.text, bad[i].what);
		assert_null(s.text);
	}
}

static void test_variables_have_the_values_that_the_shell_would_give(void **state)
{
	struct sbatch s = {0};

	(void)state;
	parse("#!/bin/bash\n#SBATCH -N 3 -c 12\n"
	      "A=1 B='x y'; export C=\"$A-${B}\"\n"
	      "export D=${D:-7} E=${A:-9} F=$(date) G=~/x\n"
	      "declare -x H=\"$UNKNOWN/h\"\n"
	      "A+=2\nexport A\nunset C\n"
	      "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK N=$SLURM_NNODES\n"
	      "if true; then export K=1; else export K=2; fi\n"
	      "NCCL_X=1 env M=2 P=\"$A\" python t.py\n"
	      "srun --export=ALL,Q=3 python t.py\n",
	      &s);
	assert_string_equal(last_var(&s, "B")->value, "x y");
	assert_int_equal(last_var(&s, "B")->how, SBATCH_ASSIGN);
	assert_string_equal(last_var(&s, "D")->value, "7");
	assert_string_equal(last_var(&s, "E")->value, "1");
	assert_null(last_var(&s, "F")->value);
	assert_null(last_var(&s, "G")->value);
	assert_null(last_var(&s, "H")->value);
	assert_int_equal(last_var(&s, "H")->how, SBATCH_EXPORT);
	assert_string_equal(last_var(&s, "A")->value, "12");
	assert_int_equal(last_var(&s, "A")->how, SBATCH_EXPORT);
	assert_int_equal(last_var(&s, "C")->how, SBATCH_UNSET);
	assert_string_equal(last_var(&s, "OMP_NUM_THREADS")->value, "12");
	assert_string_equal(last_var(&s, "N")->value, "3");
	assert_true(last_var(&s, "K")->conditional);
	assert_null(last_var(&s, "K")->value);
	assert_int_equal(last_var(&s, "K")->line, 10);
	assert_int_equal(last_var(&s, "NCCL_X")->how, SBATCH_PREFIX);
	assert_string_equal(last_var(&s, "M")->value, "2");
	assert_string_equal(last_var(&s, "P")->value, "12");
	assert_string_equal(last_var(&s, "Q")->value, "3");
	sbatch_free(&s);
}

static void test_launches(void **state)
{
	static const struct {
		const char *line, *launchers, *program, *args;
	} ok[] = {
		{"srun -l -n 4 --cpu-bind cores python -u -X dev t.py a --b=1", "srun python",
		 "t.py", "a|--b=1"},
		{"torchrun --nproc-per-node=8 --rdzv-endpoint \"$H:1\" t.py --x", "torchrun",
		 "t.py", "--x"},
		{"python3.11 -m torch.distributed.run --standalone -m pkg.train 1",
		 "python torchrun", "pkg.train", "1"},
		{"mpirun -np 4 --mca btl ^tcp -x A -bind-to none ./a.out --y 2", "mpirun",
		 "./a.out", "--y|2"},
		{"accelerate launch --multi_gpu --num_processes 4 t.py --z", "accelerate", "t.py",
		 "--z"},
		{"deepspeed --num_gpus=4 t.py --deepspeed c.json", "deepspeed", "t.py",
		 "--deepspeed|c.json"},
		{"apptainer exec --nv -B /a:/b i.sif python t.py", "apptainer python", "t.py", ""},
		{"enroot start --mount /a:/b img torchrun t.py", "enroot torchrun", "t.py", ""},
		{"srun bash -c \"cd /x && exec python t.py --lr $LR\"", "srun bash -c python",
		 "t.py", "--lr|$LR?"},
		{"srun --a b bash -c \"bash -c 'exec nice -n 5 python t.py --lr 1'\"",
		 "srun bash -c bash -c python", "t.py", "--lr|1"},
		{"conda run -n x python t.py 1", "python", "t.py", "1"},
		{"uv run --with y t.py 1", "", "t.py", "1"},
		{"OMP_NUM_THREADS=1 timeout -k 5 1h numactl -N 0 python t.py \\\n  --last",
		 "python", "t.py", "--last"},
		{"O=\"--a 1 --b $X\"; A=(--c \"two words\" $Y)\npython t.py $O \"${A[@]}\"",
		 "python", "t.py", "--a|1|--b|$X?|--c|two words|$Y?"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ok); i++) {
		_cleanup_free_ char *text = xasprintf("#!/bin/bash\n%s\n", ok[i].line);
		_cleanup_free_ char *args = NULL;
		struct buf b = {0};
		struct sbatch s = {0};

		parse(text, &s);
		assert_int_equal(s.n_launches, 1);
		for (size_t k = 0; k < s.launches[0].launchers.n; k++)
			buf_printf(&b, "%s%s", k ? " " : "", s.launches[0].launchers.v[k]);
		assert_string_equal(b.data ? b.data : "", ok[i].launchers);
		assert_string_equal(s.launches[0].program, ok[i].program);
		args = joined(&s.launches[0].args);
		assert_string_equal(args, ok[i].args);
		assert_false(s.launches[0].errand);
		buf_free(&b);
		sbatch_free(&s);
	}
}

static void test_what_starts_nothing_is_no_launch(void **state)
{
	struct sbatch s = {0};

	(void)state;
	parse("#!/bin/bash\necho python t.py\n# srun x\nmkdir -p out\n"
	      "cat <<EOF > x.sh\nsrun python t.py\nEOF\nH=$(srun hostname)\n"
	      "srun hostname\npython -c 'print(1)'\npython - <<X\nprint(2)\nX\n"
	      "srun bash <<X\npython t.py\nX\n",
	      &s);
	assert_int_equal(s.n_launches, 2);
	assert_true(s.launches[0].errand && s.launches[1].errand);
	assert_int_equal(s.launches[1].line, 10);
	assert_contains(note_at(&s, 14)->text, "here-document");
	sbatch_free(&s);
}

static void test_the_body_is_followed(void **state)
{
	struct sbatch s = {0};
	const struct shell_command *c;

	(void)state;
	parse("#!/bin/bash\nmodule load cuda nccl\nml gcc\nsource /v/bin/activate\n. e.sh\n"
	      "conda activate x\n"
	      "f() { srun python a.py; }\n"
	      "for i in 1 2; do srun python b.py \"$i\" & done; wait\n"
	      "case $X in a|b) srun python c.py ;; *) : ;; esac\n"
	      "[[ $A > 1 && -n $B ]] && python d.py 2>&1 | tee log\n"
	      "(( n = 3 ))\n( cd x; python e.py > out.txt )\n",
	      &s);
	assert_int_equal(s.n_notes, 0);
	assert_int_equal(s.n_modules, 2);
	assert_string_equal(s.modules[0].text, "module load cuda nccl");
	assert_int_equal(s.n_activations, 3);
	assert_int_equal(s.n_launches, 5);
	c = &s.body.v[s.launches[0].command];
	assert_string_equal(c->function, "f");
	c = &s.body.v[s.launches[1].command];
	assert_true(c->loop && c->background && !c->function);
	c = &s.body.v[s.launches[2].command];
	assert_true(c->conditional && !c->loop);
	c = &s.body.v[s.launches[3].command];
	assert_true(c->conditional && c->piped_out);
	assert_string_equal(c->redirects[0].op, "2>&");
	c = &s.body.v[s.launches[4].command];
	assert_true(c->subshell && !c->conditional);
	assert_string_equal(c->redirects[0].target.text, "out.txt");
	assert_int_equal(s.launches[4].line, 12);
	sbatch_free(&s);
}

static void test_what_is_not_understood_has_its_line(void **state)
{
	struct sbatch s = {0};

	(void)state;
	parse("#!/bin/bash\neval \"$X\"\nif true; then\necho 'open\npython t.py\n", &s);
	assert_contains(note_at(&s, 2)->text, "eval");
	assert_contains(note_at(&s, 4)->text, "not closed");
	assert_int_equal(s.n_launches, 0);
	sbatch_free(&s);
}

static void test_components_of_a_heterogeneous_job(void **state)
{
	struct sbatch s = {0};

	(void)state;
	parse("#!/bin/bash\n#SBATCH -N1 --mem=1G\n#SBATCH hetjob\n#SBATCH -N2\n", &s);
	assert_int_equal(s.components, 2);
	assert_string_equal(sbatch_option(&s, "nodes", 0)->value, "1");
	assert_string_equal(sbatch_option(&s, "nodes", 1)->value, "2");
	assert_null(sbatch_option(&s, "mem", 1));
	sbatch_free(&s);
}

static void test_arguments_are_found(void **state)
{
	struct sbatch s = {0};
	bool known = false;

	(void)state;
	parse("#!/bin/bash\npython t.py --a 1 --a=2 --flag --dir $D --last\n", &s);
	assert_string_equal(sbatch_arg(&s.launches[0], "--a", &known), "2");
	assert_true(known);
	assert_string_equal(sbatch_arg(&s.launches[0], "--flag", &known), "");
	assert_string_equal(sbatch_arg(&s.launches[0], "--dir", &known), "$D");
	assert_false(known);
	assert_string_equal(sbatch_arg(&s.launches[0], "--last", &known), "");
	assert_null(sbatch_arg(&s.launches[0], "--di", &known));
	sbatch_free(&s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options_are_read_as_sbatch_reads_them),
		cmocka_unit_test(test_lines_that_slurm_does_not_read_are_told),
		cmocka_unit_test(test_what_sbatch_refuses_is_refused),
		cmocka_unit_test(test_variables_have_the_values_that_the_shell_would_give),
		cmocka_unit_test(test_launches),
		cmocka_unit_test(test_what_starts_nothing_is_no_launch),
		cmocka_unit_test(test_the_body_is_followed),
		cmocka_unit_test(test_what_is_not_understood_has_its_line),
		cmocka_unit_test(test_components_of_a_heterogeneous_job),
		cmocka_unit_test(test_arguments_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
