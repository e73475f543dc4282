#include "wide_avx2.h"

#define KERNEL(name) name##_avx2
#include "stats_v16.h"
