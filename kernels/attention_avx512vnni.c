#include "v16_avx512.h"

#define KERNEL(name) name##_avx512vnni
enum { TILE_QUERIES = 8, TILE_VECS = 3 };
#include "attention_v16.h"
