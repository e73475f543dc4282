/*
 * Quants with 128 added, for vpdpbusd; see matmul_avx512vnni.c.
 */
#define EXPAND expand_avx512vnni
#define BIAS 1
#include "expand_x86.h"
