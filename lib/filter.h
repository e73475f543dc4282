/*
 * A child process that answers each token line with a token line: dllm-sample
 * with all that stands behind it.
 */
#ifndef FILTER_H
#define FILTER_H

#include <stddef.h>
#include <stdint.h>

#include "child.h"
#include "err.h"
#include "tokline.h"

/* Send n ids, replace *answer by what comes back. */
int filter_ask(struct child *c, const int32_t *id, size_t n,
    struct tokens *answer, struct err *err);

/* The status to fail with: that of a child that exited, else 1. */
int filter_status(const struct child *c);

#endif
