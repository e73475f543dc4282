/*
 * JSON: a small reader for messages and traces, and string output.
 */
#ifndef JSON_H
#define JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "err.h"

enum json_type {
	JSON_NULL,
	JSON_FALSE,
	JSON_TRUE,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT
};

/*
 * A value.  Arrays and objects chain their members through first and next;
 * a member of an object has a key.
 */
struct json {
	enum json_type type;
	const char *key; /* NUL-terminated UTF-8; NULL outside objects */
	size_t key_len;
	const char *text; /* string: UTF-8, may hold NUL bytes; NUL behind */
	size_t text_len;
	double number;
	size_t n; /* members of an array or object */
	struct json *first, *next;
};

/* Everything a parse allocates. */
struct json_doc {
	struct json *root;
	void *chunks;
};

/*
 * Parse exactly one value with white space around it.  Nesting is limited to
 * 64.  -1 names the byte, from 1.  Free with json_free in both cases.
 */
int json_parse(struct json_doc *d, const char *text, size_t n,
    struct err *err);
void json_free(struct json_doc *d);

/* The last member of an object with this key, or NULL. */
const struct json *json_get(const struct json *object, const char *key);

/*
 * Write a quoted JSON string.  Bytes that are not UTF-8 become U+FFFD, control
 * characters are escaped.
 */
void json_put_string(FILE *f, const char *s, size_t n);

/* "[1,2,3]" */
void json_put_ids(FILE *f, const int32_t *id, size_t n);

#endif
