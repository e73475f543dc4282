/*
 * A canvas as rows of terminal cells: the text of its decided tokens, a sign
 * for each undecided position, and nothing that could command the terminal.
 */
#ifndef SCREEN_H
#define SCREEN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "err.h"
#include "vocab.h"

/* What a cell shows, least noteworthy first. */
enum cell_kind { CELL_OLD, CELL_FRESH, CELL_MASK, CELL_END };

struct cell {
	uint32_t cp;	     /* '\n' ends a row */
	unsigned char width; /* columns: 0 (combining), 1 or 2 */
	unsigned char kind;
	int32_t pos; /* of the token in the canvas */
};

/* Signs and highlighting. */
struct screen_style {
	uint32_t mask, end; /* characters of undecided positions, end tokens */
	const char
	    *fresh_on; /* around text decided in this step; "" for none */
	const char *fresh_off;
};

/* Zero before use. */
struct screen {
	struct cell *cell;
	size_t n, cap;
	char *piece; /* room for the longest piece */
	size_t piece_cap;
};

/*
 * Replace the cells by those of ids[from..n-1].  fresh, if not NULL, holds a
 * flag per position.  Text is decoded over the borders of tokens; what is not
 * UTF-8 shows as U+FFFD, and so do control characters (but line feeds, which
 * end a row) and those that change the direction of text.
 */
int screen_fill(struct screen *s, const struct vocab *v, const int32_t *ids,
    size_t from, size_t n, const unsigned char *fresh,
    const struct screen_style *style, struct err *err);

/*
 * The cells of the row that begins at cell i, for a width of at least 2:
 * returns where the next row begins; *end is behind the last cell to show.
 */
size_t screen_row(
    const struct screen *s, size_t i, unsigned width, size_t *end);

/* Write cells i to end-1 as UTF-8. */
void screen_put(FILE *f, const struct screen *s, size_t i, size_t end,
    const struct screen_style *style);

void screen_free(struct screen *s);

/* Columns of a character on a terminal: 0, 1 or 2. */
unsigned screen_width(uint32_t cp);

#endif
