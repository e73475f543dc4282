/*
 * Matrix products with smmla: two rows times two tokens, eight elements of K.
 * Two rows' weights lie side by side, eight of each (see simd.h), and so do two
 * tokens' quants.
 */
#include "v16_neon.h"

#include "simd.h"

#define MATMUL matmul_quant_i8mm
enum { UNIT_ROWS = 2, UNIT_TOKENS = 2, TILE_UNITS = 4 };

INLINE float32x4_t
row_vec(const float *p, size_t stride)
{
	return vcombine_f32(vld1_dup_f32(p), vld1_dup_f32(p + stride));
}

INLINE float32x4_t
token_vec(const float *p)
{
	float32x2_t v = vld1_f32(p);

	return vcombine_f32(v, v);
}

INLINE void
by_token(float32x4_t v[2], const float *acc, size_t stride)
{
	float32x4_t a = vld1q_f32(acc), b = vld1q_f32(acc + stride);

	v[0] = vuzp1q_f32(a, b);
	v[1] = vuzp2q_f32(a, b);
}

INLINE void
dots(int32x4_t a[], const int8_t *q, const int8_t *x, const int vecs,
    const int n)
{
#pragma GCC unroll 16
	for (int i = 0; i < TILE_UNITS * vecs; i++)
		a[i] = vdupq_n_s32(0);
#pragma GCC unroll 4
	for (int k = 0; k < n; k += 8) {
		int8x16_t w[TILE_UNITS];

#pragma GCC unroll 4
		for (int u = 0; u < TILE_UNITS; u++)
			w[u] = vld1q_s8(q + (u * CHUNK + k) * UNIT_ROWS);
#pragma GCC unroll 4
		for (int j = 0; j < vecs; j++) {
			int8x16_t v = vld1q_s8(x + k * 16 + j * 16);

#pragma GCC unroll 4
			for (int u = 0; u < TILE_UNITS; u++)
				a[u * vecs + j] = vmmlaq_s32(
				    a[u * vecs + j], w[u], v);
		}
		HOLD_LOADS();
	}
}

#include "matmul_neon.h"
