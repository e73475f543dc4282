/*
 * Token lines: canonical decimal ids, one space between, LF at the end; an
 * empty line is the empty sequence.  See dllm-tokens(5).
 */
#ifndef TOKLINE_H
#define TOKLINE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "err.h"

/* A growing array of ids.  Zero it before use; free with tokens_free. */
struct tokens {
	int32_t *id;
	size_t n, cap;
};

int tokens_push(struct tokens *t, int32_t id, struct err *err);
int tokens_append(struct tokens *t, const int32_t *id, size_t n,
    struct err *err);
void tokens_free(struct tokens *t);

/* A reader of token lines; zero all but f. */
struct tokline {
	FILE *f;
	const char *name; /* in messages; NULL: "standard input" */
	char *buf;
	size_t cap;
	unsigned long line; /* number of the line read last, from 1 */
};

/*
 * Replace *t by the ids of the next line.  Returns 1, or 0 at a clean end, or
 * -1 (malformed, unterminated, or the input had no line at all).
 */
int tokline_read(struct tokline *r, struct tokens *t, struct err *err);
void tokline_free(struct tokline *r);

/* Parse the ids in text[0..n-1]; -1 names the byte that is wrong, from 1. */
int tokline_parse(const char *text, size_t n, struct tokens *t,
    struct err *err);

/* Write n ids and the LF, then flush.  0, or -1 with err set. */
int tokline_write(FILE *f, const int32_t *id, size_t n, struct err *err);

#endif
