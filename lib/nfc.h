/*
 * Unicode Normalisation Form C of UTF-8 text (Unicode Standard Annex 15):
 * characters are decomposed, marks put into canonical order, what composes is
 * composed.  Tables: lib/nfc_data.h, made by lib/nfc-gen.
 */
#ifndef NFC_H
#define NFC_H

#include <stddef.h>

#include "err.h"

/*
 * Set *out to the normalised form of s[0..n-1], of *n_out bytes, not
 * terminated; the caller frees it.  Bytes that are not UTF-8 stay, and nothing
 * composes across them.  Time is linear in n, whatever the text.  -1 without
 * memory.
 */
int nfc(const char *s, size_t n, char **out, size_t *n_out, struct err *err);

#endif
