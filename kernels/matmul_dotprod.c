/*
 * Matrix products with sdot: a lane adds four products, and the four weights
 * are a quarter of a register.
 */
#include "v16_neon.h"

#include "lanes_neon.h"
#include "simd.h"

#define MATMUL matmul_quant_dotprod
enum { TILE_UNITS = 4 };

/* Four elements of K, the i-th quarter of w. */
#define QUARTER(i) \
	do { \
		_Pragma("GCC unroll 4") for (int j = 0; j < vecs; j++) \
		{ \
			int8x16_t v = vld1q_s8(x + (k + 4 * i) * 16 + j * 16); \
			_Pragma("GCC unroll 4") for (int u = 0; \
			    u < TILE_UNITS; u++) \
				a[u * vecs + j] = vdotq_laneq_s32( \
				    a[u * vecs + j], v, w[u], i); \
		} \
		HOLD_LOADS(); \
	} while (0)

INLINE void
dots(int32x4_t a[], const int8_t *q, const int8_t *x, const int vecs,
    const int n)
{
#pragma GCC unroll 16
	for (int i = 0; i < TILE_UNITS * vecs; i++)
		a[i] = vdupq_n_s32(0);
#pragma GCC unroll 2
	for (int k = 0; k < n; k += 16) {
		int8x16_t w[TILE_UNITS];

#pragma GCC unroll 4
		for (int u = 0; u < TILE_UNITS; u++)
			w[u] = vld1q_s8(q + u * CHUNK + k);
		QUARTER(0);
		QUARTER(1);
		QUARTER(2);
		QUARTER(3);
	}
}

#include "matmul_neon.h"
