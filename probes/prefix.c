/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The prefixes that launchers put before each line: input_prefix() of input.h. Each matcher returns
 * the bytes that it takes, 0 if its prefix is not there; none may take data, so each is as narrow
 * as the launcher's own format. */
#include <string.h>

#include "orchestrator/base/mem.h"
#include "probes/input.h"

/* More nesting than this is data that looks like prefixes. */
enum { PREFIX_NEST_MAX = 6, RANK_DIGITS_MAX = 7 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool is_host_byte(char c)
{
	static const bool are[UINT8_MAX + 1] = {['0' ... '9'] = true, ['a' ... 'z'] = true,
						['A' ... 'Z'] = true, ['-'] = true,
						['.'] = true,         ['_'] = true};

	return are[(unsigned char)c];
}

static bool has(struct span t, size_t at, const char *word)
{
	size_t n = strlen(word);

	return t.n >= at + n && memcmp(t.s + at, word, n) == 0;
}

/* Digits at i: their number; *value is theirs. */
static size_t digits(struct span t, size_t i, int *value)
{
	size_t n = 0;

	for (*value = 0; i + n < t.n && n < RANK_DIGITS_MAX && is_digit(t.s[i + n]); n++)
		*value = *value * 10 + (t.s[i + n] - '0');
	return n;
}

static void keep_host(struct input_origin *o, const char *s, size_t n)
{
	n = n < INPUT_HOST_MAX - 1 ? n : INPUT_HOST_MAX - 1;
	memcpy(o->host, s, n);
	o->host[n] = '\0';
}

/* srun -l: the task number, right-aligned, ": " (a blank line is "3:" or "3: "). */
static size_t srun_label(struct span t, struct input_origin *o)
{
	size_t i = 0, n;
	int rank;

	while (i < t.n && i < RANK_DIGITS_MAX && t.s[i] == ' ')
		i++;
	n = digits(t, i, &rank);
	if (!n || !has(t, i + n, ":"))
		return 0;
	i += n + 1;
	if (i < t.n && t.s[i] != ' ')
		return 0;
	o->rank = rank;
	return i < t.n ? i + 1 : i;
}

/* mpirun --tag-output: "[1,0]<stdout>:"; the second number is the rank. Open MPI 5 with
 * --output tag-detailed has its own name and the host before them: "[prterun-node07-4711@1,0]". */
static size_t mpirun_tag(struct span t, struct input_origin *o)
{
	static const char *const streams[] = {"]<stdout>:", "]<stderr>:", "]<stddiag>:"};
	size_t i = 1, n;
	int job, rank;

	if (!has(t, 0, "["))
		return 0;
	if (has(t, i, "prterun-")) {
		while (i < t.n && i < INPUT_HOST_MAX && is_host_byte(t.s[i]))
			i++;
		i += has(t, i, "@");
	}
	if (!(n = digits(t, i, &job)) || !has(t, i + n, ","))
		return 0;
	i += n + 1;
	n = digits(t, i, &rank);
	for (size_t k = 0; n && k < ARRAY_LEN(streams); k++)
		if (has(t, i + n, streams[k])) {
			o->rank = rank;
			return i + n + strlen(streams[k]);
		}
	return 0;
}

/* torch "[rank3]:" is global, torchrun's "[default3]:" counts within the node. */
static size_t torch_tag(struct span t, struct input_origin *o)
{
	bool global = has(t, 0, "[rank");
	size_t i = global ? 5 : 8, n;
	int rank;

	if (!global && !has(t, 0, "[default"))
		return 0;
	n = digits(t, i, &rank);
	if (!n || !has(t, i + n, "]:"))
		return 0;
	if (global)
		o->rank = rank;
	else
		o->local_rank = rank;
	return i + n + 2;
}

/* torchrun with the template that its own documents name: "[trainer3|1]:", the role with the rank,
 * and the rank within the node. */
static size_t role_tag(struct span t, struct input_origin *o)
{
	size_t i = 1, n;
	int rank, local;

	while (i < t.n && i <= INPUT_HOST_MAX && t.s[i] >= 'a' && t.s[i] <= 'z')
		i++;
	if (i == 1 || !(n = digits(t, i, &rank)) || !has(t, i + n, "|"))
		return 0;
	i += n + 1;
	if (!(n = digits(t, i, &local)) || !has(t, i + n, "]:"))
		return 0;
	o->rank = rank;
	o->local_rank = local;
	return i + n + 2;
}

/* A host name that is one beyond doubt: a known stem and a number ("epoch-1: " is data). Stems of
 * interfaces (ip6tnl0) need their dash. */
static bool is_host_name(struct span t, size_t n)
{
	static const char *const stems[] = {"worker", "node", "vm",     "host",
					    "gpu",    "ip-",  "compute"};

	for (size_t i = 0; i < ARRAY_LEN(stems); i++) {
		size_t k = strlen(stems[i]);

		if (n > k && has(t, 0, stems[i]) &&
		    (is_digit(t.s[k]) || (t.s[k] == '-' && n > k + 1 && is_digit(t.s[k + 1]))))
			return true;
	}
	return false;
}

/* pdsh and DeepSpeed: "worker-0: ", "node-17: ", "node3.cluster: ", "vm-07-14: ". */
static size_t pdsh_host(struct span t, size_t n, struct input_origin *o)
{
	if (!has(t, n, ": ") || !is_host_name(t, n))
		return 0;
	keep_host(o, t.s, n);
	return n + 2;
}

/* Ray and SkyPilot: "(pretraining, pid=4112) ", "(worker1, rank=1, pid=7, ip=10.0.0.2) ". */
static size_t ray_tag(struct span t, struct input_origin *o)
{
	const char *end = t.n && t.s[0] == '(' ? memchr(t.s, ')', t.n) : NULL;
	struct span in, v;
	double rank;

	if (!end)
		return 0;
	in = (struct span){t.s + 1, (size_t)(end - t.s) - 1};
	if (in.n > 128 || !span_has(in, "pid=") || !has(t, in.n + 2, " "))
		return 0;
	v = span_after(in, "rank=");
	if (v.s && num_scan(v, &rank, NULL) == NUM_FINITE && rank >= 0 && rank < 1e7)
		o->rank = (int)rank;
	v = span_after(in, "ip=");
	if (v.s && span_next(&v, ",", &in))
		keep_host(o, in.s, in.n);
	return (size_t)(end - t.s) + 2;
}

/* docker compose: "trainer-1  | ", "trainer_1  | ". */
static size_t compose_service(struct span t, size_t n, struct input_origin *o)
{
	size_t i, d = 0;

	while (d < n && is_digit(t.s[n - 1 - d]))
		d++;
	if (!d || d + 1 >= n || (t.s[n - 1 - d] != '-' && t.s[n - 1 - d] != '_'))
		return 0;
	for (i = n; i < t.n && t.s[i] == ' '; i++)
		;
	if (i == n || !has(t, i, "| "))
		return 0;
	keep_host(o, t.s, n);
	return i + 2;
}

/* Kaggle: "1234.5s<TAB>17<TAB>". */
static size_t kaggle_stamp(struct span t, struct input_origin *o)
{
	size_t i, n;
	int unused;

	(void)o;
	if (!(n = digits(t, 0, &unused)) || !has(t, n, "."))
		return 0;
	i = n + 1;
	if (!(n = digits(t, i, &unused)) || !has(t, i + n, "s\t"))
		return 0;
	i += n + 2;
	if (!(n = digits(t, i, &unused)) || !has(t, i + n, "\t"))
		return 0;
	return i + n + 1;
}

/* kubectl logs --prefix: "[pod/trainer-3/pytorch] "; the pod is what a host is elsewhere. */
static size_t pod_tag(struct span t, struct input_origin *o)
{
	size_t i = 5, n = 0, end;

	if (!has(t, 0, "[pod/"))
		return 0;
	while (i + n < t.n && is_host_byte(t.s[i + n]))
		n++;
	end = i + n;
	if (!n || !has(t, end, "/"))
		return 0;
	for (end++; end < t.n && is_host_byte(t.s[end]);)
		end++;
	if (!has(t, end, "] "))
		return 0;
	keep_host(o, t.s + i, n);
	return end + 2;
}

/* docker logs -t, kubectl logs --timestamps, CI systems: "2026-11-28T02:14:00.123456789Z ". Only
 * with nine or seven digits of a second: a program's own dates have six at most. */
static size_t log_stamp(struct span t, struct input_origin *o)
{
	static const char shape[] = "dddd-dd-ddTdd:dd:dd.";
	size_t i = 0, n = 0;

	(void)o;
	for (; i < sizeof(shape) - 1; i++)
		if (i >= t.n || (shape[i] == 'd' ? !is_digit(t.s[i]) : t.s[i] != shape[i]))
			return 0;
	while (i + n < t.n && is_digit(t.s[i + n]))
		n++;
	return (n == 9 || n == 7) && has(t, i + n, "Z ") ? i + n + 2 : 0;
}

static size_t one_prefix(struct span t, struct input_origin *o)
{
	size_t n = 0;

	if (!t.n)
		return 0;
	if (t.s[0] == '[')
		return (n = torch_tag(t, o)) || (n = role_tag(t, o)) || (n = pod_tag(t, o))
			       ? n
			       : mpirun_tag(t, o);
	if (t.s[0] == '(')
		return ray_tag(t, o);
	if ((t.s[0] == ' ' || is_digit(t.s[0])) && (n = srun_label(t, o)))
		return n;
	if (is_digit(t.s[0]) && ((n = kaggle_stamp(t, o)) || (n = log_stamp(t, o))))
		return n;
	for (n = 0; n < t.n && n < INPUT_HOST_MAX && is_host_byte(t.s[n]);)
		n++;
	if (!n || n == t.n)
		return 0;
	if (t.s[n] == ':')
		return pdsh_host(t, n, o);
	return t.s[n] == ' ' && is_digit(t.s[n - 1]) ? compose_service(t, n, o) : 0;
}

size_t input_prefix(struct span t, struct input_origin *o)
{
	size_t all = 0, n;

	for (int i = 0; i < PREFIX_NEST_MAX; i++) {
		n = one_prefix(t, o);
		if (!n)
			break;
		all += n;
		t.s += n;
		t.n -= n;
	}
	return all;
}
