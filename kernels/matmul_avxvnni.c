/*
 * Matrix products with vpdpbusd in registers of 256 bits.  Compiled twice: with
 * VEX encoding for CPUs with AVX-VNNI, and with EVEX encoding, so that the code
 * can be tested on CPUs that have AVX512-VNNI alone.
 */
#include "v16_avx2.h"

#include "groups.h"
#include "x86.h"

#ifdef KERN_EVEX
#define MATMUL matmul_quant_evexvnni
#define DPBUSD _mm256_dpbusd_epi32
#else
#define MATMUL matmul_quant_avxvnni
#define DPBUSD _mm256_dpbusd_avx_epi32
#endif

/* Weights are unsigned, those that can be negative with 128 added. */
#define KINDS(X, ...) \
	X(g32, 32, 0, 7, 0, __VA_ARGS__) \
	X(g32_mins, 32, 1, 0, 0, __VA_ARGS__) \
	X(g16, 16, 0, 7, 0, __VA_ARGS__) \
	X(g16_mins, 16, 1, 0, 0, __VA_ARGS__)

static int
kind_of(const struct wtile *w)
{
	return (w->group == 16) * 2 + w->mins;
}

INLINE void
dots(__m256i a[], const uint8_t *q, const int8_t *x, const int rows,
    const int vecs, const int steps, const int how)
{
	(void)how;
#pragma GCC unroll 8
	for (int k = 0; k < steps; k++) {
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
			for (int j = 0; j < vecs; j++)
				a[r * vecs + j] =
				    DPBUSD(a[r * vecs + j], b, v[j]);
		}
	}
}

#include "matmul_ymm.h"
