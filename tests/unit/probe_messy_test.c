/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A property of all line probes: launchers' prefixes, colours, CRLF, redrawn bars, lines of other
 * writers between the own ones, and all of them at once, change no value.
 */
#include "tests/unit/check.h"

#include "tests/unit/probe_check.h"

static const char *const prefixes[] = {
	"", "3: ", "[1,3]<stdout>:", "[rank3]:", "worker-0: 3: ", "(main, rank=3, pid=7) ",
	/* of these the clean and the dirtiest variant */
	"[default3]:", "[prterun-node07-4711@1,3]<stderr>:", "trainer-1  | ",
	"[pod/trainer-3/pytorch] ", "2026-11-28T02:14:00.123456789Z ", "1234.5s\t17\t"};
enum { PREFIXES_IN_FULL = 6, VARIANTS = 40 };
static const char *const ends[] = {"\n", "\r\n"};
/* Of the program: around its line; of the launcher: around its prefix, as compose and kubetail do.
 */
static const struct {
	const char *prefix, *line, *reset;
} colours[] = {{"", "", ""},
	       {"", "\x1b[32m", "\x1b[0m"},
	       {"", "[36m", "[0m"},
	       {"\x1b[1;33m", "\x1b[0m", ""},
	       {"\x1b]8;;http://n1\x1b\\", "\x1b(B\x1b[m", "\x1b[K"}};
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

/* A last line that is cut stays so. */
static void dress(struct buf *out, const char *line, size_t n, bool whole, const size_t pick[5])
{
	buf_str(out, others[pick[4]]);
	buf_str(out, colours[pick[2]].prefix);
	buf_str(out, prefixes[pick[0]]);
	buf_str(out, bars[pick[3]]);
	buf_str(out, bars[pick[3]][0] ? prefixes[pick[0]] : "");
	buf_str(out, colours[pick[2]].line);
	buf_put(out, line, n);
	buf_str(out, whole ? colours[pick[2]].reset : "");
	buf_str(out, whole ? ends[pick[1]] : "");
}

static void dress_all(struct buf *out, const struct buf *clean, const size_t pick[5])
{
	const char *at = clean->data, *end = clean->data + clean->len;

	while (at < end) {
		const char *lf = memchr(at, '\n', (size_t)(end - at));
		size_t n = lf ? (size_t)(lf - at) : (size_t)(end - at);

		dress(out, at, n, lf != NULL, pick);
		at += n + 1;
	}
}

static void check_dressed(const struct probe *p, const struct buf *clean, const char *want,
			  const size_t pick[5])
{
	struct buf b = {0};

	dress_all(&b, clean, pick);
	_cleanup_free_ char *got = values_of(p, b.data, b.len);
	/* Whatever a clean text is recognised as, a messy one is too. */
	const struct probe *as = probe_sniff(clean->data, clean->len),
			   *messy = probe_sniff(b.data, b.len);

	if (as && as != messy)
		fail_msg("%s, variant %zu %zu %zu %zu %zu: recognised as %s, not %s", p->name,
			 pick[0], pick[1], pick[2], pick[3], pick[4],
			 messy ? messy->name : "nothing", as->name);
	if (!str_eq(got, want))
		fail_msg("%s, variant %zu %zu %zu %zu %zu:\n%s\nnot\n%s", p->name, pick[0], pick[1],
			 pick[2], pick[3], pick[4], got, want);
	buf_free(&b);
}

/* One line for each format that consists of lines: a text of ours that is clean. `alone`: in such a
 * file every line is of this kind, another writer's is bad. */
static const struct {
	const char *probe, *file;
	bool alone;
} lines[] = {
	{"dcgm_dmon", "dcgmi-dmon.txt", false},
	{"dcgm_exporter", "dcgm-exporter.prom", false},
	{"deepspeed", "deepspeed-comms.txt", false},
	{"deepspeed", "deepspeed-profile.txt", false},
	{"deepspeed", "deepspeed.txt", false},
	{"diskstats", "diskstats.txt", false},
	{"dlio_log", "dlio-log.txt", false},
	{"dstat", "dstat-screen.txt", false},
	{"dstat", "dstat.csv", false},
	{"ethtool", "ethtool-mlx5.txt", false},
	{"hf_trainer", "hf-tables.txt", false},
	{"hf_trainer", "hf-trainer-v5-string-values.txt", false},
	{"ib_sysfs", "ib-sysfs.txt", false},
	{"ibstat", "ibstat.txt", false},
	{"ibstat", "ibstatus.txt", false},
	{"ifstat", "ifstat.txt", false},
	{"iostat", "iostat-h.txt", false},
	{"iostat", "iostat-pretty.txt", false},
	{"iostat", "iostat-x.txt", false},
	{"lightning", "lightning.txt", false},
	{"llmc", "llmc.txt", false},
	{"lustre", "lustre.txt", false},
	{"megatron", "megatron-2026-timers.txt", false},
	{"megatron", "megatron-forks.txt", false},
	{"megatron", "megatron-old.txt", false},
	{"metrics_csv", "metrics.csv", true},
	{"metrics_jsonl", "metrics.jsonl", true},
	{"mllog", "mllog.txt", false},
	{"modded_nanogpt", "modded-nanogpt.txt", false},
	{"nanochat", "nanochat.txt", false},
	{"nanogpt", "nanogpt.txt", false},
	{"nccl_log", "nccl-log-2.28-ib-gdr-nvls-tuning-warn.txt", false},
	{"nccl_log", "nccl-log-blank-lines-timestamps.txt", false},
	{"nccl_log", "nccl-log-versions.txt", false},
	{"nccl_tests", "allreduce-x2.txt", false},
	{"nccl_tests", "nccl-tests-2.19-timestamps-16rank.txt", false},
	{"nccl_tests", "nccl-tests-old.txt", false},
	{"nccl_tests", "nccl-tests-per-iter-I1.txt", false},
	{"ncu_csv", "ncu-details.csv", false},
	{"nemo", "nemo-step.txt", false},
	{"nemo", "nemo.txt", false},
	{"net_dev", "net-dev.txt", false},
	{"nsys_stats", "nsys-stats-all.csv", false},
	{"nsys_stats", "nsys-stats-console.txt", false},
	{"nvidia_smi_csv", "nvidia-smi-csv-nounits-odd.csv", false},
	{"nvidia_smi_csv", "smi-h200.csv", false},
	{"nvidia_smi_dmon", "smi-dmon.txt", false},
	{"nvidia_smi_q", "smi-q.txt", false},
	{"nvidia_smi_q", "smi-q-h200.txt", false},
	{"nvidia_smi_topo", "smi-topo.txt", false},
	{"osu", "osu.txt", false},
	{"perfquery", "perfquery.txt", false},
	{"perftest", "perftest.txt", false},
	{"procfs", "procfs.txt", true},
	{"slurm_end", "slurm-end.txt", false},
	{"torch_ddp", "torch-ddp-1.13.txt", false},
	{"torch_memory", "torch-memory_stats.txt", false},
	{"torch_memory", "torch-memory_summary.txt", false},
	{"torchtitan", "torchtitan-2026-rank-prefix.txt", false},
	{"torchtune", "torchtune.txt", false},
	{"train_log", "megatron-2026-timers.txt", false},
	{"train_log", "nanogpt.txt", false},
	{"vmstat", "vmstat-dt.txt", false},
	{"vmstat", "vmstat-wt.txt", false},
};

/* These read whole documents (JSON, databases), or what the user's own pattern says. */
static const char *const documents[] = {"dlio", "hf_state", "iostat_json",   "nccl_tests_json",
					"nsys", "pattern",  "perftest_json", "pytorch_trace"};

static void check_format(size_t i)
{
	const struct probe *p = probe_find(lines[i].probe);
	struct buf path = {0}, clean = {0};
	_cleanup_free_ char *want = NULL;

	assert_non_null(p);
	buf_printf(&path, "tests/fixtures/probes/%s", lines[i].file);
	assert_int_equal(fs_read(path.data, 1 << 20, &clean, NULL), 0);
	want = values_of(p, clean.data, clean.len);
	/* Without LONG a third of them each, every one of them with two of the prefixes. */
	for (size_t a = 0, stride = long_run() ? 1 : 3; a < ARRAY_LEN(prefixes); a++)
		for (size_t v = a < PREFIXES_IN_FULL ? a % stride : 0; v < VARIANTS;
		     v += a < PREFIXES_IN_FULL ? stride : VARIANTS - 1) {
			size_t pick[5] = {a, v & 1, v / 8, v >> 1 & 1, v >> 2 & 1};

			if (lines[i].alone)
				pick[3] = pick[4] = 0;
			check_dressed(p, &clean, want, pick);
		}
	buf_free(&path);
	buf_free(&clean);
}

static void test_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		check_format(i);
}

/* Counts and shares over the text so far; and a bar's last state, which later ones would have
 * replaced. */
static bool grows(const struct probe *p, const char *metric)
{
	static const char *const counted[] = {"nccl_nnodes",
					      "nccl_nranks",
					      "nccl_gdr",
					      "nccl_gdr_channels",
					      "nccl_transport_channels",
					      "nccl_communicators",
					      "coll_nranks",
					      "kernel_time_share"};

	for (size_t i = 0; i < ARRAY_LEN(counted); i++)
		if (str_eq(metric, counted[i]))
			return true;
	return str_eq(p->name, "lightning");
}

/* A line for each number that was found; `bare`: without where it belongs. */
static char *numbers_of(const struct probe *p, const char *text, size_t n, bool bare)
{
	struct findings f = findings_of(p, NULL, text, n, 0);
	struct buf b = {0};

	buf_char(&b, '\n');
	for (size_t i = 0; i < f.n; i++)
		if (!f.v[i].is_fact && !f.v[i].text && !grows(p, f.v[i].name) &&
		    !strstr(f.v[i].labels, "since=boot"))
			buf_printf(&b, "%s %.17g step=%lld [%s]\n", f.v[i].name, f.v[i].value,
				   bare ? -1LL : (long long)f.v[i].step, bare ? "" : f.v[i].labels);
	findings_free(&f);
	return buf_take(&b);
}

/* Every line of part is one of whole. */
static const char *stranger(char *part, const char *whole)
{
	char *at = part, *line;
	struct buf b = {0};
	bool there = true;

	while (there && (line = strsep(&at, "\n"))) {
		buf_clear(&b);
		buf_printf(&b, "\n%s\n", line);
		there = !*line || strstr(whole, b.data);
	}
	buf_free(&b);
	return there ? NULL : line;
}

/* A killed tool leaves a text that ends anywhere: it has fewer numbers, and no other ones. */
static void test_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		const struct probe *p = probe_find(lines[i].probe);
		struct buf path = {0}, text = {0};
		_cleanup_free_ char *whole = NULL;

		buf_printf(&path, "tests/fixtures/probes/%s", lines[i].file);
		assert_int_equal(fs_read(path.data, 1 << 20, &text, NULL), 0);
		whole = numbers_of(p, text.data, text.len, false);
		/* A prime: lines have no such length. */
		for (size_t n = 1; n<text.len; n += text.len> 8192 ? 97 : 7) {
			_cleanup_free_ char *part = numbers_of(p, text.data, n, false);
			const char *odd = stranger(part, whole);

			if (odd)
				fail_msg("%s, %s cut at byte %zu: %s", p->name, lines[i].file, n,
					 odd);
		}
		buf_free(&path);
		buf_free(&text);
	}
}

/* Several processes write these to one stream, and one can tear another's line. (A tool's own file
 * has one writer; and a name or a key that is torn is another name.) */
static const char *const shared[] = {"hf_trainer", "lightning",  "llmc",      "megatron",
				     "mllog",      "nanogpt",    "nccl_log",  "nccl_tests",
				     "nemo",       "torchtitan", "torchtune", "train_log"};

static bool is_shared(const char *probe)
{
	for (size_t i = 0; i < ARRAY_LEN(shared); i++)
		if (str_eq(probe, shared[i]))
			return true;
	return false;
}

/* Each line torn at some places, with a foreign one in the gap. */
static void check_torn(size_t i, const struct buf *text, const char *whole)
{
	static const char foreign[] = "gpu-b saves a checkpoint | takes: 7 s, loss\n";
	const struct probe *p = probe_find(lines[i].probe);
	struct buf torn = {0};

	for (size_t at = 0; at < text->len;) {
		const char *lf = memchr(text->data + at, '\n', text->len - at);
		size_t n = lf ? (size_t)(lf - text->data) - at : text->len - at;

		for (size_t k = 1; k < n; k += n / 7 + 1) {
			_cleanup_free_ char *part = NULL;
			const char *odd;

			buf_clear(&torn);
			buf_put(&torn, text->data, at + k);
			buf_str(&torn, foreign);
			buf_put(&torn, text->data + at + k, text->len - at - k);
			part = numbers_of(p, torn.data, torn.len, true);
			odd = stranger(part, whole);
			if (odd)
				fail_msg("%s, %s torn at byte %zu: %s", p->name, lines[i].file,
					 at + k, odd);
		}
		at += n + 1;
	}
	buf_free(&torn);
}

static void test_torn(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct buf path = {0}, text = {0};
		_cleanup_free_ char *whole = NULL;

		buf_printf(&path, "tests/fixtures/probes/%s", lines[i].file);
		assert_int_equal(fs_read(path.data, 1 << 20, &text, NULL), 0);
		whole = numbers_of(probe_find(lines[i].probe), text.data, text.len, true);
		if (is_shared(lines[i].probe))
			check_torn(i, &text, whole);
		buf_free(&path);
		buf_free(&text);
	}
}

/* No probe is left out by oversight. */
static void test_complete(void **state)
{
	(void)state;
	for (size_t k = 0; probe_table[k]; k++) {
		bool there = false;

		for (size_t i = 0; i < ARRAY_LEN(lines); i++)
			there |= str_eq(lines[i].probe, probe_table[k]->name);
		for (size_t i = 0; i < ARRAY_LEN(documents); i++)
			there |= str_eq(documents[i], probe_table[k]->name);
		if (!there)
			fail_msg("%s: neither in `lines` nor in `documents` of this test",
				 probe_table[k]->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
