/*
 * Time of one denoising step, a whole forward pass, for every number of threads,
 * of tokens and of rows asked for: the last rows wanted, as logits.  A result
 * for each: the least and the median time, its parts, the arithmetic of the
 * matrix products as a share of the peak measured beside it, memory and
 * start-up.
 *
 * CPU time stands beside wall time: on a machine that others use only the first
 * means something.  share_cpu is the products' operations per second of CPU
 * time of the whole step, everything included, over the peak.
 */
#define PROG "step"
#define USAGE "step [options] --model PATH"

#include <time.h>
#include <unistd.h>

#include "cpu.h"
#include "forward.h"
#include "list.h"
#include "machine.h"
#include "peak.h"
#include "report.h"
#include "tool.h"
#include "warm.h"

enum { MAX_LIST = 64 };

static const char *model_path, *group, *length_list = "148", *output;
static const char *row_list = "all", *thread_list = "1";
static uint64_t repeat = 5;
static int warming = 1, float_activations, have_model;
static const char *const activations[] = { "q8", "f32", NULL };

static const struct opt options[] = {
	{ "model", OPT_STR, &model_path, .arg = "PATH", .required = 1,
	    .given = &have_model, .help = "GGUF model" },
	{ "length", OPT_STR, &length_list, .arg = "N,..",
	    .help = "tokens (default 148)" },
	{ "rows", OPT_STR, &row_list, .arg = "N,..",
	    .help = "last positions wanted, 0 for all (default all)" },
	{ "threads", OPT_STR, &thread_list, .arg = "N,..",
	    .help = "default 1" },
	{ "repeat", OPT_UINT, &repeat, .arg = "N", .min = 1, .max = 1000,
	    .help = "runs (default 5)" },
	{ "cpu", OPT_STR, &group, .arg = "GROUP",
	    .help = "kernel group (default the best)" },
	{ "activations", OPT_WORD, &float_activations, .arg = "q8|f32",
	    .words = activations, .help = "default q8" },
	{ "no-warm", OPT_CLEAR, &warming,
	    .help = "leave page faults to the first step" },
	{ "output", OPT_STR, &output, .arg = "FILE",
	    .help = "write there, not to standard output" },
	{ 0 }
};

static const char *const part_names[FORWARD_PARTS] = { "embd", "norm",
	"quantise", "products", "rope", "attention", "act", "head" };

static double
process_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int
ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Each number of threads has a forward pass of its own. */
struct bench {
	struct model m;
	struct warm *warm;
	struct pool *pool;
	struct forward *f;
	struct forward_options o;
	size_t threads;
	int32_t *id;
	float *out;
	double load_ms, first_ms;
};

/* Let the peak of this process's memory begin again from what it is now. */
static void
reset_peak(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "w");

	if (!f)
		return;
	fputs("5\n", f);
	fclose(f);
}

/* Operations of all matrix products, a multiply-add being two. */
static double
operations(const struct model *m, double n, double wanted)
{
	double ops = wanted * (double)m->head.n_in * (double)m->head.n_out;

	for (size_t i = 0; i < m->n_layers; i++) {
		const struct layer *y = &m->layer[i];
		const struct matrix *all[] = { &y->q, &y->k, &y->v,
			&y->attn_out, &y->gate, &y->up, &y->down };

		for (size_t j = 0; j < sizeof all / sizeof *all; j++)
			ops += (i + 1 == m->n_layers && j > 2 ? wanted : n) *
			    (double)all[j]->n_in * (double)all[j]->n_out;
	}
	return 2 * ops;
}

static int
step(const struct bench *b, size_t n, size_t wanted, struct err *err)
{
	struct range range = { n - wanted, wanted };
	struct ranges want = { .r = &range, .n = 1, .total = wanted };

	if (forward_hidden(b->f, b->id, n, &want, err) < 0)
		return -1;
	return forward_head(b->f, 0, forward_rows(b->f), b->out, err);
}

/* The peak of one thread, in GOP/s. */
static double
peak(const struct kern *k)
{
	const struct peak_kind *kind =
	    peak_of(k->name, float_activations ? "f32" : "int8");

	return kind ? peak_rate(kind, 0.05) : 0;
}

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void
report(struct results *to, const struct bench *b, size_t n, size_t wanted,
    double *ms, double *cpu, double *share, const double *part)
{
	double ops = operations(&b->m, (double)n, (double)wanted), sum = 0;
	FILE *out = to->f;

	qsort(ms, repeat, sizeof *ms, ascending);
	qsort(cpu, repeat, sizeof *cpu, ascending);
	qsort(share, repeat, sizeof *share, ascending);
	results_next(to);
	fprintf(out, "{");
	machine_string(out, "model", base_name(model_path));
	machine_string(out, "quantisation", model_quantisation(&b->m));
	fprintf(out, "\"file_bytes\":%llu,\"layers\":%zu,\"kernels\":\"%s\","
	    "\"threads\":%zu,\"tokens\":%zu,\"rows\":%zu,"
	    "\"activations\":\"%s\",\"ms_min\":%.2f,\"ms_median\":%.2f,"
	    "\"cpu_ms_min\":%.2f,\"cpu_ms_median\":%.2f,",
	    (unsigned long long)b->m.file_bytes, b->m.n_layers,
	    b->o.kern->name, b->threads, n, wanted,
	    activations[float_activations], ms[0], ms[repeat / 2], cpu[0],
	    cpu[repeat / 2]);
	fprintf(out, "\"gop\":%.1f,\"gops_wall\":%.1f,\"gops_cpu\":%.1f,"
	    "\"share_cpu_median\":%.3f,\"share_cpu_best\":%.3f,\"parts\":{",
	    ops * 1e-9, ops * 1e-6 / ms[0], ops * 1e-6 / cpu[0],
	    share[repeat / 2], share[repeat - 1]);
	for (int i = 0; i < FORWARD_PARTS; i++)
		sum += part[i];
	for (int i = 0; i < FORWARD_PARTS; i++)
		fprintf(out, "%s\"%s\":%.4f", i ? "," : "", part_names[i],
		    part[i] / sum);
	fprintf(out, "},\"load_ms\":%.1f,\"first_step_ms\":%.1f,"
	    "\"peak_rss_bytes\":%llu}", b->load_ms, b->first_ms,
	    (unsigned long long)process_peak_bytes((long)getpid()));
}

static void
measure(struct results *to, struct bench *b, size_t n, size_t rows)
{
	size_t most = n - b->m.shift, wanted = rows && rows < most ? rows :
	                                                             most;
	double *ms = calloc(repeat, sizeof *ms);
	double *cpu = calloc(repeat, sizeof *cpu);
	double *share = calloc(repeat, sizeof *share);
	double part[FORWARD_PARTS] = { 0 };
	struct forward_times times;
	struct err err = { 0 };

	if (!ms || !cpu || !share)
		err_set(&err, "out of memory");
	reset_peak();
	b->first_ms = wall_seconds();
	if (err.set || step(b, n, wanted, &err) < 0)
		tool_fail(&err);
	b->first_ms = (wall_seconds() - b->first_ms) * 1e3;
	for (size_t i = 0; i < repeat; i++) {
		double top = peak(b->o.kern);

		ms[i] = wall_seconds();
		cpu[i] = process_seconds();
		if (step(b, n, wanted, &err) < 0)
			tool_fail(&err);
		ms[i] = (wall_seconds() - ms[i]) * 1e3;
		cpu[i] = (process_seconds() - cpu[i]) * 1e3 /
		    (double)b->threads;
		share[i] = top > 0 ? operations(&b->m, (double)n,
		    (double)wanted) * 1e-6 / cpu[i] / top /
		    (double)b->threads : 0;
		forward_times(b->f, &times);
		for (int j = 0; j < FORWARD_PARTS; j++)
			part[j] += times.part[j];
	}
	report(to, b, n, wanted, ms, cpu, share, part);
	free(ms);
	free(cpu);
	free(share);
}

/* Memory for the longest of all lengths; the same ids in every run. */
static int
open_model(struct bench *b, size_t most, struct err *err)
{
	b->o.max_length = most;
	b->o.float_activations = float_activations;
	if (kern_select(&b->o.kern, group, cpu_flags(), err) != KERN_OK ||
	    model_open(&b->m, model_path, err) < 0)
		return -1;
	b->warm = warming ? warm_start(&b->m.gguf) : NULL;
	b->id = malloc(most * sizeof *b->id);
	b->out = malloc(most * b->m.n_vocab * sizeof *b->out);
	if (!b->id || !b->out)
		return err_set(err, "out of memory");
	for (size_t i = 0; i < most; i++)
		b->id[i] = i < most / 2 ?
		    (int32_t)((i * 37 + 11) % b->m.n_vocab) :
		    b->m.special.mask;
	return 0;
}

static void
on_threads(struct results *to, struct bench *b, size_t threads,
    const size_t *length, size_t n_lengths, const size_t *rows, size_t n_rows)
{
	struct err err = { 0 };
	double start = wall_seconds();

	b->threads = threads;
	if (pool_open(&b->pool, (unsigned)threads, &err) < 0)
		tool_fail(&err);
	b->o.pool = b->pool;
	if (forward_open(&b->f, &b->m, &b->o, &err) < 0)
		tool_fail(&err);
	b->load_ms += (wall_seconds() - start) * 1e3;
	for (size_t i = 0; i < n_lengths; i++)
		for (size_t j = 0; j < n_rows; j++)
			measure(to, b, length[i], rows[j]);
	forward_close(b->f);
	pool_close(b->pool);
}

int
main(int argc, char **argv)
{
	static struct bench b;
	struct err err = { 0 };
	struct results to;
	size_t threads[MAX_LIST], length[MAX_LIST], rows[MAX_LIST];
	size_t n_threads, n_lengths, n_rows, most = 0;
	double load_ms;

	tool_no_operands(tool_start(options, argc, argv,
	    "Measure the time of one forward pass."), argc, argv);
	n_threads = list_numbers("threads", thread_list, 1, POOL_MAX_THREADS,
	    threads, MAX_LIST);
	n_lengths = list_numbers(
	    "length", length_list, 2, 1 << 20, length, MAX_LIST);
	n_rows = list_numbers("rows", strcmp(row_list, "all") ? row_list : "0",
	    0, 1 << 20, rows, MAX_LIST);
	for (size_t i = 0; i < n_lengths; i++)
		most = length[i] > most ? length[i] : most;
	load_ms = wall_seconds();
	if (open_model(&b, most, &err) < 0)
		tool_fail(&err);
	load_ms = (wall_seconds() - load_ms) * 1e3;
	if (results_begin(&to, output, "step", argc, argv, &err) < 0)
		tool_fail(&err);
	for (size_t i = 0; i < n_threads; i++) {
		b.load_ms = load_ms;
		on_threads(&to, &b, threads[i], length, n_lengths, rows,
		    n_rows);
	}
	if (results_end(&to, &err) < 0)
		tool_fail(&err);
	warm_stop(b.warm);
	model_close(&b.m);
	free(b.id);
	free(b.out);
	return tool_finish();
}
