/*
 * A model: the metadata and tensors of a GGUF file, checked against what the
 * graph needs.  Weights stay in the mapped file in their own types.
 *
 * Graph and constants: the model code of LLaDA and Dream as llama.cpp writes
 * them to files; what differs between families is the table in model.c.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "gguf.h"
#include "product.h"
#include "special.h"

enum { MODEL_MAX_LAYERS = 512, MODEL_MAX_POSITIONS = 1 << 20 };

/* What a family fixes, where another family does otherwise. */
struct family {
	const char *arch; /* general.architecture */
	int neox;         /* RoPE pairs i, i + head_dim/2; else 2i, 2i+1 */
	int qkv_bias;     /* q, k and v have biases */
	int shift;        /* row p-1 of the head predicts position p */
};

struct layer {
	struct matrix q, k, v, attn_out, gate, up, down;
	const float *attn_norm, *ffn_norm;      /* (n_embd) */
	const float *q_bias, *k_bias, *v_bias;  /* NULL where there is none */
};

struct model {
	struct gguf gguf;
	const struct family *family;
	size_t n_vocab, n_embd, n_ff, n_layers, n_heads, n_kv_heads, head_dim;
	size_t context;    /* positions it was made for */
	size_t shift;      /* 1: row p-1 of the head predicts position p */
	float eps, rope_base;
	struct matrix embd, head; /* one and the same where tied */
	const float *norm;        /* (n_embd) */
	struct layer *layer;      /* (n_layers) */
	struct special_tokens special;
	uint64_t file_bytes;      /* all shards */

	/* Tensors that nothing reads: their number and the first one's name. */
	uint64_t n_unused;
	const char *unused;

	float *vectors; /* norms and biases as f32 */
};

/*
 * Open PATH and check everything.  Errors begin with the path and name key or
 * tensor.
 */
int model_open(struct model *m, const char *path, struct err *err);
void model_close(struct model *m);

/* Name of general.file_type, "Q4_K_M", or "unknown". */
const char *model_quantisation(const struct model *m);

/* -1 with the message for a model that does not fit into memory. */
int model_check_memory(uint64_t required, uint64_t available,
    struct err *err);

#endif
