/*
 * Sixteen floats, the lanes of every panel and the partial sums of every
 * reduction: one register of AVX-512.  v16_avx2.h has the same in two.
 */
#ifndef V16_H
#define V16_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

typedef __m512 v16;

/* The first n lanes. */
INLINE __mmask16
v16_first(size_t n)
{
	return (__mmask16)((1u << n) - 1);
}

INLINE v16
v16_zero(void)
{
	return _mm512_setzero_ps();
}

INLINE v16
v16_all(float f)
{
	return _mm512_set1_ps(f);
}

INLINE v16
v16_load(const float *p)
{
	return _mm512_loadu_ps(p);
}

INLINE void
v16_store(float *p, v16 a)
{
	_mm512_storeu_ps(p, a);
}

/* n from 0 to 16; the other lanes are 0, or are not written. */
INLINE v16
v16_load_n(const float *p, size_t n)
{
	return _mm512_maskz_loadu_ps(v16_first(n), p);
}

INLINE void
v16_store_n(float *p, v16 a, size_t n)
{
	_mm512_mask_storeu_ps(p, v16_first(n), a);
}

/* a, with lanes from n on taken from b. */
INLINE v16
v16_keep_n(v16 a, size_t n, v16 b)
{
	return _mm512_mask_mov_ps(b, v16_first(n), a);
}

INLINE v16
v16_add(v16 a, v16 b)
{
	return _mm512_add_ps(a, b);
}

INLINE v16
v16_sub(v16 a, v16 b)
{
	return _mm512_sub_ps(a, b);
}

INLINE v16
v16_mul(v16 a, v16 b)
{
	return _mm512_mul_ps(a, b);
}

INLINE v16
v16_div(v16 a, v16 b)
{
	return _mm512_div_ps(a, b);
}

/* a * b + c, rounded once. */
INLINE v16
v16_fma(v16 a, v16 b, v16 c)
{
	return _mm512_fmadd_ps(a, b, c);
}

INLINE v16
v16_max(v16 a, v16 b)
{
	return _mm512_max_ps(a, b);
}

INLINE v16
v16_min(v16 a, v16 b)
{
	return _mm512_min_ps(a, b);
}

INLINE v16
v16_negate(v16 a)
{
	return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f));
}

/* a < b ? x : y, and the same for a that is not a number. */
INLINE v16
v16_if_less(v16 a, v16 b, v16 x, v16 y)
{
	return _mm512_mask_mov_ps(
	    y, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), x);
}

INLINE v16
v16_if_nan(v16 a, v16 x, v16 y)
{
	return _mm512_mask_mov_ps(
	    y, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), x);
}

/* p * 2^n for whole n, rounded once; p near 1. */
INLINE v16
v16_scale(v16 p, v16 n)
{
	return _mm512_scalef_ps(p, n);
}

INLINE int
v16_all_finite(v16 a)
{
	/* neither quiet nor signalling NaN nor infinity */
	return _mm512_fpclass_ps_mask(a, 0x01 | 0x80 | 0x08 | 0x10) == 0;
}

/* The tree of sum16.h. */
INLINE float
v16_sum(v16 a)
{
	__m256 b = _mm256_add_ps(
	    _mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
	__m128 c = _mm_add_ps(
	    _mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));

	c = _mm_add_ps(c, _mm_movehl_ps(c, c));
	return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

INLINE float
v16_largest(v16 a)
{
	return _mm512_reduce_max_ps(a);
}

/* p[0], p[0], p[1], p[1], .. p[7], p[7] */
INLINE v16
v16_load_twice(const float *p)
{
	return _mm512_permutexvar_ps(
	    _mm512_setr_epi32(
	        0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7),
	    _mm512_castps256_ps512(_mm256_loadu_ps(p)));
}

/* Neighbours change places. */
INLINE v16
v16_swap(v16 a)
{
	return _mm512_permute_ps(a, 0xb1);
}

/* Even lanes change sign. */
INLINE v16
v16_negate_even(v16 a)
{
	return _mm512_xor_ps(a,
	    _mm512_castsi512_ps(_mm512_set1_epi64(0x80000000)));
}

/* Sixteen rows become sixteen columns. */
INLINE void
v16_turn(v16 r[16])
{
	__m512 s[16];

	/* each group of four rows within its 128-bit parts */
	for (int i = 0; i < 16; i += 4) {
		__m512 a = _mm512_unpacklo_ps(r[i], r[i + 1]);
		__m512 b = _mm512_unpackhi_ps(r[i], r[i + 1]);
		__m512 c = _mm512_unpacklo_ps(r[i + 2], r[i + 3]);
		__m512 d = _mm512_unpackhi_ps(r[i + 2], r[i + 3]);

		s[i] = _mm512_shuffle_ps(a, c, 0x44);
		s[i + 1] = _mm512_shuffle_ps(a, c, 0xee);
		s[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
		s[i + 3] = _mm512_shuffle_ps(b, d, 0xee);
	}
	/* then the parts */
	for (int j = 0; j < 4; j++) {
		__m512 a = _mm512_shuffle_f32x4(s[j], s[4 + j], 0x44);
		__m512 b = _mm512_shuffle_f32x4(s[j], s[4 + j], 0xee);
		__m512 c = _mm512_shuffle_f32x4(s[8 + j], s[12 + j], 0x44);
		__m512 d = _mm512_shuffle_f32x4(s[8 + j], s[12 + j], 0xee);

		r[j] = _mm512_shuffle_f32x4(a, c, 0x88);
		r[4 + j] = _mm512_shuffle_f32x4(a, c, 0xdd);
		r[8 + j] = _mm512_shuffle_f32x4(b, d, 0x88);
		r[12 + j] = _mm512_shuffle_f32x4(b, d, 0xdd);
	}
}

/* Binary16 and bfloat16, exactly. */
INLINE v16
v16_from_f16(const uint8_t *p)
{
	return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

INLINE v16
v16_from_bf16(const uint8_t *p)
{
	return _mm512_castsi512_ps(_mm512_slli_epi32(
	    _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)),
	    16));
}

/* Unsigned bytes less a constant. */
INLINE v16
v16_from_u8(const int8_t *p, int less)
{
	__m512i v = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));

	return _mm512_cvtepi32_ps(
	    _mm512_sub_epi32(v, _mm512_set1_epi32(less)));
}

INLINE v16
v16_from_s8(const int8_t *p)
{
	return _mm512_cvtepi32_ps(
	    _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

#endif
