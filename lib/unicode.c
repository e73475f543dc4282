#include "unicode.h"

#include "utf8.h"

struct unicode_range {
	uint32_t first, last;
};

#include "unicode_data.h"

static int
in(const struct unicode_range *r, size_t n, uint32_t cp)
{
	size_t lo = 0, mid;

	while (lo < n) {
		mid = lo + (n - lo) / 2;
		if (cp > r[mid].last)
			lo = mid + 1;
		else if (cp < r[mid].first)
			n = mid;
		else
			return 1;
	}
	return 0;
}

#define IN(table, cp) in(table, sizeof(table) / sizeof(table)[0], cp)

enum unicode_class
unicode_class(uint32_t cp)
{
	if (cp < 0x80) {
		if ((cp | 0x20) >= 'a' && (cp | 0x20) <= 'z')
			return UNICODE_LETTER;
		if (cp >= '0' && cp <= '9')
			return UNICODE_NUMBER;
		if (cp == ' ' || (cp >= '\t' && cp <= '\r'))
			return UNICODE_SPACE;
		return UNICODE_OTHER;
	}
	if (IN(unicode_letter, cp))
		return UNICODE_LETTER;
	if (IN(unicode_number, cp))
		return UNICODE_NUMBER;
	if (IN(unicode_space, cp))
		return UNICODE_SPACE;
	return UNICODE_OTHER;
}

/* Length of the white space character at the end of s[0..n-1], or 0. */
static size_t
last_space(const char *s, size_t n)
{
	uint32_t cp;

	for (size_t len = 1; len <= 4 && len <= n; len++)
		if (utf8_decode(s + n - len, len, &cp) == len)
			return unicode_class(cp) == UNICODE_SPACE ? len : 0;
	return 0;
}

void
unicode_trim(const char **s, size_t *n)
{
	uint32_t cp;
	size_t len;

	while (*n > 0) {
		len = utf8_decode(*s, *n, &cp);
		if (len == 0 || unicode_class(cp) != UNICODE_SPACE)
			break;
		*s += len;
		*n -= len;
	}
	while ((len = last_space(*s, *n)) > 0)
		*n -= len;
}
