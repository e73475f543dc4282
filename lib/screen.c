#include "screen.h"

#include <stdlib.h>
#include <string.h>

#include "utf8.h"

struct span {
	uint32_t first, last;
};

static int
in(const struct span *s, size_t n, uint32_t cp)
{
	for (size_t i = 0; i < n; i++)
		if (cp >= s[i].first && cp <= s[i].last)
			return 1;
	return 0;
}

unsigned
screen_width(uint32_t cp)
{
	/* The common combining marks and invisible characters. */
	static const struct span none[] = { { 0x300, 0x36F }, { 0x483, 0x489 },
		{ 0x591, 0x5BD }, { 0x610, 0x61A }, { 0x64B, 0x65F },
		{ 0x93C, 0x93C }, { 0x941, 0x948 }, { 0x94D, 0x94D },
		{ 0xE31, 0xE31 }, { 0xE34, 0xE3A }, { 0xE47, 0xE4E },
		{ 0x1AB0, 0x1AFF }, { 0x1DC0, 0x1DFF }, { 0x200B, 0x200D },
		{ 0x20D0, 0x20FF }, { 0x3099, 0x309A }, { 0xFE00, 0xFE0F },
		{ 0xFE20, 0xFE2F }, { 0xFEFF, 0xFEFF }, { 0x1F3FB, 0x1F3FF },
		{ 0xE0100, 0xE01EF } };
	/* East Asian wide and emoji. */
	static const struct span wide[] = { { 0x1100, 0x115F },
		{ 0x231A, 0x231B }, { 0x23E9, 0x23EC }, { 0x2614, 0x2615 },
		{ 0x2648, 0x2653 }, { 0x26BD, 0x26BE }, { 0x2705, 0x2705 },
		{ 0x2728, 0x2728 }, { 0x274C, 0x274C }, { 0x2753, 0x2755 },
		{ 0x2B50, 0x2B50 }, { 0x2E80, 0x303E }, { 0x3041, 0xA4CF },
		{ 0xA960, 0xA97C }, { 0xAC00, 0xD7A3 }, { 0xF900, 0xFAFF },
		{ 0xFE30, 0xFE6F }, { 0xFF00, 0xFF60 }, { 0xFFE0, 0xFFE6 },
		{ 0x1F300, 0x1F64F }, { 0x1F680, 0x1F6FF },
		{ 0x1F900, 0x1F9FF }, { 0x1FA70, 0x1FAFF },
		{ 0x20000, 0x3FFFD } };

	if (in(none, sizeof none / sizeof *none, cp))
		return 0;
	return in(wide, sizeof wide / sizeof *wide, cp) ? 2 : 1;
}

/* Characters that command a terminal or reorder its text. */
static int
harmful(uint32_t cp)
{
	static const struct span list[] = { { 0, 0x1F }, { 0x7F, 0x9F },
		{ 0x61C, 0x61C }, { 0x200E, 0x200F }, { 0x2028, 0x202E },
		{ 0x2066, 0x2069 }, { 0xFFF9, 0xFFFB }, { 0xE0000, 0xE007F } };

	return in(list, sizeof list / sizeof *list, cp);
}

static int
add(struct screen *s, uint32_t cp, enum cell_kind kind, size_t pos,
    struct err *err)
{
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 256;
		struct cell *cell = realloc(s->cell, cap * sizeof *cell);

		if (!cell)
			return err_sys(err, "cannot show the canvas");
		s->cell = cell;
		s->cap = cap;
	}
	s->cell[s->n++] = (struct cell){ cp,
		(unsigned char)(cp == '\n' ? 0 : screen_width(cp)),
		(unsigned char)kind, (int32_t)pos };
	return 0;
}

/*
 * Bytes of text that are not shown yet: the beginning of a character whose
 * rest may come with the next token.
 */
struct pending {
	char byte[4];
	size_t n;
	size_t pos;
	enum cell_kind kind;
};

/* Could these 1 to 3 bytes begin a longer well-formed sequence? */
static int
incomplete(const char *s, size_t n)
{
	unsigned char c = (unsigned char)*s;
	size_t want = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;

	if (c < 0xC2 || c > 0xF4 || n >= want)
		return 0;
	for (size_t i = 1; i < n; i++)
		if (((unsigned char)s[i] & 0xC0) != 0x80)
			return 0;
	return 1;
}

/* Show what is pending; a sequence that may go on only if `all`. */
static int
drain(struct screen *s, struct pending *p, int all, struct err *err)
{
	while (p->n) {
		uint32_t cp;
		size_t len = utf8_decode(p->byte, p->n, &cp);

		if (!len) {
			if (!all && incomplete(p->byte, p->n))
				return 0;
			cp = UTF8_REPLACEMENT;
			len = 1;
		}
		if (cp != '\n' && harmful(cp))
			cp = UTF8_REPLACEMENT;
		if (add(s, cp, p->kind, p->pos, err) < 0)
			return -1;
		p->n -= len;
		memmove(p->byte, p->byte + len, p->n);
	}
	return 0;
}

static int
add_piece(struct screen *s, struct pending *p, const char *text, size_t n,
    enum cell_kind kind, size_t pos, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		if (!p->n)
			p->kind = kind;
		else if (kind > p->kind)
			p->kind = kind;
		p->pos = pos;
		p->byte[p->n++] = text[i];
		if (drain(s, p, 0, err) < 0)
			return -1;
	}
	return 0;
}

static int
reserve_piece(struct screen *s, size_t n, struct err *err)
{
	char *piece;

	if (n <= s->piece_cap)
		return 0;
	piece = realloc(s->piece, n);
	if (!piece)
		return err_sys(err, "cannot show the canvas");
	s->piece = piece;
	s->piece_cap = n;
	return 0;
}

int
screen_fill(struct screen *s, const struct vocab *v, const int32_t *ids,
    size_t from, size_t n, const unsigned char *fresh,
    const struct screen_style *style, struct err *err)
{
	struct pending p = { .n = 0 };

	s->n = 0;
	for (size_t i = from; i < n; i++) {
		int32_t id = ids[i];
		int mask = id == v->special.mask;

		if (mask || special_is_eos(&v->special, id)) {
			if (drain(s, &p, 1, err) < 0 ||
			    add(s, mask ? style->mask : style->end,
				mask ? CELL_MASK : CELL_END, i, err) < 0)
				return -1;
			continue;
		}
		if (reserve_piece(s, vocab_piece_max(v, id) + 1, err) < 0 ||
		    add_piece(s, &p, s->piece, vocab_piece(v, id, 0, s->piece),
			fresh && fresh[i] ? CELL_FRESH : CELL_OLD, i, err) < 0)
			return -1;
	}
	return drain(s, &p, 1, err);
}

size_t
screen_row(const struct screen *s, size_t i, unsigned width, size_t *end)
{
	unsigned used = 0;

	for (; i < s->n; i++) {
		if (s->cell[i].cp == '\n') {
			*end = i;
			return i + 1;
		}
		if (used + s->cell[i].width > width)
			break;
		used += s->cell[i].width;
	}
	*end = i;
	return i;
}

void
screen_put(FILE *f, const struct screen *s, size_t i, size_t end,
    const struct screen_style *style)
{
	int fresh = 0;
	char utf8[4];

	for (; i < end; i++) {
		int now = s->cell[i].kind == CELL_FRESH;

		if (now != fresh)
			fputs(now ? style->fresh_on : style->fresh_off, f);
		fresh = now;
		fwrite(utf8, 1, utf8_encode(s->cell[i].cp, utf8), f);
	}
	if (fresh)
		fputs(style->fresh_off, f);
}

void
screen_free(struct screen *s)
{
	free(s->cell);
	free(s->piece);
	*s = (struct screen){ 0 };
}
