#include "wide_neon.h"

#define KERNEL(name) name##_neon
#include "stats_v16.h"
