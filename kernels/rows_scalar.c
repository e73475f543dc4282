/*
 * What is done to one token's row: norm, rotation, activation, sums.
 */
#include "scalar.h"

#include <math.h>

#include "fexp.h"
#include "sum16.h"

int
rmsnorm_scalar(float *y, const float *x, const float *w, size_t n, float eps)
{
	float s[KERN_SUMS] = { 0 }, mean, inv;
	size_t i = 0;

	for (; i + KERN_SUMS <= n; i += KERN_SUMS)
		for (size_t j = 0; j < KERN_SUMS; j++)
			s[j] += x[i + j] * x[i + j];
	for (size_t j = 0; i < n; i++, j++)
		s[j] += x[i] * x[i];
	mean = sum16(s) / (float)n;
	inv = 1.0f / sqrtf(mean + eps);
	for (i = 0; i < n; i++)
		y[i] = (x[i] * inv) * w[i];
	return mean <= 0x1.fffffep+127f ? 0 : -1;
}

void
add_scalar(float *y, const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] + y[i];
}

void
rope_scalar(float *x, size_t n_heads, size_t head_dim, const float *cosine,
    const float *sine, int neox)
{
	size_t half = head_dim / 2, step = neox ? 1 : 2, apart = neox ? half : 1;

	for (size_t h = 0; h < n_heads; h++, x += head_dim)
		for (size_t i = 0; i < half; i++) {
			float *p = x + i * step;
			float a = p[0], b = p[apart];

			p[0] = a * cosine[i] - b * sine[i];
			p[apart] = a * sine[i] + b * cosine[i];
		}
}

void
silu_mul_scalar(float *y, const float *g, const float *u, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] = g[i] / (1.0f + fexp(-g[i])) * u[i];
}

int
all_finite_scalar(const float *x, size_t n)
{
	uint32_t bad = 0;

	for (size_t i = 0; i < n; i++)
		bad |= (f32_bits(x[i]) & 0x7f800000u) == 0x7f800000u;
	return !bad;
}
