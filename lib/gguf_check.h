/*
 * Is the data of a tensor sound?
 */
#ifndef GGUF_CHECK_H
#define GGUF_CHECK_H

#include "gguf.h"

/*
 * -1 if data lies outside the file, or if values (of float types) or block
 * scales and offsets (of quantised types) are infinite or not a number; err
 * names file and tensor, how many there are and where the first one is.
 * Integer types and NVFP4 cannot hold any.
 */
int gguf_check_tensor(const struct gguf *g, const struct gguf_tensor *t,
    struct err *err);

#endif
