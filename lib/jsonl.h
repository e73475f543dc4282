/*
 * JSON lines: one object on each line of a text, read one at a time.
 */
#ifndef JSONL_H
#define JSONL_H

#include <stddef.h>

#include "err.h"
#include "json.h"

/* Set at and end; the rest zero. */
struct jsonl {
	const char *at, *end; /* what is not read yet */
	unsigned long line;   /* of the last object, from 1 */
	struct json_doc doc;  /* the last object: doc.root */
};

/*
 * Read the next object; the one before is freed.  1, 0 at the end, -1 with an
 * error that names the line.
 */
int jsonl_next(struct jsonl *l, struct err *err);
void jsonl_free(struct jsonl *l);

/* A string of the last object; NULL with an error that names the line. */
const struct json *jsonl_string(const struct jsonl *l, const char *key,
    struct err *err);

#endif
