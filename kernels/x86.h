/*
 * Small things that the x86 kernels share.
 */
#ifndef X86_H
#define X86_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
