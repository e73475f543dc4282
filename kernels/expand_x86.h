/*
 * Expansion of weight rows with AVX2, for the x86 groups; see expand.c, which
 * describes the layouts.  Included by a file that has included a v16 header and
 * defines
 *
 *   KERNEL(name)  the functions' names
 *   BIAS          1: 128 is added to the quants of types that have negative
 *                 ones, so that all quants are unsigned bytes;
 *                 0: to 3 to 6-bit quants just as much as makes them unsigned
 *
 * A row is expanded once per step and used for all tokens: at 32 tokens that is
 * a sixth of the work, at 148 a twentieth.
 */
#include "groups.h"

#include "blocks.h"
#include "x86.h"

#define TOGETHER 1

/* What is added to raw bits that stand for raw - less. */
#define RAW_BIAS(less) ((char)(BIAS ? 128 - (less) : 0))

static inline float
half(const uint8_t *p)
{
	return _cvtsh_ss(load_u16(p));
}

/* What has to be subtracted again from stored quants, signed or not. */
#define LESS(raw, is_signed) (!(is_signed) ? 0 : BIAS ? 128 : (raw))

static inline void
store32(int8_t *q, __m256i v)
{
	_mm256_storeu_si256((__m256i *)q, v);
}

static inline __m256i
load32(const void *p)
{
	return _mm256_loadu_si256(p);
}

/* Bits shift to shift + width - 1 of each byte. */
static inline __m256i
bits(__m256i v, const int shift, const int mask)
{
	return _mm256_and_si256(
	    _mm256_srli_epi16(v, shift), _mm256_set1_epi8((char)mask));
}

/* 16 bytes of nibbles: the low ones, then the high ones. */
static inline __m256i
nibbles(const uint8_t *qs)
{
	__m128i v = _mm_loadu_si128((const __m128i *)qs);

	return _mm256_and_si256(
	    _mm256_set_m128i(_mm_srli_epi16(v, 4), v), _mm256_set1_epi8(15));
}

/* 16 in byte j where bit j of qh is set. */
static inline __m256i
fifth_bits(const uint8_t *qh)
{
	const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1,
	    1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
	const __m256i one = _mm256_set1_epi64x((long long)0x8040201008040201u);
	__m256i v = _mm256_set1_epi32(load_i32(qh));

	v = _mm256_and_si256(_mm256_shuffle_epi8(v, spread), one);
	return _mm256_and_si256(
	    _mm256_cmpeq_epi8(v, one), _mm256_set1_epi8(16));
}

static inline __m256i
looked_up(const int8_t table[16], const uint8_t *qs)
{
	__m128i t = _mm_loadu_si128((const __m128i *)table);
	__m256i v = _mm256_shuffle_epi8(_mm256_set_m128i(t, t), nibbles(qs));

	return _mm256_xor_si256(v, _mm256_set1_epi8((char)(BIAS ? 128 : 0)));
}

/* n floats from bytes times d. */
static inline void
scaled8(float *w, __m128i bytes, float d)
{
	_mm256_storeu_ps(w,
	    _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
	        _mm256_set1_ps(d)));
}

static inline void
scaled16(float *w, __m128i bytes, float d)
{
	scaled8(w, bytes, d);
	scaled8(w + 8, _mm_srli_si128(bytes, 8), d);
}

static inline void
expand_q4_0(const struct block_q4_0 *b, int8_t *q, float *w, float *m)
{
	(void)m;
	*w = half(b->d);
	store32(q, _mm256_add_epi8(nibbles(b->qs),
	               _mm256_set1_epi8(RAW_BIAS(8))));
}

static inline void
expand_q4_1(const struct block_q4_1 *b, int8_t *q, float *w, float *m)
{
	*w = half(b->d);
	*m = half(b->m);
	store32(q, nibbles(b->qs));
}

static inline void
expand_q5_0(const struct block_q5_0 *b, int8_t *q, float *w, float *m)
{
	__m256i v = _mm256_or_si256(nibbles(b->qs), fifth_bits(b->qh));

	(void)m;
	*w = half(b->d);
	store32(q, _mm256_add_epi8(v, _mm256_set1_epi8(RAW_BIAS(16))));
}

static inline void
expand_q5_1(const struct block_q5_1 *b, int8_t *q, float *w, float *m)
{
	*w = half(b->d);
	*m = half(b->m);
	store32(q, _mm256_or_si256(nibbles(b->qs), fifth_bits(b->qh)));
}

static inline void
expand_q8_0(const struct block_q8_0 *b, int8_t *q, float *w, float *m)
{
	(void)m;
	*w = half(b->d);
	store32(q, _mm256_xor_si256(load32(b->qs),
	               _mm256_set1_epi8((char)(BIAS ? 128 : 0))));
}

static inline void
expand_iq4_nl(const struct block_iq4_nl *b, int8_t *q, float *w, float *m)
{
	(void)m;
	*w = half(b->d);
	store32(q, looked_up(iq4_values, b->qs));
}

/* The scale is 2^(e - 128). */
static inline void
expand_mxfp4(const struct block_mxfp4 *b, int8_t *q, float *w, float *m)
{
	uint32_t u = b->e < 2 ? 0x00200000u << b->e :
	                        (uint32_t)(b->e - 1) << 23;

	(void)m;
	memcpy(w, &u, sizeof u);
	store32(q, looked_up(mxfp4_values, b->qs));
}

static inline void
expand_q2_k(const struct block_q2_k *b, int8_t *q, float *w, float *m)
{
	__m128i s = _mm_loadu_si128((const __m128i *)b->scales);
	__m128i low = _mm_set1_epi8(15);

	scaled16(w, _mm_and_si128(s, low), half(b->d));
	scaled16(m, _mm_and_si128(_mm_srli_epi16(s, 4), low), -half(b->dmin));
	for (int h = 0; h < 2; h++, q += 128) {
		__m256i v = load32(b->qs + h * 32);

		store32(q, bits(v, 0, 3));
		store32(q + 32, bits(v, 2, 3));
		store32(q + 64, bits(v, 4, 3));
		store32(q + 96, bits(v, 6, 3));
	}
}

/* The sixteen scales less 32, 6 bits each. */
static inline __m128i
scales_q3(const uint8_t *s)
{
	__m128i low = _mm_loadl_epi64((const __m128i *)s);
	__m128i high = _mm_set1_epi32(load_i32(s + 8));

	low = _mm_unpacklo_epi64(low, _mm_srli_epi16(low, 4));
	high = _mm_srlv_epi32(high, _mm_setr_epi32(0, 2, 4, 6));
	low = _mm_and_si128(low, _mm_set1_epi8(15));
	high = _mm_and_si128(high, _mm_set1_epi8(3));
	return _mm_sub_epi8(_mm_or_si128(low, _mm_slli_epi16(high, 4)),
	    _mm_set1_epi8(32));
}

static inline void
expand_q3_k(const struct block_q3_k *b, int8_t *q, float *w, float *m)
{
	__m256i mask = load32(b->hmask), four = _mm256_set1_epi8(4);
	__m256i bias = _mm256_set1_epi8(RAW_BIAS(4));

	(void)m;
	scaled16(w, scales_q3(b->scales), half(b->d));
	for (int h = 0; h < 2; h++) {
		__m256i v = load32(b->qs + h * 32);

		for (int i = 0; i < 4; i++, q += 32) {
			__m256i bit = _mm256_slli_epi16(
			    _mm256_and_si256(mask, _mm256_set1_epi8(1)), 2);
			__m256i low = _mm256_and_si256(
			    v, _mm256_set1_epi8(3));

			bit = _mm256_and_si256(bit, four);
			store32(q, _mm256_add_epi8(
			               _mm256_or_si256(low, bit), bias));
			mask = _mm256_srli_epi16(mask, 1);
			v = _mm256_srli_epi16(v, 2);
		}
	}
}

static inline void
scaled_k4(const uint8_t *s, float d, float dmin, float *w, float *m)
{
	uint64_t sc, mn;

	scales_k4(s, &sc, &mn);
	scaled8(w, _mm_cvtsi64_si128((long long)sc), d);
	scaled8(m, _mm_cvtsi64_si128((long long)mn), -dmin);
}

static inline void
expand_q4_k(const struct block_q4_k *b, int8_t *q, float *w, float *m)
{
	scaled_k4(b->scales, half(b->d), half(b->dmin), w, m);
	for (int c = 0; c < 4; c++, q += 64) {
		__m256i v = load32(b->qs + c * 32);

		store32(q, bits(v, 0, 15));
		store32(q + 32, bits(v, 4, 15));
	}
}

static inline void
expand_q5_k(const struct block_q5_k *b, int8_t *q, float *w, float *m)
{
	__m256i qh = load32(b->qh), one = _mm256_set1_epi8(1), high;

	scaled_k4(b->scales, half(b->d), half(b->dmin), w, m);
	for (int c = 0; c < 4; c++, q += 64) {
		__m256i v = load32(b->qs + c * 32);

		high = _mm256_slli_epi16(_mm256_and_si256(qh, one), 4);
		store32(q, _mm256_or_si256(bits(v, 0, 15), high));
		qh = _mm256_srli_epi16(qh, 1);
		high = _mm256_slli_epi16(_mm256_and_si256(qh, one), 4);
		store32(q + 32, _mm256_or_si256(bits(v, 4, 15), high));
		qh = _mm256_srli_epi16(qh, 1);
	}
}

static inline void
expand_q6_k(const struct block_q6_k *b, int8_t *q, float *w, float *m)
{
	__m256i bias = _mm256_set1_epi8(RAW_BIAS(32));

	(void)m;
	scaled16(w, _mm_loadu_si128((const __m128i *)b->scales), half(b->d));
	for (int h = 0; h < 2; h++, q += 128) {
		__m256i a = load32(b->ql + h * 64);
		__m256i c = load32(b->ql + h * 64 + 32);
		__m256i high = load32(b->qh + h * 32);
		__m256i v[4] = {
			_mm256_or_si256(bits(a, 0, 15),
			    _mm256_slli_epi16(bits(high, 0, 3), 4)),
			_mm256_or_si256(bits(c, 0, 15),
			    _mm256_slli_epi16(bits(high, 2, 3), 4)),
			_mm256_or_si256(bits(a, 4, 15), bits(high, 0, 0x30)),
			_mm256_or_si256(bits(c, 4, 15), bits(high, 2, 0x30)),
		};

		for (int i = 0; i < 4; i++)
			store32(q + 32 * i, _mm256_add_epi8(v[i], bias));
	}
}

static inline void
expand_iq4_xs(const struct block_iq4_xs *b, int8_t *q, float *w, float *m)
{
	__m128i low = _mm_cvtsi32_si128(load_i32(b->scales_l));
	uint32_t h = load_u16(b->scales_h);
	/* pairs of bits to bytes: two halves of four */
	__m128i high = _mm_srlv_epi32(_mm_set1_epi32((int)h),
	    _mm_setr_epi32(0, 2, 4, 6));
	__m128i higher = _mm_srli_epi32(high, 8);
	__m128i three = _mm_set1_epi32(3);

	(void)m;
	/* bytes l0..l3 hold two nibbles each, low first */
	low = _mm_and_si128(_mm_unpacklo_epi8(low, _mm_srli_epi16(low, 4)),
	    _mm_set1_epi8(15));
	high = _mm_packs_epi32(_mm_and_si128(high, three),
	    _mm_and_si128(higher, three));
	high = _mm_packs_epi16(high, high);
	low = _mm_or_si128(low, _mm_slli_epi16(high, 4));
	scaled8(w, _mm_sub_epi8(low, _mm_set1_epi8(32)), half(b->d));
	for (int j = 0; j < 8; j++)
		store32(q + 32 * j, looked_up(iq4_values, b->qs + 16 * j));
}

/* Eight binary16 numbers, `stride` bytes apart. */
INLINE void
halves8(float *to, const uint8_t *p, size_t stride)
{
	__m128i v = _mm_cvtsi32_si128(load_u16(p));

	v = _mm_insert_epi16(v, load_u16(p + stride), 1);
	v = _mm_insert_epi16(v, load_u16(p + 2 * stride), 2);
	v = _mm_insert_epi16(v, load_u16(p + 3 * stride), 3);
	v = _mm_insert_epi16(v, load_u16(p + 4 * stride), 4);
	v = _mm_insert_epi16(v, load_u16(p + 5 * stride), 5);
	v = _mm_insert_epi16(v, load_u16(p + 6 * stride), 6);
	v = _mm_insert_epi16(v, load_u16(p + 7 * stride), 7);
	_mm256_storeu_ps(to, _mm256_cvtph_ps(v));
}

#include "expand_rows.h"
#include "decode_rows.h"
