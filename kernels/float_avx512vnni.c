#include "v16_avx512.h"

#define KERNEL(name) name##_avx512vnni
enum { TILE_ROWS = 8, TILE_VECS = 3 };
#include "float_v16.h"
