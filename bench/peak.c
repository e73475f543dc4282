/*
 * What this machine can do: multiply-adds in registers for each instruction set
 * (see peak.h), and bytes read from memory, by one thread and by all: a result
 * for each of the two.
 */
#define PROG "peak"
#define USAGE "peak [options]"

#include <stdatomic.h>

#include "machine.h"
#include "peak.h"
#include "pool.h"
#include "tool.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { MAX_THREADS = 256, READ_BYTES = 512 << 20, RUNS = 5 };

static uint64_t threads;
static const char *output;

static const struct opt options[] = {
	{ "threads", OPT_UINT, &threads, .arg = "N", .min = 1,
	    .max = MAX_THREADS, .help = "for all (default: the cores)" },
	{ "output", OPT_STR, &output, .arg = "FILE",
	    .help = "write there, not to standard output" },
	{ 0 }
};

struct bench {
	struct pool *pool;
	const struct peak_kind *kind;
	const uint64_t *memory;
	double got[MAX_THREADS];
	uint64_t sum[MAX_THREADS]; /* so that reading is not optimised away */
	atomic_uint arrived;
};

/* The groups of kern.h, and what only this program asks for. */
static unsigned
flags(void)
{
	unsigned have = cpu_flags();
#if defined(__x86_64__)
	unsigned a, b, c, d;

	/* leaf 7.1 eax: avx512-bf16 5 */
	if ((have & CPU_AVX512VNNI) &&
	    __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 5))
		have |= CPU_AVX512BF16;
#endif
	return have;
}

/* Threads begin together: each takes one item and waits for the others. */
static void
meet(struct bench *b)
{
	unsigned n = pool_threads(b->pool);

	atomic_fetch_add(&b->arrived, 1);
	while (atomic_load(&b->arrived) < n)
		;
}

static void
peak_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct bench *b = arg;

	for (; from < to; from++) {
		meet(b);
		b->got[thread] = peak_rate(b->kind, 0.1);
	}
}

/* A share of the memory, 8 sums at a time; GB/s of the thread's CPU time. */
static void
read_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct bench *b = arg;
	size_t n = READ_BYTES / 8 / pool_threads(b->pool) / 8 * 8;

	for (; from < to; from++) {
		const uint64_t *p = b->memory + from * n;
		uint64_t s[8] = { 0 };
		double t;

		meet(b);
		t = cpu_seconds();
		for (size_t i = 0; i < n; i += 8)
			for (int j = 0; j < 8; j++)
				s[j] += p[i + (size_t)j];
		t = cpu_seconds() - t;
		for (int j = 0; j < 8; j++)
			b->sum[thread] += s[j];
		b->got[thread] = (double)n * 8e-9 / t;
	}
}

/* The best of RUNS, summed over the threads. */
static double
best(struct bench *b, pool_fn *fn)
{
	double top = 0;

	for (int i = 0; i < RUNS; i++) {
		double sum = 0;

		atomic_store(&b->arrived, 0);
		pool_run(b->pool, fn, b, pool_threads(b->pool), 1);
		for (unsigned j = 0; j < pool_threads(b->pool); j++)
			sum += b->got[j];
		top = sum > top ? sum : top;
	}
	return top;
}

static void
measure(struct results *to, struct bench *b, unsigned n)
{
	struct err err = { 0 };
	FILE *out = to->f;
	int any = 0;

	if (pool_open(&b->pool, n, &err) < 0)
		tool_fail(&err);
	results_next(to);
	fprintf(out, "{\"threads\":%u,\"gops\":{", n);
	for (int i = 0; i < N_PEAK_KINDS; i++) {
		b->kind = &peak_kinds[i];
		if (!b->kind->loop || !(flags() & b->kind->flag))
			continue;
		fprintf(out, "%s\"%s\":%.1f", any++ ? "," : "", b->kind->name,
		    best(b, peak_job));
	}
	fprintf(out, "},\"read_gb_per_s\":%.2f}", best(b, read_job));
	pool_close(b->pool);
}

int
main(int argc, char **argv)
{
	static struct bench b;
	struct err err = { 0 };
	uint64_t *memory = malloc(READ_BYTES);
	struct results out;

	tool_no_operands(tool_start(options, argc, argv,
	    "Measure the arithmetic peak and the read bandwidth."), argc,
	    argv);
	if (!threads)
		threads = sysinfo_cores();
	if (!memory)
		err_set(&err, "out of memory");
	if (err.set ||
	    results_begin(&out, output, "peak", argc, argv, &err) < 0)
		tool_fail(&err);
	for (size_t i = 0; i < READ_BYTES / 8; i++)
		memory[i] = i;
	b.memory = memory;
	measure(&out, &b, 1);
	if (threads > 1)
		measure(&out, &b, (unsigned)threads);
	if (results_end(&out, &err) < 0)
		tool_fail(&err);
	free(memory);
	return tool_finish();
}
