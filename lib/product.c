#include "product.h"

/*
 * Bytes of an expanded tile.  A tile stays in the second-level cache while all
 * tokens pass; the more rows, the less often the tokens' activations come from
 * beyond it.  For inputs of 12288, 48 rows are 1.1 to 1.3 times as fast as the
 * 16 of a third of this size (avx2 and avx512vnni on Zen 5, 480 tokens), though
 * they leave less of that cache to the activations.
 */
enum { TILE_BYTES = 640 * 1024, MIN_ROWS = 16, MAX_ROWS = KERN_TILE_ROWS };

static int
uses_quant(const struct products *job, const struct matrix *w)
{
	return job->xq && ggml_type_info(w->type)->use == GGML_QUANT;
}

/* The number of rows does not influence results. */
static size_t
tile_rows(size_t n_in, int quant)
{
	size_t row = quant ? n_in : n_in * sizeof(float);
	size_t rows = TILE_BYTES / row / 16 * 16;

	return rows < MIN_ROWS ? MIN_ROWS : rows > MAX_ROWS ? MAX_ROWS : rows;
}

static size_t
n_tiles(const struct products *job, const struct matrix *w)
{
	size_t rows = tile_rows(w->n_in, uses_quant(job, w));

	return (w->n_out + rows - 1) / rows;
}

size_t
product_scratch(size_t n_in)
{
	size_t quant = wtile_bytes(tile_rows(n_in, 1), n_in);
	size_t floats = tile_rows(n_in, 0) * n_in * sizeof(float);

	return ((quant > floats ? quant : floats) + 63) / 64 * 64;
}

/* The rows that this thread is going to work on next, if all are as fast. */
static void
set_next(const struct products *job, const struct matrix *w, size_t r0,
    struct wtile *tile)
{
	size_t rows = tile_rows(w->n_in, 1);

	r0 += job->n_threads * rows;
	if (r0 >= w->n_out)
		return;
	if (rows > w->n_out - r0)
		rows = w->n_out - r0;
	tile->next = w->data + r0 * w->row_bytes;
	tile->next_bytes = rows * w->row_bytes;
}

/* Rows r0 to r0+n-1 of one matrix times all tokens. */
static void
multiply(const struct products *job, const struct product *p, size_t r0,
    size_t n, void *scratch)
{
	const struct kern *k = job->kern;
	const struct matrix *w = p->w;
	const uint8_t *src = w->data + r0 * w->row_bytes;
	float *y = p->y + r0, *rows = scratch;
	struct wtile tile;

	if (uses_quant(job, w)) {
		wtile_place(&tile, scratch, n, w->n_in);
		k->expand(&tile, w->type, src, w->row_bytes, n, w->n_in);
		set_next(job, w, r0, &tile);
		k->matmul_quant(
		    y, w->n_out, &tile, job->xq, job->first, job->count);
	} else {
		for (size_t r = 0; r < n; r++)
			k->decode(w->type, src + r * w->row_bytes, w->n_in,
			    rows + r * w->n_in);
		k->matmul_float(y, w->n_out, rows, n, job->xf, job->first,
		    job->count);
	}
	if (p->bias)
		for (size_t t = 0; t < job->count; t++)
			k->add(y + t * w->n_out, p->bias + r0, n);
}

/* Items are tiles, counted through all matrices. */
static void
product_job(void *arg, unsigned thread, size_t from, size_t to)
{
	const struct products *job = arg;
	char *scratch = (char *)job->scratch + thread * job->scratch_bytes;

	for (size_t i = from; i < to; i++) {
		const struct product *p = job->p;
		size_t tile = i, rows;

		for (; tile >= n_tiles(job, p->w); p++)
			tile -= n_tiles(job, p->w);
		rows = tile_rows(p->w->n_in, uses_quant(job, p->w));
		tile *= rows;
		if (rows > p->w->n_out - tile)
			rows = p->w->n_out - tile;
		multiply(job, p, tile, rows, scratch);
	}
}

void
product_add(struct products *job, const struct matrix *w, float *y,
    const float *bias)
{
	struct product *p = &job->p[job->n++];

	p->w = w;
	p->y = y;
	p->bias = bias;
}

void
product_run(struct products *job, struct pool *pool)
{
	size_t items = 0;

	job->n_threads = pool_threads(pool);

	for (int i = 0; i < job->n; i++)
		items += n_tiles(job, job->p[i].w);
	pool_run(pool, product_job, job, items, 1);
}
