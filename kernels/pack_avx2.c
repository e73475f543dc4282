/*
 * Activations into panels of 16 tokens for the groups of 256 bits:
 *   q    as they are, signed
 *   mdx  -12582912 * dx
 *   sum  sums of a block's quants, sum16 of half a block's
 */
#include "v16_avx2.h"

#include <string.h>

#include "groups.h"
#include "x86.h"

enum { LANES = 16 };

/* The largest magnitude; -1 if one is above 2^100 or not a number. */
INLINE float
largest(const float *x)
{
	const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
	const __m256 limit = _mm256_set1_ps(0x1p+100f);
	__m256 max = _mm256_setzero_ps(), bad = max;
	__m128 m;

	for (int i = 0; i < KERN_BLOCK; i += 8) {
		__m256 a = _mm256_and_ps(_mm256_loadu_ps(x + i), mask);

		bad = _mm256_or_ps(
		    bad, _mm256_cmp_ps(a, limit, _CMP_NLE_UQ));
		max = _mm256_max_ps(max, a);
	}
	if (_mm256_movemask_ps(bad))
		return -1;
	m = _mm_max_ps(
	    _mm256_castps256_ps128(max), _mm256_extractf128_ps(max, 1));
	m = _mm_max_ps(m, _mm_movehl_ps(m, m));
	return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

INLINE __m256i
rounded(const float *x, __m256 inv)
{
	return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inv));
}

INLINE void
round_block(int8_t *q, const float *x, float scale)
{
	const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
	__m256 inv = _mm256_set1_ps(scale);
	/* packing works within the 128-bit parts: dwords 0 4 1 5 2 6 3 7 */
	__m256i a = _mm256_packs_epi32(rounded(x, inv), rounded(x + 8, inv));
	__m256i b =
	    _mm256_packs_epi32(rounded(x + 16, inv), rounded(x + 24, inv));

	_mm256_store_si256((__m256i *)q,
	    _mm256_permutevar8x32_epi32(_mm256_packs_epi16(a, b), order));
}

/* Sums of the four bytes of each lane. */
INLINE __m256i
byte_sums(__m256i v)
{
	return _mm256_madd_epi16(
	    _mm256_maddubs_epi16(_mm256_set1_epi8(1), v),
	    _mm256_set1_epi16(1));
}

INLINE void
store_sums(float *sx, int32_t *to, __m256i sum, __m256 dx)
{
	_mm256_store_ps(sx, _mm256_mul_ps(dx, _mm256_cvtepi32_ps(sum)));
	_mm256_store_si256((__m256i *)to, sum);
}

/* Eight tokens of the block whose first scale is s; l is 0 or 8. */
static inline void
turn_half(struct xquant *to, size_t s, size_t l, int8_t q[][KERN_BLOCK],
    const float *dx)
{
	__m256 r[8], d = _mm256_load_ps(dx + l);
	__m256i sum[2] = { _mm256_setzero_si256(), _mm256_setzero_si256() };
	int8_t *at = to->q + s * KERN_BLOCK + l * 4;

	for (size_t i = 0; i < 8; i++)
		r[i] = _mm256_load_ps((const float *)(const void *)q[l + i]);
	v8_turn(r);
	for (size_t k = 0; k < 8; k++) {
		__m256i v = _mm256_castps_si256(r[k]);

		_mm256_store_si256((__m256i *)(at + k * LANES * 4), v);
		sum[k / 4] = _mm256_add_epi32(sum[k / 4], byte_sums(v));
	}
	for (size_t h = 0; h < 2; h++)
		store_sums(to->sx16 + 2 * s + h * LANES + l,
		    to->sum16 + 2 * s + h * LANES + l, sum[h], d);
	store_sums(to->sx + s + l, to->sum + s + l,
	    _mm256_add_epi32(sum[0], sum[1]), d);
	_mm256_store_ps(to->dx + s + l, d);
	_mm256_store_ps(to->mdx + s + l,
	    _mm256_mul_ps(_mm256_set1_ps(-12582912.0f), d));
}

/* dx and 127 / amax; both 0 where amax is below 2^-100. */
INLINE void
scales(float *dx, float *inv, const float *amax)
{
	const __m256 most = _mm256_set1_ps(127.0f);
	const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(~3));

	for (int l = 0; l < LANES; l += 8) {
		__m256 a = _mm256_load_ps(amax + l);
		__m256 d = _mm256_and_ps(_mm256_div_ps(a, most), mask);
		__m256 some = _mm256_cmp_ps(
		    a, _mm256_set1_ps(0x1p-100f), _CMP_GE_OQ);

		_mm256_store_ps(dx + l, _mm256_and_ps(d, some));
		_mm256_store_ps(inv + l,
		    _mm256_and_ps(_mm256_div_ps(most, a), some));
	}
}

/* n tokens of one block, n <= LANES; returns the index of a bad token, or n. */
static size_t
pack_block(struct xquant *to, size_t s, const float *x, size_t stride, size_t n)
{
	_Alignas(32) int8_t q[LANES][KERN_BLOCK];
	_Alignas(32) float amax[LANES] = { 0 }, inv[LANES], dx[LANES];

	for (size_t l = 0; l < n; l++) {
		amax[l] = largest(x + l * stride);
		if (amax[l] < 0)
			return l;
	}
	scales(dx, inv, amax);
	for (size_t l = 0; l < n; l++)
		round_block(q[l], x + l * stride, inv[l]);
	for (size_t l = n; l < LANES; l++)
		memset(q[l], 0, KERN_BLOCK);
	turn_half(to, s, 0, q, dx);
	turn_half(to, s, 8, q, dx);
	return n;
}

size_t
pack_quant_avx2(struct xquant *to, size_t t0, size_t n, const float *x,
    size_t stride)
{
	size_t n_blocks = to->n_in / KERN_BLOCK, bad = n;

	for (size_t t = 0; t < n && bad == n; t += LANES) {
		size_t tok = n - t < LANES ? n - t : LANES;
		size_t s = (t0 + t) * n_blocks;

		for (size_t b = 0; b < n_blocks; b++) {
			size_t good = pack_block(to, s + b * LANES,
			    x + t * stride + b * KERN_BLOCK, stride, tok);

			if (good < tok && t + good < bad)
				bad = t + good;
		}
	}
	return bad;
}
