/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A property of all line probes: launchers' prefixes, colours, CRLF, redrawn bars, lines of other
 * writers between the own ones, and all of them at once, change no value.
 */
#include "tests/unit/probe_check.h"

static const char *const prefixes[] = {
	"", "3: ", "[1,3]<stdout>:", "[rank3]:", "worker-0: 3: ", "(main, rank=3, pid=7) "};
static const char *const ends[] = {"\n", "\r\n"};
static const char *const colours[][2] = {{"", ""}, {"\x1b[32m", "\x1b[0m"}, {"[36m", "[0m"}};
static const char *const bars[] = {"", "\rMap:  10%|#   | 1/10 [00:01<00:09,  1.0s/x]\r"};
static const char *const others[] = {"", "5: some other line | with: 1 field, loss\n"};

/* What was found, without where: lines and ranks differ by design. */
static char *values_of(const struct probe *p, const char *text, size_t n)
{
	struct findings f = findings_of(p, NULL, text, n, 0);
	struct buf b = {0};

	for (size_t i = 0; i < f.n; i++)
		buf_printf(&b, "%s %.17g %s step=%lld [%s]\n", f.v[i].name, f.v[i].value,
			   f.v[i].text ? f.v[i].text : "-", (long long)f.v[i].step, f.v[i].labels);
	buf_printf(&b, "%s", probe_status_name(f.status));
	findings_free(&f);
	return buf_take(&b);
}

static void dress(struct buf *out, const char *line, size_t n, const size_t pick[5])
{
	buf_str(out, others[pick[4]]);
	buf_str(out, prefixes[pick[0]]);
	buf_str(out, bars[pick[3]]);
	buf_str(out, bars[pick[3]][0] ? prefixes[pick[0]] : "");
	buf_str(out, colours[pick[2]][0]);
	buf_put(out, line, n);
	buf_str(out, colours[pick[2]][1]);
	buf_str(out, ends[pick[1]]);
}

static void check_dressed(const struct probe *p, const struct buf *clean, const char *want,
			  const size_t pick[5])
{
	struct buf b = {0};
	const char *at = clean->data, *end = clean->data + clean->len;

	while (at < end) {
		const char *lf = memchr(at, '\n', (size_t)(end - at));
		size_t n = lf ? (size_t)(lf - at) : (size_t)(end - at);

		dress(&b, at, n, pick);
		at += n + 1;
	}
	_cleanup_free_ char *got = values_of(p, b.data, b.len);
	if (!str_eq(got, want))
		fail_msg("%s, variant %zu %zu %zu %zu %zu:\n%s\nnot\n%s", p->name, pick[0], pick[1],
			 pick[2], pick[3], pick[4], got, want);
	buf_free(&b);
}

static void test_all(void **state)
{
	static const struct {
		const char *probe, *file;
	} t[] = {
		{"megatron", "megatron-old.txt"},
		{"megatron", "megatron-2026-timers.txt"},
		{"torchtitan", "torchtitan-2026-rank-prefix.txt"},
		{"hf_trainer", "hf-trainer-v5-string-values.txt"},
		{"nanogpt", "nanogpt.txt"},
		{"metrics_jsonl", "metrics.jsonl"},
		{"nccl_tests", "nccl-tests-2.19-timestamps-16rank.txt"},
		{"nccl_tests", "allreduce-x2.txt"},
		{"nccl_log", "nccl-log-2.28-ib-gdr-nvls-tuning-warn.txt"},
		{"train_log", "nanogpt.txt"},
		{"train_log", "megatron-2026-timers.txt"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const struct probe *p = probe_find(t[i].probe);
		struct buf path = {0}, clean = {0};
		bool jsonl = str_eq(t[i].probe, "metrics_jsonl"); /* other lines are bad there */
		_cleanup_free_ char *want = NULL;

		buf_printf(&path, "tests/fixtures/probes/%s", t[i].file);
		assert_int_equal(fs_read(path.data, 1 << 20, &clean, NULL), 0);
		want = values_of(p, clean.data, clean.len);
		for (size_t a = 0; a < ARRAY_LEN(prefixes); a++)
			for (size_t v = 0; v < 24; v++) {
				size_t pick[5] = {a, v & 1, v / 8, v >> 1 & 1, v >> 2 & 1};

				if (jsonl)
					pick[3] = pick[4] = 0;
				check_dressed(p, &clean, want, pick);
			}
		buf_free(&path);
		buf_free(&clean);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
