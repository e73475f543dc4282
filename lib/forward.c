#include "forward.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fmath.h"

enum { MIN_PIECE = 4 }; /* tokens a thread claims at least */

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

struct buffer {
	void *p;
	size_t size;
};

struct forward {
	const struct model *m;
	const struct kern *k;
	struct pool *pool;
	struct forward_options o;
	struct buffer buf[N_BUFFERS];
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
	float *y;          /* what forward_head fills */
	atomic_size_t bad; /* 4 * row + stage: the first bad number */
};

static float *
fbuf(const struct forward *f, enum buffer_id b)
{
	return f->buf[b].p;
}

static size_t
max2(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t
widest_input(const struct model *m)
{
	return max2(max2(m->n_embd, m->n_ff), m->n_heads * m->head_dim);
}

static int
uses_quant(const struct forward *f, const struct matrix *w)
{
	return ggml_type_info(w->type)->use == GGML_QUANT &&
	    !f->o.float_activations;
}

/* Are any matrices multiplied with int8 (floats) activations? */
static void
kinds(const struct forward *f, int *any_quant, int *any_float)
{
	const struct model *m = f->m;

	*any_quant = *any_float = 0;
	for (size_t i = 0; i < m->n_layers; i++) {
		const struct layer *y = &m->layer[i];
		const struct matrix *all[] = { &y->q, &y->k, &y->v,
			&y->attn_out, &y->gate, &y->up, &y->down };

		for (size_t j = 0; j < sizeof all / sizeof *all; j++) {
			*any_quant |= uses_quant(f, all[j]);
			*any_float |= !uses_quant(f, all[j]);
		}
	}
	*any_quant |= uses_quant(f, &m->head);
	*any_float |= !uses_quant(f, &m->head);
}

/* Bytes of every buffer for n tokens. */
static void
sizes(const struct forward *f, size_t n, size_t out[N_BUFFERS])
{
	const struct model *m = f->m;
	size_t s = sizeof(float), q = m->n_heads * m->head_dim;
	size_t kv = m->n_kv_heads * m->head_dim, in = widest_input(m);
	size_t lanes = kern_panels(n, KERN_FLOAT_LANES);
	size_t keys = kern_panels(n, KERN_KEY_LANES);
	int any_quant, any_float;

	kinds(f, &any_quant, &any_float);
	out[X] = out[H] = out[T] = n * m->n_embd * s;
	out[Q] = out[ATTN] = n * q * s;
	out[K] = out[V] = n * kv * s;
	out[GATE] = out[UP] = n * m->n_ff * s;
	out[KT] = keys * kv * s;
	out[COS] = out[SIN] = n * (m->head_dim / 2) * s;
	out[XQ] = any_quant ? xquant_bytes(in, n) : 0;
	out[XF] = any_float ? lanes * in * s : 0;
	out[ROWS] = n * sizeof(size_t);
	out[SCORES] = pool_threads(f->pool) * KERN_QUERIES * keys * s;
	out[SCRATCH] = pool_threads(f->pool) * f->scratch_bytes;
}

uint64_t
forward_bytes(const struct forward *f, size_t n)
{
	size_t size[N_BUFFERS];
	uint64_t sum = 0;

	sizes(f, n, size);
	for (int i = 0; i < N_BUFFERS; i++)
		sum += size[i];
	return sum;
}

static void *
allocate(size_t bytes)
{
	void *p;

	/* never 0 bytes: some systems give NULL for that */
	return posix_memalign(&p, 64, bytes ? bytes : 64) ? NULL : p;
}

/* The one table of angles: p * base^(-2i/head_dim) in f64. */
static void
fill_angles(struct forward *f, size_t n)
{
	const struct model *m = f->m;
	size_t half = m->head_dim / 2;
	double log_base = f64_log((double)m->rope_base);

	for (size_t i = 0; i < half; i++) {
		double e = (double)(2 * i) / (double)m->head_dim;
		double freq = f64_exp(-e * log_base);

		for (size_t p = 0; p < n; p++) {
			double angle = (double)p * freq;

			fbuf(f, COS)[p * half + i] = (float)f64_cos(angle);
			fbuf(f, SIN)[p * half + i] = (float)f64_sin(angle);
		}
	}
}

/* Make all buffers large enough for n tokens. */
static int
reserve(struct forward *f, size_t n, struct err *err)
{
	size_t size[N_BUFFERS];

	if (n <= f->n_reserved)
		return 0;
	sizes(f, n, size);
	f->n_reserved = 0;
	for (int i = 0; i < N_BUFFERS; i++) {
		free(f->buf[i].p);
		f->buf[i].p = allocate(size[i]);
		if (!f->buf[i].p)
			return err_set(err, "out of memory: %zu tokens need "
			    "%.1f GB", n, (double)forward_bytes(f, n) / 1e9);
	}
	fill_angles(f, n);
	f->n_reserved = n;
	return 0;
}

static double
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* What was done since the last call was this part. */
static void
lap(struct forward *f, enum forward_part part)
{
	double t = now_ms();

	f->ms_part[part] += t - f->lap;
	f->lap = t;
}

/*
 * Numbers that are not finite.  Threads report rows; the lowest one is named,
 * whoever found it first.
 */
static void
note_bad(struct forward *f, size_t row, unsigned stage)
{
	size_t v = 4 * row + stage, old = atomic_load(&f->bad);

	while (v < old && !atomic_compare_exchange_weak(&f->bad, &old, v))
		;
}

static size_t
raw_row(const struct forward *f, size_t i)
{
	return f->gathered ? ((size_t *)f->buf[ROWS].p)[i] : i;
}

struct stage_name {
	int layer; /* or -1 */
	const char *name;
};

/* After a piece of work that can report these stages. */
static int
check(struct forward *f, const struct stage_name names[3], struct err *err)
{
	size_t bad = atomic_load(&f->bad);
	const struct stage_name *n = &names[bad % 4];
	char where[16] = "";

	if (bad == SIZE_MAX)
		return 0;
	if (n->layer >= 0)
		snprintf(where, sizeof where, "%02d.", n->layer);
	return err_set(err, "stage %s%s, position %zu: a number is not finite "
	    "or above 2^100", where, n->name, raw_row(f, bad / 4));
}

static int
stage(struct forward *f, int layer, const char *name, const float *data,
    size_t width, struct err *err)
{
	if (!f->stage_fn)
		return 0;
	return f->stage_fn(
	    f->stage_arg, layer, name, data, f->n_cur, width, err);
}

/* Run fn over all current rows, in items of f->unit of them. */
static void
over_rows(struct forward *f, pool_fn *fn)
{
	pool_run(f->pool, fn, f, (f->n_cur + f->unit - 1) / f->unit, 1);
}

/* The rows of items from to to-1. */
static void
item_rows(const struct forward *f, size_t *from, size_t *to)
{
	*from *= f->unit;
	*to *= f->unit;
	if (*to > f->n_cur)
		*to = f->n_cur;
}

/* The inputs of up to three matrices are about to be packed. */
static void
want_packed(struct forward *f, const struct matrix *a, const struct matrix *b,
    const struct matrix *c)
{
	const struct matrix *all[] = { a, b, c };

	f->want_quant = f->want_float = 0;
	for (int i = 0; i < 3; i++) {
		if (!all[i])
			continue;
		f->want_quant |= uses_quant(f, all[i]);
		f->want_float |= !uses_quant(f, all[i]);
	}
	f->unit = max2(MIN_PIECE, f->k->lanes);
	if (f->want_float)
		f->unit = max2(f->unit, KERN_FLOAT_LANES);
	if (f->want_quant)
		xquant_place(&f->xq, f->buf[XQ].p, a->n_in, f->n_cur);
	f->xf.n_in = a->n_in;
	f->xf.n_tok = f->n_cur;
	f->xf.x = f->buf[XF].p;
}

static void
pack(struct forward *f, size_t from, size_t to, const float *x, size_t width)
{
	size_t good;

	if (f->want_quant) {
		good = f->k->pack_quant(
		    &f->xq, from, to - from, x + from * width, width);
		if (good < to - from)
			note_bad(f, from + good, 0);
	}
	if (f->want_float) {
		good = f->k->pack_float(
		    &f->xf, from, to - from, x + from * width, width);
		if (good < to - from)
			note_bad(f, from + good, 0);
	}
}

static void
embd_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct forward *f = arg;
	const struct matrix *e = &f->m->embd;

	(void)thread;
	item_rows(f, &from, &to);
	for (size_t t = from; t < to; t++)
		f->k->decode(e->type,
		    e->data + (size_t)f->ids[t] * e->row_bytes, e->n_in,
		    fbuf(f, X) + t * e->n_in);
}

/* x += residual; h = norm of x; pack h. */
static void
norm_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct forward *f = arg;
	size_t d = f->m->n_embd;

	(void)thread;
	item_rows(f, &from, &to);
	for (size_t t = from; t < to; t++) {
		float *x = fbuf(f, X) + t * d;

		if (f->residual)
			f->k->add(x, f->residual + t * d, d);
		if (f->k->rmsnorm(fbuf(f, H) + t * d, x, f->norm, d,
		        f->m->eps) < 0) {
			note_bad(f, t, 1);
			return;
		}
	}
	pack(f, from, to, fbuf(f, H), d);
}

static void
attn_pack_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct forward *f = arg;

	(void)thread;
	item_rows(f, &from, &to);
	pack(f, from, to, fbuf(f, ATTN), f->m->n_heads * f->m->head_dim);
}

/* gate = silu(gate) * up; pack it. */
static void
act_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct forward *f = arg;
	size_t d = f->m->n_ff;

	(void)thread;
	item_rows(f, &from, &to);
	for (size_t t = from; t < to; t++)
		f->k->silu_mul(fbuf(f, GATE) + t * d, fbuf(f, GATE) + t * d,
		    fbuf(f, UP) + t * d, d);
	pack(f, from, to, fbuf(f, GATE), d);
}

/* Rotate q and k; arrange the keys. */
static void
rope_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct forward *f = arg;
	const struct model *m = f->m;
	size_t q = m->n_heads * m->head_dim, kv = m->n_kv_heads * m->head_dim;
	size_t half = m->head_dim / 2;
	size_t keys = kern_panels(f->n, KERN_KEY_LANES);

	(void)thread;
	item_rows(f, &from, &to);
	for (size_t t = from; t < to; t++) {
		const float *c = fbuf(f, COS) + t * half;
		const float *s = fbuf(f, SIN) + t * half;

		f->k->rope(fbuf(f, Q) + t * q, m->n_heads, m->head_dim, c, s,
		    m->family->neox);
		f->k->rope(fbuf(f, K) + t * kv, m->n_kv_heads, m->head_dim, c,
		    s, m->family->neox);
		if (!f->k->all_finite(fbuf(f, Q) + t * q, q))
			note_bad(f, t, 0);
		if (!f->k->all_finite(fbuf(f, K) + t * kv, kv))
			note_bad(f, t, 1);
		if (!f->k->all_finite(fbuf(f, V) + t * kv, kv))
			note_bad(f, t, 2);
	}
	for (size_t h = 0; h < m->n_kv_heads; h++)
		f->k->pack_keys(fbuf(f, KT) + h * keys * m->head_dim, from,
		    to - from, fbuf(f, K) + from * kv + h * m->head_dim, kv,
		    m->head_dim);
}

/* Items are (head, block of queries); a query is a row that x will keep. */
static void
attention_job(void *arg, unsigned thread, size_t from, size_t to)
{
	struct forward *f = arg;
	const struct model *m = f->m;
	size_t d = m->head_dim, q = m->n_heads * d, kv = m->n_kv_heads * d;
	size_t keys = kern_panels(f->n, KERN_KEY_LANES);
	size_t blocks = (f->n_cur + KERN_QUERIES - 1) / KERN_QUERIES;
	float *e = fbuf(f, SCORES) + thread * KERN_QUERIES * keys;
	const float *query[KERN_QUERIES];

	for (size_t i = from; i < to; i++) {
		size_t head = i / blocks, first = i % blocks * KERN_QUERIES;
		size_t kv_head = head / (m->n_heads / m->n_kv_heads), n;

		for (n = 0; n < KERN_QUERIES && first + n < f->n_cur; n++)
			query[n] = fbuf(f, Q) + raw_row(f, first + n) * q +
			    head * d;
		f->k->attention(fbuf(f, ATTN) + first * q + head * d, q, query,
		    n, fbuf(f, KT) + kv_head * keys * d,
		    fbuf(f, V) + kv_head * d, kv, f->n, d, f->scale, e);
	}
}

/* Products with the packed input, of tokens first to first+count-1. */
static struct products
products(const struct forward *f, size_t first, size_t count)
{
	return (struct products){ .kern = f->k,
		.scratch = f->buf[SCRATCH].p,
		.scratch_bytes = f->scratch_bytes,
		.xq = f->o.float_activations ? NULL : &f->xq,
		.xf = &f->xf,
		.first = first,
		.count = count };
}

/* y = w * the packed input, for all current rows. */
static void
product(struct forward *f, const struct matrix *w, float *y)
{
	struct products job = products(f, 0, f->n_cur);

	product_add(&job, w, y, NULL);
	product_run(&job, f->pool);
	lap(f, FORWARD_PRODUCT);
}

/*
 * x += residual, then norm and packing for the matrices a, b, c.  names: the
 * stages of the norm and of x.
 */
static int
run_norm(struct forward *f, const struct stage_name names[3],
    const float *norm, const float *residual, const struct matrix *a,
    const struct matrix *b, const struct matrix *c, struct err *err)
{
	f->norm = norm;
	f->residual = residual;
	want_packed(f, a, b, c);
	over_rows(f, norm_job);
	lap(f, FORWARD_NORM);
	return check(f, names, err);
}

/* From here on x holds only the rows that are wanted. */
static void
gather(struct forward *f)
{
	size_t d = f->m->n_embd;

	/* rows ascend: each moves down or stays */
	for (size_t i = 0; i < f->n_rows; i++)
		memmove(fbuf(f, X) + i * d, fbuf(f, X) + raw_row(f, i) * d,
		    d * sizeof(float));
}

static int
run_attention(struct forward *f, int i, struct err *err)
{
	const struct stage_name qkv[] = { { i, "q" }, { i, "k" }, { i, "v" } };
	const struct stage_name attn[3] = { { i, "attn" } };
	const struct model *m = f->m;
	const struct layer *y = &m->layer[i];
	struct products job = products(f, 0, f->n_cur);
	size_t q = m->n_heads * m->head_dim, kv = m->n_kv_heads * m->head_dim;

	product_add(&job, &y->q, fbuf(f, Q), y->q_bias);
	product_add(&job, &y->k, fbuf(f, K), y->k_bias);
	product_add(&job, &y->v, fbuf(f, V), y->v_bias);
	product_run(&job, f->pool);
	lap(f, FORWARD_PRODUCT);
	f->unit = KERN_KEY_LANES;
	over_rows(f, rope_job);
	lap(f, FORWARD_ROPE);
	if (check(f, qkv, err) < 0 ||
	    stage(f, i, "q", fbuf(f, Q), q, err) < 0 ||
	    stage(f, i, "k", fbuf(f, K), kv, err) < 0 ||
	    stage(f, i, "v", fbuf(f, V), kv, err) < 0)
		return -1;
	if ((size_t)i + 1 == m->n_layers && f->n_rows < f->n) {
		f->gathered = 1;
		f->n_cur = f->n_rows;
	}
	pool_run(f->pool, attention_job, f,
	    m->n_heads * ((f->n_cur + KERN_QUERIES - 1) / KERN_QUERIES), 1);
	lap(f, FORWARD_ATTENTION);
	if (stage(f, i, "attn", fbuf(f, ATTN), q, err) < 0)
		return -1;
	want_packed(f, &y->attn_out, NULL, NULL);
	over_rows(f, attn_pack_job);
	lap(f, FORWARD_QUANTISE);
	if (check(f, attn, err) < 0)
		return -1;
	product(f, &y->attn_out, fbuf(f, T));
	if (f->gathered)
		gather(f);
	return stage(f, i, "attn_out", fbuf(f, T), m->n_embd, err);
}

static int
run_ffn(struct forward *f, int i, struct err *err)
{
	const struct stage_name act[3] = { { i, "ffn_act" } };
	const struct model *m = f->m;
	const struct layer *y = &m->layer[i];
	struct products job = products(f, 0, f->n_cur);

	product_add(&job, &y->gate, fbuf(f, GATE), NULL);
	product_add(&job, &y->up, fbuf(f, UP), NULL);
	product_run(&job, f->pool);
	lap(f, FORWARD_PRODUCT);
	want_packed(f, &y->down, NULL, NULL);
	over_rows(f, act_job);
	lap(f, FORWARD_ACT);
	if (stage(f, i, "ffn_act", fbuf(f, GATE), m->n_ff, err) < 0 ||
	    check(f, act, err) < 0)
		return -1;
	product(f, &y->down, fbuf(f, T));
	return stage(f, i, "ffn_out", fbuf(f, T), m->n_embd, err);
}

/* Layer i; its feed-forward's output is left in T for the next norm to add. */
static int
run_layer(struct forward *f, int i, struct err *err)
{
	const struct layer *y = &f->m->layer[i];
	const struct stage_name first[3] = { { i, "attn_norm" },
		{ i - 1, i ? "out" : "embd" } };
	const struct stage_name second[3] = { { i, "ffn_norm" },
		{ i, "attn_res" } };
	size_t d = f->m->n_embd;

	if (run_norm(f, first, y->attn_norm, i ? fbuf(f, T) : NULL, &y->q,
	        &y->k, &y->v, err) < 0 ||
	    (i && stage(f, i - 1, "out", fbuf(f, X), d, err) < 0) ||
	    stage(f, i, "attn_norm", fbuf(f, H), d, err) < 0 ||
	    run_attention(f, i, err) < 0)
		return -1;
	if (run_norm(f, second, y->ffn_norm, fbuf(f, T), &y->gate, &y->up,
	        NULL, err) < 0 ||
	    stage(f, i, "attn_res", fbuf(f, X), d, err) < 0 ||
	    stage(f, i, "ffn_norm", fbuf(f, H), d, err) < 0)
		return -1;
	return run_ffn(f, i, err);
}

/* Everything up to the last norm, for the rows in ROWS. */
static int
run(struct forward *f, struct err *err)
{
	const struct model *m = f->m;
	int last = (int)m->n_layers - 1;
	const struct stage_name names[3] = { { -1, "norm" }, { last, "out" } };
	double start = now_ms(), t;

	atomic_store(&f->bad, SIZE_MAX);
	f->gathered = 0;
	f->n_cur = f->n;
	f->unit = MIN_PIECE;
	memset(f->ms_part, 0, sizeof f->ms_part);
	f->lap = start;
	over_rows(f, embd_job);
	lap(f, FORWARD_EMBD);
	if (stage(f, -1, "embd", fbuf(f, X), m->n_embd, err) < 0)
		return -1;
	t = now_ms();
	f->ms_embd = t - start;
	for (int i = 0; i <= last; i++) {
		if (run_layer(f, i, err) < 0)
			return -1;
		start = t;
		t = now_ms();
		f->ms_layer[i] = t - start;
	}
	if (run_norm(f, names, m->norm, fbuf(f, T), &m->head, NULL, NULL,
	        err) < 0 ||
	    stage(f, last, "out", fbuf(f, X), m->n_embd, err) < 0)
		return -1;
	f->ms_head = now_ms() - t;
	return stage(f, -1, "norm", fbuf(f, H), m->n_embd, err);
}

static int
check_ids(const struct forward *f, const int32_t *ids, size_t n,
    struct err *err)
{
	if (n == 0)
		return err_set(err, "the sequence is empty");
	if (n > f->o.max_length)
		return err_set(err, "the sequence has %zu tokens, more than "
		    "the %zu of --max-length", n, f->o.max_length);
	for (size_t i = 0; i < n; i++)
		if (ids[i] < 0 || (size_t)ids[i] >= f->m->n_vocab)
			return err_set(err, "token %d at position %zu is "
			    "outside the vocabulary of %zu", ids[i], i,
			    f->m->n_vocab);
	return 0;
}

/* Fill ROWS with the rows of the head behind the wanted positions. */
static int
set_rows(struct forward *f, const struct ranges *wanted, struct err *err)
{
	size_t *row = f->buf[ROWS].p, shift = f->m->shift;
	const struct ranges all = { .r = &(struct range){ shift, f->n - shift },
		.n = 1 };

	if (!wanted)
		wanted = &all;
	f->n_rows = 0;
	for (size_t i = 0; i < wanted->n; i++) {
		struct range r = wanted->r[i];

		if (r.count && r.from < shift)
			return err_set(err, "position 0 cannot be predicted by "
			    "a model that predicts from the row before");
		if (r.from > f->n || r.count > f->n - r.from)
			return err_set(err, "rows %llu:%llu are outside the "
			    "sequence of %zu tokens",
			    (unsigned long long)r.from,
			    (unsigned long long)r.count, f->n);
		if (f->n_rows && r.count && r.from - shift <= row[f->n_rows - 1])
			return err_set(err, "rows are not ascending");
		for (uint64_t p = r.from; p < r.from + r.count; p++)
			row[f->n_rows++] = (size_t)p - shift;
	}
	return 0;
}

int
forward_hidden(struct forward *f, const int32_t *ids, size_t n,
    const struct ranges *wanted, struct err *err)
{
	f->n_rows = 0;
	if (check_ids(f, ids, n, err) < 0 || reserve(f, n, err) < 0)
		return -1;
	f->ids = ids;
	f->n = n;
	f->stage_fn = NULL;
	if (set_rows(f, wanted, err) < 0 ||
	    (f->n_rows && run(f, err) < 0)) {
		f->n_rows = 0;
		return -1;
	}
	return 0;
}

size_t
forward_rows(const struct forward *f)
{
	return f->n_rows;
}

size_t
forward_position(const struct forward *f, size_t i)
{
	return ((const size_t *)f->buf[ROWS].p)[i] + f->m->shift;
}

struct logits_check {
	struct forward *f;
	const float *out;
	size_t first;
};

static void
logits_job(void *arg, unsigned thread, size_t from, size_t to)
{
	const struct logits_check *c = arg;
	size_t v = c->f->m->n_vocab;

	(void)thread;
	for (size_t i = from; i < to; i++)
		if (!c->f->k->all_finite(c->out + i * v, v))
			note_bad(c->f, c->first + i, 0);
}

int
forward_head(struct forward *f, size_t first, size_t count, float *out,
    struct err *err)
{
	static const struct stage_name logits[3] = { { -1, "logits" } };
	struct products job = products(f, first, count);
	struct logits_check c = { f, out, first };
	double start = now_ms();

	if (count == 0)
		return 0;
	f->lap = start;
	product_add(&job, &f->m->head, out, NULL);
	product_run(&job, f->pool);
	pool_run(f->pool, logits_job, &c, count, 1);
	lap(f, FORWARD_HEAD);
	f->ms_head += now_ms() - start;
	return check(f, logits, err);
}

int
forward_stages(struct forward *f, const int32_t *ids, size_t n,
    forward_stage_fn *fn, void *arg, struct err *err)
{
	size_t *row;
	float *out;
	int rc;

	if (check_ids(f, ids, n, err) < 0 || reserve(f, n, err) < 0)
		return -1;
	f->ids = ids;
	f->n = f->n_rows = n;
	row = f->buf[ROWS].p;
	for (size_t i = 0; i < n; i++)
		row[i] = i;
	f->stage_fn = fn;
	f->stage_arg = arg;
	out = malloc(n * f->m->n_vocab * sizeof *out);
	if (!out)
		return err_set(err, "out of memory");
	rc = run(f, err);
	if (rc == 0)
		rc = forward_head(f, 0, n, out, err);
	if (rc == 0)
		rc = stage(f, -1, "logits", out, f->m->n_vocab, err);
	free(out);
	return rc;
}

void
forward_times(const struct forward *f, struct forward_times *t)
{
	t->embd = f->ms_embd;
	t->head = f->ms_head;
	t->layer = f->ms_layer;
	memcpy(t->part, f->ms_part, sizeof t->part);
}

int
forward_open(struct forward **to, const struct model *m,
    const struct forward_options *o, struct err *err)
{
	struct forward *f = calloc(1, sizeof *f);

	*to = NULL;
	if (!f)
		return err_set(err, "out of memory");
	f->m = m;
	f->o = *o;
	f->k = o->kern;
	f->pool = o->pool;
	f->scale = (float)(1.0 / sqrt((double)m->head_dim));
	f->ms_layer = calloc(m->n_layers, sizeof *f->ms_layer);
	f->scratch_bytes = max2(
	    max2(product_scratch(m->n_embd), product_scratch(m->n_ff)),
	    product_scratch(m->n_heads * m->head_dim));
	if (!f->ms_layer) {
		forward_close(f);
		return err_set(err, "out of memory");
	}
	*to = f;
	return 0;
}

void
forward_close(struct forward *f)
{
	if (!f)
		return;
	for (int i = 0; i < N_BUFFERS; i++)
		free(f->buf[i].p);
	free(f->ms_layer);
	free(f);
}
