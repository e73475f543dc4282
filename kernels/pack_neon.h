/*
 * Activations into panels of 16 tokens, for the AdvSIMD groups: signed quants,
 * dx, sx and sx16.  Included by a file that has included v16_neon.h and defines
 *
 *   KERNEL(name)  the function's name
 *   STEP          consecutive elements of one token, 4 or 8: element k of the
 *                 panel's token l is q[(k / STEP * 16 + l) * STEP + k % STEP]
 */
#include "groups.h"

enum { LANES = 16 };

/* The largest magnitude; -1 if one is above 2^100 or not a number. */
INLINE float
largest(const float *x)
{
	float32x4_t max = vdupq_n_f32(0);

	/* the larger one of a NaN and a number is the NaN */
	for (int i = 0; i < KERN_BLOCK; i += 4)
		max = vmaxq_f32(max, vabsq_f32(vld1q_f32(x + i)));
	return vmaxvq_f32(max) <= 0x1p+100f ? vmaxvq_f32(max) : -1;
}

INLINE int16x4_t
rounded(const float *x, float inv)
{
	return vqmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x), inv)));
}

/* Sixteen quants to where they belong; returns their sum. */
INLINE int
round16(int8_t *q, const float *x, float inv)
{
	int16x8_t a = vcombine_s16(rounded(x, inv), rounded(x + 4, inv));
	int16x8_t b = vcombine_s16(rounded(x + 8, inv), rounded(x + 12, inv));
	int8_t all[16];

	vst1q_s8(all, vcombine_s8(vqmovn_s16(a), vqmovn_s16(b)));
	for (int k = 0; k < 16; k += STEP)
		memcpy(q + k * LANES, all + k, STEP);
	return vaddvq_s16(vaddq_s16(a, b));
}

/* Token l of the block whose first scale is s; 0, or -1 if out of range. */
static inline int
pack_block(struct xquant *to, size_t s, size_t l, const float *x)
{
	float amax = largest(x), inv, dx;
	int8_t *q = to->q + s * KERN_BLOCK + l * STEP;
	int sum[2];

	if (amax < 0)
		return -1;
	dx = inv = 0;
	if (amax >= 0x1p-100f) {
		float d = amax / 127.0f;
		uint32_t u;

		memcpy(&u, &d, sizeof u);
		u &= ~(uint32_t)3;
		memcpy(&dx, &u, sizeof dx);
		inv = 127.0f / amax;
	}
	sum[0] = round16(q, x, inv);
	sum[1] = round16(q + 16 * LANES, x + 16, inv);
	to->dx[s + l] = dx;
	to->sx[s + l] = dx * (float)(sum[0] + sum[1]);
	for (size_t h = 0; h < 2; h++)
		to->sx16[2 * s + h * LANES + l] = dx * (float)sum[h];
	return 0;
}

/* What fills up the last panel. */
static void
clear_block(struct xquant *to, size_t s, size_t l)
{
	for (size_t k = 0; k < KERN_BLOCK; k += STEP)
		memset(to->q + s * KERN_BLOCK + k * LANES + l * STEP, 0, STEP);
	to->dx[s + l] = to->sx[s + l] = 0;
	to->sx16[2 * s + l] = to->sx16[2 * s + LANES + l] = 0;
}

size_t
KERNEL(pack_quant)(struct xquant *to, size_t t0, size_t n, const float *x,
    size_t stride)
{
	size_t n_blocks = to->n_in / KERN_BLOCK, bad = n;

	for (size_t t = 0; t < n && bad == n; t += LANES)
		for (size_t b = 0; b < n_blocks; b++) {
			size_t s = (t0 + t) * n_blocks + b * LANES;

			for (size_t l = 0; l < LANES; l++)
				if (t + l >= n)
					clear_block(to, s, l);
				else if (t + l < bad &&
				    pack_block(to, s, l, x +
				        (t + l) * stride + b * KERN_BLOCK) < 0)
					bad = t + l;
		}
	return bad;
}
