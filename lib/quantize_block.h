/*
 * What the encoders share.  Each encodes one block: 32 elements, or 256 of the
 * types named _k and of IQ4_XS.  Private to lib/quantize*.c.
 */
#ifndef QUANTIZE_BLOCK_H
#define QUANTIZE_BLOCK_H

#include <stdint.h>
#include <string.h>

#include "half.h"

enum { SUPER = 256 };

void quantize_q2_k(const float *x, void *dst);
void quantize_q3_k(const float *x, void *dst);
void quantize_q4_k(const float *x, void *dst);
void quantize_q5_k(const float *x, void *dst);
void quantize_q6_k(const float *x, void *dst);
void quantize_iq4_nl(const float *x, void *dst);
void quantize_iq4_xs(const float *x, void *dst);
void quantize_mxfp4(const float *x, void *dst);

/* Below this a group counts as all zero. */
static const float quantize_eps = 1e-15f;

static inline void
put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void
put32(uint8_t *p, uint32_t v)
{
	put16(p, v & 0xffff);
	put16(p + 2, v >> 16);
}

/* Store as binary16; returns what a decoder will read. */
static inline float
put_half(uint8_t *p, float f)
{
	uint16_t h = f32_to_f16(f);

	put16(p, h);
	return f16_to_f32(h);
}

/* Half to even, |f| up to 2^22. */
static inline int
nearest(float f)
{
	float biased = f + 12582912.0f; /* 1.5 * 2^23: its ulp is 1 */
	int32_t i;

	memcpy(&i, &biased, sizeof i);
	return (i & 0x007fffff) - 0x00400000;
}

static inline int
clamp(int v, int lo, int hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

/* The first value of largest magnitude, with its sign. */
static inline float
extreme(const float *x, int n)
{
	float amax = 0, max = 0, a;

	for (int i = 0; i < n; i++) {
		a = x[i] < 0 ? -x[i] : x[i];
		if (a > amax) {
			amax = a;
			max = x[i];
		}
	}
	return max;
}

/* Nibbles of 32 elements: 0 to 15 low, 16 to 31 high. */
static inline void
put_nibbles(uint8_t *qs, const uint8_t *l)
{
	for (int j = 0; j < 16; j++)
		qs[j] = (uint8_t)((l[j] & 15) | l[j + 16] << 4);
}

#endif
