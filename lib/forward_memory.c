/*
 * The memory of a forward pass: what grows with the sequence.
 */
#include <stdlib.h>

#include "fmath.h"
#include "forward_state.h"

static size_t
widest_input(const struct model *m)
{
	return max2(max2(m->n_embd, m->n_ff), m->n_heads * m->head_dim);
}

/* Are any matrices multiplied with int8 (floats) activations? */
static void
kinds(const struct forward *f, int *any_quant, int *any_float)
{
	const struct model *m = f->m;

	*any_quant = *any_float = 0;
	for (size_t i = 0; i < m->n_layers; i++) {
		const struct layer *y = &m->layer[i];
		const struct matrix *all[] = { &y->q, &y->k, &y->v,
			&y->attn_out, &y->gate, &y->up, &y->down };

		for (size_t j = 0; j < sizeof all / sizeof *all; j++) {
			*any_quant |= uses_quant(f, all[j]);
			*any_float |= !uses_quant(f, all[j]);
		}
	}
	*any_quant |= uses_quant(f, &m->head);
	*any_float |= !uses_quant(f, &m->head);
}

/* Bytes of every buffer for n tokens. */
static void
sizes(const struct forward *f, size_t n, size_t out[N_BUFFERS])
{
	const struct model *m = f->m;
	size_t s = sizeof(float), q = m->n_heads * m->head_dim;
	size_t kv = m->n_kv_heads * m->head_dim, in = widest_input(m);
	size_t lanes = kern_panels(n, KERN_FLOAT_LANES);
	size_t keys = kern_panels(n, KERN_KEY_LANES);
	int any_quant, any_float;

	kinds(f, &any_quant, &any_float);
	out[X] = out[H] = out[T] = n * m->n_embd * s;
	out[Q] = out[ATTN] = n * q * s;
	out[K] = out[V] = n * kv * s;
	out[GATE] = out[UP] = n * m->n_ff * s;
	out[KT] = keys * kv * s;
	out[COS] = out[SIN] = n * (m->head_dim / 2) * s;
	out[XQ] = any_quant ? xquant_bytes(in, n) : 0;
	out[XF] = any_float ? lanes * in * s : 0;
	out[ROWS] = n * sizeof(size_t);
	out[SCORES] = pool_threads(f->pool) * KERN_QUERIES * keys * s;
	out[SCRATCH] = pool_threads(f->pool) * f->scratch_bytes;
}

uint64_t
forward_bytes(const struct forward *f, size_t n)
{
	size_t size[N_BUFFERS];
	uint64_t sum = 0;

	sizes(f, n, size);
	for (int i = 0; i < N_BUFFERS; i++)
		sum += size[i];
	return sum;
}

static void *
allocate(size_t bytes)
{
	void *p;

	/* never 0 bytes: some systems give NULL for that */
	return posix_memalign(&p, 64, bytes ? bytes : 64) ? NULL : p;
}

/* The one table of angles: p * base^(-2i/head_dim) in f64. */
static void
fill_angles(struct forward *f, size_t n)
{
	const struct model *m = f->m;
	size_t half = m->head_dim / 2;
	double log_base = f64_log((double)m->rope_base);

	for (size_t i = 0; i < half; i++) {
		double e = (double)(2 * i) / (double)m->head_dim;
		double freq = f64_exp(-e * log_base);

		for (size_t p = 0; p < n; p++) {
			double angle = (double)p * freq;

			fbuf(f, COS)[p * half + i] = (float)f64_cos(angle);
			fbuf(f, SIN)[p * half + i] = (float)f64_sin(angle);
		}
	}
}

int
forward_reserve(struct forward *f, size_t n, struct err *err)
{
	size_t size[N_BUFFERS];

	if (n <= f->n_reserved)
		return 0;
	sizes(f, n, size);
	f->n_reserved = 0;
	for (int i = 0; i < N_BUFFERS; i++) {
		free(f->buf[i]);
		f->buf[i] = allocate(size[i]);
		if (!f->buf[i])
			return err_set(err, "out of memory: %zu tokens need "
			    "%.1f MB", n, (double)forward_bytes(f, n) / 1e6);
	}
	fill_angles(f, n);
	f->n_reserved = n;
	return 0;
}

size_t
forward_scratch(const struct model *m)
{
	return max2(max2(product_scratch(m->n_embd), product_scratch(m->n_ff)),
	    product_scratch(m->n_heads * m->head_dim));
}
