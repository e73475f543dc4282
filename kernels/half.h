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

static inline float
bf16_to_f32(uint16_t h)
{
	uint32_t u = (uint32_t)h << 16;
	float f;

	memcpy(&f, &u, sizeof f);
	return f;
}

#endif
