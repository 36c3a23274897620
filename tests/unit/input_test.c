/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/input.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

static void note(void *ctx, const struct input_line *l)
{
	struct buf *b = ctx;

	assert_int_equal(strlen(l->text), l->len);
	buf_printf(b, "%lld", (long long)l->line);
	if (l->rank >= 0)
		buf_printf(b, " r%d", l->rank);
	if (l->local_rank >= 0)
		buf_printf(b, " l%d", l->local_rank);
	if (*l->host)
		buf_printf(b, " @%s", l->host);
	buf_printf(b, "%s%s%s <%s>\n", l->complete ? "" : " open", l->redrawn ? " redrawn" : "",
		   l->cut ? " cut" : "", l->text);
}

static char *lines_of(const char *text, size_t n, size_t chunk)
{
	struct buf b = {0};
	struct input *in = input_new(note, &b);

	for (size_t i = 0; i < n; i += chunk)
		input_feed(in, text + i, n - i < chunk ? n - i : chunk);
	input_finish(in);
	input_free(in);
	return buf_take(&b);
}

static void check(const char *text, const char *want)
{
	size_t n = strlen(text);

	for (size_t chunk = 1; chunk <= n + 1; chunk = chunk < 8       ? chunk + 1
						       : n + 1 > chunk ? n + 1
								       : n + 2) {
		_cleanup_free_ char *got = lines_of(text, n, chunk);

		assert_string_equal(got, want);
	}
}

static void test_ends(void **state)
{
	(void)state;
	check("", "");
	check("a\nb\n", "1 <a>\n2 <b>\n");
	check("a\r\nb\r\r\n", "1 <a>\n2 <b>\n");
	check("a\nb", "1 <a>\n2 open <b>\n");
	check("\n\na\n", "1 <>\n2 <>\n3 <a>\n");
	check("\xef\xbb\xbf"
	      "a\n",
	      "1 <a>\n");
	check("\xef\xbb\xbf", "1 open <>\n");
}

static void test_redraw(void **state)
{
	(void)state;
	check("\r 1%\r 2%{x}\nb\n", "1 redrawn < 1%>\n1 < 2%{x}>\n2 <b>\n");
	check("\r 1%\r        \r 2%", "1 redrawn < 1%>\n1 open < 2%>\n");
	check("a\rb\r", "1 redrawn <a>\n1 <b>\n");
	check("a\r\rb\n", "1 redrawn <a>\n1 <b>\n");
}

static void test_dirt(void **state)
{
	_cleanup_free_ char *got = NULL;

	(void)state;
	check("\x1b[31mstep:  1  \x1b[39m\n", "1 <step:  1  >\n");
	check("\x1b[31;20m[rank1]:[W x\x1b[0m\n", "1 r1 <[W x>\n");
	check("\x1b]0;title\x07"
	      "a\x1b]8;;u\x1b\\b\x1b(Bc\n",
	      "1 <abc>\n");
	check("[36mstep[0;1m: 1 [15m] [12] [m\n", "1 <step: 1 [15m] [12] [m>\n");
	check("a\x1b[3", "1 open <a>\n");
	check("a\x1b", "1 open <a>\n");
	check("\xff\xfe x \xe2\x96\x88 \xc0\xaf \xed\xa0\x80 \xe2\x96\n",
	      "1 <?? x \xe2\x96\x88 ?? ??? ?"
	      "?>\n");
	check("a\tb\x01\x08\x7f"
	      "c\n",
	      "1 <a\tbc>\n");
	got = lines_of("a\0\0b\n\0", 6, 3);
	assert_string_equal(got, "1 <ab>\n2 open <>\n");
}

static void test_prefixes(void **state)
{
	(void)state;
	check("0: x\n 3: y\n12:\n12:34:56 z\n", "1 r0 <x>\n2 r3 <y>\n3 r12 <>\n4 <12:34:56 z>\n");
	check("1:  iteration 5\n", "1 r1 < iteration 5>\n");
	check("[1,7]<stdout>:  8\n[1,7]<stderr>:e\n[2, 12000] loss: 1\n",
	      "1 r7 <  8>\n2 r7 <e>\n3 <[2, 12000] loss: 1>\n");
	check("[rank3]:[titan] x\n[default5]: x\n[rank]: x\n",
	      "1 r3 <[titan] x>\n2 l5 < x>\n3 <[rank]: x>\n");
	check("worker-0: a\nnode-17: b\nnode3.ib: c\nvm-07-14: d\n",
	      "1 @worker-0 <a>\n2 @node-17 <b>\n3 @node3.ib <c>\n4 @vm-07-14 <d>\n");
	check("ip-10-0-3-17: a\nip6tnl0: 640\n", "1 @ip-10-0-3-17 <a>\n2 <ip6tnl0: 640>\n");
	check("epoch-1: a\nnodes: 4\neth0: 5\nnode-01:38:38 [0] NCCL INFO x\nloss: 2\n",
	      "1 <epoch-1: a>\n2 <nodes: 4>\n3 <eth0: 5>\n4 <node-01:38:38 [0] NCCL INFO x>\n"
	      "5 <loss: 2>\n");
	check("(main, pid=4112) a\n(worker1, rank=1, pid=7, ip=10.0.0.2) b\n(5, 6) c\n",
	      "1 <a>\n2 r1 @10.0.0.2 <b>\n3 <(5, 6) c>\n");
	check("trainer-1  | a\nstep     0 | loss 9\nx 1 | y\n",
	      "1 @trainer-1 <a>\n2 <step     0 | loss 9>\n3 <x 1 | y>\n");
	check("1234.5s\t17\ta\n", "1 <a>\n");
	check("[pod/trainer-3/pytorch] a\n[pod/x] b\n", "1 @trainer-3 <a>\n2 <[pod/x] b>\n");
	check("2026-11-28T02:14:00.123456789Z 3: a\n2026-11-28T02:14:00.123456Z b\n"
	      "2026-11-28T02:14:00.1234567Z c\n2026-11-28T02:14:00Z d\n",
	      "1 r3 <a>\n2 <2026-11-28T02:14:00.123456Z b>\n3 <c>\n4 <2026-11-28T02:14:00Z d>\n");
	check("[prterun-node07-4711@1,12]<stdout>: a\n[prterun-x] b\n",
	      "1 r12 < a>\n2 <[prterun-x] b>\n");
	check("worker-1: 4: [rank9]: x\n", "1 r9 @worker-1 < x>\n");
	check("0: 1: 2: 3: 4: 5: 6: x\n", "1 r5 <6: x>\n");
}

static void test_long_line(void **state)
{
	size_t n = INPUT_LINE_MAX + 100;
	struct buf b = {0};
	_cleanup_free_ char *got = NULL;

	(void)state;
	for (size_t i = 0; i < n; i++)
		buf_char(&b, 'x');
	buf_str(&b, "\nnext\n");
	got = lines_of(b.data, b.len, 1000);
	buf_free(&b);
	assert_int_equal(strlen(got), strlen("1 cut <>\n2 <next>\n") + INPUT_LINE_MAX);
	assert_non_null(strstr(got, "2 <next>"));
}

static bool has_star(void *ctx, struct span line)
{
	(void)ctx;
	return span_has(line, "*");
}

/* What is not wanted counts, and is asked for clean and with its prefix, in any chunk. */
static void test_filter(void **state)
{
	static const char text[] = "0: first *\nplain\n1: a *\n\x1b[31mred\x1b[0m\n2: b\x1b[1m*\n"
				   "\nbar\rbar *\r\nfive * of \xff\nno\nlast *";

	(void)state;
	for (size_t chunk = 1; chunk <= sizeof(text); chunk++) {
		struct buf b = {0};
		struct input *in = input_new(note, &b);

		input_filter(in, has_star);
		for (size_t i = 0; i < sizeof(text) - 1; i += chunk)
			input_feed(in, text + i,
				   sizeof(text) - 1 - i < chunk ? sizeof(text) - 1 - i : chunk);
		input_finish(in);
		assert_int_equal(input_lines(in), 10);
		input_free(in);
		assert_string_equal(b.data, "1 r0 <first *>\n3 r1 <a *>\n5 r2 <b*>\n7 <bar *>\n"
					    "8 <five * of ?>\n10 open <last *>\n");
		buf_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),      cmocka_unit_test(test_redraw),
		cmocka_unit_test(test_dirt),      cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_long_line), cmocka_unit_test(test_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
