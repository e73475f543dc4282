/*
 * The bench mode of kern_check: every kernel at a size of LLaDA-8B, its time in
 * microseconds of CPU time and how many times as fast as the scalar group it
 * is, both measured in turns.  bench/gemm measures whole products.
 */
#ifndef KERN_BENCH_H
#define KERN_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kern.h"

enum {
	BENCH_IN = 4096, /* width of the model */
	BENCH_FF = 12288,
	BENCH_TOK = 48, /* three panels of 16 lanes */
	BENCH_ROWS = 48,
	BENCH_KEYS = 512,
	BENCH_HEAD = 128,
	BENCH_VOCAB = 126464,
	BENCH_TURNS = 7
};

struct bench_work {
	float *x, *w, *y;     /* as large as any kernel wants */
	uint8_t *block;       /* rows of Q4_K */
	uint32_t *id;
	struct xquant xq;
	struct xfloat xf;
	struct wtile tile;
};

static void
bench_pack_quant(const struct kern *k, struct bench_work *b)
{
	k->pack_quant(&b->xq, 0, BENCH_TOK, b->x, BENCH_IN);
}

static void
bench_pack_float(const struct kern *k, struct bench_work *b)
{
	k->pack_float(&b->xf, 0, BENCH_TOK, b->x, BENCH_IN);
}

static void
bench_expand(const struct kern *k, struct bench_work *b)
{
	k->expand(&b->tile, GGML_Q4_K, b->block, BENCH_IN / 256 * 144,
	    BENCH_ROWS, BENCH_IN);
}

static void
bench_matmul_quant(const struct kern *k, struct bench_work *b)
{
	k->matmul_quant(
	    b->y, BENCH_ROWS, &b->tile, &b->xq, 0, BENCH_TOK);
}

static void
bench_matmul_float(const struct kern *k, struct bench_work *b)
{
	k->matmul_float(b->y, BENCH_ROWS, b->w, BENCH_ROWS, &b->xf, 0,
	    BENCH_TOK);
}

static void
bench_decode(const struct kern *k, struct bench_work *b)
{
	k->decode(GGML_Q4_K, b->block, BENCH_IN, b->y);
}

static void
bench_rmsnorm(const struct kern *k, struct bench_work *b)
{
	k->rmsnorm(b->y, b->x, b->w, BENCH_IN, 1e-5f);
}

static void
bench_add(const struct kern *k, struct bench_work *b)
{
	k->add(b->y, b->x, BENCH_IN);
}

static void
bench_rope(const struct kern *k, struct bench_work *b)
{
	k->rope(b->y, BENCH_IN / BENCH_HEAD, BENCH_HEAD, b->x, b->w, 0);
}

static void
bench_pack_keys(const struct kern *k, struct bench_work *b)
{
	k->pack_keys(b->y, 0, BENCH_TOK, b->x, BENCH_IN, BENCH_HEAD);
}

static void
bench_attention(const struct kern *k, struct bench_work *b)
{
	const float *q[KERN_QUERIES];

	for (int i = 0; i < KERN_QUERIES; i++)
		q[i] = b->x + i * BENCH_HEAD;
	k->attention(b->y, BENCH_HEAD, q, KERN_QUERIES, b->x, b->w, BENCH_HEAD,
	    BENCH_KEYS, BENCH_HEAD, 0.088f, b->y + KERN_QUERIES * BENCH_HEAD);
}

static void
bench_silu_mul(const struct kern *k, struct bench_work *b)
{
	k->silu_mul(b->y, b->x, b->w, BENCH_FF);
}

static void
bench_all_finite(const struct kern *k, struct bench_work *b)
{
	k->all_finite(b->x, BENCH_IN);
}

static void
bench_clean_logits(const struct kern *k, struct bench_work *b)
{
	k->clean_logits(b->y, b->x, BENCH_VOCAB);
}

static void
bench_largest(const struct kern *k, struct bench_work *b)
{
	k->largest(b->x, BENCH_VOCAB);
}

static void
bench_weigh(const struct kern *k, struct bench_work *b)
{
	struct weights w;

	k->weigh(&w, b->y, b->x, BENCH_VOCAB, 1, 0.7);
}

static void
bench_negentropy(const struct kern *k, struct bench_work *b)
{
	k->negentropy(b->w, BENCH_VOCAB, BENCH_VOCAB / 2.0);
}

static void
bench_contenders(const struct kern *k, struct bench_work *b)
{
	struct noise z = { .max = 1, .scale = 1, .bound = 1e-5f };

	k->contenders(b->id, b->x, 0, BENCH_VOCAB, &z);
}

static const struct bench_case {
	const char *name;
	void (*run)(const struct kern *k, struct bench_work *b);
} bench_cases[] = {
	/* what is packed and expanded here, the products below need */
	{ "pack_quant", bench_pack_quant },
	{ "pack_float", bench_pack_float },
	{ "expand Q4_K", bench_expand },
	{ "matmul_quant", bench_matmul_quant },
	{ "matmul_float", bench_matmul_float },
	{ "decode Q4_K", bench_decode },
	{ "rmsnorm", bench_rmsnorm },
	{ "add", bench_add },
	{ "rope", bench_rope },
	{ "pack_keys", bench_pack_keys },
	{ "attention", bench_attention },
	{ "silu_mul", bench_silu_mul },
	{ "all_finite", bench_all_finite },
	{ "clean_logits", bench_clean_logits },
	{ "largest", bench_largest },
	{ "weigh", bench_weigh },
	{ "negentropy", bench_negentropy },
	{ "contenders", bench_contenders },
};
enum { N_BENCH_CASES = sizeof bench_cases / sizeof *bench_cases };

static inline double
bench_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of one call, over a millisecond; the clock takes long, too. */
static inline double
bench_time(const struct bench_case *c, const struct kern *k,
    struct bench_work *b)
{
	double t;

	for (long n = 1;; n *= 2) {
		t = bench_seconds();
		for (long i = 0; i < n; i++)
			c->run(k, b);
		t = bench_seconds() - t;
		if (t > 1e-3)
			return t / (double)n;
	}
}

static inline int
bench_ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline void *
bench_memory(size_t bytes)
{
	size_t size = (bytes + 63) / 64 * 64;
	void *p = aligned_alloc(64, size);

	if (!p)
		exit(2);
	memset(p, 0, size);
	return p;
}

static inline void
bench_open(struct bench_work *b)
{
	size_t n = (size_t)BENCH_TOK * BENCH_FF;

	b->x = bench_memory(n * sizeof *b->x);
	b->w = bench_memory(n * sizeof *b->w);
	b->y = bench_memory(n * sizeof *b->y);
	b->id = bench_memory(BENCH_VOCAB * sizeof *b->id);
	b->block = bench_memory(BENCH_ROWS * BENCH_IN / 256 * 144);
	for (size_t i = 0; i < n; i++) {
		b->x[i] = (float)(i * 2654435761u % 2001) / 1000 - 1;
		b->w[i] = (float)(i * 40503u % 1000) / 1000;
	}
	for (size_t i = 0; i < BENCH_ROWS * BENCH_IN / 256 * 144; i++)
		/* a scale and an offset of 2^-10, then whatever */
		b->block[i] = i % 144 < 4 ? (i & 1 ? 0x14 : 0) :
		                            (uint8_t)(i * 2654435761u >> 24);
	xquant_place(&b->xq, bench_memory(xquant_bytes(BENCH_IN, BENCH_TOK)),
	    BENCH_IN, BENCH_TOK);
	b->xf.n_in = BENCH_IN;
	b->xf.n_tok = BENCH_TOK;
	b->xf.x = bench_memory(BENCH_TOK * BENCH_IN * sizeof *b->xf.x);
	wtile_place(&b->tile, bench_memory(wtile_bytes(BENCH_ROWS, BENCH_IN)),
	    BENCH_ROWS, BENCH_IN);
}

static inline void
bench_close(struct bench_work *b)
{
	free(b->x);
	free(b->w);
	free(b->y);
	free(b->id);
	free(b->block);
	free(b->xq.q);
	free(b->xf.x);
	free(b->tile.q);
}

/* One line for each kernel of a group. */
static inline void
kern_bench(const struct kern *k, const struct kern *ref)
{
	static struct bench_work mine, its; /* layouts differ */
	double t[BENCH_TURNS], ratio[BENCH_TURNS];

	bench_open(&mine);
	bench_open(&its);
	for (int i = 0; i < N_BENCH_CASES; i++) {
		for (int j = 0; j < BENCH_TURNS; j++) {
			ratio[j] = bench_time(&bench_cases[i], ref, &its);
			t[j] = bench_time(&bench_cases[i], k, &mine);
			ratio[j] /= t[j];
		}
		qsort(t, BENCH_TURNS, sizeof *t, bench_ascending);
		qsort(ratio, BENCH_TURNS, sizeof *ratio, bench_ascending);
		printf("%-11s %-13s %10.3f us %7.1f times scalar\n", k->name,
		    bench_cases[i].name, t[BENCH_TURNS / 2] * 1e6,
		    ratio[BENCH_TURNS / 2]);
		fflush(stdout);
	}
	bench_close(&mine);
	bench_close(&its);
}

#endif
