/*
 * Time of one denoising step, a whole forward pass, for every length asked for:
 * the last rows wanted, as logits.  Prints one JSON object for each: the least
 * and the median time, its parts, the arithmetic of the matrix products as a
 * share of the peak measured beside it, memory and start-up.
 *
 * CPU time stands beside wall time: on a machine that others use only the first
 * means something.  share_cpu is the products' operations per second of CPU
 * time of the whole step, everything included, over the peak.
 */
#define PROG "step"
#define USAGE "step [options] --model PATH"

#include <sys/resource.h>
#include <time.h>

#include "cpu.h"
#include "forward.h"
#include "machine.h"
#include "peak.h"
#include "tool.h"

static const char *model_path, *group, *length_list = "148", *output;
static uint64_t rows, threads = 1, repeat = 5;
static int float_activations, have_model;
static const char *const activations[] = { "q8", "f32", NULL };

static const struct opt options[] = {
	{ "model", OPT_STR, &model_path, .arg = "PATH", .required = 1,
	    .given = &have_model, .help = "GGUF model" },
	{ "length", OPT_STR, &length_list, .arg = "N,..",
	    .help = "tokens (default 148)" },
	{ "rows", OPT_UINT, &rows, .arg = "N", .min = 1,
	    .help = "last positions wanted (default all)" },
	{ "threads", OPT_UINT, &threads, .arg = "N", .min = 1,
	    .max = POOL_MAX_THREADS, .help = "default 1" },
	{ "repeat", OPT_UINT, &repeat, .arg = "N", .min = 1, .max = 1000,
	    .help = "runs (default 5)" },
	{ "cpu", OPT_STR, &group, .arg = "GROUP",
	    .help = "kernel group (default the best)" },
	{ "activations", OPT_WORD, &float_activations, .arg = "q8|f32",
	    .words = activations, .help = "default q8" },
	{ "output", OPT_STR, &output, .arg = "FILE",
	    .help = "append there, not to standard output" },
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

struct bench {
	struct model m;
	struct pool *pool;
	struct forward *f;
	struct forward_options o;
	int32_t *id;
	float *out;
	double load_ms, first_ms;
};

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

static void
report(FILE *out, const struct bench *b, size_t n, size_t wanted, double *ms,
    double *cpu, double *share, const double *part, int argc, char **argv)
{
	double ops = operations(&b->m, (double)n, (double)wanted), sum = 0;
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	qsort(ms, repeat, sizeof *ms, ascending);
	qsort(cpu, repeat, sizeof *cpu, ascending);
	qsort(share, repeat, sizeof *share, ascending);
	fprintf(out, "{");
	machine_put(out, argc, argv);
	machine_string(out, "model", b->m.file_bytes ? model_path : "");
	machine_string(out, "quantisation", model_quantisation(&b->m));
	fprintf(out, "\"file_bytes\":%llu,\"layers\":%zu,\"kernels\":\"%s\","
	    "\"threads\":%llu,\"tokens\":%zu,\"rows\":%zu,"
	    "\"activations\":\"%s\",\"ms_min\":%.2f,\"ms_median\":%.2f,"
	    "\"cpu_ms_min\":%.2f,\"cpu_ms_median\":%.2f,",
	    (unsigned long long)b->m.file_bytes, b->m.n_layers,
	    b->o.kern->name, (unsigned long long)threads, n, wanted,
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
	    "\"peak_rss_bytes\":%llu}\n", b->load_ms, b->first_ms,
	    (unsigned long long)use.ru_maxrss * 1024);
	fflush(out);
}

static void
measure(FILE *out, struct bench *b, size_t n, int argc, char **argv)
{
	size_t most = n - b->m.shift, wanted = rows && rows < most ?
	    (size_t)rows : most;
	double *ms = calloc(repeat, sizeof *ms);
	double *cpu = calloc(repeat, sizeof *cpu);
	double *share = calloc(repeat, sizeof *share);
	double part[FORWARD_PARTS] = { 0 };
	struct forward_times times;
	struct err err = { 0 };

	if (!ms || !cpu || !share)
		err_set(&err, "out of memory");
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
		cpu[i] = (process_seconds() - cpu[i]) * 1e3 / (double)threads;
		share[i] = top > 0 ? operations(&b->m, (double)n,
		    (double)wanted) * 1e-6 / cpu[i] / top / (double)threads :
		                     0;
		forward_times(b->f, &times);
		for (int j = 0; j < FORWARD_PARTS; j++)
			part[j] += times.part[j];
	}
	report(out, b, n, wanted, ms, cpu, share, part, argc, argv);
	free(ms);
	free(cpu);
	free(share);
}

/* The next number of a comma-separated list; 0 at its end. */
static size_t
next_length(const char **list)
{
	char text[16];
	size_t n = strcspn(*list, ",");
	uint64_t v;
	struct err err = { 0 };

	if (!n)
		return 0;
	snprintf(text, sizeof text, "%.*s", (int)(n < 15 ? n : 15), *list);
	if (opt_uint(text, 2, 1 << 20, &v) < 0) {
		err_set(&err, "--length: '%s' is not a number from 2 up", text);
		tool_usage(&err);
	}
	*list += n + ((*list)[n] == ',');
	return (size_t)v;
}

int
main(int argc, char **argv)
{
	static struct bench b;
	struct err err = { 0 };
	size_t most = 0;
	FILE *out = stdout;

	tool_no_operands(tool_start(options, argc, argv,
	    "Measure the time of one forward pass."), argc, argv);
	for (const char *l = length_list; *l;) {
		size_t n = next_length(&l);

		most = n > most ? n : most;
	}
	b.load_ms = wall_seconds();
	b.o.max_length = most;
	b.o.float_activations = float_activations;
	if (output && !(out = fopen(output, "a")))
		err_sys(&err, "%s", output);
	if (err.set ||
	    kern_select(&b.o.kern, group, cpu_flags(), &err) != KERN_OK ||
	    model_open(&b.m, model_path, &err) < 0 ||
	    pool_open(&b.pool, (unsigned)threads, &err) < 0)
		tool_fail(&err);
	b.o.pool = b.pool;
	b.id = malloc(most * sizeof *b.id);
	b.out = malloc(most * b.m.n_vocab * sizeof *b.out);
	if (!b.id || !b.out)
		err_set(&err, "out of memory");
	if (err.set || forward_open(&b.f, &b.m, &b.o, &err) < 0)
		tool_fail(&err);
	b.load_ms = (wall_seconds() - b.load_ms) * 1e3;
	for (size_t i = 0; i < most; i++)
		b.id[i] = i < most / 2 ?
		    (int32_t)((i * 37 + 11) % b.m.n_vocab) :
		    b.m.special.mask;
	for (const char *l = length_list; *l;)
		measure(out, &b, next_length(&l), argc, argv);
	if (out != stdout && fclose(out)) {
		err_sys(&err, "%s", output);
		tool_fail(&err);
	}
	forward_close(b.f);
	pool_close(b.pool);
	model_close(&b.m);
	free(b.id);
	free(b.out);
	return tool_finish();
}
