/*
 * Matrix products as a forward pass does them: weights in their block format
 * in memory that no cache holds, activations packed, threads claiming tiles.  A
 * result for each kernel group, number of threads, type, shape and length; the
 * peak is measured beside each product, in the same threads, and shares are of
 * that peak.
 */
#define PROG "gemm"
#define USAGE "gemm [options]"

#include <math.h>
#include <stdatomic.h>

#include "expand.h"
#include "list.h"
#include "machine.h"
#include "peak.h"
#include "pool.h"
#include "product.h"
#include "tool.h"

/* More than the last-level caches that one core can fill. */
enum { WEIGHT_BYTES = 256 << 20, MAX_THREADS = 256, MAX_LIST = 64 };

static const char *type_list = "Q4_K", *length_list = "148";
static const char *shape_list = "ffn_up", *group_list, *thread_list = "1";
static const char *output;
static uint64_t repeat = 5;
static double seconds = 0.2;
static int wall;

static const struct opt options[] = {
	{ "type", OPT_STR, &type_list, .arg = "T,..",
	    .help = "weight types, or 'all' (default Q4_K)" },
	{ "shape", OPT_STR, &shape_list, .arg = "S,..",
	    .help = "matrices, or 'all' (default ffn_up)" },
	{ "length", OPT_STR, &length_list, .arg = "N,..",
	    .help = "tokens, or 'all' (default 148)" },
	{ "cpu", OPT_STR, &group_list, .arg = "G,..",
	    .help = "kernel groups, or 'all' (default the best)" },
	{ "threads", OPT_STR, &thread_list, .arg = "N,..",
	    .help = "default 1" },
	{ "repeat", OPT_UINT, &repeat, .arg = "N", .min = 1, .max = 1000,
	    .help = "pairs of peak and product (default 5)" },
	{ "seconds", OPT_REAL, &seconds, .arg = "F", .fmin = 0.001,
	    .fmax = 100, .help = "of one product at least (default 0.2)" },
	{ "wall", OPT_FLAG, &wall,
	    .help = "count wall time; default: the threads' CPU time" },
	{ "output", OPT_STR, &output, .arg = "FILE",
	    .help = "write there, not to standard output" },
	{ 0 }
};

static const struct shape {
	const char *name;
	size_t n_in, n_out;
} shapes[] = {
	/* LLaDA-8B */
	{ "attn", 4096, 4096 },
	{ "ffn_up", 4096, 12288 },
	{ "ffn_down", 12288, 4096 },
	{ "head", 4096, 126464 },
	/* Dream-7B */
	{ "dream_q", 3584, 3584 },
	{ "dream_kv", 3584, 512 },
	{ "dream_up", 3584, 18944 },
	{ "dream_down", 18944, 3584 },
	{ "dream_head", 3584, 152064 },
};

static const enum ggml_type types[] = { GGML_Q4_K, GGML_Q5_K, GGML_Q6_K,
	GGML_Q8_0, GGML_Q4_0, GGML_Q4_1, GGML_Q5_0, GGML_Q5_1, GGML_Q2_K,
	GGML_Q3_K, GGML_IQ4_NL, GGML_IQ4_XS, GGML_MXFP4, GGML_F16, GGML_BF16,
	GGML_F32 };

#define ALL_LENGTHS "1,8,32,96,148,256,512,1024"
enum { N_SHAPES = sizeof shapes / sizeof *shapes,
	N_TYPES = sizeof types / sizeof *types };

static size_t lengths[MAX_LIST], n_lengths;

static uint64_t random_state = 1;

static uint64_t
next(void)
{
	random_state = random_state * 6364136223846793005u + 1;
	return random_state >> 16;
}

static void *
allocate(size_t n)
{
	struct err err = { 0 };
	void *p;

	if (posix_memalign(&p, 64, n)) {
		err_set(&err, "out of memory");
		tool_fail(&err);
	}
	return p;
}

/*
 * Random blocks whose floats are finite: a megabyte of them, repeated.  Binary16
 * and the like have the second-highest bit of each second byte cleared.
 */
static void
fill_weights(uint8_t *w, size_t n, size_t block)
{
	size_t unit = ((size_t)1 << 20) / block * block;

	for (size_t i = 0; i < unit && i < n; i++)
		w[i] = (uint8_t)(next() & 0xbf);
	for (size_t i = unit; i < n; i++)
		w[i] = w[i - unit];
}

/* CPU time of each thread over one product. */
struct timed {
	struct products job;
	struct pool *pool;
	double cpu[MAX_THREADS];
	double peak[MAX_THREADS];
	const struct peak_kind *kind;
	atomic_uint arrived;
};

/* Every thread once: they wait for each other. */
static void
meet(struct timed *t)
{
	unsigned n = pool_threads(t->pool);

	atomic_fetch_add(&t->arrived, 1);
	while (atomic_load(&t->arrived) < n)
		;
}

static void
peak_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct timed *t = arg;

	for (; from < to; from++) {
		meet(t);
		t->peak[thread] = peak_rate(t->kind, 0.02);
	}
}

static void
clock_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct timed *t = arg;

	for (; from < to; from++) {
		meet(t);
		t->cpu[thread] = cpu_seconds() - t->cpu[thread];
	}
}

static void
on_all_threads(struct timed *t, pool_fn *fn)
{
	atomic_store(&t->arrived, 0);
	pool_run(t->pool, fn, t, pool_threads(t->pool), 1);
}

static double
sum(const double *v, size_t n)
{
	double s = 0;

	for (size_t i = 0; i < n; i++)
		s += v[i];
	return s;
}

/* Seconds of one product, over at least `seconds` of them. */
static double
time_product(struct timed *t, struct matrix *w, const uint8_t *weights,
    size_t copies)
{
	double start, used = 0;
	size_t n = 0, bytes = w->n_out * w->row_bytes;
	unsigned n_threads = pool_threads(t->pool);

	memset(t->cpu, 0, sizeof t->cpu);
	on_all_threads(t, clock_job);
	start = wall_seconds();
	do {
		w->data = weights + n % copies * bytes;
		product_run(&t->job, t->pool);
		n++;
		used = wall_seconds() - start;
	} while (used < seconds);
	on_all_threads(t, clock_job);
	return (wall ? used : sum(t->cpu, n_threads) / n_threads) / (double)n;
}

static int
ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct figures {
	double ms, share, best_share, peak;
};

static void
measure(struct timed *t, struct matrix *w, const uint8_t *weights,
    size_t copies, size_t n_tok, struct figures *to)
{
	double ops = 2.0 * (double)w->n_in * (double)w->n_out * (double)n_tok;
	double *ms = allocate(repeat * sizeof *ms);
	double *share = allocate(repeat * sizeof *share);
	unsigned n = pool_threads(t->pool);

	to->peak = 0;
	time_product(t, w, weights, copies);
	for (size_t i = 0; i < repeat; i++) {
		double before = 0, s;

		if (t->kind) {
			on_all_threads(t, peak_job);
			before = sum(t->peak, n);
		}
		s = time_product(t, w, weights, copies);
		ms[i] = s * 1e3;
		share[i] = before > 0 ? ops * 1e-9 / s / before : 0;
		if (before > to->peak)
			to->peak = before;
	}
	qsort(ms, repeat, sizeof *ms, ascending);
	qsort(share, repeat, sizeof *share, ascending);
	to->ms = ms[repeat / 2];
	to->share = share[repeat / 2];
	to->best_share = share[repeat - 1];
	free(ms);
	free(share);
}

/* Pack random activations for a product. */
static void
pack(const struct kern *k, struct xquant *xq, struct xfloat *xf, int quant,
    size_t n_in, size_t n_tok)
{
	float *x = allocate(n_in * n_tok * sizeof *x);

	for (size_t i = 0; i < n_in * n_tok; i++)
		x[i] = (float)(next() & 0xffff) / 32768.0f - 1.0f;
	if (quant) {
		xquant_place(
		    xq, allocate(xquant_bytes(n_in, n_tok)), n_in, n_tok);
		k->pack_quant(xq, 0, n_tok, x, n_in);
	} else {
		xf->n_in = n_in;
		xf->n_tok = n_tok;
		xf->x = allocate(kern_panels(n_tok, 16) * n_in * sizeof *xf->x);
		k->pack_float(xf, 0, n_tok, x, n_in);
	}
	free(x);
}

static void
bench(struct results *to, const struct kern *k, struct pool *pool,
    enum ggml_type type, const struct shape *s, size_t n_tok,
    const uint8_t *weights)
{
	unsigned threads = pool_threads(pool);
	const struct ggml_type_info *info = ggml_type_info(type);
	int quant = info->use == GGML_QUANT;
	struct matrix w = { .type = type, .n_in = s->n_in, .n_out = s->n_out,
		.row_bytes = ggml_row_bytes(type, s->n_in) };
	size_t bytes = w.row_bytes * w.n_out;
	size_t copies = WEIGHT_BYTES / bytes ? WEIGHT_BYTES / bytes : 1;
	struct timed t = { .pool = pool };
	struct xquant xq = { 0 };
	struct xfloat xf = { 0 };
	struct figures f;
	float *y = allocate(n_tok * w.n_out * sizeof *y);
	double gops;

	pack(k, &xq, &xf, quant, s->n_in, n_tok);
	t.job = (struct products){ .kern = k, .xq = &xq, .xf = &xf,
		.scratch_bytes = product_scratch(s->n_in), .count = n_tok };
	t.job.scratch = allocate(threads * t.job.scratch_bytes);
	t.kind = peak_of(k->name, quant ? "int8" : "f32");
	product_add(&t.job, &w, y, NULL);
	measure(&t, &w, weights, copies, n_tok, &f);
	gops = 2e-6 * (double)w.n_in * (double)w.n_out * (double)n_tok / f.ms;
	results_next(to);
	fprintf(to->f, "{\"kernels\":\"%s\",\"type\":\"%s\",\"shape\":\"%s\","
	    "\"n_in\":%zu,\"n_out\":%zu,\"tokens\":%zu,\"threads\":%u,"
	    "\"clock\":\"%s\",\"ms\":%.4g,\"gops\":%.4g,\"peak_gops\":%.4g,"
	    "\"peak\":\"%s\",\"share\":%.3f,\"best_share\":%.3f,"
	    "\"weight_gb_per_s\":%.3g,\"allocated_bytes\":%zu}",
	    k->name, info->name, s->name, w.n_in, w.n_out, n_tok,
	    threads, wall ? "wall" : "cpu", f.ms, gops, f.peak,
	    t.kind ? t.kind->what : "", f.share, f.best_share,
	    (double)bytes * 1e-6 / f.ms,
	    threads * t.job.scratch_bytes +
	        (quant ? xquant_bytes(s->n_in, n_tok) :
	                 kern_panels(n_tok, 16) * s->n_in * sizeof *y));
	free(t.job.scratch);
	free(xq.q);
	free(xf.x);
	free(y);
}

/* One type: all shapes and lengths. */
static void
bench_type(struct results *to, const struct kern *k, struct pool *pool,
    enum ggml_type type)
{
	size_t most = WEIGHT_BYTES, block = ggml_type_info(type)->block;
	uint8_t *weights;

	for (size_t s = 0; s < N_SHAPES; s++)
		if (list_has(shape_list, shapes[s].name)) {
			size_t n = shapes[s].n_out *
			    ggml_row_bytes(type, shapes[s].n_in);

			most = n > most ? n : most;
		}
	weights = allocate(most);
	fill_weights(weights, most, ggml_type_info(type)->block_bytes);
	for (size_t s = 0; s < N_SHAPES; s++)
		for (size_t j = 0; j < n_lengths; j++)
			if (list_has(shape_list, shapes[s].name) &&
			    shapes[s].n_in % block == 0)
				bench(to, k, pool, type, &shapes[s],
				    lengths[j], weights);
	free(weights);
}

/* One kernel group and number of threads. */
static void
bench_group(struct results *to, const struct kern *k, size_t threads)
{
	struct err err = { 0 };
	struct pool *pool;

	if (pool_open(&pool, (unsigned)threads, &err) < 0)
		tool_fail(&err);
	for (size_t i = 0; i < N_TYPES; i++)
		if (list_has(type_list, ggml_type_info(types[i])->name))
			bench_type(to, k, pool, types[i]);
	pool_close(pool);
}

/* Whether all lists mean something. */
static void
check_lists(void)
{
	const char *type[N_TYPES], *shape[N_SHAPES];
	size_t n = 0;

	for (size_t i = 0; i < N_TYPES; i++)
		type[i] = ggml_type_info(types[i])->name;
	for (size_t i = 0; i < N_SHAPES; i++)
		shape[i] = shapes[i].name;
	while (kern_names[n])
		n++;
	list_check("type", type_list, type, N_TYPES);
	list_check("shape", shape_list, shape, N_SHAPES);
	if (group_list)
		list_check("cpu", group_list, kern_names, n);
	if (!strcmp(length_list, "all"))
		length_list = ALL_LENGTHS;
	n_lengths = list_numbers(
	    "length", length_list, 1, 1 << 16, lengths, MAX_LIST);
}

/* "all" means all that this machine has; a group by name must be there. */
static void
bench_groups(struct results *to, size_t threads)
{
	struct err err = { 0 };
	const struct kern *k;

	if (!group_list) {
		if (kern_select(&k, NULL, cpu_flags(), &err) != KERN_OK)
			tool_fail(&err);
		bench_group(to, k, threads);
		return;
	}
	for (int i = 0; kern_names[i]; i++) {
		if (!list_has(group_list, kern_names[i]))
			continue;
		if (kern_select(&k, kern_names[i], cpu_flags(), &err) ==
		    KERN_OK)
			bench_group(to, k, threads);
		else if (strcmp(group_list, "all"))
			tool_fail(&err);
		memset(&err, 0, sizeof err);
	}
}

int
main(int argc, char **argv)
{
	struct err err = { 0 };
	struct results to;
	size_t n_threads, threads[MAX_LIST];

	tool_no_operands(tool_start(options, argc, argv,
	    "Measure matrix products beside the arithmetic peak."), argc,
	    argv);
	check_lists();
	n_threads = list_numbers(
	    "threads", thread_list, 1, MAX_THREADS, threads, MAX_LIST);
	if (results_begin(&to, output, "gemm", argc, argv, &err) < 0)
		tool_fail(&err);
	for (size_t i = 0; i < n_threads; i++)
		bench_groups(&to, threads[i]);
	if (results_end(&to, &err) < 0)
		tool_fail(&err);
	return tool_finish();
}
