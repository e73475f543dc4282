#include "v16_neon.h"

#define KERNEL(name) name##_neon
enum { TILE_QUERIES = 4, TILE_VECS = 1 };
#include "attention_v16.h"
