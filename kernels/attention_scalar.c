/*
 * Attention, query by query: scores of all keys, their maximum, exponentials and
 * sum; then the weighted sum of the values, key by key.
 */
#include "scalar.h"

#include <math.h>

#include "fexp.h"
#include "sum16.h"

/* e = scores (n_keys); a lane is a key.  Returns the largest. */
static float
scores(float *e, const float *q, const float *kt, size_t n_keys,
    size_t head_dim, float scale)
{
	float max = -(float)INFINITY;

	for (size_t j = 0; j < n_keys; j += KERN_KEY_LANES) {
		const float *panel = kt + j * head_dim;
		float acc[KERN_KEY_LANES] = { 0 };

		for (size_t d = 0; d < head_dim; d++)
			for (size_t l = 0; l < KERN_KEY_LANES; l++)
				acc[l] = fmaf(q[d],
				    panel[d * KERN_KEY_LANES + l], acc[l]);
		for (size_t l = 0; l < KERN_KEY_LANES; l++)
			e[j + l] = acc[l] * scale;
	}
	for (size_t j = 0; j < n_keys; j++)
		max = e[j] > max ? e[j] : max;
	return max;
}

/* out[0..n-1], n <= 16, of the whole sum over the keys. */
static inline void
values(float *out, size_t n, const float *e, const float *v, size_t stride,
    size_t n_keys, float den)
{
	float acc[KERN_SUMS] = { 0 };

	for (size_t j = 0; j < n_keys; j++)
		for (size_t d = 0; d < n; d++)
			acc[d] = fmaf(e[j], v[j * stride + d], acc[d]);
	for (size_t d = 0; d < n; d++)
		out[d] = acc[d] / den;
}

static void
one_query(float *out, const float *q, const float *kt, const float *v,
    size_t stride, size_t n_keys, size_t head_dim, float scale, float *e)
{
	float s[KERN_SUMS] = { 0 };
	float max = scores(e, q, kt, n_keys, head_dim, scale), den;
	size_t d = 0;

	for (size_t j = 0; j < n_keys; j++) {
		e[j] = fexp(e[j] - max);
		s[j % KERN_SUMS] += e[j];
	}
	den = sum16(s);
	for (; d + KERN_SUMS <= head_dim; d += KERN_SUMS)
		values(out + d, KERN_SUMS, e, v + d, stride, n_keys, den);
	if (d < head_dim)
		values(out + d, head_dim - d, e, v + d, stride, n_keys, den);
}

void
attention_scalar(float *out, size_t out_stride, const float *const *q,
    size_t n_q, const float *kt, const float *v, size_t stride, size_t n_keys,
    size_t head_dim, float scale, float *e)
{
	for (size_t i = 0; i < n_q; i++)
		one_query(out + i * out_stride, q[i], kt, v, stride, n_keys,
		    head_dim, scale, e);
}
