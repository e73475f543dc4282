/*
 * Time of one denoising step: a sequence of N tokens with the last half
 * masked, these rows wanted and reduced to statistics or not at all.  Prints
 * one JSON object: the least and the median time of all repetitions, for
 * kernels and threads.
 */
#define PROG "step"
#define USAGE "step [options] --model PATH"

#include <time.h>

#include "cpu.h"
#include "forward.h"
#include "tool.h"

static const char *model_path, *group;
static uint64_t length = 70, rows = 48, threads = 1, repeat = 30;
static int float_activations, have_model;
static const char *const activations[] = { "q8", "f32", NULL };

static const struct opt options[] = {
	{ "model", OPT_STR, &model_path, .arg = "PATH", .required = 1,
	    .given = &have_model, .help = "GGUF model" },
	{ "length", OPT_UINT, &length, .arg = "N", .min = 1,
	    .help = "tokens (default 70)" },
	{ "rows", OPT_UINT, &rows, .arg = "N", .min = 1,
	    .help = "last positions wanted (default 48)" },
	{ "threads", OPT_UINT, &threads, .arg = "N", .min = 1,
	    .max = POOL_MAX_THREADS, .help = "default 1" },
	{ "repeat", OPT_UINT, &repeat, .arg = "N", .min = 1, .max = 100000,
	    .help = "runs (default 30)" },
	{ "cpu", OPT_STR, &group, .arg = "GROUP",
	    .help = "kernel group (default the best)" },
	{ "activations", OPT_WORD, &float_activations, .arg = "q8|f32",
	    .words = activations, .help = "default q8" },
	{ 0 }
};

static double
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int
ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int
step(struct forward *f, const struct model *m, const int32_t *id, float *out,
    struct err *err)
{
	struct range range = { length - rows, rows };
	struct ranges want = { .r = &range, .n = 1, .total = rows };
	size_t n, all;

	if (forward_hidden(f, id, (size_t)length, &want, err) < 0)
		return -1;
	all = forward_rows(f);
	for (size_t i = 0; i < all; i += n) {
		n = all - i < FORWARD_ROWS ? all - i : FORWARD_ROWS;
		if (forward_head(f, i, n, out + i * m->n_vocab, err) < 0)
			return -1;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	struct forward_options o = { 0 };
	struct model m;
	struct pool *pool;
	struct forward *f;
	struct err err = { 0 };
	double *ms, start;
	int32_t *id;
	float *out;

	tool_no_operands(tool_start(options, argc, argv,
	    "Measure the time of one forward pass."), argc, argv);
	o.max_length = (size_t)length;
	o.float_activations = float_activations;
	if (rows >= length)
		err_set(&err, "--rows must be below --length");
	if (err.set)
		tool_usage(&err);
	if (kern_select(&o.kern, group, cpu_flags(), &err) != KERN_OK ||
	    model_open(&m, model_path, &err) < 0 ||
	    pool_open(&pool, (unsigned)threads, &err) < 0)
		tool_fail(&err);
	o.pool = pool;
	id = malloc((size_t)length * sizeof *id);
	ms = malloc((size_t)repeat * sizeof *ms);
	out = malloc((size_t)rows * m.n_vocab * sizeof *out);
	if (!id || !ms || !out)
		err_set(&err, "out of memory");
	if (err.set || forward_open(&f, &m, &o, &err) < 0)
		tool_fail(&err);
	for (size_t i = 0; i < length; i++)
		id[i] = i < length - rows ?
		    (int32_t)((i * 37 + 11) % m.n_vocab) :
		    m.special.mask;
	if (step(f, &m, id, out, &err) < 0) /* once to warm up */
		tool_fail(&err);
	for (size_t i = 0; i < repeat; i++) {
		start = now_ms();
		if (step(f, &m, id, out, &err) < 0)
			tool_fail(&err);
		ms[i] = now_ms() - start;
	}
	qsort(ms, (size_t)repeat, sizeof *ms, ascending);
	printf("{\"model\":\"%s\",\"kernel\":\"%s\",\"threads\":%llu,"
	       "\"length\":%llu,\"rows\":%llu,\"activations\":\"%s\","
	       "\"min_ms\":%.3f,\"median_ms\":%.3f}\n",
	    model_path, o.kern->name, (unsigned long long)threads,
	    (unsigned long long)length, (unsigned long long)rows,
	    activations[float_activations], ms[0], ms[repeat / 2]);
	forward_close(f);
	pool_close(pool);
	model_close(&m);
	free(id);
	free(ms);
	free(out);
	return tool_finish();
}
