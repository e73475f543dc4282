/*
 * What a generation reports about itself, to people and programs.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "generate.h"

/* --dump-step-stats: "step= block= committed= ... ms=", one line. */
void report_step(FILE *f, const struct generation *n);

/* --verbose, before the first step: model, device, sizes, steps. */
void report_model(FILE *f, const struct greeting *g);
void report_sizes(FILE *f, const struct sampler *s, const int32_t *canvas);

/* --verbose, after the last step: time of all, tokens per second. */
void report_speed(FILE *f, const struct generation *n);

/* "6.1 GB", "34.2 MB". */
void report_bytes(FILE *f, const char *name, uint64_t bytes);

/* Non-mask tokens before the end of the answer; infilling: what was filled. */
uint64_t report_tokens(const struct generation *n);

/* --json: one object, LF; id (count) is what was printed. */
void report_json(FILE *f, const struct generation *n, const int32_t *id,
    uint64_t count, double load_ms, uint64_t peak_bytes);

/* The most memory a running process had, or 0 if it cannot be told. */
uint64_t process_peak_bytes(long pid);

#endif
