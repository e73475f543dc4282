#include "requantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "expand.h"
#include "quantize.h"

/*
 * Elements that a thread takes at once, a multiple of every block, and pieces
 * that are written at once.
 */
enum { PIECE = 1 << 14, BATCH = 256 };

struct requantize_piece {
	double changed, norm; /* sums of squares */
	size_t bad;	      /* first element that failed; PIECE: none */
	float value;	      /* of that element */
};

/* One batch of one tensor. */
struct work {
	const struct requantizer *q;
	const uint8_t *from;
	enum ggml_type type, to;
	size_t n; /* elements */
};

static void
work_piece(const struct work *w, struct requantize_piece *p, size_t first,
    float *x, float *y)
{
	size_t n = w->n - first < PIECE ? w->n - first : PIECE;
	unsigned char *out = w->q->out + ggml_row_bytes(w->to, first);

	memset(p, 0, sizeof *p);
	p->bad = PIECE;
	decode_row(w->type, w->from + ggml_row_bytes(w->type, first), n, x);
	for (size_t i = 0; i < n && p->bad == PIECE; i++)
		if (!isfinite(x[i]))
			p->bad = i;
	if (p->bad == PIECE) {
		quantize_row(w->to, x, n, out);
		decode_row(w->to, out, n, y);
		for (size_t i = 0; i < n; i++) {
			double d = (double)x[i] - (double)y[i];

			if (!isfinite(y[i]) && p->bad == PIECE)
				p->bad = i;
			p->changed += d * d;
			p->norm += (double)x[i] * (double)x[i];
		}
	}
	if (p->bad < PIECE)
		p->value = x[p->bad];
}

static void
work_pieces(void *arg, unsigned thread, size_t from, size_t to)
{
	const struct work *w = arg;
	float *x = w->q->scratch + (size_t)thread * 2 * PIECE;

	for (size_t i = from; i < to; i++)
		work_piece(w, &w->q->piece[i], i * PIECE, x, x + PIECE);
}

int
requantizer_open(struct requantizer *q, struct pool *pool, struct err *err)
{
	size_t n = pool_threads(pool);

	q->pool = pool;
	q->piece = malloc(BATCH * sizeof *q->piece);
	q->scratch = malloc(n * 2 * PIECE * sizeof *q->scratch);
	q->out = malloc((size_t)BATCH * PIECE * sizeof(float));
	if (q->piece && q->scratch && q->out)
		return 0;
	requantizer_close(q);
	return err_set(err, "out of memory");
}

void
requantizer_close(struct requantizer *q)
{
	free(q->piece);
	free(q->scratch);
	free(q->out);
	memset(q, 0, sizeof *q);
}

static int
check(const struct gguf_tensor *t, const struct work *w,
    const struct requantize_piece *p, uint64_t first, struct err *err)
{
	unsigned long long at = first + p->bad;

	if (p->bad == PIECE)
		return 0;
	if (!isfinite(p->value))
		return err_set(
		    err, "tensor %s: element %llu is not finite", t->name, at);
	return err_set(err, "tensor %s: element %llu is too large for %s",
	    t->name, at, ggml_type_name(w->to));
}

int
requantize(struct requantizer *q, const struct gguf_tensor *t,
    enum ggml_type to, requantize_sink *sink, void *arg, double *error,
    struct err *err)
{
	struct work w = { .q = q, .type = t->type, .to = to };
	double changed = 0, norm = 0;
	size_t pieces;

	for (uint64_t first = 0; first < t->n_elements; first += w.n) {
		w.n = t->n_elements - first < BATCH * PIECE
			  ? (size_t)(t->n_elements - first)
			  : BATCH * PIECE;
		w.from = t->data + ggml_row_bytes(t->type, first);
		pieces = (w.n + PIECE - 1) / PIECE;
		pool_run(q->pool, work_pieces, &w, pieces, 1);
		for (size_t i = 0; i < pieces; i++) {
			if (check(t, &w, &q->piece[i], first + i * PIECE, err) <
			    0)
				return -1;
			changed += q->piece[i].changed;
			norm += q->piece[i].norm;
		}
		if (sink(arg, q->out, (size_t)ggml_row_bytes(to, w.n), err) < 0)
			return -1;
	}
	*error = changed > 0 ? sqrt(changed / norm) : 0;
	return 0;
}
