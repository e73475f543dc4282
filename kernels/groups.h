/*
 * The functions of the groups in vector instructions; see struct kern.  Files
 * named by a group are compiled with its instructions and hold nothing but
 * kernels.
 */
#ifndef GROUPS_H
#define GROUPS_H

#include "kern.h"

/* What depends on how quants are laid out. */
#define DECLARE_QUANT(group) \
	size_t pack_quant_##group(struct xquant *to, size_t t0, size_t n, \
	    const float *x, size_t stride); \
	void expand_##group(struct wtile *to, enum ggml_type type, \
	    const uint8_t *src, size_t row_bytes, size_t n_rows, size_t n_in); \
	void decode_##group(enum ggml_type type, const void *src, size_t n, \
	    float *dst); \
	void matmul_quant_##group(float *y, size_t stride, \
	    const struct wtile *w, const struct xquant *x, size_t t0, size_t n);

#define DECLARE_FLOAT(group) \
	size_t pack_float_##group(struct xfloat *to, size_t t0, size_t n, \
	    const float *x, size_t stride); \
	void matmul_float_##group(float *y, size_t stride, const float *w, \
	    size_t n_rows, const struct xfloat *x, size_t t0, size_t n); \
	int rmsnorm_##group(float *y, const float *x, const float *w, \
	    size_t n, float eps); \
	void add_##group(float *y, const float *x, size_t n); \
	void rope_##group(float *x, size_t n_heads, size_t head_dim, \
	    const float *cosine, const float *sine, int neox); \
	void pack_keys_##group(float *kt, size_t t0, size_t n, \
	    const float *k, size_t stride, size_t head_dim); \
	void attention_##group(float *out, size_t out_stride, \
	    const float *const *q, size_t n_q, const float *kt, \
	    const float *v, size_t stride, size_t n_keys, size_t head_dim, \
	    float scale, float *e); \
	void silu_mul_##group( \
	    float *y, const float *g, const float *u, size_t n); \
	int all_finite_##group(const float *x, size_t n); \
	int clean_logits_##group(float *y, const float *x, size_t n); \
	size_t largest_##group(const float *x, size_t n); \
	void weigh_##group(struct weights *w, float *e, const float *l, \
	    size_t n, float max, double temperature); \
	double negentropy_##group(const float *e, size_t n, double sum); \
	size_t contenders_##group(uint32_t *to, const float *l, size_t from, \
	    size_t n, const struct noise *z);

DECLARE_QUANT(avx2)
DECLARE_FLOAT(avx2)
DECLARE_QUANT(avxvnni)
DECLARE_QUANT(evexvnni)
DECLARE_QUANT(avx512vnni)
DECLARE_FLOAT(avx512vnni)
DECLARE_QUANT(neon)
DECLARE_FLOAT(neon)
DECLARE_QUANT(dotprod)
DECLARE_QUANT(i8mm)

#endif
