/*
 * Pairs of rows, as smmla takes them; see matmul_i8mm.c.
 */
#include "v16_neon.h"

#define KERNEL(name) name##_i8mm
#define TOGETHER 2
#include "expand_neon.h"
