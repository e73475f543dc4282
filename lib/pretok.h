/*
 * Pre-tokenisers: text is cut into words, and each is encoded by itself.  One
 * hand-written matcher stands for the regular expressions of the families
 * qwen2, bailingmoe, llada-moe and llama-bpe; it needs no stack and its time
 * is linear in the text.
 */
#ifndef PRETOK_H
#define PRETOK_H

#include <stddef.h>

struct pretok {
	const char *name;  /* value of tokenizer.ggml.pre */
	int max_digits;    /* numbers are cut after so many characters */
	int ignore_merges; /* a word that is a token is taken as it is */
};

/* By name (n bytes, not terminated); NULL if unknown. */
const struct pretok *pretok_find(const char *name, size_t n);

/* All names, ", " between (static). */
const char *pretok_names(void);

/* Bytes of the first word of the UTF-8 text s[0..n-1], n > 0. */
size_t pretok_next(const struct pretok *pre, const char *s, size_t n);

#endif
