/*
 * The words of a protocol line: separated by single spaces, KEY=VALUE.
 * Private to proto.c and request.c.
 */
#ifndef PROTO_WORD_H
#define PROTO_WORD_H

#include <stddef.h>
#include <stdint.h>

/* A piece of a line, not NUL-terminated. */
struct word {
	const char *p;
	size_t n;
};

/* Take the next word off the line; 0 at its end. */
int word_next(struct word *line, struct word *w);

/* Is w exactly this string? */
int word_is(struct word w, const char *s);

/* If w is KEY=..., set *value to what follows. */
int word_value(struct word w, const char *key, struct word *value);

/* Decimal, canonical, within max.  0 or -1. */
int word_uint(struct word w, uint64_t max, uint64_t *v);

/* A finite number as strtod reads it.  0 or -1. */
int word_real(struct word w, double *v);

/* Ids below limit with commas between, at most max.  Their number or -1. */
int word_ids(struct word w, uint64_t limit, int32_t *id, int max);

#endif
