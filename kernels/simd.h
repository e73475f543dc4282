/*
 * Small things that all kernels in vector instructions share.
 */
#ifndef SIMD_H
#define SIMD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * K is worked through in chunks of so many elements.  Row r of a tile of R
 * rows (up to a multiple of 8) has element k at
 *   q[(k / CHUNK * R + r) * CHUNK + k % CHUNK]
 * and its scales and mins likewise, so that all that is used together lies
 * together: rows of 4096 bytes would all fall into the same sets of a cache.
 * A group may lay the quants of two rows side by side, eight of one and eight
 * of the other; that is their 2 * CHUNK bytes in another order.
 */
enum { CHUNK = 256 };

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
		__builtin_prefetch(a->p, 0, 2);
}

/*
 * Loads behind it stay behind it.  Moved up, which gcc does to hide their
 * latency, they take registers from the accumulators.
 */
#define HOLD_LOADS() __asm__ volatile("" ::: "memory")

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

/* Eight 6-bit scales and eight 6-bit mins in 12 bytes, as bytes. */
static inline void
scales_k4(const uint8_t *s, uint64_t *scales, uint64_t *mins)
{
	uint32_t a = (uint32_t)load_i32(s), b = (uint32_t)load_i32(s + 4);
	uint32_t c = (uint32_t)load_i32(s + 8);

	*scales = (uint64_t)((c & 0x0f0f0f0f) | (a >> 2 & 0x30303030)) << 32 |
	    (a & 0x3f3f3f3f);
	*mins = (uint64_t)((c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030)) << 32 |
	    (b & 0x3f3f3f3f);
}

#endif
