/*
 * Activations into panels of 16 tokens, see matmul_avx512vnni.c:
 *   q    as they are, signed
 *   mdx  -12582912 * dx
 *   sum  the bits of 1.5 * 2^23 less 128 times the sum of a block's quants
 * A quad (see x86.h) has its quants as q[(b * 2 + h) * 64 + token * 16 + k%16],
 * h the half of block b, and scales four times, scale[b * 16 + token * 4 + i].
 */
#include "groups.h"

#include <immintrin.h>
#include <string.h>

#include "x86.h"

enum { LANES = 16 };

#define INLINE static inline __attribute__((always_inline))

/* The largest magnitude; -1 if one is above 2^100 or not a number. */
static inline float
largest(const float *x)
{
	const __m512 limit = _mm512_set1_ps(0x1p+100f);
	__m512 a = _mm512_abs_ps(_mm512_loadu_ps(x));
	__m512 b = _mm512_abs_ps(_mm512_loadu_ps(x + 16));
	__mmask16 good = _mm512_cmp_ps_mask(a, limit, _CMP_LE_OQ) &
	    _mm512_cmp_ps_mask(b, limit, _CMP_LE_OQ);

	if (good != 0xffff)
		return -1;
	return _mm512_reduce_max_ps(_mm512_max_ps(a, b));
}

static inline void
round_block(int8_t *q, const float *x, float inv)
{
	__m512 i = _mm512_set1_ps(inv);

	for (int h = 0; h < 2; h++) {
		__m512 v = _mm512_mul_ps(_mm512_loadu_ps(x + h * 16), i);

		_mm_store_si128((__m128i *)(q + h * 16),
		    _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)));
	}
}

/* sx, sum for the sums of four or eight dot products. */
static inline void
store_sums(float *sx, int32_t *start, __m512i sum, __m512 dx)
{
	_mm512_store_ps(sx, _mm512_mul_ps(dx, _mm512_cvtepi32_ps(sum)));
	_mm512_store_si512(start,
	    _mm512_sub_epi32(
	        _mm512_set1_epi32(START), _mm512_slli_epi32(sum, 7)));
}

/* Block b of the panel whose first scale is s. */
static void
turn_block(struct xquant *to, size_t s, int8_t q[LANES][KERN_BLOCK], __m512 dx)
{
	const __m512i ones = _mm512_set1_epi8(1);
	const __m512i rows = _mm512_mullo_epi32(_mm512_set1_epi32(KERN_BLOCK),
	    _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
	        15));
	__m512i sum[2];

	for (int h = 0; h < 2; h++) {
		sum[h] = _mm512_setzero_si512();
		for (int k = h * 4; k < h * 4 + 4; k++) {
			__m512i v = _mm512_i32gather_epi32(
			    rows, &q[0][k * 4], 1);

			_mm512_store_si512(
			    to->q + s * KERN_BLOCK + k * LANES * 4, v);
			sum[h] = _mm512_dpbusd_epi32(sum[h], ones, v);
		}
		store_sums(to->sx16 + 2 * s + h * LANES,
		    to->sum16 + 2 * s + h * LANES, sum[h], dx);
	}
	store_sums(to->sx + s, to->sum + s, _mm512_add_epi32(sum[0], sum[1]),
	    dx);
	_mm512_store_ps(to->dx + s, dx);
	_mm512_store_ps(to->mdx + s,
	    _mm512_mul_ps(_mm512_set1_ps(-12582912.0f), dx));
}

/*
 * Block b of quad j: s is its first scale, to_q its quants, and q (4) the four
 * tokens.
 */
INLINE void
quad_block(struct xquant *to, size_t s, int8_t *to_q,
    int8_t q[][KERN_BLOCK], __m512 dx)
{
	const __m512i ones = _mm512_set1_epi8(1);
	__m512i sum[2];

	for (int h = 0; h < 2; h++) {
		__m512i v;

		for (int t = 0; t < 4; t++)
			memcpy(to_q + h * 64 + t * 16, q[t] + h * 16, 16);
		v = _mm512_dpbusd_epi32(_mm512_setzero_si512(), ones,
		    _mm512_loadu_si512(to_q + h * 64));
		v = _mm512_add_epi32(v, _mm512_shuffle_epi32(v, 0xb1));
		sum[h] = _mm512_add_epi32(v, _mm512_shuffle_epi32(v, 0x4e));
		store_sums(to->sx16 + 2 * s + h * LANES,
		    to->sum16 + 2 * s + h * LANES, sum[h], dx);
	}
	store_sums(to->sx + s, to->sum + s, _mm512_add_epi32(sum[0], sum[1]),
	    dx);
	_mm512_store_ps(to->dx + s, dx);
	_mm512_store_ps(to->mdx + s,
	    _mm512_mul_ps(_mm512_set1_ps(-12582912.0f), dx));
}

static inline void
quads_block(struct xquant *to, size_t first, size_t b, size_t quads,
    int8_t q[LANES][KERN_BLOCK], __m512 dx)
{
	const __m512i spread = _mm512_setr_epi32(
	    0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
	size_t n_blocks = to->n_in / KERN_BLOCK;

	for (size_t j = 0; j < quads; j++) {
		__m512i lanes = _mm512_add_epi32(
		    spread, _mm512_set1_epi32((int)(4 * j)));

		quad_block(to, (first / LANES + j) * n_blocks * LANES +
		        b * LANES,
		    to->q + first * to->n_in + j * 4 * to->n_in +
		        b * 4 * KERN_BLOCK,
		    q + 4 * j, _mm512_permutexvar_ps(lanes, dx));
	}
}

/*
 * n tokens from `first` on, n <= LANES, of block b; returns the index of a bad
 * token, or n.
 */
static size_t
pack_block(struct xquant *to, size_t first, size_t b, const float *x,
    size_t stride, size_t n, size_t quads)
{
	_Alignas(64) int8_t q[LANES][KERN_BLOCK];
	_Alignas(64) float amax[LANES] = { 0 }, inv[LANES];
	__m512 a, d;
	__mmask16 zero;

	for (size_t l = 0; l < n; l++) {
		amax[l] = largest(x + l * stride);
		if (amax[l] < 0)
			return l;
	}
	a = _mm512_load_ps(amax);
	zero = _mm512_cmp_ps_mask(a, _mm512_set1_ps(0x1p-100f), _CMP_LT_OQ);
	d = _mm512_div_ps(a, _mm512_set1_ps(127.0f));
	d = _mm512_castsi512_ps(_mm512_and_si512(
	    _mm512_castps_si512(d), _mm512_set1_epi32(~3)));
	d = _mm512_mask_mov_ps(d, zero, _mm512_setzero_ps());
	_mm512_store_ps(inv,
	    _mm512_maskz_div_ps(
	        (__mmask16)~zero, _mm512_set1_ps(127.0f), a));
	for (size_t l = 0; l < n; l++)
		round_block(q[l], x + l * stride, inv[l]);
	for (size_t l = n; l < LANES; l++)
		memset(q[l], 0, KERN_BLOCK);
	if (quads)
		quads_block(to, first, b, quads, q, d);
	else
		turn_block(to, first / LANES * (to->n_in / KERN_BLOCK) * LANES +
		        b * LANES, q, d);
	return n;
}

size_t
pack_quant_avx512vnni(struct xquant *to, size_t t0, size_t n, const float *x,
    size_t stride)
{
	size_t n_blocks = to->n_in / KERN_BLOCK, bad = n;

	for (size_t t = 0; t < n && bad == n; t += LANES) {
		size_t tok = n - t < LANES ? n - t : LANES;
		size_t quads = tok < LANES ? tail_quads(to->n_tok) : 0;

		for (size_t b = 0; b < n_blocks; b++) {
			size_t good = pack_block(to, t0 + t, b,
			    x + t * stride + b * KERN_BLOCK, stride, tok,
			    quads);

			if (good < tok && t + good < bad)
				bad = t + good;
		}
	}
	return bad;
}
