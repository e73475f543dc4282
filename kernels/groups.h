/*
 * The functions of the x86 groups; see struct kern.  Files named by a group are
 * compiled with its instructions and hold nothing but kernels.
 */
#ifndef GROUPS_H
#define GROUPS_H

#include "kern.h"

size_t pack_quant_avx512vnni(struct xquant *to, size_t t0, size_t n,
    const float *x, size_t stride);
void expand_avx512vnni(struct wtile *to, enum ggml_type type,
    const uint8_t *src, size_t row_bytes, size_t n_rows, size_t n_in);
void matmul_quant_avx512vnni(float *y, size_t stride, const struct wtile *w,
    const struct xquant *x, size_t t0, size_t n);

#endif
