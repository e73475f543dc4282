/*
 * Matrix products with vpdpbusd: a lane is a token.
 *
 * Weights are the unsigned operand, four consecutive k broadcast to all lanes.
 * Quants that can be negative have 128 added, so sums are too large by 128
 * times the sum of the activations.  An integer accumulator starts with the
 * correction, and with the bits of 1.5 * 2^23: read as a float it is M + isum,
 * M = 12582912, exactly (|isum| < 2^22), and fma(M + isum, dx, -M * dx) is isum
 * * dx rounded once, as dx has its two lowest bits clear.  That leaves 8 dot
 * products and 2 (with mins 3) fused multiply-adds per 32 weights, all on the
 * same two ports: 0.80 (0.73) of the peak is the most to be had.
 *
 * K is cut into chunks, with the float accumulators in memory between them:
 * 48 tokens' activations of a chunk stay in the first-level cache while all
 * rows of the tile pass.  Without, they come from the second level for every
 * four rows: 0.62 of peak instead of 0.70.
 */
#include "groups.h"

#include <immintrin.h>

#include "x86.h"

enum {
	LANES = 16,
	CHUNK = 8, /* blocks: 256 elements */
	MOST_VECS = 3,
	START = 0x4b400000 /* 1.5 * 2^23 as bits of a float */
};

/* Where a register tile finds its operands, at the first block of a chunk. */
struct operands {
	const uint8_t *q;      /* first weight row */
	const float *w, *m;
	size_t n_in, n_groups; /* from row to row */
	const int8_t *x;       /* first panel */
	const float *dx, *mdx, *sx;
	const int32_t *sum;
	size_t panel;          /* elements from panel to panel */
	size_t n_blocks;       /* to do */
	int first;             /* accumulators start at 0 */
	float *acc;            /* (rows, MOST_VECS, LANES) */
};

#define INLINE static inline __attribute__((always_inline))

/* steps dot products: 4 * steps elements from q and x on. */
INLINE void
dot(__m512i a[], const uint8_t *q, size_t n_in, const int8_t *x, size_t panel,
    const int rows, const int vecs, const int steps)
{
#pragma GCC unroll 8
	for (int k = 0; k < steps; k++) {
		__m512i v[MOST_VECS];

#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			v[j] = _mm512_load_si512(
			    x + (size_t)j * panel + k * LANES * 4);
#pragma GCC unroll 12
		for (int r = 0; r < rows; r++) {
			__m512i b = _mm512_set1_epi32(
			    load_i32(q + (size_t)r * n_in + k * 4));

#pragma GCC unroll 3
			for (int j = 0; j < vecs; j++)
				a[r * vecs + j] = _mm512_dpbusd_epi32(
				    a[r * vecs + j], b, v[j]);
		}
	}
}

/* The integer accumulators' first values; s counts groups of one panel. */
INLINE void
start(__m512i a[], const struct operands *o, size_t s, size_t per_panel,
    const int rows, const int vecs, const int mins)
{
#pragma GCC unroll 3
	for (int j = 0; j < vecs; j++) {
		__m512i init = mins ?
		    _mm512_set1_epi32(START) :
		    _mm512_load_si512(o->sum + (size_t)j * per_panel + s);

#pragma GCC unroll 12
		for (int r = 0; r < rows; r++)
			a[r * vecs + j] = init;
	}
}

/* acc += isum * dx * w, and sx * m; g is the weights' group. */
INLINE void
scale(__m512 acc[], const __m512i a[], const struct operands *o, size_t b,
    size_t g, size_t s, size_t per_panel, const int rows, const int vecs,
    const int mins)
{
	size_t blocks = o->panel / KERN_BLOCK;

#pragma GCC unroll 3
	for (int j = 0; j < vecs; j++) {
		size_t i = (size_t)j * blocks + b;
		__m512 dx = _mm512_load_ps(o->dx + i);
		__m512 mdx = _mm512_load_ps(o->mdx + i);

#pragma GCC unroll 12
		for (int r = 0; r < rows; r++) {
			__m512 u = _mm512_fmadd_ps(
			    _mm512_castsi512_ps(a[r * vecs + j]), dx, mdx);

			acc[r * vecs + j] = _mm512_fmadd_ps(u,
			    _mm512_set1_ps(o->w[(size_t)r * o->n_groups + g]),
			    acc[r * vecs + j]);
		}
		if (!mins)
			continue;
		dx = _mm512_load_ps(o->sx + (size_t)j * per_panel + s);
#pragma GCC unroll 12
		for (int r = 0; r < rows; r++)
			acc[r * vecs + j] = _mm512_fmadd_ps(dx,
			    _mm512_set1_ps(o->m[(size_t)r * o->n_groups + g]),
			    acc[r * vecs + j]);
	}
}

/* A register tile: rows x vecs vectors of tokens, one chunk of K. */
INLINE void
chunk(const struct operands *o, const int rows, const int vecs,
    const int group, const int mins)
{
	__m512i a[12];
	__m512 acc[12];
	const int parts = KERN_BLOCK / group;
	size_t per_panel = o->panel / (size_t)group;

#pragma GCC unroll 12
	for (int i = 0; i < rows * vecs; i++)
		acc[i] = o->first ? _mm512_setzero_ps() :
		                    _mm512_load_ps(o->acc + i / vecs *
		                        MOST_VECS * LANES + i % vecs * LANES);
	for (size_t b = 0; b < o->n_blocks; b++) {
#pragma GCC unroll 2
		for (int h = 0; h < parts; h++) {
			size_t g = b * (size_t)parts + (size_t)h;
			size_t k = g * (size_t)group;

			start(a, o, g * LANES, per_panel, rows, vecs, mins);
			dot(a, o->q + k, o->n_in, o->x + k * LANES, o->panel,
			    rows, vecs, group / 4);
			scale(acc, a, o, b * LANES, g, g * LANES, per_panel,
			    rows, vecs, mins);
		}
	}
#pragma GCC unroll 12
	for (int i = 0; i < rows * vecs; i++)
		_mm512_store_ps(o->acc + i / vecs * MOST_VECS * LANES +
		        i % vecs * LANES,
		    acc[i]);
}

typedef void chunk_fn(const struct operands *);

/* All four kinds of weights, for one shape of register tile. */
#define CHUNK_KIND(rows, vecs, group, mins) \
	static void chunk_##rows##x##vecs##_##group##_##mins( \
	    const struct operands *o) \
	{ \
		chunk(o, rows, vecs, group, mins); \
	}
#define CHUNK_SHAPE(rows, vecs) \
	CHUNK_KIND(rows, vecs, 32, 0) \
	CHUNK_KIND(rows, vecs, 32, 1) \
	CHUNK_KIND(rows, vecs, 16, 0) \
	CHUNK_KIND(rows, vecs, 16, 1)
#define SHAPE_FNS(rows, vecs) \
	{ chunk_##rows##x##vecs##_32_0, chunk_##rows##x##vecs##_32_1, \
		chunk_##rows##x##vecs##_16_0, chunk_##rows##x##vecs##_16_1 }

CHUNK_SHAPE(4, 3)
CHUNK_SHAPE(4, 2)
CHUNK_SHAPE(4, 1)
CHUNK_SHAPE(8, 1)

static chunk_fn *const chunks[][4] = { SHAPE_FNS(4, 1), SHAPE_FNS(4, 2),
	SHAPE_FNS(4, 3) };
static chunk_fn *const chunks_8x1[4] = SHAPE_FNS(8, 1);

/* All rows of the tile, all of K, vecs panels from panel p on. */
static void
panels(float *acc, const struct wtile *w, const struct xquant *x, size_t p,
    size_t vecs)
{
	size_t n_blocks = x->n_in / KERN_BLOCK, parts = KERN_BLOCK / w->group;
	size_t rows = kern_panels(w->n_rows, 4), panel = x->n_in * LANES, r;
	int kind = (w->group == 16) * 2 + w->mins;
	struct operands o = { .n_in = x->n_in, .n_groups = n_blocks * parts,
		.panel = panel };
	const float *sx = w->group == 16 ? x->sx16 : x->sx;
	const int32_t *sum = w->group == 16 ? x->sum16 : x->sum;

	for (size_t b = 0; b < n_blocks; b += CHUNK) {
		size_t s = p * panel / KERN_BLOCK + b * LANES;

		o.n_blocks = n_blocks - b < CHUNK ? n_blocks - b : CHUNK;
		o.first = b == 0;
		o.x = x->q + p * panel + b * KERN_BLOCK * LANES;
		o.dx = x->dx + s;
		o.mdx = x->mdx + s;
		o.sx = sx + s * parts;
		o.sum = sum + s * parts;
		for (r = 0; r < rows;) {
			o.q = (const uint8_t *)w->q + r * x->n_in +
			    b * KERN_BLOCK;
			o.w = w->w + r * o.n_groups + b * parts;
			o.m = w->m + r * o.n_groups + b * parts;
			o.acc = acc + r * MOST_VECS * LANES;
			if (vecs == 1 && rows - r >= 8) {
				chunks_8x1[kind](&o);
				r += 8;
			} else {
				chunks[vecs - 1][kind](&o);
				r += 4;
			}
		}
	}
}

/* Four rows of LANES tokens into LANES rows of four. */
static inline void
turn(float *to, const float *a, size_t stride)
{
	__m512 r[4], s[4];

	for (size_t i = 0; i < 4; i++)
		r[i] = _mm512_load_ps(a + i * stride);
	s[0] = _mm512_unpacklo_ps(r[0], r[1]);
	s[1] = _mm512_unpackhi_ps(r[0], r[1]);
	s[2] = _mm512_unpacklo_ps(r[2], r[3]);
	s[3] = _mm512_unpackhi_ps(r[2], r[3]);
	/* r[j]: tokens j, 4 + j, 8 + j, 12 + j */
	r[0] = _mm512_shuffle_ps(s[0], s[2], 0x44);
	r[1] = _mm512_shuffle_ps(s[0], s[2], 0xee);
	r[2] = _mm512_shuffle_ps(s[1], s[3], 0x44);
	r[3] = _mm512_shuffle_ps(s[1], s[3], 0xee);
	for (size_t j = 0; j < 4; j++) {
		_mm_store_ps(to + 4 * j, _mm512_castps512_ps128(r[j]));
		_mm_store_ps(to + 16 + 4 * j, _mm512_extractf32x4_ps(r[j], 1));
		_mm_store_ps(to + 32 + 4 * j, _mm512_extractf32x4_ps(r[j], 2));
		_mm_store_ps(to + 48 + 4 * j, _mm512_extractf32x4_ps(r[j], 3));
	}
}

/* One panel's accumulators (rows, LANES) turned: y[t * stride + r]. */
static void
store_panel(float *y, size_t stride, const float *acc, size_t n_rows,
    size_t n_tok)
{
	for (size_t r = 0; r < n_rows; r += 4) {
		const float *a = acc + r * MOST_VECS * LANES;
		size_t rows = n_rows - r < 4 ? n_rows - r : 4;
		_Alignas(64) float t[LANES * 4];

		turn(t, a, MOST_VECS * LANES);
		for (size_t l = 0; l < n_tok; l++)
			if (rows == 4)
				_mm_storeu_ps(
				    y + l * stride + r, _mm_load_ps(t + 4 * l));
			else
				for (size_t i = 0; i < rows; i++)
					y[l * stride + r + i] = t[4 * l + i];
	}
}

void
matmul_quant_avx512vnni(float *y, size_t stride, const struct wtile *w,
    const struct xquant *x, size_t t0, size_t n)
{
	_Alignas(64) float acc[KERN_TILE_ROWS * MOST_VECS * LANES];
	size_t first = t0 / LANES, end = (t0 + n + LANES - 1) / LANES, vecs;

	for (size_t p = first; p < end; p += vecs) {
		/* 4 = 2 + 2: a tile of one panel is bound by latency */
		vecs = end - p == 4 ? 2 : end - p < 3 ? end - p : 3;
		panels(acc, w, x, p, vecs);
		for (size_t j = 0; j < vecs; j++) {
			size_t t = (p + j) * LANES;
			size_t tok = t0 + n - t < LANES ? t0 + n - t : LANES;

			store_panel(y + (t - t0) * stride, stride,
			    acc + j * LANES, w->n_rows, tok);
		}
	}
}
