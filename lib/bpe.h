/*
 * Byte-level BPE: one word to token ids.
 *
 * The word's bytes become characters (vocab_byte_to_char), each a symbol;
 * then the neighbours with the lowest rank in tokenizer.ggml.merges are
 * joined, leftmost first, until no two neighbours are in the list.  With a
 * heap, n bytes take O(n log n).
 */
#ifndef BPE_H
#define BPE_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "gguf.h"
#include "pretok.h"
#include "strmap.h"
#include "tokline.h"
#include "vocab.h"

enum { BPE_MAX_WORD = 1 << 29 }; /* bytes */

struct bpe_symbol;
struct bpe_pair;

struct bpe {
	const struct vocab *vocab;
	const struct pretok *pre;
	struct strmap token;    /* text -> id */
	struct gguf_str *merge; /* "left right", by rank */
	struct strmap rank;     /* the same -> rank */
	size_t longest;         /* bytes of the longest merge */
	int32_t byte[256];      /* token of a single byte, or -1 */

	/* scratch of the current word */
	char *text; /* its characters */
	struct bpe_symbol *symbol;
	size_t room; /* for so many bytes */
	struct bpe_pair *heap;
	size_t n_heap;
};

/* The vocabulary and the file must outlive it.  Errors name key or token. */
int bpe_init(struct bpe *b, const struct vocab *v, const struct gguf *g,
    struct err *err);
void bpe_free(struct bpe *b);

/*
 * Append the tokens of the word s[0..n-1].  Never a control token.  Fails if
 * the vocabulary has no token for one of the bytes, or without memory.
 */
int bpe_word(struct bpe *b, const char *s, size_t n, struct tokens *out,
    struct err *err);

/* The token with exactly this text, or -1. */
int32_t bpe_find(const struct bpe *b, const char *text, size_t n);

#endif
