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
 * four rows; a draft of that reached 0.62 of peak.
 */
#include "groups.h"

#include <string.h>

#include "v16_avx512.h"
#include "x86.h"

enum {
	LANES = 16,
	MOST_VECS = 3
};

/* Where a register tile finds its operands, at the first block of a chunk. */
struct operands {
	const uint8_t *q;      /* first weight row; rows are CHUNK apart */
	const float *w, *m;    /* CHUNK / group apart */
	const int8_t *x;       /* first panel */
	const float *dx, *mdx, *sx;
	const int32_t *sum;
	size_t panel;          /* elements from panel to panel */
	size_t n_blocks;       /* to do */
	int first;             /* accumulators start at 0 */
	float *acc;            /* (rows, MOST_VECS, LANES) */
};

/* steps dot products: 4 * steps elements from q and x on. */
INLINE void
dot(__m512i a[], const uint8_t *q, const int8_t *x, size_t panel,
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
			    load_i32(q + r * CHUNK + k * 4));

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
    const int group, const int mins)
{
	const int groups = CHUNK / group;
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
			    _mm512_set1_ps(o->w[(size_t)(r * groups) + g]),
			    acc[r * vecs + j]);
		}
		if (!mins)
			continue;
		dx = _mm512_load_ps(o->sx + (size_t)j * per_panel + s);
#pragma GCC unroll 12
		for (int r = 0; r < rows; r++)
			acc[r * vecs + j] = _mm512_fmadd_ps(dx,
			    _mm512_set1_ps(o->m[(size_t)(r * groups) + g]),
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
			dot(a, o->q + k, o->x + k * LANES, o->panel, rows,
			    vecs, group / 4);
			scale(acc, a, o, b * LANES, g, g * LANES, per_panel,
			    rows, vecs, group, mins);
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
CHUNK_SHAPE(8, 1)

/* By the number of vectors; two need as many rows for each load as three. */
static chunk_fn *const chunks[][4] = { SHAPE_FNS(8, 1), SHAPE_FNS(4, 2),
	SHAPE_FNS(4, 3) };

/*
 * Lines of y that are written when the last chunk is done.  Rows of y are far
 * apart, no prefetcher sees them coming.
 */
static void
fetch_results(const float *y, size_t stride, size_t n_rows, size_t n_tok)
{
	for (size_t t = 0; t < n_tok; t++)
		for (size_t r = 0; r < n_rows; r += 16)
			_mm_prefetch(
			    (const char *)(y + t * stride + r), _MM_HINT_T0);
}

/*
 * All rows of the tile, all of K, vecs panels from panel p on; y is where their
 * first token goes.
 */
static void
panels(float *acc, const struct wtile *w, const struct xquant *x, size_t p,
    size_t vecs, struct ahead *next, const float *y, size_t stride)
{
	size_t parts = KERN_BLOCK / w->group, groups = CHUNK / w->group;
	size_t rows = kern_panels(w->n_rows, 8), panel = x->n_in * LANES;
	int kind = (w->group == 16) * 2 + w->mins;
	struct operands o = { .panel = panel };
	const float *sx = w->group == 16 ? x->sx16 : x->sx;
	const int32_t *sum = w->group == 16 ? x->sum16 : x->sum;

	for (size_t k = 0; k < x->n_in; k += CHUNK) {
		size_t s = (p * panel + k * LANES) / KERN_BLOCK;
		size_t row = k / CHUNK * rows, end = row + rows;

		o.n_blocks = (x->n_in - k < CHUNK ? x->n_in - k : CHUNK) /
		    KERN_BLOCK;
		o.first = k == 0;
		o.x = x->q + p * panel + k * LANES;
		o.dx = x->dx + s;
		o.mdx = x->mdx + s;
		o.sx = sx + s * parts;
		o.sum = sum + s * parts;
		o.acc = acc;
		for (size_t step; row < end; row += step) {
			o.q = (const uint8_t *)w->q + row * CHUNK;
			o.w = w->w + row * groups;
			o.m = w->m + row * groups;
			step = vecs == 1 ? 8 : 4;
			chunks[vecs - 1][kind](&o);
			fetch_ahead(next);
			if (k + CHUNK >= x->n_in) {
				size_t done = row + rows - end;
				size_t t = done * vecs * LANES / rows;
				size_t u = (done + step) * vecs * LANES / rows;

				fetch_results(y + t * stride, stride,
				    w->n_rows, u - t);
			}
			o.acc += step * MOST_VECS * LANES;
		}
	}
}

/*
 * One panel's accumulators (rows, LANES) turned: y[t * stride + r].  Sixteen
 * rows at a time, because a token's row of y is far from the next one's: whole
 * lines are written once.
 */
static void
store_panel(float *y, size_t stride, const float *acc, size_t n_rows,
    size_t n_tok)
{
	for (size_t r = 0; r < n_rows; r += 16) {
		size_t rows = n_rows - r < 16 ? n_rows - r : 16;
		v16 v[16];

		for (size_t i = 0; i < 16; i++)
			v[i] = v16_load(acc + (r + i) * MOST_VECS * LANES);
		v16_turn(v);
		for (size_t l = 0; l < n_tok; l++)
			if (rows == 16)
				v16_store(y + l * stride + r, v[l]);
			else
				v16_store_n(y + l * stride + r, v[l], rows);
	}
}

/*
 * Quads: four tokens whose activations lie 16 bytes at a time, token after
 * token.  A register holds the sums of one row with four tokens in four parts;
 * four rows' parts are added while they are turned, so that a lane is (token,
 * row): 2 dot products per row and block of 32.
 */
struct quad {
	const uint8_t *q;   /* 8 rows of a chunk */
	const float *w, *m; /* [group][8 rows] */
	const int8_t *x;
	const float *dx, *mdx, *sx;
	const int32_t *sum;
};

/* 16 weights in all four parts. */
INLINE __m512i
spread(const uint8_t *q)
{
	return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)q));
}

/* Lane (token, row) of the sums of four rows. */
INLINE __m512i
add_parts(const __m512i a[4])
{
	__m512i s = _mm512_add_epi32(_mm512_unpacklo_epi32(a[0], a[1]),
	    _mm512_unpackhi_epi32(a[0], a[1]));
	__m512i t = _mm512_add_epi32(_mm512_unpacklo_epi32(a[2], a[3]),
	    _mm512_unpackhi_epi32(a[2], a[3]));

	return _mm512_add_epi32(
	    _mm512_unpacklo_epi64(s, t), _mm512_unpackhi_epi64(s, t));
}

/* Four rows from r on; group g of the chunk. */
INLINE __m512
quad_rows(__m512 acc, const struct quad *o, size_t r, size_t g,
    const int group, const int mins)
{
	const uint8_t *q = o->q + r * CHUNK + g * (size_t)group;
	const int8_t *x = o->x + g * (size_t)group * 4;
	size_t b = g / (size_t)(KERN_BLOCK / group) * LANES;
	__m512i a[4], sum;
	__m512 u;

#pragma GCC unroll 4
	for (size_t i = 0; i < 4; i++) {
		a[i] = _mm512_dpbusd_epi32(_mm512_setzero_si512(),
		    spread(q + i * CHUNK), _mm512_loadu_si512(x));
		if (group == 32)
			a[i] = _mm512_dpbusd_epi32(a[i],
			    spread(q + i * CHUNK + 16),
			    _mm512_loadu_si512(x + 64));
	}
	sum = _mm512_add_epi32(add_parts(a),
	    mins ? _mm512_set1_epi32(START) :
	           _mm512_load_si512(o->sum + g * LANES));
	u = _mm512_fmadd_ps(_mm512_castsi512_ps(sum),
	    _mm512_load_ps(o->dx + b), _mm512_load_ps(o->mdx + b));
	acc = _mm512_fmadd_ps(u,
	    _mm512_broadcast_f32x4(_mm_load_ps(o->w + 8 * g + r)), acc);
	if (mins)
		acc = _mm512_fmadd_ps(_mm512_load_ps(o->sx + g * LANES),
		    _mm512_broadcast_f32x4(_mm_load_ps(o->m + 8 * g + r)),
		    acc);
	return acc;
}

/* n elements of a chunk of eight rows: two chains of additions. */
INLINE void
quad_groups(__m512 acc[2], const struct quad *at, size_t n, const int group,
    const int mins)
{
	const struct quad o = *at;
	__m512 a = acc[0], b = acc[1];

	for (size_t g = 0; g < n / (size_t)group; g++) {
		a = quad_rows(a, &o, 0, g, group, mins);
		b = quad_rows(b, &o, 4, g, group, mins);
	}
	acc[0] = a;
	acc[1] = b;
}

/* n floats of eight rows, n apart, side by side; n is 8 or 16. */
static inline void
turn_scales(float *to, const float *from, size_t n)
{
	for (size_t i = 0; i < n; i += 4)
		for (size_t r = 0; r < 8; r += 4) {
			__m128 a = _mm_load_ps(from + r * n + i);
			__m128 b = _mm_load_ps(from + (r + 1) * n + i);
			__m128 c = _mm_load_ps(from + (r + 2) * n + i);
			__m128 d = _mm_load_ps(from + (r + 3) * n + i);

			_MM_TRANSPOSE4_PS(a, b, c, d);
			_mm_store_ps(to + 8 * i + r, a);
			_mm_store_ps(to + 8 * i + 8 + r, b);
			_mm_store_ps(to + 8 * i + 16 + r, c);
			_mm_store_ps(to + 8 * i + 24 + r, d);
		}
}

/* lane (token, row) to y[t * stride + r]. */
static inline void
store_quad(float *y, size_t stride, __m512 acc, size_t rows, size_t n_tok)
{
	_Alignas(64) float t[LANES];

	_mm512_store_ps(t, acc);
	for (size_t l = 0; l < n_tok; l++)
		memcpy(y + l * stride, t + 4 * l, rows * sizeof *y);
}

/* n elements of eight rows; `row` counts those of all chunks. */
static void
quad_chunk(__m512 acc[2], const struct wtile *w, const struct quad *at,
    size_t row, size_t n)
{
	_Alignas(64) float scales[2][CHUNK / 16 * 8];
	size_t groups = CHUNK / w->group;
	struct quad o = *at;

	turn_scales(scales[0], w->w + row * groups, groups);
	if (w->mins)
		turn_scales(scales[1], w->m + row * groups, groups);
	o.q = (const uint8_t *)w->q + row * CHUNK;
	o.w = scales[0];
	o.m = scales[1];
	if (w->group == 32 && w->mins)
		quad_groups(acc, &o, n, 32, 1);
	else if (w->group == 32)
		quad_groups(acc, &o, n, 32, 0);
	else if (w->mins)
		quad_groups(acc, &o, n, 16, 1);
	else
		quad_groups(acc, &o, n, 16, 0);
}

/* All rows times n_tok <= 4 tokens; o has the quad's activations. */
static void
one_quad(float *y, size_t stride, const struct wtile *w, const struct quad *o,
    size_t n_tok, struct ahead *next)
{
	size_t rows = kern_panels(w->n_rows, 8), parts = KERN_BLOCK / w->group;

	for (size_t r = 0; r < rows; r += 8) {
		__m512 acc[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() };
		struct quad at = *o;

		for (size_t k = 0; k < w->n_in; k += CHUNK) {
			size_t n = w->n_in - k < CHUNK ? w->n_in - k : CHUNK;

			quad_chunk(acc, w, &at, k / CHUNK * rows + r, n);
			fetch_ahead(next);
			fetch_ahead(next);
			at.x += 4 * n;
			at.dx += n / KERN_BLOCK * LANES;
			at.mdx += n / KERN_BLOCK * LANES;
			at.sx += n / KERN_BLOCK * parts * LANES;
			at.sum += n / KERN_BLOCK * parts * LANES;
		}
		for (size_t i = 0; i < 8 && r + i < w->n_rows; i += 4)
			store_quad(y + r + i, stride, acc[i / 4],
			    w->n_rows - r - i < 4 ? w->n_rows - r - i : 4,
			    n_tok);
	}
}

/* The last n tokens, from t on: 4 per quad. */
static void
quads(float *y, size_t stride, const struct wtile *w, const struct xquant *x,
    size_t t, size_t n, struct ahead *next)
{
	size_t parts = KERN_BLOCK / w->group, n_blocks = x->n_in / KERN_BLOCK;

	for (size_t j = 0; 4 * j < n; j++) {
		size_t s = (t / LANES + j) * n_blocks * LANES;
		struct quad o = { .x = x->q + t * x->n_in + j * 4 * x->n_in,
			.dx = x->dx + s,
			.mdx = x->mdx + s,
			.sx = parts == 1 ? x->sx + s : x->sx16 + 2 * s,
			.sum = parts == 1 ? x->sum + s : x->sum16 + 2 * s };

		one_quad(y + 4 * j * stride, stride, w, &o,
		    n - 4 * j < 4 ? n - 4 * j : 4, next);
	}
}

void
matmul_quant_avx512vnni(float *y, size_t stride, const struct wtile *w,
    const struct xquant *x, size_t t0, size_t n)
{
	/* as many rows as store_panel reads */
	_Alignas(64) float acc[(KERN_TILE_ROWS + 8) * MOST_VECS * LANES];
	size_t last = x->n_tok / LANES, end = (t0 + n + LANES - 1) / LANES;
	int tail = end > last && tail_quads(x->n_tok);
	/* calls for each vector of up to three panels, or each quad */
	size_t calls = (w->n_in + CHUNK - 1) / CHUNK * ((w->n_rows + 3) / 4);
	struct ahead next;
	size_t vecs;

	end -= (size_t)tail;
	next = ahead(w->next, w->next_bytes,
	    calls * ((end - t0 / LANES + 2) / 3 + (size_t)(tail && end <= t0 / LANES)));
	for (size_t p = t0 / LANES; p < end; p += vecs) {
		/* 4 = 2 + 2: a tile of one panel is bound by latency */
		vecs = end - p == 4 ? 2 : end - p < 3 ? end - p : 3;
		panels(acc, w, x, p, vecs, &next,
		    y + (p * LANES - t0) * stride, stride);
		for (size_t j = 0; j < vecs; j++) {
			size_t t = (p + j) * LANES;
			size_t tok = t0 + n - t < LANES ? t0 + n - t : LANES;

			store_panel(y + (t - t0) * stride, stride,
			    acc + j * LANES, w->n_rows, tok);
		}
	}
	if (tail) {
		size_t t = last * LANES;

		quads(
		    y + (t - t0) * stride, stride, w, x, t, t0 + n - t, &next);
	}
}
