#include "utf8.h"

size_t
utf8_decode(const char *s, size_t n, uint32_t *cp)
{
	const unsigned char *u = (const unsigned char *)s;
	/* range of the second byte: RFC 3629 section 4 */
	unsigned lo = 0x80, hi = 0xBF;
	size_t len;

	if (u[0] < 0x80) {
		*cp = u[0];
		return 1;
	} else if (u[0] >= 0xC2 && u[0] <= 0xDF) {
		len = 2;
		*cp = u[0] & 0x1F;
	} else if (u[0] >= 0xE0 && u[0] <= 0xEF) {
		len = 3;
		*cp = u[0] & 0x0F;
		if (u[0] == 0xE0)
			lo = 0xA0;
		if (u[0] == 0xED)
			hi = 0x9F;
	} else if (u[0] >= 0xF0 && u[0] <= 0xF4) {
		len = 4;
		*cp = u[0] & 0x07;
		if (u[0] == 0xF0)
			lo = 0x90;
		if (u[0] == 0xF4)
			hi = 0x8F;
	} else {
		return 0;
	}
	if (n < len || u[1] < lo || u[1] > hi)
		return 0;
	*cp = *cp << 6 | (u[1] & 0x3F);
	for (size_t i = 2; i < len; i++) {
		if ((u[i] & 0xC0) != 0x80)
			return 0;
		*cp = *cp << 6 | (u[i] & 0x3F);
	}
	return len;
}

size_t
utf8_encode(uint32_t cp, char *out)
{
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (char)(0xC0 | cp >> 6);
		out[1] = (char)(0x80 | (cp & 0x3F));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (char)(0xE0 | cp >> 12);
		out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
		out[2] = (char)(0x80 | (cp & 0x3F));
		return 3;
	}
	out[0] = (char)(0xF0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
	out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
	out[3] = (char)(0x80 | (cp & 0x3F));
	return 4;
}
