#include "v16_avx2.h"

#define KERNEL(name) name##_avx2
enum { TILE_QUERIES = 4, TILE_VECS = 1 };
#include "attention_v16.h"
