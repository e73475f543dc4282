/*
 * Matrix products of packed activations with weights as they lie in the file:
 * threads claim tiles of weight rows, expand each once into a cache and
 * multiply it with all tokens.
 */
#ifndef PRODUCT_H
#define PRODUCT_H

#include <stddef.h>
#include <stdint.h>

#include "ggml_type.h"
#include "kern.h"
#include "pool.h"

/* A matrix (n_out, n_in) in the file. */
struct matrix {
	const uint8_t *data; /* rows of row_bytes, unaligned */
	enum ggml_type type;
	size_t n_in, n_out, row_bytes;
};

enum { MAX_PRODUCTS = 3 };

/* Up to three matrices with the same input. */
struct products {
	const struct kern *kern;
	void *scratch;          /* pool_threads() times scratch_bytes, at 64 */
	size_t scratch_bytes;   /* product_scratch() of every matrix or more */
	const struct xquant *xq; /* NULL: weights are decoded to floats */
	const struct xfloat *xf; /* for those, and for float matrices */
	size_t first, count;    /* tokens; first is a multiple of 16 */
	size_t n_threads;       /* set by product_run */
	int n;
	struct product {
		const struct matrix *w;
		float *y;           /* (count, w->n_out) */
		const float *bias;  /* (w->n_out) or NULL */
	} p[MAX_PRODUCTS];
};

/* Memory that a thread needs for a matrix with rows of n_in elements. */
size_t product_scratch(size_t n_in);

void product_add(struct products *job, const struct matrix *w, float *y,
    const float *bias);
void product_run(struct products *job, struct pool *pool);

#endif
