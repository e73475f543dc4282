#include <math.h>

#include "blocks.h"
#include "quantize_block.h"

/* The search for scale and minimum of a group, by type. */
struct affine_search {
	int n, top;           /* elements; levels 0 to top */
	float start, step;    /* candidates top + start + step * i ... */
	int steps;            /* ... for i = 0 to steps */
	int absolute;         /* error |e| rather than e^2 */
};

static void
levels(const float *x, int n, float iscale, float min, int top, uint8_t *l)
{
	for (int i = 0; i < n; i++)
		l[i] = (uint8_t)clamp(nearest(iscale * (x[i] - min)), 0, top);
}

static float
affine_error(const struct affine_search *s, const float *x, const float *w,
    float scale, float min, const uint8_t *l)
{
	float sum = 0, e;

	for (int i = 0; i < s->n; i++) {
		e = scale * (float)l[i] + min - x[i];
		sum += w[i] * (s->absolute ? fabsf(e) : e * e);
	}
	return sum;
}

/*
 * Scale and minimum that fit these levels best, by weighted least squares; the
 * minimum is at most 0.  Returns 0 where the system is singular.
 */
static int
affine_fit(int n, const float *x, const float *w, const uint8_t *l, float sw,
    float sx, float *scale, float *min)
{
	float sl = 0, sl2 = 0, sxl = 0, wl, det;

	for (int i = 0; i < n; i++) {
		wl = w[i] * (float)l[i];
		sl += wl;
		sl2 += wl * (float)l[i];
		sxl += wl * x[i];
	}
	det = sw * sl2 - sl * sl;
	if (!(det > 0))
		return 0;
	*scale = (sw * sxl - sx * sl) / det;
	*min = (sl2 * sx - sl * sxl) / det;
	if (*min > 0) {
		*min = 0;
		*scale = sxl / sl2;
	}
	return 1;
}

/* Returns the scale; *neg_min is the minimum's magnitude; l (n). */
static float
search_affine(const struct affine_search *s, const float *x, const float *w,
    uint8_t *l, float *neg_min)
{
	float min = x[0], max = x[0], sw = w[0], sx = w[0] * x[0];
	float iscale, scale, best, err, try_scale, try_min;
	uint8_t try_l[32];

	for (int i = 1; i < s->n; i++) {
		min = x[i] < min ? x[i] : min;
		max = x[i] > max ? x[i] : max;
		sw += w[i];
		sx += w[i] * x[i];
	}
	min = min > 0 ? 0 : min;
	*neg_min = -min;
	if (max == min) {
		memset(l, 0, (size_t)s->n);
		return 0;
	}
	iscale = (float)s->top / (max - min);
	scale = 1 / iscale;
	levels(x, s->n, iscale, min, s->top, l);
	best = affine_error(s, x, w, scale, min, l);
	for (int i = 0; i <= s->steps; i++) {
		/* An accepted minimum moves the later candidates. */
		iscale = (s->start + s->step * (float)i + (float)s->top) /
		    (max - min);
		levels(x, s->n, iscale, min, s->top, try_l);
		if (!affine_fit(s->n, x, w, try_l, sw, sx, &try_scale,
		    &try_min))
			continue;
		err = affine_error(s, x, w, try_scale, try_min, try_l);
		if (err < best) {
			memcpy(l, try_l, (size_t)s->n);
			best = err;
			scale = try_scale;
			min = try_min;
		}
	}
	*neg_min = -min;
	return scale;
}

static float
largest(const float *x, int n)
{
	float max = 0;

	for (int i = 0; i < n; i++)
		max = x[i] > max ? x[i] : max;
	return max;
}

/* Non-negative values as levels of max / top; returns that step. */
static float
quantize_scales(const float *x, int n, int top, uint8_t *l)
{
	float max = largest(x, n), inv = max > 0 ? (float)top / max : 0;

	for (int i = 0; i < n; i++)
		l[i] = (uint8_t)clamp(nearest(inv * x[i]), 0, top);
	return max / (float)top;
}

/* Levels under the scale d and offset m as decoded; kept where d is 0. */
static void
requantize(const float *x, int n, float d, float m, int top, uint8_t *l)
{
	if (d == 0)
		return;
	for (int i = 0; i < n; i++)
		l[i] = (uint8_t)clamp(nearest((x[i] + m) / d), 0, top);
}

/* Two bits each, the layout that Q2_K and Q3_K share. */
static void
put_pairs(uint8_t *qs, const uint8_t *l)
{
	for (int h = 0; h < 2; h++, qs += 32, l += 128)
		for (int j = 0; j < 32; j++)
			qs[j] = (uint8_t)(l[j] | l[j + 32] << 2 |
			    l[j + 64] << 4 | l[j + 96] << 6);
}

void
quantize_q2_k(const float *x, void *dst)
{
	static const struct affine_search search = { 16, 3, -0.5f, 0.1f, 15,
		1 };
	struct block_q2_k *b = dst;
	float w[16], scale[16], min[16], d, dmin;
	uint8_t l[SUPER], sc[16], mn[16];

	for (int j = 0; j < 16; j++) {
		for (int i = 0; i < 16; i++)
			w[i] = fabsf(x[16 * j + i]);
		scale[j] = search_affine(&search, x + 16 * j, w, l + 16 * j,
		    &min[j]);
	}
	d = put_half(b->d, quantize_scales(scale, 16, 15, sc));
	dmin = put_half(b->dmin, quantize_scales(min, 16, 15, mn));
	for (int j = 0; j < 16; j++) {
		b->scales[j] = (uint8_t)(sc[j] | mn[j] << 4);
		requantize(x + 16 * j, 16, d * (float)sc[j],
		    dmin * (float)mn[j], 3, l + 16 * j);
	}
	put_pairs(b->qs, l);
}

/* Eight 6-bit scales and eight 6-bit mins in 12 bytes. */
static void
put_scales_k4(uint8_t *s, const uint8_t *sc, const uint8_t *mn)
{
	for (int j = 0; j < 4; j++) {
		s[j] = (uint8_t)(sc[j] | sc[j + 4] >> 4 << 6);
		s[j + 4] = (uint8_t)(mn[j] | mn[j + 4] >> 4 << 6);
		s[j + 8] = (uint8_t)((sc[j + 4] & 15) | mn[j + 4] << 4);
	}
}

/* Levels and scales of Q4_K and Q5_K, which differ in the top level only. */
static void
encode_k4(const struct affine_search *search, const float *x, uint8_t *d_out,
    uint8_t *dmin_out, uint8_t *scales, uint8_t *l)
{
	float w[32], scale[8], min[8], sum, rms, d, dmin;
	uint8_t sc[8], mn[8];

	for (int j = 0; j < 8; j++) {
		const float *xj = x + 32 * j;

		sum = 0;
		for (int i = 0; i < 32; i++)
			sum += xj[i] * xj[i];
		rms = sqrtf(sum / 32);
		for (int i = 0; i < 32; i++)
			w[i] = rms + fabsf(xj[i]);
		scale[j] = search_affine(search, xj, w, l + 32 * j, &min[j]);
	}
	d = put_half(d_out, quantize_scales(scale, 8, 63, sc));
	dmin = put_half(dmin_out, quantize_scales(min, 8, 63, mn));
	put_scales_k4(scales, sc, mn);
	for (int j = 0; j < 8; j++)
		requantize(x + 32 * j, 32, d * (float)sc[j],
		    dmin * (float)mn[j], search->top, l + 32 * j);
}

static void
put_nibbles_k(uint8_t *qs, const uint8_t *l)
{
	for (int c = 0; c < 4; c++, qs += 32, l += 64)
		for (int j = 0; j < 32; j++)
			qs[j] = (uint8_t)((l[j] & 15) | l[j + 32] << 4);
}

void
quantize_q4_k(const float *x, void *dst)
{
	static const struct affine_search search = { 32, 15, -1.0f, 0.1f, 20,
		0 };
	struct block_q4_k *b = dst;
	uint8_t l[SUPER];

	encode_k4(&search, x, b->d, b->dmin, b->scales, l);
	put_nibbles_k(b->qs, l);
}

void
quantize_q5_k(const float *x, void *dst)
{
	static const struct affine_search search = { 32, 31, -0.5f, 0.1f, 15,
		0 };
	struct block_q5_k *b = dst;
	uint8_t l[SUPER];

	encode_k4(&search, x, b->d, b->dmin, b->scales, l);
	memset(b->qh, 0, sizeof b->qh);
	for (int n = 0; n < SUPER; n++)
		b->qh[n % 32] |= (uint8_t)(l[n] >> 4 << n / 32);
	put_nibbles_k(b->qs, l);
}

/* Sums of w*x*l and w*l*l for levels under iscale, weights x^2. */
static void
symmetric_sums(const float *x, float iscale, int bound, float *sxl, float *sl2)
{
	float w, l;

	*sxl = *sl2 = 0;
	for (int i = 0; i < 16; i++) {
		l = (float)clamp(nearest(iscale * x[i]), -bound, bound - 1);
		w = x[i] * x[i];
		*sxl += w * x[i] * l;
		*sl2 += w * l * l;
	}
}

/* The best symmetric scale of 16 elements with levels -32 to 31. */
static float
search_symmetric(const float *x)
{
	float max = extreme(x, 16), scale, best, sxl, sl2;

	if (fabsf(max) < quantize_eps)
		return 0;
	symmetric_sums(x, -32 / max, 32, &sxl, &sl2);
	scale = sl2 > 0 ? sxl / sl2 : 0;
	best = scale * sxl;
	for (int i = -9; i <= 9; i++) {
		if (i == 0)
			continue;
		symmetric_sums(x, -(32 + 0.1f * (float)i) / max, 32, &sxl,
		    &sl2);
		if (sl2 > 0 && sxl * sxl > best * sl2) {
			scale = sxl / sl2;
			best = scale * sxl;
		}
	}
	return scale;
}

static void
put_q6(struct block_q6_k *b, const uint8_t *l)
{
	uint8_t *ql = b->ql, *qh = b->qh;

	for (int h = 0; h < 2; h++, ql += 64, qh += 32, l += 128)
		for (int j = 0; j < 32; j++) {
			ql[j] = (uint8_t)((l[j] & 15) | l[j + 64] << 4);
			ql[j + 32] = (uint8_t)((l[j + 32] & 15) |
			    l[j + 96] << 4);
			qh[j] = (uint8_t)(l[j] >> 4 | l[j + 32] >> 4 << 2 |
			    l[j + 64] >> 4 << 4 | l[j + 96] >> 4 << 6);
		}
}

void
quantize_q6_k(const float *x, void *dst)
{
	struct block_q6_k *b = dst;
	float scale[16], max, iscale, d, step;
	uint8_t l[SUPER] = { 0 };

	memset(b, 0, sizeof *b);
	for (int j = 0; j < 16; j++)
		scale[j] = search_symmetric(x + 16 * j);
	max = extreme(scale, 16);
	if (fabsf(max) < quantize_eps)
		return;
	iscale = -128 / max;
	d = put_half(b->d, 1 / iscale);
	for (int j = 0; j < 16; j++) {
		b->scales[j] = (int8_t)clamp(nearest(iscale * scale[j]), -128,
		    127);
		step = d * (float)b->scales[j];
		if (step == 0)
			continue;
		for (int i = 16 * j; i < 16 * j + 16; i++)
			l[i] = (uint8_t)(clamp(nearest(x[i] / step), -32, 31) +
			    32);
	}
	put_q6(b, l);
}

/*
 * One pass over 16 levels (-4 to 3): change one where that improves
 * (sum w*x*l)^2 / sum w*l*l.  Returns the number of changes.
 */
static int
refine_pass(const float *x, int *l, float *sxl, float *sl2)
{
	float w, xl, l2;
	int changes = 0, k;

	for (int i = 0; i < 16; i++) {
		w = x[i] * x[i];
		xl = *sxl - w * x[i] * (float)l[i];
		if (!(xl > 0))
			continue;
		l2 = *sl2 - w * (float)l[i] * (float)l[i];
		k = clamp(nearest(x[i] * l2 / xl), -4, 3);
		if (k == l[i])
			continue;
		xl += w * x[i] * (float)k;
		l2 += w * (float)k * (float)k;
		if (l2 > 0 && xl * xl * *sl2 > *sxl * *sxl * l2) {
			l[i] = k;
			*sxl = xl;
			*sl2 = l2;
			changes++;
		}
	}
	return changes;
}

/* The scale of 16 elements in eight levels; out holds them from 0. */
static float
search_q3(const float *x, uint8_t *out)
{
	float max = extreme(x, 16), sxl, sl2;
	int l[16];

	memset(out, 0, 16);
	if (fabsf(max) < quantize_eps)
		return 0;
	symmetric_sums(x, -4 / max, 4, &sxl, &sl2);
	for (int i = 0; i < 16; i++)
		l[i] = clamp(nearest(-4 / max * x[i]), -4, 3);
	for (int pass = 0; pass < 5; pass++)
		if (!refine_pass(x, l, &sxl, &sl2))
			break;
	for (int i = 0; i < 16; i++)
		out[i] = (uint8_t)(l[i] + 4);
	return sl2 > 0 ? sxl / sl2 : 0;
}

/* 16 six-bit scales in 12 bytes: low nibbles, then pairs of high bits. */
static void
put_scales_q3(uint8_t *s, const int *sc)
{
	memset(s, 0, 12);
	for (int j = 0; j < 16; j++) {
		s[j % 8] |= (uint8_t)((sc[j] & 15) << (j < 8 ? 0 : 4));
		s[8 + j % 4] |= (uint8_t)(sc[j] >> 4 << 2 * (j / 4));
	}
}

void
quantize_q3_k(const float *x, void *dst)
{
	struct block_q3_k *b = dst;
	float scale[16], max, iscale, d, step;
	uint8_t l[SUPER];
	int sc[16] = { 0 };

	for (int j = 0; j < 16; j++)
		scale[j] = search_q3(x + 16 * j, l + 16 * j);
	max = extreme(scale, 16);
	iscale = max != 0 ? -32 / max : 0;
	d = put_half(b->d, max != 0 ? 1 / iscale : 0);
	for (int j = 0; j < 16 && max != 0; j++)
		sc[j] = clamp(nearest(iscale * scale[j]), -32, 31) + 32;
	put_scales_q3(b->scales, sc);
	for (int j = 0; j < 16; j++) {
		step = d * (float)(sc[j] - 32);
		if (step == 0)
			continue;
		for (int i = 16 * j; i < 16 * j + 16; i++)
			l[i] = (uint8_t)(clamp(nearest(x[i] / step), -4, 3) +
			    4);
	}
	memset(b->hmask, 0, sizeof b->hmask);
	for (int n = 0; n < SUPER; n++) {
		b->hmask[n % 32] |= (uint8_t)(l[n] >> 2 << n / 32);
		l[n] &= 3;
	}
	put_pairs(b->qs, l);
}
