#include "v16_neon.h"

#define KERNEL(name) name##_neon
enum { TILE_ROWS = 4, TILE_VECS = 1 };
#include "float_v16.h"
