/*
 * Rows decoded to floats, whatever the instructions.  Included by a file that
 * has included a v16 header and defines KERNEL(name), expand_TYPE(block, q, w,
 * m) as for expand_rows.h with rows alone, half(p) and
 *
 *   LESS(raw, is_signed)  what the quants are too large by, stored unsigned,
 *                         of a type whose raw bits are too large by raw (-1: 8
 *                         bits); negative: they are stored signed
 */

/* A block's n elements of which `group` share a scale. */
INLINE void
decode_block(float *dst, const int8_t *q, const float *w, const float *m,
    const int n, const int group, const int mins, const int less)
{
	for (int i = 0; i < n; i += 16) {
		v16 v = less < 0 ? v16_from_s8(q + i) :
		                   v16_from_u8(q + i, less);

		v = v16_mul(v16_all(w[i / group]), v);
		if (mins)
			v = v16_add(v, v16_all(m[i / group]));
		v16_store(dst + i, v);
	}
}

/* raw: what raw bits are too large by; -1: 8-bit quants. */
#define DECODE_ROW(name, block, group, mins, raw) \
	static void decode_##name(const uint8_t *src, size_t n, float *dst) \
	{ \
		int8_t q[block]; \
		float w[block / group], m[block / group]; \
		for (size_t i = 0; i < n; i += block) { \
			expand_##name((const void *)src, q, w, m); \
			decode_block(dst + i, q, w, m, block, group, mins, \
			    LESS(raw, !mins)); \
			src += sizeof(struct block_##name); \
		} \
	}

DECODE_ROW(q4_0, 32, 32, 0, 8)
DECODE_ROW(q4_1, 32, 32, 1, 0)
DECODE_ROW(q5_0, 32, 32, 0, 16)
DECODE_ROW(q5_1, 32, 32, 1, 0)
DECODE_ROW(q8_0, 32, 32, 0, -1)
DECODE_ROW(iq4_nl, 32, 32, 0, -1)
DECODE_ROW(mxfp4, 32, 32, 0, -1)
DECODE_ROW(q2_k, 256, 16, 1, 0)
DECODE_ROW(q3_k, 256, 16, 0, 4)
DECODE_ROW(q4_k, 256, 32, 1, 0)
DECODE_ROW(q5_k, 256, 32, 1, 0)
DECODE_ROW(q6_k, 256, 16, 0, 32)
DECODE_ROW(iq4_xs, 256, 32, 0, -1)

static void
decode_fp4(const uint8_t *src, size_t n, float *dst)
{
	decode_mxfp4(src, n, dst);
	for (size_t i = 0; i < n; i += 32, src += sizeof(struct block_mxfp4))
		mxfp4_zeros((const void *)src, dst + i);
}

static void
decode_f32(const uint8_t *src, size_t n, float *dst)
{
	memcpy(dst, src, n * sizeof *dst);
}

static void
decode_f16(const uint8_t *src, size_t n, float *dst)
{
	size_t i = 0;

	for (; i + 16 <= n; i += 16)
		v16_store(dst + i, v16_from_f16(src + 2 * i));
	for (; i < n; i++)
		dst[i] = half(src + 2 * i);
}

static void
decode_bf16(const uint8_t *src, size_t n, float *dst)
{
	size_t i = 0;

	for (; i + 16 <= n; i += 16)
		v16_store(dst + i, v16_from_bf16(src + 2 * i));
	for (; i < n; i++) {
		uint32_t u = (uint32_t)load_u16(src + 2 * i) << 16;

		memcpy(dst + i, &u, sizeof u);
	}
}

static void (*const decode_fns[])(const uint8_t *src, size_t n, float *dst) = {
	[GGML_F32] = decode_f32,
	[GGML_F16] = decode_f16,
	[GGML_BF16] = decode_bf16,
	[GGML_Q4_0] = decode_q4_0,
	[GGML_Q4_1] = decode_q4_1,
	[GGML_Q5_0] = decode_q5_0,
	[GGML_Q5_1] = decode_q5_1,
	[GGML_Q8_0] = decode_q8_0,
	[GGML_IQ4_NL] = decode_iq4_nl,
	[GGML_MXFP4] = decode_fp4,
	[GGML_Q2_K] = decode_q2_k,
	[GGML_Q3_K] = decode_q3_k,
	[GGML_Q4_K] = decode_q4_k,
	[GGML_Q5_K] = decode_q5_k,
	[GGML_Q6_K] = decode_q6_k,
	[GGML_IQ4_XS] = decode_iq4_xs,
};

void
KERNEL(decode)(enum ggml_type type, const void *src, size_t n, float *dst)
{
	decode_fns[type](src, n, dst);
}
