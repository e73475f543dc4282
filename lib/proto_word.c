#include "proto_word.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int
word_next(struct word *line, struct word *w)
{
	const char *space;

	if (line->n == 0)
		return 0;
	space = memchr(line->p, ' ', line->n);
	w->p = line->p;
	w->n = space ? (size_t)(space - line->p) : line->n;
	line->p += w->n;
	line->n -= w->n;
	if (space) {
		line->p++;
		line->n--;
	}
	return 1;
}

int
word_is(struct word w, const char *s)
{
	return w.n == strlen(s) && !memcmp(w.p, s, w.n);
}

int
word_value(struct word w, const char *key, struct word *value)
{
	size_t n = strlen(key);

	if (w.n <= n || memcmp(w.p, key, n) || w.p[n] != '=')
		return 0;
	value->p = w.p + n + 1;
	value->n = w.n - n - 1;
	return 1;
}

int
word_uint(struct word w, uint64_t max, uint64_t *v)
{
	uint64_t x = 0, digit;

	if (w.n == 0 || (w.n > 1 && w.p[0] == '0'))
		return -1;
	for (size_t i = 0; i < w.n; i++) {
		if (w.p[i] < '0' || w.p[i] > '9')
			return -1;
		digit = (uint64_t)(w.p[i] - '0');
		if (digit > max || x > (max - digit) / 10)
			return -1;
		x = x * 10 + digit;
	}
	*v = x;
	return 0;
}

int
word_real(struct word w, double *v)
{
	char buf[64], *end;

	if (w.n == 0 || w.n >= sizeof buf || w.p[0] == '\t')
		return -1;
	memcpy(buf, w.p, w.n);
	buf[w.n] = '\0';
	*v = strtod(buf, &end);
	return end == buf + w.n && isfinite(*v) ? 0 : -1;
}

int
word_ids(struct word w, uint64_t limit, int32_t *id, int max)
{
	const char *comma;
	struct word item;
	uint64_t v;
	int n = 0;

	if (w.n == 0)
		return 0;
	do {
		comma = memchr(w.p, ',', w.n);
		item.p = w.p;
		item.n = comma ? (size_t)(comma - w.p) : w.n;
		if (n == max || word_uint(item, INT32_MAX, &v) < 0 ||
		    v >= limit)
			return -1;
		id[n++] = (int32_t)v;
		if (comma) {
			w.n -= item.n + 1;
			w.p = comma + 1;
		}
	} while (comma);
	return n;
}
