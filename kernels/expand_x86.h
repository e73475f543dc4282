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
#include "expand.h"
#include "x86.h"

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

static const int8_t iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
	1, 13, 25, 38, 53, 69, 89, 113 };

static inline void
expand_iq4_nl(const struct block_iq4_nl *b, int8_t *q, float *w, float *m)
{
	(void)m;
	*w = half(b->d);
	store32(q, looked_up(iq4_values, b->qs));
}

/* Twice the values of E2M1; the scale is 2^(e - 128). */
static inline void
expand_mxfp4(const struct block_mxfp4 *b, int8_t *q, float *w, float *m)
{
	static const int8_t values[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2,
		-3, -4, -6, -8, -12 };
	uint32_t u = b->e < 2 ? 0x00200000u << b->e :
	                        (uint32_t)(b->e - 1) << 23;

	(void)m;
	memcpy(w, &u, sizeof u);
	store32(q, looked_up(values, b->qs));
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

/* Eight 6-bit scales and eight 6-bit mins in 12 bytes. */
static inline void
scales_k4(const uint8_t *s, float d, float dmin, float *w, float *m)
{
	uint32_t a = (uint32_t)load_i32(s), b = (uint32_t)load_i32(s + 4);
	uint32_t c = (uint32_t)load_i32(s + 8);
	uint64_t sc = (uint64_t)((c & 0x0f0f0f0f) | (a >> 2 & 0x30303030)) << 32
	    | (a & 0x3f3f3f3f);
	uint64_t mn = (uint64_t)((c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030))
	        << 32 |
	    (b & 0x3f3f3f3f);

	scaled8(w, _mm_cvtsi64_si128((long long)sc), d);
	scaled8(m, _mm_cvtsi64_si128((long long)mn), -dmin);
}

static inline void
expand_q4_k(const struct block_q4_k *b, int8_t *q, float *w, float *m)
{
	scales_k4(b->scales, half(b->d), half(b->dmin), w, m);
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

	scales_k4(b->scales, half(b->d), half(b->dmin), w, m);
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


/*
 * Rows are read in order but the hardware's prefetcher stops at every page:
 * asked for so far ahead, a cold Q4_K row takes 1.4 instead of 2.0 ns per 32
 * weights (Q6_K 1.6 instead of 2.4).
 */
enum { AHEAD = 4096 };

INLINE void
prefetch_block(const uint8_t *src, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 64)
		_mm_prefetch((const char *)src + AHEAD + i, _MM_HINT_T0);
}

/* Where a row's parts go: see CHUNK in x86.h. */
struct row {
	int8_t *q;
	float *w, *m;
	size_t rows; /* of the tile, up to a multiple of 8 */
};

#define EXPAND_ROW(name, block, groups) \
	static void row_##name(const struct row *to, const uint8_t *src, \
	    size_t n) \
	{ \
		size_t c = 0; \
		for (size_t i = 0; i < n; c += to->rows) \
			for (size_t j = 0; j < CHUNK && i < n; \
			    j += block, i += block) { \
				prefetch_block( \
				    src, sizeof(struct block_##name)); \
				size_t g = c * (CHUNK / block * groups) + \
				    j / block * groups; \
				expand_##name((const void *)src, \
				    to->q + c * CHUNK + j, to->w + g, \
				    to->m + g); \
				src += sizeof(struct block_##name); \
			} \
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

/*
 * Blocks of 32, eight in a chunk.  Converting their scales together took
 * a quarter off the time of Q8_0 in the one comparison made; the single
 * conversions are not used and go.
 */
#define EXPAND_ROW_32(name, mins, m_at) \
	static void row_##name(const struct row *to, const uint8_t *src, \
	    size_t n) \
	{ \
		const size_t size = sizeof(struct block_##name); \
		size_t c = 0, i = 0; \
		for (; i + CHUNK <= n; i += CHUNK, c += to->rows) { \
			int8_t *q = to->q + c * CHUNK; \
			float w, m; \
			prefetch_block(src, 8 * size); \
			halves8(to->w + c * 8, src, size); \
			if (mins) \
				halves8(to->m + c * 8, src + m_at, size); \
			for (int j = 0; j < 8; j++, src += size, q += 32) \
				expand_##name((const void *)src, q, &w, &m); \
		} \
		for (size_t j = 0; i < n; i += 32, src += size, j++) \
			expand_##name((const void *)src, \
			    to->q + c * CHUNK + j * 32, to->w + c * 8 + j, \
			    to->m + c * 8 + j); \
	}

EXPAND_ROW_32(q4_0, 0, 0)
EXPAND_ROW_32(q4_1, 1, 2)
EXPAND_ROW_32(q5_0, 0, 0)
EXPAND_ROW_32(q5_1, 1, 2)
EXPAND_ROW_32(q8_0, 0, 0)
EXPAND_ROW_32(iq4_nl, 0, 0)
EXPAND_ROW(mxfp4, 32, 1)
EXPAND_ROW(q2_k, 256, 16)
EXPAND_ROW(q3_k, 256, 16)
EXPAND_ROW(q4_k, 256, 8)
EXPAND_ROW(q5_k, 256, 8)
EXPAND_ROW(q6_k, 256, 16)
EXPAND_ROW(iq4_xs, 256, 8)

static void (*const row_fns[])(
    const struct row *to, const uint8_t *src, size_t n) = {
	[GGML_Q4_0] = row_q4_0,
	[GGML_Q4_1] = row_q4_1,
	[GGML_Q5_0] = row_q5_0,
	[GGML_Q5_1] = row_q5_1,
	[GGML_Q8_0] = row_q8_0,
	[GGML_IQ4_NL] = row_iq4_nl,
	[GGML_MXFP4] = row_mxfp4,
	[GGML_Q2_K] = row_q2_k,
	[GGML_Q3_K] = row_q3_k,
	[GGML_Q4_K] = row_q4_k,
	[GGML_Q5_K] = row_q5_k,
	[GGML_Q6_K] = row_q6_k,
	[GGML_IQ4_XS] = row_iq4_xs,
};

/* Rows that fill up to a multiple of 8: results that nobody reads. */
static void
clear_row(const struct row *to, size_t n, size_t groups)
{
	size_t c = 0;

	for (size_t i = 0; i < n; i += CHUNK, c += to->rows) {
		memset(to->q + c * CHUNK, 0, CHUNK);
		memset(to->w + c * groups, 0, groups * sizeof(float));
		memset(to->m + c * groups, 0, groups * sizeof(float));
	}
}

void
KERNEL(expand)(struct wtile *to, enum ggml_type type, const uint8_t *src,
    size_t row_bytes, size_t n_rows, size_t n_in)
{
	size_t groups, rows = kern_panels(n_rows, 8);

	to->n_rows = n_rows;
	to->n_in = n_in;
	to->group = expand_group(type);
	to->mins = expand_has_mins(type);
	to->type = type;
	to->next = NULL;
	to->next_bytes = 0;
	groups = CHUNK / to->group;
	for (size_t r = 0; r < rows; r++) {
		struct row row = { to->q + r * CHUNK, to->w + r * groups,
			to->m + r * groups, rows };

		if (r < n_rows)
			row_fns[type](&row, src + r * row_bytes, n_in);
		else
			clear_row(&row, n_in, groups);
	}
}

/* A block's n elements of which `group` share a scale. */
INLINE void
decode_block(float *dst, const int8_t *q, const float *w, const float *m,
    const int n, const int group, const int mins, const int less)
{
	for (int i = 0; i < n; i += 16) {
		v16 v = less < 0 ? v16_from_s8(q + i) :
		                   v16_from_u8(q + i, less);

		v = v16_mul(v16_all(w[i / group]), v);
		if (mins)
			v = v16_add(v, v16_all(m[i / group]));
		v16_store(dst + i, v);
	}
}

/* raw: what raw bits are too large by; -1: 8-bit quants. */
#define DECODE_ROW(name, block, group, mins, raw) \
	static void decode_##name(const uint8_t *src, size_t n, float *dst) \
	{ \
		int8_t q[block]; \
		float w[block / group], m[block / group]; \
		for (size_t i = 0; i < n; i += block) { \
			expand_##name((const void *)src, q, w, m); \
			decode_block(dst + i, q, w, m, block, group, mins, \
			    LESS(raw, !mins)); \
			src += sizeof(struct block_##name); \
		} \
	}

DECODE_ROW(q4_0, 32, 32, 0, 8)
DECODE_ROW(q4_1, 32, 32, 1, 0)
DECODE_ROW(q5_0, 32, 32, 0, 16)
DECODE_ROW(q5_1, 32, 32, 1, 0)
DECODE_ROW(q8_0, 32, 32, 0, -1)
DECODE_ROW(iq4_nl, 32, 32, 0, -1)
DECODE_ROW(mxfp4, 32, 32, 0, -1)
DECODE_ROW(q2_k, 256, 16, 1, 0)
DECODE_ROW(q3_k, 256, 16, 0, 4)
DECODE_ROW(q4_k, 256, 32, 1, 0)
DECODE_ROW(q5_k, 256, 32, 1, 0)
DECODE_ROW(q6_k, 256, 16, 0, 32)
DECODE_ROW(iq4_xs, 256, 32, 0, -1)

static void
decode_f32(const uint8_t *src, size_t n, float *dst)
{
	memcpy(dst, src, n * sizeof *dst);
}

static void
decode_f16(const uint8_t *src, size_t n, float *dst)
{
	size_t i = 0;

	for (; i + 16 <= n; i += 16)
		v16_store(dst + i, v16_from_f16(src + 2 * i));
	for (; i < n; i++)
		dst[i] = half(src + 2 * i);
}

static void
decode_bf16(const uint8_t *src, size_t n, float *dst)
{
	size_t i = 0;

	for (; i + 16 <= n; i += 16)
		v16_store(dst + i, v16_from_bf16(src + 2 * i));
	for (; i < n; i++) {
		uint32_t u = (uint32_t)load_u16(src + 2 * i) << 16;

		memcpy(dst + i, &u, sizeof u);
	}
}

static void (*const decode_fns[])(const uint8_t *src, size_t n, float *dst) = {
	[GGML_F32] = decode_f32,
	[GGML_F16] = decode_f16,
	[GGML_BF16] = decode_bf16,
	[GGML_Q4_0] = decode_q4_0,
	[GGML_Q4_1] = decode_q4_1,
	[GGML_Q5_0] = decode_q5_0,
	[GGML_Q5_1] = decode_q5_1,
	[GGML_Q8_0] = decode_q8_0,
	[GGML_IQ4_NL] = decode_iq4_nl,
	[GGML_MXFP4] = decode_mxfp4,
	[GGML_Q2_K] = decode_q2_k,
	[GGML_Q3_K] = decode_q3_k,
	[GGML_Q4_K] = decode_q4_k,
	[GGML_Q5_K] = decode_q5_k,
	[GGML_Q6_K] = decode_q6_k,
	[GGML_IQ4_XS] = decode_iq4_xs,
};

void
KERNEL(decode)(enum ggml_type type, const void *src, size_t n, float *dst)
{
	decode_fns[type](src, n, dst);
}
