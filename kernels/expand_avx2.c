/*
 * Quants of 3 to 6 bits as they are stored, unsigned; those of 8 bits signed:
 * see matmul_avx2.c.
 */
#include "v16_avx2.h"

#define KERNEL(name) name##_avx2
#define BIAS 0
#include "expand_x86.h"
