/*
 * Expansion of weight rows with AdvSIMD; see expand.c, which describes the
 * layouts.  Quants are signed bytes.  Included by a file that has included
 * v16_neon.h and defines
 *
 *   KERNEL(name)  the functions' names
 *   TOGETHER      see expand_rows.h
 */
#include "groups.h"

#include "blocks.h"
#include "simd.h"

static inline float
half(const uint8_t *p)
{
	float16x4_t h = vreinterpret_f16_u16(vdup_n_u16(load_u16(p)));

	return vgetq_lane_f32(vcvt_f32_f16(h), 0);
}

/* Eight binary16 numbers, `stride` bytes apart. */
INLINE void
halves8(float *to, const uint8_t *p, size_t stride)
{
	uint8_t h[16];

	for (size_t i = 0; i < 8; i++)
		memcpy(h + 2 * i, p + i * stride, 2);
	vst1q_f32(to, v4_from_f16(h));
	vst1q_f32(to + 4, v4_from_f16(h + 8));
}

/* Elements k to k + 15, k a multiple of 16. */
INLINE void
put16(int8_t *q, size_t k, uint8x16_t v)
{
	int8x16_t s = vreinterpretq_s8_u8(v);

	q += k * TOGETHER;
	if (TOGETHER == 1) {
		vst1q_s8(q, s);
	} else {
		vst1_s8(q, vget_low_s8(s));
		vst1_s8(q + 8 * TOGETHER, vget_high_s8(s));
	}
}

/* Bits shift to shift + 7 of each byte, those in mask. */
INLINE uint8x16_t
bits(uint8x16_t v, int shift, uint8_t mask)
{
	return vandq_u8(
	    vshlq_u8(v, vdupq_n_s8((int8_t)-shift)), vdupq_n_u8(mask));
}

/* The same, moved left by `left` again. */
INLINE uint8x16_t
high_bits(uint8x16_t v, int shift, uint8_t mask, int left)
{
	return vshlq_u8(bits(v, shift, mask), vdupq_n_s8((int8_t)left));
}

/* 16 in byte j where bit j of the two bytes is set. */
INLINE uint8x16_t
fifth_bits(const uint8_t *qh)
{
	const uint8x8_t bit = vcreate_u8(0x8040201008040201u);
	uint8x16_t v = vcombine_u8(vtst_u8(vdup_n_u8(qh[0]), bit),
	    vtst_u8(vdup_n_u8(qh[1]), bit));

	return vandq_u8(v, vdupq_n_u8(16));
}

/* 16 bytes of nibbles, elements 0 to 15 and 16 to 31, less a constant. */
INLINE void
put_nibbles(int8_t *q, const uint8_t *qs, uint8_t less)
{
	uint8x16_t v = vld1q_u8(qs), l = vdupq_n_u8(less);

	put16(q, 0, vsubq_u8(bits(v, 0, 15), l));
	put16(q, 16, vsubq_u8(bits(v, 4, 15), l));
}

INLINE void
put_5_bits(int8_t *q, const uint8_t *qs, const uint8_t *qh, uint8_t less)
{
	uint8x16_t v = vld1q_u8(qs), l = vdupq_n_u8(less);

	put16(q, 0,
	    vsubq_u8(vorrq_u8(bits(v, 0, 15), fifth_bits(qh)), l));
	put16(q, 16,
	    vsubq_u8(vorrq_u8(bits(v, 4, 15), fifth_bits(qh + 2)), l));
}

INLINE void
put_looked_up(int8_t *q, const uint8_t *qs, const int8_t table[16])
{
	uint8x16_t v = vld1q_u8(qs);
	uint8x16_t t = vreinterpretq_u8_s8(vld1q_s8(table));

	put16(q, 0, vqtbl1q_u8(t, bits(v, 0, 15)));
	put16(q, 16, vqtbl1q_u8(t, bits(v, 4, 15)));
}

/* Floats from bytes times d. */
INLINE void
scaled8(float *w, int8x8_t bytes, float d)
{
	int16x8_t v = vmovl_s8(bytes);

	vst1q_f32(w,
	    vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(v))), d));
	vst1q_f32(w + 4, vmulq_n_f32(vcvtq_f32_s32(vmovl_high_s16(v)), d));
}

INLINE void
scaled16(float *w, int8x16_t bytes, float d)
{
	scaled8(w, vget_low_s8(bytes), d);
	scaled8(w + 8, vget_high_s8(bytes), d);
}

static inline void
expand_q4_0(const struct block_q4_0 *b, int8_t *q, float *w, float *m)
{
	(void)m;
	*w = half(b->d);
	put_nibbles(q, b->qs, 8);
}

static inline void
expand_q4_1(const struct block_q4_1 *b, int8_t *q, float *w, float *m)
{
	*w = half(b->d);
	*m = half(b->m);
	put_nibbles(q, b->qs, 0);
}

static inline void
expand_q5_0(const struct block_q5_0 *b, int8_t *q, float *w, float *m)
{
	(void)m;
	*w = half(b->d);
	put_5_bits(q, b->qs, b->qh, 16);
}

static inline void
expand_q5_1(const struct block_q5_1 *b, int8_t *q, float *w, float *m)
{
	*w = half(b->d);
	*m = half(b->m);
	put_5_bits(q, b->qs, b->qh, 0);
}

static inline void
expand_q8_0(const struct block_q8_0 *b, int8_t *q, float *w, float *m)
{
	(void)m;
	*w = half(b->d);
	for (size_t k = 0; k < 32; k += 16)
		put16(q, k, vreinterpretq_u8_s8(vld1q_s8(b->qs + k)));
}

static inline void
expand_iq4_nl(const struct block_iq4_nl *b, int8_t *q, float *w, float *m)
{
	(void)m;
	*w = half(b->d);
	put_looked_up(q, b->qs, iq4_values);
}

/* The scale is 2^(e - 128). */
static inline void
expand_mxfp4(const struct block_mxfp4 *b, int8_t *q, float *w, float *m)
{
	uint32_t u = b->e < 2 ? 0x00200000u << b->e :
	                        (uint32_t)(b->e - 1) << 23;

	(void)m;
	memcpy(w, &u, sizeof u);
	put_looked_up(q, b->qs, mxfp4_values);
}

static inline void
expand_q2_k(const struct block_q2_k *b, int8_t *q, float *w, float *m)
{
	uint8x16_t s = vld1q_u8(b->scales);

	scaled16(w, vreinterpretq_s8_u8(bits(s, 0, 15)), half(b->d));
	scaled16(m, vreinterpretq_s8_u8(bits(s, 4, 15)), -half(b->dmin));
	for (size_t at = 0; at < 64; at += 16) {
		uint8x16_t v = vld1q_u8(b->qs + at);
		size_t k = at / 32 * 128 + at % 32;

		for (int i = 0; i < 4; i++)
			put16(q, k + (size_t)i * 32, bits(v, 2 * i, 3));
	}
}

/* The sixteen scales less 32, 6 bits each. */
INLINE int8x16_t
scales_q3(const uint8_t *s)
{
	const int8x16_t shift =
	    vreinterpretq_s8_u64(vcombine_u64(vcreate_u64(0xfefefefe00000000u),
	        vcreate_u64(0xfafafafafcfcfcfcu))); /* 0, -2, -4, -6 */
	uint8x8_t v = vld1_u8(s);
	uint8x16_t low = vcombine_u8(
	    vand_u8(v, vdup_n_u8(15)), vshr_n_u8(v, 4));
	uint8x16_t high =
	    vreinterpretq_u8_s32(vdupq_n_s32(load_i32(s + 8)));

	high = vandq_u8(vshlq_u8(high, shift), vdupq_n_u8(3));
	low = vorrq_u8(low, vshlq_n_u8(high, 4));
	return vsubq_s8(vreinterpretq_s8_u8(low), vdupq_n_s8(32));
}

static inline void
expand_q3_k(const struct block_q3_k *b, int8_t *q, float *w, float *m)
{
	const uint8x16_t four = vdupq_n_u8(4);

	(void)m;
	scaled16(w, scales_q3(b->scales), half(b->d));
	for (size_t at = 0; at < 64; at += 16) {
		uint8x16_t v = vld1q_u8(b->qs + at);
		uint8x16_t mask = vld1q_u8(b->hmask + at % 32);
		size_t h = at / 32, k = h * 128 + at % 32;

		for (int i = 0; i < 4; i++)
			put16(q, k + (size_t)i * 32,
			    vsubq_u8(vorrq_u8(bits(v, 2 * i, 3),
			                 high_bits(mask, (int)h * 4 + i, 1, 2)),
			        four));
	}
}

INLINE void
scaled_k4(const uint8_t *s, float d, float dmin, float *w, float *m)
{
	uint64_t sc, mn;

	scales_k4(s, &sc, &mn);
	scaled8(w, vcreate_s8(sc), d);
	scaled8(m, vcreate_s8(mn), -dmin);
}

static inline void
expand_q4_k(const struct block_q4_k *b, int8_t *q, float *w, float *m)
{
	scaled_k4(b->scales, half(b->d), half(b->dmin), w, m);
	for (size_t at = 0; at < 128; at += 16) {
		uint8x16_t v = vld1q_u8(b->qs + at);
		size_t k = at / 32 * 64 + at % 32;

		put16(q, k, bits(v, 0, 15));
		put16(q, k + 32, bits(v, 4, 15));
	}
}

static inline void
expand_q5_k(const struct block_q5_k *b, int8_t *q, float *w, float *m)
{
	scaled_k4(b->scales, half(b->d), half(b->dmin), w, m);
	for (size_t at = 0; at < 128; at += 16) {
		uint8x16_t v = vld1q_u8(b->qs + at);
		uint8x16_t qh = vld1q_u8(b->qh + at % 32);
		size_t c = at / 32, k = c * 64 + at % 32;
		int bit = (int)c * 2;

		put16(q, k, vorrq_u8(bits(v, 0, 15), high_bits(qh, bit, 1, 4)));
		put16(q, k + 32,
		    vorrq_u8(bits(v, 4, 15), high_bits(qh, bit + 1, 1, 4)));
	}
}

static inline void
expand_q6_k(const struct block_q6_k *b, int8_t *q, float *w, float *m)
{
	const uint8x16_t less = vdupq_n_u8(32);

	(void)m;
	scaled16(w, vld1q_s8(b->scales), half(b->d));
	for (size_t at = 0; at < 64; at += 16) {
		size_t h = at / 32, i = at % 32, k = h * 128 + i;
		uint8x16_t a = vld1q_u8(b->ql + h * 64 + i);
		uint8x16_t c = vld1q_u8(b->ql + h * 64 + 32 + i);
		uint8x16_t high = vld1q_u8(b->qh + at);
		uint8x16_t v[4] = {
			vorrq_u8(bits(a, 0, 15), high_bits(high, 0, 3, 4)),
			vorrq_u8(bits(c, 0, 15), high_bits(high, 2, 3, 4)),
			vorrq_u8(bits(a, 4, 15), high_bits(high, 4, 3, 4)),
			vorrq_u8(bits(c, 4, 15), high_bits(high, 6, 3, 4)),
		};

		for (size_t j = 0; j < 4; j++)
			put16(q, k + 32 * j, vsubq_u8(v[j], less));
	}
}

static inline void
expand_iq4_xs(const struct block_iq4_xs *b, int8_t *q, float *w, float *m)
{
	uint32_t high = load_u16(b->scales_h);
	float d = half(b->d);

	(void)m;
	for (size_t j = 0; j < 8; j++) {
		int sc = (b->scales_l[j / 2] >> 4 * (j % 2) & 15) |
		    (int)(high >> 2 * j & 3) << 4;

		w[j] = d * (float)(sc - 32);
		put_looked_up(q + 32 * j * TOGETHER, b->qs + 16 * j,
		    iq4_values);
	}
}

#include "expand_rows.h"
