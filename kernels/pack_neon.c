#include "v16_neon.h"

#define KERNEL(name) name##_neon
enum { STEP = 4 };
#include "pack_neon.h"
