/*
 * IEEE binary16 and bfloat16 from and to their bits, without hardware help.
 */
#ifndef HALF_H
#define HALF_H

#include <stdint.h>
#include <string.h>

/* Exact, subnormals, infinities and NaN included. */
static inline float
f16_to_f32(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	uint32_t e = h >> 10 & 31, m = h & 1023, u;
	float f;

	if (e == 0) { /* zero or subnormal: m * 2^-24 */
		f = (float)m * 0x1p-24f;
		memcpy(&u, &f, sizeof u);
		u |= sign;
	} else {
		u = sign | (e == 31 ? 0x7f800000u : (e + 112) << 23) | m << 13;
	}
	memcpy(&f, &u, sizeof f);
	return f;
}

/* Nearest, ties to even. */
static inline uint16_t
f32_to_f16(float f)
{
	uint32_t u, sign;

	memcpy(&u, &f, sizeof u);
	sign = u >> 16 & 0x8000;
	u &= 0x7fffffff;
	if (u > 0x7f800000) /* NaN */
		return (uint16_t)(sign | 0x7e00);
	if (u >= 0x477ff000) /* 65520 and up, infinity */
		return (uint16_t)(sign | 0x7c00);
	if (u < 0x38800000) { /* below 2^-14: 0.5f counts in steps of 2^-24 */
		memcpy(&f, &u, sizeof f);
		f += 0.5f;
		memcpy(&u, &f, sizeof u);
		return (uint16_t)(sign | (u - 0x3f000000));
	}
	u += 0xfff + (u >> 13 & 1);
	return (uint16_t)(sign | (u - 0x38000000) >> 13);
}

/* Nearest, ties to even; NaN made quiet. */
static inline uint16_t
f32_to_bf16(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof u);
	if ((u & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(u >> 16 | 64);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline float
bf16_to_f32(uint16_t h)
{
	uint32_t u = (uint32_t)h << 16;
	float f;

	memcpy(&f, &u, sizeof f);
	return f;
}

#endif
