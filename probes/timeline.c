/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"

struct gpu {
	int64_t start, end;
	uint32_t key;
	uint32_t kind;
};
_Static_assert(sizeof(struct gpu) == 24, "the bound that timeline.h promises");

struct span_ns {
	int64_t start, end;
};

/* Intervals of the host. Those of DATA have their threads beside them until steps are known. */
struct list {
	struct span_ns *v;
	uint32_t *thread;
	size_t n, cap;
	size_t at; /* where the sweep is */
};

struct timeline {
	struct gpu *gpu;
	size_t n_gpu, cap_gpu;
	struct list host[TIMELINE_HOST_N];
	size_t n_host;
	struct timeline_row *rows;
	uint32_t *row_thread;
	size_t n_rows, cap_rows;
	struct timeline_row sum, whole;
	int64_t count[TIMELINE_GPU_N], bytes[TIMELINE_GPU_N], copy_ns[TIMELINE_GPU_N];
	bool saw[TIMELINE_HOST_N], steps, cut, on_host;
	size_t row_at; /* where the sweep is */
};

struct timeline *timeline_new(void)
{
	return xcalloc(1, sizeof(struct timeline));
}

void timeline_free(struct timeline *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < TIMELINE_HOST_N; i++) {
		free(t->host[i].v);
		free(t->host[i].thread);
	}
	free(t->gpu);
	free(t->rows);
	free(t->row_thread);
	free(t);
}

/* Intervals of broken traces may overlap beyond any clock. */
static int64_t plus(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* -- adding ----------------------------------------------------------------------------------- */

/* Room for one more, by half as much again: what is not used yet is not touched, so that it costs
 * no memory (xgrow would clear it). */
static void *room(void *v, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return v;
	*cap = *cap ? *cap + *cap / 2 : 64;
	return xrealloc(v, *cap, size);
}

void timeline_add_gpu(struct timeline *t, enum timeline_gpu kind, int64_t start_ns, int64_t end_ns,
		      uint32_t key)
{
	if (end_ns < start_ns)
		return;
	if (t->n_gpu == TIMELINE_GPU_MAX) {
		t->cut = true;
		return;
	}
	t->gpu = room(t->gpu, t->n_gpu, &t->cap_gpu, sizeof(*t->gpu));
	t->gpu[t->n_gpu++] = (struct gpu){start_ns, end_ns, key, kind};
	t->count[kind]++;
	t->copy_ns[kind] = plus(t->copy_ns[kind], end_ns - start_ns);
}

void timeline_add_bytes(struct timeline *t, enum timeline_gpu kind, int64_t bytes)
{
	if (bytes > 0)
		t->bytes[kind] = plus(t->bytes[kind], bytes);
}

void timeline_add_host(struct timeline *t, enum timeline_host kind, int64_t start_ns,
		       int64_t end_ns, uint32_t thread)
{
	struct list *l = &t->host[kind];
	size_t cap = l->cap;

	if (end_ns < start_ns)
		return;
	t->saw[kind] = true;
	if (kind == TIMELINE_LAUNCH)
		return;
	if (t->n_host == TIMELINE_HOST_MAX) {
		t->cut = true;
		return;
	}
	l->v = room(l->v, l->n, &l->cap, sizeof(*l->v));
	if (kind == TIMELINE_DATA) {
		l->thread = room(l->thread, l->n, &cap, sizeof(*l->thread));
		l->thread[l->n] = thread;
	}
	l->v[l->n++] = (struct span_ns){start_ns, end_ns};
	t->n_host++;
}

void timeline_add_step(struct timeline *t, int64_t number, int64_t start_ns, int64_t end_ns,
		       uint32_t thread, int64_t line)
{
	size_t cap = t->cap_rows;

	if (end_ns <= start_ns)
		return;
	if (t->n_rows == TIMELINE_STEPS_MAX) {
		t->cut = true;
		return;
	}
	t->rows = room(t->rows, t->n_rows, &t->cap_rows, sizeof(*t->rows));
	t->row_thread = room(t->row_thread, t->n_rows, &cap, sizeof(*t->row_thread));
	t->row_thread[t->n_rows] = thread;
	t->rows[t->n_rows++] = (struct timeline_row){
		.number = number, .line = line, .start_ns = start_ns, .end_ns = end_ns};
}

void timeline_drop_gpu(struct timeline *t)
{
	t->n_gpu = 0;
	memset(t->count, 0, sizeof(t->count));
	memset(t->copy_ns, 0, sizeof(t->copy_ns));
}

void timeline_set_host(struct timeline *t)
{
	t->on_host = true;
}

/* -- order ------------------------------------------------------------------------------------ */

/* Shell sort with Ciura's gaps, continued by 2.25: in place, where qsort would take as much memory
 * again, and fast on what is nearly in order, as traces are. */
static size_t first_gap(size_t n)
{
	static const size_t ciura[] = {1, 4, 10, 23, 57, 132, 301, 701};
	size_t gap = 701;

	if (n > 1577)
		for (gap = 1577; gap * 9 / 4 < n; gap = gap * 9 / 4)
			;
	else
		for (size_t i = 0; i < ARRAY_LEN(ciura) && (i == 0 || ciura[i] < n); i++)
			gap = ciura[i];
	return gap;
}

static size_t next_gap(size_t gap)
{
	static const size_t ciura[] = {701, 301, 132, 57, 23, 10, 4, 1, 0};

	if (gap > 1577)
		return gap * 4 / 9 > 701 ? gap * 4 / 9 : 701;
	for (size_t i = 0; i < ARRAY_LEN(ciura); i++)
		if (ciura[i] < gap)
			return ciura[i];
	return 0;
}

static void sort_gpu(struct gpu *v, size_t n)
{
	for (size_t gap = first_gap(n); gap; gap = next_gap(gap)) {
		for (size_t i = gap; i < n; i++) {
			struct gpu x = v[i];
			size_t j = i;

			for (; j >= gap && v[j - gap].start > x.start; j -= gap)
				v[j] = v[j - gap];
			v[j] = x;
		}
	}
}

static int by_start(const void *a, const void *b)
{
	const struct span_ns *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorted, and what overlaps or touches is one. */
static void merge(struct list *l)
{
	size_t n = 0;

	if (!l->n)
		return;
	qsort(l->v, l->n, sizeof(*l->v), by_start);
	for (size_t i = 1; i < l->n; i++) {
		if (l->v[i].start > l->v[n].end)
			l->v[++n] = l->v[i];
		else if (l->v[i].end > l->v[n].end)
			l->v[n].end = l->v[i].end;
	}
	l->n = n + 1;
}

/* Length of what l, merged, has inside [a, b). Calls must not go back in time. */
static int64_t overlap(struct list *l, int64_t a, int64_t b)
{
	int64_t sum = 0;

	while (l->at < l->n && l->v[l->at].end <= a)
		l->at++;
	for (size_t i = l->at; i < l->n && l->v[i].start < b; i++) {
		int64_t from = l->v[i].start > a ? l->v[i].start : a;
		int64_t to = l->v[i].end < b ? l->v[i].end : b;

		sum += to - from;
	}
	return sum;
}

/* a without what is in b; both merged. */
static void subtract(struct list *a, const struct list *b)
{
	struct list out = {0};
	size_t k = 0;

	if (!a->n || !b->n)
		return;
	for (size_t i = 0; i < a->n; i++) {
		int64_t from = a->v[i].start;

		while (k < b->n && b->v[k].end <= from)
			k++;
		for (size_t j = k; j < b->n && b->v[j].start < a->v[i].end; j++) {
			out.v = room(out.v, out.n, &out.cap, sizeof(*out.v));
			if (b->v[j].start > from)
				out.v[out.n++] = (struct span_ns){from, b->v[j].start};
			from = b->v[j].end;
		}
		out.v = room(out.v, out.n, &out.cap, sizeof(*out.v));
		if (from < a->v[i].end)
			out.v[out.n++] = (struct span_ns){from, a->v[i].end};
	}
	free(a->v);
	*a = out;
}

/* Only the thread that makes the steps waits for data: a prefetching one is meant to. */
static void keep_thread(struct list *l, uint32_t thread)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->thread[i] == thread)
			l->v[n++] = l->v[i];
	l->n = n;
}

/* -- steps ------------------------------------------------------------------------------------ */

static int by_row(const void *a, const void *b)
{
	const struct timeline_row *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->end_ns > y->end_ns ? -1 : x->end_ns < y->end_ns; /* the longer first */
}

/* The same step told twice (another thread, another domain), or one inside of another. */
static bool is_repeat(const struct timeline_row *last, const struct timeline_row *r)
{
	return r->end_ns <= last->end_ns ||
	       (r->number >= 0 && r->number == last->number && r->start_ns < last->end_ns);
}

static void order_steps(struct timeline *t)
{
	size_t n = 0;

	qsort(t->rows, t->n_rows, sizeof(*t->rows), by_row);
	for (size_t i = 0; i < t->n_rows; i++) {
		struct timeline_row *last = n ? &t->rows[n - 1] : NULL, r = t->rows[i];

		if (last && is_repeat(last, &r)) {
			if (r.end_ns > last->end_ns)
				last->end_ns = r.end_ns;
			continue;
		}
		if (last && last->end_ns > r.start_ns)
			last->end_ns = r.start_ns;
		if (r.number < 0)
			r.number = (int64_t)n;
		t->rows[n++] = r;
	}
	t->n_rows = n;
}

/* The window of a trace that marks no steps: what the device did, else what the host did. */
static void make_row(struct timeline *t, int64_t first, int64_t last)
{
	if (last <= first)
		return;
	timeline_add_step(t, -1, first, last, 0, 0);
	if (t->n_rows)
		t->rows[0].number = -1;
}

/* -- the sweep -------------------------------------------------------------------------------- */

/* The device did what the bits of mask say for ns. */
static void add_busy(struct timeline_row *r, unsigned mask, int64_t ns)
{
	bool computes = mask & 1u << TIMELINE_COMPUTE, talks = mask & 1u << TIMELINE_COMM;

	r->compute_ns += computes ? ns : 0;
	r->comm_ns += talks ? ns : 0;
	r->comm_exposed_ns += talks && !computes ? ns : 0;
	r->copy_exposed_ns += !talks && !computes ? ns : 0;
	r->pageable_ns += mask & 1u << TIMELINE_PAGEABLE ? ns : 0;
	r->pinned_ns += mask & 1u << TIMELINE_PINNED ? ns : 0;
}

/* An idle piece [a, b) of a step; `synced`: the host was waiting when the device ran dry. */
static void add_idle(struct timeline *t, struct timeline_row *r, int64_t a, int64_t b, bool synced)
{
	int64_t data = overlap(&t->host[TIMELINE_DATA], a, b);
	int64_t alloc = overlap(&t->host[TIMELINE_ALLOC], a, b), rest = b - a - data - alloc;

	r->idle_ns += b - a;
	r->data_gap_ns += data;
	r->alloc_gap_ns += alloc;
	if (synced)
		r->sync_gap_ns += rest;
	else
		r->launch_gap_ns += rest;
}

/* A synchronising call was under way at that time. */
static bool is_synced(struct timeline *t, int64_t at)
{
	struct list *l = &t->host[TIMELINE_SYNC];

	while (l->at < l->n && l->v[l->at].end < at)
		l->at++;
	return l->at < l->n && l->v[l->at].start <= at;
}

/* The device was in one state from a to b: give each step its part. */
static void account(struct timeline *t, unsigned mask, int64_t a, int64_t b)
{
	bool synced = !mask && is_synced(t, a);

	while (t->row_at < t->n_rows && t->rows[t->row_at].end_ns <= a)
		t->row_at++;
	for (size_t i = t->row_at; i < t->n_rows && t->rows[i].start_ns < b; i++) {
		struct timeline_row *r = &t->rows[i];
		int64_t from = r->start_ns > a ? r->start_ns : a;
		int64_t to = r->end_ns < b ? r->end_ns : b;

		if (mask)
			add_busy(r, mask, to - from);
		else
			add_idle(t, r, from, to, synced);
	}
}

static unsigned active(const int64_t end[TIMELINE_GPU_N], int64_t now, int64_t *next)
{
	unsigned mask = 0;

	for (size_t k = 0; k < TIMELINE_GPU_N; k++) {
		if (end[k] <= now)
			continue;
		mask |= 1u << k;
		if (end[k] < *next)
			*next = end[k];
	}
	return mask;
}

/* From `now` to `to`, with nothing new begun between them. */
static void advance(struct timeline *t, const int64_t end[TIMELINE_GPU_N], int64_t now, int64_t to)
{
	while (now < to) {
		int64_t next = to;
		unsigned mask = active(end, now, &next);

		if (mask)
			add_busy(&t->whole, mask, next - now);
		else
			t->whole.idle_ns += next - now;
		account(t, mask, now, next);
		now = next;
	}
}

static void count_kernel(struct timeline *t, const struct gpu *g)
{
	bool is_short = g->end - g->start < TIMELINE_SHORT_NS;
	size_t i = t->row_at;

	if (g->kind != TIMELINE_COMPUTE && g->kind != TIMELINE_COMM)
		return;
	t->whole.kernels++;
	t->whole.short_kernels += is_short;
	while (i < t->n_rows && t->rows[i].end_ns <= g->start)
		i++;
	if (i == t->n_rows || t->rows[i].start_ns > g->start)
		return;
	t->rows[i].kernels++;
	t->rows[i].short_kernels += is_short;
}

static void sweep(struct timeline *t)
{
	int64_t end[TIMELINE_GPU_N], now = t->whole.start_ns;

	for (size_t k = 0; k < TIMELINE_GPU_N; k++)
		end[k] = INT64_MIN;
	if (t->n_rows && t->rows[0].start_ns < now)
		account(t, 0, t->rows[0].start_ns, now);
	for (size_t i = 0; i < t->n_gpu; i++) {
		const struct gpu *g = &t->gpu[i];

		advance(t, end, now, g->start);
		now = g->start;
		count_kernel(t, g);
		if (g->end > end[g->kind])
			end[g->kind] = g->end;
	}
	advance(t, end, now, t->whole.end_ns);
	if (t->n_rows && t->rows[t->n_rows - 1].end_ns > t->whole.end_ns)
		account(t, 0, t->whole.end_ns, t->rows[t->n_rows - 1].end_ns);
}

/* -- finish ----------------------------------------------------------------------------------- */

static void find_whole(struct timeline *t)
{
	struct timeline_row *w = &t->whole;

	*w = (struct timeline_row){.number = -1};
	if (!t->n_gpu)
		return;
	w->start_ns = w->end_ns = t->gpu[0].start;
	for (size_t i = 0; i < t->n_gpu; i++)
		if (t->gpu[i].end > w->end_ns)
			w->end_ns = t->gpu[i].end;
	w->wall_ns = w->end_ns - w->start_ns;
}

static void find_rows(struct timeline *t)
{
	const struct list *data = &t->host[TIMELINE_DATA];

	t->steps = t->n_rows > 0;
	if (t->steps) {
		uint32_t thread = t->row_thread[0];

		order_steps(t);
		keep_thread(&t->host[TIMELINE_DATA], thread);
	} else if (t->n_gpu) {
		make_row(t, t->whole.start_ns, t->whole.end_ns);
	} else if (data->n) {
		int64_t first = data->v[0].start, last = data->v[0].end;

		for (size_t i = 1; i < data->n; i++) {
			first = data->v[i].start < first ? data->v[i].start : first;
			last = data->v[i].end > last ? data->v[i].end : last;
		}
		make_row(t, first, last);
	}
}

static void count_allocs(struct timeline *t)
{
	struct list *l = &t->host[TIMELINE_ALLOC];
	size_t k = 0;

	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), by_start);
	for (size_t i = 0; i < t->n_rows; i++) {
		while (k < l->n && l->v[k].start < t->rows[i].start_ns)
			k++;
		for (; k < l->n && l->v[k].start < t->rows[i].end_ns; k++) {
			t->rows[i].alloc_calls++;
			t->rows[i].alloc_ns = plus(t->rows[i].alloc_ns,
						   l->v[k].end - l->v[k].start);
		}
	}
}

static void add_row(struct timeline_row *sum, const struct timeline_row *r)
{
	sum->wall_ns += r->wall_ns;
	sum->compute_ns += r->compute_ns;
	sum->comm_ns += r->comm_ns;
	sum->comm_exposed_ns += r->comm_exposed_ns;
	sum->copy_exposed_ns += r->copy_exposed_ns;
	sum->idle_ns += r->idle_ns;
	sum->pageable_ns += r->pageable_ns;
	sum->pinned_ns += r->pinned_ns;
	sum->data_gap_ns += r->data_gap_ns;
	sum->alloc_gap_ns += r->alloc_gap_ns;
	sum->sync_gap_ns += r->sync_gap_ns;
	sum->launch_gap_ns += r->launch_gap_ns;
	sum->data_ns += r->data_ns;
	sum->optim_ns += r->optim_ns;
	sum->kernels += r->kernels;
	sum->short_kernels += r->short_kernels;
	sum->alloc_calls += r->alloc_calls;
	sum->alloc_ns = plus(sum->alloc_ns, r->alloc_ns);
}

/* Operators that prepare a batch are not what the step computes. Both are sorted. */
static void drop_loading(struct timeline *t, const struct list *data)
{
	size_t n = 0, k = 0;

	for (size_t i = 0; i < t->n_gpu; i++) {
		const struct gpu *g = &t->gpu[i];

		while (k < data->n && data->v[k].end <= g->start)
			k++;
		if (g->kind == TIMELINE_COMPUTE && t->n_rows && g->key == t->row_thread[0] &&
		    k < data->n && data->v[k].start <= g->start)
			continue;
		t->gpu[n++] = *g;
	}
	t->n_gpu = n;
}

void timeline_finish(struct timeline *t)
{
	struct list *data = &t->host[TIMELINE_DATA], *optim = &t->host[TIMELINE_OPTIM];

	sort_gpu(t->gpu, t->n_gpu);
	find_whole(t);
	find_rows(t);
	count_allocs(t);
	merge(data);
	merge(&t->host[TIMELINE_ALLOC]);
	merge(&t->host[TIMELINE_SYNC]);
	merge(optim);
	if (t->on_host)
		drop_loading(t, data);
	subtract(&t->host[TIMELINE_ALLOC], data);
	if (t->n_gpu)
		sweep(t);
	data->at = 0;
	t->sum = (struct timeline_row){.number = -1};
	for (size_t i = 0; i < t->n_rows; i++) {
		struct timeline_row *r = &t->rows[i];

		r->wall_ns = r->end_ns - r->start_ns;
		r->data_ns = overlap(data, r->start_ns, r->end_ns);
		r->optim_ns = overlap(optim, r->start_ns, r->end_ns);
		add_row(&t->sum, r);
	}
}

/* -- asking ----------------------------------------------------------------------------------- */

const struct timeline_row *timeline_rows(const struct timeline *t, size_t *n)
{
	*n = t->n_rows;
	return t->rows;
}

bool timeline_on_host(const struct timeline *t)
{
	return t->on_host;
}

bool timeline_has_steps(const struct timeline *t)
{
	return t->steps;
}

const struct timeline_row *timeline_sum(const struct timeline *t)
{
	return &t->sum;
}

const struct timeline_row *timeline_whole(const struct timeline *t)
{
	return &t->whole;
}

int64_t timeline_gpu_count(const struct timeline *t, enum timeline_gpu kind)
{
	return t->count[kind];
}

int64_t timeline_bytes(const struct timeline *t, enum timeline_gpu kind)
{
	return t->bytes[kind];
}

int64_t timeline_copy_ns(const struct timeline *t, enum timeline_gpu kind)
{
	return t->copy_ns[kind];
}

bool timeline_saw(const struct timeline *t, enum timeline_host kind)
{
	return t->saw[kind];
}

bool timeline_saw_calls(const struct timeline *t)
{
	return t->saw[TIMELINE_LAUNCH] || t->saw[TIMELINE_SYNC] || t->saw[TIMELINE_ALLOC];
}

bool timeline_cut(const struct timeline *t)
{
	return t->cut;
}

/* -- over ranks ------------------------------------------------------------------------------- */

/* One collective of one rank: what, in which step, and when, so that k-th meets k-th. */
struct coll_at {
	int64_t step, start, ns;
	uint32_t key;
};

struct coll_list {
	struct coll_at *v;
	size_t n, at;
};

static int by_coll(const void *a, const void *b)
{
	const struct coll_at *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static struct coll_list collectives(const struct timeline *t)
{
	size_t n = (size_t)t->count[TIMELINE_COMM], row = 0;
	struct coll_list l = {.v = xcalloc(n + 1, sizeof(*l.v))};

	for (size_t i = 0; i < t->n_gpu; i++) {
		const struct gpu *g = &t->gpu[i];

		if (g->kind != TIMELINE_COMM)
			continue;
		while (row < t->n_rows && t->rows[row].end_ns <= g->start)
			row++;
		if (row == t->n_rows)
			break;
		if (t->rows[row].start_ns <= g->start)
			l.v[l.n++] = (struct coll_at){t->rows[row].number, g->start,
						      g->end - g->start, g->key};
	}
	qsort(l.v, l.n, sizeof(*l.v), by_coll);
	return l;
}

static bool before(const struct coll_at *a, const struct coll_at *b)
{
	return a->step != b->step ? a->step < b->step : a->key < b->key;
}

/* How many from l->at on have the step and key of `want`; skips what comes before it. */
static size_t run_of(struct coll_list *l, const struct coll_at *want)
{
	size_t k = 0;

	while (l->at < l->n && before(&l->v[l->at], want))
		l->at++;
	while (l->at + k < l->n && !before(want, &l->v[l->at + k]))
		k++;
	return k;
}

/* The k collectives at the place of each rank are the same ones. */
static void add_waits(const struct coll_list *l, size_t n, size_t k, struct timeline_wait *out)
{
	for (size_t i = 0; i < k; i++) {
		int64_t least = INT64_MAX;

		for (size_t r = 0; r < n; r++) {
			int64_t ns = l[r].v[l[r].at + i].ns;

			least = ns < least ? ns : least;
		}
		for (size_t r = 0; r < n; r++) {
			out[r].matched++;
			out[r].wait_ns = plus(out[r].wait_ns, l[r].v[l[r].at + i].ns - least);
		}
	}
}

void timeline_compare(struct timeline *const *ranks, size_t n, struct timeline_wait *out)
{
	struct coll_list *l = xcalloc(n + 1, sizeof(*l));

	for (size_t r = 0; r < n; r++) {
		l[r] = collectives(ranks[r]);
		out[r] = (struct timeline_wait){.wall_ns = ranks[r]->sum.wall_ns};
	}
	while (n && l[0].at < l[0].n) {
		struct coll_at want = l[0].v[l[0].at];
		size_t first = run_of(&l[0], &want);
		bool same = true;

		for (size_t r = 1; r < n; r++)
			same &= run_of(&l[r], &want) == first;
		if (same)
			add_waits(l, n, first, out);
		l[0].at += first;
	}
	for (size_t r = 0; r < n; r++)
		free(l[r].v);
	free(l);
}
