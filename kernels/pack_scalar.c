/*
 * Activations and keys into the layouts that the products read.
 */
#include "scalar.h"

#include <string.h>

#include "fexp.h"

/* Half to even: adding and subtracting 1.5 * 2^23; |x| below 2^22. */
static inline float
nearest(float x)
{
	return (x + 12582912.0f) - 12582912.0f;
}

/*
 * One block of 32.  The scale's two lowest mantissa bits are clear, so that
 * 12582912 * dx is exact: a kernel may then leave its integer sum in a float's
 * mantissa and skip the conversion.  0, or -1 for a value that is out of range.
 */
static int
quantise(int8_t *q, float *dx, float *sx, float *sx16, const float *x)
{
	float amax = 0, inv, d = 0;
	int sum[2] = { 0, 0 }, finite = 1;

	for (int k = 0; k < KERN_BLOCK; k++) {
		float a = bits_f32(f32_bits(x[k]) & 0x7fffffffu);

		finite &= a <= 0x1p+100f;
		amax = a > amax ? a : amax;
	}
	if (!finite)
		return -1;
	if (amax < 0x1p-100f) {
		memset(q, 0, KERN_BLOCK);
	} else {
		d = bits_f32(f32_bits(amax / 127.0f) & ~3u);
		inv = 127.0f / amax;
		for (int k = 0; k < KERN_BLOCK; k++)
			q[k] = (int8_t)nearest(x[k] * inv);
	}
	for (int k = 0; k < KERN_BLOCK / 2; k++) {
		sum[0] += q[k];
		sum[1] += q[k + KERN_BLOCK / 2];
	}
	*dx = d;
	*sx = d * (float)(sum[0] + sum[1]);
	sx16[0] = d * (float)sum[0];
	sx16[1] = d * (float)sum[1];
	return 0;
}

size_t
pack_quant_scalar(struct xquant *to, size_t t0, size_t n, const float *x,
    size_t stride)
{
	size_t n_blocks = to->n_in / KERN_BLOCK;

	for (size_t t = 0; t < n; t++) {
		size_t first = (t0 + t) * n_blocks;

		for (size_t b = 0; b < n_blocks; b++) {
			size_t i = first + b;

			if (quantise(to->q + i * KERN_BLOCK, to->dx + i,
			        to->sx + i, to->sx16 + 2 * i,
			        x + t * stride + b * KERN_BLOCK) < 0)
				return t;
		}
	}
	return n;
}

size_t
pack_float_scalar(struct xfloat *to, size_t t0, size_t n, const float *x,
    size_t stride)
{
	size_t end = kern_panels(t0 + n, KERN_FLOAT_LANES);

	for (size_t t = t0; t < t0 + n; t++)
		if (!all_finite_scalar(x + (t - t0) * stride, to->n_in))
			return t - t0;
	for (size_t t = t0; t < end; t += KERN_FLOAT_LANES) {
		float *panel = to->x + t * to->n_in;

		for (size_t l = 0; l < KERN_FLOAT_LANES; l++)
			for (size_t k = 0; k < to->n_in; k++)
				panel[k * KERN_FLOAT_LANES + l] =
				    t + l < t0 + n ?
				    x[(t + l - t0) * stride + k] :
				    0;
	}
	return n;
}

void
pack_keys_scalar(float *kt, size_t t0, size_t n, const float *k, size_t stride,
    size_t head_dim)
{
	size_t end = kern_panels(t0 + n, KERN_KEY_LANES);

	for (size_t t = t0; t < end; t += KERN_KEY_LANES) {
		float *panel = kt + t * head_dim;

		for (size_t l = 0; l < KERN_KEY_LANES; l++)
			for (size_t d = 0; d < head_dim; d++)
				panel[d * KERN_KEY_LANES + l] =
				    t + l < t0 + n ?
				    k[(t + l - t0) * stride + d] :
				    0;
	}
}
