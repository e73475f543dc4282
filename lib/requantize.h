/*
 * A tensor into another type, streamed: decoded, encoded and checked in pieces
 * by all threads, handed on in order.
 */
#ifndef REQUANTIZE_H
#define REQUANTIZE_H

#include <stddef.h>

#include "err.h"
#include "ggml_type.h"
#include "gguf.h"
#include "pool.h"

/* Scratch memory for any number of tensors. */
struct requantizer {
	struct pool *pool;
	struct requantize_piece *piece; /* (pieces of a batch) */
	float *scratch;                 /* two pieces for each thread */
	unsigned char *out;             /* the bytes of a batch */
};

/* The pool must live as long. */
int requantizer_open(struct requantizer *q, struct pool *pool,
    struct err *err);
void requantizer_close(struct requantizer *q);

/* Takes the next n bytes; -1 with err set ends the work. */
typedef int requantize_sink(void *arg, const void *bytes, size_t n,
    struct err *err);

/*
 * Encode t, of a type that can be decoded and with its data in the file, as
 * type `to`, whose block divides t->ne[0].  *error is the root of the summed
 * squares of what changed, relative to that of the values.  An element that is
 * not finite, or too large for the type, is an error.
 */
int requantize(struct requantizer *q, const struct gguf_tensor *t,
    enum ggml_type to, requantize_sink *sink, void *arg, double *error,
    struct err *err);

#endif
