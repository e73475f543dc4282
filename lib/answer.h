/*
 * What dllm-sample prints of a canvas: the generated part up to the first end
 * token, or all of it; at once or as it is decided.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include <stdint.h>
#include <stdio.h>

#include "err.h"
#include "generate.h"

/* One line of output; printed is 0 at its beginning. */
struct answer {
	FILE *f;
	int canvas;       /* the prompt too */
	uint64_t printed; /* ids written so far */
};

/*
 * The ids to print: from the generated part's first one (or the canvas's) to
 * the first end token from there on, or the canvas's end without an early stop.
 */
uint64_t answer_from(const struct answer *a, const struct generation *n);
uint64_t answer_to(const struct generation *n);

/*
 * Write what is new of the ids that nothing will change: those before the first
 * mask.  -1: errno is the stream's.
 */
int answer_stream(struct answer *a, const struct generation *n,
    struct err *err);

/* Write the rest and the LF.  -1: errno is the stream's. */
int answer_end(struct answer *a, const struct generation *n, struct err *err);

/* Masks in what is printed. */
uint64_t answer_masks(const struct answer *a, const struct generation *n);

#endif
