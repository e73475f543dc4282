/*
 * Products with float activations: fmaf along K in order from 0, a lane is a
 * token.  Included by a file that has included a v16 header and defines
 * KERNEL(name) and the register tile:
 *
 *   TILE_ROWS   weight rows
 *   TILE_VECS   panels of tokens: 3, 2 or 1
 *
 * K is cut into chunks, with the accumulators in memory between them, so that
 * the panels' part of a chunk stays in the first-level cache while all rows
 * pass.
 */
#include <string.h>

#include "groups.h"

enum { LANES = KERN_FLOAT_LANES, FLOAT_CHUNK = 64 };

/* n steps along K of `rows` rows and `vecs` panels. */
INLINE void
float_tile(float *acc, const float *w, size_t n_in, const float *x, size_t n,
    int first, const int rows, const int vecs)
{
	v16 a[TILE_ROWS][TILE_VECS];

#pragma GCC unroll 12
	for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			a[r][j] = first ? v16_zero() :
			                  v16_load(acc +
			                      (r * TILE_VECS + j) * LANES);
	for (size_t k = 0; k < n; k++) {
		v16 v[TILE_VECS];

#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			v[j] = v16_load(x + ((size_t)j * n_in + k) * LANES);
#pragma GCC unroll 12
		for (int r = 0; r < rows; r++) {
			v16 f = v16_all(w[(size_t)r * n_in + k]);

#pragma GCC unroll 3
			for (int j = 0; j < vecs; j++)
				a[r][j] = v16_fma(v[j], f, a[r][j]);
		}
	}
#pragma GCC unroll 12
	for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			v16_store(acc + (r * TILE_VECS + j) * LANES, a[r][j]);
}

/* All rows and all of K, panels from x on: acc (n_rows, TILE_VECS, LANES). */
INLINE void
float_panels(float *acc, const float *w, size_t n_rows, size_t n_in,
    const float *x, const int vecs)
{
	for (size_t k = 0; k < n_in; k += FLOAT_CHUNK) {
		size_t n = n_in - k < FLOAT_CHUNK ? n_in - k : FLOAT_CHUNK;
		size_t r = 0;

		for (; r + TILE_ROWS <= n_rows; r += TILE_ROWS)
			float_tile(acc + r * TILE_VECS * LANES, w + r * n_in + k,
			    n_in, x + k * LANES, n, k == 0, TILE_ROWS, vecs);
		for (; r < n_rows; r++)
			float_tile(acc + r * TILE_VECS * LANES, w + r * n_in + k,
			    n_in, x + k * LANES, n, k == 0, 1, vecs);
	}
}

/* Tokens from lane `first` to end-1 of one panel: y[t * stride + r]. */
static void
store_floats(float *y, size_t stride, const float *acc, size_t n_rows,
    size_t first, size_t end)
{
	for (size_t r = 0; r < n_rows; r += 16) {
		size_t rows = n_rows - r < 16 ? n_rows - r : 16;
		v16 v[16];

		for (size_t i = 0; i < 16; i++)
			v[i] = i < rows ? v16_load(acc +
			                      (r + i) * TILE_VECS * LANES) :
			                  v16_zero();
		v16_turn(v);
		for (size_t l = first; l < end; l++)
			v16_store_n(
			    y + (l - first) * stride + r, v[l], rows);
	}
}

/* At most KERN_TILE_ROWS rows. */
static void
float_rows(float *y, size_t stride, const float *w, size_t n_rows,
    const struct xfloat *x, size_t t0, size_t n)
{
	_Alignas(64) float acc[KERN_TILE_ROWS * TILE_VECS * LANES];
	size_t end = kern_panels(t0 + n, LANES) / LANES, vecs;

	for (size_t p = t0 / LANES; p < end; p += vecs) {
		const float *panel = x->x + p * LANES * x->n_in;

		vecs = end - p < TILE_VECS ? 1 : TILE_VECS;
		if (vecs == 1)
			float_panels(acc, w, n_rows, x->n_in, panel, 1);
		else
			float_panels(
			    acc, w, n_rows, x->n_in, panel, TILE_VECS);
		for (size_t j = 0; j < vecs; j++) {
			size_t t = (p + j) * LANES;
			size_t first = t < t0 ? t0 - t : 0;
			size_t last = t0 + n - t < LANES ? t0 + n - t : LANES;

			store_floats(y + (t + first - t0) * stride, stride,
			    acc + j * LANES, n_rows, first, last);
		}
	}
}

void
KERNEL(matmul_float)(float *y, size_t stride, const float *w, size_t n_rows,
    const struct xfloat *x, size_t t0, size_t n)
{
	for (size_t r = 0; r < n_rows; r += KERN_TILE_ROWS)
		float_rows(y + r, stride, w + r * x->n_in,
		    n_rows - r < KERN_TILE_ROWS ? n_rows - r : KERN_TILE_ROWS,
		    x, t0, n);
}
