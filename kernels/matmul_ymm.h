/*
 * Matrix products in registers of 256 bits; see matmul_avx512vnni.c, whose
 * layout and arithmetic these are.  A vector is half a panel, 8 tokens.
 * Included by a file that defines
 *
 *   MATMUL           the function's name
 *   struct dots, and
 *   dots(a, o, k, rows, vecs, how)
 *                    integer sums of a group: rows x vecs vectors, `how` one of
 *                    the file's own kinds
 *   KINDS(X, ...)    X(name, group, mins, less, how, ...) for each kind
 *   kind_of(w)       the kind of a tile, counted as in KINDS
 *
 * less: what is added to the quants is 1 << less (0: nothing).
 *
 * There are 16 registers: 12 integer accumulators, so that the float ones live
 * in memory (the first-level cache) and are fetched once per block.
 */
#include <string.h>

enum {
	LANES = 16,
	TILE_ROWS = 6,
	MOST_PANELS = 3 /* that one pass over K takes along */
};

/* Where a register tile finds its operands, at the first block of a chunk. */
struct operands {
	const uint8_t *q;   /* first weight row; rows are CHUNK apart */
	const float *w, *m; /* CHUNK / group apart */
	const int8_t *x;
	const float *dx, *mdx, *sx;
	const int32_t *sum;
	size_t n_blocks;    /* to do */
	int first;          /* accumulators start at 0 */
	float *acc;         /* (rows, MOST_PANELS, LANES) */
};

enum { ACC_STRIDE = MOST_PANELS * LANES };

/* M + isum as floats: the sums start with M less what `less` adds. */
INLINE void
start(__m256i a[], const int32_t *sum, const int rows, const int vecs,
    const int less)
{
#pragma GCC unroll 2
	for (int j = 0; j < vecs; j++) {
		__m256i v = _mm256_set1_epi32(START);

		if (less)
			v = _mm256_sub_epi32(v,
			    _mm256_slli_epi32(_mm256_load_si256(
			        (const __m256i *)(sum + j * 8)), less));
#pragma GCC unroll 6
		for (int r = 0; r < rows; r++)
			a[r * vecs + j] = v;
	}
}

/* acc += isum * dx * w, and sx * m. */
INLINE void
scale(float *acc, const __m256i a[], const struct operands *o, size_t b,
    size_t g, int first, const int rows, const int vecs, const int group,
    const int mins)
{
	const int groups = CHUNK / group;

#pragma GCC unroll 2
	for (int j = 0; j < vecs; j++) {
		__m256 dx = _mm256_load_ps(o->dx + b * LANES + j * 8);
		__m256 mdx = _mm256_load_ps(o->mdx + b * LANES + j * 8);
		__m256 sx = mins ? _mm256_load_ps(o->sx + g * LANES + j * 8) :
		                   dx;

#pragma GCC unroll 6
		for (int r = 0; r < rows; r++) {
			float *at = acc + r * ACC_STRIDE + j * 8;
			__m256 u = _mm256_fmadd_ps(
			    _mm256_castsi256_ps(a[r * vecs + j]), dx, mdx);
			__m256 s = first ? _mm256_setzero_ps() :
			                   _mm256_load_ps(at);

			s = _mm256_fmadd_ps(u,
			    _mm256_broadcast_ss(o->w + r * groups + g), s);
			if (mins)
				s = _mm256_fmadd_ps(sx,
				    _mm256_broadcast_ss(
				        o->m + r * groups + g),
				    s);
			_mm256_store_ps(at, s);
		}
	}
}

/* A register tile: rows x vecs vectors of tokens, one chunk of K. */
INLINE void
chunk(const struct operands *o, const int rows, const int vecs,
    const int group, const int mins, const int less, const int how)
{
	const size_t parts = (size_t)(KERN_BLOCK / group);
	__m256i a[TILE_ROWS * 2];

	for (size_t g = 0; g < o->n_blocks * parts; g++) {
		size_t k = g * (size_t)group;

		start(a, o->sum + g * LANES, rows, vecs, less);
		dots(a, o->q + k, o->x + k * LANES, rows, vecs, group / 4,
		    how);
		scale(o->acc, a, o, g / parts, g, o->first && g == 0, rows,
		    vecs, group, mins);
	}
}

typedef void chunk_fn(const struct operands *);

#define CHUNK_FN(name, group, mins, less, how, rows, vecs) \
	static void chunk_##name##_##rows##x##vecs(const struct operands *o) \
	{ \
		chunk(o, rows, vecs, group, mins, less, how); \
	}
#define CHUNK_ENTRY(name, group, mins, less, how, rows, vecs) \
	chunk_##name##_##rows##x##vecs,

KINDS(CHUNK_FN, 6, 2)
KINDS(CHUNK_FN, 4, 2)
KINDS(CHUNK_FN, 6, 1)
KINDS(CHUNK_FN, 4, 1)

static chunk_fn *const chunks_6x2[] = { KINDS(CHUNK_ENTRY, 6, 2) };
static chunk_fn *const chunks_4x2[] = { KINDS(CHUNK_ENTRY, 4, 2) };
static chunk_fn *const chunks_6x1[] = { KINDS(CHUNK_ENTRY, 6, 1) };
static chunk_fn *const chunks_4x1[] = { KINDS(CHUNK_ENTRY, 4, 1) };

/* [vectors less 1][four rows or six] */
static chunk_fn *const *const shapes[2][2] = {
	{ chunks_4x1, chunks_6x1 },
	{ chunks_4x2, chunks_6x2 },
};

/*
 * One chunk of all rows, a multiple of 8 = 4 + 4, 16 = 6 + 6 + 4, 24 = 4 * 6;
 * o has the panel's operands.
 */
static void
panel_chunk(struct operands o, const struct wtile *w, size_t row, size_t rows,
    size_t vecs, int kind, struct ahead *next)
{
	size_t groups = CHUNK / w->group, n;

	for (size_t end = row + rows; row < end; row += n) {
		n = end - row == 8 || end - row == 4 ? 4 : 6;
		o.q = (const uint8_t *)w->q + row * CHUNK;
		o.w = w->w + row * groups;
		o.m = w->m + row * groups;
		shapes[vecs - 1][n == 6][kind](&o);
		o.acc += n * ACC_STRIDE;
		fetch_ahead(next);
	}
}

/* All rows of the tile, all of K, n panels from panel p on. */
static void
panels(float *acc, const struct wtile *w, const struct xquant *x, size_t p,
    size_t n, struct ahead *next)
{
	size_t parts = KERN_BLOCK / w->group, rows = kern_panels(w->n_rows, 8);
	const float *sx = w->group == 16 ? x->sx16 : x->sx;
	const int32_t *sum = w->group == 16 ? x->sum16 : x->sum;
	int kind = kind_of(w);

	for (size_t k = 0; k < x->n_in; k += CHUNK)
		for (size_t j = 0; j < n; j++) {
			size_t at = (p + j) * x->n_in * LANES + k * LANES;
			size_t s = at / KERN_BLOCK;
			size_t tok = x->n_tok - (p + j) * LANES;
			struct operands o = { .x = x->q + at,
				.dx = x->dx + s,
				.mdx = x->mdx + s,
				.sx = sx + s * parts,
				.sum = sum + s * parts,
				.first = k == 0,
				.acc = acc + j * LANES };

			o.n_blocks =
			    (x->n_in - k < CHUNK ? x->n_in - k : CHUNK) /
			    KERN_BLOCK;
			/* a last panel of up to 8 tokens is one vector */
			panel_chunk(o, w, k / CHUNK * rows, rows,
			    tok > 8 ? 2 : 1, kind, next);
		}
}

/* One panel's accumulators turned: y[t * stride + r]. */
static void
store_panel(float *y, size_t stride, const float *acc, size_t n_rows,
    size_t n_tok)
{
	for (size_t r = 0; r < n_rows; r += 8)
		for (size_t h = 0; h < n_tok; h += 8) {
			size_t rows = n_rows - r < 8 ? n_rows - r : 8;
			__m256i mask = v16_first(rows, 0);
			__m256 v[8];

			for (size_t i = 0; i < 8; i++)
				v[i] = _mm256_load_ps(
				    acc + (r + i) * ACC_STRIDE + h);
			v8_turn(v);
			for (size_t l = 0; l < 8 && h + l < n_tok; l++)
				_mm256_maskstore_ps(
				    y + (h + l) * stride + r, mask, v[l]);
		}
}

void
MATMUL(float *y, size_t stride, const struct wtile *w, const struct xquant *x,
    size_t t0, size_t n)
{
	_Alignas(64) float acc[(KERN_TILE_ROWS + 8) * ACC_STRIDE];
	size_t end = kern_panels(t0 + n, LANES) / LANES, some;
	size_t calls = (end - t0 / LANES) * ((w->n_in + CHUNK - 1) / CHUNK) *
	    (w->n_rows / TILE_ROWS + 1);
	struct ahead next = ahead(w->next, w->next_bytes, calls);

	for (size_t p = t0 / LANES; p < end; p += some) {
		some = end - p < MOST_PANELS ? end - p : MOST_PANELS;
		panels(acc, w, x, p, some, &next);
		for (size_t j = 0; j < some; j++) {
			size_t t = (p + j) * LANES;
			size_t tok = t0 + n - t < LANES ? t0 + n - t : LANES;

			store_panel(y + (t - t0) * stride, stride,
			    acc + j * LANES, w->n_rows, tok);
		}
	}
}
