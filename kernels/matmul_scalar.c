/*
 * Matrix products.  A fused multiply-add stands where fmaf is written and
 * nowhere else; its order along K is part of the result.
 */
#include "scalar.h"

#include <math.h>

#include "expand.h"

void
expand_scalar(struct wtile *to, enum ggml_type type, const uint8_t *src,
    size_t row_bytes, size_t n_rows, size_t n_in)
{
	to->n_rows = n_rows;
	to->n_in = n_in;
	to->group = expand_group(type);
	to->mins = expand_has_mins(type);
	to->type = type;
	to->next = NULL;
	to->next_bytes = 0;
	for (size_t r = 0; r < n_rows; r++)
		expand_row(type, src + r * row_bytes, n_in, to->q + r * n_in,
		    to->w + r * (n_in / to->group),
		    to->m + r * (n_in / to->group));
}

/*
 * Integers: exact in any order.  Widened to 16 bits first because compilers
 * know an instruction for sums of such products.
 */
static inline int
dot(const int8_t *q, const int8_t *x, const int n)
{
	int16_t a[KERN_BLOCK], b[KERN_BLOCK];
	int sum = 0;

	for (int k = 0; k < n; k++)
		a[k] = q[k];
	for (int k = 0; k < n; k++)
		b[k] = x[k];
	for (int k = 0; k < n; k++)
		sum += a[k] * b[k];
	return sum;
}

/* Scales of 32: one step per block. */
static float
row32(const int8_t *q, const float *w, const int8_t *x, const float *dx,
    size_t n_blocks)
{
	float acc = 0;

	for (size_t b = 0; b < n_blocks; b++) {
		float u = (float)dot(q + b * 32, x + b * 32, 32) * dx[b];

		acc = fmaf(u, w[b], acc);
	}
	return acc;
}

static float
row32_mins(const int8_t *q, const float *w, const float *m, const int8_t *x,
    const float *dx, const float *sx, size_t n_blocks)
{
	float acc = 0;

	for (size_t b = 0; b < n_blocks; b++) {
		float u = (float)dot(q + b * 32, x + b * 32, 32) * dx[b];

		acc = fmaf(u, w[b], acc);
		acc = fmaf(sx[b], m[b], acc);
	}
	return acc;
}

/* Scales of 16: two steps per block of activations, with the same dx. */
static float
row16(const int8_t *q, const float *w, const int8_t *x, const float *dx,
    size_t n_blocks)
{
	float acc = 0;

	for (size_t h = 0; h < 2 * n_blocks; h++) {
		float u = (float)dot(q + h * 16, x + h * 16, 16) * dx[h / 2];

		acc = fmaf(u, w[h], acc);
	}
	return acc;
}

static float
row16_mins(const int8_t *q, const float *w, const float *m, const int8_t *x,
    const float *dx, const float *sx16, size_t n_blocks)
{
	float acc = 0;

	for (size_t h = 0; h < 2 * n_blocks; h++) {
		float u = (float)dot(q + h * 16, x + h * 16, 16) * dx[h / 2];

		acc = fmaf(u, w[h], acc);
		acc = fmaf(sx16[h], m[h], acc);
	}
	return acc;
}

void
matmul_quant_scalar(float *y, size_t stride, const struct wtile *w,
    const struct xquant *x, size_t t0, size_t n)
{
	size_t n_blocks = w->n_in / KERN_BLOCK;
	size_t n_groups = w->n_in / w->group;

	for (size_t t = 0; t < n; t++) {
		const int8_t *xq = x->q + (t0 + t) * w->n_in;
		const float *dx = x->dx + (t0 + t) * n_blocks;
		const float *sx = x->sx + (t0 + t) * n_blocks;
		const float *sx16 = x->sx16 + (t0 + t) * 2 * n_blocks;

		for (size_t r = 0; r < w->n_rows; r++) {
			const int8_t *q = w->q + r * w->n_in;
			const float *scale = w->w + r * n_groups;
			const float *min = w->m + r * n_groups;

			y[t * stride + r] =
			    w->group == 32 ?
			    w->mins ? row32_mins(q, scale, min, xq, dx, sx,
			                  n_blocks) :
			              row32(q, scale, xq, dx, n_blocks) :
			    w->mins ? row16_mins(q, scale, min, xq, dx, sx16,
			                  n_blocks) :
			              row16(q, scale, xq, dx, n_blocks);
		}
	}
}

enum { ROWS = 4 }; /* weight rows that share the activations' loads */

/* ROWS rows times one panel of tokens: acc (ROWS, KERN_FLOAT_LANES). */
static inline void
panel_rows(float acc[ROWS][KERN_FLOAT_LANES], const float *w, size_t n_in,
    const float *panel)
{
	for (size_t k = 0; k < n_in; k++)
		for (int r = 0; r < ROWS; r++)
			for (int l = 0; l < KERN_FLOAT_LANES; l++)
				acc[r][l] = fmaf(
				    panel[k * KERN_FLOAT_LANES + (size_t)l],
				    w[(size_t)r * n_in + k], acc[r][l]);
}

static inline void
panel_row(float acc[KERN_FLOAT_LANES], const float *w, size_t n_in,
    const float *panel)
{
	for (size_t k = 0; k < n_in; k++)
		for (int l = 0; l < KERN_FLOAT_LANES; l++)
			acc[l] = fmaf(panel[k * KERN_FLOAT_LANES + (size_t)l],
			    w[k], acc[l]);
}

void
matmul_float_scalar(float *y, size_t stride, const float *w, size_t n_rows,
    const struct xfloat *x, size_t t0, size_t n)
{
	for (size_t t = t0, lanes; t < t0 + n; t += lanes) {
		size_t lane = t % KERN_FLOAT_LANES;
		const float *panel = x->x + (t - lane) * x->n_in;
		float *to = y + (t - t0) * stride;
		size_t r = 0;

		lanes = KERN_FLOAT_LANES - lane;
		if (lanes > t0 + n - t)
			lanes = t0 + n - t;
		for (; r + ROWS <= n_rows; r += ROWS) {
			float acc[ROWS][KERN_FLOAT_LANES] = { { 0 } };

			panel_rows(acc, w + r * x->n_in, x->n_in, panel);
			for (size_t l = 0; l < lanes; l++)
				for (size_t i = 0; i < ROWS; i++)
					to[l * stride + r + i] =
					    acc[i][lane + l];
		}
		for (; r < n_rows; r++) {
			float acc[KERN_FLOAT_LANES] = { 0 };

			panel_row(acc, w + r * x->n_in, x->n_in, panel);
			for (size_t l = 0; l < lanes; l++)
				to[l * stride + r] = acc[lane + l];
		}
	}
}
