/*
 * Which type each tensor of a quantised file gets: the mixes of llama.cpp's
 * quantiser (src/llama-quant.cpp), without importance weights.
 */
#ifndef QUANTMIX_H
#define QUANTMIX_H

#include <stdint.h>

#include "ggml_type.h"
#include "gguf.h"

enum quantmix {
	QUANTMIX_Q4_K_M,
	QUANTMIX_Q4_K_S,
	QUANTMIX_Q5_K_M,
	QUANTMIX_Q5_K_S,
	QUANTMIX_Q6_K,
	QUANTMIX_Q8_0,
	QUANTMIX_Q4_0,
	QUANTMIX_Q4_1,
	QUANTMIX_Q5_0,
	QUANTMIX_Q5_1,
	QUANTMIX_F16,
	QUANTMIX_BF16,
	QUANTMIX_F32,
	QUANTMIX_N
};

/* Names by number, NULL at the end. */
extern const char *const quantmix_names[];

/* The value of general.file_type. */
uint32_t quantmix_file_type(enum quantmix mix);

/* What the rules look at beside the tensor. */
struct quantmix_model {
	uint64_t n_layers;
	int tied; /* no output.weight: token_embd.weight is the head too */
};

/* From the names of the tensors alone. */
struct quantmix_model quantmix_model(const struct gguf *g);

/* Of "blk.N.": N; -1 of other names. */
int64_t quantmix_layer(const char *name);

/*
 * The type of a matrix with rows of n elements.  Where a row is no whole number
 * of the type's blocks, llama.cpp's fall-back for that type; *fell_back (unless
 * NULL) says so.
 */
enum ggml_type quantmix_matrix(enum quantmix mix,
    const struct quantmix_model *m, const char *name, uint64_t n,
    int *fell_back);

/*
 * Of any tensor: that of quantmix_matrix, or its own where it stays as it is
 * (vectors, norms, what is no weight).
 */
enum ggml_type quantmix_tensor(enum quantmix mix,
    const struct quantmix_model *m, const struct gguf_tensor *t,
    int *fell_back);

/*
 * The order of tensors in files that llama.cpp's quantiser writes: those of no
 * layer first, layers ascending, names within.  Like strcmp.
 */
int quantmix_order(const char *a, const char *b);

#endif
