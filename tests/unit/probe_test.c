/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

#include <sys/stat.h>
#include <zlib.h>

static void test_table(void **state)
{
	(void)state;
	assert_string_equal(probe_find("nccl_tests")->name, "nccl_tests");
	assert_null(probe_find("no_such"));
	for (size_t i = 0; probe_table[i]; i++) {
		const struct probe *p = probe_table[i];

		assert_true(p->name && p->summary && p->open && p->feed && p->finish);
		assert_ptr_equal(probe_find(p->name), p);
		if (i)
			assert_true(strcmp(probe_table[i - 1]->name, p->name) < 0);
	}
	assert_string_equal(probe_status_name(PROBE_OK), "ok");
	assert_string_equal(probe_status_name(PROBE_PARTIAL), "partial");
	assert_string_equal(probe_status_name(PROBE_FAILED), "failed");
	assert_string_equal(probe_status_name(PROBE_ABSENT), "absent");
}

/* Each text is recognised as what it is, and nothing else is taken for anything. */
static void test_sniff(void **state)
{
	static const struct {
		const char *file, *probe;
	} t[] = {
		{"allreduce-x2.txt", "nccl_tests"},
		{"nccl-tests-2.19-timestamps-16rank.txt", "nccl_tests"},
		{"nccl-tests-J-version3.json", "nccl_tests_json"},
		{"nccl-h200.log", "nccl_log"},
		{"nccl-x2.log", "nccl_log"},
		{"smi-h200.csv", "nvidia_smi_csv"},
		{"nvidia-smi-csv-nounits-odd.csv", "nvidia_smi_csv"},
		{"iostat-xt-12.6.1.json", "iostat_json"},
		{"iostat-killed-truncated.json", "iostat_json"},
		{"procfs.txt", "procfs"},
		{"metrics.jsonl", "metrics_jsonl"},
		{"megatron-2026-timers.txt", "train_log"},
		{"torchtitan-2026-rank-prefix.txt", "train_log"},
		{"hf-trainer-v5-string-values.txt", "train_log"},
		{"tqdm-CR-glued-deepspeed.txt", "train_log"},
		{"nanogpt.txt", "train_log"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct buf path = {0}, text = {0};
		const struct probe *p;

		buf_printf(&path, "tests/fixtures/probes/%s", t[i].file);
		assert_int_equal(fs_read(path.data, 1 << 20, &text, NULL), 0);
		p = probe_sniff(text.data, text.len < 8192 ? text.len : 8192);
		if (!p || !str_eq(p->name, t[i].probe))
			fail_msg("%s: %s", t[i].file, p ? p->name : "nothing");
		/* A BOM before it changes nothing. */
		struct buf bom = {0};

		buf_str(&bom, "\xef\xbb\xbf");
		buf_put(&bom, text.data, text.len);
		assert_ptr_equal(probe_sniff(bom.data, bom.len), probe_sniff(text.data, text.len));
		buf_free(&bom);
		buf_free(&path);
		buf_free(&text);
	}
	static const char both[] = "n1:1:2 [0] NCCL INFO Using network IB\n"
				   "iter 10: loss 2.5, time 5.0ms, mfu 1.5%\n"
				   "slurmstepd: error: Exceeded job memory limit\n";
	const struct probe *fits[8];

	assert_int_equal(probe_sniff_all(both, strlen(both), fits, 8), 3);
	assert_string_equal(fits[0]->name, "train_log");
	assert_string_equal(fits[1]->name, "nccl_log");
	assert_string_equal(fits[2]->name, "slurm_end");
	assert_int_equal(probe_sniff_all(both, strlen(both), fits, 2), 2);
	assert_string_equal(fits[1]->name, "nccl_log");
	assert_null(sniff_text("hello world\n"));
	assert_null(sniff_text(""));
	assert_null(sniff_text("{\"a\":\n"));
}

/* Writes `line` n times, then `last`, and says what the text is taken for. */
static size_t kinds(const char *path, const char *line, size_t n, const char *last,
		    const struct probe **fits, size_t max)
{
	gzFile f = gzopen(path, "wbT");
	size_t found;

	for (size_t i = 0; i < n; i++)
		gzwrite(f, line, (unsigned)strlen(line));
	gzwrite(f, last, (unsigned)strlen(last));
	gzclose(f);
	f = gzopen(path, "rb");
	assert_int_equal(probe_sniff_file(f, fits, max, &found), 1);
	gzclose(f);
	return found;
}

/* What a job's launchers say can be longer than any head: its log is known by what comes late. */
static void test_sniff_late(void **state)
{
	static const char step[] = "iter 10: loss 2.5, time 5.0ms, mfu 1.5%\n",
			  nccl[] = "n1:1:2 [0] NCCL INFO Channel 00/02 : 0 1\n";
	char dir[] = "/tmp/fettle-sniff-XXXXXX";
	const struct probe *fits[8];
	struct buf path = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	buf_printf(&path, "%s/log", dir);
	assert_int_equal(kinds(path.data, "Loading shard\n", 20000, step, fits, 8), 1);
	assert_string_equal(fits[0]->name, "train_log");
	assert_int_equal(kinds(path.data, nccl, 8000, step, fits, 8), 2);
	assert_string_equal(fits[0]->name, "train_log");
	assert_string_equal(fits[1]->name, "nccl_log");
	assert_int_equal(kinds(path.data, nccl, 8000, "done\n", fits, 8), 1);
	assert_int_equal(kinds(path.data, "Loading shard\n", 20000, "done\n", fits, 8), 0);
	/* The first lines of a table decide. */
	assert_int_equal(kinds(path.data, "step,loss\n", 20000, step, fits, 8), 1);
	assert_string_equal(fits[0]->name, "metrics_csv");
	assert_int_equal(fs_remove_tree(dir, NULL), 0);
	buf_free(&path);
}

static void take_origin(void *ctx, const struct probe_value *v)
{
	struct buf *b = ctx;

	buf_printf(b, "%d %d %s;", v->rank, v->local_rank, v->host);
}

static void take_fact_origin(void *ctx, const struct probe_fact *f)
{
	struct buf *b = ctx;

	buf_printf(b, "fact %d %d %s;", f->rank, f->local_rank, f->host);
}

/* What launchers put before a line belongs to each value and fact of it. */
static void test_origin(void **state)
{
	static const char
		text[] = "worker-3: [default2]:{\"step\":1,\"loss\":2}\n"
			 "[pod/trainer-1/main] 7: {\"step\":2,\"loss\":2,\"phase\":\"a\"}\n"
			 "{\"step\":3,\"loss\":2}\n";
	const struct probe *p = probe_find("metrics_jsonl");
	struct buf got = {0};
	struct probe_sink sink = {.value = take_origin, .fact = take_fact_origin, .ctx = &got};
	struct probe_run *r = NULL;
	struct err e;

	(void)state;
	assert_int_equal(p->open(NULL, &sink, &r, &e), 0);
	assert_int_equal(p->feed(r, text, strlen(text), &e), 0);
	assert_int_equal(p->finish(r, NULL), PROBE_OK);
	assert_string_equal(got.data, "-1 2 worker-3;7 -1 trainer-1;fact 7 -1 trainer-1;-1 -1 ;");
	buf_free(&got);
}

static char dir[] = "/tmp/probe_test.XXXXXX";

static void write_gz(const char *path, const char *text, size_t cut)
{
	struct buf whole = {0};
	gzFile f = gzopen(path, "wb");

	assert_int_equal(gzwrite(f, text, (unsigned)strlen(text)), strlen(text));
	assert_int_equal(gzclose(f), Z_OK);
	assert_int_equal(fs_read(path, 1 << 20, &whole, NULL), 0);
	assert_int_equal(truncate(path, (off_t)(whole.len - cut)), 0);
	buf_free(&whole);
}

static struct findings file(const char *name, struct err *e)
{
	struct findings f = {0};
	struct probe_sink sink = {.value = found_value, .fact = found_fact, .ctx = &f};
	_cleanup_free_ char *path = fs_join(dir, name);

	f.status = probe_file(probe_find("metrics_jsonl"), NULL, path, &sink, &f.detail, e);
	return f;
}

static void test_file(void **state)
{
	struct buf text = {0};
	struct findings f;
	struct err e;

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (int i = 0; i < 20000; i++)
		buf_printf(&text, "{\"step\":%d,\"loss\":%d.5,\"x\":%d}\n", i, i % 7,
			   i * 7919 % 10007);
	_cleanup_free_ char *plain = fs_join(dir, "plain"), *gz = fs_join(dir, "a.gz"),
			    *cut = fs_join(dir, "cut.gz");
	assert_int_equal(fs_write_atomic(plain, text.data, text.len, 0600, &e), 0);
	write_gz(gz, text.data, 0);
	write_gz(cut, text.data, 2000);
	f = file("plain", &e);
	check_status(&f, PROBE_OK);
	assert_int_equal(f.n, 40000);
	assert_int_equal(e.code, ERR_OK);
	findings_free(&f);
	f = file("a.gz", &e);
	check_status(&f, PROBE_OK);
	assert_int_equal(f.n, 40000);
	findings_free(&f);
	f = file("cut.gz", &e);
	check_status(&f, PROBE_PARTIAL);
	assert_true(f.n > 1000 && f.n < 40000);
	assert_non_null(strstr(f.detail.data, "gzip"));
	findings_free(&f);
	buf_free(&text);
}

static void test_no_file(void **state)
{
	struct probe_context c = {.pattern = "("};
	struct probe_sink none = {0};
	struct buf detail = {0};
	struct findings f;
	struct err e;

	(void)state;
	f = file("absent", &e);
	check_status(&f, PROBE_ABSENT);
	assert_int_equal(e.code, ERR_OK);
	assert_non_null(strstr(f.detail.data, "No such file"));
	findings_free(&f);
	f = file(".", &e);
	assert_int_equal(e.code, ERR_IO);
	check_status(&f, PROBE_ABSENT);
	findings_free(&f);
	assert_int_equal(probe_file(probe_find("pattern"), &c, "tests/fixtures/probes/nanogpt.txt",
				    &none, &detail, &e),
			 PROBE_ABSENT);
	assert_int_equal(e.code, ERR_RECIPE);
	buf_free(&detail);
	assert_int_equal(fs_remove_tree(dir, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),   cmocka_unit_test(test_sniff),
		cmocka_unit_test(test_origin),  cmocka_unit_test(test_file),
		cmocka_unit_test(test_no_file), cmocka_unit_test(test_sniff_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
