/*
 * Small things that the x86 kernels share.
 */
#ifndef X86_H
#define X86_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bits of 1.5 * 2^23: a float whose last bit counts 1. */
enum { START = 0x4b400000 };

/*
 * K is worked through in chunks of so many elements.  Row r of a tile of R
 * rows (up to a multiple of 8) has element k at
 *   q[(k / CHUNK * R + r) * CHUNK + k % CHUNK]
 * and its scales and mins likewise, so that all that is used together lies
 * together: rows of 4096 bytes would all fall into the same sets of a cache.
 */
enum { CHUNK = 256 };

/*
 * A last panel of 1 to 8 tokens is laid out in quads of 4 tokens, which take a
 * quarter of a panel's work each.  How many quads; 0: panels only.
 */
static inline size_t
tail_quads(size_t n_tok)
{
	size_t rest = n_tok % 16;

	return rest <= 8 ? (rest + 3) / 4 : 0;
}

/*
 * Lines of the next tile to ask for, a few at a time: a tile's worth at once
 * would fill the buffers that the product's own loads need.
 */
struct ahead {
	const uint8_t *p, *end;
	size_t step; /* lines for each call of fetch_ahead */
};

static inline struct ahead
ahead(const uint8_t *p, size_t bytes, size_t calls)
{
	return (struct ahead){ p, p + bytes,
		calls ? bytes / 64 / calls + 1 : 0 };
}

static inline void
fetch_ahead(struct ahead *a)
{
	for (size_t i = 0; i < a->step && a->p < a->end; i++, a->p += 64)
		_mm_prefetch((const char *)a->p, _MM_HINT_T1);
}

static inline int32_t
load_i32(const void *p)
{
	int32_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

static inline uint16_t
load_u16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

#endif
