#include "v16_neon.h"

#define KERNEL(name) name##_neon
#define TOGETHER 1
#include "expand_neon.h"

/* Stored signed, all of them. */
#define LESS(raw, is_signed) (-1)
#include "decode_rows.h"
