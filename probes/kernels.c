/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernels by name: the same name comes a million times, so it is looked at once. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "orchestrator/base/mem.h"
#include "probes/trace.h"

enum {
	SLOTS = 1 << 14, /* of the hash table; a program has some hundreds of kernels */
	NAMES_MAX = SLOTS / 2,
	NAME_MAX_BYTES = 63,
};

struct kernel {
	uint64_t hash; /* of its whole name */
	size_t short_name;
	enum timeline_gpu kind;
};

/* What is shown: all variants of a template together. */
struct top {
	char name[NAME_MAX_BYTES + 1];
	uint64_t hash;
	enum timeline_gpu kind;
	int64_t calls, ns;
};

struct kernels {
	struct kernel slot[SLOTS]; /* hash 0: free */
	size_t n;
	struct top *top;
	size_t n_top, cap_top;
	struct top other; /* beyond NAMES_MAX */
};

/* Kernels that only move data between ranks: NCCL's (ncclAllReduceRingLLKernel_sum_f32 of 2.7, now
 * ncclDevKernel_AllReduce_..), and those of libraries with other names. Words of operators
 * ("all_reduce") would not do: a compiler puts them into the names of what it fuses. */
static const char *const comm_words[] = {
	"nccl",
	"rccl",
	"mscclKernel",
	"mscclpp",
	"nvshmem",
	"rocshmem",
	"deep_ep::",
	"symm_mem",
	"multimem_",
	"one_shot_all_reduce",
	"two_shot_all_reduce",
	"oneShotAllReduce",
	"twoShotAllReduce",
	"allreduce_fusion_kernel",
	"cross_device_reduce",
	"quickreduce::",
	"userbuffers_",
};

struct kernels *kernels_new(void)
{
	return xcalloc(1, sizeof(struct kernels));
}

void kernels_free(struct kernels *k)
{
	if (!k)
		return;
	free(k->top);
	free(k);
}

static enum timeline_gpu kind_of(struct span name)
{
	for (size_t i = 0; i < ARRAY_LEN(comm_words); i++)
		if (span_has(name, comm_words[i]))
			return TIMELINE_COMM;
	return TIMELINE_COMPUTE;
}

static struct span cut_at(struct span t, const char *stop)
{
	for (size_t i = 0; i < t.n; i++)
		if (strchr(stop, t.s[i]))
			return (struct span){t.s, i};
	return t;
}

/* Bytes of an anonymous namespace at t, as c++filt and nsys write it. */
static size_t anonymous(struct span t)
{
	static const char *const words[] = {"(anonymous namespace)::", "<unnamed>::"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (t.n >= strlen(words[i]) && memcmp(t.s, words[i], strlen(words[i])) == 0)
			return strlen(words[i]);
	return 0;
}

/* "void at::native::(anonymous namespace)::f<4, g>(int)" is at::native::f; cutlass calls all of its
 * kernels Kernel, and names them in the template's argument. */
static void shorten(struct span t, char out[NAME_MAX_BYTES + 1])
{
	struct span arg;
	size_t n = 0, skip;

	if (t.n > 5 && memcmp(t.s, "void ", 5) == 0)
		t = (struct span){t.s + 5, t.n - 5};
	arg = span_after(t, "cutlass::Kernel<");
	if (!arg.s)
		arg = span_after(t, "cutlass::Kernel2<");
	if (arg.s)
		t = arg;
	do {
		struct span head;
		size_t k;

		skip = anonymous(t);
		t = (struct span){t.s + skip, t.n - skip};
		head = cut_at(t, arg.s ? ",>" : "<(");
		k = head.n < NAME_MAX_BYTES - n ? head.n : NAME_MAX_BYTES - n;
		memcpy(out + n, head.s, k);
		n += k;
		t = (struct span){t.s + head.n, t.n - head.n};
	} while (anonymous(t));
	out[n] = '\0';
	out[input_clean(out, n)] = '\0';
}

static size_t top_of(struct kernels *k, struct span name, enum timeline_gpu kind)
{
	struct top t = {.kind = kind};

	shorten(name, t.name);
	t.hash = XXH3_64bits(t.name, strlen(t.name));
	for (size_t i = 0; i < k->n_top; i++)
		if (k->top[i].hash == t.hash && k->top[i].kind == kind)
			return i;
	k->top = xgrow(k->top, k->n_top, &k->cap_top, sizeof(*k->top));
	k->top[k->n_top] = t;
	return k->n_top++;
}

static struct kernel *find(struct kernels *k, struct span name)
{
	uint64_t hash = XXH3_64bits(name.s, name.n) | 1;
	size_t i = hash >> 20 & (SLOTS - 1);

	while (k->slot[i].hash && k->slot[i].hash != hash)
		i = (i + 1) & (SLOTS - 1);
	if (k->slot[i].hash)
		return &k->slot[i];
	if (k->n == NAMES_MAX)
		return NULL;
	k->n++;
	k->slot[i].hash = hash;
	k->slot[i].kind = kind_of(name);
	k->slot[i].short_name = top_of(k, name, k->slot[i].kind);
	return &k->slot[i];
}

static int64_t plus(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

enum timeline_gpu kernels_add_sum(struct kernels *k, struct span name, int64_t calls, int64_t ns)
{
	struct kernel *f = find(k, name);
	struct top *t = f ? &k->top[f->short_name] : &k->other;

	t->calls = plus(t->calls, calls);
	t->ns = plus(t->ns, ns);
	return f ? f->kind : kind_of(name);
}

enum timeline_gpu kernels_add(struct kernels *k, struct span name, int64_t ns)
{
	return kernels_add_sum(k, name, 1, ns);
}

int64_t kernels_ns(const struct kernels *k, enum timeline_gpu kind)
{
	int64_t sum = kind == TIMELINE_COMPUTE ? k->other.ns : 0;

	for (size_t i = 0; i < k->n_top; i++)
		if (k->top[i].kind == kind)
			sum = plus(sum, k->top[i].ns);
	return sum;
}

static int by_time(const void *a, const void *b)
{
	const struct top *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

static const char *class_name(enum timeline_gpu kind)
{
	return kind == TIMELINE_COMM ? "comm" : "compute";
}

static void emit_top(struct emit *o, const struct top *t)
{
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = EMIT_NONE;

	emit_label(&ls, "kernel", span_of(t->name[0] ? t->name : "(no name)"));
	emit_label(&ls, "class", span_of(class_name(t->kind)));
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	emit_value(o, "kernel_time_ms", (double)t->ns / 1e6, &tag);
	emit_value(o, "kernel_count", (double)t->calls, &tag);
}

static void emit_class(struct emit *o, const struct kernels *k, enum timeline_gpu kind)
{
	struct emit_labels ls = {.n = 0};
	struct emit_tag tag = EMIT_NONE;
	int64_t ns = kernels_ns(k, kind);

	if (!ns)
		return;
	emit_label(&ls, "class", span_of(class_name(kind)));
	tag.labels = ls.v;
	tag.n_labels = ls.n;
	emit_value(o, "kernel_time_ms", (double)ns / 1e6, &tag);
}

/* Sorting moves what the slots point to: nothing may be added after this. */
void kernels_emit(struct kernels *k, struct emit *o)
{
	if (k->n_top)
		qsort(k->top, k->n_top, sizeof(*k->top), by_time);
	for (size_t i = 0; i < k->n_top && i < TRACE_TOP; i++)
		emit_top(o, &k->top[i]);
	emit_class(o, k, TIMELINE_COMPUTE);
	emit_class(o, k, TIMELINE_COMM);
}
