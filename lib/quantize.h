/*
 * Encoders of the tensor types: float rows to blocks.
 *
 * Algorithms: ggml's reference quantisation without importance weights, to
 * the bit: float32 throughout, sums from left to right, no fused operations.
 */
#ifndef QUANTIZE_H
#define QUANTIZE_H

#include <stddef.h>
#include <stdint.h>

#include "ggml_type.h"

/* Is there an encoder for this type? */
int quantize_can(enum ggml_type type);

/*
 * Encode n finite elements (a multiple of the type's block) of src into dst,
 * ggml_row_bytes(type, n) bytes at any address.
 */
void quantize_row(enum ggml_type type, const float *src, size_t n, void *dst);

#endif
