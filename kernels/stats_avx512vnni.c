#include "wide_avx512.h"

#define KERNEL(name) name##_avx512vnni
#include "stats_v16.h"
