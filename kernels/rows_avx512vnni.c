#include "v16_avx512.h"

#define KERNEL(name) name##_avx512vnni
#include "rows_v16.h"
