#include "quantize.h"

#include <math.h>

#include "blocks.h"
#include "quantize_block.h"

/* 0 for a scale of 0, or so small that its inverse is no number. */
static float
inverse(float d)
{
	return d != 0 && isfinite(1 / d) ? 1 / d : 0;
}

/* Symmetric, offset q: levels 0 to 2 * offset - 1. */
static void
symmetric(const float *x, float d, int offset, uint8_t *l)
{
	float id = inverse(d);

	for (int j = 0; j < 32; j++)
		l[j] = (uint8_t)clamp(
		    (int)(x[j] * id + ((float)offset + 0.5f)), 0,
		    2 * offset - 1);
}

/* Scale and minimum: levels 0 to top. */
static void
affine(const float *x, int top, float *d, float *m, uint8_t *l)
{
	float min = x[0], max = x[0], id;

	for (int j = 1; j < 32; j++) {
		min = x[j] < min ? x[j] : min;
		max = x[j] > max ? x[j] : max;
	}
	*d = (max - min) / (float)top;
	*m = min;
	id = inverse(*d);
	for (int j = 0; j < 32; j++)
		l[j] = (uint8_t)clamp((int)((x[j] - min) * id + 0.5f), 0, top);
}

static uint32_t
fifth_bits(const uint8_t *l)
{
	uint32_t qh = 0;

	for (int j = 0; j < 32; j++)
		qh |= (uint32_t)(l[j] >> 4) << j;
	return qh;
}

static void
quantize_q4_0(const float *x, void *dst)
{
	struct block_q4_0 *b = dst;
	float d = extreme(x, 32) / -8;
	uint8_t l[32];

	put_half(b->d, d);
	symmetric(x, d, 8, l);
	put_nibbles(b->qs, l);
}

static void
quantize_q5_0(const float *x, void *dst)
{
	struct block_q5_0 *b = dst;
	float d = extreme(x, 32) / -16;
	uint8_t l[32];

	put_half(b->d, d);
	symmetric(x, d, 16, l);
	put32(b->qh, fifth_bits(l));
	put_nibbles(b->qs, l);
}

static void
quantize_q4_1(const float *x, void *dst)
{
	struct block_q4_1 *b = dst;
	uint8_t l[32];
	float d, m;

	affine(x, 15, &d, &m, l);
	put_half(b->d, d);
	put_half(b->m, m);
	put_nibbles(b->qs, l);
}

static void
quantize_q5_1(const float *x, void *dst)
{
	struct block_q5_1 *b = dst;
	uint8_t l[32];
	float d, m;

	affine(x, 31, &d, &m, l);
	put_half(b->d, d);
	put_half(b->m, m);
	put32(b->qh, fifth_bits(l));
	put_nibbles(b->qs, l);
}

static void
quantize_q8_0(const float *x, void *dst)
{
	struct block_q8_0 *b = dst;
	float d = fabsf(extreme(x, 32)) / 127, id = inverse(d);

	put_half(b->d, d);
	for (int j = 0; j < 32; j++)
		b->qs[j] = (int8_t)roundf(x[j] * id);
}

static void
quantize_q8_k(const float *x, void *dst)
{
	struct block_q8_k *b = dst;
	float max = extreme(x, SUPER), iscale, d;
	uint32_t bits;
	int sum;

	memset(b, 0, sizeof *b);
	if (max == 0)
		return;
	iscale = -127 / max;
	d = 1 / iscale;
	memcpy(&bits, &d, sizeof bits);
	put32(b->d, bits);
	for (int i = 0; i < 16; i++) {
		sum = 0;
		for (int j = 16 * i; j < 16 * i + 16; j++) {
			b->qs[j] = (int8_t)clamp(nearest(iscale * x[j]), -128,
			    127);
			sum += b->qs[j];
		}
		put16(b->bsums + 2 * i, (unsigned)sum & 0xffff);
	}
}

static void
quantize_f32(const float *x, void *dst)
{
	uint32_t bits;

	memcpy(&bits, x, sizeof bits);
	put32(dst, bits);
}

static void
quantize_f16(const float *x, void *dst)
{
	put16(dst, f32_to_f16(*x));
}

static void
quantize_bf16(const float *x, void *dst)
{
	put16(dst, f32_to_bf16(*x));
}

typedef void encoder(const float *x, void *dst);

static encoder *const encoders[] = {
	[GGML_F32] = quantize_f32,
	[GGML_F16] = quantize_f16,
	[GGML_BF16] = quantize_bf16,
	[GGML_Q4_0] = quantize_q4_0,
	[GGML_Q4_1] = quantize_q4_1,
	[GGML_Q5_0] = quantize_q5_0,
	[GGML_Q5_1] = quantize_q5_1,
	[GGML_Q8_0] = quantize_q8_0,
	[GGML_Q2_K] = quantize_q2_k,
	[GGML_Q3_K] = quantize_q3_k,
	[GGML_Q4_K] = quantize_q4_k,
	[GGML_Q5_K] = quantize_q5_k,
	[GGML_Q6_K] = quantize_q6_k,
	[GGML_Q8_K] = quantize_q8_k,
	[GGML_IQ4_NL] = quantize_iq4_nl,
	[GGML_IQ4_XS] = quantize_iq4_xs,
	[GGML_MXFP4] = quantize_mxfp4,
};

int
quantize_can(enum ggml_type type)
{
	return (size_t)type < sizeof encoders / sizeof *encoders &&
	    encoders[type];
}

void
quantize_row(enum ggml_type type, const float *src, size_t n, void *dst)
{
	const struct ggml_type_info *t = ggml_type_info(type);
	uint8_t *p = dst;

	for (size_t i = 0; i < n; i += t->block, p += t->block_bytes)
		encoders[type](src + i, p);
}
