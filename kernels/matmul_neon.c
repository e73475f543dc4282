/*
 * Matrix products on every AArch64 CPU: bytes are multiplied to 16 bits, where
 * two products of quants fit together (2 * 127 * 128 = 32512), and added to 32
 * bits in pairs.
 */
#include "v16_neon.h"

#include "lanes_neon.h"
#include "simd.h"

#define MATMUL matmul_quant_neon
enum { TILE_UNITS = 2 };

INLINE int8x16_t
four_weights(const int8_t *q)
{
	return vreinterpretq_s8_s32(vdupq_n_s32(load_i32(q)));
}

INLINE void
dots(int32x4_t a[], const int8_t *q, const int8_t *x, const int vecs,
    const int n)
{
	/* two tokens each, of which every lane has half */
	int32x4_t s[TILE_UNITS * 4][2];

#pragma GCC unroll 8
	for (int i = 0; i < TILE_UNITS * vecs; i++)
		s[i][0] = s[i][1] = vdupq_n_s32(0);
	for (int k = 0; k < n; k += 8) {
		HOLD_LOADS();
#pragma GCC unroll 2
		for (int u = 0; u < TILE_UNITS; u++) {
			int8x16_t w = four_weights(q + u * CHUNK + k);
			int8x16_t v = four_weights(q + u * CHUNK + k + 4);

#pragma GCC unroll 4
			for (int j = 0; j < vecs; j++) {
				const int8_t *p = x + k * 16 + j * 16;
				int8x16_t b = vld1q_s8(p);
				int8x16_t c = vld1q_s8(p + 4 * 16);
				int32x4_t *to = s[u * vecs + j];
				int16x8_t low = vmlal_s8(
				    vmull_s8(vget_low_s8(b), vget_low_s8(w)),
				    vget_low_s8(c), vget_low_s8(v));
				int16x8_t high = vmlal_high_s8(
				    vmull_high_s8(b, w), c, v);

				to[0] = vpadalq_s16(to[0], low);
				to[1] = vpadalq_s16(to[1], high);
			}
		}
	}
#pragma GCC unroll 8
	for (int i = 0; i < TILE_UNITS * vecs; i++)
		a[i] = vpaddq_s32(s[i][0], s[i][1]);
}

#include "matmul_neon.h"
