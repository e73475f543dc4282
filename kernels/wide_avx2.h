/*
 * Sixteen doubles and sixteen words as registers of AVX2; see wide_avx512.h,
 * which has the same functions.
 */
#ifndef WIDE_H
#define WIDE_H

#include "v16_avx2.h"

typedef struct {
	__m256d v[4];
} d16;

typedef struct {
	__m256i a, b; /* lanes 0 to 7, 8 to 15 */
} w16;

INLINE d16
d16_all(double x)
{
	__m256d v = _mm256_set1_pd(x);

	return (d16){ { v, v, v, v } };
}

INLINE d16
d16_from(v16 x)
{
	return (d16){ { _mm256_cvtps_pd(_mm256_castps256_ps128(x.a)),
		_mm256_cvtps_pd(_mm256_extractf128_ps(x.a, 1)),
		_mm256_cvtps_pd(_mm256_castps256_ps128(x.b)),
		_mm256_cvtps_pd(_mm256_extractf128_ps(x.b, 1)) } };
}

INLINE v16
d16_round(d16 x)
{
	return (v16){ _mm256_set_m128(
		          _mm256_cvtpd_ps(x.v[1]), _mm256_cvtpd_ps(x.v[0])),
		_mm256_set_m128(
		    _mm256_cvtpd_ps(x.v[3]), _mm256_cvtpd_ps(x.v[2])) };
}

INLINE d16
d16_add(d16 x, d16 y)
{
	for (int i = 0; i < 4; i++)
		x.v[i] = _mm256_add_pd(x.v[i], y.v[i]);
	return x;
}

INLINE d16
d16_div(d16 x, d16 y)
{
	for (int i = 0; i < 4; i++)
		x.v[i] = _mm256_div_pd(x.v[i], y.v[i]);
	return x;
}

/* The tree of sum16.h. */
INLINE double
d16_sum(d16 x)
{
	__m256d b = _mm256_add_pd(_mm256_add_pd(x.v[0], x.v[2]),
	    _mm256_add_pd(x.v[1], x.v[3]));
	__m128d c = _mm_add_pd(
	    _mm256_castpd256_pd128(b), _mm256_extractf128_pd(b, 1));

	return _mm_cvtsd_f64(_mm_add_sd(c, _mm_unpackhi_pd(c, c)));
}

INLINE unsigned
v16_less_bits(v16 x, v16 y)
{
	int a = _mm256_movemask_ps(_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ));
	int b = _mm256_movemask_ps(_mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ));

	return (unsigned)(a | b << 8);
}

/* x = m * 2^k with m in [sqrt(1/2), sqrt(2)); x is normal and positive. */
INLINE __m256
v8_split(__m256 x, __m256 *k)
{
	__m256i u = _mm256_castps_si256(x);
	__m256i e = _mm256_srli_epi32(_mm256_add_epi32(u,
	    _mm256_set1_epi32(0x3f800000 - 0x3f3504f3)), 23);

	e = _mm256_sub_epi32(e, _mm256_set1_epi32(127));
	*k = _mm256_cvtepi32_ps(e);
	return _mm256_castsi256_ps(
	    _mm256_sub_epi32(u, _mm256_slli_epi32(e, 23)));
}

INLINE v16
v16_split(v16 x, v16 *k)
{
	return (v16){ v8_split(x.a, &k->a), v8_split(x.b, &k->b) };
}

INLINE w16
w16_all(uint32_t x)
{
	__m256i v = _mm256_set1_epi32((int)x);

	return (w16){ v, v };
}

INLINE w16
w16_count(uint32_t x)
{
	const __m256i first = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	__m256i v = _mm256_add_epi32(_mm256_set1_epi32((int)x), first);

	return (w16){ v, _mm256_add_epi32(v, _mm256_set1_epi32(8)) };
}

INLINE w16
w16_xor(w16 x, w16 y)
{
	return (w16){ _mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b) };
}

/* The low half of the products; *high gets the other. */
INLINE __m256i
w8_mul(__m256i x, __m256i y, __m256i *high)
{
	__m256i even = _mm256_mul_epu32(x, y);
	__m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), y);

	*high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
	return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

INLINE w16
w16_mul(w16 x, uint32_t y, w16 *high)
{
	__m256i m = _mm256_set1_epi32((int)y);

	return (w16){ w8_mul(x.a, m, &high->a), w8_mul(x.b, m, &high->b) };
}

/* x[0], y[0], x[1], .. y[7] for half 0; the rest for half 1. */
INLINE w16
w16_zip(w16 x, w16 y, int half)
{
	__m256i a = half ? x.b : x.a, b = half ? y.b : y.a;
	__m256i low = _mm256_unpacklo_epi32(a, b);
	__m256i high = _mm256_unpackhi_epi32(a, b);

	return (w16){ _mm256_permute2x128_si256(low, high, 0x20),
		_mm256_permute2x128_si256(low, high, 0x31) };
}

/* x / 2 rounded down, as floats. */
INLINE v16
v16_from_half(w16 x)
{
	return (v16){ _mm256_cvtepi32_ps(_mm256_srli_epi32(x.a, 1)),
		_mm256_cvtepi32_ps(_mm256_srli_epi32(x.b, 1)) };
}

#endif
