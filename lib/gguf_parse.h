/*
 * The header of one GGUF file, from mapped bytes to key-values and tensors.
 * Private to lib/gguf*.c.
 */
#ifndef GGUF_PARSE_H
#define GGUF_PARSE_H

#include "gguf.h"

/*
 * Parse g->file[0], whose map and size are set, into g->kv and g->tensor, both
 * empty before, and sort by_key.  Errors lack the path.
 */
int gguf_parse(struct gguf *g, struct err *err);

/* Sort the indices; -1 on a duplicate.  The sorted order is deterministic. */
int gguf_index_keys(struct gguf *g, struct err *err);
int gguf_index_tensors(struct gguf *g, struct err *err);

/* Bytes per value, 0 for strings and arrays. */
unsigned gguf_value_size(enum gguf_value_type t);

/* A name for messages: printable, shortened.  out (GGUF_MAX_NAME + 4). */
void gguf_name_text(char *out, const char *name, size_t n);

/* Little-endian integers from unaligned bytes. */
static inline uint32_t
gguf_le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	    (uint32_t)p[3] << 24;
}

static inline uint64_t
gguf_le64(const uint8_t *p)
{
	return gguf_le32(p) | (uint64_t)gguf_le32(p + 4) << 32;
}

#endif
