/*
 * What the parts of a forward pass share.  For forward.c and the modules named
 * forward_*.c alone.
 */
#ifndef FORWARD_STATE_H
#define FORWARD_STATE_H

#include <stdatomic.h>
#include <stddef.h>

#include "forward.h"
#include "product.h"

/* What grows with the sequence. */
enum buffer_id {
	X,     /* (n, n_embd) the residual stream */
	H,     /* (n, n_embd) after a norm */
	T,     /* (n, n_embd) what the residual gets next */
	Q,     /* (n, n_heads * head_dim) */
	K, V,  /* (n, n_kv_heads * head_dim) */
	ATTN,  /* (n, n_heads * head_dim) */
	GATE,  /* (n, n_ff) */
	UP,    /* (n, n_ff) */
	KT,    /* keys in panels, one set per key head */
	COS, SIN, /* (n, head_dim / 2) */
	XQ,    /* struct xquant */
	XF,    /* struct xfloat */
	ROWS,  /* (n) size_t: the rows of the head that are wanted */
	SCORES, /* (threads, KERN_QUERIES, n up to 16) */
	SCRATCH, /* (threads, scratch_bytes) for products */
	N_BUFFERS
};

struct forward {
	const struct model *m;
	const struct kern *k;
	struct pool *pool;
	struct forward_options o;
	void *buf[N_BUFFERS];
	size_t n_reserved; /* tokens that the buffers hold */
	size_t scratch_bytes; /* of a thread, for products */
	float scale; /* of attention scores */

	/* Of the current run. */
	const int32_t *ids;
	size_t n;      /* tokens in the sequence */
	size_t n_cur;  /* rows that x holds: all, or the wanted ones */
	size_t n_rows; /* rows wanted */
	int gathered;  /* x holds the wanted rows only */
	forward_stage_fn *stage_fn;
	void *stage_arg;
	double ms_embd, ms_head, *ms_layer;
	double ms_part[FORWARD_PARTS], lap; /* when the last part ended */

	/* Arguments of the piece of work that the pool does at the moment. */
	size_t unit; /* tokens per item */
	int want_quant, want_float;
	const float *norm, *residual;
	struct xquant xq;
	struct xfloat xf;
	atomic_size_t bad; /* 4 * row + stage: the first bad number */
};

static inline float *
fbuf(const struct forward *f, enum buffer_id b)
{
	return f->buf[b];
}

static inline size_t
max2(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* The row of the sequence that row i of x is. */
static inline size_t
raw_row(const struct forward *f, size_t i)
{
	return f->gathered ? ((size_t *)f->buf[ROWS])[i] : i;
}

/* Is w multiplied with int8 activations? */
static inline int
uses_quant(const struct forward *f, const struct matrix *w)
{
	return ggml_type_info(w->type)->use == GGML_QUANT &&
	    !f->o.float_activations;
}

/* ---- forward_memory.c ---- */

/* Make all buffers large enough for n tokens. */
int forward_reserve(struct forward *f, size_t n, struct err *err);

/* Bytes that a thread needs for the widest product. */
size_t forward_scratch(const struct model *m);

/* ---- forward_note.c ---- */

/* What was done since the last call was this part. */
void forward_lap(struct forward *f, enum forward_part part);

/*
 * A number in this row is not finite.  Threads report rows; the lowest one is
 * named, whoever found it first.
 */
void forward_note_bad(struct forward *f, size_t row, unsigned stage);

struct stage_name {
	int layer; /* or -1 */
	const char *name;
};

/* After a piece of work that can report these stages. */
int forward_check(struct forward *f, const struct stage_name names[3],
    struct err *err);

/* Hand a stage of all current rows to the callback, if there is one. */
int forward_stage(struct forward *f, int layer, const char *name,
    const float *data, size_t width, struct err *err);

/* ---- forward_layer.c ---- */

/* The embedding of all tokens into x. */
void forward_embed(struct forward *f);

/* Layer i; its feed-forward's output is left in T for the next norm to add. */
int forward_layer(struct forward *f, int i, struct err *err);

/*
 * x += residual, then norm and packing for the matrices a, b, c.  names: the
 * stages of the norm and of x.
 */
int forward_norm(struct forward *f, const struct stage_name names[3],
    const float *norm, const float *residual, const struct matrix *a,
    const struct matrix *b, const struct matrix *c, struct err *err);

/* Products with the packed input, of tokens first to first+count-1. */
struct products forward_products(const struct forward *f, size_t first,
    size_t count);

#endif
