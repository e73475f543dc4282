/*
 * The tensor types of GGUF: names and block sizes, old and new.
 */
#ifndef GGML_TYPE_H
#define GGML_TYPE_H

#include <stddef.h>
#include <stdint.h>

enum ggml_type {
	GGML_F32 = 0,
	GGML_F16 = 1,
	GGML_Q4_0 = 2,
	GGML_Q4_1 = 3,
	GGML_Q5_0 = 6,
	GGML_Q5_1 = 7,
	GGML_Q8_0 = 8,
	GGML_Q2_K = 10,
	GGML_Q3_K = 11,
	GGML_Q4_K = 12,
	GGML_Q5_K = 13,
	GGML_Q6_K = 14,
	GGML_Q8_K = 15,
	GGML_IQ4_NL = 20,
	GGML_IQ4_XS = 23,
	GGML_F64 = 28,
	GGML_BF16 = 30,
	GGML_MXFP4 = 39
};

/*
 * How a matrix of this type can be multiplied: not at all; with float
 * activations; with int8 activations (a block type with an expander).
 */
enum ggml_use { GGML_NAME_ONLY, GGML_FLOAT, GGML_QUANT, GGML_DECODE_ONLY };

struct ggml_type_info {
	int id;
	const char *name;     /* "Q4_K" */
	uint32_t block;       /* elements per block; 0: layout not known */
	uint32_t block_bytes; /* bytes per block */
	enum ggml_use use;
};

/*
 * What is known about a type id, including removed ones and the private ones
 * of ik_llama.cpp (their names say so; both have no layout); NULL if nothing.
 */
const struct ggml_type_info *ggml_type_info(int64_t id);

/*
 * The table's name, or "type N" for an unknown id (valid until the thread's
 * next call).
 */
const char *ggml_type_name(int64_t id);

/*
 * Bytes of n elements, n a multiple of the block, of a type with a layout; no
 * overflow for n < 2^56.
 */
uint64_t ggml_row_bytes(enum ggml_type type, uint64_t n);

#endif
