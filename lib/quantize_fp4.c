/* Types whose sixteen levels come from a table. */
#include <math.h>

#include "blocks.h"
#include "quantize_block.h"

/* The level nearest to x; the upper one in the middle. */
static int
iq4_level(float x)
{
	int i = 0;

	while (i < 15 && !(x < (float)iq4_values[i + 1]))
		i++;
	if (i == 15 || x <= (float)iq4_values[0])
		return i;
	return x - (float)iq4_values[i] < (float)iq4_values[i + 1] - x ? i :
	    i + 1;
}

/* Sums of w*q*x and w*q*q for levels of id * x, weights x^2. */
static void
iq4_sums(const float *x, float id, float *sqx, float *sq2)
{
	float q, w;

	*sqx = *sq2 = 0;
	for (int i = 0; i < 32; i++) {
		q = (float)iq4_values[iq4_level(id * x[i])];
		w = x[i] * x[i];
		*sqx += w * q * x[i];
		*sq2 += w * q * q;
	}
}

/* The scale of 32 elements: the best of 16 candidates in least squares. */
static float
iq4_scale(const float *x)
{
	float max = extreme(x, 32), d, best, sqx, sq2;

	if (fabsf(max) < quantize_eps)
		return 0;
	d = -max / (float)iq4_values[0];
	iq4_sums(x, 1 / d, &sqx, &sq2);
	d = sqx / sq2;
	best = d * sqx;
	for (int i = -7; i <= 7; i++) {
		iq4_sums(x, (float)(i + iq4_values[0]) / max, &sqx, &sq2);
		if (sq2 > 0 && sqx * sqx > best * sq2) {
			d = sqx / sq2;
			best = d * sqx;
		}
	}
	return d;
}

static void
iq4_levels(const float *x, float d, uint8_t *qs)
{
	float id = d != 0 ? 1 / d : 0;
	uint8_t l[32];

	for (int i = 0; i < 32; i++)
		l[i] = (uint8_t)iq4_level(id * x[i]);
	put_nibbles(qs, l);
}

void
quantize_iq4_nl(const float *x, void *dst)
{
	struct block_iq4_nl *b = dst;
	float d = iq4_scale(x);

	put_half(b->d, d);
	iq4_levels(x, d, b->qs);
}

void
quantize_iq4_xs(const float *x, void *dst)
{
	struct block_iq4_xs *b = dst;
	float scale[8], d, id;
	unsigned high = 0;
	int sc;

	for (int j = 0; j < 8; j++)
		scale[j] = iq4_scale(x + 32 * j);
	d = -extreme(scale, 8) / 32;
	id = d != 0 ? 1 / d : 0;
	put_half(b->d, d);
	memset(b->scales_l, 0, sizeof b->scales_l);
	for (int j = 0; j < 8; j++) {
		sc = clamp(nearest(id * scale[j]), -32, 31);
		iq4_levels(x + 32 * j, d * (float)sc, b->qs + 16 * j);
		sc += 32;
		b->scales_l[j / 2] |= (uint8_t)((sc & 15) << 4 * (j % 2));
		high |= (unsigned)sc >> 4 << 2 * j;
	}
	put16(b->scales_h, high);
}

static uint8_t
mxfp4_level(float x, float d)
{
	float best = INFINITY, e;
	uint8_t at = 0;

	for (uint8_t i = 0; i < 16; i++) {
		e = fabsf(x - (float)mxfp4_values[i] * d);
		if (e < best) {
			best = e;
			at = i;
		}
	}
	return at;
}

/* A power of two such that the largest element is 4 to 8 in E2M1's units. */
void
quantize_mxfp4(const float *x, void *dst)
{
	struct block_mxfp4 *b = dst;
	float amax = fabsf(extreme(x, 32));
	int e = amax > 0 ? clamp(ilogbf(amax) - 2 + 127, 0, 254) : 0;
	uint8_t l[32];

	b->e = (uint8_t)e;
	for (int i = 0; i < 32; i++)
		l[i] = mxfp4_level(x[i], ldexpf(1, e - 128));
	put_nibbles(b->qs, l);
}
