/*
 * The token ids that mean something to the programs around a model.
 */
#ifndef SPECIAL_H
#define SPECIAL_H

#include <stdint.h>

#include "err.h"
#include "gguf.h"

/* Types of tokens, the values of tokenizer.ggml.token_type. */
enum token_type {
	TOKEN_UNDEFINED,
	TOKEN_NORMAL,
	TOKEN_UNKNOWN,
	TOKEN_CONTROL,
	TOKEN_USER_DEFINED,
	TOKEN_UNUSED,
	TOKEN_BYTE,
	N_TOKEN_TYPES
};

enum { SPECIAL_MAX_EOS = 16 };

struct special_tokens {
	int32_t bos;  /* begin of text, or -1 */
	int32_t mask; /* or -1 */
	int32_t eos[SPECIAL_MAX_EOS]; /* end tokens, end of text first */
	int n_eos;
	uint64_t n_tokens; /* length of tokenizer.ggml.tokens, 0 without */
};

/*
 * Read them from the keys of tokenizer.ggml and from token texts, without
 * building a vocabulary.
 *
 * End tokens: eos_token_id, eot_token_id, eom_token_id, then control tokens
 * whose text is a usual end of text or turn, ascending.  Mask: mask_token_id,
 * else the token <|mdm_mask|> or <|mask|>.  BOS: bos_token_id; but where an
 * architecture dream has the control token <|beginoftext|>, that one, since
 * converters name its end of text there.
 *
 * -1 where a key or array has the wrong type or an id is not in the
 * vocabulary.  A missing id is no error.
 */
int special_tokens_load(const struct gguf *g, struct special_tokens *s,
    struct err *err);

/*
 * What a file of this architecture is, if it is known to have another layout
 * than llama.cpp's; else NULL.
 */
const char *foreign_layout(struct gguf_str arch);

/* Is id one of the end tokens? */
int special_is_eos(const struct special_tokens *s, int32_t id);

/*
 * The types of all tokens: *kv is NULL where the file has none (then all are
 * normal).  Checks the element type, the length and every value.
 */
int special_token_types(const struct gguf *g, uint64_t n_tokens,
    const struct gguf_kv **kv, struct err *err);

#endif
