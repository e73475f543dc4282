#include "v16_neon.h"

#define KERNEL(name) name##_neon
#include "rows_v16.h"
