/*
 * Strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
 */
#ifndef UTF8_H
#define UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { UTF8_REPLACEMENT = 0xFFFD };

/*
 * Decode the character at s[0..n-1], n > 0.  Returns its length, 1 to 4, or 0
 * where these bytes do not begin a complete well-formed sequence.
 */
size_t utf8_decode(const char *s, size_t n, uint32_t *cp);

/* Encode into out (4 bytes).  Returns the length. */
size_t utf8_encode(uint32_t cp, char *out);

#endif
