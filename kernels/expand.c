#include "expand.h"

#include <string.h>

#include "blocks.h"
#include "half.h"

/* Largest block. */
enum { SUPER = 256 };

static uint16_t
le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t
le32(const uint8_t *p)
{
	return le16(p) | (uint32_t)le16(p + 2) << 16;
}

static float
half(const uint8_t *p)
{
	return f16_to_f32(le16(p));
}

static float
from_bits(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof f);
	return f;
}

/* 16 bytes: low nibbles are elements 0 to 15, high ones 16 to 31. */
static void
nibbles(const uint8_t *qs, int8_t *q, int less)
{
	for (int j = 0; j < 16; j++) {
		q[j] = (int8_t)((qs[j] & 15) - less);
		q[j + 16] = (int8_t)((qs[j] >> 4) - less);
	}
}

static void
table_nibbles(const uint8_t *qs, int8_t *q, const int8_t *table)
{
	for (int j = 0; j < 16; j++) {
		q[j] = table[qs[j] & 15];
		q[j + 16] = table[qs[j] >> 4];
	}
}

/* The fifth bit of element j is bit j of qh. */
static void
fifth_bits(uint32_t qh, int8_t *q)
{
	for (int j = 0; j < 32; j++)
		q[j] = (int8_t)(q[j] + (qh >> j & 1) * 16);
}

static void
expand_q4_0(const void *src, int8_t *q, float *w, float *m)
{
	const struct block_q4_0 *b = src;

	(void)m;
	w[0] = half(b->d);
	nibbles(b->qs, q, 8);
}

static void
expand_q4_1(const void *src, int8_t *q, float *w, float *m)
{
	const struct block_q4_1 *b = src;

	w[0] = half(b->d);
	m[0] = half(b->m);
	nibbles(b->qs, q, 0);
}

static void
expand_q5_0(const void *src, int8_t *q, float *w, float *m)
{
	const struct block_q5_0 *b = src;

	(void)m;
	w[0] = half(b->d);
	nibbles(b->qs, q, 16);
	fifth_bits(le32(b->qh), q);
}

static void
expand_q5_1(const void *src, int8_t *q, float *w, float *m)
{
	const struct block_q5_1 *b = src;

	w[0] = half(b->d);
	m[0] = half(b->m);
	nibbles(b->qs, q, 0);
	fifth_bits(le32(b->qh), q);
}

static void
expand_q8_0(const void *src, int8_t *q, float *w, float *m)
{
	const struct block_q8_0 *b = src;

	(void)m;
	w[0] = half(b->d);
	memcpy(q, b->qs, sizeof b->qs);
}

static void
expand_iq4_nl(const void *src, int8_t *q, float *w, float *m)
{
	const struct block_iq4_nl *b = src;

	(void)m;
	w[0] = half(b->d);
	table_nibbles(b->qs, q, iq4_values);
}

/* The scale is 2^(e - 128): half of E8M0's, as the table is doubled. */
static void
expand_mxfp4(const void *src, int8_t *q, float *w, float *m)
{
	const struct block_mxfp4 *b = src;

	(void)m;
	w[0] = from_bits(b->e < 2 ? 0x00200000u << b->e :
	    (uint32_t)(b->e - 1) << 23);
	table_nibbles(b->qs, q, mxfp4_values);
}

/* Two bits each: 32 bytes hold 128 elements, 32 for each pair of bits. */
static void
bit_pairs(const uint8_t *qs, int8_t *q)
{
	for (int half_block = 0; half_block < 2; half_block++, qs += 32)
		for (int shift = 0; shift < 8; shift += 2, q += 32)
			for (int l = 0; l < 32; l++)
				q[l] = (int8_t)(qs[l] >> shift & 3);
}

static void
expand_q2_k(const void *src, int8_t *q, float *w, float *m)
{
	const struct block_q2_k *b = src;
	float d = half(b->d), dmin = half(b->dmin);

	for (int j = 0; j < 16; j++) {
		w[j] = d * (float)(b->scales[j] & 15);
		m[j] = -(dmin * (float)(b->scales[j] >> 4));
	}
	bit_pairs(b->qs, q);
}

static void
expand_q3_k(const void *src, int8_t *q, float *w, float *m)
{
	const struct block_q3_k *b = src;
	const uint8_t *s = b->scales;
	float d = half(b->d);
	int low, high;

	(void)m;
	for (int j = 0; j < 16; j++) {
		low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
		high = s[8 + j % 4] >> 2 * (j / 4) & 3;
		w[j] = d * (float)((low | high << 4) - 32);
	}
	bit_pairs(b->qs, q);
	for (int n = 0; n < SUPER; n++)
		q[n] = (int8_t)(q[n] - 4 +
		    (b->hmask[n % 32] >> n / 32 & 1) * 4);
}

/* Eight 6-bit scales and eight 6-bit mins in 12 bytes. */
static void
scales_k4(const uint8_t *s, float d, float dmin, float *w, float *m)
{
	int sc, mn;

	for (int j = 0; j < 8; j++) {
		if (j < 4) {
			sc = s[j] & 63;
			mn = s[j + 4] & 63;
		} else {
			sc = (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
			mn = s[j + 4] >> 4 | s[j] >> 6 << 4;
		}
		w[j] = d * (float)sc;
		m[j] = -(dmin * (float)mn);
	}
}

/* 32 bytes hold 64 elements: the low nibbles, then the high ones. */
static void
nibbles_k(const uint8_t *qs, int8_t *q)
{
	for (int c = 0; c < 4; c++, qs += 32, q += 64)
		for (int l = 0; l < 32; l++) {
			q[l] = qs[l] & 15;
			q[l + 32] = qs[l] >> 4;
		}
}

static void
expand_q4_k(const void *src, int8_t *q, float *w, float *m)
{
	const struct block_q4_k *b = src;

	scales_k4(b->scales, half(b->d), half(b->dmin), w, m);
	nibbles_k(b->qs, q);
}

static void
expand_q5_k(const void *src, int8_t *q, float *w, float *m)
{
	const struct block_q5_k *b = src;

	scales_k4(b->scales, half(b->d), half(b->dmin), w, m);
	nibbles_k(b->qs, q);
	for (int n = 0; n < SUPER; n++)
		q[n] = (int8_t)(q[n] + (b->qh[n % 32] >> n / 32 & 1) * 16);
}

static void
expand_q6_k(const void *src, int8_t *q, float *w, float *m)
{
	const struct block_q6_k *b = src;
	const uint8_t *ql = b->ql, *qh = b->qh;
	float d = half(b->d);

	(void)m;
	for (int j = 0; j < 16; j++)
		w[j] = d * (float)b->scales[j];
	for (int h = 0; h < 2; h++, ql += 64, qh += 32, q += 128)
		for (int l = 0; l < 32; l++) {
			q[l] = (int8_t)(((ql[l] & 15) | (qh[l] & 3) << 4) - 32);
			q[l + 32] = (int8_t)(((ql[l + 32] & 15) |
			    (qh[l] >> 2 & 3) << 4) - 32);
			q[l + 64] = (int8_t)((ql[l] >> 4 |
			    (qh[l] >> 4 & 3) << 4) - 32);
			q[l + 96] = (int8_t)((ql[l + 32] >> 4 |
			    qh[l] >> 6 << 4) - 32);
		}
}

static void
expand_iq4_xs(const void *src, int8_t *q, float *w, float *m)
{
	const struct block_iq4_xs *b = src;
	float d = half(b->d);
	int low, high, scales_h = le16(b->scales_h);

	(void)m;
	for (int j = 0; j < 8; j++) {
		low = b->scales_l[j / 2] >> 4 * (j % 2) & 15;
		high = scales_h >> 2 * j & 3;
		w[j] = d * (float)((low | high << 4) - 32);
		table_nibbles(b->qs + 16 * j, q + 32 * j, iq4_values);
	}
}

/* How to expand one block. */
struct expander {
	void (*block)(const void *src, int8_t *q, float *w, float *m);
	unsigned bytes, n, group;
	int mins;
};

#define EXPANDER(name, n, group, mins) \
	{ expand_##name, sizeof(struct block_##name), n, group, mins }

static const struct expander expanders[] = {
	[GGML_Q4_0] = EXPANDER(q4_0, 32, 32, 0),
	[GGML_Q4_1] = EXPANDER(q4_1, 32, 32, 1),
	[GGML_Q5_0] = EXPANDER(q5_0, 32, 32, 0),
	[GGML_Q5_1] = EXPANDER(q5_1, 32, 32, 1),
	[GGML_Q8_0] = EXPANDER(q8_0, 32, 32, 0),
	[GGML_IQ4_NL] = EXPANDER(iq4_nl, 32, 32, 0),
	[GGML_MXFP4] = EXPANDER(mxfp4, 32, 32, 0),
	[GGML_Q2_K] = EXPANDER(q2_k, SUPER, 16, 1),
	[GGML_Q3_K] = EXPANDER(q3_k, SUPER, 16, 0),
	[GGML_Q4_K] = EXPANDER(q4_k, SUPER, 32, 1),
	[GGML_Q5_K] = EXPANDER(q5_k, SUPER, 32, 1),
	[GGML_Q6_K] = EXPANDER(q6_k, SUPER, 16, 0),
	[GGML_IQ4_XS] = EXPANDER(iq4_xs, SUPER, 32, 0),
};

unsigned
expand_group(enum ggml_type type)
{
	return expanders[type].group;
}

int
expand_has_mins(enum ggml_type type)
{
	return expanders[type].mins;
}

void
expand_row(enum ggml_type type, const void *src, size_t n, int8_t *q, float *w,
    float *m)
{
	const struct expander *x = &expanders[type];
	const uint8_t *p = src;

	for (size_t i = 0; i < n; i += x->n, p += x->bytes) {
		x->block(p, q + i, w, m);
		w += x->n / x->group;
		if (x->mins)
			m += x->n / x->group;
	}
}

static void
decode_quant(const struct expander *x, const uint8_t *src, size_t n, float *dst)
{
	int8_t q[SUPER];
	float w[SUPER / 16], m[SUPER / 16];

	for (size_t i = 0; i < n; i += x->n, src += x->bytes, dst += x->n) {
		x->block(src, q, w, m);
		for (unsigned j = 0; j < x->n; j++) {
			dst[j] = w[j / x->group] * (float)q[j];
			if (x->mins)
				dst[j] += m[j / x->group];
		}
	}
}

static void
decode_mxfp4(const uint8_t *src, size_t n, float *dst)
{
	const struct block_mxfp4 *b = (const void *)src;

	decode_quant(&expanders[GGML_MXFP4], src, n, dst);
	for (size_t i = 0; i < n; i += 32)
		mxfp4_zeros(b++, dst + i);
}

static void
decode_q8_k(const struct block_q8_k *b, size_t n, float *dst)
{
	float d;

	for (size_t i = 0; i < n; i += SUPER, b++) {
		d = from_bits(le32(b->d));
		for (int j = 0; j < SUPER; j++)
			dst[i + (size_t)j] = d * (float)b->qs[j];
	}
}

static float
from_f64(const uint8_t *p)
{
	uint64_t u = le32(p) | (uint64_t)le32(p + 4) << 32;
	double d;

	memcpy(&d, &u, sizeof d);
	return (float)d;
}

void
decode_row(enum ggml_type type, const void *src, size_t n, float *dst)
{
	const uint8_t *p = src;

	switch (type) {
	case GGML_F32:
		for (size_t i = 0; i < n; i++)
			dst[i] = from_bits(le32(p + 4 * i));
		break;
	case GGML_F16:
		for (size_t i = 0; i < n; i++)
			dst[i] = half(p + 2 * i);
		break;
	case GGML_BF16:
		for (size_t i = 0; i < n; i++)
			dst[i] = bf16_to_f32(le16(p + 2 * i));
		break;
	case GGML_F64:
		for (size_t i = 0; i < n; i++)
			dst[i] = from_f64(p + 8 * i);
		break;
	case GGML_Q8_K:
		decode_q8_k(src, n, dst);
		break;
	case GGML_MXFP4:
		decode_mxfp4(p, n, dst);
		break;
	default:
		decode_quant(&expanders[type], p, n, dst);
	}
}
