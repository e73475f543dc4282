/*
 * What a GGUF file holds, as text or JSON.
 *
 * Text is one fact per line, in an order that does not depend on the file's:
 * keys and tensors sorted by the bytes of their names, types by their number,
 * so that two files can be compared with diff(1).  Strings show everything
 * that is not printable UTF-8 as an escape (\n, \xHH, \uHHHH).
 *
 * Write errors are left to the caller: ferror(f).
 */
#ifndef GGUF_LIST_H
#define GGUF_LIST_H

#include <stdio.h>

#include "gguf.h"

/* Long arrays and strings are shortened unless full. */
void gguf_list_text(FILE *f, const struct gguf *g, int full);

/* One object, everything in full. */
void gguf_list_json(FILE *f, const struct gguf *g);

/*
 * One value and LF: the bytes of a string as they are, an array one element
 * per line.
 */
void gguf_value_raw(FILE *f, const struct gguf_kv *kv);

/* One value as JSON; NaN and infinities are strings. */
void gguf_value_json(FILE *f, const struct gguf_kv *kv);

#endif
