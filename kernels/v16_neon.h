/*
 * Sixteen floats as four registers of AdvSIMD; see v16_avx512.h, which has the
 * same functions.
 */
#ifndef V16_H
#define V16_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

typedef struct {
	float32x4_t a, b, c, d; /* lanes 0 to 3, 4 to 7, 8 to 11, 12 to 15 */
} v16;

/* f of each register. */
#define V16_1(f, x) ((v16){ f((x).a), f((x).b), f((x).c), f((x).d) })
#define V16_2(f, x, y) \
	((v16){ f((x).a, (y).a), f((x).b, (y).b), f((x).c, (y).c), \
	    f((x).d, (y).d) })
#define V16_3(f, x, y, z) \
	((v16){ f((x).a, (y).a, (z).a), f((x).b, (y).b, (z).b), \
	    f((x).c, (y).c, (z).c), f((x).d, (y).d, (z).d) })

INLINE v16
v16_all(float f)
{
	float32x4_t v = vdupq_n_f32(f);

	return (v16){ v, v, v, v };
}

INLINE v16
v16_zero(void)
{
	return v16_all(0);
}

INLINE v16
v16_load(const float *p)
{
	return (v16){ vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8),
		vld1q_f32(p + 12) };
}

INLINE void
v16_store(float *p, v16 a)
{
	vst1q_f32(p, a.a);
	vst1q_f32(p + 4, a.b);
	vst1q_f32(p + 8, a.c);
	vst1q_f32(p + 12, a.d);
}

/* n from 0 to 16; the other lanes are 0, or are not written. */
INLINE v16
v16_load_n(const float *p, size_t n)
{
	float some[16] = { 0 };

	for (size_t i = 0; i < n; i++)
		some[i] = p[i];
	return v16_load(some);
}

INLINE void
v16_store_n(float *p, v16 a, size_t n)
{
	float all[16];

	v16_store(all, a);
	for (size_t i = 0; i < n; i++)
		p[i] = all[i];
}

/* a, with lanes from n on taken from b. */
INLINE v16
v16_keep_n(v16 a, size_t n, v16 b)
{
	float lanes[16];

	v16_store(lanes, b);
	v16_store_n(lanes, a, n);
	return v16_load(lanes);
}

INLINE v16
v16_add(v16 a, v16 b)
{
	return V16_2(vaddq_f32, a, b);
}

INLINE v16
v16_sub(v16 a, v16 b)
{
	return V16_2(vsubq_f32, a, b);
}

INLINE v16
v16_mul(v16 a, v16 b)
{
	return V16_2(vmulq_f32, a, b);
}

INLINE v16
v16_div(v16 a, v16 b)
{
	return V16_2(vdivq_f32, a, b);
}

/* a * b + c, rounded once. */
INLINE v16
v16_fma(v16 a, v16 b, v16 c)
{
	return V16_3(vfmaq_f32, c, a, b);
}

/* A number where one of the two is one. */
INLINE v16
v16_max(v16 a, v16 b)
{
	return V16_2(vmaxnmq_f32, a, b);
}

INLINE v16
v16_min(v16 a, v16 b)
{
	return V16_2(vminnmq_f32, a, b);
}

INLINE v16
v16_negate(v16 a)
{
	return V16_1(vnegq_f32, a);
}

/* a < b ? x : y, and the same for a that is not a number. */
INLINE v16
v16_if_less(v16 a, v16 b, v16 x, v16 y)
{
	return (v16){ vbslq_f32(vcltq_f32(a.a, b.a), x.a, y.a),
		vbslq_f32(vcltq_f32(a.b, b.b), x.b, y.b),
		vbslq_f32(vcltq_f32(a.c, b.c), x.c, y.c),
		vbslq_f32(vcltq_f32(a.d, b.d), x.d, y.d) };
}

INLINE v16
v16_if_nan(v16 a, v16 x, v16 y)
{
	return (v16){ vbslq_f32(vceqq_f32(a.a, a.a), y.a, x.a),
		vbslq_f32(vceqq_f32(a.b, a.b), y.b, x.b),
		vbslq_f32(vceqq_f32(a.c, a.c), y.c, x.c),
		vbslq_f32(vceqq_f32(a.d, a.d), y.d, x.d) };
}

/* p * 2^n for whole n: in two factors, so that only the last step rounds. */
INLINE float32x4_t
v4_scale(float32x4_t p, float32x4_t n)
{
	const int32x4_t bias = vdupq_n_s32(127);
	int32x4_t i = vcvtq_s32_f32(n), half = vshrq_n_s32(i, 1);
	int32x4_t rest = vsubq_s32(i, half);

	half = vshlq_n_s32(vaddq_s32(half, bias), 23);
	rest = vshlq_n_s32(vaddq_s32(rest, bias), 23);
	return vmulq_f32(vmulq_f32(p, vreinterpretq_f32_s32(half)),
	    vreinterpretq_f32_s32(rest));
}

INLINE v16
v16_scale(v16 p, v16 n)
{
	return V16_2(v4_scale, p, n);
}

INLINE int
v16_all_finite(v16 a)
{
	v16 m = V16_1(vabsq_f32, a);

	/* the larger one of a NaN and a number is the NaN */
	m.a = vmaxq_f32(vmaxq_f32(m.a, m.b), vmaxq_f32(m.c, m.d));
	return vmaxvq_f32(m.a) <= 0x1.fffffep+127f;
}

/* The tree of sum16.h. */
INLINE float
v16_sum(v16 a)
{
	float32x4_t s =
	    vaddq_f32(vaddq_f32(a.a, a.c), vaddq_f32(a.b, a.d));
	float32x2_t t = vadd_f32(vget_low_f32(s), vget_high_f32(s));

	return vget_lane_f32(t, 0) + vget_lane_f32(t, 1);
}

INLINE float
v16_largest(v16 a)
{
	return vmaxnmvq_f32(vmaxnmq_f32(
	    vmaxnmq_f32(a.a, a.b), vmaxnmq_f32(a.c, a.d)));
}

/* p[0], p[0], p[1], p[1], .. p[7], p[7] */
INLINE v16
v16_load_twice(const float *p)
{
	float32x4_t a = vld1q_f32(p), b = vld1q_f32(p + 4);

	return (v16){ vzip1q_f32(a, a), vzip2q_f32(a, a), vzip1q_f32(b, b),
		vzip2q_f32(b, b) };
}

/* Neighbours change places. */
INLINE v16
v16_swap(v16 a)
{
	return V16_1(vrev64q_f32, a);
}

INLINE float32x4_t
v4_negate_even(float32x4_t a)
{
	const uint64x2_t sign = vdupq_n_u64(0x80000000);

	return vreinterpretq_f32_u64(
	    veorq_u64(vreinterpretq_u64_f32(a), sign));
}

/* Even lanes change sign. */
INLINE v16
v16_negate_even(v16 a)
{
	return V16_1(v4_negate_even, a);
}

/* Four rows become four columns. */
INLINE void
v4_turn(float32x4_t r[4])
{
	float64x2_t a = vreinterpretq_f64_f32(vtrn1q_f32(r[0], r[1]));
	float64x2_t b = vreinterpretq_f64_f32(vtrn2q_f32(r[0], r[1]));
	float64x2_t c = vreinterpretq_f64_f32(vtrn1q_f32(r[2], r[3]));
	float64x2_t d = vreinterpretq_f64_f32(vtrn2q_f32(r[2], r[3]));

	r[0] = vreinterpretq_f32_f64(vtrn1q_f64(a, c));
	r[1] = vreinterpretq_f32_f64(vtrn1q_f64(b, d));
	r[2] = vreinterpretq_f32_f64(vtrn2q_f64(a, c));
	r[3] = vreinterpretq_f32_f64(vtrn2q_f64(b, d));
}

/* Sixteen rows become sixteen columns. */
INLINE void
v16_turn(v16 r[16])
{
	float32x4_t t[4][4][4]; /* which columns, which rows */

	for (int i = 0; i < 16; i++) {
		t[0][i / 4][i % 4] = r[i].a;
		t[1][i / 4][i % 4] = r[i].b;
		t[2][i / 4][i % 4] = r[i].c;
		t[3][i / 4][i % 4] = r[i].d;
	}
	for (int i = 0; i < 16; i++)
		v4_turn(t[i / 4][i % 4]);
	for (int i = 0; i < 16; i++)
		r[i] = (v16){ t[i / 4][0][i % 4], t[i / 4][1][i % 4],
			t[i / 4][2][i % 4], t[i / 4][3][i % 4] };
}

/* Binary16 and bfloat16, exactly. */
INLINE float32x4_t
v4_from_f16(const uint8_t *p)
{
	return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}

INLINE v16
v16_from_f16(const uint8_t *p)
{
	return (v16){ v4_from_f16(p), v4_from_f16(p + 8), v4_from_f16(p + 16),
		v4_from_f16(p + 24) };
}

INLINE float32x4_t
v4_from_bf16(const uint8_t *p)
{
	return vreinterpretq_f32_u32(
	    vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}

INLINE v16
v16_from_bf16(const uint8_t *p)
{
	return (v16){ v4_from_bf16(p), v4_from_bf16(p + 8),
		v4_from_bf16(p + 16), v4_from_bf16(p + 24) };
}

/* Whole numbers of 16 bits; unsigned bytes less a constant; signed bytes. */
INLINE v16
v16_from_s16(int16x8_t low, int16x8_t high)
{
	return (v16){ vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))),
		vcvtq_f32_s32(vmovl_high_s16(low)),
		vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
		vcvtq_f32_s32(vmovl_high_s16(high)) };
}

INLINE v16
v16_from_u8(const int8_t *p, int less)
{
	uint8x16_t v = vreinterpretq_u8_s8(vld1q_s8(p));
	uint8x8_t l = vdup_n_u8((uint8_t)less);

	return v16_from_s16(vreinterpretq_s16_u16(vsubl_u8(vget_low_u8(v), l)),
	    vreinterpretq_s16_u16(vsubl_u8(vget_high_u8(v), l)));
}

INLINE v16
v16_from_s8(const int8_t *p)
{
	int8x16_t v = vld1q_s8(p);

	return v16_from_s16(vmovl_s8(vget_low_s8(v)), vmovl_high_s8(v));
}

#endif
