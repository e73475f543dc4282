/*
 * f32_exp() as an inline function, for kernels; see fmath.h.
 */
#ifndef FEXP_H
#define FEXP_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float
bits_f32(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof f);
	return f;
}

static inline uint32_t
f32_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof u);
	return u;
}

/* 2^n for n from -126 to 127. */
static inline float
pow2_f32(int n)
{
	return bits_f32((uint32_t)(n + 127) << 23);
}

/*
 * x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its series to r^7/7!; times 2^n
 * in two factors, so that only the last step rounds a subnormal.
 */
static inline float
fexp(float x)
{
	/* ln 2 = hi + lo, hi with 9 trailing zero bits: n * hi is exact */
	const float hi = 0x1.62e400p-1f, lo = 0x1.7f7d1cp-20f;
	float n, r, p;
	int half;

	if (x > 88.73f)
		return (float)INFINITY;
	if (x < -103.98f)
		return 0;
	if (x != x)
		return x;
	/* adding and subtracting 1.5 * 2^23 rounds half to even */
	n = (x * 0x1.715476p+0f + 12582912.0f) - 12582912.0f;
	r = fmaf(n, -hi, x);
	r = fmaf(n, -lo, r);
	p = 0x1.a01a02p-13f;             /* 1/7! */
	p = fmaf(p, r, 0x1.6c16c2p-10f); /* 1/6! */
	p = fmaf(p, r, 0x1.111112p-7f);  /* 1/5! */
	p = fmaf(p, r, 0x1.555556p-5f);  /* 1/4! */
	p = fmaf(p, r, 0x1.555556p-3f);  /* 1/3! */
	p = fmaf(p, r, 0.5f);
	p = fmaf(p, r, 1.0f);
	p = fmaf(p, r, 1.0f);
	half = (int)n >> 1;
	return p * pow2_f32(half) * pow2_f32((int)n - half);
}

#endif
