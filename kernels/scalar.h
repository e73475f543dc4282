/*
 * What the *_scalar.c files define: the specification.
 */
#ifndef SCALAR_H
#define SCALAR_H

#include "kern.h"

size_t pack_quant_scalar(struct xquant *, size_t, size_t, const float *, size_t);
size_t pack_float_scalar(struct xfloat *, size_t, size_t, const float *, size_t);
void expand_scalar(struct wtile *, enum ggml_type, const uint8_t *, size_t,
    size_t, size_t);
void matmul_quant_scalar(float *, size_t, const struct wtile *,
    const struct xquant *, size_t, size_t);
void matmul_float_scalar(float *, size_t, const float *, size_t,
    const struct xfloat *, size_t, size_t);
int rmsnorm_scalar(float *, const float *, const float *, size_t, float);
void add_scalar(float *, const float *, size_t);
void rope_scalar(float *, size_t, size_t, const float *, const float *, int);
void pack_keys_scalar(float *, size_t, size_t, const float *, size_t, size_t);
void attention_scalar(float *, size_t, const float *const *, size_t,
    const float *, const float *, size_t, size_t, size_t, float, float *);
void silu_mul_scalar(float *, const float *, const float *, size_t);
int all_finite_scalar(const float *, size_t);
int clean_logits_scalar(float *, const float *, size_t);
size_t largest_scalar(const float *, size_t);
void weigh_scalar(struct weights *, float *, const float *, size_t, float,
    double);
double negentropy_scalar(const float *, size_t, double);
size_t contenders_scalar(uint32_t *, const float *, size_t, size_t,
    const struct noise *);

#endif
