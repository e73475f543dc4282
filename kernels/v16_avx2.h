/*
 * Sixteen floats as two registers of AVX2; see v16_avx512.h, which has the same
 * functions.
 */
#ifndef V16_H
#define V16_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

typedef struct {
	__m256 a, b; /* lanes 0 to 7, 8 to 15 */
} v16;

/* Sign bits in the lanes below n, of the lanes from `from` on. */
INLINE __m256i
v16_first(size_t n, int from)
{
	return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n - from),
	    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE v16
v16_zero(void)
{
	return (v16){ _mm256_setzero_ps(), _mm256_setzero_ps() };
}

INLINE v16
v16_all(float f)
{
	return (v16){ _mm256_set1_ps(f), _mm256_set1_ps(f) };
}

INLINE v16
v16_load(const float *p)
{
	return (v16){ _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) };
}

INLINE void
v16_store(float *p, v16 a)
{
	_mm256_storeu_ps(p, a.a);
	_mm256_storeu_ps(p + 8, a.b);
}

/* n from 0 to 16; the other lanes are 0, or are not written. */
INLINE v16
v16_load_n(const float *p, size_t n)
{
	return (v16){ _mm256_maskload_ps(p, v16_first(n, 0)),
		n > 8 ? _mm256_maskload_ps(p + 8, v16_first(n, 8)) :
		        _mm256_setzero_ps() };
}

INLINE void
v16_store_n(float *p, v16 a, size_t n)
{
	_mm256_maskstore_ps(p, v16_first(n, 0), a.a);
	if (n > 8)
		_mm256_maskstore_ps(p + 8, v16_first(n, 8), a.b);
}

/* a, with lanes from n on taken from b. */
INLINE v16
v16_keep_n(v16 a, size_t n, v16 b)
{
	__m256 x = _mm256_castsi256_ps(v16_first(n, 0));
	__m256 y = _mm256_castsi256_ps(v16_first(n, 8));

	return (v16){ _mm256_blendv_ps(b.a, a.a, x),
		_mm256_blendv_ps(b.b, a.b, y) };
}

INLINE v16
v16_add(v16 a, v16 b)
{
	return (v16){ _mm256_add_ps(a.a, b.a), _mm256_add_ps(a.b, b.b) };
}

INLINE v16
v16_sub(v16 a, v16 b)
{
	return (v16){ _mm256_sub_ps(a.a, b.a), _mm256_sub_ps(a.b, b.b) };
}

INLINE v16
v16_mul(v16 a, v16 b)
{
	return (v16){ _mm256_mul_ps(a.a, b.a), _mm256_mul_ps(a.b, b.b) };
}

INLINE v16
v16_div(v16 a, v16 b)
{
	return (v16){ _mm256_div_ps(a.a, b.a), _mm256_div_ps(a.b, b.b) };
}

/* a * b + c, rounded once. */
INLINE v16
v16_fma(v16 a, v16 b, v16 c)
{
	return (v16){ _mm256_fmadd_ps(a.a, b.a, c.a),
		_mm256_fmadd_ps(a.b, b.b, c.b) };
}

INLINE v16
v16_max(v16 a, v16 b)
{
	return (v16){ _mm256_max_ps(a.a, b.a), _mm256_max_ps(a.b, b.b) };
}

INLINE v16
v16_min(v16 a, v16 b)
{
	return (v16){ _mm256_min_ps(a.a, b.a), _mm256_min_ps(a.b, b.b) };
}

INLINE v16
v16_negate(v16 a)
{
	const __m256 sign = _mm256_set1_ps(-0.0f);

	return (v16){ _mm256_xor_ps(a.a, sign), _mm256_xor_ps(a.b, sign) };
}

/* a < b ? x : y, and the same for a that is not a number. */
INLINE v16
v16_if_less(v16 a, v16 b, v16 x, v16 y)
{
	return (v16){ _mm256_blendv_ps(
		          y.a, x.a, _mm256_cmp_ps(a.a, b.a, _CMP_LT_OQ)),
		_mm256_blendv_ps(
		    y.b, x.b, _mm256_cmp_ps(a.b, b.b, _CMP_LT_OQ)) };
}

INLINE v16
v16_if_nan(v16 a, v16 x, v16 y)
{
	return (v16){ _mm256_blendv_ps(
		          y.a, x.a, _mm256_cmp_ps(a.a, a.a, _CMP_UNORD_Q)),
		_mm256_blendv_ps(
		    y.b, x.b, _mm256_cmp_ps(a.b, a.b, _CMP_UNORD_Q)) };
}

/* p * 2^n for whole n: in two factors, so that only the last step rounds. */
INLINE __m256
v8_scale(__m256 p, __m256 n)
{
	const __m256i bias = _mm256_set1_epi32(127);
	__m256i i = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(i, 1);
	__m256i rest = _mm256_sub_epi32(i, half);

	half = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
	rest = _mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23);
	return _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(half)),
	    _mm256_castsi256_ps(rest));
}

INLINE v16
v16_scale(v16 p, v16 n)
{
	return (v16){ v8_scale(p.a, n.a), v8_scale(p.b, n.b) };
}

INLINE int
v16_all_finite(v16 a)
{
	const __m256i mask = _mm256_set1_epi32(0x7f800000);
	__m256i x = _mm256_and_si256(_mm256_castps_si256(a.a), mask);
	__m256i y = _mm256_and_si256(_mm256_castps_si256(a.b), mask);

	x = _mm256_or_si256(_mm256_cmpeq_epi32(x, mask),
	    _mm256_cmpeq_epi32(y, mask));
	return _mm256_testz_si256(x, x);
}

/* The tree of sum16.h. */
INLINE float
v16_sum(v16 a)
{
	__m256 b = _mm256_add_ps(a.a, a.b);
	__m128 c = _mm_add_ps(
	    _mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));

	c = _mm_add_ps(c, _mm_movehl_ps(c, c));
	return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

INLINE float
v16_largest(v16 a)
{
	__m256 b = _mm256_max_ps(a.a, a.b);
	__m128 c = _mm_max_ps(
	    _mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));

	c = _mm_max_ps(c, _mm_movehl_ps(c, c));
	return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

/* p[0], p[0], p[1], p[1], .. p[7], p[7] */
INLINE v16
v16_load_twice(const float *p)
{
	__m256 v = _mm256_loadu_ps(p);

	return (v16){ _mm256_permutevar8x32_ps(v,
		          _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)),
		_mm256_permutevar8x32_ps(
		    v, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7)) };
}

/* Neighbours change places. */
INLINE v16
v16_swap(v16 a)
{
	return (v16){ _mm256_permute_ps(a.a, 0xb1),
		_mm256_permute_ps(a.b, 0xb1) };
}

/* Even lanes change sign. */
INLINE v16
v16_negate_even(v16 a)
{
	const __m256 sign =
	    _mm256_castsi256_ps(_mm256_set1_epi64x(0x80000000));

	return (v16){ _mm256_xor_ps(a.a, sign), _mm256_xor_ps(a.b, sign) };
}

/* Eight rows become eight columns. */
INLINE void
v8_turn(__m256 r[8])
{
	__m256 s[8];

	for (int i = 0; i < 8; i += 4) {
		__m256 a = _mm256_unpacklo_ps(r[i], r[i + 1]);
		__m256 b = _mm256_unpackhi_ps(r[i], r[i + 1]);
		__m256 c = _mm256_unpacklo_ps(r[i + 2], r[i + 3]);
		__m256 d = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);

		s[i] = _mm256_shuffle_ps(a, c, 0x44);
		s[i + 1] = _mm256_shuffle_ps(a, c, 0xee);
		s[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
		s[i + 3] = _mm256_shuffle_ps(b, d, 0xee);
	}
	for (int j = 0; j < 4; j++) {
		r[j] = _mm256_permute2f128_ps(s[j], s[4 + j], 0x20);
		r[4 + j] = _mm256_permute2f128_ps(s[j], s[4 + j], 0x31);
	}
}

/* Sixteen rows become sixteen columns. */
INLINE void
v16_turn(v16 r[16])
{
	__m256 t[2][2][8]; /* which rows, which columns */

	for (int i = 0; i < 16; i++) {
		t[i / 8][0][i % 8] = r[i].a;
		t[i / 8][1][i % 8] = r[i].b;
	}
	for (int i = 0; i < 4; i++)
		v8_turn(t[i / 2][i % 2]);
	for (int i = 0; i < 16; i++) {
		r[i].a = t[0][i / 8][i % 8];
		r[i].b = t[1][i / 8][i % 8];
	}
}

/* Binary16 and bfloat16, exactly. */
INLINE v16
v16_from_f16(const uint8_t *p)
{
	const __m128i *v = (const __m128i *)p;

	return (v16){ _mm256_cvtph_ps(_mm_loadu_si128(v)),
		_mm256_cvtph_ps(_mm_loadu_si128(v + 1)) };
}

INLINE __m256
v8_from_bf16(const uint8_t *p)
{
	return _mm256_castsi256_ps(_mm256_slli_epi32(
	    _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}

INLINE v16
v16_from_bf16(const uint8_t *p)
{
	return (v16){ v8_from_bf16(p), v8_from_bf16(p + 16) };
}

/* Unsigned bytes less a constant; signed bytes. */
INLINE __m256
v8_from_u8(const int8_t *p, int less)
{
	__m256i v = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));

	return _mm256_cvtepi32_ps(
	    _mm256_sub_epi32(v, _mm256_set1_epi32(less)));
}

INLINE v16
v16_from_u8(const int8_t *p, int less)
{
	return (v16){ v8_from_u8(p, less), v8_from_u8(p + 8, less) };
}

INLINE __m256
v8_from_s8(const int8_t *p)
{
	return _mm256_cvtepi32_ps(
	    _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

INLINE v16
v16_from_s8(const int8_t *p)
{
	return (v16){ v8_from_s8(p), v8_from_s8(p + 8) };
}

#endif
