/*
 * Small things that the x86 kernels share.
 */
#ifndef X86_H
#define X86_H

#include <immintrin.h>

#include "simd.h"

/* Bits of 1.5 * 2^23: a float whose last bit counts 1. */
enum { START = 0x4b400000 };

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

#endif
