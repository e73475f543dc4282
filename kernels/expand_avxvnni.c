/*
 * Quants with 128 added, for vpdpbusd; AVX2 is enough.
 */
#include "v16_avx2.h"

#define KERNEL(name) name##_avxvnni
#define BIAS 1
#include "expand_x86.h"
