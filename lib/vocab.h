/*
 * The vocabulary of a byte-level BPE model (tokenizer.ggml.model "gpt2"):
 * token texts and types, and ids back to bytes.
 *
 * Texts point into the mapped file, which must stay open as long.
 */
#ifndef VOCAB_H
#define VOCAB_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "err.h"
#include "gguf.h"
#include "special.h"

enum { VOCAB_MAX_TEXT = 65536 };

struct vocab {
	uint32_t n;            /* tokens that have a text */
	uint32_t n_rows;       /* ids that a model may give; at least n */
	struct gguf_str *text; /* (n) */
	uint8_t *type;         /* (n) enum token_type */
	struct special_tokens special;
	int add_bos; /* tokenizer.ggml.add_bos_token */
};

/*
 * Load and check.  Errors name the key or the token.  Equal texts are found by
 * tokenizer_init, which needs them to differ.
 */
int vocab_load(struct vocab *v, const struct gguf *g, struct err *err);
void vocab_free(struct vocab *v);

/*
 * The bytes of one id, into out, which has room for vocab_piece_max bytes.
 * Control and unknown tokens give nothing, with `special` their text.  Unused
 * ones and rows without a text give nothing.  Returns the count.
 */
size_t vocab_piece(const struct vocab *v, int32_t id, int special, char *out);

/* Longest piece of this id; 0 for rows without a text. */
size_t vocab_piece_max(const struct vocab *v, int32_t id);

/*
 * Does plain text begin with the BOS token?  1, 0, or -1 with err set.  The
 * reference gives LLaDA plain text without it, whatever add_bos_token says:
 * converters set it for every such file.
 */
int vocab_wants_bos(const struct vocab *v, const struct gguf *g,
    struct err *err);

/*
 * Write the bytes of n ids; mask and control tokens give nothing.  0, or -1
 * when the stream failed or memory ran out.
 */
int vocab_write(const struct vocab *v, const int32_t *id, size_t n, FILE *f);

/*
 * The character that stands for a byte in token texts: printable bytes stand
 * for themselves, the other 68, ascending, for U+0100 and up.
 */
uint32_t vocab_byte_to_char(uint8_t byte);

/* Back: the byte, or -1 for any other character. */
int vocab_char_to_byte(uint32_t cp);

#endif
