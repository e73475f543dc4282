/*
 * attention_scalar.c for several queries at once.  Included by a file that has
 * included a v16 header and defines KERNEL(name) and the register tile:
 *
 *   TILE_QUERIES   queries: 8, 4 or 2
 *   TILE_VECS      vectors of keys, or of elements of a value: 3, 2 or 1
 *
 * One query alone loads a vector for each multiplication and is bound by that:
 * with 8 x 3 the loads of keys and values are an eighth.
 */
#include <math.h>

#include "exp16.h"
#include "groups.h"

/* One call's arguments, moved on from tile to tile. */
struct attention {
	float *out;
	size_t out_stride;
	const float *const *q;
	const float *kt, *v;
	size_t v_stride, n_keys, head_dim;
	float scale, *e;
	size_t e_stride;
	float den[KERN_QUERIES];
};

#define FOR_TILE(i, queries, j, vecs) \
	_Pragma("GCC unroll 8") for (int i = 0; i < queries; i++) \
	    _Pragma("GCC unroll 3") for (int j = 0; j < vecs; j++)

/* Scores of `vecs` panels of keys from panel p on. */
INLINE void
score_tile(const struct attention *a, size_t p, const int queries,
    const int vecs)
{
	v16 acc[TILE_QUERIES][TILE_VECS];
	size_t panel = a->head_dim * KERN_KEY_LANES;
	const float *kt = a->kt + p * panel, *q[TILE_QUERIES];

	for (int i = 0; i < queries; i++)
		q[i] = a->q[i];
	FOR_TILE (i, queries, j, vecs)
		acc[i][j] = v16_zero();
	for (size_t d = 0; d < a->head_dim; d++, kt += KERN_KEY_LANES) {
		v16 k[TILE_VECS];

#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			k[j] = v16_load(kt + (size_t)j * panel);
		FOR_TILE (i, queries, j, vecs)
			acc[i][j] = v16_fma(v16_all(q[i][d]), k[j], acc[i][j]);
	}
	FOR_TILE (i, queries, j, vecs)
		v16_store(a->e + (size_t)i * a->e_stride +
		        (p + (size_t)j) * KERN_KEY_LANES,
		    v16_mul(acc[i][j], v16_all(a->scale)));
}

/* e = exp(e - max) over n keys, 0 behind them; returns the sum. */
static float
exponentials(float *e, size_t n)
{
	v16 max = v16_all(-(float)INFINITY), sum = v16_zero();
	size_t whole = n / 16 * 16;

	for (size_t j = 0; j < whole; j += 16)
		max = v16_max(max, v16_load(e + j));
	if (whole < n)
		max = v16_max(
		    max, v16_keep_n(v16_load(e + whole), n - whole, max));
	max = v16_all(v16_largest(max));
	for (size_t j = 0; j < n; j += 16) {
		v16 x = v16_exp(v16_sub(v16_load(e + j), max));

		if (j == whole)
			x = v16_keep_n(x, n - whole, v16_zero());
		v16_store(e + j, x);
		sum = v16_add(sum, x);
	}
	return v16_sum(sum);
}

/* `vecs` vectors of results from element d on, `some` lanes of each. */
INLINE void
value_tile(const struct attention *a, size_t d, const int queries,
    const int vecs, size_t some)
{
	v16 acc[TILE_QUERIES][TILE_VECS];
	const float *v = a->v + d, *e[TILE_QUERIES];

	for (int i = 0; i < queries; i++)
		e[i] = a->e + (size_t)i * a->e_stride;
	FOR_TILE (i, queries, j, vecs)
		acc[i][j] = v16_zero();
	for (size_t t = 0; t < a->n_keys; t++, v += a->v_stride) {
		v16 x[TILE_VECS];

#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			x[j] = some == 16 ? v16_load(v + j * 16) :
			                    v16_load_n(v, some);
		FOR_TILE (i, queries, j, vecs)
			acc[i][j] = v16_fma(v16_all(e[i][t]), x[j], acc[i][j]);
	}
	FOR_TILE (i, queries, j, vecs)
		v16_store_n(a->out + (size_t)i * a->out_stride + d +
		        (size_t)j * 16,
		    v16_div(acc[i][j], v16_all(a->den[i])), some);
}

INLINE void
attend(struct attention *a, const int queries)
{
	size_t n_panels = a->e_stride / KERN_KEY_LANES, p = 0, d = 0;

	for (; p + TILE_VECS <= n_panels; p += TILE_VECS)
		score_tile(a, p, queries, TILE_VECS);
	for (; p < n_panels; p++)
		score_tile(a, p, queries, 1);
	for (int i = 0; i < queries; i++)
		a->den[i] = exponentials(
		    a->e + (size_t)i * a->e_stride, a->n_keys);
	for (; d + TILE_VECS * 16 <= a->head_dim; d += TILE_VECS * 16)
		value_tile(a, d, queries, TILE_VECS, 16);
	for (; d + 16 <= a->head_dim; d += 16)
		value_tile(a, d, queries, 1, 16);
	if (d < a->head_dim)
		value_tile(a, d, queries, 1, a->head_dim - d);
	a->out += (size_t)queries * a->out_stride;
	a->q += queries;
	a->e += (size_t)queries * a->e_stride;
}

static void
attend_most(struct attention *a)
{
	attend(a, TILE_QUERIES);
}

static void
attend_half(struct attention *a)
{
	attend(a, TILE_QUERIES / 2);
}

static void
attend_one(struct attention *a)
{
	attend(a, 1);
}

void
KERNEL(attention)(float *out, size_t out_stride, const float *const *q,
    size_t n_q, const float *kt, const float *v, size_t stride, size_t n_keys,
    size_t head_dim, float scale, float *e)
{
	struct attention a = { out, out_stride, q, kt, v, stride, n_keys,
		head_dim, scale, e, kern_panels(n_keys, KERN_KEY_LANES) };

	for (; n_q >= TILE_QUERIES; n_q -= TILE_QUERIES)
		attend_most(&a);
	for (; n_q >= TILE_QUERIES / 2; n_q -= TILE_QUERIES / 2)
		attend_half(&a);
	for (; n_q; n_q--)
		attend_one(&a);
}
