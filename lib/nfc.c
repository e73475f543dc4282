#include "nfc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

struct class_range {
	uint32_t first, last, value;
};

/* right is 0 for a decomposition into one character. */
struct decomposition {
	uint32_t whole, left, right;
};

struct composition {
	uint32_t left, right, whole;
};

#include "nfc_data.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/*
 * From this character on they have classes and compose with what is before
 * them; none below does either.
 */
enum { FIRST_MARK = 0x300 };

/* Characters that one decomposes into, at most; bytes, for each of its own. */
enum { MAX_PARTS = 4, MAX_GROWTH = 3 };

/* Hangul syllables: arithmetic instead of tables (Unicode, section 3.12). */
enum {
	L0 = 0x1100, V0 = 0x1161, T0 = 0x11A7, S0 = 0xAC00,
	N_L = 19, N_V = 21, N_T = 28, N_S = N_L * N_V * N_T
};

/* A piece of text: each element is a class << 24 | code point. */
struct piece {
	uint32_t *c;      /* (cap) */
	uint32_t *sorted; /* (cap), what is being sorted */
	size_t n, cap;
};

static uint32_t
code(uint32_t c)
{
	return c & 0xFFFFFF;
}

static uint32_t
class(uint32_t c)
{
	return c >> 24;
}

static uint32_t
find_class(uint32_t cp)
{
	size_t lo = 0, hi = LENGTH(nfc_class), mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (cp > nfc_class[mid].last)
			lo = mid + 1;
		else if (cp < nfc_class[mid].first)
			hi = mid;
		else
			return nfc_class[mid].value;
	}
	return 0;
}

static const struct decomposition *
find_decomposition(uint32_t cp)
{
	size_t lo = 0, hi = LENGTH(nfc_decomposition), mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (cp > nfc_decomposition[mid].whole)
			lo = mid + 1;
		else if (cp < nfc_decomposition[mid].whole)
			hi = mid;
		else
			return &nfc_decomposition[mid];
	}
	return NULL;
}

static void
decompose(struct piece *p, uint32_t cp)
{
	const struct decomposition *d;
	uint32_t s = cp - S0; /* large below S0 */

	if (s < N_S) {
		p->c[p->n++] = L0 + s / (N_V * N_T);
		p->c[p->n++] = V0 + s % (N_V * N_T) / N_T;
		if (s % N_T)
			p->c[p->n++] = T0 + s % N_T;
		return;
	}
	d = find_decomposition(cp);
	if (!d) {
		p->c[p->n++] = find_class(cp) << 24 | cp;
		return;
	}
	decompose(p, d->left);
	if (d->right)
		decompose(p, d->right);
}

/* What two characters compose into, or 0. */
static uint32_t
compose(uint32_t a, uint32_t b)
{
	size_t lo = 0, hi = LENGTH(nfc_composition), mid;
	const struct composition *it;

	if (a - L0 < N_L && b - V0 < N_V)
		return S0 + ((a - L0) * N_V + b - V0) * N_T;
	if (a - S0 < N_S && (a - S0) % N_T == 0 && b > T0 && b - T0 < N_T)
		return a + b - T0;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		it = &nfc_composition[mid];
		if (a > it->left || (a == it->left && b > it->right))
			lo = mid + 1;
		else if (a < it->left || b < it->right)
			hi = mid;
		else
			return it->whole;
	}
	return 0;
}

/* Sort marks c[0..n-1] by class; those of a class stay in their order. */
static void
sort_marks(uint32_t *c, size_t n, uint32_t *sorted)
{
	size_t at[257] = { 0 };

	for (size_t i = 0; i < n; i++)
		at[class(c[i]) + 1]++;
	for (size_t i = 1; i < 257; i++)
		at[i] += at[i - 1];
	for (size_t i = 0; i < n; i++)
		sorted[at[class(c[i])]++] = c[i];
	memcpy(c, sorted, n * sizeof *c);
}

static void
order_piece(struct piece *p)
{
	size_t i = 0, from;
	int ordered;

	while (i < p->n) {
		if (!class(p->c[i])) {
			i++;
			continue;
		}
		from = i;
		ordered = 1;
		for (i++; i < p->n && class(p->c[i]); i++)
			ordered &= class(p->c[i - 1]) <= class(p->c[i]);
		if (!ordered)
			sort_marks(p->c + from, i - from, p->sorted);
	}
}

/*
 * Compose characters with the last starter before them.  One between the two
 * that has remained blocks all of its class and of lower ones; a starter that
 * has remained is the last starter itself.
 */
static void
compose_piece(struct piece *p)
{
	size_t n = 0, starter = SIZE_MAX;
	uint32_t c, whole;

	for (size_t i = 0; i < p->n; i++) {
		c = p->c[i];
		if (starter != SIZE_MAX && (n == starter + 1 ||
		    class(p->c[n - 1]) < class(c))) {
			whole = compose(code(p->c[starter]), code(c));
			if (whole) {
				p->c[starter] = whole;
				continue;
			}
		}
		if (!class(c))
			starter = n;
		p->c[n++] = c;
	}
	p->n = n;
}

static int
grow(struct piece *p, size_t cap)
{
	if (cap <= p->cap)
		return 0;
	free(p->c);
	free(p->sorted);
	p->cap = cap;
	p->c = malloc(p->cap * sizeof *p->c);
	p->sorted = malloc(p->cap * sizeof *p->sorted);
	return p->c && p->sorted ? 0 : -1;
}

/* The normalised form of well-formed s[0..n-1] behind out; 0, or -1. */
static int
normalise(struct piece *p, const char *s, size_t n, char *out, size_t *n_out)
{
	uint32_t cp = 0;

	/* Its characters have two bytes or more, but for the first. */
	if (grow(p, MAX_PARTS * (n / 2 + 1)) < 0)
		return -1;
	p->n = 0;
	for (size_t i = 0; i < n; ) {
		i += utf8_decode(s + i, n - i, &cp);
		decompose(p, cp);
	}
	order_piece(p);
	compose_piece(p);
	for (size_t i = 0; i < p->n; i++)
		*n_out += utf8_encode(code(p->c[i]), out + *n_out);
	return 0;
}

/*
 * How much of s[0..n-1] is normalised together: a character and those that
 * may change with it.  *plain: there are none, it stays as it is.
 */
static size_t
next_piece(const char *s, size_t n, int *plain)
{
	uint32_t cp = 0;
	size_t i = utf8_decode(s, n, &cp), len;

	*plain = 1;
	if (i == 0)
		return 1; /* a bad byte */
	*plain = cp < FIRST_MARK;
	while (i < n && (unsigned char)s[i] >= 0x80 &&
	    (len = utf8_decode(s + i, n - i, &cp)) && cp >= FIRST_MARK) {
		i += len;
		*plain = 0;
	}
	return i;
}

int
nfc(const char *s, size_t n, char **out, size_t *n_out, struct err *err)
{
	struct piece piece = { 0 };
	size_t len = 0;
	int rc = 0, plain;

	*n_out = 0;
	*out = malloc(MAX_GROWTH * n + 1);
	if (!*out)
		return err_set(err, "out of memory");
	for (size_t i = 0; i < n && rc == 0; i += len) {
		len = next_piece(s + i, n - i, &plain);
		if (plain) {
			memcpy(*out + *n_out, s + i, len);
			*n_out += len;
		} else {
			rc = normalise(&piece, s + i, len, *out, n_out);
		}
	}
	free(piece.c);
	free(piece.sorted);
	if (rc == 0)
		return 0;
	free(*out);
	*out = NULL;
	return err_set(err, "out of memory");
}
