/*
 * Quants with 128 added, for vpdpbusd; see matmul_avx512vnni.c.
 */
#include "v16_avx512.h"

#define KERNEL(name) name##_avx512vnni
#define BIAS 1
#include "expand_x86.h"
