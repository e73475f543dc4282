/*
 * What statistics need beside v16: sixteen doubles, d16, and sixteen words of
 * 32 bits, w16.  wide_avx2.h has the same functions.
 */
#ifndef WIDE_H
#define WIDE_H

#include "v16_avx512.h"

typedef struct {
	__m512d a, b; /* lanes 0 to 7, 8 to 15 */
} d16;

typedef __m512i w16;

INLINE d16
d16_all(double x)
{
	return (d16){ _mm512_set1_pd(x), _mm512_set1_pd(x) };
}

INLINE d16
d16_from(v16 x)
{
	return (d16){ _mm512_cvtps_pd(_mm512_castps512_ps256(x)),
		_mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)) };
}

/* Rounded to floats. */
INLINE v16
d16_round(d16 x)
{
	return _mm512_insertf32x8(
	    _mm512_castps256_ps512(_mm512_cvtpd_ps(x.a)),
	    _mm512_cvtpd_ps(x.b), 1);
}

INLINE d16
d16_add(d16 x, d16 y)
{
	return (d16){ _mm512_add_pd(x.a, y.a), _mm512_add_pd(x.b, y.b) };
}

INLINE d16
d16_div(d16 x, d16 y)
{
	return (d16){ _mm512_div_pd(x.a, y.a), _mm512_div_pd(x.b, y.b) };
}

/* The tree of sum16.h. */
INLINE double
d16_sum(d16 x)
{
	__m512d a = _mm512_add_pd(x.a, x.b);
	__m256d b = _mm256_add_pd(
	    _mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
	__m128d c = _mm_add_pd(
	    _mm256_castpd256_pd128(b), _mm256_extractf128_pd(b, 1));

	return _mm_cvtsd_f64(_mm_add_sd(c, _mm_unpackhi_pd(c, c)));
}

/* Bit i: lane i of x is less than that of y. */
INLINE unsigned
v16_less_bits(v16 x, v16 y)
{
	return _mm512_cmp_ps_mask(x, y, _CMP_LT_OQ);
}

/* x = m * 2^k with m in [sqrt(1/2), sqrt(2)); x is normal and positive. */
INLINE v16
v16_split(v16 x, v16 *k)
{
	__m512i u = _mm512_castps_si512(x);
	__m512i e = _mm512_srli_epi32(_mm512_add_epi32(u,
	    _mm512_set1_epi32(0x3f800000 - 0x3f3504f3)), 23);

	e = _mm512_sub_epi32(e, _mm512_set1_epi32(127));
	*k = _mm512_cvtepi32_ps(e);
	return _mm512_castsi512_ps(
	    _mm512_sub_epi32(u, _mm512_slli_epi32(e, 23)));
}

INLINE w16
w16_all(uint32_t x)
{
	return _mm512_set1_epi32((int)x);
}

/* x, x + 1, ... x + 15 */
INLINE w16
w16_count(uint32_t x)
{
	return _mm512_add_epi32(w16_all(x), _mm512_setr_epi32(0, 1, 2, 3, 4,
	    5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

INLINE w16
w16_xor(w16 x, w16 y)
{
	return _mm512_xor_si512(x, y);
}

/* The low half of the products; *high gets the other. */
INLINE w16
w16_mul(w16 x, uint32_t y, w16 *high)
{
	__m512i even = _mm512_mul_epu32(x, w16_all(y));
	__m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), w16_all(y));

	*high = _mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), 0xaaaa, odd);
	return _mm512_mask_mov_epi32(even, 0xaaaa, _mm512_slli_epi64(odd, 32));
}

/* x[0], y[0], x[1], .. y[7] for half 0; the rest for half 1. */
INLINE w16
w16_zip(w16 x, w16 y, int half)
{
	const __m512i first = _mm512_setr_epi32(
	    0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);

	return _mm512_permutex2var_epi32(
	    x, _mm512_add_epi32(first, _mm512_set1_epi32(8 * half)), y);
}

/* x / 2 rounded down, as floats. */
INLINE v16
v16_from_half(w16 x)
{
	return _mm512_cvtepi32_ps(_mm512_srli_epi32(x, 1));
}

#endif
