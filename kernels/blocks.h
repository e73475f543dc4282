/*
 * Block layouts of the quantised tensor types, as bytes: rows of a GGUF file
 * start at any address, so no member needs alignment.  Two- and four-byte
 * members are little-endian; d, m and dmin are binary16 unless stated.
 *
 * Layouts: ggml's ggml-common.h, described in dllm-numbers(7).
 */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdint.h>

struct block_q4_0 {
	uint8_t d[2], qs[16];
};

struct block_q4_1 {
	uint8_t d[2], m[2], qs[16];
};

struct block_q5_0 {
	uint8_t d[2], qh[4], qs[16];
};

struct block_q5_1 {
	uint8_t d[2], m[2], qh[4], qs[16];
};

struct block_q8_0 {
	uint8_t d[2];
	int8_t qs[32];
};

struct block_iq4_nl {
	uint8_t d[2], qs[16];
};

struct block_mxfp4 {
	uint8_t e; /* power of two, bias 127 */
	uint8_t qs[16];
};

/* From here on 256 elements. */

struct block_q2_k {
	uint8_t scales[16], qs[64], d[2], dmin[2];
};

struct block_q3_k {
	uint8_t hmask[32], qs[64], scales[12], d[2];
};

struct block_q4_k {
	uint8_t d[2], dmin[2], scales[12], qs[128];
};

struct block_q5_k {
	uint8_t d[2], dmin[2], scales[12], qh[32], qs[128];
};

struct block_q6_k {
	uint8_t ql[128], qh[64];
	int8_t scales[16];
	uint8_t d[2];
};

struct block_iq4_xs {
	uint8_t d[2], scales_h[2], scales_l[4], qs[128];
};

struct block_q8_k {
	uint8_t d[4]; /* f32 */
	int8_t qs[256];
	uint8_t bsums[32]; /* i16: sums of 16 quants each */
};

_Static_assert(sizeof(struct block_q4_0) == 18, "Q4_0");
_Static_assert(sizeof(struct block_q4_1) == 20, "Q4_1");
_Static_assert(sizeof(struct block_q5_0) == 22, "Q5_0");
_Static_assert(sizeof(struct block_q5_1) == 24, "Q5_1");
_Static_assert(sizeof(struct block_q8_0) == 34, "Q8_0");
_Static_assert(sizeof(struct block_iq4_nl) == 18, "IQ4_NL");
_Static_assert(sizeof(struct block_mxfp4) == 17, "MXFP4");
_Static_assert(sizeof(struct block_q2_k) == 84, "Q2_K");
_Static_assert(sizeof(struct block_q3_k) == 110, "Q3_K");
_Static_assert(sizeof(struct block_q4_k) == 144, "Q4_K");
_Static_assert(sizeof(struct block_q5_k) == 176, "Q5_K");
_Static_assert(sizeof(struct block_q6_k) == 210, "Q6_K");
_Static_assert(sizeof(struct block_iq4_xs) == 136, "IQ4_XS");
_Static_assert(sizeof(struct block_q8_k) == 292, "Q8_K");

/* What the nibbles of IQ4_NL and IQ4_XS stand for. */
static const int8_t iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
	1, 13, 25, 38, 53, 69, 89, 113 };

/* Twice the values of E2M1, for MXFP4. */
static const int8_t mxfp4_values[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3,
	-4, -6, -8, -12 };

/* Code 8 is -0, which an integer cannot say: mend the 32 values of a block. */
static inline void
mxfp4_zeros(const struct block_mxfp4 *b, float *v)
{
	for (int i = 0; i < 16; i++) {
		if ((b->qs[i] & 15) == 8)
			v[i] = -0.0f;
		if (b->qs[i] >> 4 == 8)
			v[i + 16] = -0.0f;
	}
}

#endif
