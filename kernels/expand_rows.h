/*
 * The rows of a tile, whatever the instructions.  Included by a file that
 * defines
 *
 *   KERNEL(name)       the function's name
 *   TOGETHER           rows whose quants lie side by side, 1 or 2; see simd.h
 *   expand_TYPE(block, q, w, m)
 *                      take one block apart; q as such a row has it
 *   halves8(to, p, n)  eight binary16 numbers, n bytes apart
 */
#include "expand.h"

/*
 * Rows are read in order but the hardware's prefetcher stops at every page:
 * asked for so far ahead, a cold Q4_K row takes 1.4 instead of 2.0 ns per 32
 * weights (Q6_K 1.6 instead of 2.4) on x86; not measured elsewhere.
 */
enum { AHEAD = 4096 };

INLINE void
prefetch_block(const uint8_t *src, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 64)
		__builtin_prefetch(src + AHEAD + i, 0, 3);
}

/* Where a row's parts go: see CHUNK in simd.h. */
struct row {
	int8_t *q;
	float *w, *m;
	size_t rows; /* of the tile, up to a multiple of 8 */
};

#define EXPAND_ROW(name, block, groups) \
	static void row_##name(const struct row *to, const uint8_t *src, \
	    size_t n) \
	{ \
		size_t c = 0; \
		for (size_t i = 0; i < n; c += to->rows) \
			for (size_t j = 0; j < CHUNK && i < n; \
			    j += block, i += block) { \
				prefetch_block( \
				    src, sizeof(struct block_##name)); \
				size_t g = c * (CHUNK / block * groups) + \
				    j / block * groups; \
				expand_##name((const void *)src, \
				    to->q + c * CHUNK + j * TOGETHER, \
				    to->w + g, to->m + g); \
				src += sizeof(struct block_##name); \
			} \
	}

/*
 * Blocks of 32, eight in a chunk.  Converting their scales together took
 * a quarter off the time of Q8_0 in the one comparison made, on x86; the single
 * conversions are not used and go.
 */
#define EXPAND_ROW_32(name, mins, m_at) \
	static void row_##name(const struct row *to, const uint8_t *src, \
	    size_t n) \
	{ \
		const size_t size = sizeof(struct block_##name); \
		size_t c = 0, i = 0; \
		for (; i + CHUNK <= n; i += CHUNK, c += to->rows) { \
			int8_t *q = to->q + c * CHUNK; \
			float w, m; \
			prefetch_block(src, 8 * size); \
			halves8(to->w + c * 8, src, size); \
			if (mins) \
				halves8(to->m + c * 8, src + m_at, size); \
			for (size_t j = 0; j < 8; j++, src += size) \
				expand_##name((const void *)src, \
				    q + j * 32 * TOGETHER, &w, &m); \
		} \
		for (size_t j = 0; i < n; i += 32, src += size, j++) \
			expand_##name((const void *)src, \
			    to->q + c * CHUNK + j * 32 * TOGETHER, \
			    to->w + c * 8 + j, to->m + c * 8 + j); \
	}

EXPAND_ROW_32(q4_0, 0, 0)
EXPAND_ROW_32(q4_1, 1, 2)
EXPAND_ROW_32(q5_0, 0, 0)
EXPAND_ROW_32(q5_1, 1, 2)
EXPAND_ROW_32(q8_0, 0, 0)
EXPAND_ROW_32(iq4_nl, 0, 0)
EXPAND_ROW(mxfp4, 32, 1)
EXPAND_ROW(q2_k, 256, 16)
EXPAND_ROW(q3_k, 256, 16)
EXPAND_ROW(q4_k, 256, 8)
EXPAND_ROW(q5_k, 256, 8)
EXPAND_ROW(q6_k, 256, 16)
EXPAND_ROW(iq4_xs, 256, 8)

static void (*const row_fns[])(
    const struct row *to, const uint8_t *src, size_t n) = {
	[GGML_Q4_0] = row_q4_0,
	[GGML_Q4_1] = row_q4_1,
	[GGML_Q5_0] = row_q5_0,
	[GGML_Q5_1] = row_q5_1,
	[GGML_Q8_0] = row_q8_0,
	[GGML_IQ4_NL] = row_iq4_nl,
	[GGML_MXFP4] = row_mxfp4,
	[GGML_Q2_K] = row_q2_k,
	[GGML_Q3_K] = row_q3_k,
	[GGML_Q4_K] = row_q4_k,
	[GGML_Q5_K] = row_q5_k,
	[GGML_Q6_K] = row_q6_k,
	[GGML_IQ4_XS] = row_iq4_xs,
};

/* Rows that fill up to a multiple of 8: results that nobody reads. */
static void
clear_row(const struct row *to, size_t n, size_t groups)
{
	size_t c = 0;

	for (size_t i = 0; i < n; i += CHUNK, c += to->rows) {
		for (size_t k = 0; k < CHUNK; k += 8)
			memset(to->q + c * CHUNK + k * TOGETHER, 0, 8);
		memset(to->w + c * groups, 0, groups * sizeof(float));
		memset(to->m + c * groups, 0, groups * sizeof(float));
	}
}

void
KERNEL(expand)(struct wtile *to, enum ggml_type type, const uint8_t *src,
    size_t row_bytes, size_t n_rows, size_t n_in)
{
	size_t groups, rows = kern_panels(n_rows, 8);

	to->n_rows = n_rows;
	to->n_in = n_in;
	to->group = expand_group(type);
	to->mins = expand_has_mins(type);
	to->type = type;
	to->next = NULL;
	to->next_bytes = 0;
	groups = CHUNK / to->group;
	for (size_t r = 0; r < rows; r++) {
		size_t beside = r % TOGETHER;
		struct row row = { to->q + (r - beside) * CHUNK + beside * 8,
			to->w + r * groups, to->m + r * groups, rows };

		if (r < n_rows)
			row_fns[type](&row, src + r * row_bytes, n_in);
		else
			clear_row(&row, n_in, groups);
	}
}
