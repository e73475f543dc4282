/*
 * Text to token ids: special tokens are cut out, what is left is cut into
 * words, each word is encoded by BPE.
 *
 * Special tokens are looked for longest first over the whole text, as
 * llama.cpp does; user-defined ones always, control and unknown ones on
 * request.  Unused and byte tokens are never matched.
 * Bytes that do not begin a complete well-formed UTF-8 sequence are encoded as
 * one U+FFFD each.  Text between special tokens is brought into Normalisation
 * Form C on request, as the tokeniser of Dream's reference code does.
 */
#ifndef TOKENIZER_H
#define TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "bpe.h"
#include "err.h"
#include "gguf.h"
#include "tokline.h"
#include "vocab.h"

struct tokenizer_node;
struct tokenizer_match;

struct tokenizer {
	struct vocab vocab;
	struct bpe bpe;
	struct tokenizer_node *node; /* a trie of the special texts */
	size_t n_nodes, cap_nodes;
	int32_t first[256]; /* nodes by first byte, 0: none */
	int nfc; /* normalise: 0 unless the caller sets it */

	/* scratch of the current text */
	struct tokenizer_match *match;
	size_t n_matches, cap_matches;
};

/* The file must stay open as long as the tokenizer is used. */
int tokenizer_init(struct tokenizer *t, const struct gguf *g, struct err *err);
void tokenizer_free(struct tokenizer *t);

/*
 * Append the tokens of text s[0..n-1] to out.  special: control and unknown
 * tokens are recognised too.  No BOS is added.
 */
int tokenizer_encode(struct tokenizer *t, const char *s, size_t n, int special,
    struct tokens *out, struct err *err);

/* The control token with exactly this text, or -1. */
int32_t tokenizer_control(const struct tokenizer *t, const char *text);

#endif
