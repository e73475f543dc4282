/*
 * Blocks of quantised weights taken apart: every type with blocks is
 * value = w * q + m with a small integer q, an exact f32 scale w per group and
 * an exact f32 offset m per group (0 for types without mins).
 *
 * This is the one description of the block layouts: matrix products use q, w
 * and m; decoding to float is w*q rounded, then + m rounded.
 * Layouts: ggml's ggml-common.h; see dllm-numbers(7).
 */
#ifndef EXPAND_H
#define EXPAND_H

#include <stddef.h>
#include <stdint.h>

#include "ggml_type.h"

/* Elements that share w and m: 16 for Q2_K, Q3_K and Q6_K, else 32. */
unsigned expand_group(enum ggml_type type);

/* Does the type have mins (m not always 0)? */
int expand_has_mins(enum ggml_type type);

/*
 * Expand n elements (a multiple of the type's block) of a GGML_QUANT type.
 *   q (n)          signed quants
 *   w (n / group)  scales
 *   m (n / group)  offsets; may be NULL for a type without mins
 */
void expand_row(enum ggml_type type, const void *src, size_t n, int8_t *q,
    float *w, float *m);

/*
 * Decode n elements of any type but GGML_NAME_ONLY to f32 (F64 is rounded).
 * dst (n).
 */
void decode_row(enum ggml_type type, const void *src, size_t n, float *dst);

#endif
