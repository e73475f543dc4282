/*
 * A hash table from byte strings to their index in an array that the caller
 * owns: token texts to ids, merges to ranks.  Open addressing, at most half
 * full.
 */
#ifndef STRMAP_H
#define STRMAP_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "gguf.h"

struct strmap_slot {
	uint32_t tag;   /* high half of the hash */
	uint32_t index; /* index + 1; 0: free */
};

struct strmap {
	const struct gguf_str *key; /* the caller's array */
	struct strmap_slot *slot;
	size_t mask; /* slots - 1, a power of two less one */
};

/* Room for n keys, n below 2^31; nothing is in it yet. */
int strmap_init(struct strmap *m, const struct gguf_str *key, size_t n,
    struct err *err);
void strmap_free(struct strmap *m);

/*
 * Add key[i].  Returns i, or the index of an equal key that is there, or -1
 * where so many keys collide that they must have been made for it.
 */
int32_t strmap_add(struct strmap *m, int32_t i);

/* Index of a key, or -1. */
int32_t strmap_find(const struct strmap *m, struct gguf_str s);

/* Index of the key that is a, one space, b; or -1. */
int32_t strmap_find_pair(const struct strmap *m, struct gguf_str a,
    struct gguf_str b);

#endif
