/* SPDX-License-Identifier: MIT */
/* link: -lopenblas -lz -lpthread -lm */
/*
 * The demo's workload in miniature, without Python: a perceptron with one hidden layer, trained
 *from deflated records on disk. Reading and inflating happen in the training thread, or in loader
 * threads that work ahead; the matrix products are OpenBLAS's.
 *
 *	mini --make-data FILE [--samples N]          write the data set, once, whole or not at all
 *	mini --data FILE [--steps N] [--batch N] [--loader-threads N] [--ahead N] [--blas-threads N]
 *
 * A line a step on stdout, a JSON object a step to $FETTLE_METRICS. The loss is a function of the
 * seed, the batch size and the step, up to the rounding of another number of BLAS threads.
 */
#include <cblas.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

enum { FEATURES = 4096, HIDDEN = 128, CLASSES = 10, MAX_THREADS = 64, MAX_AHEAD = 64 };
enum { MAX_SAMPLES = 1 << 20, MAX_BATCH = 4096 };

/* The file: this header, an index entry a sample, the records. Native byte order: it is made where
 * it is used. */
struct header {
	char magic[8];
	uint32_t samples, features;
};
struct entry {
	uint64_t offset;
	uint32_t bytes, label;
};
static const char magic[8] = "fmini/1";

struct options {
	const char *data, *make;
	long samples, steps, batch, loader_threads, ahead, blas_threads, seed;
	double rate;
};

struct dataset {
	int fd;
	struct header head;
	struct entry *index;
};

/* One decoded batch; `step` is the step that it is for. */
struct batch {
	float *x;
	int *label;
	long step;
	bool ready;
};

/* A ring of batches that loader threads fill ahead of the training thread. */
struct loader {
	const struct dataset *set;
	const struct options *o;
	struct batch *ring;
	long slots, next, done; /* next step to decode; steps that training has finished with */
	bool stop;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t threads[MAX_THREADS];
};

struct net {
	float *w1, *w2, *h, *dh, *logits, b1[HIDDEN], b2[CLASSES];
};

static void die(const char *what, const char *arg)
{
	fprintf(stderr, "mini: %s: %s\n", what, arg);
	exit(1);
}

static void die_errno(const char *what, const char *arg)
{
	fprintf(stderr, "mini: %s: %s: %s\n", what, arg, strerror(errno));
	exit(1);
}

static void *need(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		die("out of memory", "batch or index");
	return p;
}

/* Finaliser of splitmix64. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static float uniform(uint64_t key) /* -1 .. 1 */
{
	return (float)((double)(mix(key) >> 11) * 0x1p-52 - 1);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* -- data -----------------------------------------------------------------------------------------
 */

/* A class is a slow wave of its own; noise in the low bits keeps deflate busy, as real data do. */
static void make_sample(unsigned char *raw, long sample, uint32_t label)
{
	for (long i = 0; i < FEATURES; i++) {
		double wave = 24 * sin(2 * M_PI * (double)(i * (label + 1)) / 512 + (double)label);
		uint64_t noise = mix((uint64_t)sample << 20 | (uint64_t)i) & 31;

		raw[i] = (unsigned char)(112 + wave + (double)noise);
	}
}

static void write_all(FILE *f, const void *p, size_t n, const char *path)
{
	if (n && fwrite(p, n, 1, f) != 1)
		die_errno("cannot write", path);
}

static void write_records(FILE *f, struct entry *index, long samples, const char *path)
{
	static unsigned char raw[FEATURES], packed[FEATURES * 2];
	uint64_t offset = sizeof(struct header) + (uint64_t)samples * sizeof *index;

	for (long i = 0; i < samples; i++) {
		uLongf n = sizeof packed;

		index[i].label = (uint32_t)(mix((uint64_t)i) % CLASSES);
		make_sample(raw, i, index[i].label);
		if (compress2(packed, &n, raw, sizeof raw, 6) != Z_OK)
			die("cannot deflate a record for", path);
		index[i].offset = offset;
		index[i].bytes = (uint32_t)n;
		offset += n;
		write_all(f, packed, n, path);
	}
}

static void make_data(const struct options *o)
{
	struct header h = {.samples = (uint32_t)o->samples, .features = FEATURES};
	struct entry *index = need((size_t)o->samples, sizeof *index);
	char tmp[4096];
	FILE *f;

	if (!access(o->make, R_OK)) {
		printf("%s is already there\n", o->make);
		free(index);
		return;
	}
	memcpy(h.magic, magic, sizeof magic);
	if (snprintf(tmp, sizeof tmp, "%s.tmp.%ld", o->make, (long)getpid()) >= (int)sizeof tmp)
		die("path too long", o->make);
	f = fopen(tmp, "we");
	if (!f)
		die_errno("cannot create", tmp);
	/* Twice: the index has its place before the records and its content after them. */
	for (int pass = 0; pass < 2; pass++) {
		rewind(f);
		write_all(f, &h, sizeof h, tmp);
		write_all(f, index, (size_t)o->samples * sizeof *index, tmp);
		if (!pass)
			write_records(f, index, o->samples, tmp);
	}
	if (fflush(f) || fsync(fileno(f)) || fclose(f) || rename(tmp, o->make))
		die_errno("cannot write", o->make);
	printf("%ld samples in %s\n", o->samples, o->make);
	free(index);
}

static void open_data(struct dataset *d, const char *path)
{
	size_t n;

	d->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (d->fd < 0)
		die_errno("cannot open", path);
	if (pread(d->fd, &d->head, sizeof d->head, 0) != sizeof d->head ||
	    memcmp(d->head.magic, magic, sizeof magic) || d->head.features != FEATURES ||
	    !d->head.samples || d->head.samples > MAX_SAMPLES)
		die("not a data set of mini", path);
	n = d->head.samples * sizeof *d->index;
	d->index = need(d->head.samples, sizeof *d->index);
	if (pread(d->fd, d->index, n, sizeof d->head) != (ssize_t)n)
		die("index cut short", path);
}

/* The sample that stands at place i of the endless shuffled sequence. */
static uint32_t sample_at(const struct dataset *d, long seed, long i)
{
	return (uint32_t)(mix(mix((uint64_t)seed) ^ (uint64_t)i) % d->head.samples);
}

static void decode(const struct dataset *d, const struct options *o, long step, struct batch *b)
{
	unsigned char packed[FEATURES * 2], raw[FEATURES];

	for (long i = 0; i < o->batch; i++) {
		const struct entry *e = &d->index[sample_at(d, o->seed, step * o->batch + i)];
		uLongf n = sizeof raw;

		if (e->bytes > sizeof packed ||
		    pread(d->fd, packed, e->bytes, (off_t)e->offset) != (ssize_t)e->bytes ||
		    uncompress(raw, &n, packed, e->bytes) != Z_OK || n != sizeof raw)
			die("bad record in", o->data);
		for (long k = 0; k < FEATURES; k++)
			b->x[i * FEATURES + k] = ((float)raw[k] - 127.5f) / 32;
		b->label[i] = (int)e->label;
	}
	b->step = step;
}

/* -- loader ---------------------------------------------------------------------------------------
 */

static void *loader_main(void *arg)
{
	struct loader *l = arg;

	pthread_mutex_lock(&l->lock);
	for (;;) {
		long step;

		while (!l->stop && l->next >= l->done + l->slots)
			pthread_cond_wait(&l->changed, &l->lock);
		if (l->stop || l->next >= l->o->steps)
			break;
		step = l->next++;
		pthread_mutex_unlock(&l->lock);
		decode(l->set, l->o, step, &l->ring[step % l->slots]);
		pthread_mutex_lock(&l->lock);
		l->ring[step % l->slots].ready = true;
		pthread_cond_broadcast(&l->changed);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

static void loader_start(struct loader *l, const struct dataset *set, const struct options *o)
{
	*l = (struct loader){.set = set, .o = o};
	l->slots = o->loader_threads ? o->loader_threads * o->ahead + 1 : 1;
	l->ring = need((size_t)l->slots, sizeof *l->ring);
	for (long i = 0; i < l->slots; i++) {
		l->ring[i].x = need((size_t)o->batch * FEATURES, sizeof(float));
		l->ring[i].label = need((size_t)o->batch, sizeof(int));
	}
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	for (long i = 0; i < o->loader_threads; i++)
		if ((errno = pthread_create(&l->threads[i], NULL, loader_main, l)))
			die_errno("cannot start", "a loader thread");
}

/* The batch of `step`: decoded here, or waited for. */
static const struct batch *loader_get(struct loader *l, long step)
{
	struct batch *b = &l->ring[step % l->slots];

	if (!l->o->loader_threads) {
		decode(l->set, l->o, step, b);
		return b;
	}
	pthread_mutex_lock(&l->lock);
	while (!b->ready || b->step != step)
		pthread_cond_wait(&l->changed, &l->lock);
	pthread_mutex_unlock(&l->lock);
	return b;
}

static void loader_release(struct loader *l, long step)
{
	pthread_mutex_lock(&l->lock);
	l->ring[step % l->slots].ready = false;
	l->done = step + 1;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

static void loader_stop(struct loader *l)
{
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	for (long i = 0; i < l->o->loader_threads; i++)
		pthread_join(l->threads[i], NULL);
	for (long i = 0; i < l->slots; i++) {
		free(l->ring[i].x);
		free(l->ring[i].label);
	}
	free(l->ring);
}

/* -- network --------------------------------------------------------------------------------------
 */

static void net_init(struct net *n, const struct options *o)
{
	size_t batch = (size_t)o->batch;

	*n = (struct net){0};
	n->w1 = need(FEATURES * HIDDEN, sizeof(float));
	n->w2 = need(HIDDEN * CLASSES, sizeof(float));
	n->h = need(batch * HIDDEN, sizeof(float));
	n->dh = need(batch * HIDDEN, sizeof(float));
	n->logits = need(batch * CLASSES, sizeof(float));
	for (uint64_t i = 0; i < FEATURES * HIDDEN; i++)
		n->w1[i] = uniform((uint64_t)o->seed << 32 | i) / sqrtf(FEATURES);
	for (uint64_t i = 0; i < HIDDEN * CLASSES; i++)
		n->w2[i] = uniform((uint64_t)o->seed << 33 | i) / sqrtf(HIDDEN);
}

static void net_free(struct net *n)
{
	free(n->w1);
	free(n->w2);
	free(n->h);
	free(n->dh);
	free(n->logits);
}

static void forward(struct net *n, const float *x, int batch)
{
	for (int i = 0; i < batch; i++) {
		memcpy(n->h + i * HIDDEN, n->b1, sizeof n->b1);
		memcpy(n->logits + i * CLASSES, n->b2, sizeof n->b2);
	}
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, batch, HIDDEN, FEATURES, 1, x,
		    FEATURES, n->w1, HIDDEN, 1, n->h, HIDDEN);
	for (int i = 0; i < batch * HIDDEN; i++)
		n->h[i] = n->h[i] > 0 ? n->h[i] : 0;
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, batch, CLASSES, HIDDEN, 1, n->h,
		    HIDDEN, n->w2, CLASSES, 1, n->logits, CLASSES);
}

/* Mean cross entropy; leaves its gradient in logits. */
static double softmax_loss(struct net *n, const int *label, int batch)
{
	double loss = 0;

	for (int i = 0; i < batch; i++) {
		float *z = n->logits + i * CLASSES, top = z[0], sum = 0;

		for (int c = 1; c < CLASSES; c++)
			top = fmaxf(top, z[c]);
		for (int c = 0; c < CLASSES; c++)
			sum += z[c] = expf(z[c] - top);
		loss -= log((double)(z[label[i]] / sum) + 1e-12);
		for (int c = 0; c < CLASSES; c++)
			z[c] = (z[c] / sum - (float)(c == label[i])) / (float)batch;
	}
	return loss / batch;
}

static void backward(struct net *n, const float *x, int batch, float rate)
{
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, batch, HIDDEN, CLASSES, 1, n->logits,
		    CLASSES, n->w2, CLASSES, 0, n->dh, HIDDEN);
	cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, HIDDEN, CLASSES, batch, -rate, n->h,
		    HIDDEN, n->logits, CLASSES, 1, n->w2, CLASSES);
	for (int i = 0; i < batch * HIDDEN; i++)
		n->dh[i] = n->h[i] > 0 ? n->dh[i] : 0;
	cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, FEATURES, HIDDEN, batch, -rate, x,
		    FEATURES, n->dh, HIDDEN, 1, n->w1, HIDDEN);
	for (int i = 0; i < batch; i++) {
		cblas_saxpy(HIDDEN, -rate, n->dh + i * HIDDEN, 1, n->b1, 1);
		cblas_saxpy(CLASSES, -rate, n->logits + i * CLASSES, 1, n->b2, 1);
	}
}

/* -- the loop -------------------------------------------------------------------------------------
 */

static void report(FILE *metrics, const struct options *o, long step, double loss, double step_ms,
		   double wait_ms)
{
	double rate = (double)o->batch * 1e3 / step_ms;

	printf("step %ld loss %.6f step_time_ms %.4f data_wait_ms %.4f throughput_samples_per_s %.2f\n",
	       step, loss, step_ms, wait_ms, rate);
	fflush(stdout);
	if (!metrics)
		return;
	fprintf(metrics,
		"{\"step\": %ld, \"loss\": %.9g, \"step_time_ms\": %.6f, \"data_wait_ms\": %.6f, "
		"\"data_wait_ratio\": %.6f, \"throughput_samples_per_s\": %.6f, \"rank\": 0}\n",
		step, loss, step_ms, wait_ms, wait_ms / step_ms, rate);
	fflush(metrics);
}

static void train(const struct options *o, FILE *metrics)
{
	struct dataset set;
	struct loader loader;
	struct net net;
	double begin;

	open_data(&set, o->data);
	net_init(&net, o);
	loader_start(&loader, &set, o);
	begin = now_ms();
	for (long step = 0; step < o->steps; step++) {
		const struct batch *b = loader_get(&loader, step);
		double wait_ms = now_ms() - begin, loss, end;

		forward(&net, b->x, (int)o->batch);
		loss = softmax_loss(&net, b->label, (int)o->batch);
		backward(&net, b->x, (int)o->batch, (float)o->rate);
		loader_release(&loader, step);
		end = now_ms();
		report(metrics, o, step + 1, loss, end - begin, wait_ms);
		begin = end;
	}
	loader_stop(&loader);
	net_free(&net);
	free(set.index);
	close(set.fd);
}

static long count(const char *name, const char *text, long min, long max)
{
	char *end;
	long v = strtol(text, &end, 10);

	if (end == text || *end || v < min || v > max) {
		fprintf(stderr, "mini: --%s %s: want a whole number from %ld to %ld\n", name, text,
			min, max);
		exit(2);
	}
	return v;
}

static struct options arguments(int argc, char **argv)
{
	static const struct option longs[] = {
		{"data", 1, NULL, 'd'},           {"make-data", 1, NULL, 'm'},
		{"samples", 1, NULL, 'n'},        {"steps", 1, NULL, 's'},
		{"batch", 1, NULL, 'b'},          {"ahead", 1, NULL, 'a'},
		{"loader-threads", 1, NULL, 'l'}, {"seed", 1, NULL, 'S'},
		{"blas-threads", 1, NULL, 't'},   {NULL, 0, NULL, 0},
	};
	struct options o = {
		.samples = 2048, .steps = 1000, .batch = 64, .ahead = 2, .seed = 1, .rate = 0.004};
	int c, which;

	while ((c = getopt_long(argc, argv, "", longs, &which)) != -1) {
		switch (c) {
		case 'd':
			o.data = optarg;
			break;
		case 'm':
			o.make = optarg;
			break;
		case 'n':
			o.samples = count("samples", optarg, 1, MAX_SAMPLES);
			break;
		case 's':
			o.steps = count("steps", optarg, 1, 1000000000);
			break;
		case 'b':
			o.batch = count("batch", optarg, 1, MAX_BATCH);
			break;
		case 'a':
			o.ahead = count("ahead", optarg, 1, MAX_AHEAD);
			break;
		case 'l':
			o.loader_threads = count("loader-threads", optarg, 0, MAX_THREADS);
			break;
		case 't':
			o.blas_threads = count("blas-threads", optarg, 1, MAX_THREADS);
			break;
		case 'S':
			o.seed = count("seed", optarg, 0, 1000000);
			break;
		default:
			exit(2);
		}
	}
	if (optind < argc || !o.data == !o.make) {
		fprintf(stderr,
			"usage: mini --make-data FILE [--samples N]\n"
			"       mini --data FILE [--steps N] [--batch N] [--loader-threads N] [--ahead N]\n"
			"            [--blas-threads N] [--seed N]\n");
		exit(2);
	}
	return o;
}

int main(int argc, char **argv)
{
	struct options o = arguments(argc, argv);
	const char *path = getenv("FETTLE_METRICS");
	FILE *metrics = NULL;

	if (o.make) {
		make_data(&o);
		return 0;
	}
	if (o.blas_threads)
		openblas_set_num_threads((int)o.blas_threads);
	if (path && *path && !(metrics = fopen(path, "ae")))
		die_errno("cannot write", path);
	train(&o, metrics);
	if (metrics)
		fclose(metrics);
	return 0;
}
