/*
 * Matrix products for the AdvSIMD groups.  Quants are signed on both sides, so
 * that a sum needs no correction; it is converted and scaled as dllm-numbers(7)
 * says.  A vector holds the outputs of UNIT_ROWS rows and UNIT_TOKENS tokens.
 * Included by a file that has included v16_neon.h and defines
 *
 *   MATMUL       the function's name
 *   UNIT_ROWS, UNIT_TOKENS
 *                1 and 4, or 2 and 2: lanes are (row, token), rows first
 *   TILE_UNITS   units of rows in a register tile, beside 4 vectors of tokens
 *   dots(a, q, x, vecs, n)
 *                integer sums of n elements of K, a (TILE_UNITS, vecs); q is
 *                CHUNK * UNIT_ROWS from unit to unit
 *   row_vec(p, stride)
 *                a unit's rows' numbers, from p[0] and p[stride], to all lanes
 *   token_vec(p) a unit's tokens' numbers
 *   by_token(v, acc, stride)
 *                v (UNIT_TOKENS): four rows' outputs; units are stride apart
 *
 * K is cut into chunks with the float accumulators in memory between them, for
 * the reasons in matmul_avx512vnni.c.  Shapes were chosen by counting registers
 * and instructions and were not measured on any Arm CPU.
 */
#include "groups.h"

#include "simd.h"

enum {
	LANES = 16,
	VECS = LANES / UNIT_TOKENS, /* of a panel */
	TILE_VECS = 4,
	TILE = TILE_UNITS * UNIT_ROWS, /* rows */
	MOST_PANELS = 3, /* that one pass over K takes along */
	/* accumulators from unit to unit; a vector's four lie together */
	ACC_STRIDE = MOST_PANELS * VECS * 4
};

/* Where a register tile finds its operands, at the first block of a chunk. */
struct operands {
	const int8_t *q;    /* first unit of rows */
	const float *w, *m; /* CHUNK / group from row to row */
	const int8_t *x;    /* first vector of tokens */
	const float *dx, *sx;
	size_t n_blocks;    /* to do */
	int first;          /* accumulators start at 0 */
	float *acc;
};

/* acc += isum * dx * w, and sx * m. */
INLINE void
scale(const struct operands *o, const int32x4_t a[], size_t b, size_t g,
    int first, const int vecs, const int group, const int mins)
{
	const size_t groups = (size_t)(CHUNK / group);
	float32x4_t w[TILE_UNITS], m[TILE_UNITS];

#pragma GCC unroll 4
	for (size_t u = 0; u < TILE_UNITS; u++) {
		size_t at = u * UNIT_ROWS * groups + g;

		w[u] = row_vec(o->w + at, groups);
		m[u] = mins ? row_vec(o->m + at, groups) : w[u];
	}
#pragma GCC unroll 4
	for (int j = 0; j < vecs; j++) {
		float32x4_t dx = token_vec(o->dx + b * LANES + j * UNIT_TOKENS);
		float32x4_t sx = mins ?
		    token_vec(o->sx + g * LANES + j * UNIT_TOKENS) : dx;

#pragma GCC unroll 4
		for (int u = 0; u < TILE_UNITS; u++) {
			float *at = o->acc + u * ACC_STRIDE + j * 4;
			float32x4_t s = first ? vdupq_n_f32(0) : vld1q_f32(at);

			s = vfmaq_f32(s, vmulq_f32(
			    vcvtq_f32_s32(a[u * vecs + j]), dx), w[u]);
			if (mins)
				s = vfmaq_f32(s, sx, m[u]);
			vst1q_f32(at, s);
		}
	}
}

/* A register tile: TILE_UNITS x vecs vectors, one chunk of K. */
INLINE void
chunk(const struct operands *o, const int vecs, const int group, const int mins)
{
	const size_t parts = (size_t)(KERN_BLOCK / group);
	int32x4_t a[TILE_UNITS * TILE_VECS];

	for (size_t g = 0; g < o->n_blocks * parts; g++) {
		size_t k = g * (size_t)group;

		dots(a, o->q + k * UNIT_ROWS, o->x + k * LANES, vecs, group);
		scale(o, a, g / parts, g, o->first && g == 0, vecs, group,
		    mins);
	}
}

typedef void chunk_fn(const struct operands *);

#define CHUNK_FN(name, vecs, group, mins) \
	static void name##_##vecs(const struct operands *o) \
	{ \
		chunk(o, vecs, group, mins); \
	}
#define CHUNK_FNS(name, group, mins) \
	CHUNK_FN(name, 1, group, mins) \
	CHUNK_FN(name, 2, group, mins) \
	CHUNK_FN(name, 3, group, mins) \
	CHUNK_FN(name, 4, group, mins)
#define ENTRIES(name) { name##_1, name##_2, name##_3, name##_4 }

CHUNK_FNS(g32, 32, 0)
CHUNK_FNS(g32_mins, 32, 1)
CHUNK_FNS(g16, 16, 0)
CHUNK_FNS(g16_mins, 16, 1)

/* [groups of 16][mins][vectors less 1] */
static chunk_fn *const chunks[2][2][TILE_VECS] = {
	{ ENTRIES(g32), ENTRIES(g32_mins) },
	{ ENTRIES(g16), ENTRIES(g16_mins) },
};

/* One chunk of all rows and `tok` tokens; o has the panel's operands. */
static void
panel_chunk(const struct operands *panel, const struct wtile *w, size_t row,
    size_t rows, size_t tok, struct ahead *next)
{
	size_t groups = CHUNK / w->group;
	size_t n = (tok + UNIT_TOKENS - 1) / UNIT_TOKENS;

	for (size_t r = 0; r < rows; r += TILE) {
		for (size_t j = 0; j < n; j += TILE_VECS) {
			size_t vecs = n - j < TILE_VECS ? n - j : TILE_VECS;
			struct operands o = *panel;

			o.q = w->q + (row + r) * CHUNK;
			o.w = w->w + (row + r) * groups;
			o.m = w->m + (row + r) * groups;
			o.x += j * 16;
			o.dx += j * UNIT_TOKENS;
			o.sx += j * UNIT_TOKENS;
			o.acc += r / UNIT_ROWS * ACC_STRIDE + j * 4;
			chunks[w->group == 16][w->mins][vecs - 1](&o);
		}
		fetch_ahead(next);
	}
}

/* All rows of the tile, all of K, n panels from panel p on. */
static void
panels(float *acc, const struct wtile *w, const struct xquant *x, size_t p,
    size_t n, struct ahead *next)
{
	size_t parts = KERN_BLOCK / w->group, rows = kern_panels(w->n_rows, 8);
	const float *sx = w->group == 16 ? x->sx16 : x->sx;

	for (size_t k = 0; k < x->n_in; k += CHUNK)
		for (size_t j = 0; j < n; j++) {
			size_t at = (p + j) * x->n_in * LANES + k * LANES;
			size_t s = at / KERN_BLOCK;
			size_t tok = x->n_tok - (p + j) * LANES;
			struct operands o = { .x = x->q + at, .dx = x->dx + s,
				.sx = sx + s * parts, .first = k == 0,
				.acc = acc + j * VECS * 4 };

			o.n_blocks =
			    (x->n_in - k < CHUNK ? x->n_in - k : CHUNK) /
			    KERN_BLOCK;
			panel_chunk(&o, w, k / CHUNK * rows, rows,
			    tok < LANES ? tok : LANES, next);
		}
}

/* One panel's accumulators to y[t * stride + r]. */
static void
store_panel(float *y, size_t stride, const float *acc, size_t n_rows,
    size_t n_tok)
{
	for (size_t r = 0; r < n_rows; r += 4)
		for (size_t t = 0; t < n_tok; t += UNIT_TOKENS) {
			size_t rows = n_rows - r < 4 ? n_rows - r : 4;
			size_t tok = n_tok - t < UNIT_TOKENS ? n_tok - t :
			                                       UNIT_TOKENS;
			float32x4_t v[UNIT_TOKENS];
			float some[4];

			by_token(v, acc + r / UNIT_ROWS * ACC_STRIDE +
			        t / UNIT_TOKENS * 4, ACC_STRIDE);
			for (size_t l = 0; l < tok; l++) {
				float *to = y + (t + l) * stride + r;

				if (rows == 4) {
					vst1q_f32(to, v[l]);
					continue;
				}
				vst1q_f32(some, v[l]);
				memcpy(to, some, rows * sizeof *some);
			}
		}
}

void
MATMUL(float *y, size_t stride, const struct wtile *w, const struct xquant *x,
    size_t t0, size_t n)
{
	_Alignas(64) float acc[KERN_TILE_ROWS / UNIT_ROWS * ACC_STRIDE];
	size_t end = kern_panels(t0 + n, LANES) / LANES, some;
	size_t calls = (end - t0 / LANES) * ((w->n_in + CHUNK - 1) / CHUNK) *
	    (w->n_rows / TILE + 1);
	struct ahead next = ahead(w->next, w->next_bytes, calls);

	for (size_t p = t0 / LANES; p < end; p += some) {
		some = end - p < MOST_PANELS ? end - p : MOST_PANELS;
		panels(acc, w, x, p, some, &next);
		for (size_t j = 0; j < some; j++) {
			size_t t = (p + j) * LANES;
			size_t tok = t0 + n - t < LANES ? t0 + n - t : LANES;

			store_panel(y + (t - t0) * stride, stride,
			    acc + j * VECS * 4, w->n_rows, tok);
		}
	}
}
