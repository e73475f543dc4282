/*
 * Unicode character classes, as far as pre-tokenisers and chat templates look
 * at them.  Tables: lib/unicode_data.h, made by lib/unicode-gen.
 */
#ifndef UNICODE_H
#define UNICODE_H

#include <stddef.h>
#include <stdint.h>

enum unicode_class {
	UNICODE_OTHER,  /* marks, punctuation, symbols, controls, unassigned */
	UNICODE_LETTER, /* general categories Lu Ll Lt Lm Lo */
	UNICODE_NUMBER, /* Nd Nl No */
	UNICODE_SPACE   /* the property White_Space */
};

enum unicode_class unicode_class(uint32_t cp);

/*
 * Leave out white space at both ends of the UTF-8 text *s of *n bytes.  Bytes
 * that are not UTF-8 count as something else.
 */
void unicode_trim(const char **s, size_t *n);

#endif
