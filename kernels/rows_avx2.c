#include "v16_avx2.h"

#define KERNEL(name) name##_avx2
#include "rows_v16.h"
