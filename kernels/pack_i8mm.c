#include "v16_neon.h"

#define KERNEL(name) name##_i8mm
enum { STEP = 8 };
#include "pack_neon.h"
