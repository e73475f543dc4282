/*
 * Matrix products without VNNI.  vpmaddubsw adds two products of unsigned and
 * signed bytes in 16 bits and saturates, so that it depends on the size of the
 * quants how many of its results fit into 16 bits together: x is at most 127,
 * and quants of b bits are unsigned, so 2 * 127 * (2^b - 1) * n <= 32767 for
 *
 *   b = 3  n = 18     b = 4  n = 8     b = 5  n = 4     b = 6  n = 2
 *
 * Only then vpmaddwd widens them.  Quants of 8 bits are signed: their sign is
 * moved to x, and 2 * 127 * 128 = 32512 fits.
 */
#include "v16_avx2.h"

#include "groups.h"
#include "x86.h"

#define MATMUL matmul_quant_avx2

/* how: results of vpmaddubsw that are added in 16 bits; 0: signed quants. */
#define KINDS(X, ...) \
	X(q4_mins, 32, 1, 0, 8, __VA_ARGS__) \
	X(q5_mins, 32, 1, 0, 4, __VA_ARGS__) \
	X(q4, 32, 0, 3, 8, __VA_ARGS__) \
	X(q5, 32, 0, 4, 4, __VA_ARGS__) \
	X(q8, 32, 0, 0, 0, __VA_ARGS__) \
	X(q2_mins, 16, 1, 0, 4, __VA_ARGS__) \
	X(q3, 16, 0, 2, 4, __VA_ARGS__) \
	X(q6, 16, 0, 5, 2, __VA_ARGS__)

static int
kind_of(const struct wtile *w)
{
	switch (w->type) {
	case GGML_Q4_K:
	case GGML_Q4_1:
		return 0;
	case GGML_Q5_K:
	case GGML_Q5_1:
		return 1;
	case GGML_Q4_0:
		return 2;
	case GGML_Q5_0:
		return 3;
	case GGML_Q2_K:
		return 5;
	case GGML_Q3_K:
		return 6;
	case GGML_Q6_K:
		return 7;
	default: /* Q8_0, IQ4_NL, IQ4_XS, MXFP4 */
		return 4;
	}
}

/* `some` steps from k on, added in 16 bits, then to a. */
INLINE void
few_dots(__m256i a[], const uint8_t *q, const int8_t *x, const int rows,
    const int vecs, const int some)
{
	const __m256i ones = _mm256_set1_epi16(1);
	__m256i s[12];

#pragma GCC unroll 8
	for (int k = 0; k < some; k++) {
		__m256i v[2];

#pragma GCC unroll 2
		for (int j = 0; j < vecs; j++)
			v[j] = _mm256_load_si256(
			    (const __m256i *)(x + k * 64 + j * 32));
#pragma GCC unroll 6
		for (int r = 0; r < rows; r++) {
			__m256i b = _mm256_set1_epi32(
			    load_i32(q + r * CHUNK + k * 4));

#pragma GCC unroll 2
			for (int j = 0; j < vecs; j++) {
				__m256i p = _mm256_maddubs_epi16(b, v[j]);

				s[r * vecs + j] = k == 0 ? p :
				    _mm256_add_epi16(s[r * vecs + j], p);
			}
		}
	}
#pragma GCC unroll 12
	for (int i = 0; i < rows * vecs; i++)
		a[i] = _mm256_add_epi32(a[i], _mm256_madd_epi16(s[i], ones));
}

/* One step of signed quants. */
INLINE void
signed_dots(__m256i a[], const uint8_t *q, const int8_t *x, const int rows,
    const int vecs)
{
	const __m256i ones = _mm256_set1_epi16(1);

#pragma GCC unroll 6
	for (int r = 0; r < rows; r++) {
		__m256i b = _mm256_set1_epi32(load_i32(q + r * CHUNK));
		__m256i size = _mm256_abs_epi8(b);

#pragma GCC unroll 2
		for (int j = 0; j < vecs; j++) {
			__m256i v = _mm256_sign_epi8(
			    _mm256_load_si256((const __m256i *)(x + j * 32)),
			    b);

			a[r * vecs + j] = _mm256_add_epi32(a[r * vecs + j],
			    _mm256_madd_epi16(
			        _mm256_maddubs_epi16(size, v), ones));
		}
	}
}

INLINE void
dots(__m256i a[], const uint8_t *q, const int8_t *x, const int rows,
    const int vecs, const int steps, const int how)
{
	if (how == 0) {
#pragma GCC unroll 8
		for (int k = 0; k < steps; k++)
			signed_dots(a, q + k * 4, x + k * 64, rows, vecs);
		return;
	}
#pragma GCC unroll 8
	for (int k = 0; k < steps; k += how)
		few_dots(a, q + k * 4, x + k * 64, rows, vecs, how);
}

#include "matmul_ymm.h"
