/*
 * The trace of a denoising loop: JSON lines.  See dllm-trace(5).
 * Each function writes one line and flushes: 0, or -1 with errno.
 */
#ifndef TRACE_H
#define TRACE_H

#include <stdint.h>
#include <stdio.h>

#include "generate.h"
#include "proto.h"
#include "sampler.h"

/* The sequence that begins: input line from 0, canvas before any step. */
int trace_begin(FILE *f, uint64_t line, const struct sampler *s, float cfg,
    const struct greeting *g, const int32_t *canvas);

/* A step that was made or skipped; canvas after it. */
int trace_step(FILE *f, const struct generation *n);

/* "end": an end token ends the answer; "length": none does. */
int trace_end(FILE *f, const struct generation *n);

#endif
