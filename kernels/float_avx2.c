#include "v16_avx2.h"

#define KERNEL(name) name##_avx2
enum { TILE_ROWS = 6, TILE_VECS = 1 };
#include "float_v16.h"
