/*
 * Sixteen doubles and sixteen words as registers of AdvSIMD; see wide_avx512.h,
 * which has the same functions.
 */
#ifndef WIDE_H
#define WIDE_H

#include "v16_neon.h"

typedef struct {
	float64x2_t v[8];
} d16;

typedef struct {
	uint32x4_t v[4];
} w16;

INLINE d16
d16_all(double x)
{
	float64x2_t v = vdupq_n_f64(x);

	return (d16){ { v, v, v, v, v, v, v, v } };
}

INLINE d16
d16_from(v16 x)
{
	return (d16){ { vcvt_f64_f32(vget_low_f32(x.a)),
		vcvt_high_f64_f32(x.a), vcvt_f64_f32(vget_low_f32(x.b)),
		vcvt_high_f64_f32(x.b), vcvt_f64_f32(vget_low_f32(x.c)),
		vcvt_high_f64_f32(x.c), vcvt_f64_f32(vget_low_f32(x.d)),
		vcvt_high_f64_f32(x.d) } };
}

INLINE v16
d16_round(d16 x)
{
	return (v16){ vcvt_high_f32_f64(vcvt_f32_f64(x.v[0]), x.v[1]),
		vcvt_high_f32_f64(vcvt_f32_f64(x.v[2]), x.v[3]),
		vcvt_high_f32_f64(vcvt_f32_f64(x.v[4]), x.v[5]),
		vcvt_high_f32_f64(vcvt_f32_f64(x.v[6]), x.v[7]) };
}

INLINE d16
d16_add(d16 x, d16 y)
{
	for (int i = 0; i < 8; i++)
		x.v[i] = vaddq_f64(x.v[i], y.v[i]);
	return x;
}

INLINE d16
d16_div(d16 x, d16 y)
{
	for (int i = 0; i < 8; i++)
		x.v[i] = vdivq_f64(x.v[i], y.v[i]);
	return x;
}

/* The tree of sum16.h. */
INLINE double
d16_sum(d16 x)
{
	for (int half = 4; half > 0; half /= 2)
		for (int i = 0; i < half; i++)
			x.v[i] = vaddq_f64(x.v[i], x.v[i + half]);
	return vgetq_lane_f64(x.v[0], 0) + vgetq_lane_f64(x.v[0], 1);
}

INLINE unsigned
v16_less_bits(v16 x, v16 y)
{
	const uint8x8_t bit = vcreate_u8(0x8040201008040201u);
	uint16x8_t low = vcombine_u16(vmovn_u32(vcltq_f32(x.a, y.a)),
	    vmovn_u32(vcltq_f32(x.b, y.b)));
	uint16x8_t high = vcombine_u16(vmovn_u32(vcltq_f32(x.c, y.c)),
	    vmovn_u32(vcltq_f32(x.d, y.d)));

	return (unsigned)vaddv_u8(vand_u8(vmovn_u16(low), bit)) |
	    (unsigned)vaddv_u8(vand_u8(vmovn_u16(high), bit)) << 8;
}

/* x = m * 2^k with m in [sqrt(1/2), sqrt(2)); x is normal and positive. */
INLINE float32x4_t
v4_split(float32x4_t x, float32x4_t *k)
{
	int32x4_t u = vreinterpretq_s32_f32(x);
	int32x4_t e = vshrq_n_s32(
	    vaddq_s32(u, vdupq_n_s32(0x3f800000 - 0x3f3504f3)), 23);

	e = vsubq_s32(e, vdupq_n_s32(127));
	*k = vcvtq_f32_s32(e);
	return vreinterpretq_f32_s32(vsubq_s32(u, vshlq_n_s32(e, 23)));
}

INLINE v16
v16_split(v16 x, v16 *k)
{
	return (v16){ v4_split(x.a, &k->a), v4_split(x.b, &k->b),
		v4_split(x.c, &k->c), v4_split(x.d, &k->d) };
}

INLINE w16
w16_all(uint32_t x)
{
	uint32x4_t v = vdupq_n_u32(x);

	return (w16){ { v, v, v, v } };
}

INLINE w16
w16_count(uint32_t x)
{
	static const uint32_t first[4] = { 0, 1, 2, 3 };
	w16 w;

	for (uint32_t i = 0; i < 4; i++)
		w.v[i] = vaddq_u32(vdupq_n_u32(x + 4 * i), vld1q_u32(first));
	return w;
}

INLINE w16
w16_xor(w16 x, w16 y)
{
	for (int i = 0; i < 4; i++)
		x.v[i] = veorq_u32(x.v[i], y.v[i]);
	return x;
}

/* The low half of the products; *high gets the other. */
INLINE w16
w16_mul(w16 x, uint32_t y, w16 *high)
{
	for (int i = 0; i < 4; i++) {
		uint32x4_t a = vreinterpretq_u32_u64(
		    vmull_n_u32(vget_low_u32(x.v[i]), y));
		uint32x4_t b =
		    vreinterpretq_u32_u64(vmull_high_n_u32(x.v[i], y));

		high->v[i] = vuzp2q_u32(a, b);
		x.v[i] = vuzp1q_u32(a, b);
	}
	return x;
}

/* x[0], y[0], x[1], .. y[7] for half 0; the rest for half 1. */
INLINE w16
w16_zip(w16 x, w16 y, int half)
{
	uint32x4_t a = half ? x.v[2] : x.v[0], b = half ? y.v[2] : y.v[0];
	uint32x4_t c = half ? x.v[3] : x.v[1], d = half ? y.v[3] : y.v[1];

	return (w16){ { vzip1q_u32(a, b), vzip2q_u32(a, b), vzip1q_u32(c, d),
		vzip2q_u32(c, d) } };
}

/* x / 2 rounded down, as floats. */
INLINE v16
v16_from_half(w16 x)
{
	return (v16){ vcvtq_f32_u32(vshrq_n_u32(x.v[0], 1)),
		vcvtq_f32_u32(vshrq_n_u32(x.v[1], 1)),
		vcvtq_f32_u32(vshrq_n_u32(x.v[2], 1)),
		vcvtq_f32_u32(vshrq_n_u32(x.v[3], 1)) };
}

#endif
